//! Scripts from outside: the language at work, every way one can end, every code a
//! script can meet, and every cap.

use engine::EngineSettings;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::world::{Home, World, document};

/// Tools for scripts: they count, fail, echo.
pub(crate) async fn world_with(settings: &str) -> World {
    changed(settings, |_| ()).await
}

/// The same in an engine that is changed first.
pub(crate) async fn changed(toml: &str, change: impl FnOnce(&mut EngineSettings)) -> World {
    let home = Home::new();
    home.file("ringfence.toml", toml);
    let world = World::with(home, |settings| {
        settings.single = false;
        change(settings);
    });
    let number =
        |name: &str| json!({"name": name, "type": "NUMBER", "required": true, "testValue": "1"});
    let tools = [
        document(
            "add",
            "return a + b",
            json!({"params": [number("a"), number("b")]}),
        ),
        document(
            "math.add",
            "return a + b",
            json!({"params": [number("a"), number("b")]}),
        ),
        document(
            "fails",
            "if (hard) throw new Error('broken in /etc/ann/tool.js on purpose'); return 1",
            json!({"params": [{"name": "hard", "type": "BOOLEAN", "required": false}]}),
        ),
        document("nothing", "", json!({})),
        document(
            "endless",
            "if (go) for (;;) {} return 1",
            json!({"params": [{"name": "go", "type": "BOOLEAN", "required": false}]}),
        ),
    ];
    for tool in &tools {
        world.published(tool).await;
    }
    world
}

pub(crate) async fn world() -> World {
    world_with("").await
}

/// Runs a script for someone who is not the owner.
pub(crate) async fn run(world: &World, script: &str) -> Outcome {
    world
        .call("codecall_execute", json!({"script": script}))
        .await
}

/// What came of it, as its sender reads it.
pub(crate) fn answer(outcome: &Outcome) -> &Value {
    outcome
        .value
        .as_ref()
        .unwrap_or_else(|| panic!("no answer: {outcome:?}"))
}

#[track_caller]
fn result(outcome: &Outcome) -> &Value {
    let answer = answer(outcome);
    assert_eq!(answer["status"], "ok", "{answer}");
    assert_eq!(outcome.status, Status::Done);
    &answer["result"]
}

#[tokio::test]
async fn the_language_at_work() {
    let world = world().await;
    let cases = [
        ("return await callTool('add', { a: 1, b: 2 });", json!(3)),
        (
            "const x = await callTool('add', { a: 1, b: 2 }); x + 1",
            json!(4),
        ),
        ("return await math.add({ a: 2, b: 2 });", json!(4)),
        ("return await callTool('nothing', {});", json!(null)),
        ("const empty = undefined; return empty;", json!(null)),
        (
            "return await parallel([3, 1, 2], async (n) => await callTool('add', { a: n, b: n }), { maxConcurrency: 2 });",
            json!([6, 2, 4]),
        ),
        (
            "return await parallel([() => callTool('add', { a: 1, b: 1 }), () => callTool('add', { a: 2, b: 2 })]);",
            json!([2, 4]),
        ),
        (
            "return await callTool('fails', { hard: true }, { throwOnError: false });",
            json!({"success": false, "error": {"code": "EXECUTION", "message": "Error: broken in [path] on purpose", "toolName": "fails"}}),
        ),
        (
            "return await callTool('add', { a: 1, b: 1 }, { throwOnError: false });",
            json!({"success": true, "data": 2}),
        ),
        (
            "try { await callTool('fails', { hard: true }); } catch (e) { return [e.code, e.toolName, Object.isFrozen(e), Object.keys(e)]; }",
            json!(["EXECUTION", "fails", true, ["message", "code", "toolName"]]),
        ),
        (
            "const t = getTool('add'); return [t.name, t.inputSchema.required, typeof getTool('absent'), typeof getTool('codecall_execute')];",
            json!(["add", ["a", "b"], "undefined", "undefined"]),
        ),
        (
            "const a = { n: 1 }; a.self = a; return a;",
            json!({"n": 1, "self": "[Circular]"}),
        ),
        (
            "const a = { n: 1 }; return [a, a, new Date(0)];",
            json!([{"n": 1}, {"n": 1}, "1970-01-01T00:00:00.000Z"]),
        ),
        (
            "return [1e9.toLocaleString('en-US'), ['b', 'a'].sort((x, y) => x.localeCompare(y))];",
            json!(["1,000,000,000", ["a", "b"]]),
        ),
        (
            "const d = new Date(); return [d instanceof Date, Date.now() === d.getTime(), d.getTime() > 1e12];",
            json!([true, true, true]),
        ),
    ];
    for (script, expected) in cases {
        let outcome = run(&world, script).await;
        assert_eq!(*result(&outcome), expected, "{script}");
    }
}

