//! Clients as plain as can be: what goes over the wire is in the tests.

use std::net::SocketAddr;

use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use futures_util::StreamExt as _;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// The `_meta` of a modern request.
pub(crate) fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

pub(crate) fn initialize(version: &str, capabilities: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }})
}

pub(crate) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
    )
}

/// One connection.
pub(crate) struct Http {
    sender: SendRequest<Body>,
    address: SocketAddr,
    /// Sent with every request.
    pub(crate) headers: Vec<(String, String)>,
}

/// An answer whose body was not read yet.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Body,
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Http {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Http {
            sender,
            address,
            headers: Vec::new(),
        }
    }

    /// Another connection of the same client.
    pub(crate) async fn another(&self) -> Http {
        let mut another = Http::connect(self.address).await;
        another.headers.clone_from(&self.headers);
        another
    }

    pub(crate) async fn send(&mut self, method: Method, path: &str, body: Body) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request.body(body).unwrap());
        let (parts, body) = answer.await.unwrap().into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: Body::new(body),
        }
    }

    pub(crate) async fn post(&mut self, message: &Value) -> Answer {
        self.send(Method::POST, "/mcp", Body::from(message.to_string()))
            .await
    }

    /// Begins a session.
    pub(crate) async fn begin(&mut self, version: &str, capabilities: Value) -> Value {
        let answer = self.post(&initialize(version, capabilities)).await;
        let id = answer
            .headers
            .get("mcp-session-id")
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let result = answer.last().await;
        self.headers.push(("mcp-session-id".to_owned(), id));
        self.headers
            .push(("mcp-protocol-version".to_owned(), version.to_owned()));
        let answer = self.post(&initialized()).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
        result
    }

    /// A modern request with the headers it needs.
    pub(crate) async fn modern(&mut self, message: &Value) -> Answer {
        self.modern_with(message, json!({})).await
    }

    pub(crate) async fn modern_with(&mut self, message: &Value, capabilities: Value) -> Answer {
        let mut message = message.clone();
        let given = message["params"]["_meta"].take();
        let mut all = meta(capabilities);
        if let Value::Object(given) = given {
            all.as_object_mut().unwrap().extend(given);
        }
        message["params"]["_meta"] = all;
        let kept = self.headers.clone();
        let method = message["method"].as_str().unwrap().to_owned();
        self.headers
            .push(("mcp-protocol-version".to_owned(), MODERN.to_owned()));
        self.headers.push(("mcp-method".to_owned(), method));
        let named = &message["params"];
        let name = ["name", "uri", "taskId"]
            .iter()
            .find_map(|key| named[*key].as_str());
        if let Some(name) = name {
            self.headers.push(("mcp-name".to_owned(), name.to_owned()));
        }
        let answer = self.post(&message).await;
        self.headers = kept;
        answer
    }
}

impl Answer {
    pub(crate) async fn text(self) -> String {
        let bytes = to_bytes(self.body, 64 << 20).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Every message of the answer, streamed or not.
    pub(crate) async fn messages(self) -> Vec<Value> {
        if self.is_stream() {
            let mut events = self.events();
            let mut all = Vec::new();
            while let Some(message) = events.next().await {
                all.push(message);
            }
            return all;
        }
        let text = self.text().await;
        vec![serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))]
    }

    /// The last message, which is the answer itself.
    pub(crate) async fn last(self) -> Value {
        self.messages().await.pop().unwrap()
    }

    pub(crate) fn is_stream(&self) -> bool {
        let kind = self.headers.get("content-type");
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }

    pub(crate) fn events(self) -> Events {
        Events {
            stream: self.body.into_data_stream(),
            buffer: String::new(),
        }
    }
}

/// The messages of a stream, one by one.
pub(crate) struct Events {
    stream: BodyDataStream,
    buffer: String,
}

impl Events {
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let event = event.to_owned();
                self.buffer = rest.to_owned();
                let mut data = String::new();
                for line in event.lines() {
                    if let Some(line) = line.strip_prefix("data:") {
                        data.push_str(line.trim_start());
                    }
                }
                if !data.is_empty() {
                    return Some(serde_json::from_str(&data).unwrap());
                }
            }
            let piece = self.stream.next().await?.ok()?;
            self.buffer.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

impl Events {
    /// The id of the first event, which has no message.
    pub(crate) async fn first_id(&mut self) -> String {
        while !self.buffer.contains("\n\n") {
            let piece = self.stream.next().await.unwrap().unwrap();
            self.buffer.push_str(std::str::from_utf8(&piece).unwrap());
        }
        let line = self
            .buffer
            .lines()
            .find_map(|line| line.strip_prefix("id:"));
        line.unwrap().trim().to_owned()
    }
}

/// The client's end of a pair of pipes.
pub(crate) struct Pipe {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: Option<WriteHalf<DuplexStream>>,
}

impl Pipe {
    pub(crate) fn new(stream: DuplexStream) -> Pipe {
        let (read, write) = tokio::io::split(stream);
        Pipe {
            lines: BufReader::new(read).lines(),
            write: Some(write),
        }
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.line(&message.to_string()).await;
    }

    pub(crate) async fn line(&mut self, line: &str) {
        let write = self.write.as_mut().unwrap();
        write.write_all(line.as_bytes()).await.unwrap();
        write.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")))
    }

    /// Says and waits for the answer of that id.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.say(message).await;
        loop {
            let answer = self.next().await.unwrap();
            if answer["id"] == message["id"] && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    pub(crate) async fn begin(&mut self, version: &str, capabilities: Value) -> Value {
        let result = self.ask(&initialize(version, capabilities)).await;
        self.say(&initialized()).await;
        result
    }

    pub(crate) async fn modern(&mut self, message: &Value, capabilities: Value) -> Value {
        let mut message = message.clone();
        message["params"]["_meta"] = meta(capabilities);
        self.ask(&message).await
    }

    /// Closes both ends.
    pub(crate) fn hang_up(self) {}
}
