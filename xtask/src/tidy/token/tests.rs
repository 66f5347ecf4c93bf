//! Which tokens are the product's.

use super::product_tokens;

/// The names that are left.
#[track_caller]
fn check(text: &str, expected: &str) {
    let tokens = product_tokens(text);
    let names: Vec<&str> = tokens
        .iter()
        .filter_map(|token| token.word.name())
        .collect();
    assert_eq!(names.join(" "), expected, "{text:?}");
}

#[test]
fn code_without_tests_is_kept() {
    check("use a::b;\nfn c() {}", "use a b fn c");
    check("#[cfg(unix)] fn a() {}", "cfg unix fn a");
    check("#[cfg(not(test))] fn a() {}", "cfg not test fn a");
    check("#[cfg(any(test, unix))] mod a;", "cfg any test unix mod a");
}

#[test]
fn items_of_tests_are_left_out() {
    check("#[cfg(test)] mod a; b", "b");
    check("#[cfg(test)] mod a { fn b() { c } } d", "d");
    check("#[cfg(test)] use a::{b, c}; d", "d");
    check("#[cfg(test)] pub(crate) use a::{b}; d", "d");
    check("#[cfg(test)] #[derive(A)] struct B { c: u8 } d", "d");
    check("#[cfg(test)] fn a(b: [u8; 2], c: u8) { d } e", "e");
    check("#[cfg(test)] impl A { fn b() {} } c", "c");
    check("#[cfg(all(test, unix))] mod a; b", "b");
}

#[test]
fn fields_of_tests_end_with_their_comma_or_their_struct() {
    check(
        "struct A { #[cfg(test)] b: u8, c: u8 } d",
        "struct A c u8 d",
    );
    check("struct A { #[cfg(test)] b: u8 } d", "struct A d");
}
