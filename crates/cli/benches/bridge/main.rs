//! What a bridged call costs: a client calls an echo directly, through `ringfence serve` with
//! all gates and a durable audit, and through other people's proxies.
//!
//! Prints one JSON object; `cargo xtask bench bridge`. Everything is measured in one run by
//! the same clients. A relay that is nothing but the protocol's library on both sides shows what
//! passing a call on costs at least. Processor time is that of the proxy and of the echo behind it. FastMCP's
//! proxy has the echo at an address, `mcp-proxy` over pipes; each is compared with ours in
//! front of the same. Proxies are measured where `cargo xtask peers` has installed them, and
//! left out otherwise. `-- --small` only shows that it works.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

#[path = "../mcp/load.rs"]
mod load;
mod many;
mod proxy;
#[path = "../mcp/server.rs"]
#[expect(dead_code, reason = "the bench of calls uses the rest")]
mod server;

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::load::{Era, FULL, Load, Measured};
use crate::many::Many;
use crate::proxy::Route;

/// How many clients call at one time.
const CLIENTS: usize = 16;

/// From one call of a client to its next, where waiting is measured on a machine that has
/// time: 800 calls a second of all clients.
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    if let Some(code) = server::child_main() {
        return code;
    }
    let is_small = std::env::args().any(|argument| argument == "--small");
    let (load, many) = match is_small {
        true => (
            Load {
                counting: Duration::from_millis(200),
                ..FULL
            },
            Many::SMALL,
        ),
        false => (FULL, Many::FULL),
    };
    let paced = Load {
        pause: Some(PAUSE),
        ..load
    };
    let measure = |route: &Route| load::run(&route.front, Era::Legacy, CLIENTS, load);
    let wait = |route: &Route| load::run(&route.front, Era::Legacy, CLIENTS, paced).p99_ms;
    let direct = Route::direct();
    let (bare, bare_wait) = (measure(&direct), wait(&direct));
    drop(direct);
    let mut report = json!({"clients": CLIENTS, "direct": row(&bare)});
    let ours = Route::ringfence();
    let (governed, governed_wait) = (measure(&ours), wait(&ours));
    drop(ours);
    let pipes = Route::ringfence_pipes();
    let (over_pipes, pipes_wait) = (measure(&pipes), wait(&pipes));
    drop(pipes);
    let relay = Route::relay();
    let relayed = measure(&relay);
    drop(relay);
    measure_newest(load, &mut report);
    report["a relay without gates, over pipes"] = row(&relayed);
    report["relay / direct"] = json!(relayed.cpu_us / bare.cpu_us);
    report["ringfence over pipes / relay"] = json!(over_pipes.cpu_us / relayed.cpu_us);
    report["ringfence"] = row(&governed);
    report["ringfence, over pipes"] = row(&over_pipes);
    report["ringfence / direct"] = json!(governed.cpu_us / bare.cpu_us);
    report["p99 ms beyond direct"] = json!(governed.p99_ms - bare.p99_ms);
    report["p99 ms beyond direct, 800 calls a second"] = json!(governed_wait - bare_wait);
    // A server in its jail counts as less than L4, so a call does not wait for the disk.
    report["p99 ms beyond direct, over pipes, 800 calls a second"] = json!(pipes_wait - bare_wait);
    for (name, route, ours) in [
        (
            "fastmcp",
            Route::fastmcp as fn() -> Option<Route>,
            &governed,
        ),
        ("mcp-proxy", Route::mcp_proxy, &over_pipes),
    ] {
        let Some(route) = route() else {
            report[name] = json!("not installed; `cargo xtask peers` does that");
            continue;
        };
        // Some take seconds for one call while sixteen clients wait.
        let patient = Load {
            counting: 4 * load.counting,
            ..load
        };
        let measured = load::try_run(&route.front, Era::Legacy, CLIENTS, patient);
        let Some(measured) = measured else {
            report[name] = json!("no call came to an end");
            continue;
        };
        report[name] = row(&measured);
        report[format!("ringfence / {name}")] = json!(ours.cpu_us / measured.cpu_us);
    }
    report["many"] = many::measure(many);
    println!("{report:#}");
    ExitCode::SUCCESS
}

/// The same in revision 2026-07-28, of client and server, which has no sessions.
fn measure_newest(load: Load, report: &mut Value) {
    let measure = |route: &Route| load::run(&route.front, Era::Modern, CLIENTS, load);
    let direct = Route::direct();
    let bare = measure(&direct);
    drop(direct);
    report["direct, 2026-07-28"] = row(&bare);
    for (name, route) in [
        ("ringfence, 2026-07-28", Route::ringfence_newest()),
        ("ringfence over pipes, 2026-07-28", Route::ringfence_pipes()),
    ] {
        let governed = measure(&route);
        drop(route);
        report[name] = row(&governed);
        report[format!("{name} / direct")] = json!(governed.cpu_us / bare.cpu_us);
    }
}

fn row(run: &Measured) -> Value {
    json!({
        "cpu us per call": run.cpu_us, "p50 ms": run.p50_ms, "p99 ms": run.p99_ms,
        "calls per second": run.per_second,
    })
}
