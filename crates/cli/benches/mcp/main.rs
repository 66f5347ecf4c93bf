//! What a governed call costs a client: `ringfence serve` with a JavaScript tool and a durable
//! audit, beside the same protocol without us and the same bytes without the protocol.
//!
//! Prints one JSON object; `cargo xtask bench mcp`. Everything is measured in one run, server
//! after server, by the same clients; processor time is what the kernel charged to the server
//! and to the processes it started. Servers on other people's SDKs are measured beside ours
//! where `cargo xtask peers` has installed them, and left out otherwise. Fails if an answer is wrong, or if a single client waits
//! ten milliseconds: then a small packet waits for an acknowledgement somewhere.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

#[expect(dead_code, reason = "the bench of the bridge uses the rest")]
mod load;
#[expect(dead_code, reason = "the bench of the bridge uses the rest")]
mod server;

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::load::{Era, FULL, Measured};
use crate::server::{OtherSdk, Server};

/// The same echo on the official SDKs: what it is called, what it runs on, what it speaks.
const PEERS: [(&str, OtherSdk, Era); 4] = [
    (
        "TypeScript SDK echo, session",
        OtherSdk::TypeScript("echo-v1.mjs", "@modelcontextprotocol/sdk"),
        Era::Legacy,
    ),
    (
        "TypeScript SDK echo, 2026-07-28",
        OtherSdk::TypeScript("echo-v2.mjs", "@modelcontextprotocol/server"),
        Era::Modern,
    ),
    ("Python SDK echo, session", OtherSdk::Python, Era::Legacy),
    ("Python SDK echo, 2026-07-28", OtherSdk::Python, Era::Modern),
];

/// How many clients call at one time.
const CLIENTS: [usize; 3] = [1, 8, 64];

/// How many times the processor time of a bare echo a governed call may cost, at 64 clients.
const RATIO_MAX: f64 = 4.0;

/// How long half of the calls of a single client may take, in milliseconds.
const WAIT_MS_MAX: f64 = 1.0;

/// An arguments object that every schema refuses.
const WAIT_MS_FAILURE: f64 = 10.0;

fn main() -> ExitCode {
    if let Some(code) = server::child_main() {
        return code;
    }
    let floor = runs(&Server::floor(), Era::Modern);
    let echo = Server::echo();
    let echo_modern = runs(&echo, Era::Modern);
    let echo_session = runs(&echo, Era::Legacy);
    drop(echo);
    let governed = Server::governed();
    let modern = runs(&governed, Era::Modern);
    let session = runs(&governed, Era::Legacy);
    drop(governed);

    let ratio = |above: &[Measured], below: &[Measured]| -> Vec<f64> {
        let pairs = above.iter().zip(below);
        pairs
            .map(|(above, below)| above.cpu_us / below.cpu_us)
            .collect()
    };
    let ratios = ratio(&modern, &echo_modern);
    let alone = [&modern, &session].map(|runs| runs[0].p50_ms);
    let mut report = json!({
        "clients": CLIENTS,
        "axum": table(&floor),
        "rmcp echo, 2026-07-28": table(&echo_modern),
        "rmcp echo, session": table(&echo_session),
        "governed, 2026-07-28": table(&modern),
        "governed, session": table(&session),
        "governed / echo, 2026-07-28": ratios,
        "governed / echo, session": ratio(&session, &echo_session),
        "echo / axum": ratio(&echo_modern, &floor),
        "targets": {
            "governed / echo at 64 clients": verdict(ratios[2], RATIO_MAX),
            "p50 ms alone, 2026-07-28": verdict(alone[0], WAIT_MS_MAX),
            "p50 ms alone, session": verdict(alone[1], WAIT_MS_MAX),
        },
    });
    for (name, peer, era) in PEERS {
        let Some(server) = Server::peer(peer) else {
            report[name] = json!("not installed; `cargo xtask peers` does that");
            continue;
        };
        let measured = runs(&server, era);
        let ours = match era {
            Era::Legacy => &session,
            Era::Modern => &modern,
        };
        report[name] = table(&measured);
        report[format!("{name} / governed")] = json!(ratio(&measured, ours));
    }
    println!("{report:#}");
    match alone.iter().all(|wait| *wait < WAIT_MS_FAILURE) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn runs(server: &Server, era: Era) -> Vec<Measured> {
    CLIENTS
        .map(|clients| load::run(server, era, clients, FULL))
        .into()
}

fn verdict(measured: f64, most: f64) -> Value {
    json!({"measured": measured, "at most": most, "met": measured <= most})
}

fn table(runs: &[Measured]) -> Value {
    let column = |of: fn(&Measured) -> f64| -> Vec<f64> { runs.iter().map(of).collect() };
    let mut table = Map::new();
    table.insert(
        "server cpu us per call".to_owned(),
        column(|run| run.cpu_us).into(),
    );
    table.insert("p50 ms".to_owned(), column(|run| run.p50_ms).into());
    table.insert("p99 ms".to_owned(), column(|run| run.p99_ms).into());
    table.insert(
        "calls per second".to_owned(),
        column(|run| run.per_second).into(),
    );
    Value::Object(table)
}
