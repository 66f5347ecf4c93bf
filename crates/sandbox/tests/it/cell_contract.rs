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
    check_position("\n\n  null.x", "TypeError", 3, 3);
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
        "throw { get name() { throw 1 }, get message() { throw 2 } }",
        "threw Error: ",
    );
    check(
        "throw new Proxy({}, { get() { throw new Error('no') } })",
        "threw Error: ",
    );
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
        "threw P: m",
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
    check(
        "return [1n, -9223372036854775808n, 18446744073709551615n]",
        "value [1,-9223372036854775808,18446744073709551615]",
    );
    check(
        "return [18446744073709551616n, -9223372036854775809n]",
        r#"value ["18446744073709551616","-9223372036854775809"]"#,
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
