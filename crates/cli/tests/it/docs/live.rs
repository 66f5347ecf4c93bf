//! A real server on loopback, and a client of either protocol era. What the pages say
//! about callers is held against it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;

use serde_json::{Value, json};

use super::page::Page;
use crate::run::scratch;
use crate::serve::{META, command, first_line, terminate};
use crate::{ringfence, root};

/// A server of a home; it ends with this value.
pub(crate) struct Server {
    child: Child,
    address: String,
}

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// A session, up to 2025-11-25.
    Sessions,
    /// Every request stands for itself, from 2026-07-28 on.
    Requests,
}

/// What a request came to.
pub(crate) struct Reply {
    pub(crate) status: u16,
    session: Option<String>,
    /// The JSON-RPC message, or the body; null if it is no JSON.
    pub(crate) body: Value,
}

impl Server {
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Server {
        let mut all = vec!["serve", "--json", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut child = command(&all, home);
        let said = first_line(&mut child);
        let said: Value = serde_json::from_str(&said).expect(&said);
        let url = said.get("url").and_then(Value::as_str).unwrap();
        let address = url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Server { child, address }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn end(mut self) -> Result<(), String> {
        match terminate(&mut self.child) {
            Some(0) => Ok(()),
            code => Err(format!("it ended with {code:?}")),
        }
    }

    /// One request on a connection of its own.
    pub(crate) fn send(&self, head: &str, key: Option<&str>, body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let key = key.map_or(String::new(), |key| {
            format!("authorization: Bearer {key}\r\n")
        });
        let request = format!(
            "{head}\r\n{key}host: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Reply::read(&answer)
    }

    /// A method of the protocol, called by the holder of a key.
    pub(crate) fn ask(&self, era: Era, key: &str, method: &str, mut params: Value) -> Value {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
        let (head, session) = match era {
            Era::Requests => {
                let meta: Value = serde_json::from_str(META).unwrap();
                params
                    .as_object_mut()
                    .unwrap()
                    .insert("_meta".to_owned(), meta);
                let head =
                    format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
                (head, String::new())
            }
            Era::Sessions => (String::new(), self.begin(key)),
        };
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let head = format!("POST /mcp HTTP/1.1\r\n{head}{session}");
        let reply = self.send(head.trim_end(), Some(key), &message.to_string());
        assert!(reply.status < 500, "{method}: {}", reply.body);
        reply.body
    }

    /// Begins a session; the header that says so from then on.
    fn begin(&self, key: &str) -> String {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}});
        let post = "POST /mcp HTTP/1.1";
        let reply = self.send(post, Some(key), &hello.to_string());
        let session = reply.session.expect("a session");
        let session = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18");
        let there = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(
            &format!("{post}\r\n{session}"),
            Some(key),
            &there.to_string(),
        );
        session
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn read(answer: &str) -> Reply {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.trim().to_owned())
        });
        // The message is a line of an event stream, of a body in chunks, or the body.
        let mut lines = body.lines().filter_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(line).ok()
        });
        let body = lines.find(|value| value.is_object() || value.is_array());
        Reply {
            status: status.expect("a status"),
            session,
            body: body.unwrap_or_default(),
        }
    }
}

/// A home with a key for each name.
fn keyed<const N: usize>(home: &Path, keys: [&[&str]; N]) -> [String; N] {
    keys.map(|words| {
        let place = home.display().to_string();
        let words: Vec<_> = ["keys", "add"].iter().chain(words).copied().collect();
        let output = ringfence(&[words, vec!["--home", &place]].concat()).output();
        assert!(output.status.success(), "{output:?}");
        let shown = String::from_utf8(output.stdout).unwrap();
        let mut parts = shown.split_whitespace();
        let key = parts.find(|word| word.starts_with("rf_"));
        key.expect("a key").to_owned()
    })
}

/// One line of the page about two agents: a call, and what would become of it.
struct Explained {
    caller: String,
    tool: String,
    arguments: Value,
    verdict: String,
    told: Option<String>,
}

