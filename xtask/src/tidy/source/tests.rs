//! Which files are source of the product.

use super::SourceFile;
use crate::tidy::tree::Tree;

/// Crate and module of a path; nothing if it is no source of the product.
#[track_caller]
fn check(path: &str, expected: Option<(&str, &str)>) {
    let tree = Tree::of(&[(path, "")]);
    let found = SourceFile::all(&tree);
    let found = found
        .first()
        .map(|source| (source.crate_name, source.module.join("::")));
    let found = found
        .as_ref()
        .map(|(name, module)| (*name, module.as_str()));
    assert_eq!(found, expected, "{path}");
}

#[test]
fn files_are_modules() {
    check("crates/model/src/lib.rs", Some(("model", "")));
    check("crates/cli/src/main.rs", Some(("cli", "")));
    check("crates/model/src/a.rs", Some(("model", "a")));
    check("crates/model/src/a/b.rs", Some(("model", "a::b")));
    check("crates/model/src/a/mod.rs", Some(("model", "a")));
    check("xtask/src/tidy/cycle.rs", Some(("xtask", "tidy::cycle")));
}

#[test]
fn tests_and_other_programs_are_not() {
    check("crates/model/src/a/tests.rs", None);
    check("crates/model/src/a/tests/b.rs", None);
    check("crates/model/src/bin/a.rs", None);
    check("crates/model/tests/it/main.rs", None);
    check("crates/model/benches/a.rs", None);
    check("crates/model/src/a.txt", None);
    check("fuzz/src/a.rs", None);
}
