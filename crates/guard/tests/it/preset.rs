//! What differs between presets, and rules that must be asked for.

use guard::preset::{ArgumentKind, CallWish};
use guard::{Preset, PresetLevel, Severity};

fn codes(source: &str, preset: &Preset) -> Vec<&'static str> {
    let report = guard::check(source, preset);
    report
        .issues
        .iter()
        .map(|issue| issue.code.word())
        .collect()
}

#[track_caller]
fn check(preset: &Preset, source: &str, expected: &[&str]) {
    assert_eq!(codes(source, preset), expected, "{} {source}", preset.name);
}

#[test]
fn presets_for_javascript_at_large() {
    check(
        &Preset::permissive(),
        "while (x) { y(); } function f() { return this; }",
        &[],
    );
    check(&Preset::permissive(), "eval('1')", &["NO_EVAL"]);
    check(&Preset::standard(), "for (const k in o) { f(k); }", &[]);
    check(&Preset::standard(), "while (x) y();", &["FORBIDDEN_LOOP"]);
    check(
        &Preset::standard(),
        "require('a'); process.exit();",
        &["DISALLOWED_IDENTIFIER", "DISALLOWED_IDENTIFIER"],
    );
    check(&Preset::standard(), "new Function('a')", &["NO_EVAL"]);
    check(&Preset::secure(), "for (const a of b) await f(a);", &[]);
    check(
        &Preset::secure(),
        "fetch('x'); o.constructor; o['__proto__'];",
        &[
            "DISALLOWED_IDENTIFIER",
            "NO_CONSTRUCTOR_ACCESS",
            "DISALLOWED_IDENTIFIER",
        ],
    );
    check(
        &Preset::strict(),
        "for (const a of b) f(a);",
        &["FORBIDDEN_LOOP"],
    );
    check(
        &Preset::strict(),
        "const f = async () => { await g(); };",
        &["NO_ASYNC", "NO_AWAIT"],
    );
    // A parameter may be called so.
    check(&Preset::strict(), "const f = (async) => async;", &[]);
    check(&Preset::strict(), "const f = async => async;", &[]);
    check(
        &Preset::strict(),
        "Object.keys({});",
        &["DISALLOWED_IDENTIFIER"],
    );
    check(
        &Preset::strict(),
        "/(a+)+/.test(x)",
        &["PRESCANNER_REDOS", "REGEX_REDOS_VULNERABLE"],
    );
    check(&Preset::permissive(), "/(a+)+/.test(x)", &[]);
    // Flags count: large and small letters are one here.
    check(
        &Preset::strict(),
        "/(a|A)+$/i.test(x)",
        &["PRESCANNER_REDOS", "REGEX_REDOS_VULNERABLE"],
    );
    check(&Preset::strict(), "/(a|A)+$/g.test(x)", &[]);
    // Direction marks are for scripts that agents write.
    check(&Preset::standard(), "f('\u{200f}')", &[]);
}

#[test]
fn without_functions_there_are_no_arrows() {
    let mut preset = Preset::agent_script(PresetLevel::Secure);
    preset.functions = guard::preset::Functions::None;
    check(
        &preset,
        "return [1].map((a) => a);",
        &["NO_USER_ARROW_FUNCTION"],
    );
}

#[test]
fn tools_that_are_listed() {
    let mut preset = Preset::agent_script(PresetLevel::Standard);
    preset.tools = Some(vec![String::from("users:*"), String::from("math:add")]);
    check(
        &preset,
        "await callTool('users:list'); await callTool('math:add');",
        &[],
    );
    check(
        &preset,
        "await callTool('math:sub');",
        &["UNKNOWN_TOOL_NAME"],
    );
    check(
        &preset,
        "const n = 'admin:' + 'drop'; await callTool(n);",
        &["UNKNOWN_TOOL_NAME"],
    );
    check(
        &preset,
        "await callTool(1 < 2 ? 'users:x' : 'other');",
        &["UNKNOWN_TOOL_NAME"],
    );
}

