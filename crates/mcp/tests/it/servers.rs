//! Tools, prompts and resources of MCP servers through the door: clients of both eras,
//! servers of both eras.

use std::path::PathBuf;
use std::time::Duration;

use engine::Filter;
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::client::{Http, LEGACY, call, request};
use crate::world::{CALLER, NAMED, Server, World};

const FORMS: &str = r#"{"elicitation": {"form": {}}}"#;

fn forms() -> Value {
    serde_json::from_str(FORMS).unwrap()
}

/// The server of these tests, built beside their worker.
pub(crate) fn program() -> String {
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_mcp-test-worker"));
    let folder = worker.parent().unwrap();
    folder.join("bridge-test-server").display().to_string()
}

fn section(is_modern: bool, more: &str) -> String {
    let mut words = vec![program(), "good".to_owned()];
    if is_modern {
        words.push("--modern".to_owned());
    }
    let era = if is_modern { "modern" } else { "legacy" };
    format!(
        "\n[[server]]\nname = \"test\"\nera = \"{era}\"\ncommand = {}\n{more}\n",
        json!(words)
    )
}

/// A world whose server is accepted.
async fn world(is_modern: bool, more: &str, rest: &str) -> World {
    let world = World::with(&format!("{rest}{NAMED}{}", section(is_modern, more))).await;
    accept(&world).await;
    world
}

pub(crate) async fn accept(world: &World) {
    let servers = world.engine().servers();
    servers.look("test").await.unwrap();
    let digest = servers.review("test").unwrap().digest;
    servers.accept("test", &digest, None).unwrap();
}

fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

fn asked(answer: &Value) -> (&Value, &Value) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let requests = result["inputRequests"].as_object().unwrap();
    let request = requests.values().next().unwrap();
    (&request["params"], &result["requestState"])
}

/// What the question is called, as the client sees it.
fn key(answer: &Value) -> &str {
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    requests.keys().next().unwrap()
}

fn answered(id: u64, arguments: Value, state: &Value, answer: Value) -> Value {
    let mut again = call(id, "test__ask", arguments);
    again["params"]["requestState"] = state.clone();
    // A server of the newer era names its question; one of the older era cannot.
    again["params"]["inputResponses"] = json!({"question": answer, "colour": answer});
    again
}

fn blue() -> Value {
    json!({"action": "accept", "content": {"colour": "blue"}})
}

/// Waits until no call is under way.
async fn quiet(world: &World) {
    while world.door.calls_under_way() > 0 {
        tokio::task::yield_now().await;
    }
}

fn attempts(world: &World) -> Vec<Status> {
    let filter = Filter {
        tool: Some("test__ask".to_owned()),
        ..Filter::default()
    };
    let entries = world.engine().store().audit().list(&filter).unwrap();
    let closings = entries
        .into_iter()
        .map(|entry| entry.closing.unwrap().status);
    closings.collect()
}

#[tokio::test]
async fn a_server_asks_clients_of_both_eras_by_its_name() {
    for is_modern in [false, true] {
        let world = world(is_modern, "", "").await;
        let server = world.serve().await;
        // A modern client: the call ends with the question, and goes on with the answer.
        let mut new = server.client().await;
        let first = new
            .modern_with(&call(1, "test__ask", json!({})), forms())
            .await;
        let first = first.last().await;
        let (form, state) = asked(&first);
        assert_eq!(key(&first), if is_modern { "colour" } else { "question" });
        assert_eq!(form["message"], "The server `test` asks: Which colour?");
        assert!(
            form["requestedSchema"]["properties"]["colour"].is_object(),
            "{form}"
        );
        let again = answered(2, json!({}), state, blue());
        let last = new.modern_with(&again, forms()).await.last().await;
        assert!(said(&last).contains("blue"), "{last}");
        // One that says no.
        let first = new
            .modern_with(&call(3, "test__ask", json!({})), forms())
            .await;
        let first = first.last().await;
        let no = answered(4, json!({}), asked(&first).1, json!({"action": "decline"}));
        let last = new.modern_with(&no, forms()).await.last().await;
        assert!(said(&last).contains("decline"), "{last}");
        // One that cannot be asked.
        let unasked = new
            .modern(&call(5, "test__ask", json!({})))
            .await
            .last()
            .await;
        assert!(said(&unasked).contains("decline"), "{unasked}");
        // A legacy client: the question comes while the call is open.
        let mut old = server.client().await;
        old.begin(LEGACY, forms()).await;
        let mut busy = old.another().await;
        let mut events = busy.post(&call(6, "test__ask", json!({}))).await.events();
        let question = events.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(
            question["params"]["message"],
            "The server `test` asks: Which colour?"
        );
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": blue()});
        old.post(&answer).await.text().await;
        let last = events.next().await.unwrap();
        assert!(said(&last).contains("blue"), "{last}");
        quiet(&world).await;
        assert_eq!(
            attempts(&world),
            [Status::Done; 4],
            "one call each, however often it was asked"
        );
        server.end().await;
    }
}

