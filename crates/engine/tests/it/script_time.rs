//! Budgets of time hold from the first moment to the last, whatever is awaited in
//! between, and know whose time it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::approve::{Answer, Approver, Question, Scope};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use serde_json::json;

use crate::script::{answer, run, world_with};
use crate::world::document;

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

#[tokio::test]
async fn a_tool_s_time_is_not_the_script_s() {
    let world = world_with(LOCKED).await;
    let code = "const began = Date.now(); while (Date.now() - began < ms) { } return 'done'";
    let params =
        json!({"params": [{"name": "ms", "type": "INTEGER", "required": true, "testValue": "1"}]});
    world.published(&document("slow", code, params)).await;
    let outcome = run(&world, "return await callTool('slow', { ms: 2500 });").await;
    assert_eq!(answer(&outcome)["result"], "done");
}

/// Says yes, after a while.
#[derive(Debug)]
struct Slow;

impl Approver for Slow {
    fn ask<'a>(&'a self, _: &'a Question) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async {
            // Sleeps: a person needs longer than the script has.
            tokio::time::sleep(Duration::from_millis(2_300)).await;
            Answer::Approved(Scope::Once)
        })
    }
}

#[tokio::test]
async fn a_person_s_time_is_nobody_s() {
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
