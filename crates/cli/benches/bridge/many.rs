//! Many servers: how long the list of all their tools takes, and what they cost while no
//! one calls.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::{Connection, Era};
use crate::proxy::{SETTINGS, fresh, run, section, serve};

/// Servers, and tools of each.
const SERVERS: usize = 50;
const TOOLS: usize = 20;
/// Lists that are timed.
const LISTS: usize = 50;
/// How long no one calls.
const IDLE: Duration = Duration::from_secs(5);

pub(crate) fn measure() -> Value {
    let home = fresh("bench-bridge-many");
    let mut settings = SETTINGS.to_owned();
    for number in 0..SERVERS {
        settings.push_str(&section(&format!("s{number}"), TOOLS));
    }
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    for number in 0..SERVERS {
        run(
            &home,
            &["servers", "accept", &format!("s{number}"), "--yes"],
        );
    }
    let mut server = serve(home);
    server.tool = "s0__t0".to_owned();
    let mut connection = Connection::open(&server, Era::Legacy);
    let count = connection.list();
    assert_eq!(count, SERVERS * TOOLS, "every tool is listed");
    let mut waits: Vec<_> = (0..LISTS)
        .map(|_| {
            let start = Instant::now();
            connection.list();
            start.elapsed()
        })
        .collect();
    waits.sort_unstable();
    let list_ms = waits[waits.len() / 2].as_secs_f64() * 1e3;
    // Ten of them run, and then no one calls.
    for number in 0..10 {
        connection.tool = format!("s{number}__t0");
        connection.call(1_000 + number, "word");
    }
    thread::sleep(Duration::from_secs(2));
    let cpu = server.cpu();
    thread::sleep(IDLE);
    let idle = (server.cpu() - cpu).as_secs_f64() / IDLE.as_secs_f64();
    json!({
        "servers": SERVERS, "tools": count, "list ms": list_ms,
        "running while idle": 10, "idle cpu, share of a core": idle,
    })
}
