//! A client that gave a token hears that its call lives, and nothing after its end.

use serde_json::{Value, json};

use crate::client::{LEGACY, call};
use crate::lab::Lab;
use crate::world::World;

fn with_token(mut message: Value, token: &str) -> Value {
    message["params"]["_meta"] = json!({"progressToken": token});
    message
}

#[tokio::test]
async fn a_long_call_sends_progress() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut legacy = server.client().await;
    legacy.begin(LEGACY, json!({})).await;
    let mut modern = server.client().await;
    let message = with_token(call(1, "slow", json!({"go": true})), "tok");
    for is_modern in [false, true] {
        let client = if is_modern { &mut modern } else { &mut legacy };
        let asking = async {
            let answer = if is_modern {
                client.modern(&message).await
            } else {
                client.post(&message).await
            };
            let mut events = answer.events();
            let first = events.next().await.unwrap();
            (first, events)
        };
        let (held, (first, mut events)) = tokio::join!(lab.arrived(), asking);
        assert_eq!(first["method"], "notifications/progress", "{first}");
        assert_eq!(first["params"]["progressToken"], "tok");
        let mut latest = first["params"]["progress"].as_f64().unwrap();
        held.release().await;
        let answer = loop {
            let said = events.next().await.unwrap();
            if said.get("result").is_some() {
                break said;
            }
            let progress = said["params"]["progress"].as_f64().unwrap();
            assert!(progress > latest);
            latest = progress;
        };
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        assert_eq!(events.next().await, None);
    }
    server.end().await;
}

#[tokio::test]
async fn a_short_call_says_nothing_but_its_answer() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let answer = client
        .modern(&with_token(call(1, "echo", json!({"text": "x"})), "tok"))
        .await;
    assert!(!answer.is_stream());
    assert_eq!(answer.last().await["result"]["isError"], false);
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.say(&with_token(call(1, "echo", json!({"text": "x"})), "tok"))
        .await;
    assert_eq!(pipe.next().await.unwrap()["id"], 1);
    server.end().await;
}