fn explained(text: &str) -> Vec<Explained> {
    let mut found: Vec<Explained> = Vec::new();
    for line in text.lines() {
        if let Some(call) = line.strip_prefix("$ ringfence explain ") {
            let (words, arguments) = call.split_once(" --args ").unwrap();
            let words: Vec<_> = words.split_whitespace().collect();
            let word = |index: usize| (*words.get(index).expect(call)).to_owned();
            found.push(Explained {
                caller: word(1),
                tool: word(3),
                arguments: serde_json::from_str(arguments.trim_matches('\'')).unwrap(),
                verdict: String::new(),
                told: None,
            });
        } else if let Some(last) = found.last_mut() {
            let first = line.split_whitespace().next().unwrap_or("");
            if last.verdict.is_empty() {
                last.verdict = first.to_owned();
            } else if let Some(told) = line.trim().strip_prefix("is told") {
                let told = told.trim();
                let told = told.split_once(" [").map_or(told, |(words, _)| words);
                last.told = Some(told.to_owned());
            }
        }
    }
    found
}

/// What `explain` says on the page about two agents is what their calls come to, in
/// both eras.
#[test]
fn two_agents_get_what_explain_says() {
    let path = root().join("docs/guide/two-agents.md");
    let settings = Page::read(&path)
        .blocks()
        .find(|block| block.language == "toml")
        .map(|block| block.text)
        .unwrap();
    let home = scratch("docs-operator").join("ring");
    let [researcher, clerk] = keyed(&home, [&["researcher"], &["clerk"]]);
    // No person answers here, so calls do not wait.
    let settings = format!("{settings}\n[approvals]\nwait_seconds = 1\n");
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    let server = Server::start(&home, &[]);
    let mut seen = Vec::new();
    for block in Page::read(&path).blocks() {
        // A pause is lifted again in its own block.
        if block.text.contains("callers pause") {
            continue;
        }
        for call in explained(&block.text) {
            let key = match call.caller.as_str() {
                "researcher" => &researcher,
                _ => &clerk,
            };
            for era in [Era::Sessions, Era::Requests] {
                holds(&server, era, key, &call);
            }
            seen.push(call.verdict);
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["allow", "ask", "deny"]);
    server.end().unwrap();
}

fn holds(server: &Server, era: Era, key: &str, call: &Explained) {
    let Explained { tool, verdict, .. } = call;
    let listed = server.ask(era, key, "tools/list", json!({}));
    let tools = listed.pointer("/result/tools").and_then(Value::as_array);
    let own = tools
        .expect("a list")
        .iter()
        .find(|own| own.get("name") == Some(&json!(tool)));
    // No test leaves this machine.
    let leaves =
        own.is_some_and(|own| own.pointer("/annotations/openWorldHint") == Some(&json!(true)));
    if leaves && verdict == "allow" {
        return;
    }
    let params = json!({"name": tool, "arguments": call.arguments});
    let answer = server.ask(era, key, "tools/call", params);
    let said = answer.to_string();
    match verdict.as_str() {
        "allow" => {
            assert!(own.is_some(), "{era:?} {tool}: {listed}");
            let is_error = answer.pointer("/result/isError");
            assert_eq!(is_error, Some(&json!(false)), "{era:?} {said}");
        }
        "ask" => {
            assert!(own.is_some(), "{era:?} {tool}: {listed}");
            assert!(said.contains("approval.pending"), "{era:?} {said}");
        }
        "deny" => {
            let told = call.told.as_deref().unwrap_or("there is no tool");
            assert!(said.contains(told), "{era:?} `{told}` in {said}");
            let is_hidden = told.starts_with("there is no tool");
            assert_eq!(own.is_none(), is_hidden, "{era:?} {tool}: {listed}");
        }
        other => assert_eq!(other, "allow, ask or deny"),
    }
}

/// Which key opens which address, as a server has it: the rows of a table.
pub(crate) fn doors() -> Vec<(&'static str, [bool; 2])> {
    let home = scratch("docs-doors").join("ring");
    let [agent, operator] = keyed(&home, [&["agent"], &["me", "--role", "operator"]]);
    let server = Server::start(&home, &[]);
    let token = fs::read_to_string(home.join("token")).unwrap();
    let opens = |key: &str| {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
            "params": {"_meta": serde_json::from_str::<Value>(META).unwrap()}});
        let head = "POST /mcp HTTP/1.1\r\nmcp-protocol-version: 2026-07-28\r\n\
            mcp-method: tools/list";
        let calls = server.send(head, Some(key), &list.to_string());
        let answers = server.send("GET /api/v1/approvals HTTP/1.1", Some(key), "");
        [calls.status == 200, answers.status == 200]
    };
    let rows = vec![
        ("an agent's key", opens(&agent)),
        ("the token of this machine", opens(token.trim())),
        ("an operator's key", opens(&operator)),
        ("no key", opens("rf_nothing")),
    ];
    server.end().unwrap();
    rows
}
