//! Every way to reach the outside from a pure crate that we know.

use crate::tidy::tests::{check, clean};

#[track_caller]
fn refused(code: &str, what: &str) {
    let tree = clean().with("crates/model/src/a.rs", &format!("//! Words.\n{code}\n"));
    check(
        &tree,
        &[&format!(
            "crates/model/src/a.rs:2: `model` may not use {what}"
        )],
    );
}

#[track_caller]
fn fine(code: &str) {
    check(
        &clean().with("crates/model/src/a.rs", &format!("//! Words.\n{code}\n")),
        &[],
    );
}

#[test]
fn modules_that_touch_the_outside_are_refused() {
    refused("use std::fs;", "`std::fs`: it reads and writes files");
    refused(
        "use std::{fs::File, fmt};",
        "`std::fs`: it reads and writes files",
    );
    refused(
        "fn f() { std::env::var(\"A\"); }",
        "`std::env`: it reads the environment",
    );
    refused("use std::thread;", "`std::thread`: it starts threads");
    refused(
        "use std::process::Command;",
        "`std::process`: it starts or ends processes",
    );
    refused(
        "use std::net::IpAddr;",
        "`std::net`: it opens sockets; plain addresses are in `core::net`",
    );
    refused(
        "use std::io::{self, stdin};",
        "`std::io::stdin`: it reads from the terminal",
    );
}

#[test]
fn clocks_are_refused_and_durations_are_not() {
    refused(
        "use std::time::Instant;",
        "`std::time::Instant`: it reads a clock",
    );
    refused(
        "use std::time::{Duration, SystemTime};",
        "`std::time::SystemTime`: it reads a clock",
    );
    refused(
        "fn f() { time::Instant::now(); }",
        "`std::time::Instant`: it reads a clock",
    );
    fine("use std::time::Duration;");
}

#[test]
fn imports_that_hide_what_is_used_are_refused() {
    refused("use std::*;", "`std::*`: it brings everything with it");
    refused(
        "use std::time::*;",
        "`std::time::*`: it brings the clocks with it",
    );
    refused("use std as s;", "`std as …`: it hides what is used");
    refused("use std::{self as s};", "`std as …`: it hides what is used");
}

#[test]
fn waiting_and_chance_are_refused() {
    refused("use tokio::sync::Mutex;", "`tokio`: it is for waiting");
    refused(
        "fn f() -> u8 { rand::random() }",
        "`rand`: it gives another answer each time",
    );
    refused("async fn f() {}", "`async`: it is for waiting");
}

#[test]
fn words_that_only_look_alike_are_fine() {
    fine("// std::fs\n/* std::net */\nconst A: &str = \"std::env\";");
    fine("use crate::fs::read;\nuse super::env;");
    fine("fn f(rand: u8) -> u8 { rand }");
    fine("use std::io::Write;");
}

#[test]
fn the_guard_is_held_to_it_too_and_others_are_not() {
    let code = "//! Words.\nuse std::fs;\n";
    let manifest = |name: &str| {
        format!(
            "[package]\nname = \"ringfence-{name}\"\n[lib]\nname = \"{name}\"\n\
             [lints]\nworkspace = true\n"
        )
    };
    let settings =
        "too-many-lines-threshold = 70\ndisallowed-methods = [\"a\"]\ndisallowed-types = [\"a\"]\n";
    let tree = clean()
        .with("crates/guard/Cargo.toml", &manifest("guard"))
        .with("crates/guard/clippy.toml", settings)
        .with("crates/guard/src/lib.rs", code)
        .with("crates/host/Cargo.toml", &manifest("host"))
        .with("crates/host/src/lib.rs", code)
        .with("crates/model/tests/it/main.rs", code);
    check(
        &tree,
        &["crates/guard/src/lib.rs:2: `guard` may not use `std::fs`: it reads and writes files"],
    );
}

#[test]
fn packages_that_bring_the_outside_are_refused() {
    let root = clean()
        .text("Cargo.toml")
        .unwrap()
        .replace("serde =", "rand = \"1\" # chance\nserde =");
    let model = clean()
        .text("crates/model/Cargo.toml")
        .unwrap()
        .replace("serde.", "rand.workspace = true\nserde.");
    let tree = clean()
        .with("Cargo.toml", &root)
        .with("crates/model/Cargo.toml", &model);
    check(
        &tree,
        &["crates/model/Cargo.toml:6: `model` may not depend on `rand`"],
    );
}
