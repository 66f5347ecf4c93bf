//! Budgets of time hold from the first moment to the last, whatever is awaited in
//! between, and know whose time it is.
//!
//! Time passes here when a test says so, or is processor time. So the load of the machine
//! changes no outcome.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Question};
use engine::call::CallRequest;
use engine::{EngineSettings, Observer, Stopwatch};
use model::caller::{Caller, Origin};
use serde_json::json;

use crate::script::{answer, changed, run};
use crate::world::{World, document, error};

const LOCKED: &str = "[codecall]\npreset = \"locked_down\"\n";

/// Work that takes long and hardly any turns.
const HEAVY: &str = "const big = Array.from({ length: 100000 }, (_, i) => i); \
    for (let i = 0; i < 1900; i++) JSON.stringify(big);";

/// Time that passes only when it is told to.
#[derive(Clone, Debug, Default)]
struct Time {
    ms: Arc<AtomicU64>,
    opened: Arc<AtomicU64>,
}

impl Time {
    fn pass(&self, ms: u64) {
        self.ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Calls opened so far; from now on counted from the beginning.
    fn forget_calls(&self) {
        self.opened.store(0, Ordering::SeqCst);
    }

    /// Counts the budgets of scripts by this time.
    fn count(&self, settings: &mut EngineSettings) {
        let ms = Arc::clone(&self.ms);
        let read = move || Duration::from_millis(ms.load(Ordering::SeqCst));
        settings.stopwatch = Some(Stopwatch::new(read));
    }

    /// As [`Time::count`]; `at` says how long each call takes, by its number: the script
    /// is 1, its first tool 2. It passes while the call is under way.
    fn count_calls(&self, settings: &mut EngineSettings, at: fn(u64) -> u64) {
        self.count(settings);
        let time = self.clone();
        settings.observer = Some(Observer::new(move |step| {
            if step == "opened" {
                time.pass(at(time.opened.fetch_add(1, Ordering::SeqCst) + 1));
            }
        }));
    }
}

/// A world in which a script has no time on the wall but what `at` says.
async fn world_in(toml: &str, tools_ms_max: Option<u32>, at: fn(u64) -> u64) -> World {
    let time = Time::default();
    let world = changed(toml, |settings| {
        time.count_calls(settings, at);
        settings.tools_ms_max = tools_ms_max;
    })
    .await;
    slow(&world).await;
    time.forget_calls();
    world
}

/// The processor time of the script is bounded by itself: here none passes on the wall.
#[tokio::test]
async fn a_script_has_its_time_before_and_after_a_tool() {
    let world = world_in(LOCKED, None, |_| 0).await;
    for script in [
        format!("{HEAVY} return 1;"),
        format!("await callTool('add', {{ a: 1, b: 1 }}); {HEAVY} return 1;"),
        format!("try {{ await callTool('add', {{ a: 1 }}); }} catch {{ {HEAVY} }} return 1;"),
    ] {
        let outcome = run(&world, &script).await;
        let answer = answer(&outcome);
        assert_eq!(answer["status"], "timeout", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(message, "the script used up its 2000 ms");
    }
}

/// A script that uses no processor has its time on the wall, and no more.
#[tokio::test]
async fn a_script_has_its_time_on_the_wall() {
    let reads = AtomicU64::new(0);
    // All of it passes right after the script began.
    let read = move || match reads.fetch_add(1, Ordering::SeqCst) {
        0 => Duration::ZERO,
        _ => Duration::from_millis(2_001),
    };
    let world = changed(LOCKED, |settings| {
        settings.stopwatch = Some(Stopwatch::new(read));
    })
    .await;
    slow(&world).await;
    let outcome = run(&world, "return await callTool('slow', { ms: 60000 });").await;
    let answer = answer(&outcome);
    assert_eq!(answer["status"], "timeout", "{answer}");
    let words = "the script used up its 2000 ms";
    assert_eq!(answer["error"]["message"], words);
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
    // Of the script's 2,000 ms nothing is left if the tool's count.
    let world = world_in(LOCKED, None, |call| if call == 2 { 29_000 } else { 0 }).await;
    let outcome = run(&world, "return await callTool('slow', { ms: 1 });").await;
    assert_eq!(answer(&outcome)["result"], "done", "{outcome:?}");
}

/// Says yes, after longer than script and tools have together.
#[derive(Debug)]
struct Late(Time);

impl Approver for Late {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async {
            self.0.pass(100_000);
            ApprovalAnswer::Approved(ApprovalScope::Once)
        })
    }
}

