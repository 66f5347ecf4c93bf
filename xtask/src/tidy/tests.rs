//! All rules together.

use super::findings;
use crate::tidy::tree::Tree;

/// The smallest tree that no rule objects to.
pub(crate) fn clean() -> Tree {
    Tree::of(&[
        (
            "Cargo.toml",
            "[workspace.dependencies]\n\
             model = { package = \"ringfence-model\", path = \"crates/model\" }\n\
             serde = \"1\" # all: outside formats\n\
             [workspace.lints.rust]\n\
             unsafe_code = \"forbid\"\n\
             missing_docs = \"warn\"\n",
        ),
        ("Cargo.lock", "[[package]]\nname = \"xtask\"\n"),
        ("clippy.toml", "too-many-lines-threshold = 70\n"),
        (
            "crates/model/Cargo.toml",
            "[package]\nname = \"ringfence-model\"\n\
             [lib]\nname = \"model\"\n\
             [dependencies]\nserde.workspace = true\n\
             [lints]\nworkspace = true\n",
        ),
        (
            "crates/model/clippy.toml",
            "too-many-lines-threshold = 70\n\
             disallowed-methods = [\"std::fs::read\"]\n\
             disallowed-types = [\"std::fs::File\"]\n",
        ),
        ("crates/model/src/lib.rs", "//! Words.\n"),
        (
            "xtask/Cargo.toml",
            "[package]\nname = \"xtask\"\n\
             [dependencies]\nmodel.workspace = true\n\
             [lints]\nworkspace = true\n",
        ),
    ])
}

/// Compares what all rules say, one finding per line.
#[track_caller]
pub(crate) fn check(tree: &Tree, expected: &[&str]) {
    let found: Vec<String> = findings(tree).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_clean_tree_has_no_findings() {
    check(&clean(), &[]);
}

#[test]
fn findings_of_all_rules_come_together_in_order() {
    let tree = clean()
        .with("crates/model/src/lib.rs", "use std::fs;\n")
        .with("README.md", "[gone](gone.md)\n");
    check(
        &tree,
        &[
            "README.md:1: the link `gone.md` leads nowhere",
            "crates/model/src/lib.rs:1: `model` may not use `std::fs`: it reads and writes files",
            "crates/model/src/lib.rs:1: a module starts with `//!` and what it is for",
        ],
    );
}
