//! Crates that slipped out of the lints.

use crate::tidy::tests::{check, clean};
use crate::tidy::tree::Tree;

fn sandbox(lints: &str) -> Tree {
    let manifest = format!("[package]\nname = \"ringfence-sandbox\"\n{lints}");
    clean().with("crates/sandbox/Cargo.toml", &manifest)
}

#[test]
fn a_crate_takes_the_lints_of_the_workspace() {
    let manifest = clean().text("crates/model/Cargo.toml").unwrap().replace(
        "workspace = true\n[lints]\nworkspace = true",
        "workspace = true",
    );
    check(
        &clean().with("crates/model/Cargo.toml", &manifest),
        &["crates/model/Cargo.toml:1: `[lints] workspace = true` is missing"],
    );
}

#[test]
fn a_list_of_its_own_is_for_the_sandbox_only() {
    let manifest = clean().text("xtask/Cargo.toml").unwrap().replace(
        "[lints]\nworkspace = true",
        "[lints.rust]\nmissing_docs = \"warn\"",
    );
    check(
        &clean().with("xtask/Cargo.toml", &manifest),
        &["xtask/Cargo.toml:5: `[lints] workspace = true` is missing"],
    );
}

#[test]
fn the_sandbox_may_change_one_lint_and_no_other() {
    check(&sandbox("[lints]\nworkspace = true\n"), &[]);
    check(
        &sandbox("[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"\n"),
        &[],
    );
    let finding = "crates/sandbox/Cargo.toml:3: the lints must be the root's but for `unsafe_code`";
    check(
        &sandbox("[lints.rust]\nunsafe_code = \"deny\"\n"),
        &[finding],
    );
    check(
        &sandbox("[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"allow\"\n"),
        &[finding],
    );
    check(&sandbox(""), &[&finding.replace(":3:", ":1:")]);
}

#[test]
fn settings_of_a_crate_repeat_those_of_the_root() {
    let tree = clean().with(
        "crates/model/clippy.toml",
        "disallowed-methods = [\"a\"]\ntoo-many-lines-threshold = 90\n",
    );
    check(
        &tree,
        &[
            "crates/model/clippy.toml:1: `disallowed-types` is missing: `model` does no IO",
            "crates/model/clippy.toml:2: `too-many-lines-threshold` differs from the root's clippy.toml",
        ],
    );
}

#[test]
fn a_pure_crate_has_settings() {
    let tree = clean().with(
        "crates/guard/Cargo.toml",
        "[package]\nname = \"ringfence-guard\"\n[lints]\nworkspace = true\n",
    );
    check(&tree, &["crates/guard/clippy.toml:1: the file is missing"]);
}
