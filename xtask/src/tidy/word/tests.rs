//! Words that must not be committed. Here too they are written in halves.

use crate::tidy::tests::{check, clean};

#[track_caller]
fn refused(path: &str, text: &str, line: usize, sentence: &str) {
    check(
        &clean().with(path, text),
        &[&format!("{path}:{line}: {sentence}")],
    );
}

#[track_caller]
fn fine(path: &str, text: &str) {
    check(&clean().with(path, text), &[]);
}

#[test]
fn notes_to_oneself_are_refused_in_source() {
    for note in [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("HA", "CK"),
        concat!("X", "XX"),
    ] {
        let sentence = format!("`{note}` in the source; open an issue instead");
        refused(
            "xtask/src/a.rs",
            &format!("//! Words.\n// {note}: later\n"),
            2,
            &sentence,
        );
        refused("web/src/a.ts", &format!("/* {note} */\n"), 1, &sentence);
        refused("Makefile", &format!("# {note}(me)\n"), 1, &sentence);
        fine("STYLE.md", &format!("No `{note}` on main.\n"));
    }
    fine("web/src/a.ts", "const XXXX = 'METHODOLOGY';\n");
}

#[test]
fn ignored_tests_are_refused() {
    let sentence = "an ignored test is no test; run it or remove it";
    for attribute in [
        "#[ignore]",
        "#[ignore = \"slow\"]",
        "#[cfg_attr(miri, ignore)]",
        "# [ ignore ]",
    ] {
        refused(
            "fuzz/a.rs",
            &format!("\n{attribute}\nfn a() {{}}\n"),
            2,
            sentence,
        );
    }
    fine(
        "fuzz/a.rs",
        "// #[ignore]\nconst A: &str = \"#[ignore]\";\n",
    );
}

#[test]
fn ignored_examples_are_refused() {
    let sentence = "an ignored example may be wrong; use `text` if it is not code";
    refused(
        "fuzz/a.rs",
        "/// ```ignore\n/// a();\n/// ```\n",
        1,
        sentence,
    );
    refused("fuzz/a.rs", "//! ```rust,ignore\n", 1, sentence);
    fine("fuzz/a.rs", "/// ```text\n/// ignore\n/// ```\n");
}

#[test]
fn sleeping_tests_are_refused() {
    let sentence = "a test does not sleep; wait for what it waits for";
    let nap = "fn a() { std::thread::sleep(b); }\n";
    refused("crates/model/tests/it/main.rs", nap, 1, sentence);
    refused(
        "fuzz/a/tests.rs",
        "use std::{thread::sleep};\n",
        1,
        sentence,
    );
    refused(
        "fuzz/a.rs",
        &format!("{nap}#[cfg(test)]\nmod tests {{\n{nap}}}\n"),
        4,
        sentence,
    );
    refused(
        "crates/model/tests/it/main.rs",
        "async fn a() { tokio::time::sleep(b).await }\n",
        1,
        sentence,
    );
    fine("fuzz/a.rs", nap);
    let explained = format!("// Sleeps: plays a slow host.\n{nap}");
    fine("crates/model/tests/it/main.rs", &explained);
    let far = format!("// Sleeps: plays a slow host.\n\n{nap}");
    refused("crates/model/tests/it/main.rs", &far, 3, sentence);
}

#[test]
fn paths_of_one_machine_are_refused() {
    for place in [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("/tm", "p/wt-"),
    ] {
        let sentence = format!("`{place}` is a path of one machine");
        refused("README.md", &format!("Go to {place}x\n"), 1, &sentence);
        refused(
            "cases/a.json",
            &format!("{{\"path\": \"{place}x\"}}\n"),
            1,
            &sentence,
        );
        refused("cases/a.txt", &format!("\n{place}x\n"), 2, &sentence);
        fine(
            "README.md",
            &format!("See docs{place}x and https://example.com{place}x\n"),
        );
    }
}

#[test]
fn registries_are_not_named() {
    for host in [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npm", "js"),
        concat!("static.rust", "-lang"),
    ] {
        let sentence = format!("`{host}` is for each machine's own settings to name");
        refused("README.md", &format!("From https://{host}\n"), 1, &sentence);
        fine("fuzz/Cargo.lock", &format!("source = \"https://{host}\"\n"));
    }
}
