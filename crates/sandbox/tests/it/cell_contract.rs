//! The body contract: what a script is given, how it may end, what comes back.

use sandbox::job::{ConsoleLevel, Ended, HostCallKind, Job, Thrown};

use super::cell_run::{check, ended, job, run, show};

#[test]
fn a_body_returns_a_value() {
    check("return 1 + 2", "value 3");
    check("return await Promise.resolve('x')", r#"value "x""#);
    check("function f() { return 7 } return f()", "value 7");
    check("", "undefined");
    check("return null", "value null");
    check("return undefined", "undefined");
    check("return () => 1", "undefined");
    check("return (async () => 5)()", "value 5");
    check("return this === globalThis", "value true");
    check("'use strict'; return this === undefined", "value true");
    check("return 1 // no newline", "value 1");
}

fn with_globals(body: &str, globals: &str, declared: &[&str]) -> Job {
    let declared = declared.iter().map(|&name| name.to_owned()).collect();
    Job {
        globals: globals.to_owned(),
        declared,
        ..job(body)
    }
}

#[track_caller]
fn check_with(body: &str, globals: &str, declared: &[&str], expected: &str) {
    let ran = run(with_globals(body, globals, declared));
    assert_eq!(show(&ran.report.ended), expected, "{body}");
}

#[test]
fn parameters_are_properties_of_the_global_object() {
    check_with("return a + b", r#"{"a":1,"b":2}"#, &[], "value 3");
    check_with(
        "const path = path0; return path",
        r#"{"path":"x","path0":"y"}"#,
        &[],
        r#"value "y""#,
    );
    check_with(
        "return [typeof q, 'q' in globalThis]",
        "{}",
        &["q"],
        r#"value ["undefined",true]"#,
    );
    check_with("const q = 1; return q", "{}", &["q"], "value 1");
    check_with("return q", r#"{"q":5}"#, &["q"], "value 5");
    check_with(
        "return missing",
        "{}",
        &[],
        "threw ReferenceError: missing is not defined",
    );
    check_with(
        "return typeof undefined",
        r#"{"undefined":5}"#,
        &[],
        r#"value "undefined""#,
    );
    check_with("return __proto__", r#"{"__proto__":5}"#, &[], "value 5");
    check_with(
        "return Number.isInteger(n)",
        r#"{"n":12345678901}"#,
        &[],
        "value true",
    );
}

#[test]
fn host_globals_win_over_parameters() {
    check_with(
        "return typeof console.log",
        r#"{"console":1}"#,
        &[],
        r#"value "function""#,
    );
    check_with(
        "return typeof atob",
        r#"{"atob":1}"#,
        &["btoa"],
        r#"value "function""#,
    );
    check_with(
        "return typeof probe",
        r#"{"probe":1}"#,
        &[],
        r#"value "object""#,
    );
}

#[test]
fn a_power_not_granted_does_not_exist() {
    let bare = Job {
        powers: Vec::new(),
        ..job("return typeof probe")
    };
    assert_eq!(
        run(bare).report.ended,
        Ended::Value(r#""undefined""#.to_owned())
    );
}

#[test]
fn a_body_cannot_break_out_of_its_wrapper() {
    for body in [
        "}); globalThis.evil = 1; (async function () {",
        "}); (function () {",
        "})(), (async function () {",
        "}); ({",
        "}) + ({",
        "}}}",
        "}); //",
        "}) /*",
        "*/ }) /*",
        "`}); evil(() => {",
        "}, function () {",
        "}); `",
        "} ); ( function ( ) { return 3",
    ] {
        let ended = ended(body);
        assert!(ended.starts_with("threw SyntaxError"), "{body}: {ended}");
    }
    check("return '}); evil(() => {'", r#"value "}); evil(() => {""#);
    check("return `}) ${1}`", r#"value "}) 1""#);
    check("/* }) */ return 1", "value 1");
    check("return /}\\)/.source", r#"value "}\\)""#);
    check("{ } return 2", "value 2");
}

#[track_caller]
fn thrown(body: &str) -> Thrown {
    match run(job(body)).report.ended {
        Ended::Threw(thrown) => thrown,
        other => panic!("{body}: {other:?}"),
    }
}

#[track_caller]
fn check_position(body: &str, name: &str, line: u32, column: u32) {
    let thrown = thrown(body);
    assert_eq!(
        (thrown.name.as_str(), thrown.line, thrown.column),
        (name, line, column),
        "{thrown:?}"
    );
}

#[test]
fn errors_carry_the_authors_own_position() {
    check_position("throw new Error('x')", "Error", 1, 11);
    check_position("\n\n  null.x", "TypeError", 3, 8);
    check_position("console.log('a');\nreturn null.x", "TypeError", 2, 13);
    check_position(
        "console.log('a');\nconst { b } = undefined",
        "TypeError",
        2,
        1,
    );
    check_position(
        "console.log('a');\nif (1) {\n  const [x] = 5;\n}",
        "TypeError",
        3,
        3,
    );
    check_position("const a = 1;\n  a = [1].map((x) => x)", "TypeError", 2, 3);
    check_position(
        "const o = {};\nreturn o\n  .first.second",
        "TypeError",
        3,
        10,
    );
    check_position("const o = {};\no.missing(\n  1,\n  o.x)", "TypeError", 2, 3);
    check_position("const list = undefined;\nreturn list[0]", "TypeError", 2, 8);
    check_position("let f;\nconst x = [\n  f(1)]", "TypeError", 3, 3);
    check_position("let a = 1;\nfoo();", "ReferenceError", 2, 1);
    check_position("let a = ;\nreturn 1", "SyntaxError", 1, 9);
    check_position("let a = 1;\nlet b = @;", "SyntaxError", 2, 9);
    check_position("return (1", "SyntaxError", 1, 10);
    check_position("if (true) {\n  return 1", "SyntaxError", 2, 11);
    check_position(
        "const f = () => { throw new TypeError('t') };\nf()",
        "TypeError",
        1,
        29,
    );
    check_position(
        "await 1;\nthrow new RangeError('later')",
        "RangeError",
        2,
        11,
    );
    check_position("await probe.queued('fail')", "Error", 1, 13);
    check_position(
        "const o = { b: 1 };\nawait probe.queued('fail', {\n  a: String(1), b: o.b })",
        "Error",
        2,
        13,
    );
}

/// What is no error has no trace of its own, and a place all the same.
#[test]
fn anything_thrown_has_its_line() {
    for (body, line) in [
        ("const a = 1;\n  throw { code: a }", 2),
        ("try { throw 1 } catch {}\n throw 'text'", 2),
        ("try {\n throw { a: 1 }\n} finally {\n  1\n}", 2),
        ("await null;\nthrow 5", 2),
        ("const f = () => {\n throw { a: 1 } };\nawait null;\nf()", 2),
        (
            "const f = async () => {\n await null; throw { a: 1 } };\nreturn f()",
            2,
        ),
        ("const f = async () => {\n throw undefined };\nawait f()", 2),
    ] {
        assert_eq!(thrown(body).line, line, "{body}");
    }
}

#[test]
fn anything_can_be_thrown() {
    check("throw 'text'", "threw Error: text");
    check("throw null", "threw Error: null");
    check("throw undefined", "threw Error: undefined");
    check("throw 12n", "threw Error: 12n");
    check("throw Symbol('s')", "threw Error: [symbol]");
    check("throw { name: 'Mine', message: 'm' }", "threw Mine: m");
    check(
        "class E extends Error { get name() { return 'E' } } throw new E('m')",
        "threw E: m",
    );
    check(
        "const e = new Error('m'); e.name = 5; throw e",
        "threw Error: m",
    );
    check(
        "Error.prototype.name = 'P'; throw new Error('m')",
        "threw TypeError: 'name' is read-only",
    );
    check(
        "throw Object.freeze(new TypeError('f'))",
        "threw TypeError: f",
    );
    let long = thrown("throw new Error('\\u{1F600}'.repeat(100000))");
    assert!(long.message.len() <= 32 << 10 && long.message.starts_with('\u{1F600}'));
}

#[test]
fn results_are_copied_as_data() {
    check(
        "return [9007199254740991, 1e21, 0.1, -0, 1.5e-7]",
        "value [9007199254740991,1e+21,0.1,0,1.5e-7]",
    );
    check(
        "return [NaN, Infinity, -Infinity]",
        "value [null,null,null]",
    );
    // Beyond 2^53 a reader in JavaScript would round a number.
    check(
        "return [1n, -9007199254740991n, 9007199254740991n, Object(5n)]",
        "value [1,-9007199254740991,9007199254740991,5]",
    );
    check(
        "return [9007199254740992n, -9007199254740992n, 18446744073709551616n, new BigInt64Array([-(2n ** 60n)])]",
        r#"value ["9007199254740992","-9007199254740992","18446744073709551616",["-1152921504606846976"]]"#,
    );
    check("return new Date(0)", r#"value "1970-01-01T00:00:00.000Z""#);
    check("return [new Date(NaN)]", "value [null]");
    check(
        "return new Map([['a', 1], ['b', new Map()]])",
        r#"value {"a":1,"b":{}}"#,
    );
    check(
        "return new Map([[1, 2], ['b', 3]])",
        r#"value [[1,2],["b",3]]"#,
    );
    check("return new Set([1, 'x', [2]])", r#"value [1,"x",[2]]"#);
    check("return new Uint8Array([1, 2, 255])", "value [1,2,255]");
    check(
        "return [new Float32Array([0.5]), new BigInt64Array([-1n])]",
        "value [[0.5],[-1]]",
    );
    check("return new Uint8Array([1, 2]).buffer", "value [1,2]");
    check(
        "return new RangeError('r')",
        r#"value {"name":"RangeError","message":"r"}"#,
    );
    check(
        "return { a: undefined, f() {}, [Symbol('s')]: 1, b: [undefined, () => 1] }",
        r#"value {"b":[null,null]}"#,
    );
    check(
        "return [Object(1), Object('s'), Object(true), Object(2n)]",
        r#"value [1,"s",true,2]"#,
    );
    check(
        "return { toJSON() { return { x: 1 } } }",
        r#"value {"x":1}"#,
    );
    check(
        "return { toJSON() { return this }, y: 2 }",
        r#"value {"y":2}"#,
    );
    check("return Object.create({ inherited: 1 })", "value {}");
    check(
        "return { 2: 'b', 1: 'a', z: 1 }",
        r#"value {"1":"a","2":"b","z":1}"#,
    );
    check("return [1,,3]", "value [1,null,3]");
    check("return new Proxy([1, 2], {})", "value [1,2]");
    check(
        "return Object.defineProperty({}, 'h', { value: 1 })",
        "value {}",
    );
}

#[test]
fn text_is_well_formed() {
    check(r"return '\ud800x\udc00'", "value \"\u{FFFD}x\u{FFFD}\"");
    check(
        r"return '\ud83d\ude00 \u00e9 \u0000 \u001f \u2028'",
        "value \"\u{1F600} \u{e9} \\u0000 \\u001f \u{2028}\"",
    );
    check(
        r#"return { '\ud800"\\\n': 1 }"#,
        "value {\"\u{FFFD}\\\"\\\\\\n\":1}",
    );
    check(
        "return 'ab'.repeat(3000).length + ('x' + 'y'.repeat(600)).slice(0, 2)",
        r#"value "6000xy""#,
    );
}

#[track_caller]
fn check_notes(job: Job, expected: &str, notes: &str) {
    let body = job.body.clone();
    let report = run(job).report;
    assert_eq!(show(&report.ended), expected, "{body}");
    assert_eq!(report.notes, notes, "{body}");
}

/// The commonest slip: a call without `await`.
#[test]
fn a_promise_is_no_result() {
    check(
        "return { total: Promise.resolve(1) }",
        "threw TypeError: `total` is a promise; write `await`",
    );
    check(
        "return [{ 'a b': [1, (async () => 1)()] }]",
        "threw TypeError: `[0].a?b[1]` is a promise; write `await`",
    );
    check(
        "await probe.queued('echo', { args: { text: probe.queued('echo') } })",
        "threw TypeError: `args.text` is a promise; write `await`",
    );
    check(
        "return { then: 1, a: { then() {} } }",
        r#"value {"then":1,"a":{}}"#,
    );
    let ran = run(job("console.log(Promise.resolve(1), [Promise.resolve()])"));
    assert_eq!(ran.console[0].text, "[promise] [[promise]]");
}

/// A script of code mode, which the guard has not seen.
fn script(body: &str) -> Job {
    Job {
        globals: r#"{"__ag_now":1000,"__ag_context":{"k":[1]},"__ag_turns":100}"#.to_owned(),
        powers: vec!["guard".to_owned(), "script".to_owned()],
        ..job(body)
    }
}

#[test]
fn a_script_is_told_what_its_result_lacks() {
    check_notes(
        script("return { total: __safe_callTool('x'), list: [1, (async () => 1)()] }"),
        r#"value {"total":"[promise]","list":[1,"[promise]"]}"#,
        "`total` is a promise; write `await`\n`list[1]` is a promise; write `await`",
    );
    let mut deep = script("let d = 1; for (let i = 0; i < 6; i++) d = { d }; return [d]");
    deep.limits.result_depth_max = 4;
    check_notes(
        deep,
        r#"value [{"d":{"d":{"d":"[too deep]"}}}]"#,
        "`[0].d.d.d` is nested too deep and was left out",
    );
    let mut long = script("return { rows: Array.from({ length: 9000 }, (_, i) => i), more: 1 }");
    long.limits.result_bytes_max = 100;
    check_notes(
        long,
        r#"value {"rows":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}"#,
        "`rows[18]` was cut: longer than a result may be",
    );
    let mut text = script("return ['a', 'x'.repeat(90000), 'b']");
    text.limits.result_bytes_max = 20_000;
    let report = run(text).report;
    let Ended::Value(json) = report.ended else {
        panic!("{:?}", report.ended);
    };
    assert!(
        json.len() <= 20_000 && json.ends_with("x…\"]"),
        "{}",
        json.len()
    );
    assert_eq!(report.notes, "`[1]` was cut: longer than a result may be");
}

#[test]
fn lone_surrogates_are_reported() {
    check_notes(
        job(r"return { a: ['fine', '\ud800x', '\udc00'] }"),
        "value {\"a\":[\"fine\",\"\u{FFFD}x\",\"\u{FFFD}\"]}",
        "`a[1]` has half a character (a lone surrogate); it came out as U+FFFD",
    );
    check_notes(job(r"return '\ud83d\ude00'"), "value \"\u{1F600}\"", "");
}

/// `parallel` works on the items there were when it began.
#[test]
fn parallel_keeps_to_its_items() {
    for (change, how) in [
        ("items.length = 1", "shrinks"),
        ("items.push(7, 8)", "grows"),
        ("items[2] = 9", "changes"),
    ] {
        let ran = run(script(&format!(
            "const items = [1, 2, 3];
             return await __safe_parallel(items, async (item, index) => {{ await null; {change}; return [item, index] }}, {{ maxConcurrency: 1 }})"
        )));
        assert_eq!(
            show(&ran.report.ended),
            "value [[1,0],[2,1],[3,2]]",
            "{how}"
        );
    }
    let ran = run(script(
        "const items = [() => 1]; items[2] = () => 3;
         try { await __safe_parallel(items) } catch (error) { return error.message }",
    ));
    assert_eq!(show(&ran.report.ended), r#"value "not a function""#);
}

/// What makes code of text is closed to scripts, however it is reached.
#[test]
fn a_script_makes_no_code() {
    for body in [
        "return (() => 1).constructor('return 1')()",
        "return (async () => 1).constructor('return 1')",
        "return Object.getPrototypeOf(async function* () {}).constructor('yield 1')",
    ] {
        let ran = run(script(body));
        assert_eq!(
            show(&ran.report.ended),
            "threw TypeError: eval is not supported",
            "{body}"
        );
    }
    for name in [
        "eval",
        "Function",
        "globalThis",
        "crypto",
        "safety",
        "URL",
        "Promise",
        "Proxy",
        "performance",
        "console",
    ] {
        let ran = run(script(&format!("return typeof {name}")));
        assert_eq!(show(&ran.report.ended), r#"value "undefined""#, "{name}");
    }
}

/// The clock of a script is the one it is given, by every way to it.
#[test]
fn a_script_has_one_clock() {
    let body = "return [Date.now(), new Date().getTime(), new Date().constructor.now(), Date().slice(0, 24),
        new (class extends Date {})().getTime(), new Date(5).getTime(), Date.UTC(1970), Date.name]";
    let ran = run(script(body));
    assert_eq!(
        show(&ran.report.ended),
        r#"value [1000,1000,1000,"Thu Jan 01 1970 00:00:01",1000,5,0,"Date"]"#
    );
}

#[test]
fn circles_are_refused_clearly() {
    check(
        "const a = {}; a.a = a; return a",
        "threw TypeError: circular value cannot be copied",
    );
    check(
        "const m = new Map(); m.set('m', [m]); return m",
        "threw TypeError: circular value cannot be copied",
    );
    check(
        "const x = { v: 1 }; return [x, x]",
        r#"value [{"v":1},{"v":1}]"#,
    );
}

#[test]
fn console_prints_by_level() {
    let ran = run(job(
        "console.log('a', 1, null, undefined, true); console.info({ a: [1, 'x'] });
         console.warn(new TypeError('t')); console.error(2n, Symbol('q'), () => 1); console.debug();
         const c = {}; c.c = c; console.log(c, [undefined], new Map([['k', 1]]), -0, NaN);
         console.log({ get g() { throw 1 } }, new Date(0));",
    ));
    let lines: Vec<_> = ran
        .console
        .iter()
        .map(|line| (line.level, line.text.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (ConsoleLevel::Log, "a 1 null undefined true"),
            (ConsoleLevel::Info, r#"{"a":[1,"x"]}"#),
            (ConsoleLevel::Warn, "TypeError: t"),
            (ConsoleLevel::Error, "2n [symbol] [function]"),
            (ConsoleLevel::Debug, ""),
            (
                ConsoleLevel::Log,
                r#"{"c":[circular]} [undefined] {"k":1} 0 NaN"#
            ),
            (
                ConsoleLevel::Log,
                "{\"g\":[unreadable]} \"1970-01-01T00:00:00.000Z\""
            ),
        ]
    );
}

#[test]
fn host_calls_of_both_kinds_bring_answers() {
    check(
        "return await probe.queued('echo', { a: [1] })",
        r#"value {"a":[1]}"#,
    );
    check(
        "return probe.direct('echo', { a: [1] })",
        r#"value {"a":[1]}"#,
    );
    check(
        "const all = await Promise.all([1, 2, 3].map((n) => probe.queued('echo', n)));
         return all.concat(probe.direct('echo', 4))",
        "value [1,2,3,4]",
    );
    check(
        "return probe.direct('bytes')",
        r#"value {"value":7,"bytes":[1,2,255]}"#,
    );
    check(
        "return await probe.queued('echo', 1, new Uint8Array([5]))",
        r#"value {"value":1,"bytes":[5]}"#,
    );
    check(
        "return (await probe.queued('bytes')).bytes instanceof Uint8Array",
        "value true",
    );
    let ran = run(job(
        "probe.direct('echo'); probe.queued('never', new Date(0)); await probe.queued('echo')",
    ));
    let seen: Vec<_> = ran
        .requests
        .iter()
        .map(|r| {
            (
                r.id.0,
                r.kind,
                r.operation.as_str(),
                r.payload.json.as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, HostCallKind::Direct, "echo", "null"),
            (
                2,
                HostCallKind::Queued,
                "never",
                r#""1970-01-01T00:00:00.000Z""#
            ),
            (3, HostCallKind::Queued, "echo", "null"),
        ]
    );
    assert_eq!(ran.report.usage.host_calls, 3);
}

#[test]
fn errors_of_powers_can_be_caught_and_are_known_when_not() {
    for call in ["probe.direct('fail')", "await probe.queued('fail')"] {
        let caught = format!(
            "try {{ {call} }} catch (e) {{ return [e instanceof Error, e.name, e.message, e.kind, e.reason, e.helper] }}"
        );
        check(
            &caught,
            r#"value [true,"Error","not allowed","SECURITY","host.denied","fetch"]"#,
        );
        let uncaught = thrown(call);
        assert_eq!(
            (uncaught.name.as_str(), uncaught.message.as_str()),
            ("Error", "not allowed")
        );
        let helper = uncaught.helper.expect("it is known");
        assert!(helper.contains("host.denied"), "{helper}");
    }
    let forged = thrown(
        "throw Object.assign(new Error('m'), { kind: 'SECURITY', reason: 'r', helper: 'fetch' })",
    );
    assert_eq!(forged.helper, None);
}

#[test]
fn the_clock_is_the_hosts_and_coarse() {
    check(
        "return new Date().toISOString().slice(0, 13)",
        r#"value "2026-01-02T00""#,
    );
    check(
        "return Number.isInteger(Date.now()) && Number.isInteger(performance.now())",
        "value true",
    );
    check(
        "return performance.now() < 1000 && new Date().getTimezoneOffset() === 0",
        "value true",
    );
}

#[test]
fn random_follows_the_seed() {
    let draw = |seed| match run(Job {
        seed,
        ..job("return [Math.random(), Math.random()]")
    })
    .report
    .ended
    {
        Ended::Value(json) => json,
        other => panic!("{other:?}"),
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(0), draw(2));
}
