//! Tools as clients see them: on the list, called, failing, taking their time, and new.

use serde_json::{Value, json};

use crate::client::{Client, Kind, Way};
use crate::world::{Home, tool};

#[test]
fn the_python_client_over_http() {
    over_http(Kind::Python);
}

#[test]
fn the_python_client_over_pipes() {
    over_pipes(Kind::Python);
}

#[test]
fn the_older_typescript_client() {
    over_http(Kind::SdkV1);
    over_pipes(Kind::SdkV1);
}

#[test]
fn the_newer_typescript_client_over_http() {
    over_http(Kind::ClientV2);
}

#[test]
fn the_newer_typescript_client_over_pipes() {
    over_pipes(Kind::ClientV2);
}

fn over_http(kind: Kind) {
    let home = Home::new(&format!("tools-http-{kind:?}"));
    let server = home.serve();
    for mode in kind.modes() {
        visit(kind, *mode, Way::Http(&server), &home);
    }
}

fn over_pipes(kind: Kind) {
    let home = Home::new(&format!("tools-pipes-{kind:?}"));
    for mode in kind.modes() {
        visit(kind, *mode, Way::Pipes(&home), &home);
    }
}

fn visit(kind: Kind, mode: (&str, bool), way: Way<'_>, home: &Home) {
    let fresh = format!("fresh_{}", mode.0.replace('-', "_"));
    let steps = json!([
        {"do": "list"},
        {"do": "call", "name": "greet", "arguments": {"who": "Zoë"}},
        {"do": "call", "name": "convertUnits", "arguments": {"value": 1, "from": "km", "to": "m"}},
        {"do": "call", "name": "greet", "arguments": {"who": 7}},
        {"do": "call", "name": "nobody_made_this", "arguments": {}},
        {"do": "call", "name": "linger", "arguments": {"who": "Bob"}, "progress": true},
        {"do": "hear"},
        {"do": "call", "name": fresh, "arguments": {"who": "Ada"}},
    ]);
    let client = Client::start(kind, mode, way, &json!({"steps": steps}));

    let listed = client.step(0);
    for name in ["greet", "careful", "convertUnits"] {
        client.check(named(&listed).contains(&name), &listed);
    }
    // Drafts are not listed.
    client.check(!named(&listed).contains(&"trip"), &listed);

    let greeted = client.step(1);
    client.check(greeted["isError"] == json!(false), &greeted);
    client.check(said(&greeted).contains("Hello, Zoë!"), &greeted);

    let converted = client.step(2);
    client.check(converted["isError"] == json!(false), &converted);
    client.check(said(&converted).contains("1000"), &converted);

    let misfit = client.step(3);
    client.check(misfit["isError"] == json!(true), &misfit);
    client.check(said(&misfit).contains("who"), &misfit);

    let unknown = client.step(4);
    client.check(unknown["error"]["code"] == json!(-32602), &unknown);

    let lingered = client.step(5);
    client.check(said(&lingered).contains("Bob"), &lingered);
    let signs = lingered["progress"].as_array().unwrap();
    client.check(!signs.is_empty(), &lingered);
    let amounts: Vec<_> = signs.iter().map(|sign| sign["progress"].as_f64()).collect();
    client.check(amounts.is_sorted(), &lingered);

    let listening = client.step(6);
    client.check(listening["listening"] == json!(true), &listening);
    home.import(&[tool(&fresh, "return `new to ${who}`;")]);
    home.must(&["publish", &fresh]);
    let heard = client.step(6);
    client.check(named(&heard).contains(&fresh.as_str()), &heard);

    let called = client.step(7);
    client.check(said(&called).contains("new to Ada"), &called);
    let end = client.next();
    client.check(end["end"] == json!(true), &end);
}

#[test]
fn a_tool_that_fails_says_so_in_a_result() {
    let home = Home::new("tools-failing");
    // It fails its own test as well, so it can only be published with one that it passes.
    home.import(&[tool(
        "stumble",
        "if (who !== 'Ada') throw new Error(`${who} tripped`); return 1;",
    )]);
    home.must(&["publish", "stumble"]);
    let server = home.serve();
    let steps = json!([{"do": "call", "name": "stumble", "arguments": {"who": "Bob"}}]);
    for (kind, mode) in [
        (Kind::Python, ("legacy", false)),
        (Kind::Python, ("auto", true)),
        (Kind::SdkV1, ("legacy", false)),
        (Kind::ClientV2, ("2026-07-28", true)),
    ] {
        let client = Client::start(kind, mode, Way::Http(&server), &json!({"steps": steps}));
        let failed = client.step(0);
        client.check(failed["isError"] == json!(true), &failed);
        client.check(said(&failed).contains("Bob tripped"), &failed);
    }
}

#[test]
fn a_wrong_token_is_refused() {
    let home = Home::new("tools-token");
    let server = home.serve();
    for (kind, mode) in [
        (Kind::Python, "legacy"),
        (Kind::Python, "2026-07-28"),
        (Kind::SdkV1, "legacy"),
        (Kind::ClientV2, "legacy"),
        (Kind::ClientV2, "2026-07-28"),
    ] {
        let plan = json!({
            "mode": mode,
            "url": server.url,
            "token": "rf_local_of_somebody_else",
            "steps": [{"do": "list"}],
        });
        let client = Client::with_plan(kind, &plan, format!("{kind:?} {mode}"));
        // A client that needs no greeting connects to anything; its first request does not.
        let mut event = client.next();
        if event["connected"] == json!(true) {
            event = client.next();
        }
        client.check(event["failed"].is_array(), &event);
        // The Python client shows the sentence of the answer, the others its status.
        let refused = event.to_string().to_lowercase();
        let words = ["401", "unauthorized", "the key is mistyped"];
        client.check(words.iter().any(|word| refused.contains(word)), &event);
    }
}

pub(crate) fn named(event: &Value) -> Vec<&str> {
    let tools = event["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

pub(crate) fn said(event: &Value) -> &str {
    event["text"].as_str().unwrap_or_default()
}
