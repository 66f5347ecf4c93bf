//! Scripts from outside: the language at work, every way one can end, every code a
//! script can meet, and every cap.

use model::audit::Status;
use model::outcome::Outcome;
use serde_json::{Value, json};

use crate::world::{Home, World, document, error};

/// Tools for scripts: they count, fail, echo.
pub(crate) async fn world_with(settings: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", settings);
    let world = World::with(home, |settings| settings.single = false);
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
            "if (hard) throw new Error('broken in /home/ann/tool.js on purpose'); return 1",
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
