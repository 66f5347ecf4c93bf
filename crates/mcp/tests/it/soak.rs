//! Clients that come by the thousand and never say goodbye: sessions that are never ended, streams that
//! are dropped. In a process of its own, so that its memory can be looked at.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{initialize, meta, request};

/// Sessions of one round.
const SESSIONS: usize = 400;

/// Streams at one time.
const STREAMS: usize = 200;

/// Milliseconds a session may be idle where it is to go.
const IDLE_MS: u64 = 1_000;

/// What is not gone by then stays.
const PATIENCE: Duration = Duration::from_secs(30);

/// Rounds after which the allocator has what it needs.
const WARMING: usize = 3;

/// How much more memory there may be after all rounds than after those. A session takes about
/// 50 KiB, so that even a tenth of them would show.
const GROWTH_KIB_MAX: u64 = 16 << 10;

#[test]
fn abandoned_sessions_leave_nothing_behind() {
    let server = Server::start(SESSIONS * 2, IDLE_MS);
    let mut warm = 0;
    for round in 0..rounds() {
        for _ in 0..SESSIONS {
            server.greet("200");
        }
        assert!(server.left("sessions") > 0, "in round {round}");
        server.until_none("sessions");
        server.until_none("sessions of rmcp");
        if round < WARMING {
            warm = server.memory_kib();
        }
    }
    let grown = server.memory_kib().saturating_sub(warm);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB more than at first");
}

/// Official clients do not end their sessions; the next client finds room all the same.
#[test]
fn abandoned_sessions_keep_no_client_out() {
    let server = Server::start(8, 600_000);
    for _ in 0..40 {
        server.greet("200");
        assert!(server.left("sessions") <= 8);
    }
    assert_eq!(server.left("sessions"), 8);
    // The last one that gave way may still be closing.
    assert!(server.left("sessions of rmcp") <= 9);
}

/// A client that asks for a session and hangs up leaves one that counts: rmcp keeps none
/// that the table does not know.
#[test]
fn sessions_of_clients_that_hang_up_count() {
    let server = Server::start(8, 600_000);
    for round in 0..60 {
        let stream = server.send(&initialize("2025-11-25", json!({})), "2025-11-25");
        if round % 2 == 0 {
            // Some leave before the answer, some while it comes.
            std::thread::yield_now();
        }
        drop(stream);
    }
    let start = Instant::now();
    loop {
        let (table, rmcp) = (server.left("sessions"), server.left("sessions of rmcp"));
        assert!(table <= 8, "{table}");
        if table == rmcp {
            break;
        }
        // Sooner than rmcp gives up a session without a first message by itself.
        assert!(
            start.elapsed() < PATIENCE / 3,
            "{table} in the table, {rmcp} kept"
        );
        // Sleeps: those that gave way are closed in tasks of their own.
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn dropped_streams_leave_nothing_behind() {
    let server = Server::start(SESSIONS, IDLE_MS);
    let mut warm = 0;
    let params = json!({"_meta": meta(json!({})), "notifications": {"toolsListChanged": true}});
    let listen = request(1, "subscriptions/listen", params);
    for round in 0..rounds() {
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            let mut stream = server.send(&listen, "2026-07-28");
            // The acknowledgement is there, so the stream is.
            let mut line = String::new();
            while !line.contains("acknowledged") {
                line.clear();
                assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
            }
            streams.push(stream);
        }
        assert_eq!(server.left("listeners"), STREAMS, "in round {round}");
        drop(streams);
        server.until_none("listeners");
        if round < WARMING {
            warm = server.memory_kib();
        }
    }
    let grown = server.memory_kib().saturating_sub(warm);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB more than at first");
}

/// Thousands of clients where there is time for it.
fn rounds() -> usize {
    match std::env::var_os("SLOW_TESTS") {
        Some(_) => WARMING + 7,
        None => WARMING + 2,
    }
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(sessions_max: usize, idle_ms: u64) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-fixture"))
            .args([sessions_max.to_string(), idle_ms.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = ready["url"].as_str().unwrap();
        let port = url.trim_end_matches("/mcp").rsplit(':').next().unwrap();
        let port = port.parse().unwrap();
        Server { child, port }
    }

    /// Sends a message on a connection of its own; the answer is the caller's to read.
    fn send(&self, message: &Value, version: &str) -> BufReader<TcpStream> {
        let body = message.to_string();
        let method = message["method"].as_str().unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: {version}\r\nmcp-method: {method}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len(),
        );
        self.say(&head)
    }

    /// Begins a session, or fails to, and goes away; the answer.
    #[track_caller]
    fn greet(&self, status: &str) -> String {
        let answer = self.post(&initialize("2025-11-25", json!({})), "2025-11-25");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        answer
    }

    /// Sends a message and reads the answer to its end.
    fn post(&self, message: &Value, version: &str) -> String {
        let mut answer = String::new();
        self.send(message, version)
            .read_to_string(&mut answer)
            .unwrap();
        answer
    }

    fn say(&self, text: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// How many of these the server still keeps.
    fn left(&self, what: &str) -> usize {
        let mut answer = String::new();
        self.say("GET /left HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            .read_to_string(&mut answer)
            .unwrap();
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let left: Value = serde_json::from_str(body).unwrap();
        usize::try_from(left[what].as_u64().unwrap()).unwrap()
    }

    #[track_caller]
    fn until_none(&self, what: &str) {
        let start = Instant::now();
        while self.left(what) > 0 {
            assert!(
                start.elapsed() < PATIENCE,
                "{} {what} stay",
                self.left(what)
            );
            // Sleeps: looks again and again until none is left.
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
