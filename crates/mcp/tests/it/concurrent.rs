//! Clients that send several calls without waiting, and callers that the engine
//! holds back: what the client sees of it.

use engine::approve::{ApprovalScope, Listing};
use model::caller::Caller;
use serde_json::json;

use crate::client::{LEGACY, call, request};
use crate::world::{World, document};

/// MCP knows no order between requests in flight, and none is made up: a call that
/// waits for a person keeps no other one waiting.
#[tokio::test]
async fn requests_in_flight_do_not_wait_for_each_other() {
    let world = World::new().await;
    let more = json!({"humanInTheLoop": {"mode": "REQUIRED"},
        "sandboxOverrides": {"fileWrite": true}});
    world
        .publish(&document("guarded", "return 'ran'", more))
        .await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.say(&call(1, "guarded", json!({}))).await;
    for id in 2..6 {
        pipe.say(&call(id, "echo", json!({"text": id.to_string()})))
            .await;
    }
    let mut answered = Vec::new();
    for _ in 2..6 {
        let answer = pipe.next().await.unwrap();
        let id = answer["id"].as_u64().unwrap();
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(*text, id.to_string(), "each answer goes with its question");
        answered.push(id);
    }
    answered.sort_unstable();
    assert_eq!(answered, [2, 3, 4, 5]);
    let inbox = world.engine().approvals();
    let waiting = loop {
        match inbox.list(Listing::Pending).unwrap().pop() {
            Some(waiting) => break waiting,
            None => tokio::task::yield_now().await,
        }
    };
    let owner = Caller::owner();
    inbox
        .approve(&waiting.id, &owner, ApprovalScope::Once, None)
        .unwrap();
    let answer = pipe.next().await.unwrap();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "ran");
}

/// A limit and a pause are errors the model can read; the list stays what it was.
#[tokio::test]
async fn a_caller_that_is_held_back_is_told_why() {
    let settings = "[[limit]]\nid = \"few\"\nunits_per_day = 1\ncallers = [\"stdio\"]\n";
    let world = World::with(settings).await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    let before = pipe.ask(&request(1, "tools/list", json!({}))).await;
    let echo = |id| call(id, "echo", json!({"text": "hi"}));
    let answer = pipe.ask(&echo(2)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "hi");
    let limited = pipe.ask(&echo(3)).await["result"].clone();
    assert_eq!(limited["isError"], true);
    let told = &limited["structuredContent"];
    assert_eq!(told["code"], "limit.exceeded", "{limited}");
    assert_eq!(told["retryable"], true);
    assert!(told["message"].as_str().unwrap().contains("try again in "));
    let callers = world.engine().callers();
    callers.pause("stdio", &Caller::owner(), None).unwrap();
    let paused = pipe.ask(&echo(4)).await["result"].clone();
    assert_eq!(
        paused["structuredContent"]["code"], "caller.paused",
        "{paused}"
    );
    assert_eq!(paused["structuredContent"]["retryable"], false);
    // Also what is not there: nothing is told about tools while a caller is paused.
    let absent = pipe.ask(&call(5, "nothing", json!({}))).await["result"].clone();
    assert_eq!(
        absent["structuredContent"]["code"], "caller.paused",
        "{absent}"
    );
    let after = pipe.ask(&request(1, "tools/list", json!({}))).await;
    assert_eq!(after["result"], before["result"]);
}
