//! One rule says which era a request is of, whatever says its revision: a header, its
//! `_meta`, or the handshake.

use serde_json::{Value, json};

use crate::client::{LEGACY, MODERN, call, initialize, initialized, meta};
use crate::world::{CALLER, World};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// A call that says this revision of itself.
fn says(id: u64, version: Option<&str>) -> Value {
    let mut message = call(id, "echo", json!({"text": "hi"}));
    if let Some(version) = version {
        let mut meta = meta(json!({}));
        meta[VERSION] = json!(version);
        message["params"]["_meta"] = meta;
    }
    message
}

/// Whether a request asks for its session: a legacy one does, a modern one has none.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asks {
    Session,
    None,
}

#[tokio::test]
async fn headers_and_bodies_are_of_one_era_over_http() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut ann = server.client().await;
    ann.begin(LEGACY, json!({})).await;
    let hers = ann.headers[0].clone();
    for (headers, body, asks, status, code) in [
        // The revision is not said: legacy, which needs a session.
        (&[][..], None, Asks::Session, 400, -32000),
        // Not a revision.
        (&[""], None, Asks::Session, 400, -32000),
        (&["zzz"], None, Asks::Session, 400, -32000),
        (&["zzz"], Some("zzz"), Asks::Session, 400, -32022),
        (&["2026-07-28x"], Some(MODERN), Asks::Session, 400, -32020),
        // Known revisions.
        (&["2024-11-05"], None, Asks::Session, 400, -32000),
        (&["2025-03-26"], None, Asks::Session, 400, -32000),
        (&["2025-06-18"], None, Asks::Session, 400, -32000),
        (&[LEGACY], None, Asks::Session, 400, -32000),
        (&[MODERN], Some(MODERN), Asks::None, 200, 0),
        (&[MODERN], None, Asks::None, 400, -32602),
        // Unknown ones, earlier and later.
        (&["2024-01-01"], None, Asks::Session, 400, -32000),
        (&["2027-01-01"], None, Asks::None, 400, -32000),
        (&["2027-01-01"], Some("2027-01-01"), Asks::None, 400, -32022),
        // Two headers.
        (&[MODERN, LEGACY], Some(MODERN), Asks::Session, 400, -32020),
        (&[LEGACY, MODERN], Some(MODERN), Asks::Session, 400, -32020),
        (&[MODERN, MODERN], Some(MODERN), Asks::Session, 400, -32020),
        // The header against the body.
        (&[], Some(MODERN), Asks::Session, 400, -32020),
        (&[LEGACY], Some(MODERN), Asks::Session, 400, -32020),
        (&[MODERN], Some(LEGACY), Asks::None, 400, -32020),
    ] {
        let row = format!("{headers:?} {body:?}");
        let mut client = server.client().await;
        let mut common = vec![
            ("mcp-method".to_owned(), "tools/call".to_owned()),
            ("mcp-name".to_owned(), "echo".to_owned()),
        ];
        for header in headers {
            common.push(("mcp-protocol-version".to_owned(), (*header).to_owned()));
        }
        client.headers.clone_from(&common);
        let answer = client.post(&says(1, body)).await;
        assert_eq!(answer.status.as_u16(), status, "{row}");
        let said = answer.last().await;
        assert_eq!(
            said["error"]["code"].as_i64().unwrap_or(0),
            code,
            "{row} {said}"
        );
        // The same with another caller's session, which a legacy request is refused.
        client.headers = common;
        client.headers.push(hers.clone());
        client.headers.push((CALLER.to_owned(), "eve".to_owned()));
        let answer = client.post(&says(2, body)).await;
        let asked = match answer.status.as_u16() {
            404 => Asks::Session,
            other => {
                assert_eq!(other, status, "{row}");
                Asks::None
            }
        };
        let said = answer.last().await;
        assert_eq!(asked, asks, "{row} {said}");
    }
    // In a session its handshake says the era, and the header only confirms it.
    let said = ann.post(&says(3, None)).await.last().await;
    assert!(said["result"]["_meta"][SERVER].is_null(), "{said}");
    server.end().await;
}

#[tokio::test]
async fn bodies_and_handshakes_are_of_one_era_over_pipes() {
    for (body, code, is_modern) in [
        (Some(MODERN), 0, true),
        (Some("zzz"), -32022, false),
        (Some("2027-01-01"), -32022, false),
        (Some("2024-01-01"), -32022, false),
        (Some(""), -32022, false),
    ] {
        let world = World::new().await;
        let (mut pipe, serving, _) = world.pipe();
        let said = pipe.ask(&says(1, body)).await;
        assert_eq!(
            said["error"]["code"].as_i64().unwrap_or(0),
            code,
            "{body:?} {said}"
        );
        let stamp = &said["result"]["_meta"][SERVER];
        assert_eq!(stamp.is_object(), is_modern, "{body:?} {said}");
        pipe.hang_up();
        serving.await.unwrap();
    }
    for version in [
        "2024-11-05",
        "2025-03-26",
        LEGACY,
        MODERN,
        "zzz",
        "2027-01-01",
    ] {
        let world = World::new().await;
        let (mut pipe, serving, _) = world.pipe();
        let begun = pipe.ask(&initialize(version, json!({}))).await;
        pipe.say(&initialized()).await;
        let agreed = begun["result"]["protocolVersion"].as_str().unwrap();
        assert!(agreed <= LEGACY, "{version}: {agreed}");
        let said = pipe.ask(&says(1, None)).await;
        assert!(
            said["result"]["_meta"][SERVER].is_null(),
            "{version} {said}"
        );
        pipe.hang_up();
        serving.await.unwrap();
    }
}
