//! The suite through the bridge: a Ringfence whose one MCP server is the suite's own
//! fixture, on loopback. What the suite passes with the fixture it must pass here, but for
//! the exceptions below.
//!
//! The suite knows its tools, prompts and resources by fixed names, and ours have the name
//! of their server in front. A layer around our transport takes it off and puts it on;
//! nothing else is changed on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, Method};
use axum::middleware::{self, Next};
use axum::response::Response;
use engine::{Alarm, Engine, EngineSettings, WorkerProgram};
use futures_util::StreamExt as _;
use mcp::auth::{Principal, PrincipalId};
use mcp::{Door, Shutdown, http};
use model::Environment;
use model::caller::Caller;
use model::govern::key::Role;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{CallReport, Fixture, Suite};

const NAME: &str = "fixture__";
const PLACE: &str = "ringfence://fixture/";
const SETTINGS: &str = "[exposure]\npreset = \"none\"\n\n[codecall]\nmode = \"off\"\n\n[callers.ann]\nanswers = \"L5\"\n";

/// What does not pass through the bridge, and why: checks that begin so. The list only
/// shrinks: an exception whose checks all pass fails the test.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("completion-complete", "completion is not passed on"),
    ("logging-set-level", "logging is not passed on"),
    ("tools-call-with-logging", "logging is not passed on"),
    (
        "resources-subscribe",
        "single resources cannot be subscribed to",
    ),
    (
        "resources-unsubscribe",
        "single resources cannot be subscribed to",
    ),
    (
        "tools-call-sampling",
        "no server gets the client's language model",
    ),
    ("tasks-", "tasks are not passed on"),
    (
        "server-stateless/sep-2575-server-sends-tools-list-changed",
        "a tool that is new is held until its owner accepts it, so no list changes",
    ),
    (
        "server-stateless/sep-2575-server-sends-prompts-list-changed",
        "the same for a prompt",
    ),
    (
        "server-stateless/sep-2575-server-rejects-undeclared-capability",
        "a server's error of the protocol is the result of the call here, and sampling is not offered",
    ),
    (
        "server-stateless/sep-2575-missing-capability-http-400",
        "the same",
    ),
    (
        "input-required-result-basic-sampling",
        "no server gets the client's language model",
    ),
    (
        "input-required-result-capability-check",
        "no server gets the client's language model",
    ),
    (
        "input-required-result-basic-list-roots",
        "a server learns no roots: the answer is ours, and empty",
    ),
    (
        "input-required-result-multiple-input-requests",
        "one of the three is for the client's language model",
    ),
];

/// What a fixture of the older era cannot show: it ends no answer with a question.
const OLDER_FIXTURE: &[(&str, &str)] = &[("input-required-result-", "only since 2026-07-28")];

/// What a fixture of the newer era cannot show: some of its tools ask in the middle of a
/// call, which is gone.
const NEWER_FIXTURE: &[(&str, &str)] = &[
    ("elicitation-sep1034-defaults", "only before 2026-07-28"),
    ("elicitation-sep1330-enums", "only before 2026-07-28"),
    ("tools-call-elicitation", "only before 2026-07-28"),
];

#[test]
fn the_older_suite_passes_through_the_bridge() {
    for era in ["legacy", "modern"] {
        compare("legacy", "conformance-legacy", &["--suite", "all"], era);
    }
}

#[test]
fn the_newer_suite_passes_through_the_bridge_with_the_revision_of_2025() {
    for era in ["legacy", "modern"] {
        let arguments = &["--requirements", "2025-11-25"];
        compare("2025-11-25", "conformance-modern", arguments, era);
    }
}

#[test]
fn the_newer_suite_passes_through_the_bridge_with_the_revision_of_2026() {
    for era in ["modern", "legacy"] {
        let arguments = &["--requirements", "2026-07-28"];
        compare("2026-07-28", "conformance-modern", arguments, era);
    }
}

/// Runs a suite through the bridge; whatever does not pass must be an exception.
#[track_caller]
fn compare(
    name: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    era: &str,
) {
    let suite = Suite {
        name,
        package,
        arguments,
    };
    let fixture = Fixture::start();
    let bridged = Bridged::start(&fixture.url, era, name);
    let report = suite.run_at(&bridged.url, &format!("{name}-through-{era}"));
    let verdicts = verdicts(&report);
    let more = match era {
        "legacy" => OLDER_FIXTURE,
        _ => NEWER_FIXTURE,
    };
    let known = || EXCEPTIONS.iter().chain(more);
    let is_known = |check: &str| known().any(|(exception, _)| check.starts_with(exception));
    let failed = verdicts
        .iter()
        .filter_map(|(check, failed)| failed.as_ref().map(|why| (check, why)));
    let unknown = failed.filter(|(check, _)| !is_known(check));
    let mut surprises: Vec<_> = unknown
        .map(|(check, why)| format!("{check}: {why}"))
        .collect();
    for (exception, _) in known() {
        let mut about = verdicts
            .iter()
            .filter(|(check, _)| check.starts_with(exception))
            .peekable();
        if about.peek().is_some() && about.all(|(_, failed)| failed.is_none()) {
            surprises.push(format!("{exception}: passes now; take it off the list"));
        }
    }
    assert!(
        surprises.is_empty(),
        "{name} through a bridge of {era}:\n{}",
        surprises.join("\n")
    );
    let scenarios: BTreeSet<_> = report.scenarios.iter().map(|(name, _)| name).collect();
    assert!(scenarios.len() > 20, "{}", report.printed);
}

