//! A server the tools of these tests wait for, so that a call takes exactly as long
//! as its test wants.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::document;

pub(crate) struct Lab {
    listener: TcpListener,
}

/// A tool that waits here.
pub(crate) struct Held {
    stream: TcpStream,
}

impl Lab {
    pub(crate) async fn new() -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Lab { listener }
    }

    /// A tool called `slow` that asks here and returns the answer.
    pub(crate) fn tool(&self) -> Value {
        let port = self.listener.local_addr().unwrap().port();
        let code = format!(
            "if (!go) return 0; const r = await fetch('http://127.0.0.1:{port}/'); return await r.text()"
        );
        let more = json!({
            "params": [{"name": "go", "type": "BOOLEAN", "required": true, "testValue": "false"}],
            "sandboxOverrides": {"networkMode": "allowlist", "hostsAllow": ["127.0.0.1"]},
        });
        document("slow", &code, more)
    }

    /// Waits until a call is under way.
    pub(crate) async fn arrived(&self) -> Held {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut seen).await.unwrap();
        }
        Held { stream }
    }
}

impl Held {
    /// Lets it go on.
    pub(crate) async fn release(mut self) {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone";
        self.stream.write_all(answer).await.unwrap();
    }

    /// Waits until the other side hangs up: the work has stopped.
    pub(crate) async fn gone(mut self) {
        let mut seen = Vec::new();
        while matches!(self.stream.read_buf(&mut seen).await, Ok(read) if read > 0) {}
    }
}