#[test]
fn namespaces_of_tools() {
    let mut preset = Preset::agent_script(PresetLevel::Secure);
    preset.extra_globals = vec![String::from("tickets")];
    check(&preset, "return await tickets.create({ title: 'a' });", &[]);
    let prepared = guard::prepare("return await tickets.create({ title: 'a' });", &preset).unwrap();
    assert!(prepared.code.contains("await __safe_tickets.create("));
    check(
        &Preset::agent_script(PresetLevel::Secure),
        "return tickets.create({});",
        &["UNKNOWN_GLOBAL"],
    );
}

#[test]
fn required_calls() {
    let mut preset = Preset::agent_script(PresetLevel::Secure);
    preset.calls = vec![CallWish {
        function: String::from("callTool"),
        calls_min: 1,
        calls_max: 2,
        arguments_min: 1,
        arguments_max: 3,
        kinds: vec![ArgumentKind::String, ArgumentKind::Object],
    }];
    check(&preset, "return 1;", &["REQUIRED_FUNCTION_NOT_CALLED"]);
    check(&preset, "await callTool('a', {});", &[]);
    check(
        &preset,
        "await callTool('a', [1]);",
        &["INVALID_ARGUMENT_TYPE"],
    );
    check(
        &preset,
        "await callTool('a', {}, {}, 4);",
        &["INVALID_ARGUMENT_COUNT"],
    );
    check(
        &preset,
        "await callTool('a'); await callTool('b'); await callTool('c');",
        &["FUNCTION_CALLED_TOO_MANY_TIMES"],
    );
}

#[test]
fn warnings_do_not_prevent_use() {
    for (level, source, code) in [
        (
            PresetLevel::Secure,
            "return 1; const a = 2;",
            "UNREACHABLE_CODE",
        ),
        (
            PresetLevel::Secure,
            "const p = await callTool('a'); return 'x'.match(p);",
            "REGEX_METHOD_DYNAMIC",
        ),
        (
            PresetLevel::Standard,
            "return /a*a*b/.test('x');",
            "REGEX_REDOS_SUSPICIOUS",
        ),
        (
            PresetLevel::Secure,
            "return 'a\u{ad}b';",
            "PRESCANNER_UNICODE_SUSPICIOUS",
        ),
        (
            PresetLevel::Secure,
            "return 'a\u{e0100}b';",
            "PRESCANNER_UNICODE_SUSPICIOUS",
        ),
        (
            PresetLevel::Secure,
            "return 'a\u{2028}b';",
            "PRESCANNER_UNICODE_SUSPICIOUS",
        ),
    ] {
        let report = guard::check(source, &Preset::agent_script(level));
        assert!(report.valid, "{source}");
        let found: Vec<_> = report
            .issues
            .iter()
            .map(|issue| (issue.code.word(), issue.severity))
            .collect();
        assert_eq!(found, [(code, Severity::Warning)], "{source}");
    }
}

#[test]
fn patterns_made_of_text_have_a_length_too() {
    let mut preset = Preset::agent_script(PresetLevel::Standard);
    preset.limits.regex_chars_max = 5;
    check(
        &preset,
        "return 'a'.match('abcdefgh');",
        &["REGEX_TOO_LONG"],
    );
}

#[test]
fn findings_have_the_authors_places() {
    let source = "const a = 1;\n\n  const б = eval('x');\nreturn /* ж */ process;";
    let report = guard::check(source, &Preset::agent_script(PresetLevel::Secure));
    let places: Vec<_> = report
        .issues
        .iter()
        .map(|issue| (issue.code.word(), issue.line, issue.column))
        .collect();
    assert_eq!(
        places,
        [("NO_EVAL", 3, 13), ("DISALLOWED_IDENTIFIER", 4, 16)]
    );
}

#[test]
fn hidden_line_ends_are_reported_with_their_place() {
    let sources = [
        ("return 1; // ok \u{2028}callTool('x')", 16),
        ("// ok\rreturn 1", 5),
        ("/* a \u{2029} */ return 1", 5),
        ("const é = 1;\u{2028}return é", 12),
    ];
    for (source, column) in sources {
        let report = guard::check(source, &Preset::agent_script(PresetLevel::Secure));
        assert!(!report.valid, "{source:?}");
        let first = report.issues.first().unwrap();
        let found = (first.code.word(), first.line, first.column);
        assert_eq!(
            found,
            ("PRESCANNER_HIDDEN_LINE_END", 1, column + 1),
            "{source:?}"
        );
    }
}

