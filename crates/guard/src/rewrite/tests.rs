//! What scripts become.

use crate::{Preset, PresetLevel, prepare};

fn body(source: &str) -> String {
    let preset = Preset::agent_script(PresetLevel::Permissive);
    let prepared = prepare(source, &preset).unwrap();
    let inner = prepared
        .code
        .strip_prefix("async function __ag_main(){\"use strict\";")
        .unwrap();
    inner
        .strip_suffix("\n}\nreturn __ag_main();")
        .unwrap()
        .to_owned()
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(body(source), expected);
}

#[test]
fn loops_are_counted_with_and_without_braces() {
    check(
        "for (const a of []) { a; }",
        "for (const a of []) {__ag_turn(); a; }",
    );
    check(
        "for (let i = 0; i < 3; i++) for (const a of []) a;",
        "for (let i = 0; i < 3; i++) {__ag_turn();for (const a of []) {__ag_turn();a;}}",
    );
    check(
        "out: for (let i = 0; i < 3; i++) continue out;",
        "out: for (let i = 0; i < 3; i++) {__ag_turn();continue out;}",
    );
    check(
        "for (let i = 0; i < 3; i++);",
        "for (let i = 0; i < 3; i++){__ag_turn();;}",
    );
}

#[test]
fn names_of_the_runtime_get_their_prefix() {
    check(
        "const a = await callTool('x', {});",
        "const a = await __safe_callTool('x', {});",
    );
    check(
        "const o = { console };",
        "const o = { console: __safe_console };",
    );
    check(
        "const f = (log) => log; f(console.log);",
        "const f = (log) => log; return f(__safe_console.log);",
    );
    check("const t = typeof nothing;", "const t = typeof undefined;");
    check("const t = typeof Math;", "const t = typeof Math;");
}

#[test]
fn keys_go_through_the_guard() {
    check(
        "const k = 'a'; const o = {}; o[k] = o[0] + o['b'];",
        "const k = 'a'; const o = {}; return o[__ag_guardKey((k))] = o[0] + o['b'];",
    );
    check(
        "const a = [[1]]; return a[a[0][0], 0];",
        "const a = [[1]]; return a[__ag_guardKey((a[0][0], 0))];",
    );
}

#[test]
fn places_lead_back_to_the_author() {
    let preset = Preset::agent_script(PresetLevel::Permissive);
    let source = "const o = {}, k = 'a';\nfor (const a of [1]) o[k] = callTool('x');\nreturn o;";
    let prepared = prepare(source, &preset)
        .unwrap()
        .with_prelude("let x=1;")
        .unwrap();
    for (line, text) in prepared.code.lines().enumerate().take(3) {
        for word in ["const o", "for (", "o[", "callTool", "return o"] {
            let (Some(found), Some(authors)) = (
                text.find(word),
                source.lines().nth(line).unwrap().find(word),
            ) else {
                continue;
            };
            assert_eq!(
                prepared.map.author(line + 1, found + 1),
                (line + 1, authors + 1),
                "{word}"
            );
        }
    }
    assert_eq!(prepared.map.author(99, 1).0, 3);
    assert_eq!(prepared.map.author(1, 3), (1, 1));
}

#[test]
fn a_prelude_has_one_line() {
    let preset = Preset::agent_script(PresetLevel::Secure);
    assert!(
        prepare("return 1", &preset)
            .unwrap()
            .with_prelude("a;\nb;")
            .is_err()
    );
    assert!(!crate::runtime::prelude(5).contains('\n'));
}
