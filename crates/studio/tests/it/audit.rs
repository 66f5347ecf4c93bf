//! The audit, the inspector, the rules, and the events.

use axum::http::{Method, StatusCode};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::world::{World, asking};

fn plain(name: &str) -> serde_json::Value {
    json!({
        "name": name, "description": "For a test.", "codeType": "Javascript",
        "code": "console.log('hi'); return {sum: a + 1};",
        "params": [{"name": "a", "type": "INTEGER", "required": true, "description": "A number.", "testValue": "1"}],
    })
}

#[tokio::test]
async fn a_call_of_the_inspector_is_in_the_audit_with_its_gates() {
    let world = World::new("");
    world.publish(&plain("add")).await;
    let owner = world.owner().await;
    let called = owner
        .post(
            "/api/v1/inspector/call",
            &json!({"tool": "add", "arguments": {"a": 41}}),
        )
        .await;
    assert_eq!(called.body["status"], "done", "{}", called.body);
    assert_eq!(called.body["result"], json!({"sum": 42}));
    assert_eq!(called.body["console"][0]["text"], "hi");
    let id = called.body["callId"].as_str().unwrap();
    let entry = owner.get(&format!("/api/v1/audit/{id}")).await;
    assert_eq!(entry.body["origin"], "studio");
    assert_eq!(entry.body["caller"], "owner");
    assert!(entry.body["gates"].as_array().unwrap().len() >= 7);
    let raw = owner.get(&format!("/api/v1/audit/{id}/raw")).await;
    assert_eq!(
        raw.body["records"].as_array().unwrap().len(),
        2,
        "{}",
        raw.body
    );
    let refused = owner
        .post(
            "/api/v1/inspector/call",
            &json!({"tool": "add", "arguments": {}}),
        )
        .await;
    assert_eq!(
        refused.body["error"]["code"], "argument.missing",
        "{}",
        refused.body
    );
    let filtered = owner.get("/api/v1/audit?tool=add&status=refused").await;
    assert_eq!(filtered.body["items"].as_array().unwrap().len(), 1);
    let empty = owner.get("/api/v1/audit?tool=add&status=crashed").await;
    assert_eq!(
        empty.body["empty"],
        "nothing fits; without `status=crashed` there is something"
    );
    let by_reason = owner.get("/api/v1/audit?reason=argument.missing").await;
    assert_eq!(by_reason.body["items"].as_array().unwrap().len(), 1);
    let explained = json!({"tool": "add", "arguments": {"a": 1}, "caller": "ann"});
    let explained = owner.post("/api/v1/inspector/explain", &explained).await;
    assert_eq!(explained.body["effect"], "allow", "{}", explained.body);
    let numbers = owner.get("/api/v1/numbers?since=7d").await;
    assert_eq!(numbers.status, StatusCode::OK, "{}", numbers.body);
    for odd in [
        "status=x",
        "origin=x",
        "kind=x",
        "since=x",
        "limit=x",
        "unknown=1",
        "tool=a&tool=b",
    ] {
        let answer = owner.get(&format!("/api/v1/audit?{odd}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{odd}");
    }
}

#[tokio::test]
async fn the_chain_is_verified_and_a_change_in_it_is_seen() {
    let world = World::new("");
    world.publish(&plain("add")).await;
    let owner = world.owner().await;
    owner
        .post(
            "/api/v1/inspector/call",
            &json!({"tool": "add", "arguments": {"a": 1}}),
        )
        .await;
    let whole = owner.post("/api/v1/audit/verify", &json!({})).await;
    assert_eq!(whole.body["ok"], true, "{}", whole.body);
    let head = json!({"head": whole.body["head"]});
    assert_eq!(
        owner.post("/api/v1/audit/verify", &head).await.body["ok"],
        true
    );
    let other = json!({"head": format!("1:{}", "0".repeat(64))});
    assert_eq!(
        owner.post("/api/v1/audit/verify", &other).await.body["ok"],
        false
    );
    // One byte of the log is another.
    let log = find_log(&world.home);
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(
        &log,
        text.replacen("\"tool\":\"add\"", "\"tool\":\"ada\"", 1),
    )
    .unwrap();
    let broken = owner.post("/api/v1/audit/verify", &json!({})).await;
    assert_eq!(broken.body["ok"], false, "{}", broken.body);
    assert!(!broken.body["broken"]["what"].as_str().unwrap().is_empty());
}

/// The file of the log that has a call in it.
fn find_log(home: &std::path::Path) -> std::path::PathBuf {
    let mut folders = vec![home.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read_to_string(&path)
                .is_ok_and(|text| text.contains("\"tool\":\"add\""))
            {
                return path;
            }
        }
    }
    panic!("no log");
}

