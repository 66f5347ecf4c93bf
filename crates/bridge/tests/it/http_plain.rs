//! Calls of the newest revision that go without rmcp end as those that go through it.

use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use bridge::{ProgressSink, Server, ServerFault, ServerSettings, ToolCall, ToolResult};
use model::config::ServerEra;
use rmcp::model::RequestId;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::settings_at;
use crate::http_lab::{Lab, Wire};
use crate::support::{self, Lists};

async fn modern_lab() -> Lab {
    let lab = Lab::start().await;
    {
        let mut book = lab.book();
        (book.is_stateless, book.is_modern) = (true, true);
    }
    lab
}

fn server(lab: &Lab, change: impl FnOnce(&mut ServerSettings)) -> Server {
    let wire: Arc<Wire> = Arc::default();
    let mut settings = settings_at(lab.settings(&wire));
    settings.era = ServerEra::Modern;
    change(&mut settings);
    Server::new(settings, Arc::<Lists>::default())
}

/// Replies that are no messages.
const UNREADABLE: [&str; 3] = ["empty", "no-json", "no-message"];

/// With a sink for progress, a call needs rmcp.
fn through_rmcp(tool: &str) -> ToolCall {
    let mut call = support::tool_call(tool, json!({"a": [1, null]}));
    call.progress = Some(ProgressSink::new(|_, _, _| {}));
    call
}

fn plain(tool: &str) -> ToolCall {
    support::tool_call(tool, json!({"a": [1, null]}))
}

async fn run(server: &Server, call: ToolCall) -> Result<ToolResult, ServerFault> {
    let called = timeout(Duration::from_secs(30), server.call(call, |_| Ok(())));
    called.await.expect("a call has its bound")
}

/// Whether the last call went without rmcp, which numbers its requests.
fn was_plain(lab: &Lab) -> bool {
    let id: RequestId = serde_json::from_value(lab.book().id.clone()).unwrap();
    matches!(id, RequestId::String(_))
}

#[tokio::test]
async fn a_plain_call_ends_as_one_through_rmcp() {
    for tool in [
        "echo",
        "events",
        "pings-and-notices",
        "ends",
        "breaks",
        "large",
        "html",
        "empty",
        "no-json",
        "no-message",
        "broken-status",
        "status-400",
        "status-403",
        "status-404",
        "status-413",
        "status-429",
        "status-500",
        "status-503",
        "error-200",
        "error-400",
        "error-403",
        "error-404",
        "error-500",
    ] {
        let lab = modern_lab().await;
        // A server each: some of these faults end the connection.
        let ours = run(&server(&lab, |_| {}), plain(tool)).await;
        assert!(was_plain(&lab), "{tool}");
        let sent = lab.book().params.clone();
        let theirs = run(&server(&lab, |_| {}), through_rmcp(tool)).await;
        assert!(!was_plain(&lab), "{tool}");
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{tool}"),
            // What cannot be read is called that, where rmcp has a broken connection.
            (Err(ServerFault::Protocol(words)), Err(ServerFault::Closed(_))) => {
                assert!(UNREADABLE.contains(&tool), "{tool}: {words}");
            }
            (Err(ours), Err(theirs)) => {
                let same = discriminant(ours) == discriminant(theirs);
                assert!(same, "{tool}: {ours:?}, through rmcp {theirs:?}");
            }
            _ => panic!("{tool}: {ours:?}, through rmcp {theirs:?}"),
        }
        let mut expected = lab.book().params.clone();
        let meta = expected["_meta"].as_object_mut().unwrap();
        meta.remove("progressToken")
            .expect("rmcp asks for progress");
        assert_eq!(sent, expected, "{tool}");
    }
}

