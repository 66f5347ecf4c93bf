//! What a bridged call costs: a client calls an echo directly, through `ringfence serve` with
//! all gates and a durable audit, and through other people's proxies.
//!
//! Prints one JSON object; `cargo xtask bench bridge`. Everything is measured in one run by
//! the same clients. Processor time is that of the proxy and of the echo behind it. Proxies are
//! measured where `cargo xtask peers` has installed them, and left out otherwise.
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

use serde_json::{Value, json};

use crate::load::{Era, Measured};
use crate::proxy::Route;

/// How many clients call at one time.
const CLIENTS: usize = 16;

fn main() -> ExitCode {
    if let Some(code) = server::child_main() {
        return code;
    }
    let measure = |route: &Route| load::run(&route.front, Era::Legacy, CLIENTS);
    let direct = Route::direct();
    let bare = measure(&direct);
    drop(direct);
    let mut report = json!({"clients": CLIENTS, "direct": row(&bare)});
    let ours = Route::ringfence();
    let governed = measure(&ours);
    drop(ours);
    report["ringfence"] = row(&governed);
    report["ringfence / direct"] = json!(governed.cpu_us / bare.cpu_us);
    report["p99 ms beyond direct"] = json!(governed.p99_ms - bare.p99_ms);
    for (name, route) in [
        ("fastmcp", Route::fastmcp as fn() -> Option<Route>),
        ("mcp-proxy", Route::mcp_proxy),
    ] {
        let Some(route) = route() else {
            report[name] = json!("not installed; `cargo xtask peers` does that");
            continue;
        };
        let measured = measure(&route);
        report[name] = row(&measured);
        report[format!("ringfence / {name}")] = json!(governed.cpu_us / measured.cpu_us);
    }
    report["many"] = many::measure();
    println!("{report:#}");
    ExitCode::SUCCESS
}

fn row(run: &Measured) -> Value {
    json!({
        "cpu us per call": run.cpu_us, "p50 ms": run.p50_ms, "p99 ms": run.p99_ms,
        "calls per second": run.per_second,
    })
}
