//! What the guard lets pass the engine compiles, and what no engine runs the guard
//! finds, at its place. The engine is the sandbox's, without walls.

use guard::{IssueCode, Preset, PresetLevel, Severity};
use proptest::prelude::*;
use rquickjs::{CatchResultExt as _, Context, Function, Runtime};

use crate::case::{Case, cases, folder};

/// Whether the engine takes the body of a function, as the sandbox has it compile one.
/// Nothing runs.
fn compile(body: &str) -> Result<(), String> {
    thread_local! {
        static ENGINE: Context = Context::full(&Runtime::new().unwrap()).unwrap();
    }
    ENGINE.with(|engine| {
        engine.with(|context| {
            let made = context.eval::<Function<'_>, _>(format!("(async () => {{{body}\n}})"));
            made.map(|_| ())
                .catch(&context)
                .map_err(|error| error.to_string())
        })
    })
}

fn place_of(case: &Case) -> (usize, usize) {
    let place = case.title.split(' ').next().unwrap();
    let (line, column) = place.split_once(':').unwrap();
    (line.parse().unwrap(), column.parse().unwrap())
}

/// The first thing that stands in the way.
fn first_error(case: &Case) -> Option<(IssueCode, usize, usize, String)> {
    let report = guard::check(&case.source, &case.preset());
    let mut errors = report.issues.into_iter();
    let error = errors.find(|issue| issue.severity == Severity::Error)?;
    Some((error.code, error.line, error.column, error.message))
}

#[test]
fn early_errors_are_found_at_their_place() {
    if std::env::var_os("UPDATE_CASES").is_some() {
        return update();
    }
    let cases = cases("early");
    assert!(cases.len() >= 100, "only {} early errors", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let found = first_error(case);
        let (line, column) = place_of(case);
        let is_found = matches!(&found, Some((IssueCode::ParseError, found_line, found_column, _))
            if (*found_line, *found_column) == (line, column));
        if !is_found {
            wrong.push(format!("{} {}: {found:?}", case.place, case.title));
        }
        let strict = format!("'use strict'; {}", case.source);
        if compile(&strict).is_ok() && !case.title.ends_with("(ours)") {
            wrong.push(format!("{} {}: compiles", case.place, case.title));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Writes the places the guard finds into the table. Read the difference.
fn update() {
    let path = folder("early/table.txt");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for case in cases("early") {
        let (line, column) = first_error(&case).map_or((0, 0), |found| (found.1, found.2));
        let rest = case.title.split_once(' ').unwrap().1;
        let place = place_of(&case);
        for (before, after) in [("", ""), ("[balanced] ", "[balanced] ")] {
            text = text.replace(
                &format!("### {}:{} {before}{rest}\n", place.0, place.1),
                &format!("### {line}:{column} {after}{rest}\n"),
            );
        }
    }
    std::fs::write(path, text).unwrap();
}

/// Accepts nothing the engine does not compile.
fn hold(source: &str) -> Result<(), String> {
    for level in [PresetLevel::Secure, PresetLevel::Permissive] {
        if let Ok(prepared) = guard::prepare(source, &Preset::agent_script(level)) {
            compile(&prepared.code)
                .map_err(|error| format!("{source:?} passes, and the engine says {error}"))?;
        }
    }
    Ok(())
}

#[test]
fn every_honest_script_compiles() {
    for case in cases("guard") {
        hold(&case.source).unwrap();
    }
}

/// Words and marks of scripts. Most sentences of them are wrong; what passes compiles.
const PIECES: &[&str] = &[
    "let a",
    "const b = 1",
    "var a",
    "let [a, b] = c",
    "const { a, ...b } = c",
    "a",
    "b",
    "c",
    "1",
    "'x'",
    "`t${a}`",
    " = ",
    " => ",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    "\n",
    ", ",
    "?.",
    ".",
    ":",
    "...",
    " ?? ",
    " || ",
    " + ",
    "++",
    "-",
    "!",
    " ** ",
    "async ",
    "await ",
    "return ",
    "throw ",
    "if (a) ",
    " else ",
    "for (const a of b) ",
    "for (let a = 0; a < 1; a++) ",
    "for await (const a of b) ",
    "for (let a = 1 of b) ",
    "for (var a of b) ",
    "for (a of b) ",
    "for (a.b of c) ",
    "for (let of b) ",
    "for (async of b) ",
    "for (;;) ",
    "switch (a) {",
    "case 1: ",
    "default: ",
    "try {",
    "} catch (a) {",
    "} catch ({ a }) {",
    "} finally {",
    "break",
    "continue",
    "l: ",
    "break l",
    "continue l",
    "typeof ",
    "delete ",
    "void ",
    "new ",
    " in ",
    " instanceof ",
    "of",
    "let",
    "yield",
    "static",
    "get",
    "set",
    "async",
    "undefined",
    "NaN",
    "new.target",
    "super",
    "#p",
    "this",
    "(a) => a",
    "async (a) => { await a; }",
    "([a], b = 1) => a",
    "a => { let b; }",
    "'use strict'",
    "/a/g",
    "/(?<n>a)\\k<n>/u",
    "/[/]/",
    "010",
    "1n",
    "0x1F",
    "1_000",
    "'\\u{61}'",
    "\\u0061",
    "callTool('x', {})",
    "console",
    "a[b]",
    "a?.[b]",
    "{ a, b: c }",
    "{ a = 1 }",
    "{ [a]: 1 }",
    "debugger",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn any_sentence_that_passes_compiles(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..14)) {
            prop_assert_eq!(hold(&pieces.concat()), Ok(()));
    }

    /// Statements that are each right, in any order and nesting.
    #[test]
    fn any_statements_that_pass_compile(source in statements()) {
            prop_assert_eq!(hold(&source), Ok(()));
    }

    /// An honest script with a piece of another, or of an early error, put into it.
    #[test]
    fn any_change_that_passes_compiles(
        one in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(),
        from in 0usize..400, length in 0usize..30, piece in 0usize..400, taken in 0usize..60,
    ) {
            let honest = cases("guard");
        let mut all = cases("guard");
        all.extend(cases("early"));
        let mut text: Vec<char> = one.get(&honest).source.chars().collect();
        let other: Vec<char> = other.get(&all).source.chars().collect();
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        let piece = piece % other.len().max(1);
        let end = (piece + taken).min(other.len());
        text.splice(from..to, other[piece.min(end)..end].iter().copied());
        prop_assert_eq!(hold(&text.into_iter().collect::<String>()), Ok(()));
    }
}

/// Names are few, so that they meet.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b", "c", "l", "e"][..])
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        name().prop_map(str::to_owned),
        Just("1".to_owned()),
        Just("'x'".to_owned()),
        Just("{}".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (name(), inner.clone()).prop_map(|(name, value)| format!("({name} = {value})")),
            (name(), inner.clone()).prop_map(|(name, value)| format!("(({name}) => ({value}))")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} ?? {two})")),
            (inner.clone(), name()).prop_map(|(one, name)| format!("({one}).{name}")),
            (inner.clone(), inner.clone()).prop_map(|(one, key)| format!("({one})[{key}]")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("[{one}, ...[{two}]]")),
            inner.prop_map(|value| format!("(await {value})")),
        ]
    })
}

