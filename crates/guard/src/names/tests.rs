//! What each use of a name means.

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;

use super::Names;
use crate::report::Marks;

/// The globals a script uses, in order.
fn globals(source: &str) -> Vec<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::mjs()).parse();
    assert!(!parsed.panicked, "{source}");
    let names = Names::of(&parsed.program, &mut Marks::default());
    let free = names
        .references
        .iter()
        .filter(|reference| reference.binding.is_none());
    free.map(|reference| String::from(reference.name)).collect()
}

#[track_caller]
fn check(source: &str, expected: &[&str]) {
    assert_eq!(globals(source), expected, "{source}");
}

#[test]
fn a_name_is_known_where_it_is_declared_and_nowhere_else() {
    check("const a = 1; b = a;", &["b"]);
    check("{ const a = 1; } a;", &["a"]);
    check("{ var a = 1; } a;", &[]);
    check("(x) => { const y = x; }; y; x;", &["y", "x"]);
    check("const f = () => late; const late = 1;", &[]);
    check("for (const i of []) i; i;", &["i"]);
    check("try {} catch (e) { e; } e;", &["e"]);
    check("(() => { var inner = 1; })(); inner;", &["inner"]);
    check(
        "const { a, b: { c }, ...rest } = x; a; c; rest; b;",
        &["x", "b"],
    );
    check("const [p = q, r] = s; p; r;", &["q", "s"]);
    check("f(); function f() { return f; }", &[]);
    check("const g = function h() { return h; }; h;", &["h"]);
    check("class A { m() { return A; } } A;", &[]);
    check("switch (1) { case 1: let z; } z;", &["z"]);
    check("label: for (;;) { break label; }", &[]);
    check("({ a, b: c });", &["a", "c"]);
    check("o.p.q; o[p];", &["o", "o", "p"]);
    check("var v = (w, d = () => v) => w; w;", &["w"]);
}

#[test]
fn many_names_are_found_as_few_are() {
    let mut source = String::new();
    for index in 0..100 {
        source.push_str(&format!("const n{index} = {index};\n"));
    }
    source.push_str("n0; n99; n100;");
    check(&source, &["n100"]);
}
