//! Hosts for each caller and each rule, from the settings to the connection: on every
//! hop, for tools that scripts call too, and in what `explain` says.
//!
//! The hosts are addresses of loopback: 127.0.0.1 sends elsewhere, 127.0.0.2 answers.

use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::script::{answer, run};
use crate::world::{Home, World, document, error};

/// Answers every request: `/to?URL` with a redirect, anything else with `hi`.
async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") && stream.read_buf(&mut seen).await.unwrap_or(0) > 0 {}
        let head = String::from_utf8_lossy(&seen).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let reply = match path.split_once('?') {
            Some((_, to)) => format!("302 Found\r\nlocation: {to}"),
            None => "200 OK".to_owned(),
        };
        let reply = format!("HTTP/1.1 {reply}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
        let _ = stream.write_all(reply.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

struct Lab {
    world: World,
    first: String,
    second: String,
}

/// A world with a tool that fetches, and two hosts.
async fn lab(settings: &str) -> Lab {
    let mut urls = Vec::new();
    for host in ["127.0.0.1", "127.0.0.2"] {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        urls.push(format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(serve(listener));
    }
    let home = Home::new();
    home.file("ringfence.toml", settings);
    let world = World::with(home, |settings| settings.single = false);
    let code = "if (!url) return ''; try { return (await fetch(url)).text() } catch (e) { return e.reason }";
    for (name, hosts) in [
        ("both", vec!["127.0.0.1", "127.0.0.2"]),
        ("one", vec!["127.0.0.2"]),
    ] {
        let more = json!({
            "params": [{"name": "url", "type": "STRING", "required": false, "testValue": ""}],
            "sandboxOverrides": {"networkMode": "allowlist", "hostsAllow": hosts},
        });
        world.published(&document(name, code, more)).await;
    }
    let mut urls = urls.into_iter();
    Lab {
        world,
        first: urls.next().unwrap(),
        second: urls.next().unwrap(),
    }
}

impl Lab {
    fn request(&self, caller: &str, tool: &str, url: &str) -> CallRequest {
        CallRequest::new(
            Caller::named(caller),
            Origin::Mcp,
            tool,
            json!({ "url": url }),
        )
    }

    async fn get(&self, caller: &str, url: &str) -> (Value, Outcome) {
        let outcome = self.world.made(self.request(caller, "both", url)).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        (outcome.value.clone().unwrap_or_default(), outcome)
    }

    fn over(&self) -> String {
        format!("{}/?{}/", self.first, self.second)
    }

    fn last_event(&self, outcome: &Outcome) -> (Value, Value) {
        let event = self
            .world
            .entry(outcome)
            .closing
            .unwrap()
            .events
            .pop()
            .unwrap();
        (event["refusal"].clone(), event["by"].clone())
    }
}

#[tokio::test]
async fn a_callers_hosts_hold_on_every_hop() {
    let lab = lab("[callers.kim]\nhosts = [\"127.0.0.1\"]\n").await;
    let (value, _) = lab.get("ann", &lab.over()).await;
    assert_eq!(value, "hi");
    let (value, _) = lab.get("kim", &lab.first).await;
    assert_eq!(value, "hi");
    for url in [lab.over(), lab.second.clone()] {
        let (value, outcome) = lab.get("kim", &url).await;
        assert_eq!(value, "host-not-for-caller");
        let by = json!("caller `kim`");
        assert_eq!(lab.last_event(&outcome), (json!("host-not-for-caller"), by));
    }
    // A tool of which nothing is left does not run.
    let outcome = lab.world.made(lab.request("kim", "one", &lab.second)).await;
    assert_eq!(outcome.status, Status::Refused);
    assert_eq!(error(&outcome).0, "host.denied");
    // `explain` says both.
    let explained = lab
        .world
        .engine
        .explain(&lab.request("kim", "both", &lab.first));
    let notes: Vec<_> = explained
        .closing
        .gates
        .iter()
        .filter_map(|gate| gate.note.clone())
        .collect();
    let note = "resolved; hosts held to 127.0.0.1 (loopback) (caller `kim`)".to_owned();
    assert!(notes.contains(&note), "{notes:?}");
}

#[tokio::test]
async fn everybodys_groups_and_a_callers_lists_all_hold() {
    let lab = lab("[access]\nhosts = [\"127.0.0.1\", \"127.0.0.2\"]\n\
         [groups.bots]\nmembers = [\"bot-*\"]\nhosts = [\"127.0.0.2\"]\n\
         [callers.bot-b]\nhosts = [\"127.0.0.1\"]\n")
    .await;
    let (value, _) = lab.get("ann", &lab.over()).await;
    assert_eq!(value, "hi");
    let (value, _) = lab.get("bot-a", &lab.second).await;
    assert_eq!(value, "hi");
    let (value, outcome) = lab.get("bot-a", &lab.first).await;
    assert_eq!(value, "host-not-for-caller");
    assert_eq!(lab.last_event(&outcome).1, json!("group `bots`"));
    // What one list leaves, the other takes.
    let outcome = lab
        .world
        .made(lab.request("bot-b", "both", &lab.first))
        .await;
    assert_eq!(error(&outcome).0, "host.denied");
}

#[tokio::test]
async fn tools_that_a_script_calls_have_the_hosts_of_its_caller() {
    let lab = lab("[callers.ann]\nhosts = [\"127.0.0.1\"]\n").await;
    let script = format!(
        "return [await callTool('both', {{ url: '{}' }}), await callTool('both', {{ url: '{}' }})];",
        lab.first,
        lab.over()
    );
    let outcome = run(&lab.world, &script).await;
    let answer = answer(&outcome);
    assert_eq!(
        answer["result"],
        json!(["hi", "host-not-for-caller"]),
        "{answer}"
    );
}

#[tokio::test]
async fn a_rule_denies_hosts_where_they_are_reached() {
    let lab = lab(
        "[expected]\ncallers = [\"kim\"]\n[[rule]]\nid = \"no-second\"\nhosts = [\"127.0.0.2\"]\ncallers = [\"kim\"]\neffect = \"deny\"\n",
    )
    .await;
    let (value, _) = lab.get("kim", &lab.first).await;
    assert_eq!(value, "hi");
    let (value, outcome) = lab.get("kim", &lab.over()).await;
    assert_eq!(value, "host-denied-by-rule");
    let by = json!("rule `no-second`");
    assert_eq!(lab.last_event(&outcome), (json!("host-denied-by-rule"), by));
    let (value, _) = lab.get("ann", &lab.over()).await;
    assert_eq!(value, "hi");
    // It denies a call that can reach nothing else.
    let outcome = lab.world.made(lab.request("kim", "one", "")).await;
    assert_eq!(error(&outcome).0, "rule.denied");
}

#[tokio::test]
async fn a_rule_that_allows_holds_a_call_to_its_hosts() {
    let lab = lab(
        "[expected]\ntools = [\"one\"]\ncallers = [\"kim\"]\n[[rule]]\nid = \"ask-all\"\ncallers = [\"kim\"]\ntools = [\"one\"]\nhosts = [\"127.0.0.2\"]\neffect = \"ask\"\n\
         [[rule]]\nid = \"first-only\"\nhosts = [\"127.0.0.1\"]\neffect = \"allow\"\n",
    )
    .await;
    let (value, _) = lab.get("kim", &lab.first).await;
    assert_eq!(value, "hi");
    let (value, outcome) = lab.get("kim", &lab.over()).await;
    assert_eq!(value, "host-not-in-rule");
    assert_eq!(lab.last_event(&outcome).1, json!("rule `first-only`"));
    // The other tool can reach the host of the rule that asks.
    let explained = lab.world.engine.explain(&lab.request("kim", "one", ""));
    assert_eq!(explained.effect, model::govern::rules::Effect::Ask);
}