/// Every check as `scenario/check`, with what the suite says about one that failed.
fn verdicts(report: &CallReport) -> BTreeMap<String, Option<String>> {
    let mut verdicts: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (scenario, checks) in &report.scenarios {
        for check in checks {
            let say = |key: &str| check.get(key).and_then(Value::as_str).unwrap_or("?");
            let failed = match say("status") {
                "SKIPPED" | "INFO" => continue,
                "SUCCESS" => None,
                _ => Some(say("errorMessage").to_owned()),
            };
            let verdict = verdicts.entry(format!("{}/{}", bare(scenario), say("id")));
            let verdict = verdict.or_default();
            *verdict = verdict.take().or(failed);
        }
    }
    verdicts
}

/// The name of a scenario without the moment its folder is named by.
fn bare(scenario: &str) -> &str {
    let head = scenario.split("-202").next().unwrap_or(scenario);
    head.strip_prefix("server-").unwrap_or(head)
}

/// A Ringfence with the fixture behind it.
struct Bridged {
    url: String,
    shutdown: Shutdown,
    serving: Option<JoinHandle<()>>,
    home: PathBuf,
}

impl Bridged {
    fn start(fixture: &str, era: &str, name: &str) -> Bridged {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bridge-{name}-{era}"));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join("tools")).unwrap();
        let section = format!(
            "\n[[server]]\nname = \"fixture\"\nera = \"{era}\"\nurl = {}\nprivate = true\nprompts = true\nresources = true\n",
            json!(fixture)
        );
        fs::write(home.join("ringfence.toml"), format!("{SETTINGS}{section}")).unwrap();
        let shutdown = Shutdown::default();
        let (told, ready) = channel();
        let (path, end) = (home.clone(), shutdown.clone());
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve(&path, end, move |url| told.send(url).unwrap()));
        });
        Bridged {
            url: ready.recv().unwrap(),
            shutdown,
            serving: Some(serving),
            home,
        }
    }
}

impl Drop for Bridged {
    fn drop(&mut self) {
        self.shutdown.soft.cancel();
        self.shutdown.hard.cancel();
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

async fn serve(home: &Path, shutdown: Shutdown, tell: impl FnOnce(String)) {
    let alarm = Alarm::new(|_| ());
    let mut settings = EngineSettings::new(home.to_owned(), Environment::empty(), alarm);
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_mcp-test-worker"));
    settings.program = WorkerProgram::Other(worker, Vec::new());
    let engine = Arc::new(Engine::open(settings).unwrap());
    let servers = engine.servers();
    servers.look("fixture").await.unwrap();
    let review = servers.review("fixture").unwrap();
    // By name: a finding of ours holds nothing that the owner accepts by name.
    let all = review
        .seen
        .items
        .keys()
        .map(|key| key.name.clone())
        .collect();
    servers
        .accept("fixture", &review.digest, Some(&all))
        .unwrap();
    let door = Door::open(Arc::clone(&engine)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let bounds = http::HttpBounds::of(&engine.registry().current().config.serve);
    tell(format!("http://localhost:{port}/mcp"));
    let guard = |routes: http::Routes| {
        let protocol = routes.protocol.layer(middleware::from_fn(translate));
        protocol.merge(routes.probes)
    };
    http::serve(door, listener, bounds, guard, shutdown)
        .await
        .unwrap();
}

/// Puts the server's name on what comes, and takes it off what goes.
async fn translate(request: Request, next: Next) -> Response {
    let (mut parts, mut body) = request.into_parts();
    let caller = Caller::named("ann");
    parts.extensions.insert(Principal {
        id: PrincipalId::key(&caller.name),
        caller,
        role: Role::Agent,
        scopes: Arc::default(),
    });
    if parts.method == Method::POST {
        let bytes = to_bytes(body, 1 << 20).await.unwrap();
        let (bytes, head) = incoming(bytes);
        let name = parts.headers.get("mcp-name");
        let name = name.and_then(|name| name.to_str().ok());
        // One that lies about the name goes on lying.
        if let (Some(head), Some(name)) = (head, name) {
            let name = HeaderValue::from_str(&format!("{head}{}", name.trim())).unwrap();
            parts.headers.insert("mcp-name", name);
        }
        parts.headers.remove(CONTENT_LENGTH);
        body = Body::from(bytes);
    }
    let response = next.run(Request::from_parts(parts, body)).await;
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let pieces = body.into_data_stream();
    let pieces = pieces.map(|piece| piece.map(|bytes| outgoing(&bytes)));
    Response::from_parts(parts, Body::from_stream(pieces))
}

/// A message with our names in it, and what was put in front of its name if it has one.
fn incoming(bytes: Bytes) -> (Bytes, Option<&'static str>) {
    let Ok(mut message) = serde_json::from_slice::<Value>(&bytes) else {
        return (bytes, None);
    };
    let method = message
        .get("method")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let (field, head) = match method.as_str() {
        "tools/call" | "prompts/get" => ("name", NAME),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => ("uri", PLACE),
        _ => return (bytes, None),
    };
    let Some(Value::String(name)) = message.pointer_mut(&format!("/params/{field}")) else {
        return (bytes, None);
    };
    *name = format!("{head}{name}");
    (Bytes::from(message.to_string()), Some(head))
}

fn outgoing(bytes: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(bytes);
    Bytes::from(text.replace(NAME, "").replace(PLACE, ""))
}