#[tokio::test]
async fn waiting_for_a_person_is_billed_to_no_budget() {
    let time = Time::default();
    let world = changed(LOCKED, |settings| time.count(settings)).await;
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world
        .published(&document("asks", "return 'ran'", asks))
        .await;
    let arguments = json!({"script": "return await callTool('asks', {});"});
    let caller = Caller::named("ann");
    let mut request = CallRequest::new(caller, Origin::Mcp, "codecall_execute", arguments);
    request.approver = Some(Arc::new(Late(time.clone())));
    let outcome = world.made(request).await;
    assert_eq!(answer(&outcome)["result"], "ran", "{outcome:?}");
    assert_eq!(time.ms.load(Ordering::SeqCst), 100_000);
}

const EXPERIMENTAL: &str = "[codecall]\npreset = \"experimental\"\n";

#[tokio::test]
async fn tools_have_a_time_of_their_own_and_no_more() {
    // Every tool takes 400 ms; the fourth goes beyond.
    let takes = |call| if call > 1 { 400 } else { 0 };
    let world = world_in(EXPERIMENTAL, Some(1_500), takes).await;
    let script = "let done = 0; for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) { \
        try { await callTool('slow', { ms: n < 4 ? 1 : 60000 }); } catch { done -= 1; } \
        done += 1; mcpLog('info', 'done', done); console.warn('at', n); } return done;";
    let outcome = run(&world, script).await;
    let answer = answer(&outcome);
    assert_eq!(answer["status"], "timeout", "{answer}");
    let words = "the tools the script called used up their 1500 ms";
    assert_eq!(answer["error"]["message"], words);
    assert_eq!(error(&outcome), ("script.timeout", words));
    // What it had said until then is there, and nothing it did not come to.
    let said = |n| {
        [
            json!(format!("[info] done {n}")),
            json!(format!("[warn] at {n}")),
        ]
    };
    let expected: Vec<_> = [1, 2, 3].into_iter().flat_map(said).collect();
    assert_eq!(answer["logs"], json!(expected));
    // The tool that ran then is over too, and the record says how.
    let entry = world.entry(&outcome).closing.unwrap();
    assert_eq!(entry.error.unwrap().code, "script.timeout");
    world.assert_whole();
}

#[tokio::test]
async fn concurrent_tools_are_billed_once() {
    // While all ten are under way, more than half of their time passes.
    let takes = |call| if call == 11 { 3_000 } else { 0 };
    let world = world_in(EXPERIMENTAL, Some(4_000), takes).await;
    let script = "return (await parallel([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], \
        async () => await callTool('slow', { ms: 100 }))).length;";
    let outcome = run(&world, script).await;
    assert_eq!(answer(&outcome)["result"], 10, "{outcome:?}");
}

#[tokio::test]
async fn script_time_is_not_charged_to_its_tools() {
    let reads = AtomicU64::new(0);
    // Right after the script began, more passes than its tools have.
    let read = move || match reads.fetch_add(1, Ordering::SeqCst) {
        0 => Duration::ZERO,
        _ => Duration::from_millis(600),
    };
    let world = changed(EXPERIMENTAL, |settings| {
        settings.stopwatch = Some(Stopwatch::new(read));
        settings.tools_ms_max = Some(500);
    })
    .await;
    slow(&world).await;
    let outcome = run(&world, "return await callTool('slow', { ms: 1 });").await;
    assert_eq!(answer(&outcome)["result"], "done", "{outcome:?}");
}

#[tokio::test]
async fn console_lines_survive_a_stopped_script() {
    let world = world_in(LOCKED, None, |_| 0).await;
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
