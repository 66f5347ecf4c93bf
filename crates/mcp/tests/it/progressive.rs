//! Progressive listing as clients see it, in both eras and over both transports, and what it
//! saves.

use model::caller::{Caller, Origin};
use model::document::NetworkMode;
use serde_json::{Value, json};

use crate::both_eras::Peer;
use crate::client::{call, request};
use crate::world::{World, document};

/// Tokens of a value as JSON, by the rule the guide gives: four bytes are one.
fn tokens_of(shown: &impl serde::Serialize) -> usize {
    serde_json::to_string(shown).unwrap().len().div_ceil(4)
}

const ON: &str = "[codecall]\nmode = \"off\"\n[progressive]\nenabled = true\n";

/// Holds what a tool answered against the schema it is listed with.
#[track_caller]
fn fits(list: &Value, name: &str, answer: &Value) {
    let tools = list["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
    let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
    let structured = &answer["result"]["structuredContent"];
    let fault = schema.iter_errors(structured).next();
    assert!(fault.is_none(), "{name}: {fault:?} in {structured}");
}

#[tokio::test]
async fn every_client_lists_loads_and_calls() {
    let world = World::with(ON).await;
    let guide = json!([{"name": "guide", "mimeType": "text/markdown", "text": "# How"}]);
    let more = json!({"x-ringfence-resources": guide});
    world.publish(&document("guided", "return 1", more)).await;
    let server = world.serve().await;
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        let list = peer.ask(&request(1, "tools/list", json!({}))).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["list_tools", "load_tool", "load_tool_resource"]);
        assert!(
            tools
                .iter()
                .all(|tool| tool["annotations"]["readOnlyHint"] == true)
        );

        let page = peer.ask(&call(2, "list_tools", json!({}))).await;
        fits(&list, "list_tools", &page);
        let structured = &page["result"]["structuredContent"];
        assert_eq!(structured["total"], 2);
        assert_eq!(structured["tools"][0]["name"], "echo");

        let loaded = peer
            .ask(&call(3, "load_tool", json!({"name": "echo"})))
            .await;
        fits(&list, "load_tool", &loaded);
        let card = &loaded["result"]["structuredContent"]["tool"];
        assert_eq!(card["inputSchema"]["required"], json!(["text"]));
        assert_eq!(card["failureModes"][0]["code"], "argument.missing");

        let asked = json!({"name": "guided", "resource": "guide"});
        let guide = peer.ask(&call(4, "load_tool_resource", asked)).await;
        fits(&list, "load_tool_resource", &guide);
        let structured = &guide["result"]["structuredContent"];
        assert_eq!(structured["resource"]["text"], "# How");

        let absent = peer
            .ask(&call(5, "load_tool", json!({"name": "nothing"})))
            .await;
        assert_eq!(absent["result"]["isError"], true, "{absent}");
        fits(&list, "load_tool", &absent);

        let called = peer.ask(&call(6, "echo", json!({"text": "hello"}))).await;
        assert_eq!(called["result"]["content"][0]["text"], "hello");
    }
    server.end().await;
}

/// The same caller over two connections, in either era, is one reader.
#[tokio::test]
async fn loaded_tools_belong_to_the_caller() {
    let world = World::with(ON).await;
    let long = json!({"description": "word ".repeat(6_400)});
    for name in ["a", "b"] {
        world
            .publish(&document(name, "return 1", long.clone()))
            .await;
    }
    let server = world.serve().await;
    let mut peers = Peer::all(&world, &server, &json!({})).await.into_iter();
    let (mut legacy, mut modern) = (peers.next().unwrap(), peers.next().unwrap());
    assert!(!legacy.is_modern() && modern.is_modern());
    let unloaded = |answer: &Value| answer["result"]["structuredContent"]["unloaded"].clone();
    let first = legacy
        .ask(&call(1, "load_tool", json!({"name": "a"})))
        .await;
    assert_eq!(unloaded(&first), json!([]));
    let second = modern
        .ask(&call(1, "load_tool", json!({"name": "b"})))
        .await;
    assert_eq!(unloaded(&second)[0]["tool"], "a");
    let third = legacy
        .ask(&call(2, "load_tool", json!({"name": "a"})))
        .await;
    assert_eq!(unloaded(&third)[0]["tool"], "b");
    server.end().await;
}

/// Every page of a list, in tokens.
async fn plain(peer: &mut Peer) -> (usize, usize) {
    let (mut count, mut cost) = (0, 0);
    let mut asked = json!({});
    loop {
        let list = peer.ask(&request(1, "tools/list", asked)).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        count += tools.len();
        cost += tokens_of(tools);
        match list["result"].get("nextCursor") {
            Some(cursor) => asked = json!({"cursor": cursor}),
            None => return (count, cost),
        }
    }
}

/// Makes two hundred tools of the bundled ones and copies of them.
async fn two_hundred() -> World {
    let world = World::with(ON).await;
    let settings = |progressive: &str| {
        format!("[exposure]\npreset = \"everything\"\n[codecall]\nmode = \"off\"\n{progressive}")
    };
    world.home.file("ringfence.toml", &settings(""));
    let ann = Caller::named("ann");
    let offered = world.engine().callable_tools(&ann, Origin::Mcp);
    let quiet = offered.iter().filter(|tool| {
        let policy = &tool.policy;
        policy.network == NetworkMode::Blocked && !policy.file_read && !policy.file_write
    });
    let missing = 200_usize.checked_sub(offered.len()).unwrap();
    for (copied, tool) in quiet.cycle().take(missing).enumerate() {
        let mut copy = tool.usable.document.tree().to_value();
        copy["name"] = json!(format!("{}{copied}", tool.usable.document.name));
        if let Some(members) = copy.as_object_mut() {
            members.remove("id");
            members.remove("toolId");
        }
        world.publish(&copy).await;
    }
    world
}

#[tokio::test]
async fn two_hundred_tools_are_listed_in_less_text() {
    let world = two_hundred().await;
    let server = world.serve().await;
    let mut peer = Peer::all(&world, &server, &json!({})).await.remove(0);
    let (count, in_full) = plain(&mut peer).await;
    assert_eq!(count, 200);

    let text = "[exposure]\npreset = \"everything\"\n".to_owned() + ON;
    world.home.file("ringfence.toml", &text);
    let (ours, three) = plain(&mut peer).await;
    assert_eq!(ours, 3);
    let (mut pages, mut lines) = (Vec::new(), Vec::new());
    let mut asked = json!({});
    loop {
        let page = peer.ask(&call(2, "list_tools", asked)).await;
        let page = &page["result"]["structuredContent"];
        pages.push(tokens_of(page));
        lines.extend(page["tools"].as_array().unwrap().clone());
        match page.get("nextCursor") {
            Some(cursor) => asked = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(lines.len(), 200);
    let mut cards = 0;
    for line in lines.iter().step_by(40) {
        let answer = peer
            .ask(&call(3, "load_tool", json!({"name": line["name"]})))
            .await;
        let answer = &answer["result"]["structuredContent"];
        assert_eq!(answer["tokens"], line["tokens"]);
        cards += tokens_of(answer);
    }
    let all = three + pages.iter().sum::<usize>() + cards;
    let first = three + pages[0] + cards;
    println!(
        "200 tools in full {in_full} tokens; the three {three}, pages {pages:?}, five cards {cards}: \
         all pages {all}, the first page alone {first}"
    );
    assert!(in_full >= 4 * all, "{in_full} {all}");
    assert!(in_full >= 8 * first, "{in_full} {first}");
    server.end().await;
}
