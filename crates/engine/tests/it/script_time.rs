//! Budgets of time hold from the first moment to the last, whatever is awaited in
//! between, and know whose time it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Question};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use serde_json::json;

use crate::script::{answer, changed, run, world_with};
use crate::world::{World, document, error};

const LOCKED: &str = "[codecall]\npreset = \"locked_down\"\n";

/// Work that takes long and hardly any turns.
const HEAVY: &str = "const big = Array.from({ length: 100000 }, (_, i) => i); \
    for (let i = 0; i < 1900; i++) JSON.stringify(big);";

#[tokio::test]
async fn a_script_has_its_time_before_and_after_a_tool() {
    let world = world_with(LOCKED).await;
    for script in [
        format!("{HEAVY} return 1;"),
        format!("await callTool('add', {{ a: 1, b: 1 }}); {HEAVY} return 1;"),
        format!("try {{ await callTool('add', {{ a: 1 }}); }} catch {{ {HEAVY} }} return 1;"),
    ] {
        let began = Instant::now();
        let outcome = run(&world, &script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], "timeout", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(message, "the script used up its 2000 ms");
        // Processor time, on a machine that others use too.
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
}

/// A tool that takes as long as it is told.
async fn slow(world: &World) {
    let code = "const began = Date.now(); while (Date.now() - began < ms) { } return 'done'";
    let params =
        json!({"params": [{"name": "ms", "type": "INTEGER", "required": true, "testValue": "1"}]});
    world.published(&document("slow", code, params)).await;
}

#[tokio::test]
async fn tool_time_is_not_charged_to_the_script() {
    let world = world_with(LOCKED).await;
    slow(&world).await;
    let outcome = run(&world, "return await callTool('slow', { ms: 2500 });").await;
    assert_eq!(answer(&outcome)["result"], "done");
}

/// Says yes, after a while.
#[derive(Debug)]
struct Slow;

impl Approver for Slow {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async {
            // Sleeps: a person needs longer than the script has.
            tokio::time::sleep(Duration::from_millis(2_300)).await;
            ApprovalAnswer::Approved(ApprovalScope::Once)
        })
    }
}

#[tokio::test]
async fn waiting_for_a_person_is_billed_to_no_budget() {
    let world = world_with(LOCKED).await;
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world
        .published(&document("asks", "return 'ran'", asks))
        .await;
    let arguments = json!({"script": "return await callTool('asks', {});"});
    let caller = Caller::named("ann");
    let mut request = CallRequest::new(caller, Origin::Mcp, "codecall_execute", arguments);
    request.approver = Some(Arc::new(Slow));
    let outcome = world.made(request).await;
    assert_eq!(answer(&outcome)["result"], "ran");
}

/// A world in which the tools of a script have so long together.
async fn world_of_tools(tools_ms_max: u32) -> World {
    let toml = "[codecall]\npreset = \"experimental\"\n";
    let world = changed(toml, |settings| settings.tools_ms_max = Some(tools_ms_max)).await;
    slow(&world).await;
    world
}

#[tokio::test]
async fn tools_have_a_time_of_their_own_and_no_more() {
    let world = world_of_tools(1_500).await;
    let script = "let done = 0; for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) { \
        try { await callTool('slow', { ms: 400 }); } catch { done -= 1; } \
        done += 1; mcpLog('info', 'done', done); console.warn('at', n); } return done;";
    let outcome = run(&world, script).await;
    let answer = answer(&outcome);
    assert_eq!(answer["status"], "timeout", "{answer}");
    let words = "the tools the script called used up their 1500 ms";
    assert_eq!(answer["error"]["message"], words);
    assert_eq!(error(&outcome), ("script.timeout", words));
    // What it had said until then is there, and nothing it did not come to.
    let logs = answer["logs"].as_array().unwrap();
    assert_eq!(logs[..2], [json!("[info] done 1"), json!("[warn] at 1")]);
    assert!(logs.len() <= 6, "{logs:?}");
    // The tool that ran then is over too, and the record says how.
    let entry = world.entry(&outcome).closing.unwrap();
    assert_eq!(entry.error.unwrap().code, "script.timeout");
    world.assert_whole();
}

#[tokio::test]
async fn concurrent_tools_are_billed_once() {
    let world = world_of_tools(4_000).await;
    let script = "return (await parallel([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], \
        async () => await callTool('slow', { ms: 700 }))).length;";
    let outcome = run(&world, script).await;
    assert_eq!(answer(&outcome)["result"], 10, "{outcome:?}");
}

#[tokio::test]
async fn script_time_is_not_charged_to_its_tools() {
    let world = world_of_tools(500).await;
    // On whatever machine: more and more, until it took longer than its tools may.
    for turns in [80, 160, 320, 640] {
        let script = format!(
            "const big = Array.from({{ length: 100000 }}, (_, i) => i); \
             for (let i = 0; i < {turns}; i++) JSON.stringify(big); \
             return await callTool('slow', {{ ms: 1 }});"
        );
        let began = Instant::now();
        let outcome = run(&world, &script).await;
        assert_eq!(answer(&outcome)["result"], "done", "{outcome:?}");
        if began.elapsed() > Duration::from_millis(600) {
            return;
        }
    }
    panic!("the script was never longer than its tools may be");
}

#[tokio::test]
async fn console_lines_survive_a_stopped_script() {
    let world = world_with(LOCKED).await;
    // It ends by its own time, before and after a tool, and by too many calls.
    let heavy = format!("mcpLog('info', 'before'); {HEAVY} mcpLog('info', 'after'); return 1;");
    let later = format!(
        "mcpLog('info', 'one'); await callTool('add', {{ a: 1, b: 1 }}); mcpLog('info', 'two'); {HEAVY} return 1;"
    );
    let many = "for (let i = 0; i < 11; i++) { \
        await callTool('add', { a: i, b: 1 }); if (i === 9) mcpLog('info', 'last'); } return 1;";
    for (script, status, logs) in [
        (heavy.as_str(), "timeout", json!(["[info] before"])),
        (
            later.as_str(),
            "timeout",
            json!(["[info] one", "[info] two"]),
        ),
        (many, "runtime_error", json!(["[info] last"])),
    ] {
        let outcome = run(&world, script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], status, "{answer}");
        assert_eq!(answer["logs"], logs, "{answer}");
    }
}
