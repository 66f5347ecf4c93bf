//! Servers at an address. Nothing leaves loopback: the wire refuses and remembers.
//! Each attack has a control that succeeds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bridge::http::{HttpEnd, HttpSettings, HttpSettingsFault, end_of, transport};
use bridge::{Server, ServerFault, ServerSettings, ServerTarget};
use model::config::ServerEra;
use model::record::mask::Masker;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError, ServiceExt as _};
use serde_json::Value;
use tokio::time::timeout;

use crate::http_lab::{Lab, Wire};
use crate::support::{self, Lists};

type Running = RunningService<RoleClient, ()>;

pub(crate) async fn open(settings: HttpSettings) -> Result<Running, ClientInitializeError> {
    let transport = transport(settings).unwrap();
    let opening = timeout(Duration::from_secs(30), ().serve(transport));
    opening.await.expect("a handshake has its bound")
}

pub(crate) async fn call(
    running: &Running,
    tool: &'static str,
) -> Result<CallToolResult, ServiceError> {
    let calling = running.call_tool(CallToolRequestParams::new(tool));
    let called = timeout(Duration::from_secs(30), calling).await;
    called.expect("a call has its bound")
}

fn text(result: &CallToolResult) -> String {
    let value = serde_json::to_value(result).unwrap();
    value["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_is_greeted_listed_called_and_left() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    let mut settings = lab.settings(&wire);
    settings.headers = vec![("X-Key".to_owned(), "k-5512".to_owned())];
    assert!(!format!("{settings:?}").contains("5512"));
    let running = open(settings).await.unwrap();
    let tools = running.list_tools(None).await.unwrap();
    assert_eq!(tools.tools.len(), 1);
    for tool in ["echo", "events"] {
        assert_eq!(text(&call(&running, tool).await.unwrap()), "hello");
    }
    let headers = lab.book().headers.clone();
    assert_eq!(headers["x-key"], "k-5512");
    assert_eq!(headers["mcp-session-id"], "session-1");
    assert_eq!(headers["mcp-protocol-version"], "2025-06-18");
    running.cancel().await.unwrap();
    assert_eq!(lab.count("DELETE /mcp"), 1);
}

#[tokio::test]
async fn a_redirect_leads_nowhere_else() {
    for location in [
        "http://169.254.169.254/latest/meta-data/",
        "http://mcp.acme.com/mcp",
        "https://127.0.0.1/mcp",
    ] {
        let (lab, wire) = (Lab::start().await, Arc::<Wire>::default());
        lab.book().redirect = Some(location.to_owned());
        assert!(open(lab.settings(&wire)).await.is_err(), "{location}");
        assert!(wire.strangers().is_empty(), "{location}");
    }
    let (lab, wire) = (Lab::start().await, Arc::default());
    lab.book().redirect = Some("/moved".to_owned());
    let running = open(lab.settings(&wire)).await.unwrap();
    assert_eq!(text(&call(&running, "echo").await.unwrap()), "hello");
}

#[tokio::test]
async fn one_private_address_of_a_name_is_enough_to_stay_away() {
    let (lab, wire) = (Lab::start().await, Arc::<Wire>::default());
    let mut settings = lab.settings(&wire);
    settings.url = "https://mixed.acme.com/mcp".to_owned();
    assert!(open(settings).await.is_err());
    assert!(wire.strangers().is_empty());
    // The control: a public name is called, at the address that was checked.
    let mut settings = lab.settings(&wire);
    settings.url = "https://mcp.acme.com/mcp".to_owned();
    assert!(open(settings).await.is_err(), "the wire refuses");
    let called: Vec<_> = wire.strangers().iter().map(ToString::to_string).collect();
    assert_eq!(called, ["93.184.216.34:443"]);
}

#[tokio::test]
async fn a_server_that_wants_a_token_needs_a_sign_in() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    lab.book().is_protected = true;
    let error = open(lab.settings(&wire)).await.unwrap_err();
    assert!(error.is_authorization_required());
    assert_eq!(end_of(&error), HttpEnd::SignInRequired);
}

