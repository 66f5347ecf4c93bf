//! Two servers with homes of their own on one Postgres: what one decides holds for both, and
//! what happens once happens once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{META, command, first_line, send, terminate};

#[path = "../../../host/tests/lab/postgres.rs"]
#[expect(
    dead_code,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these tests use a part of it"
)]
mod postgres;

/// A server of a home.
struct Node {
    home: PathBuf,
    server: Child,
    address: String,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A database of its own, and homes whose settings name it.
struct Nodes {
    folder: PathBuf,
    url: String,
    settings: &'static str,
}

impl Nodes {
    fn new(name: &str, settings: &'static str) -> Nodes {
        let database = format!("cli_{}", name.replace('-', "_"));
        let server = postgres::server();
        let make = format!("CREATE DATABASE {database}");
        let port = server.address.port().to_string();
        let made = std::process::Command::new("psql")
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "postgres",
                "-q",
                "-c",
                &make,
            ])
            .env("PGPASSWORD", postgres::PASSWORD)
            .status();
        assert!(made.unwrap().success());
        Nodes {
            folder: scratch(name),
            url: format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable"),
            settings,
        }
    }

    fn home(&self, name: &str) -> PathBuf {
        let home = self.folder.join(name);
        fs::create_dir_all(&home).unwrap();
        let text = format!("[store]\nurl = \"{}\"\n{}", self.url, self.settings);
        fs::write(home.join("ringfence.toml"), text).unwrap();
        let secrets = home.join("secrets.env");
        let line = format!("RINGFENCE_STORE_PASSWORD={}\n", postgres::PASSWORD);
        fs::write(&secrets, line).unwrap();
        fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
        home
    }

    fn serve(&self, name: &str, words: &[&str]) -> Node {
        let home = self.home(name);
        let words: Vec<&str> = ["serve", "--json", "--listen", "127.0.0.1:0"]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        let mut server = command(&words, &home);
        let ready: Value = serde_json::from_str(&first_line(&mut server)).unwrap();
        let url = ready.get("url").unwrap().as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Node {
            home,
            server,
            address,
        }
    }
}

fn run(home: &Path, words: &[&str]) -> String {
    let place = home.display().to_string();
    let words: Vec<&str> = words.iter().copied().chain(["--home", &place]).collect();
    ringfence(&words).shown()
}

/// A call, as a client of the newest protocol makes it.
fn call(address: &str, key: Option<&str>, tool: &str, arguments: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{META}}}}}"#
    );
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\n{}",
        key.unwrap_or_default()
    );
    send(address, &head, &body)
}

