//! What a server keeps for clients that do not read, in a process of its own whose memory can
//! be looked at.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{META, command, first_line, terminate};

/// What the tool returns. It leaves twice: as text and as structure.
const BYTES: usize = 6_000_000;
/// Values the other tool returns.
const VALUES: usize = 60_000;
/// Connections of one key that each leave such an answer unread: 288 MB, were all kept.
const CONNECTIONS: usize = 24;
/// What the server may grow by: 64 MiB of answers that wait, and what it takes to make one.
const GROWTH_KIB_MAX: u64 = 176 << 10;
/// What is left of it soon after.
const LEFT_KIB_MAX: u64 = 24 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that goes with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A home with a tool that says much, a key, and the server.
fn start(home: &Path) -> (Server, String, String) {
    let at = home.display().to_string();
    let run = |arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().copied().chain(["--home", &at]).collect();
        let output = ringfence(&arguments).output();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        said
    };
    std::fs::create_dir_all(home.join("tools")).unwrap();
    let many = format!("return Array.from({{length: {VALUES}}}, (_, i) => ({{id: 'item ' + i}}))");
    for (name, code) in [
        ("long", format!("return 'x'.repeat({BYTES})")),
        ("many", many),
    ] {
        let tool = json!({
            "name": name, "description": "Says much.", "codeType": "Javascript", "code": code,
        });
        std::fs::write(home.join(format!("tools/{name}.json")), tool.to_string()).unwrap();
        run(&["publish", name]);
    }
    let key = run(&["keys", "add", "eve"]);
    let key = key.lines().next().unwrap().to_owned();
    let mut server = command(&["serve", "--json", "--listen", "127.0.0.1:0"], home);
    let ready: Value = serde_json::from_str(&first_line(&mut server)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    (Server(server), address.to_owned(), key)
}

/// Calls a tool and reads the first byte of the answer, with so much room for the rest.
fn call(address: &str, key: &str, tool: &str, room: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, room).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{META}}}}}"#
    );
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stream
}

fn whole(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn memory_kib(Server(server): &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse().unwrap()
}

#[test]
fn unread_answers_take_bounded_memory_that_is_freed() {
    let home = scratch("memory").join("ring");
    let (mut server, address, key) = start(&home);
    assert!(whole(call(&address, &key, "long", 4 << 20)).len() > 2 * BYTES);
    let before = memory_kib(&server);
    let mut most = before;
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        // The kernel is not to read in this client's place.
        streams.push(call(&address, &key, "long", 4 << 10));
        most = most.max(memory_kib(&server));
    }
    let grown = most - before;
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB more");
    // The measure measures: some of them are kept.
    assert!(grown > 24 << 10, "{grown} KiB more");
    // The others are told, and the audit has each.
    let said: Vec<_> = streams
        .split_off(CONNECTIONS / 2)
        .into_iter()
        .map(whole)
        .collect();
    assert!(
        said.iter().all(|said| said.contains("call.busy")),
        "{}",
        said[0].len()
    );
    let at = home.display().to_string();
    let listed = ["audit", "list", "--json", "--limit", "100", "--home", &at];
    let listed: Value = serde_json::from_slice(&ringfence(&listed).output().stdout).unwrap();
    let refused = |entry: &&Value| {
        let code = entry.pointer("/closing/error/code");
        code.and_then(Value::as_str) == Some("call.busy")
    };
    let refused = listed.as_array().unwrap().iter().filter(refused).count();
    assert!(refused >= said.len(), "{refused}");
    // Once the client has gone, all memory is returned.
    drop(streams);
    goes_back(&server, before);
    // A client that reads is served as before.
    assert!(whole(call(&address, &key, "long", 4 << 20)).len() > 2 * BYTES);
    assert_eq!(terminate(&mut server.0), Some(0));
}

/// Many small values at the same time leave an allocator with holes, which are the system's
/// to have as well.
#[test]
fn memory_of_many_small_values_comes_back() {
    let home = scratch("memory-small").join("ring");
    let (mut server, address, key) = start(&home);
    assert!(whole(call(&address, &key, "many", 4 << 20)).len() > VALUES);
    let before = memory_kib(&server);
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS / 2 {
            scope.spawn(|| {
                let answer = whole(call(&address, &key, "many", 4 << 20));
                assert!(answer.len() > VALUES, "{answer}");
            });
        }
    });
    goes_back(&server, before);
    assert_eq!(terminate(&mut server.0), Some(0));
}

fn goes_back(server: &Server, before: u64) {
    let began = Instant::now();
    loop {
        let left = memory_kib(server).saturating_sub(before);
        if left < LEFT_KIB_MAX {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{left} KiB stay");
        // Sleeps: looks again until it is so.
        std::thread::sleep(Duration::from_millis(50));
    }
}