/// A script, its status, the audit's word and code, and what its error says.
fn ends() -> Vec<(
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Value,
)> {
    vec![
        (
            "return 1 +;",
            "syntax_error",
            "refused",
            "script.syntax_error",
            json!({"location": {"line": 1, "column": 11}}),
        ),
        (
            "const a = 1;\n  return eval('a');",
            "illegal_access",
            "refused",
            "script.illegal_access",
            json!({"kind": "IllegalBuiltinAccess", "code": "NO_EVAL", "location": {"line": 2, "column": 10}}),
        ),
        (
            "const a = 1;\nreturn unheard + a;",
            "illegal_access",
            "refused",
            "script.illegal_access",
            json!({"kind": "DisallowedGlobal", "code": "UNKNOWN_GLOBAL", "location": {"line": 2, "column": 8}}),
        ),
        (
            "while (1 < 2) { const a = 1; }",
            "illegal_access",
            "refused",
            "script.illegal_access",
            json!({"kind": "RuleViolation", "code": "FORBIDDEN_LOOP"}),
        ),
        (
            "const o = null;\nfor (const k of ['a']) { if (k) {\n   o[k].x; } }",
            "runtime_error",
            "failed",
            "script.runtime_error",
            json!({"source": "script", "name": "TypeError"}),
        ),
        (
            "throw new RangeError('in /etc/ann/x.js: no');",
            "runtime_error",
            "failed",
            "script.runtime_error",
            json!({"name": "RangeError", "message": "in [path]: no"}),
        ),
        (
            "const x = 1;\n  await callTool('fails', { hard: true });",
            "tool_error",
            "failed",
            "script.tool_error",
            json!({"source": "tool", "toolName": "fails", "toolInput": {"hard": true}, "code": "EXECUTION",
                "message": "Error: broken in [path] on purpose", "location": {"line": 2, "column": 9}}),
        ),
        (
            "for (let i = 0; i < 99999; i++) { try { for (let j = 0; j < 99999; j++); } catch { } }",
            "runtime_error",
            "failed",
            "script.runtime_error",
            json!({"code": "ITERATION_LIMIT"}),
        ),
        (
            "const x = 1;\n  await callTool('fails', {\n    hard: [true].includes(true) });",
            "tool_error",
            "failed",
            "script.tool_error",
            json!({"source": "tool", "location": {"line": 2, "column": 9}}),
        ),
    ]
}

#[tokio::test]
async fn every_end_has_its_status_and_its_place() {
    let world = world().await;
    for (script, status, word, code, expected) in ends() {
        let outcome = run(&world, script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], status, "{script}: {answer}");
        assert_eq!(outcome.status.word(), word, "{script}");
        let told = outcome.error.as_ref().unwrap();
        assert_eq!(told.reason.code(), code, "{script}");
        let closing = world.entry(&outcome).closing.unwrap();
        assert_eq!(closing.error.unwrap().code, code, "{script}");
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(answer["error"][key], *value, "{script}: {answer}");
        }
    }
    // The author's own line and column, behind all that is put in.
    let script = "const o = null;\nfor (const k of ['a']) { if (k) {\n   o[k].x; } }";
    let outcome = run(&world, script).await;
    assert_eq!(answer(&outcome)["error"]["location"]["line"], 3);
    world.assert_whole();
}

