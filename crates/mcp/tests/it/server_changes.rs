//! What a server says about its list reaches the clients that listen: both eras of
//! clients, both eras of servers.

use serde_json::{Value, json};

use crate::client::{LEGACY, call, request};
use crate::list_changed::{CHANGED, legacy, modern, registered};
use crate::servers::{accept, program};
use crate::world::{Home, Server, World};

/// Tools of these names, as the server reads its list from.
fn tools(names: &[&str]) -> String {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    Value::Array(names.iter().map(tool).collect()).to_string()
}

/// The names a client sees.
async fn listed(server: &Server, is_modern_client: bool) -> Vec<String> {
    let mut client = server.client().await;
    let message = request(30, "tools/list", json!({}));
    let answer = match is_modern_client {
        true => client.modern(&message).await.last().await,
        false => {
            client.begin(LEGACY, json!({})).await;
            client.post(&message).await.last().await
        }
    };
    let all = answer["result"]["tools"].as_array().unwrap().iter();
    let names = all.map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("test__")).collect()
}

#[tokio::test]
async fn a_change_of_a_list_reaches_clients_in_every_combination() {
    for is_modern in [false, true] {
        let folder = Home::new();
        folder.file("list.json", &tools(&["echo", "second"]));
        let path = folder.path.canonicalize().unwrap();
        let file = path.join("list.json").display().to_string();
        let mut words = vec![program(), "changes-after-three".to_owned()];
        words.extend(["--tools".to_owned(), file]);
        if is_modern {
            words.push("--modern".to_owned());
        }
        let era = if is_modern { "modern" } else { "legacy" };
        let world = World::with(&format!(
            "[[server]]\nname = \"test\"\nera = \"{era}\"\ncommand = {}\nread = {}\n",
            json!(words),
            json!([path.display().to_string()])
        ))
        .await;
        accept(&world).await;
        let server = world.serve().await;
        let mut old = legacy(&server, "ann").await;
        let mut new = modern(&server, "ann").await;
        registered(&world, 2).await;
        for is_modern_client in [false, true] {
            let before = listed(&server, is_modern_client).await;
            assert_eq!(before, ["test__echo", "test__second"], "the control");
        }
        // The server says so in the middle of its third call, and nobody asks it.
        folder.file("list.json", &tools(&["echo"]));
        let mut caller = server.client().await;
        for id in 1..=3 {
            let echo = call(id, "test__echo", json!({"words": "x"}));
            let answer = caller.modern(&echo).await.last().await;
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        let told = old.next().await.unwrap();
        assert_eq!(told["method"], CHANGED, "{era} to legacy: {told}");
        let told = new.next().await.unwrap();
        assert_eq!(told["method"], CHANGED, "{era} to modern: {told}");
        for is_modern_client in [false, true] {
            let after = listed(&server, is_modern_client).await;
            assert_eq!(after, ["test__echo"], "{era}");
        }
        server.end().await;
    }
}