/// Attack: the state is the client's to keep, change, show to others and send again.
#[tokio::test]
async fn an_answer_counts_once_for_its_caller_and_its_call() {
    let world = world(false, "", "").await;
    let server = world.serve().await;
    let mut ann = server.client().await;
    let first = ann
        .modern_with(&call(1, "test__ask", json!({})), forms())
        .await;
    let first = first.last().await;
    let state = asked(&first).1.clone();
    let mut bob = server.client().await;
    bob.headers.push((CALLER.to_owned(), "bob".to_owned()));
    let mut other_tool = answered(2, json!({}), &state, blue());
    other_tool["params"]["name"] = "test__slow".into();
    let mut text = state.as_str().unwrap().to_owned();
    text.pop();
    text.push('!');
    for (client, wrong) in [
        (&mut bob, answered(2, json!({}), &state, blue())),
        (
            &mut ann,
            answered(3, json!({"variable": "x"}), &state, blue()),
        ),
    ] {
        let refused = client.modern_with(&wrong, forms()).await.last().await;
        assert_eq!(
            refused["error"]["data"]["code"], "approval.state",
            "{refused}"
        );
    }
    for wrong in [other_tool, answered(4, json!({}), &text.into(), blue())] {
        let refused = ann.modern_with(&wrong, forms()).await.last().await;
        assert_eq!(
            refused["error"]["data"]["code"], "approval.state",
            "{refused}"
        );
    }
    // An answer to us is none to a server, and the other way round.
    let mut crossed = answered(5, json!({}), &state, blue());
    crossed["params"]["inputResponses"] = json!({"approval": blue()});
    let same = ann.modern_with(&crossed, forms()).await.last().await;
    let (_, state) = asked(&same);
    // The control: it counts for its own call, and then no more.
    let right = answered(6, json!({}), state, blue());
    let last = ann.modern_with(&right, forms()).await.last().await;
    assert!(said(&last).contains("blue"), "{last}");
    let again = ann.modern_with(&right, forms()).await.last().await;
    assert_eq!(again["error"]["data"]["code"], "approval.state", "{again}");
    server.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_come_back_loses_its_call() {
    let rest = "[approvals]\nwait_seconds = 1\n";
    let world = world(false, "", rest).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let first = client
        .modern_with(&call(1, "test__ask", json!({})), forms())
        .await;
    let first = first.last().await;
    let state = asked(&first).1.clone();
    assert_eq!(world.door.calls_under_way(), 1, "the control: it waits");
    quiet(&world).await;
    assert_eq!(attempts(&world), [Status::Cancelled]);
    let late = answered(2, json!({}), &state, blue());
    let refused = client.modern_with(&late, forms()).await.last().await;
    assert_eq!(
        refused["error"]["data"]["code"], "approval.state",
        "{refused}"
    );
    server.end().await;
}

/// A server that ends waits for no client.
#[tokio::test]
async fn calls_that_wait_for_an_answer_end_with_the_door() {
    let world = world(false, "", "").await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let first = client
        .modern_with(&call(1, "test__ask", json!({})), forms())
        .await;
    asked(&first.last().await);
    drop(client);
    server.end().await;
    assert_eq!(world.door.calls_under_way(), 0);
    assert_eq!(attempts(&world), [Status::Cancelled]);
}

/// A caller that may make one call at a time can still answer the question of that call.
#[tokio::test]
async fn an_answer_uses_no_second_slot() {
    let rest = "[serve]\ncalls_per_caller_max = 1\n";
    let world = world(false, "", rest).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let first = client
        .modern_with(&call(1, "test__ask", json!({})), forms())
        .await;
    let first = first.last().await;
    let second = client
        .modern(&call(2, "test__echo", json!({"words": "x"})))
        .await;
    let second = second.last().await;
    assert_eq!(
        second["result"]["structuredContent"]["code"], "call.busy",
        "{second}"
    );
    let again = answered(3, json!({}), asked(&first).1, blue());
    let last = client.modern_with(&again, forms()).await.last().await;
    assert!(said(&last).contains("blue"), "{last}");
    server.end().await;
}

async fn progress(client: &mut Http, is_modern_client: bool) -> Vec<Value> {
    let mut slow = call(7, "test__slow", json!({"ms": 600}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    let answer = match is_modern_client {
        true => client.modern_with(&slow, forms()).await,
        false => client.post(&slow).await,
    };
    answer.messages().await
}

#[tokio::test]
async fn progress_errors_and_cancellation_pass_in_every_combination() {
    for is_modern in [false, true] {
        let world = world(is_modern, "", "").await;
        let server = world.serve().await;
        for is_modern_client in [false, true] {
            let mut client = server.client().await;
            if !is_modern_client {
                client.begin(LEGACY, forms()).await;
            }
            let told = progress(&mut client, is_modern_client).await;
            let words = |message: &Value| message["params"]["message"].as_str().map(str::to_owned);
            let heard: Vec<_> = told.iter().filter_map(words).collect();
            assert!(
                heard.iter().any(|words| words.starts_with("working (")),
                "{told:?}"
            );
            assert_eq!(said(told.last().unwrap()), "done");
            for (tool, code) in [("fail", "it failed"), ("refuse", "server.refused")] {
                let message = call(8, &format!("test__{tool}"), json!({}));
                let answer = match is_modern_client {
                    true => client.modern_with(&message, forms()).await.last().await,
                    false => client.post(&message).await.last().await,
                };
                assert_eq!(answer["result"]["isError"], true, "{answer}");
                assert!(said(&answer).contains(code), "{answer}");
            }
            cancelled(&world, &server, is_modern_client).await;
        }
        server.end().await;
    }
}

/// A client that goes away takes its call with it, and the next call works.
async fn cancelled(world: &World, server: &Server, is_modern_client: bool) {
    let mut client = server.client().await;
    if !is_modern_client {
        client.begin(LEGACY, forms()).await;
    }
    let slow = call(9, "test__slow", json!({"ms": 3_000}));
    if is_modern_client {
        let calling = client.modern_with(&slow, forms());
        assert!(
            tokio::time::timeout(Duration::from_millis(300), calling)
                .await
                .is_err()
        );
        drop(client);
    } else {
        let mut busy = client.another().await;
        let calling = busy.post(&slow);
        let pending = tokio::time::timeout(Duration::from_millis(300), calling).await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 9}});
        client.post(&cancel).await.text().await;
        drop(pending);
    }
    quiet(world).await;
    world.ended_as("test__slow", Status::Cancelled).await;
    let mut next = server.client().await;
    let echo = call(10, "test__echo", json!({"words": "next"}));
    assert_eq!(said(&next.modern(&echo).await.last().await), "next");
}