/// A tool, arguments, and the code and message a script gets.
const CODES: [(&str, &str, &str, &str); 14] = [
    ("absent", "{}", "NOT_FOUND", "there is no tool `absent`"),
    (
        "add",
        "{ a: 1 }",
        "VALIDATION",
        "the argument `b` is required; give a number",
    ),
    (
        "add",
        "{ a: 1, b: 'x' }",
        "VALIDATION",
        "the argument `b` must be a number, not a string",
    ),
    (
        "add",
        "[1]",
        "VALIDATION",
        "the arguments must be an object, not an array",
    ),
    (
        "fails",
        "{ hard: true }",
        "EXECUTION",
        "Error: broken in [path] on purpose",
    ),
    (
        "math.add",
        "{ a: 1, b: 1 }",
        "ACCESS_DENIED",
        "not today (rule `no`); it would take: a change of the deny rule `no` by the operator; do not try again",
    ),
    (
        "codecall_execute",
        "{ script: 'x' }",
        "SELF_REFERENCE",
        "a script cannot call `codecall_execute`: code mode cannot call itself; call the tool by its own name",
    ),
    (
        "codecall:search",
        "{}",
        "SELF_REFERENCE",
        "a script cannot call `codecall:search`: code mode cannot call itself; call the tool by its own name",
    ),
    (
        " CodeCall_Invoke ",
        "{}",
        "SELF_REFERENCE",
        "a script cannot call ` CodeCall_Invoke `: code mode cannot call itself; call the tool by its own name",
    ),
    (
        "codecall：execute",
        "{}",
        "SELF_REFERENCE",
        "a script cannot call `codecall：execute`: code mode cannot call itself; call the tool by its own name",
    ),
    (
        "list_tools",
        "{}",
        "SELF_REFERENCE",
        "a script cannot call `list_tools`: it is for clients; a script uses `getTool('name')`",
    ),
    (
        "add",
        "() => 1",
        "VALIDATION",
        "the arguments of `add` are not data but a function or symbol; give an object, such as `{ name: value }`",
    ),
    (
        "system:halt",
        "{}",
        "ACCESS_DENIED",
        "scripts cannot call `system:halt`",
    ),
    (
        "__proto",
        "{}",
        "ACCESS_DENIED",
        "scripts cannot call `__proto`",
    ),
];

#[tokio::test]
async fn every_code_a_script_can_meet() {
    let rules = "[[rule]]\nid = \"no\"\ncallers = [\"ann\"]\ntools = [\"math.add\"]\neffect = \"deny\"\nreason = \"not today\"\n\
        [expected]\ntools = [\"math.add\"]\ncallers = [\"ann\"]\n";
    let world = world_with(rules).await;
    for (tool, arguments, code, message) in CODES {
        let script = format!(
            "try {{ return await callTool('{tool}', {arguments}); }} catch (e) {{ return [e.code, e.message, e.toolName, Object.isFrozen(e)]; }}"
        );
        let outcome = run(&world, &script).await;
        assert_eq!(
            *result(&outcome),
            json!([code, message, tool, true]),
            "{script}"
        );
        // Not thrown, it is the same.
        let script = format!(
            "const r = await callTool('{tool}', {arguments}, {{ throwOnError: false }}); return r;"
        );
        let outcome = run(&world, &script).await;
        let expected = json!({"success": false, "error": {"code": code, "message": message, "toolName": tool}});
        assert_eq!(*result(&outcome), expected, "{script}");
    }
    // Only now is time short: what comes before must not run out of it on a busy machine.
    // Which clock notices first depends on the machine.
    let short = format!("{rules}[baseline]\ntimeout_ms = 300\n");
    world.home.file("ringfence.toml", &short);
    let script =
        "return (await callTool('endless', { go: true }, { throwOnError: false })).error.code;";
    assert_eq!(*result(&run(&world, script).await), json!("TIMEOUT"));
    // What no row of its own tells about is in the script's row.
    let outcome = run(
        &world,
        "return await callTool('codecall_execute', {}, { throwOnError: false });",
    )
    .await;
    let events = world.entry(&outcome).closing.unwrap().events;
    assert_eq!(events[0]["refusal"], "SELF_REFERENCE", "{events:?}");
}

#[tokio::test]
async fn every_cap_holds() {
    let world = world_with("[codecall]\npreset = \"locked_down\"\n").await;
    let ten = "for (let i = 0; i < 10; i++) await callTool('add', { a: i, b: 1 });";
    let outcome = run(&world, &format!("{ten} return 'ten';")).await;
    assert_eq!(*result(&outcome), json!("ten"));
    let cases = [
        // Catching does not help: the script is over.
        (format!("{ten} try {{ await callTool('add', {{ a: 1, b: 1 }}); }} catch {{ }} return 'more';"), "TOOL_CALL_LIMIT"),
        ("for (let i = 0; i < 51; i++) mcpLog('info', 'line');".to_owned(), "sandbox.console_lines"),
        ("mcpLog('info', 'x'.repeat(40000));".to_owned(), "sandbox.console_bytes"),
        ("for (let i = 0; i < 2001; i++);".to_owned(), "ITERATION_LIMIT"),
        ("const a = []; const f = () => a.push('y'.repeat(100000).repeat(9) + a.length); for (let i = 0; i < 100; i++) f();".to_owned(), "sandbox.memory"),
    ];
    for (script, code) in cases {
        let outcome = run(&world, &script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], "runtime_error", "{script}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{script}: {answer}");
    }
    let script = "try { return await parallel(Array.from({ length: 101 }, (_, i) => i), async (i) => i); } catch (e) { return e.message; }";
    let outcome = run(&world, script).await;
    assert_eq!(*result(&outcome), json!("parallel takes at most 100 items"));
    // A result is cut, and the answer says so.
    let deep = "let deep = 1; for (let i = 0; i < 8; i++) deep = { deep }; return { deep, text: 'x'.repeat(20000), list: Array.from({ length: 1500 }, (_, i) => i) };";
    let outcome = run(&world, deep).await;
    let cut = result(&outcome);
    assert_eq!(cut["list"].as_array().unwrap().len(), 1000);
    assert_eq!(
        answer(&outcome)["warnings"].as_array().unwrap().len(),
        3,
        "{}",
        answer(&outcome)["warnings"]
    );
    // No console under this preset.
    let outcome = run(&world, "console.log('x'); return 1;").await;
    assert_eq!(answer(&outcome)["status"], "illegal_access");
}

