//! Every way past the printer that we know.

use super::findings;
use crate::tidy::tree::Tree;

#[track_caller]
fn check(path: &str, code: &str, expected: &[String]) {
    let tree = Tree::of(&[(path, &format!("//! Words.\n{code}\n"))]);
    let found: Vec<String> = findings(&tree).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn refused(path: &str, code: &str, what: &str) {
    let expected = format!(
        "{path}:2: `{what}` writes past the printer, which makes text visible; use `printer`"
    );
    check(path, code, &[expected]);
}

#[track_caller]
fn fine(path: &str, code: &str) {
    check(path, code, &[]);
}

#[test]
fn the_command_line_prints_in_one_place() {
    let list = "crates/cli/src/list.rs";
    refused(list, "fn f() { println!(\"a\"); }", "println");
    refused(
        list,
        "fn f() { std::io::stderr().lock(); }",
        "std::io::stderr",
    );
    refused(list, "use std::io::{self, stdout};", "std::io::stdout");
    refused(list, "fn f() { let _ = error.print(); }", "print");
    refused(list, "fn f() { tokio::io::stdout(); }", "tokio::io::stdout");
    fine(list, "fn f() { printer.line(\"a\"); }");
    fine(
        "crates/cli/src/output/printer.rs",
        "fn f() { std::io::stdout(); }",
    );
    fine(
        "crates/cli/src/output/console.rs",
        "fn f() { std::io::stderr(); }",
    );
    fine("crates/cli/tests/it/a.rs", "fn f() { println!(\"a\"); }");
}

#[test]
fn no_other_crate_prints() {
    let source = "crates/store/src/a.rs";
    refused(source, "fn f() { std::io::stderr(); }", "std::io::stderr");
    refused(
        source,
        "fn f() { rustix::stdio::stdout(); }",
        "rustix::stdio::stdout",
    );
    fine(source, "fn f() { command.stdout(Stdio::null()); }");
    fine(
        "crates/store/src/bin/child.rs",
        "fn f() { std::io::stdout(); }",
    );
}
