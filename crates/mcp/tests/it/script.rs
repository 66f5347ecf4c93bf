//! Scripts at the door: one call that makes many, in both eras, approvals included.

use std::time::Duration;

use engine::{AuditEntry, Filter};
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::client::call;
use crate::world::{World, document};

/// Longer than any person needs to read.
const READ: Duration = Duration::from_millis(1_200);

const SCRIPT: &str = "const said = await callTool('echo', { text: 'once' });\n\
    return [said, await callTool('guarded', { to: said })];";

fn entries(world: &World, tool: &str, status: Status) -> Vec<AuditEntry> {
    let mut all = world
        .engine()
        .store()
        .audit()
        .list(&Filter::default())
        .unwrap();
    all.retain(|entry| {
        let closing = entry.closing.as_ref();
        entry.opening.tool == tool
            && entry.opening.caller == "ann"
            && closing.is_some_and(|closing| closing.status == status)
    });
    all
}

async fn world() -> World {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    let more = json!({
        "humanInTheLoop": {"mode": "REQUIRED"},
        "params": [{"name": "to", "type": "STRING", "required": false}],
    });
    world
        .publish(&document("guarded", "return 'ran for ' + to", more))
        .await;
    world
}

fn message(script: &str) -> Value {
    call(1, "codecall_execute", json!({"script": script}))
}

#[tokio::test]
async fn results_of_scripts_are_text_and_structure() {
    let world = world().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let said = client
        .modern(&message("return await callTool('echo', { text: 'hi' });"))
        .await
        .last()
        .await;
    let expected = json!({"status": "ok", "result": "hi"});
    assert_eq!(said["result"]["structuredContent"], expected, "{said}");
    let said = client
        .modern(&message("const x = 1;\nreturn eval('x');"))
        .await
        .last()
        .await;
    let result = &said["result"];
    assert_eq!(result["isError"], true, "{said}");
    assert_eq!(result["structuredContent"]["status"], "illegal_access");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    assert_eq!(
        result["_meta"]["ringfence/error"]["code"],
        "script.illegal_access"
    );
    server.end().await;
}

#[tokio::test]
async fn a_modern_client_goes_on_with_the_answer_and_repeats_nothing() {
    let world = world().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let capable = json!({"elicitation": {"form": {}}});
    let said = client
        .modern_with(&message(SCRIPT), capable.clone())
        .await
        .last()
        .await;
    let result = &said["result"];
    assert_eq!(result["resultType"], "input_required", "{said}");
    let words = result["inputRequests"]["approval"]["params"]["message"]
        .as_str()
        .unwrap();
    // The person is asked about the tool, not about the script.
    assert!(
        words.contains("guarded") && words.contains(r#""to":"once""#),
        "{words}"
    );
    assert_eq!(entries(&world, "echo", Status::Done).len(), 1);
    // Sleeps: an answer counts only if a person could have read the question.
    tokio::time::sleep(READ).await;
    let mut again = message(SCRIPT);
    again["id"] = json!(2);
    again["params"]["requestState"] = result["requestState"].clone();
    let yes = json!({"action": "accept", "content": {"answer": "once"}});
    again["params"]["inputResponses"] = json!({"approval": yes});
    let said = client.modern_with(&again, capable).await.last().await;
    let expected = json!({"status": "ok", "result": ["once", "ran for once"]});
    assert_eq!(said["result"]["structuredContent"], expected, "{said}");
    assert_eq!(entries(&world, "echo", Status::Done).len(), 1);
    assert_eq!(entries(&world, "guarded", Status::Done).len(), 1);
    // The call that stopped did not fail, and is told apart from the one that ran.
    assert_eq!(
        entries(&world, "codecall_execute", Status::Refused).len(),
        1
    );
    assert_eq!(entries(&world, "codecall_execute", Status::Done).len(), 1);
    server.end().await;
}
