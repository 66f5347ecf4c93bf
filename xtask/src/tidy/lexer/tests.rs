//! What remains of Rust when comments and literals are gone.

use super::code_only;

/// Runs of blanks count as one, and the length is kept.
#[track_caller]
fn check(text: &str, expected: &str) {
    let code = code_only(text);
    assert_eq!(code.chars().count(), text.chars().count(), "{text:?}");
    assert_eq!(
        code.split_whitespace().collect::<Vec<_>>().join(" "),
        expected,
        "{text:?}"
    );
}

#[test]
fn comments_are_blank() {
    check("a // std::fs\nb", "a b");
    check("a /* std::fs */ b", "a b");
    check("/// docs\n//! docs\na", "a");
}

#[test]
fn block_comments_nest() {
    check("a /* one /* two */ still */ b", "a b");
    check("a /* never closed", "a");
    check("a /*/ b */ c", "a c");
}

#[test]
fn strings_are_blank() {
    check(r#"a("std::fs")"#, "a( )");
    check(r#"a("quoted \" // not a comment", b)"#, "a( , b)");
    check(r#"a(b"bytes", c"text")"#, "a( , )");
    check("a(\"two\nlines\") b", "a( ) b");
    check(r#"a("\\") b"#, "a( ) b");
}

#[test]
fn raw_strings_end_at_their_own_fence() {
    check(r###"a(r"\") b"###, "a( ) b");
    check(r###"a(r#"one " two"#) b"###, "a( ) b");
    check(r###"a(br##"one "# two"##) b"###, "a( ) b");
}

#[test]
fn raw_names_are_code() {
    check("r#fs::read", "r#fs::read");
    check("break; core; r; b; c", "break; core; r; b; c");
}

#[test]
fn characters_are_blank_and_lifetimes_are_not() {
    check("a('\"', 'x', '\\'', b'/') b", "a( , , , ) b");
    check("fn f<'a, 'b>(x: &'a str) {}", "fn f<'a, 'b>(x: &'a str) {}");
    check("'outer: loop {}", "'outer: loop {}");
    check("a('é', '\\u{1F600}')", "a( , )");
}

#[test]
fn lines_keep_their_numbers() {
    let code = code_only("/* one\ntwo */ \"three\nfour\"\nfive");
    assert_eq!(code.lines().nth(3), Some("five"));
}

#[test]
fn broken_text_gives_some_answer() {
    for text in ["\"", "'", "r#\"", "b'", "/*", "'\\", "r###"] {
        assert_eq!(
            code_only(text).chars().count(),
            text.chars().count(),
            "{text:?}"
        );
    }
}
