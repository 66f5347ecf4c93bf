//! Modules that know each other.

use crate::tidy::tests::{check, clean};
use crate::tidy::tree::Tree;

/// A crate of these modules; each text gets a header, so code starts on line 2.
fn tree(modules: &[(&str, &str)], lists: &str) -> Tree {
    let tree = clean().with("xtask/tidy.toml", lists);
    modules.iter().fold(tree, |tree, (path, code)| {
        let path = format!("crates/model/src/{path}.rs");
        tree.with(&path, &format!("//! Words.\n{code}\n"))
    })
}

#[track_caller]
fn fine(modules: &[(&str, &str)]) {
    check(&tree(modules, ""), &[]);
}

const A_AND_B: &str = "crates/model/src/a.rs:2: modules form a cycle: \
    `a` uses `b` (crates/model/src/a.rs:2), `b` uses `a` (crates/model/src/b.rs:2); \
    move the shared code below them";

#[track_caller]
fn knotted(modules: &[(&str, &str)]) {
    check(&tree(modules, ""), &[A_AND_B]);
}

#[test]
fn one_direction_is_fine() {
    fine(&[("a", "use crate::b::B;"), ("b", "use crate::c;"), ("c", "")]);
    fine(&[("a", "use crate::a::b::B;"), ("a/b", "use crate::a::A;")]);
    fine(&[("a", "use crate::b::B;"), ("b", "use std::a::A;")]);
}

#[test]
fn two_modules_that_use_each_other_are_refused() {
    knotted(&[("a", "use crate::b::B;"), ("b", "use crate::a::A;")]);
    knotted(&[
        ("a", "use crate::{b, c};"),
        ("b", "use crate::{c, a::A};"),
        ("c", ""),
    ]);
    knotted(&[("a", "use super::b::B;"), ("b", "use super::a::A;")]);
    knotted(&[
        ("a", "fn f() { crate::b::g() }"),
        ("b", "struct B(crate::a::A);"),
    ]);
}

#[test]
fn a_file_deep_inside_counts_as_its_top_module() {
    check(
        &tree(
            &[
                ("a/x", "use crate::b::B;"),
                ("b/y/z", "use super::super::super::a::A;"),
            ],
            "",
        ),
        &["crates/model/src/a/x.rs:2: modules form a cycle: \
           `a` uses `b` (crates/model/src/a/x.rs:2), `b` uses `a` (crates/model/src/b/y/z.rs:2); \
           move the shared code below them"],
    );
    fine(&[
        ("a/x", "use crate::b::B;"),
        ("b/y/z", "use super::super::a::A;"),
    ]);
}

#[test]
fn modules_in_place_are_one_step_deeper() {
    fine(&[
        ("a", "use crate::b::B;"),
        ("b", "mod inner { use super::a::A; }"),
    ]);
    knotted(&[
        ("a", "use crate::b::B;"),
        ("b", "mod inner { use super::super::a::A; }"),
    ]);
}

#[test]
fn the_shortest_of_several_cycles_is_named() {
    let modules = [
        ("a", "use crate::b::B;\nuse crate::c::C;"),
        ("b", "use crate::a::A;"),
        ("c", "use crate::d::D;"),
        ("d", "use crate::a::A;"),
    ];
    let whole = "; in all: `a`, `b`, `c`, `d`; move";
    check(&tree(&modules, ""), &[&A_AND_B.replace("; move", whole)]);
}

#[test]
fn what_the_root_exports_again_is_the_module_s() {
    let modules = [("a", "use crate::b::B;"), ("b", "use crate::A;")];
    for root in [
        "pub use a::A;",
        "pub use crate::a::{A, Z};",
        "pub use a::Z as A;",
        "use a::A;",
    ] {
        let root = format!("//! Words.\nmod a;\nmod b;\n{root}\n");
        check(
            &tree(&modules, "").with("crates/model/src/lib.rs", &root),
            &[A_AND_B],
        );
    }
    let own = "//! Words.\nmod a;\nmod b;\npub struct A;\n";
    check(
        &tree(&modules, "").with("crates/model/src/lib.rs", own),
        &[],
    );
}

#[test]
fn tests_do_not_count() {
    fine(&[
        ("a", "use crate::b::B;"),
        ("b", "#[cfg(test)]\nmod tests { use crate::a::A; }"),
        ("b/tests", "use crate::a::A;"),
    ]);
}

#[test]
fn a_listed_cycle_is_fine() {
    let modules = [("a", "use crate::b::B;"), ("b", "use crate::a::A;")];
    check(&tree(&modules, "[cycles]\nmodel = [[\"a\", \"b\"]]\n"), &[]);
}

#[test]
fn a_listed_cycle_may_not_gain_a_module() {
    let modules = [
        ("a", "use crate::b::B;\nuse crate::c::C;"),
        ("b", "use crate::a::A;"),
        ("c", "use crate::b::B;"),
    ];
    check(
        &tree(&modules, "[cycles]\nmodel = [[\"a\", \"b\"]]\n"),
        &[
            "crates/model/src/c.rs:2: `c` joins a cycle that xtask/tidy.toml lists without it: \
             `c` uses `b` (crates/model/src/c.rs:2), `b` uses `a` (crates/model/src/b.rs:2), \
             `a` uses `c` (crates/model/src/a.rs:3); move the shared code below them",
        ],
    );
}

#[test]
fn a_cycle_that_is_gone_leaves_the_list() {
    let modules = [
        ("a", "use crate::b::B;"),
        ("b", "use crate::a::A;"),
        ("c", ""),
    ];
    check(
        &tree(
            &modules,
            "[cycles]\nmodel = [[\"a\", \"b\"], [\"c\", \"d\"]]\n",
        ),
        &["xtask/tidy.toml:2: in no cycle any more: `c`, `d`; remove it from the list"],
    );
    check(
        &tree(&modules, "[cycles]\nmodel = [[\"a\", \"b\", \"c\"]]\n"),
        &["xtask/tidy.toml:2: in no cycle any more: `c`; remove it from the list"],
    );
    check(
        &tree(&[], "[cycles]\ngone = [[\"a\"]]\n"),
        &["xtask/tidy.toml:2: there is no crate `gone`; remove it"],
    );
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    check(
        &tree(&[], "[cycles]\nmodel = [\"a\"]\n"),
        &["xtask/tidy.toml:2: `model` must be a list of lists of module names"],
    );
    check(
        &tree(&[], "cycles = 1\n"),
        &["xtask/tidy.toml:1: `cycles` must be a table"],
    );
    check(
        &tree(&[], "[cycles\n"),
        &["xtask/tidy.toml:1: the file is not valid TOML"],
    );
}
