//! The server as a command: where it is, what it prints, how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn command(arguments: &[&str], home: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(arguments)
        .args(["--home", &home.display().to_string()])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The first line a command prints.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.as_mut().unwrap());
    output.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn terminate(child: &mut Child) -> Option<i32> {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.unwrap().success());
    child.wait().unwrap().code()
}

/// One request on a connection of its own.
fn send(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{head}host: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_server_says_where_it_is_and_ends_when_asked() {
    let folder = scratch("serve");
    let mut child = command(
        &["serve", "--no-auth", "--json", "--listen", "127.0.0.1:0"],
        &folder.join("ring"),
    );
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    let ready = send(address, "GET /readyz HTTP/1.1\r\n", "");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"convertUnits","arguments":{{"value":1,"from":"km","to":"m"}},"_meta":{META}}}}}"#
    );
    let head = "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
        accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
        mcp-method: tools/call\r\nmcp-name: convertUnits\r\n";
    let answer = send(address, head, &body);
    assert!(
        answer.contains(r#""structuredContent":{"value":1000"#),
        "{answer}"
    );
    assert_eq!(terminate(&mut child), Some(0));
}

#[test]
fn a_person_reads_the_address_first() {
    let folder = scratch("serve-human");
    let mut child = command(
        &["serve", "--no-auth", "--listen", "127.0.0.1:0"],
        &folder.join("ring"),
    );
    let line = first_line(&mut child);
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    assert!(line.ends_with("/mcp"), "{line}");
    assert_eq!(terminate(&mut child), Some(0));
}

#[test]
fn an_address_that_does_not_do_is_said_so() {
    let folder = scratch("serve-address");
    let home = folder.join("ring").display().to_string();
    for listen in ["nonsense", "127.0.0.1:99999", "0.0.0.0:0"] {
        let arguments = ["serve", "--no-auth", "--listen", listen, "--home", &home];
        let output = ringfence(&arguments).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{listen}: {said}");
        assert!(said.contains(listen), "{said}");
        assert!(output.stdout.is_empty());
    }
}

/// Whatever happens, standard output has only messages, and the end of input is the
/// end.
#[test]
fn stdio_prints_nothing_but_the_protocol() {
    let folder = scratch("stdio");
    std::fs::create_dir_all(folder.join("ring/tools")).unwrap();
    std::fs::write(folder.join("ring/tools/broken.json"), "{").unwrap();
    let home = folder.join("ring").display().to_string();
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "convertUnits", "arguments": {"value": 1, "from": "km", "to": "m"}}}),
    ];
    let input: String = messages.map(|message| format!("{message}\n")).concat();
    let input = format!("{input}this is no message\n");
    let output = ringfence(&["stdio", "--home", &home])
        .input(input.as_bytes())
        .output();
    assert_eq!(output.status.code(), Some(0));
    let lines = String::from_utf8(output.stdout).unwrap();
    let said: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answer = said.iter().find(|said| said.get("id") == Some(&json!(2)));
    let value = answer.unwrap().pointer("/result/structuredContent/value");
    assert_eq!(value, Some(&json!(1000)), "{lines}");
}

/// What a running server does not take up it says aloud, once; and once more when all is
/// as it was.
#[test]
fn settings_that_take_a_restart_are_said_so() {
    let folder = scratch("serve-settings");
    let home = folder.join("ring");
    std::fs::create_dir_all(&home).unwrap();
    let settings = |text: &str| {
        // As editors do, so that nobody reads half a file.
        std::fs::write(home.join("new"), text).unwrap();
        std::fs::rename(home.join("new"), home.join("ringfence.toml")).unwrap();
    };
    settings("");
    let mut child = command(
        &["serve", "--no-auth", "--json", "--listen", "127.0.0.1:0"],
        &home,
    );
    first_line(&mut child);
    let errors = BufReader::new(child.stderr.take().unwrap());
    let (told, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        errors
            .lines()
            .map_while(Result::ok)
            .all(|line| told.send(line).is_ok())
    });
    let hear = || {
        let heard = lines.recv_timeout(std::time::Duration::from_secs(30));
        heard.expect("the server says something")
    };
    // Of these two only the second is held on to; the address was given besides.
    settings("[serve]\ncall_seconds_max = 9\nhosts = [\"a.test\"]\nlisten = \"127.0.0.1:1\"\n");
    let said = hear();
    assert!(
        said.ends_with("when it started; restart it: serve.hosts"),
        "{said}"
    );
    settings("[serve]\nhosts = [\"a.test\"]\n[oauth]\nissuer = \"https://a.test\"\n");
    let said = hear();
    assert!(said.ends_with("restart it: serve.hosts, oauth"), "{said}");
    settings("");
    let said = hear();
    assert!(
        said.ends_with("again those this server was started with"),
        "{said}"
    );
    assert_eq!(terminate(&mut child), Some(0));
    assert!(lines.recv().is_err(), "it said nothing else");
}
