//! Dependencies without an explanation, a user or an agreement.

use crate::tidy::dependency::{PACKAGE_COUNT_MAX, package_count};
use crate::tidy::tests::{check, clean};
use crate::tidy::tree::Tree;

fn with_root(from: &str, to: &str) -> Tree {
    let root = clean().text("Cargo.toml").unwrap().replace(from, to);
    clean().with("Cargo.toml", &root)
}

#[test]
fn a_dependency_says_who_needs_it() {
    let finding = "Cargo.toml:3: `serde` needs a comment at its end: who needs it and why";
    check(&with_root(" # all: outside formats", ""), &[finding]);
    check(&with_root(" # all: outside formats", " #"), &[finding]);
    check(
        &with_root("serde = \"1\" # all", "# all\nserde = \"1\"\n# all"),
        &[&finding.replace(":3:", ":4:")],
    );
}

#[test]
fn a_mark_inside_the_value_is_no_comment() {
    check(
        &with_root(
            "serde = \"1\" # all: outside formats",
            "serde = { version = \"1\", features = [\"#\"] }",
        ),
        &["Cargo.toml:3: `serde` needs a comment at its end: who needs it and why"],
    );
}

#[test]
fn a_dependency_may_take_several_lines() {
    check(
        &with_root(
            "\"1\" # all",
            "{ version = \"1\", features = [\n    \"derive\",\n] } # all",
        ),
        &[],
    );
}

#[test]
fn a_dependency_is_used() {
    check(
        &with_root("serde =", "anyhow = \"1\" # nobody\nserde ="),
        &["Cargo.toml:3: no crate uses `anyhow`"],
    );
}

#[test]
fn versions_stand_in_the_root_only() {
    for own in [
        "serde = \"1\"",
        "serde = { version = \"1\" }",
        "serde = { workspace = false }",
    ] {
        let manifest = clean()
            .text("crates/model/Cargo.toml")
            .unwrap()
            .replace("serde.workspace = true", own);
        check(
            &clean().with("crates/model/Cargo.toml", &manifest),
            &[
                "crates/model/Cargo.toml:6: write `serde.workspace = true` and keep the version in the root",
            ],
        );
    }
}

#[test]
fn there_is_a_bound_on_packages() {
    let lockfile = |count| "[[package]]\nname = \"a\"\n".repeat(count);
    assert_eq!(
        package_count(&clean().with("Cargo.lock", &lockfile(3))),
        Some(3)
    );
    let most = PACKAGE_COUNT_MAX;
    check(&clean().with("Cargo.lock", &lockfile(most)), &[]);
    let sentence = format!("Cargo.lock:1: {} packages; at most {most}", most + 1);
    check(
        &clean().with("Cargo.lock", &lockfile(most + 1)),
        &[&sentence],
    );
    check(
        &clean().with("Cargo.lock", "?"),
        &["Cargo.lock:1: the lockfile is missing or broken"],
    );
}
