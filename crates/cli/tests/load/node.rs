//! Servers of the real program with homes of their own, and what is asked of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "../../../host/tests/lab/postgres.rs"]
#[expect(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this test uses a part of it"
)]
mod postgres;

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A server of a home.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
    pub(crate) address: String,
    server: Child,
}

impl Node {
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Asks it to end, and waits.
    pub(crate) fn stop(mut self) {
        let pid = self.pid().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(asked.unwrap().success());
        self.server.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A database, and homes whose settings name it.
pub(crate) struct Cluster {
    pub(crate) folder: PathBuf,
    url: String,
    settings: String,
}

impl Cluster {
    pub(crate) fn new(concurrent: u64) -> Cluster {
        let port = postgres::server().address.port();
        let cluster = Cluster {
            folder: std::env::temp_dir().join(format!("ringfence-load-{}", std::process::id())),
            url: format!("postgres://postgres@127.0.0.1:{port}/load?sslmode=disable"),
            settings: format!(
                "[serve]\ncalls_per_minute = 100000\n[exposure]\npreset = \"everything\"\n[approvals]\nautomation = \"L2\"\n\
                 wait_seconds = 10\n\n[[rule]]\nid = \"ask\"\neffect = \"ask\"\n\
                 tools = [\"encodeBase64\"]\n\n[[limit]]\nid = \"few\"\nconcurrent = {concurrent}\n\
                 tools = [\"countWords\"]\n"
            ),
        };
        cluster.sql("postgres", "CREATE DATABASE load");
        cluster
    }

    /// Runs a statement as the owner of the server; what it says.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let port = postgres::server().address.port().to_string();
        let said = Command::new("psql")
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "postgres",
                "-d",
                database,
            ])
            .args(["-q", "-t", "-A", "-c", sql])
            .env("PGPASSWORD", postgres::PASSWORD)
            .output()
            .unwrap();
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn home(&self, name: &str) -> PathBuf {
        let home = self.folder.join(name);
        if !home.exists() {
            fs::create_dir_all(&home).unwrap();
            let text = format!("[store]\nurl = \"{}\"\n{}", self.url, self.settings);
            fs::write(home.join("ringfence.toml"), text).unwrap();
            let secrets = home.join("secrets.env");
            let line = format!("RINGFENCE_STORE_PASSWORD={}\n", postgres::PASSWORD);
            fs::write(&secrets, line).unwrap();
            fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
        }
        home
    }

    /// Starts a server. While the database is away it does not start, and is started again.
    pub(crate) fn serve(&self, name: &str) -> Node {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(node) = self.try_serve(name) {
                return node;
            }
            assert!(Instant::now() < until, "`{name}` does not start");
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    fn try_serve(&self, name: &str) -> Option<Node> {
        let home = self.home(name);
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("{name}.err")))
            .unwrap();
        let mut server = program(&home)
            .args(["serve", "--json", "--no-auth", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            server.wait().unwrap();
            return None;
        };
        // Kept open, so that nothing it prints later breaks it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let url = ready.get("url").and_then(Value::as_str).unwrap();
        let address = url.strip_prefix("http://").unwrap();
        Some(Node {
            name: name.to_owned(),
            home,
            address: address.strip_suffix("/mcp").unwrap().to_owned(),
            server,
        })
    }
}

fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    command
        .env_clear()
        .env("RINGFENCE_HOME", home)
        .stdin(Stdio::null());
    command
}

/// What a command says.
pub(crate) fn run(home: &Path, words: &[&str]) -> String {
    let said = program(home).args(words).output().unwrap();
    let mut all = String::from_utf8_lossy(&said.stdout).into_owned();
    all.push_str(&String::from_utf8_lossy(&said.stderr));
    all
}

/// A call; nothing if no whole answer came.
pub(crate) fn call(address: &str, tool: &str, arguments: &str) -> Option<String> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{META}}}}}"#
    );
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\nhost: {address}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.contains("jsonrpc").then_some(answer)
}

/// A call that a person must agree to.
pub(crate) fn question(address: &str, number: u64) -> Option<String> {
    call(
        address,
        "encodeBase64",
        &format!("{{\"text\":\"question {number}\"}}"),
    )
}

/// The id of the call that an answer is about.
pub(crate) fn call_id(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once("\"ringfence/callId\":\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Agrees to the questions that wait. Whether there was one.
pub(crate) fn automate(home: &Path) -> bool {
    let listed = program(home).args(["approvals", "list", "--json"]).output();
    let Ok(Value::Array(waiting)) = serde_json::from_slice(&listed.unwrap().stdout) else {
        return false;
    };
    let ids = waiting.iter().filter_map(|one| one.get("id")?.as_str());
    let mut is_any = false;
    for id in ids.take(2) {
        run(
            home,
            &[
                "approvals",
                "approve",
                id,
                "--automation",
                "--scope",
                "once",
            ],
        );
        is_any = true;
    }
    is_any
}

pub(crate) fn resident_kilobytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

pub(crate) fn descriptors(pid: u32) -> u64 {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let count = entries.map_or(0, |entries| entries.count());
    u64::try_from(count).unwrap_or(u64::MAX)
}