#[tokio::test]
async fn at_most_twenty_tools_run_at_one_time_and_order_is_kept() {
    let world = world().await;
    let script = "const calls = Array.from({ length: 60 }, (_, i) => callTool('add', { a: i, b: 0 })); \
        const out = []; for (const c of calls) out.push(await c); return out;";
    let outcome = run(&world, script).await;
    let expected: Vec<_> = (0..60).collect();
    assert_eq!(*result(&outcome), json!(expected));
    let script = "let running = 0; let most = 0; \
        await parallel(Array.from({ length: 30 }, (_, i) => i), async (i) => { \
          running++; most = Math.max(most, running); await callTool('add', { a: i, b: 1 }); running--; }, { maxConcurrency: 50 }); \
        return most;";
    let outcome = run(&world, script).await;
    assert_eq!(*result(&outcome), json!(20));
    // After a failure nothing more begins; the first item that failed says why.
    let script = "let begun = 0; try { await parallel(Array.from({ length: 50 }, (_, i) => i), async (i) => { \
        begun++; await callTool(\"add\", { a: i }); }, { maxConcurrency: 2 }); } catch (e) { return [begun, e.code]; }";
    let outcome = run(&world, script).await;
    assert_eq!(*result(&outcome), json!([2, "VALIDATION"]));
}

#[tokio::test]
async fn logs_and_context_reach_their_places() {
    let world = world().await;
    let script = "console.log('a', 1); console.warn('b'); mcpLog('info', 'c', { d: 1 }); mcpNotify('e', { f: 2 }); \
        let frozen = false; try { codecallContext.user.name = 'eve'; } catch { frozen = true; } \
        return [codecallContext.user.name, frozen];";
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let telling = std::sync::Arc::clone(&told);
    let mut request = engine::call::CallRequest::new(
        model::caller::Caller::named("ann"),
        model::caller::Origin::Mcp,
        "codecall_execute",
        json!({"script": script, "context": {"user": {"name": "ann"}}}),
    );
    let tell = move |words: &str| telling.lock().unwrap().push(words.to_owned());
    request.progress = Some(engine::call::Progress::new(tell));
    let outcome = world.made(request).await;
    assert_eq!(*result(&outcome), json!(["ann", true]));
    let logs = json!([
        "a 1",
        "[warn] b",
        "[info] c {\"d\":1}",
        "[notify] e {\"f\":2}"
    ]);
    assert_eq!(answer(&outcome)["logs"], logs);
    assert_eq!(*told.lock().unwrap(), ["e {\"f\":2}"]);
}

#[tokio::test]
async fn arguments_that_fit_the_params_may_still_not_fit() {
    let world = world().await;
    let long = "x".repeat(102_401);
    let cases = [
        (
            json!({"script": long}),
            "the argument `script` has more than 102400 characters",
        ),
        (
            json!({"script": "return 1", "allowedTools": [1]}),
            "the argument `allowedTools` must hold names of tools",
        ),
        (
            json!({"script": "return 1", "allowedTools": vec!["a"; 257]}),
            "the argument `allowedTools` has more than 256 names",
        ),
        (
            json!({}),
            "the argument `script` is required; give a string",
        ),
    ];
    for (arguments, message) in cases {
        let outcome = world.call("codecall_execute", arguments).await;
        assert_eq!(outcome.status, Status::Refused);
        assert_eq!(crate::world::error(&outcome).1, message);
    }
}

