//! Modules that do not introduce themselves.

use crate::tidy::tests::{check, clean};

#[track_caller]
fn bare(path: &str, text: &str) {
    let finding = format!("{path}:1: a module starts with `//!` and what it is for");
    check(&clean().with(path, text), &[&finding]);
}

#[test]
fn a_module_without_a_header_is_a_finding() {
    bare("crates/model/src/a.rs", "fn a() {}\n");
    bare("crates/model/src/a/b.rs", "");
    bare("crates/model/src/a.rs", "//!\n");
    bare("xtask/src/a.rs", "// Words.\n");
}

#[test]
fn other_files_need_none() {
    check(
        &clean().with("crates/model/tests/it/main.rs", "fn a() {}\n"),
        &[],
    );
    check(&clean().with("fuzz/fuzz_targets/a.rs", "fn a() {}\n"), &[]);
}
