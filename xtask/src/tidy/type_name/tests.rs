//! Types of one name.

use crate::tidy::tests::{check, clean};
use crate::tidy::tree::Tree;

fn tree(one: &str, other: &str, lists: &str) -> Tree {
    clean()
        .with("crates/model/src/a.rs", &format!("//! Words.\n{one}\n"))
        .with("xtask/src/b.rs", &format!("//! Words.\n{other}\n"))
        .with("xtask/tidy.toml", lists)
}

const TWICE: &str = "xtask/src/b.rs:2: `Entry` names more than one public type; rename one; \
    also at crates/model/src/a.rs:2";

#[test]
fn one_name_for_two_public_types_is_refused() {
    for one in [
        "pub struct Entry;",
        "pub(crate) enum Entry {}",
        "pub type Entry<T> = Vec<T>;",
    ] {
        for other in ["pub trait Entry {}", "pub(crate) struct Entry(u8);"] {
            check(&tree(one, other, ""), &[TWICE]);
        }
    }
}

#[test]
fn private_types_tests_and_other_items_are_free() {
    let one = "pub struct Entry;";
    for other in [
        "struct Entry;",
        "pub(super) struct Entry;",
        "pub struct Row; impl Row { type Entry = u8; }",
        "pub fn Entry() {}",
        "pub use a::Entry;",
        "#[cfg(test)] pub struct Entry;",
        "macro_rules! a { () => { pub struct $Entry; } }",
    ] {
        check(&tree(one, other, ""), &[]);
    }
}

#[test]
fn a_listed_name_is_fine_up_to_its_number() {
    let both = "pub struct Entry; mod c { pub struct Entry; }";
    check(&tree(both, "", "[types]\nEntry = 2\n"), &[]);
    check(
        &tree(both, "pub struct Entry;", "[types]\nEntry = 2\n"),
        &[
            "xtask/src/b.rs:2: `Entry` names more than one public type; rename one; \
           also at crates/model/src/a.rs:2, crates/model/src/a.rs:2; xtask/tidy.toml allows 2",
        ],
    );
}

#[test]
fn the_list_only_shrinks() {
    let both = "pub struct Entry; mod c { pub struct Entry; }";
    check(
        &tree(both, "", "[types]\nEntry = 3\n"),
        &["xtask/tidy.toml:2: `Entry` needs 2, not 3; lower the number"],
    );
    check(
        &tree("pub struct Entry;", "", "[types]\nEntry = 2\n"),
        &["xtask/tidy.toml:2: `Entry` needs no exception any more; remove it from the list"],
    );
    for number in ["1", "\"two\"", "-1"] {
        check(
            &tree("", "", &format!("[types]\nEntry = {number}\n")),
            &["xtask/tidy.toml:2: `Entry` must be a number greater than 1"],
        );
    }
}
