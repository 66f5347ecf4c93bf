//! The load balancers of the guide, with the text of the guide: HAProxy and nginx from Debian's
//! packages in front of two servers. A session stays on its node, and a node that is gone is
//! left out.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::world::{Home, Server};

/// Ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn debian() -> PathBuf {
    root().join("target/peers/debian").canonicalize().unwrap()
}

/// A program of the packages, with their libraries.
fn program(name: &str) -> Command {
    let path = debian().join("usr/sbin").join(name);
    assert!(path.exists(), "{}; run `cargo xtask peers`", path.display());
    let libraries = fs::read_dir(debian().join("usr/lib")).unwrap();
    let libraries = libraries.map(|entry| entry.unwrap().path().display().to_string());
    let libraries: Vec<String> = libraries.collect();
    let mut command = Command::new(path);
    command
        .env("LD_LIBRARY_PATH", libraries.join(":"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The settings of a program as the guide has them, for these nodes and this address.
fn settings(file: &str, address: &str, nodes: &[&str]) -> String {
    let guide = fs::read_to_string(root().join("docs/guide/cluster.md")).unwrap();
    let start = format!("<!-- example: file={file} -->\n```text\n");
    let (_, rest) = guide.split_once(&start).unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let mut text = text.replace("10.0.0.100:80", address);
    for (number, node) in nodes.iter().enumerate() {
        text = text.replace(&format!("10.0.0.{}:7464", number + 1), node);
    }
    // The guide has more nodes than this test.
    let lines = text.lines().filter(|line| !line.contains("10.0.0."));
    lines.map(|line| format!("{line}\n")).collect()
}

fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

/// A request under the name clients use; nothing if there is no answer.
fn send(address: &str, session: Option<&str>, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let session =
        session.map(|id| format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-06-18\r\n"));
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: mcp.example.com\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{}connection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        session.unwrap_or_default(),
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// A new session of the older protocol.
fn begin(address: &str) -> Option<String> {
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let answer = send(address, None, hello)?.to_lowercase();
    let mut lines = answer.lines();
    let id = lines.find_map(|line| line.strip_prefix("mcp-session-id: "))?;
    Some(id.trim().to_owned())
}

/// Waits for a session: a balancer takes a moment to find out who is there.
fn begin_soon(address: &str) -> String {
    let within = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(session) = begin(address) {
            return session;
        }
        assert!(Instant::now() < within, "no session through {address}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

fn address_of(server: &Server) -> &str {
    let address = server.url.strip_prefix("http://").unwrap();
    address.strip_suffix("/mcp").unwrap()
}

fn homes(name: &str) -> [Home; 2] {
    ["one", "other"].map(|which| {
        let home = Home::new(&format!("{name}-{which}"));
        home.settings("[serve]\nhosts = [\"mcp.example.com\"]\n");
        home
    })
}

/// Sessions stay where they began, and go on after one of the nodes is gone.
/// `alone` looks at what the balancer does when both are.
fn try_out(
    name: &str,
    start: impl FnOnce(&str, &[&str], &Path) -> Running,
    alone: impl FnOnce(&str),
) {
    let homes = homes(name);
    let [one, other] = homes.each_ref().map(Home::serve_open);
    let folder = PathBuf::from(homes[0].path()).join("balancer");
    fs::create_dir_all(&folder).unwrap();
    let address = free_address();
    let nodes = [address_of(&one), address_of(&other)];
    let _running = start(&address, &nodes, &folder);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#;
    for _ in 0..4 {
        let session = begin_soon(&address);
        for _ in 0..4 {
            let listed = send(&address, Some(&session), list).unwrap();
            assert!(listed.starts_with("HTTP/1.1 200"), "{listed}");
        }
    }
    drop(one);
    // From the first request on: one that meets the dead node goes to the other, for
    // nothing of it was sent.
    for number in 0..8 {
        assert!(begin(&address).is_some(), "request {number} after the end");
    }
    let session = begin_soon(&address);
    let listed = send(&address, Some(&session), list).unwrap();
    assert!(listed.starts_with("HTTP/1.1 200"), "{listed}");
    drop(other);
    alone(&address);
}

/// What HAProxy answers when no node does: that it is worth trying again.
fn says_when_to_try_again(address: &str) {
    let within = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = send(address, None, "{}").unwrap_or_default();
        if answer.starts_with("HTTP/1.1 503") {
            assert!(
                answer.to_lowercase().contains("\r\nretry-after: 1\r\n"),
                "{answer}"
            );
            assert!(answer.ends_with("no node is ready\n"), "{answer}");
            return;
        }
        assert!(Instant::now() < within, "{answer}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn the_haproxy_of_the_guide_balances() {
    let start = |address: &str, nodes: &[&str], folder: &Path| {
        let path = folder.join("haproxy.cfg");
        fs::write(&path, settings("haproxy.cfg", address, nodes)).unwrap();
        let checked = program("haproxy").arg("-c").arg("-f").arg(&path).status();
        assert!(checked.unwrap().success());
        Running(program("haproxy").arg("-f").arg(&path).spawn().unwrap())
    };
    try_out("haproxy", start, says_when_to_try_again);
}

#[test]
fn the_nginx_of_the_guide_balances() {
    let start = |address: &str, nodes: &[&str], folder: &Path| {
        let guide = settings("nginx.conf", address, nodes);
        let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let places = places.map(|place| format!("{place}_temp_path {place};\n"));
        let text = format!(
            "daemon off;\nmaster_process off;\npid pid;\nevents {{}}\nhttp {{\naccess_log off;\n{}{guide}}}\n",
            places.concat()
        );
        let path = folder.join("nginx.conf");
        fs::write(&path, text).unwrap();
        let nginx = || {
            let mut nginx = program("nginx");
            nginx
                .arg("-p")
                .arg(folder)
                .args(["-e", "stderr", "-c"])
                .arg(&path);
            nginx
        };
        assert!(nginx().arg("-t").status().unwrap().success());
        Running(nginx().spawn().unwrap())
    };
    // It has nothing to say about when to try again.
    try_out("nginx", start, |_| ());
}
