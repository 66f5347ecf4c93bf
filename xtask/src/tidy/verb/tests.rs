//! Functions with effects, and what they are called.

use crate::tidy::tests::{check, clean};
use crate::tidy::tree::Tree;

/// The code stands in a crate that may wait.
fn tree(code: &str, lists: &str) -> Tree {
    clean()
        .with("xtask/src/a.rs", &format!("//! Words.\n{code}\n"))
        .with("xtask/tidy.toml", lists)
}

#[track_caller]
fn refused(code: &str, name: &str) {
    let sentence = format!(
        "xtask/src/a.rs:2: `xtask::{name}` does something and is named by a participle; use a verb"
    );
    check(&tree(code, ""), &[&sentence]);
}

#[track_caller]
fn fine(code: &str) {
    check(&tree(code, ""), &[]);
}

#[test]
fn participles_that_do_something_are_refused() {
    refused("async fn claimed() {}", "claimed");
    refused("pub(crate) async fn written(&self) {}", "written");
    refused("pub async unsafe extern fn told() {}", "told");
    refused("fn held(&mut self) {}", "held");
    refused("fn kept<T>(&'a mut self, b: u8) {}", "kept");
    refused("fn changed(self: Pin<&mut Self>) {}", "changed");
}

#[test]
fn verbs_are_fine() {
    fine("async fn run() {}\nfn set(&mut self) {}\nfn feed(&mut self) {}\nasync fn read() {}");
    fine("async fn embed() {}\nasync fn write_changed() {}");
}

#[test]
fn functions_that_only_answer_are_fine() {
    fine("fn changed(&self) -> bool {}");
    fine("fn written(row: &mut Row) {}");
    fine("fn held(mut self) -> Self {}");
    fine("fn f() { async { a }; }\nfn told() {}");
    fine("#[cfg(test)]\nasync fn claimed() {}");
}

#[test]
fn the_list_allows_a_number_and_only_shrinks() {
    let code = "async fn held() {}";
    check(&tree(code, "[participles]\n\"xtask::held\" = 1\n"), &[]);
    check(
        &tree(code, "[participles]\n\"xtask::held\" = 2\n"),
        &["xtask/tidy.toml:2: `xtask::held` needs 1, not 2; lower the number"],
    );
    check(
        &tree("", "[participles]\n\"xtask::held\" = 1\n"),
        &["xtask/tidy.toml:2: `xtask::held` needs no exception any more; remove it from the list"],
    );
}
