//! What counts as part of the tree.

use super::{Ignore, Tree};

#[track_caller]
fn check(lines: &str, path: &str, is_covered: bool) {
    let ignored = Ignore::parse("web", lines).unwrap();
    let name = path.rsplit('/').next().unwrap();
    let covers = ignored.iter().any(|ignore| ignore.covers(path, name));
    assert_eq!(covers, is_covered, "{lines:?} {path}");
}

#[test]
fn the_plain_forms_of_ignoring_are_known() {
    check("/dist", "web/dist", true);
    check("/dist", "web/src/dist", false);
    check("/dist", "dist", false);
    check("src/out/", "web/src/out", true);
    check("node_modules/", "web/a/node_modules", true);
    check("*.log", "web/a/b.log", true);
    check("*.log", "web/a/log", false);
    check("# /dist\n\n", "web/dist", false);
}

#[test]
fn other_forms_are_refused() {
    for line in ["!keep", "a*b", "**/a", "/*.log", "a?", "[ab]", "*"] {
        assert!(Ignore::parse("", line).is_err(), "{line:?}");
    }
}

#[test]
fn folders_exist_through_their_files() {
    let tree = Tree::of(&[("docs/guide/a.md", ""), ("docs.md", "")]);
    assert!(tree.contains("docs"));
    assert!(tree.contains("docs/guide/"));
    assert!(tree.contains("docs/guide/a.md"));
    assert!(!tree.contains("doc"));
    assert!(!tree.contains("docs/guide/a"));
    assert!(!tree.contains("e"));
}

#[test]
fn crates_are_named_once() {
    let tree = Tree::of(&[
        ("crates/b/a.rs", ""),
        ("crates/b/b.rs", ""),
        ("crates/a/a.rs", ""),
        ("crates/c", ""),
    ]);
    assert_eq!(tree.crates(), ["a", "b"]);
}