async fn say(client: &mut Http, is_modern: bool, method: &str, params: Value) -> Value {
    let message = request(20, method, params);
    match is_modern {
        true => client.modern_with(&message, forms()).await.last().await,
        false => client.post(&message).await.last().await,
    }
}

#[tokio::test]
async fn prompts_and_resources_do_not_exist_until_they_are_switched_on() {
    let world = world(false, "", "").await;
    let server = world.serve().await;
    let mut client = server.client().await;
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let answer = say(&mut client, true, method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    let answer = say(
        &mut client,
        true,
        "prompts/get",
        json!({"name": "test__greet"}),
    )
    .await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let read = json!({"uri": "ringfence://test/test://page"});
    let answer = say(&mut client, true, "resources/read", read).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let discovered = say(&mut client, true, "server/discover", json!({})).await;
    assert!(
        discovered["result"]["capabilities"]["prompts"].is_null(),
        "{discovered}"
    );
    server.end().await;
}

#[tokio::test]
async fn prompts_and_resources_are_relayed_in_every_combination() {
    for is_modern in [false, true] {
        let more = "prompts = true\nresources = true\nenv = { TOKEN = \"a plain value\" }";
        let world = world(is_modern, more, "").await;
        let server = world.serve().await;
        for is_modern_client in [false, true] {
            let mut client = server.client().await;
            if !is_modern_client {
                let begun = client.begin(LEGACY, forms()).await;
                assert!(
                    begun["result"]["capabilities"]["prompts"].is_object(),
                    "{begun}"
                );
            }
            let mut ask = async |method: &str, params: Value| {
                say(&mut client, is_modern_client, method, params).await
            };
            let prompts = ask("prompts/list", json!({})).await;
            let prompts = &prompts["result"]["prompts"];
            assert_eq!(prompts[0]["name"], "test__greet", "{prompts}");
            assert_eq!(prompts[0]["arguments"][0]["name"], "who", "{prompts}");
            let get = json!({"name": "test__greet", "arguments": {"who": "Ann"}});
            let got = ask("prompts/get", get).await;
            let content = &got["result"]["messages"][0]["content"];
            assert_eq!(
                *content,
                json!({"type": "text", "text": "Greet Ann.[31m"}),
                "{got}"
            );
            let wrong = ask("prompts/get", json!({"name": "test__greet"})).await;
            assert_eq!(wrong["error"]["data"]["code"], "argument.schema", "{wrong}");
            let none = ask("prompts/get", json!({"name": "test__none"})).await;
            assert_eq!(none["error"]["code"], -32602, "{none}");
            let resources = ask("resources/list", json!({})).await;
            let page = "ringfence://test/test://page";
            assert_eq!(
                resources["result"]["resources"][0]["uri"], page,
                "{resources}"
            );
            let templates = ask("resources/templates/list", json!({})).await;
            let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
            assert_eq!(template, "ringfence://test/test://item/{id}", "{templates}");
            for (uri, words) in [
                (page, "a page"),
                ("ringfence://test/test://item/7", "item 7"),
            ] {
                let read = ask("resources/read", json!({"uri": uri})).await;
                let content = &read["result"]["contents"][0];
                let expected = json!({"uri": uri, "mimeType": "text/plain", "text": words});
                assert_eq!(*content, expected, "{read}");
            }
            let absent = if is_modern_client { -32602 } else { -32002 };
            for uri in [
                "ringfence://test/test://none",
                "test://page",
                "ringfence://other/test://page",
            ] {
                let read = ask("resources/read", json!({"uri": uri})).await;
                assert_eq!(read["error"]["code"], absent, "{read}");
            }
        }
        // Each is a call in the audit, and none is listed as a tool.
        let get = json!({"name": "test__greet", "arguments": {"who": "Ann"}});
        say(&mut server.client().await, true, "prompts/get", get).await;
        world.ended_as("test__prompt.greet", Status::Done).await;
        let tools = say(&mut server.client().await, true, "tools/list", json!({})).await;
        let names = tools["result"]["tools"].as_array().unwrap().iter();
        let mut names = names.map(|tool| tool["name"].as_str().unwrap());
        assert!(names.all(|name| !name.contains('.')), "{tools}");
        server.end().await;
    }
}
