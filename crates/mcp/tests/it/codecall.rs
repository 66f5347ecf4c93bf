//! Code mode as clients see it: its tools on the list, with schemas that their
//! answers fit, in both eras and over both transports.

use std::time::Duration;

use serde_json::{Value, json};

use crate::both_eras::Peer;
use crate::client::{call, request};
use crate::world::{World, document, echo};

const OWN: [&str; 4] = [
    "codecall_describe",
    "codecall_execute",
    "codecall_invoke",
    "codecall_search",
];

fn listed(answer: &Value) -> Vec<&Value> {
    answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .collect()
}

/// Holds what a tool answered against the schema it is listed with.
#[track_caller]
fn fits(tools: &[&Value], name: &str, answer: &Value) {
    let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
    let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
    let structured = &answer["result"]["structuredContent"];
    let fault = schema.iter_errors(structured).next();
    assert!(fault.is_none(), "{name}: {fault:?} in {structured}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    if answer["result"]["isError"] != true {
        let same: Value = serde_json::from_str(text).unwrap();
        assert_eq!(&same, structured);
    }
}

#[tokio::test]
async fn every_client_finds_describes_and_calls() {
    let world = World::with("[codecall]\nmode = \"codecall_only\"\n").await;
    let server = world.serve().await;
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        let list = peer.ask(&request(1, "tools/list", json!({}))).await;
        let tools = listed(&list);
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, OWN);
        for tool in &tools {
            jsonschema::validator_for(&tool["inputSchema"]).unwrap();
            assert_eq!(
                tool.get("outputSchema").is_some(),
                tool["name"] != "codecall_invoke"
            );
        }
        for name in ["codecall_search", "codecall:search"] {
            let asked = json!({"queries": ["for a test", "unheard of"]});
            let found = peer.ask(&call(2, name, asked)).await;
            fits(&tools, "codecall_search", &found);
            let structured = &found["result"]["structuredContent"];
            assert_eq!(structured["tools"][0]["name"], "echo");
            assert_eq!(structured["warnings"][0]["type"], "no_results");
            assert_eq!(structured["totalAvailableTools"], 1);
        }
        let wrong = peer
            .ask(&call(3, "codecall_search", json!({"queries": []})))
            .await;
        assert_eq!(wrong["result"]["isError"], true);
        fits(&tools, "codecall_search", &wrong);

        let asked = json!({"toolNames": ["echo", "codecall_search", "nothing"]});
        let described = peer.ask(&call(4, "codecall:describe", asked)).await;
        fits(&tools, "codecall_describe", &described);
        let structured = &described["result"]["structuredContent"];
        assert_eq!(
            structured["notFound"],
            json!(["codecall_search", "nothing"])
        );
        let code = structured["tools"][0]["usageExamples"][0]["code"]
            .as_str()
            .unwrap();
        assert_eq!(code, r#"return await callTool("echo", {"text":"t"});"#);

        let asked = json!({"tool": "echo", "input": {"text": "hello"}});
        let invoked = peer.ask(&call(5, "codecall_invoke", asked)).await;
        assert_eq!(invoked["result"]["content"][0]["text"], "hello");
        let absent = peer
            .ask(&call(6, "codecall_invoke", json!({"tool": "nothing"})))
            .await;
        assert_eq!(absent["result"]["isError"], true);
        let said = absent["result"]["content"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("there is no tool `nothing`"), "{said}");
        // What is not listed is not called by its name either.
        let direct = peer.ask(&call(7, "echo", json!({"text": "x"}))).await;
        assert_eq!(direct["error"]["code"], -32602, "{direct}");
    }
    // By its own name in the audit, however it was written.
    world.ended("codecall_search").await;
    world.ended("codecall_describe").await;
    server.end().await;
}

#[tokio::test]
async fn tools_called_by_invoke_may_ask_a_person() {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    let more = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world
        .publish(&document("guarded", "return 'ran'", more))
        .await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let capable = json!({"elicitation": {"form": {}}});
    let mut message = call(1, "codecall_invoke", json!({"tool": "guarded"}));
    let asked = client
        .modern_with(&message, capable.clone())
        .await
        .last()
        .await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let question = asked["result"]["inputRequests"].to_string();
    assert!(question.contains("guarded"), "{question}");
    // Sleeps: a yes that comes faster than anybody reads does not count.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    message["id"] = json!(2);
    message["params"]["requestState"] = asked["result"]["requestState"].clone();
    let yes = json!({"action": "accept", "content": {"answer": "once"}});
    message["params"]["inputResponses"] = json!({"approval": yes});
    let ran = client.modern_with(&message, capable).await.last().await;
    assert_eq!(ran["result"]["content"][0]["text"], "ran", "{ran}");
    server.end().await;
}

#[tokio::test]
async fn search_finds_only_the_callers_tools() {
    let world =
        World::with("[callers.ann]\ndeny = [\"echo\"]\n[expected]\ntools = [\"echo\"]\n").await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let name = echo()["name"].as_str().unwrap().to_owned();
    let asked = call(1, "codecall_search", json!({"queries": [name]}));
    let found = client.modern(&asked).await.last().await;
    let structured = &found["result"]["structuredContent"];
    assert_eq!(structured["tools"], json!([]));
    assert_eq!(structured["totalAvailableTools"], 0);
    server.end().await;
}
