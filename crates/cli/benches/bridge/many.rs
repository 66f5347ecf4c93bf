//! Many servers: how long the list of all their tools takes, and what they cost while no
//! one calls.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::{Connection, Era};
use crate::proxy::{SETTINGS, fresh, run, section, serve};

/// How many, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Many {
    servers: usize,
    /// Of each server.
    tools: usize,
    /// Lists that are timed.
    lists: usize,
    /// Servers that run while no one calls.
    running: u64,
    /// How long no one calls.
    idle: Duration,
}

impl Many {
    pub(crate) const FULL: Many = Many {
        servers: 50,
        tools: 20,
        lists: 50,
        running: 10,
        idle: Duration::from_secs(5),
    };
    /// Shows that it works.
    pub(crate) const SMALL: Many = Many {
        servers: 3,
        tools: 20,
        lists: 5,
        running: 2,
        idle: Duration::from_millis(500),
    };
}

pub(crate) fn measure(many: Many) -> Value {
    let Many {
        servers,
        tools,
        lists,
        running,
        idle,
    } = many;
    let home = fresh("bench-bridge-many");
    let mut settings = SETTINGS.to_owned();
    for number in 0..servers {
        settings.push_str(&section(&format!("s{number}"), Some(tools)));
    }
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    for number in 0..servers {
        run(
            &home,
            &["servers", "accept", &format!("s{number}"), "--yes"],
        );
    }
    let mut server = serve(home);
    server.tool = "s0__t0".to_owned();
    let mut connection = Connection::open(&server, Era::Legacy);
    let count = connection.list();
    assert_eq!(count, servers * tools, "every tool is listed");
    let mut waits: Vec<_> = (0..lists)
        .map(|_| {
            let start = Instant::now();
            connection.list();
            start.elapsed()
        })
        .collect();
    waits.sort_unstable();
    let list_ms = waits[waits.len() / 2].as_secs_f64() * 1e3;
    // Some of them run, and then no one calls.
    for number in 0..running {
        connection.tool = format!("s{number}__t0");
        connection.call(1_000 + number, "word");
    }
    thread::sleep(Duration::from_secs(2));
    let cpu = server.cpu();
    thread::sleep(idle);
    let share = (server.cpu() - cpu).as_secs_f64() / idle.as_secs_f64();
    json!({
        "servers": servers, "tools": count, "list ms": list_ms,
        "running while idle": running, "idle cpu, share of a core": share,
    })
}