fn statements() -> impl Strategy<Value = String> {
    let word = prop::sample::select(&["let", "const", "var"][..]);
    let leaf = prop_oneof![
        (word.clone(), name(), expression())
            .prop_map(|(word, name, value)| format!("{word} {name} = {value};\n")),
        (word, name(), name())
            .prop_map(|(word, one, two)| format!("{word} [{one}, {two}] = [];\n")),
        expression().prop_map(|value| format!("({value});\n")),
        Just("break;\n".to_owned()),
        Just("continue;\n".to_owned()),
        name().prop_map(|label| format!("break {label};\n")),
        name().prop_map(|label| format!("continue {label};\n")),
        name().prop_map(|name| format!("delete {name}.x;\n")),
        Just("return 1;\n".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let block = prop::collection::vec(inner, 0..4).prop_map(|all| all.concat());
        prop_oneof![
            block.clone().prop_map(|body| format!("{{ {body} }}\n")),
            (name(), block.clone())
                .prop_map(|(name, body)| format!("for (const {name} of []) {{ {body} }}\n")),
            (name(), block.clone())
                .prop_map(|(name, body)| format!("for (var {name} of []) {{ {body} }}\n")),
            (name(), block.clone()).prop_map(|(name, body)| format!(
                "for (let {name} = 0; {name} < 1; {name}++) {{ {body} }}\n"
            )),
            (name(), block.clone()).prop_map(|(label, body)| format!("{label}: {{ {body} }}\n")),
            (name(), name(), block.clone()).prop_map(|(label, name, body)| format!(
                "{label}: for (const {name} of []) {{ {body} }}\n"
            )),
            (name(), block.clone(), block.clone()).prop_map(|(name, body, caught)| format!(
                "try {{ {body} }} catch ({name}) {{ {caught} }}\n"
            )),
            (name(), block.clone())
                .prop_map(|(name, caught)| format!("try {{}} catch ([{name}]) {{ {caught} }}\n")),
            (block.clone(), block.clone())
                .prop_map(|(one, two)| format!("switch (1) {{ case 1: {one} default: {two} }}\n")),
            (name(), name(), block.clone()).prop_map(|(one, two, body)| format!(
                "[].map(async ({one}, {two}) => {{ {body} }});\n"
            )),
            (name(), block)
                .prop_map(|(one, body)| format!("[].map(({one} = 1) => {{ {body} }});\n")),
        ]
    })
}