#[tokio::test]
async fn rules_are_rehearsed_and_applied_with_a_reason() {
    let world = World::new("[audit]\narguments = \"masked\"\n");
    world.publish(&plain("add")).await;
    let owner = world.owner().await;
    let call = json!({"tool": "add", "arguments": {"a": 1}});
    owner.post("/api/v1/inspector/call", &call).await;
    let now = owner.get("/api/v1/policy").await;
    let text = now.body["text"].as_str().unwrap().to_owned();
    let stricter = format!(
        "{text}\n[[rule]]\nid = \"no\"\ntools = [\"add\"]\neffect = \"deny\"\nreason = \"closed\"\n"
    );
    let linted = owner
        .post(
            "/api/v1/policy/lint",
            &json!({"text": "[[rule]]\nid = 3\n"}),
        )
        .await;
    assert_eq!(linted.body["ok"], false);
    let rehearsed = owner
        .post("/api/v1/policy/rehearse", &json!({"text": stricter}))
        .await;
    // The Local Pass and the call.
    assert_eq!(rehearsed.body["tightened"], 2, "{}", rehearsed.body);
    assert_eq!(rehearsed.body["loosened"], 0);
    let preview = owner
        .post("/api/v1/policy/preview", &json!({"text": stricter}))
        .await;
    assert!(preview.body["diff"].to_string().contains("\"add\""));
    let mut apply =
        json!({"text": stricter, "revision": now.body["revision"], "reason": "", "confirm": true});
    let refused = owner.send(Method::PUT, "/api/v1/policy", &apply).await;
    assert_eq!(
        refused.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "a change has a reason"
    );
    apply["reason"] = json!("it is Friday");
    let applied = owner.send(Method::PUT, "/api/v1/policy", &apply).await;
    assert_eq!(applied.status, StatusCode::OK, "{}", applied.body);
    assert_eq!(applied.body["rules"][0]["id"], "no");
    let denied = owner.post("/api/v1/inspector/call", &call).await;
    assert_eq!(
        denied.body["error"]["code"], "rule.denied",
        "{}",
        denied.body
    );
    let looser = owner
        .post("/api/v1/policy/preview", &json!({"text": text}))
        .await;
    assert!(
        looser.body["widens"][0]
            .as_str()
            .unwrap()
            .contains("`no` is removed")
    );
    let stale = owner.send(Method::PUT, "/api/v1/policy", &apply).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    let notices = owner.get("/api/v1/audit?kind=notice&limit=20").await;
    assert!(notices.body.to_string().contains("it is Friday"));
}

/// A secret goes in and never comes out; its name and uses are shown.
#[tokio::test]
async fn a_secret_is_written_and_never_shown() {
    let world = World::new("");
    let owner = world.owner().await;
    let set = owner
        .send(
            Method::PUT,
            "/api/v1/secrets/API_KEY",
            &json!({"value": "hunter2-hunter2"}),
        )
        .await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.body);
    let listed = owner.get("/api/v1/secrets").await;
    let row = |body: &serde_json::Value| {
        let items = body["items"].as_array().unwrap();
        items.iter().find(|item| item["name"] == "API_KEY").cloned()
    };
    assert_eq!(row(&listed.body).unwrap()["set"], true);
    let audit = owner.get("/api/v1/audit?kind=notice").await;
    for text in [&set.text, &listed.text, &audit.text] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(audit.text.contains("secret.changed"));
    let mode = std::os::unix::fs::MetadataExt::mode(
        &std::fs::metadata(world.home.join("secrets.env")).unwrap(),
    );
    assert_eq!(mode & 0o777, 0o600);
    for (name, value) in [
        ("1A", "x"),
        ("A-B", "x"),
        ("A", ""),
        ("A", "x\nB=y"),
        ("A", " x"),
    ] {
        let answer = owner
            .send(
                Method::PUT,
                &format!("/api/v1/secrets/{name}"),
                &json!({"value": value}),
            )
            .await;
        assert_eq!(
            answer.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{name}={value:?}"
        );
    }
    // Quotes are part of the value, and read back as they were typed.
    let quoted = json!({"value": "\"x\""});
    let set = owner
        .send(Method::PUT, "/api/v1/secrets/QUOTED", &quoted)
        .await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.body);
    let environment = world.engine.environment().unwrap();
    assert_eq!(environment.get("QUOTED"), Some("\"x\""));
    let gone = owner
        .send(Method::DELETE, "/api/v1/secrets/API_KEY", &json!({}))
        .await;
    assert_eq!(gone.status, StatusCode::OK);
    assert_eq!(row(&owner.get("/api/v1/secrets").await.body), None);
}

/// What happens is told as it happens, numbered; who comes back is told what was missed; a
/// session that ends ends its stream.
#[tokio::test]
async fn events_are_numbered_and_end_with_the_session() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let response = owner.open(Method::GET, "/api/v1/events", None).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let mut heard = String::new();
    let mut next = async |until: &str| {
        while !heard.contains(until) {
            let piece = stream.next().await.expect("more").unwrap();
            heard.push_str(std::str::from_utf8(&piece).unwrap());
        }
        std::mem::take(&mut heard)
    };
    assert!(next("event: hello").await.contains("\"boot\""));
    // The first look tells nothing, so calls are made until one is told.
    let waiting = world.call("ask", json!({"path": "a"}));
    let id = world.question().await;
    let question = owner.get(&format!("/api/v1/inbox/{id}")).await;
    let deny = json!({"revision": question.body["revision"], "answer": "deny"});
    owner
        .post(&format!("/api/v1/inbox/{id}/answer"), &deny)
        .await;
    waiting.await.unwrap();
    loop {
        owner
            .post(
                "/api/v1/inspector/call",
                &json!({"tool": "none", "arguments": {}}),
            )
            .await;
        let told =
            tokio::time::timeout(std::time::Duration::from_millis(300), next("event: audit")).await;
        if told.is_ok() {
            break;
        }
    }
    owner
        .send(Method::DELETE, "/api/v1/sessions", &json!({}))
        .await;
    let last = next("event: session").await;
    assert!(last.contains("\"ended\":true"), "{last}");
}
