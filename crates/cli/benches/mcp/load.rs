//! Clients that call, each on a connection of its own that stays open, over
//! plain sockets: what they cost must not depend on a library. Every answer is read to its
//! end and must carry the word that was sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::Server;

/// How long clients call, and how often.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Before counting, so that caches and connections are warm.
    pub(crate) warming: Duration,
    /// While counting.
    pub(crate) counting: Duration,
    /// From one call of a client to its next; none if it calls without pause.
    pub(crate) pause: Option<Duration>,
}

/// As many calls as there can be.
pub(crate) const FULL: Load = Load {
    warming: Duration::from_millis(500),
    counting: Duration::from_secs(2),
    pause: None,
};

/// Which protocol the clients speak.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// What one run came to.
pub(crate) struct Measured {
    pub(crate) cpu_us: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) per_second: f64,
}

pub(crate) fn run(server: &Server, era: Era, clients: usize, load: Load) -> Measured {
    try_run(server, era, clients, load).unwrap()
}

/// Nothing if no call came to an end in time.
pub(crate) fn try_run(server: &Server, era: Era, clients: usize, load: Load) -> Option<Measured> {
    let (counting, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut waits, cpu, elapsed) = thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|number| {
                let (counting, ended) = (&counting, &ended);
                scope.spawn(move || client(server, era, number, load.pause, counting, ended))
            })
            .collect();
        thread::sleep(load.warming);
        let (cpu, start) = (server.cpu(), Instant::now());
        counting.store(true, Ordering::Relaxed);
        thread::sleep(load.counting);
        counting.store(false, Ordering::Relaxed);
        let (cpu, elapsed) = (server.cpu() - cpu, start.elapsed());
        ended.store(true, Ordering::Relaxed);
        let waits = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        (waits.collect::<Vec<_>>(), cpu, elapsed)
    });
    waits.sort_unstable();
    if waits.is_empty() {
        return None;
    }
    let count = f64::from(u32::try_from(waits.len()).unwrap());
    let at = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    Some(Measured {
        cpu_us: rounded(cpu.as_secs_f64() * 1e6 / count),
        p50_ms: rounded(at(50)),
        p99_ms: rounded(at(99)),
        per_second: (count / elapsed.as_secs_f64()).round(),
    })
}

/// Two digits after the point.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// One client; the time of each call while counting.
fn client(
    server: &Server,
    era: Era,
    number: usize,
    pause: Option<Duration>,
    counting: &AtomicBool,
    ended: &AtomicBool,
) -> Vec<Duration> {
    let mut connection = Connection::open(server, era);
    let mut waits = Vec::new();
    let mut calls = 0_u64;
    while !ended.load(Ordering::Relaxed) {
        calls += 1;
        let word = format!("word-{number}-{calls}.");
        let start = Instant::now();
        connection.call(calls, &word);
        if counting.load(Ordering::Relaxed) {
            waits.push(start.elapsed());
        }
        if let Some(rest) = pause.and_then(|pause| pause.checked_sub(start.elapsed())) {
            thread::sleep(rest);
        }
    }
    waits
}

pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    era: Era,
    /// What every request starts with.
    head: String,
    body: String,
    /// The tool that is called.
    pub(crate) tool: String,
}

impl Connection {
    pub(crate) fn open(server: &Server, era: Era) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n",
            server.port
        );
        if let Some(token) = &server.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        let mut connection = Connection {
            reader: BufReader::new(stream),
            era,
            head,
            body: String::new(),
            tool: server.tool.clone(),
        };
        match era {
            Era::Legacy => connection.greet(),
            Era::Modern => {
                connection.head += &format!(
                    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {}\r\n",
                    server.tool
                );
            }
        }
        connection
    }

    /// Begins a session.
    fn greet(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        let session = self.receive().unwrap();
        self.head += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self.receive();
    }

    pub(crate) fn call(&mut self, id: u64, word: &str) {
        let mut params = json!({"name": self.tool, "arguments": {"text": word}});
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            });
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        self.receive();
        assert!(self.body.contains(word), "a wrong answer: {}", self.body);
    }

    /// Reads the whole list of tools in a session; how many of them are a server's, not ours.
    pub(crate) fn list(&mut self) -> usize {
        let (mut count, mut cursor) = (0, Value::Null);
        loop {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({"cursor": cursor}),
            };
            self.send(
                &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}),
            );
            self.receive();
            // A stream has its own lines around the answer, and some send an empty event first.
            let lines = self.body.lines();
            let answer = lines
                .map(|line| line.strip_prefix("data:").unwrap_or(line))
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .find(|message| message["result"]["tools"].is_array());
            let answer = answer.unwrap();
            let tools = answer["result"]["tools"].as_array().unwrap();
            let is_of_server = |tool: &&Value| {
                tool["name"]
                    .as_str()
                    .is_some_and(|name| name.contains("__"))
            };
            count += tools.iter().filter(is_of_server).count();
            cursor = answer["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return count;
            }
        }
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let request = format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        self.reader.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// Reads one answer to its end; the id of the session if it names one.
    fn receive(&mut self) -> Option<String> {
        self.body.clear();
        let status = self.line();
        let (mut length, mut is_chunked, mut session) = (0_u64, false, None);
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "transfer-encoding" => is_chunked = value == "chunked",
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        if is_chunked {
            while let length @ 1.. = u64::from_str_radix(&self.line(), 16).unwrap() {
                self.bytes(length);
                self.line();
            }
            self.line();
        } else {
            self.bytes(length);
        }
        assert!(status.contains(" 20"), "{status}: {}", self.body);
        session
    }

    fn bytes(&mut self, length: u64) {
        let mut part = (&mut self.reader).take(length);
        part.read_to_string(&mut self.body).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "the server hung up");
        line.truncate(line.trim_end().len());
        line
    }
}
