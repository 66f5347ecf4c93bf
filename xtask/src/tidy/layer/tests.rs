//! Crates that look the wrong way, or under the wrong name.

use crate::tidy::tests::{check, clean};
use crate::tidy::tree::Tree;

/// The clean tree, with the shared list naming `crates`, and one more crate.
fn with_crate(folder: &str, body: &str) -> Tree {
    let mut root = clean().text("Cargo.toml").unwrap().to_owned();
    for name in ["guard", "sandbox", "engine", "cli"] {
        let line =
            format!("{name} = {{ package = \"ringfence-{name}\", path = \"crates/{name}\" }}\n");
        if body.contains(&format!("{name}.workspace")) {
            root = root.replace("serde =", &format!("{line}serde ="));
        }
    }
    let manifest =
        format!("[package]\nname = \"ringfence-{folder}\"\n{body}\n[lints]\nworkspace = true\n");
    clean()
        .with("Cargo.toml", &root)
        .with(&format!("crates/{folder}/Cargo.toml"), &manifest)
}

#[test]
fn looking_down_is_fine() {
    check(
        &with_crate(
            "engine",
            "[dependencies]\nmodel.workspace = true\nsandbox.workspace = true",
        ),
        &[],
    );
    check(
        &with_crate("cli", "[dependencies]\nengine.workspace = true"),
        &[],
    );
}

#[test]
fn organs_do_not_see_each_other() {
    check(
        &with_crate("host", "[dependencies]\nsandbox.workspace = true"),
        &["crates/host/Cargo.toml:4: `host` may not depend on `sandbox`; see the layers"],
    );
}

#[test]
fn tests_do_not_look_upward_either() {
    check(
        &with_crate("store", "[dev-dependencies]\nengine.workspace = true"),
        &["crates/store/Cargo.toml:4: `store` may not depend on `engine`; see the layers"],
    );
}

#[test]
fn target_tables_obey_the_rule_too() {
    check(
        &with_crate(
            "store",
            "[target.'cfg(unix)'.build-dependencies]\nengine.workspace = true",
        ),
        &["crates/store/Cargo.toml:4: `store` may not depend on `engine`; see the layers"],
    );
}

#[test]
fn the_door_does_not_reach_past_the_spine() {
    check(
        &with_crate(
            "mcp",
            "[dependencies]\nengine.workspace = true\nguard.workspace = true",
        ),
        &["crates/mcp/Cargo.toml:5: `mcp` may not depend on `guard`; see the layers"],
    );
}

#[test]
fn the_task_runner_does_not_see_the_binary() {
    let tree = with_crate(
        "cli",
        "[dependencies]\nmodel.workspace = true # cli.workspace",
    );
    let xtask = tree
        .text("xtask/Cargo.toml")
        .unwrap()
        .replace("model.", "cli.workspace = true\nmodel.");
    check(
        &tree.with("xtask/Cargo.toml", &xtask),
        &["xtask/Cargo.toml:4: `xtask` may not depend on `cli`; see the layers"],
    );
}

#[test]
fn an_unknown_crate_is_a_question() {
    check(
        &with_crate("common", ""),
        &[
            "crates/common/Cargo.toml:1: `common` has no layer; add it to the table in xtask/src/tidy/layer.rs",
        ],
    );
}

#[test]
fn folder_package_and_library_share_a_noun() {
    let manifest = clean().text("crates/model/Cargo.toml").unwrap().to_owned();
    let renamed = manifest.replace("ringfence-model", "model");
    check(
        &clean().with("crates/model/Cargo.toml", &renamed),
        &["crates/model/Cargo.toml:2: the package must be `ringfence-model`"],
    );
    let renamed = manifest.replace("name = \"model\"", "name = \"words\"");
    check(
        &clean().with("crates/model/Cargo.toml", &renamed),
        &["crates/model/Cargo.toml:4: the library must be `model`"],
    );
    let root = clean()
        .text("Cargo.toml")
        .unwrap()
        .replace("\"ringfence-model\"", "\"model\"");
    check(
        &clean().with("Cargo.toml", &root),
        &["Cargo.toml:2: `model` must be package `ringfence-model`"],
    );
}

#[test]
fn broken_manifests_are_findings() {
    let tree = clean().with("crates/host/src/lib.rs", "//! Powers.\n");
    check(
        &tree,
        &[
            "crates/host/Cargo.toml:1: the file is missing",
            "crates/host/Cargo.toml:1: the manifest is missing",
        ],
    );
}