#[tokio::test]
async fn a_server_is_told_the_trace_of_a_call_and_no_other() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (lab, wire) = (Lab::start().await, Arc::default());
    let (server, _) = server(&lab, &wire);
    let mut traced = support::tool_call("echo", Value::Null);
    traced.trace = Some(TRACE.to_owned());
    let called: Result<_, ServerFault> = server.call(traced, |_| Ok(())).await;
    called.unwrap();
    let told = lab.book().params["_meta"]["traceparent"].clone();
    assert_eq!(told, TRACE);
    support::call(&server, "echo", Value::Null).await.unwrap();
    assert!(lab.book().params["_meta"]["traceparent"].is_null());
}

#[tokio::test]
async fn a_forgotten_session_is_reported_and_not_made_anew() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    let running = open(lab.settings(&wire)).await.unwrap();
    assert_eq!(text(&call(&running, "echo").await.unwrap()), "hello");
    let before = lab.count("POST /mcp");
    lab.book().is_forgetful = true;
    let error = call(&running, "echo").await.unwrap_err();
    assert_eq!(end_of(&error), HttpEnd::SessionExpired, "{error}");
    assert_eq!(lab.count("POST /mcp"), before + 1, "no second greeting");
}

#[tokio::test]
async fn streams_that_end_break_or_never_end_fail_their_call_only() {
    let (lab, wire) = (Lab::start().await, Arc::<Wire>::default());
    let mut settings = lab.settings(&wire);
    settings.client = lab.client_with(&wire, |limits| {
        limits.stream_silence = Duration::from_millis(300);
    });
    let running = open(settings).await.unwrap();
    for tool in [
        "ends",
        "breaks",
        "silent",
        "endless",
        "large",
        "broken-status",
    ] {
        let error = call(&running, tool).await.expect_err(tool);
        assert_eq!(end_of(&error), HttpEnd::Other, "{tool}");
        assert!(!error.to_string().contains("secret words"), "{error}");
        assert_eq!(
            text(&call(&running, "echo").await.unwrap()),
            "hello",
            "after {tool}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_not_opened_in_a_loop() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    lab.book().stream = Some("retry: 0\n\nid: 1\ndata:\n\n");
    let running = open(lab.settings(&wire)).await.unwrap();
    let waiting = timeout(Duration::from_millis(1500), std::future::pending::<()>());
    assert!(waiting.await.is_err());
    let count = lab.count("GET /mcp");
    assert!((2..=11).contains(&count), "{count} streams");
    assert_eq!(text(&call(&running, "echo").await.unwrap()), "hello");
}

#[tokio::test]
async fn settings_that_would_leak_or_lie_are_refused() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    let check = |change: &dyn Fn(&mut HttpSettings)| {
        let mut settings = lab.settings(&wire);
        change(&mut settings);
        transport(settings).map(|_| ())
    };
    let header = |name: &str, value: &str| {
        let pair = (name.to_owned(), value.to_owned());
        check(&|settings: &mut HttpSettings| settings.headers = vec![pair.clone()])
    };
    assert_eq!(
        check(&|settings| settings.url = "http://mcp.acme.com/".to_owned()),
        Err(HttpSettingsFault::Cleartext)
    );
    for name in ["Accept", "mcp-session-id", "Host", "Mcp-Param-x", "proxy-x"] {
        let reserved = HttpSettingsFault::HeaderReserved(name.to_owned());
        assert_eq!(header(name, "x"), Err(reserved));
    }
    let wrong = HttpSettingsFault::HeaderValue("x-a".to_owned());
    assert_eq!(header("x-a", "a\r\nb: c"), Err(wrong));
    let wrong = HttpSettingsFault::HeaderName("x a".to_owned());
    assert_eq!(header("x a", "a"), Err(wrong));
    assert_eq!(header("x-a", "a"), Ok(()));
    assert_eq!(header("authorization", "Bearer x"), Ok(()));
}

fn server(lab: &Lab, wire: &Arc<Wire>) -> (Server, Arc<Lists>) {
    server_at(lab.settings(wire))
}

pub(crate) fn server_at(address: HttpSettings) -> (Server, Arc<Lists>) {
    let lists = Arc::new(Lists::default());
    let server = Server::new(settings_at(address), Arc::clone(&lists) as _);
    (server, lists)
}

pub(crate) fn settings_at(address: HttpSettings) -> ServerSettings {
    ServerSettings {
        name: "lab".to_owned(),
        target: ServerTarget::Address(address),
        era: ServerEra::Auto,
        start_timeout: Duration::from_secs(20),
        idle: Duration::from_secs(600),
        may_ask: false,
        prompts: true,
        resources: true,
        logs: None,
        masker: Arc::new(Masker::none()),
    }
}

#[tokio::test]
async fn a_forgotten_session_leads_to_a_new_list_that_is_reviewed() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    let (server, lists) = server(&lab, &wire);
    let echo = || support::call(&server, "echo", Value::Null);
    assert_eq!(support::text(&echo().await.unwrap()), "hello");
    assert_eq!(lists.count(), 1);
    // Once, as after a restart: the call runs, on a new session whose list was reviewed.
    lab.book().forgets = 1;
    assert_eq!(support::text(&echo().await.unwrap()), "hello");
    assert_eq!(lists.count(), 2, "the list of the new session was reviewed");
    // Every time: there is no session to call on, and the server is tried less often.
    lab.book().is_forgetful = true;
    let before = lab.count("POST /mcp");
    let fault = echo().await.unwrap_err();
    assert!(matches!(fault, ServerFault::Unreachable(_)), "{fault:?}");
    assert!(server.next_attempt().is_some());
    assert!(lab.count("POST /mcp") - before < 10);
    lab.book().is_forgetful = false;
    server.restart().await;
    assert_eq!(support::text(&echo().await.unwrap()), "hello");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_said_so_with_the_next_attempt() {
    let (lab, wire): (_, Arc<Wire>) = (Lab::start().await, Arc::default());
    {
        let mut book = lab.book();
        (book.is_stateless, book.hangs_up) = (true, true);
    }
    let (server, lists) = server(&lab, &wire);
    let echo = || support::call(&server, "echo", Value::Null);
    assert_eq!(support::text(&echo().await.unwrap()), "hello");
    assert_eq!(server.next_attempt(), None);
    wire.is_cut.store(true, Ordering::Relaxed);
    let fault = echo().await.unwrap_err();
    assert!(matches!(fault, ServerFault::Unreachable(_)), "{fault:?}");
    let words = fault.for_caller("lab");
    assert!(words.contains("could not be reached"), "{words}");
    assert!(words.contains("did not run"), "{words}");
    assert!(server.next_attempt().is_some());
    let fault = echo().await.unwrap_err();
    assert!(matches!(fault, ServerFault::Waiting { .. }), "{fault:?}");
    wire.is_cut.store(false, Ordering::Relaxed);
    server.restart().await;
    assert_eq!(support::text(&echo().await.unwrap()), "hello");
    assert_eq!(lists.count(), 2);
}

/// Attack: another server comes up at the same address, keeps no session that could tell it
/// from the first, and tells of no change.
#[tokio::test]
async fn a_changed_list_is_compared_before_a_call_where_no_server_tells() {
    for (is_modern, era) in [(false, ServerEra::Legacy), (true, ServerEra::Modern)] {
        let (lab, wire) = (Lab::start().await, Arc::default());
        {
            let mut book = lab.book();
            (book.is_stateless, book.is_modern) = (true, is_modern);
        }
        let lists = Arc::new(Lists::default());
        let settings = ServerSettings {
            era,
            ..settings_at(lab.settings(&wire))
        };
        let server = Server::new(settings, Arc::clone(&lists) as _);
        let echo = || {
            let check = |reviewed: &bridge::ReviewedTools| {
                let now = &reviewed.seen.offers.tools[0];
                match now["inputSchema"].get("properties") {
                    None => Ok(()),
                    Some(_) => Err(ServerFault::Held("changed".to_owned())),
                }
            };
            server.call(support::tool_call("echo", Value::Null), check)
        };
        echo().await.unwrap();
        lab.book().tools = Some(serde_json::json!([{"name": "echo", "inputSchema": {
            "type": "object", "properties": {"path": {"type": "string"}}}}]));
        // Within the time that the list counts, it is not asked for again.
        echo().await.unwrap();
        assert_eq!((lists.count(), lab.book().lists), (1, 1));
        let age = match is_modern {
            // It says 0, which is less than the least.
            true => bridge::limit::SERVER_LIST_AGE_MS_MIN,
            false => bridge::limit::SERVER_LIST_AGE_MS_MAX,
        };
        advance(Duration::from_millis(age + 1)).await;
        // Many at once share one fetch, and none of them runs.
        let all = futures_util::future::join_all((0..8).map(|_| echo())).await;
        for called in all {
            assert_eq!(called.unwrap_err(), ServerFault::Held("changed".to_owned()));
        }
        assert_eq!((lists.count(), lab.book().lists), (2, 2), "{era:?}");
    }
}

async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A server that is busy with one call and cannot list meanwhile.
#[tokio::test]
async fn a_list_that_fails_before_a_call_ends_no_other_call() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    {
        let mut book = lab.book();
        (book.is_stateless, book.is_modern) = (true, true);
        book.gate = Some(Arc::new(tokio::sync::Semaphore::new(0)));
    }
    let settings = ServerSettings {
        era: ServerEra::Modern,
        ..settings_at(lab.settings(&wire))
    };
    let server = Server::new(settings, Arc::<Lists>::default());
    let waiting = support::call(&server, "waits", Value::Null);
    let others = async {
        support::until("the call began", || lab.book().params["name"] == "waits").await;
        lab.book().fails_lists = true;
        advance(Duration::from_millis(
            bridge::limit::SERVER_LIST_AGE_MS_MIN + 1,
        ))
        .await;
        // Without a list to compare, the second call does not run.
        let fault = support::call(&server, "echo", Value::Null).await;
        assert!(fault.is_err(), "{fault:?}");
        assert_eq!(lab.book().params["name"], "waits");
        assert_eq!(server.next_attempt(), None);
        lab.book().gate.as_ref().unwrap().add_permits(1);
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(support::text(&waited.unwrap()), "hello");
    // The control: with no other call under way, the connection is given up.
    let fault = support::call(&server, "echo", Value::Null).await;
    assert!(fault.is_err(), "{fault:?}");
    assert!(server.next_attempt().is_some());
}

/// Each outage is over long before the next.
#[tokio::test]
async fn failures_between_which_a_connection_lasted_do_not_add_up() {
    let (lab, wire): (_, Arc<Wire>) = (Lab::start().await, Arc::default());
    {
        let mut book = lab.book();
        (book.is_stateless, book.hangs_up) = (true, true);
    }
    let (server, _) = server(&lab, &wire);
    let echo = || support::call(&server, "echo", Value::Null);
    for outage in 0..=bridge::limit::SERVER_FAILURES_MAX {
        let result = echo()
            .await
            .unwrap_or_else(|fault| panic!("{outage}: {fault}"));
        assert_eq!(support::text(&result), "hello");
        advance(Duration::from_millis(bridge::limit::SERVER_HEALTHY_MS)).await;
        wire.is_cut.store(true, Ordering::Relaxed);
        echo().await.unwrap_err();
        assert!(server.next_attempt().is_some(), "{outage}");
        wire.is_cut.store(false, Ordering::Relaxed);
        advance(Duration::from_millis(
            2 * bridge::limit::SERVER_RETRY_MS_MIN,
        ))
        .await;
    }
}

#[tokio::test]
async fn a_sign_in_that_is_needed_is_a_state_of_the_server() {
    let (lab, wire) = (Lab::start().await, Arc::default());
    lab.book().is_protected = true;
    let (server, lists) = server(&lab, &wire);
    let fault = support::call(&server, "echo", Value::Null)
        .await
        .unwrap_err();
    assert_eq!(fault, ServerFault::SignInRequired);
    assert_eq!(lists.count(), 0);
    // The control: the same server, open.
    lab.book().is_protected = false;
    let result = support::call(&server, "echo", Value::Null).await.unwrap();
    assert_eq!(support::text(&result), "hello");
}