fn count_words(node: &Node, key: Option<&str>) -> String {
    call(&node.address, key, "countWords", r#"{"text":"a b"}"#)
}

fn ran(answer: &str) -> bool {
    answer.contains("\"words\":2")
}

/// Waits for a condition; so long a change may take to reach another node.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn what_one_node_decides_holds_on_the_other() {
    let nodes = Nodes::new("cluster-decide", "");
    let (a, b) = (nodes.serve("a", &[]), nodes.serve("b", &[]));
    let added = run(&a.home, &["keys", "add", "ada", "--json"]);
    let json = added.split_once("--- stdout\n").unwrap().1;
    let json: Value = serde_json::from_str(json).unwrap();
    let key = json.get("key").unwrap().as_str().unwrap();
    soon("a key made on A opens B", || {
        ran(&count_words(&b, Some(key)))
    });
    assert!(ran(&count_words(&a, Some(key))));
    // Paused on A, refused by B; resumed on B, admitted by A.
    let paused = run(&a.home, &["callers", "pause", "ada"]);
    assert!(paused.starts_with("exit 0"), "{paused}");
    soon("paused", || {
        count_words(&b, Some(key)).contains("caller.paused")
    });
    let resumed = run(&b.home, &["callers", "resume", "ada"]);
    assert!(resumed.starts_with("exit 0"), "{resumed}");
    soon("resumed", || ran(&count_words(&a, Some(key))));
    // Published on A, called on B, whose home has no such file.
    for words in [
        &["new", "countVowels"][..],
        &["publish", "countVowels", "--yes"],
        &["expose", "countVowels"],
    ] {
        let done = run(&a.home, words);
        assert!(done.starts_with("exit 0"), "{words:?} {done}");
    }
    let exposed = run(&b.home, &["expose", "countVowels"]);
    assert!(exposed.starts_with("exit 0"), "{exposed}");
    let vowels = || call(&b.address, Some(key), "countVowels", r#"{"who":"Ada"}"#);
    soon("published", || vowels().contains("\"greeting\":"));
    let withdrawn = run(&a.home, &["unpublish", "countVowels"]);
    assert!(withdrawn.starts_with("exit 0"), "{withdrawn}");
    soon("withdrawn", || !vowels().contains("\"greeting\":"));
    // Revoked on B, refused by A.
    let revoked = run(&b.home, &["keys", "revoke", "ada"]);
    assert!(revoked.starts_with("exit 0"), "{revoked}");
    soon("revoked", || {
        count_words(&a, Some(key)).starts_with("HTTP/1.1 401")
    });
    let status = run(&a.home, &["store", "status", "--json"]);
    assert!(
        status.contains("\"kind\":\"postgres\"") || status.contains("postgres"),
        "{status}"
    );
    assert!(!status.contains(postgres::PASSWORD), "{status}");
}

/// A call waits on A, a person approves on B, and the call runs on A.
#[test]
fn an_answer_on_one_node_reaches_the_call_on_the_other() {
    let settings = "\n[approvals]\nautomation = \"L2\"\nwait_seconds = 20\n\n\
        [[rule]]\nid = \"ask\"\neffect = \"ask\"\n";
    let nodes = Nodes::new("cluster-ask", settings);
    let (a, b) = (
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    );
    let address = a.address.clone();
    let waiting =
        std::thread::spawn(move || call(&address, None, "countWords", r#"{"text":"a b"}"#));
    let mut id = String::new();
    soon("the question is in the inbox of B", || {
        let listed = run(&b.home, &["approvals", "list", "--json"]);
        let json = listed.split_once("--- stdout\n").unwrap().1;
        let json: Value = serde_json::from_str(json).unwrap();
        let first = json.as_array().and_then(|all| all.first());
        let found = first
            .and_then(|first| first.get("id"))
            .and_then(Value::as_str);
        id = found.unwrap_or_default().to_owned();
        !id.is_empty()
    });
    let words = [
        "approvals",
        "approve",
        &id,
        "--automation",
        "--scope",
        "once",
    ];
    let approved = run(&b.home, &words);
    assert!(approved.starts_with("exit 0"), "{approved}");
    let answer = waiting.join().unwrap();
    assert!(ran(&answer), "{answer}");
}

/// Thirty units for sixty calls on both nodes: thirty run.
#[test]
fn a_limit_holds_over_both_nodes() {
    let settings = "\n[[limit]]\nid = \"few\"\nunits_per_day = 30\n";
    let nodes = Nodes::new("cluster-limit", settings);
    let nodes = [
        nodes.serve("a", &["--no-auth"]),
        nodes.serve("b", &["--no-auth"]),
    ];
    let addresses: Arc<Vec<String>> =
        Arc::new(nodes.iter().map(|node| node.address.clone()).collect());
    let threads: Vec<_> = (0..12)
        .map(|number| {
            let addresses = Arc::clone(&addresses);
            std::thread::spawn(move || {
                let address = addresses.get(number % 2).unwrap();
                let answers =
                    (0..5).map(|_| call(address, None, "countWords", r#"{"text":"a b"}"#));
                answers.filter(|answer| ran(answer)).count()
            })
        })
        .collect();
    let count: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(count, 30);
}

/// A node that is killed takes nothing with it: the other goes on, and so does the first.
#[test]
fn a_killed_node_stops_nobody() {
    let nodes = Nodes::new("cluster-kill", "");
    let mut a = nodes.serve("a", &["--no-auth"]);
    let b = nodes.serve("b", &["--no-auth"]);
    assert!(ran(&count_words(&a, None)));
    a.server.kill().unwrap();
    a.server.wait().unwrap();
    assert!(ran(&count_words(&b, None)));
    let again = nodes.serve("a", &["--no-auth"]);
    assert!(ran(&count_words(&again, None)));
    let whole = run(&a.home, &["audit", "verify"]);
    assert!(whole.contains("whole  "), "{whole}");
}

/// A session of the older protocol belongs to a node; the other says 404, and the client
/// begins again there.
#[test]
fn a_session_of_the_older_protocol_begins_again_on_another_node() {
    let nodes = Nodes::new("cluster-session", "");
    let a = nodes.serve("a", &["--no-auth"]);
    let mut b = nodes.serve("b", &["--no-auth"]);
    let head = "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
        accept: application/json, text/event-stream\r\n";
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let begun = send(&a.address, head, hello);
    let lower = begun.to_lowercase();
    let session = lower
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap().trim().to_owned();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#;
    let head = format!("{head}mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
    let own = send(&a.address, &head, list);
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    let other = send(&b.address, &head, list);
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    assert_eq!(terminate(&mut b.server), Some(0));
}