#[test]
fn a_fence_around_a_script_is_called_a_fence() {
    for source in [
        "```js\nreturn 1;\n```",
        "\n  ```\nreturn 1;\n```\n",
        "~~~\nreturn 1\n~~~",
    ] {
        let report = guard::check(source, &Preset::agent_script(PresetLevel::Secure));
        let messages: Vec<_> = report.issues.iter().map(|issue| &issue.message).collect();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("markdown fence"), "{messages:?}");
    }
}

/// The lines of calls that nothing waits for.
fn dropped(source: &str) -> Vec<usize> {
    let mut preset = Preset::agent_script(PresetLevel::Secure);
    preset.extra_globals = vec![String::from("users")];
    let report = guard::check(source, &preset);
    assert!(report.valid, "{source}: {:?}", report.issues);
    let found = report.issues.iter();
    let warned: Vec<_> = found
        .filter(|issue| issue.code.word() == "UNAWAITED_CALL")
        .map(|issue| issue.line)
        .collect();
    let prepared = guard::prepare(source, &preset).unwrap();
    let sites = prepared.calls.iter().filter(|site| site.is_dropped);
    assert_eq!(sites.map(|site| site.line).collect::<Vec<_>>(), warned);
    warned
}

#[test]
fn unawaited_calls_are_reported() {
    for (source, lines) in [
        ("callTool('a', {});\nreturn 1;", &[1][..]),
        ("users.drop({});\nreturn 1;", &[1]),
        ("const p = callTool('a', {});\nreturn 1;", &[1]),
        (
            "[1].forEach(async (n) => {\n  await callTool('a', { n });\n});\nreturn 1;",
            &[2],
        ),
        (
            "[1].map(async (n) => {\n  await callTool('a', { n });\n});\nreturn 1;",
            &[2],
        ),
        (
            "const f = async () => {\n  callTool('a');\n};\nawait f();",
            &[2],
        ),
        // What is waited for, given back or handed on.
        ("await callTool('a', {});\nreturn 1;", &[]),
        ("callTool('a', {})", &[]),
        ("return callTool('a', {});", &[]),
        ("const p = callTool('a', {});\nreturn await p;", &[]),
        (
            "const all = [1].map((n) => callTool('a', { n }));\nreturn parallel(all, (p) => p);",
            &[],
        ),
        (
            "await parallel([1], async (n) => { await callTool('a', { n }); });\nreturn 1;",
            &[],
        ),
        (
            "[1].forEach((n) => { console.log(n); });\nreturn await callTool('a');",
            &[],
        ),
    ] {
        assert_eq!(dropped(source), lines, "{source}");
    }
}

#[test]
fn levels_have_the_names_of_the_settings() {
    let names = ["locked_down", "secure", "balanced", "experimental"];
    let levels: Vec<_> = names
        .iter()
        .filter_map(|name| PresetLevel::named(name))
        .collect();
    assert_eq!(
        levels,
        [
            PresetLevel::Strict,
            PresetLevel::Secure,
            PresetLevel::Standard,
            PresetLevel::Permissive
        ]
    );
    assert_eq!(PresetLevel::named("anything"), None);
}

#[test]
fn a_hundred_findings_are_told_and_the_rest_counted() {
    let source = "eval(1);\n".repeat(900);
    let report = guard::check(&source, &Preset::agent_script(PresetLevel::Secure));
    assert_eq!((report.issues.len(), report.issues_left_out), (100, 800));
    assert!(!report.valid);
}

#[test]
fn the_reference_page_is_fresh() {
    let path = crate::case::folder("../docs/reference/guard.md");
    let page = guard::code::page();
    if std::env::var_os("UPDATE_CASES").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        page,
        "run again with UPDATE_CASES=1"
    );
}