/// A result is cut or told of, never lost: too deep, too long, a promise nobody waited
/// for, half a character.
#[tokio::test]
async fn values_dropped_from_a_result_are_warned_about() {
    let world = world().await;
    for (script, result, warnings) in [
        (
            "return JSON.parse('['.repeat(80) + ']'.repeat(80)).length;",
            json!(1),
            json!(null),
        ),
        (
            "const total = (async () => 1)();\nreturn { total, list: [total] };",
            json!({"total": "[promise]", "list": ["[promise]"]}),
            json!([
                "`total` is a promise; write `await`",
                "`list[0]` is a promise; write `await`"
            ]),
        ),
        (
            "return ['fine', 'x\\ud800'];",
            json!(["fine", "x\u{fffd}"]),
            json!(["`[1]` has half a character (a lone surrogate); it came out as U+FFFD"]),
        ),
        (
            "return [BigInt('9007199254740993'), BigInt(5), { a: undefined, b: [undefined] }];",
            json!(["9007199254740993", 5, {"b": [null]}]),
            json!(null),
        ),
    ] {
        let outcome = run(&world, script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], "ok", "{script}: {answer}");
        assert_eq!(answer["result"], result, "{script}: {answer}");
        assert_eq!(answer["warnings"], warnings, "{script}: {answer}");
    }
    let deep = "return JSON.parse('['.repeat(120) + ']'.repeat(120));";
    let outcome = run(&world, deep).await;
    let told = answer(&outcome)["warnings"].to_string();
    assert!(told.contains("deeper than 10 levels, left out"), "{told}");
    let long = "const row = 'x'.repeat(9000); const rows = [];\nfor (let i = 0; i < 1000; i++) { rows.push(row + i); }\nreturn { rows };";
    let outcome = run(&world, long).await;
    let found = answer(&outcome);
    assert_eq!(found["status"], "ok", "{}", found["error"]);
    let told = found["warnings"].to_string();
    assert!(
        told.contains("was cut: longer than a result may be"),
        "{told}"
    );
}

/// Attack: the functions on the stack of an error, one of which was the raw call to the
/// host, by which a script called tools the guard never saw and computed without budget.
#[tokio::test]
async fn scripts_cannot_take_functions_from_an_error_stack() {
    let world = world().await;
    let script = "let s = [];
        Error.prepareStackTrace = (e, x) => { if (!s.length) s = x; return ''; };
        try { await callTool('fails', { text: { toJSON: () => { throw new Error('p'); } } }); } catch (e) {}
        const q = s.filter((x) => x.isNative())[0].getFunction();
        return (await q('script.call', { name: ['fa','ils'].join(''), args: {} })).value;";
    let outcome = run(&world, script).await;
    let found = answer(&outcome);
    assert_eq!(found["status"], "runtime_error", "{found}");
    assert_eq!(
        found["error"]["message"],
        "built-in objects cannot be changed"
    );
    // Formats are what the host computes for a script.
    let outcome = run(
        &world,
        "return [(1234.5).toLocaleString('de-DE'), 'b'.localeCompare('a')];",
    )
    .await;
    assert_eq!(answer(&outcome)["result"], json!(["1.234,5", 1]));
}

/// What counts turns and looks at keys throws at the author's own place.
#[tokio::test]
async fn errors_have_positions_in_the_author_source() {
    let world = world().await;
    for (script, location) in [
        (
            "let n = 0;\nfor (let i = 0; i < 6000; i++) {\n  n += i;\n}\nreturn n;",
            json!({"line": 2, "column": 33}),
        ),
        (
            "const keys = ['a', 'con' + 'structor'.slice(0)];\nconst o = { a: 1 };\nreturn keys.map((k) => o[k]);",
            json!({"line": 3, "column": 26}),
        ),
        (
            "const o = null;\nreturn o.name;",
            json!({"line": 2, "column": 10}),
        ),
        (
            "console.log('a');\nreturn null.x;",
            json!({"line": 2, "column": 13}),
        ),
        (
            "const o = { a: [1] };\nconst list = await callTool('none', {\n  a: o.a.map((x) => x) }).rows.length;",
            json!({"line": 3, "column": 32}),
        ),
        (
            "const n = 1;\nlet o;\nconst { a } = o;",
            json!({"line": 3, "column": 1}),
        ),
        ("throw new Error('here');", json!({"line": 1, "column": 11})),
    ] {
        let outcome = run(&world, script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], "runtime_error", "{script}: {answer}");
        assert_eq!(answer["error"]["location"], location, "{script}: {answer}");
    }
}