/// With rmcp and without, in both eras.
#[tokio::test]
async fn half_a_character_is_read_as_the_sign_for_one() {
    for is_modern in [true, false] {
        let lab = match is_modern {
            true => modern_lab().await,
            false => Lab::start().await,
        };
        for tool in ["half", "half-events", "half-error"] {
            for call in [plain(tool), through_rmcp(tool)] {
                let server = server(&lab, |settings| {
                    if !is_modern {
                        settings.era = ServerEra::Legacy;
                    }
                });
                let called = run(&server, call).await;
                let said = match &called {
                    Ok(result) => support::text(result),
                    Err(ServerFault::Refused { message, .. }) => message,
                    Err(fault) => panic!("{tool}: {fault:?}"),
                };
                assert_eq!(said, "a\u{fffd}", "{tool}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_none() {
    let lab = modern_lab().await;
    let server = server(&lab, |_| {});
    let fault = run(&server, plain("another-id")).await.unwrap_err();
    assert!(matches!(fault, ServerFault::Protocol(_)), "{fault:?}");
    assert!(was_plain(&lab));
    // Accepted, as if it were a notice: there is nothing to wait for.
    let fault = run(&server, plain("accepted")).await.unwrap_err();
    assert!(matches!(fault, ServerFault::Closed(_)), "{fault:?}");
    assert!(run(&server, plain("echo")).await.is_ok());
}

#[tokio::test]
async fn a_plain_call_that_is_given_up_or_too_slow_ends_its_request() {
    let lab = modern_lab().await;
    let server = server(&lab, |_| {});
    let mut slow = plain("silent");
    slow.timeout = Duration::from_millis(300);
    let fault = run(&server, slow).await.unwrap_err();
    assert!(matches!(fault, ServerFault::Timeout(_)), "{fault:?}");
    support::until("its reply ended", || lab.book().ended == 1).await;
    let given_up = run(&server, plain("silent"));
    assert!(timeout(Duration::from_millis(300), given_up).await.is_err());
    support::until("the second reply ended", || lab.book().ended == 2).await;
    // Others go on.
    assert!(run(&server, plain("echo")).await.is_ok());
}

#[tokio::test]
async fn a_renewed_token_and_a_lost_one_count_for_plain_calls() {
    let lab = modern_lab().await;
    let server = server(&lab, |_| {});
    assert!(run(&server, plain("echo")).await.is_ok());
    lab.book().is_protected = true;
    let fault = run(&server, plain("echo")).await.unwrap_err();
    assert_eq!(fault, ServerFault::SignInRequired);
}

/// The schema says that an argument is repeated as a header, which rmcp knows how to do.
#[tokio::test]
async fn a_tool_with_headers_goes_through_rmcp() {
    let lab = modern_lab().await;
    lab.book().tools = Some(json!([{"name": "echo", "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }}]));
    let server = server(&lab, |_| {});
    let call = support::tool_call("echo", json!({"region": "north"}));
    assert!(run(&server, call).await.is_ok());
    assert!(!was_plain(&lab));
    assert_eq!(lab.book().headers["mcp-param-region"], "north");
}

/// A legacy session is rmcp's own.
#[tokio::test]
async fn an_older_revision_goes_through_rmcp() {
    let lab = Lab::start().await;
    let server = server(&lab, |settings| settings.era = ServerEra::Legacy);
    assert!(run(&server, plain("echo")).await.is_ok());
    assert!(!was_plain(&lab));
}

#[tokio::test]
async fn a_plain_call_says_who_asks_what_of_which_revision() {
    let lab = modern_lab().await;
    let server = server(&lab, |settings| settings.may_ask = true);
    assert!(run(&server, plain("echo")).await.is_ok());
    let book = lab.book();
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(book.headers[name], value);
    }
    let meta = &book.params["_meta"];
    let key = |word: &str| format!("io.modelcontextprotocol/{word}");
    assert_eq!(meta[key("protocolVersion")], "2026-07-28");
    assert_eq!(meta[key("clientInfo")]["name"], "ringfence");
    let elicitation = &meta[key("clientCapabilities")]["elicitation"];
    assert!(elicitation.is_object(), "{meta}");
    assert_eq!(book.params["arguments"], json!({"a": [1, null]}));
    assert_eq!(book.params["inputResponses"], Value::Null);
}
