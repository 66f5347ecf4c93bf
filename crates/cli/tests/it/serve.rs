//! The server as a command: where it is, what it prints, how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;
use crate::terminal::Terminal;

pub(crate) const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) fn command(arguments: &[&str], home: &Path) -> Child {
    command_to(arguments, home, Stdio::piped())
}

/// The same, with a place for what it says beside its data.
pub(crate) fn command_to(arguments: &[&str], home: &Path, error: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(arguments)
        .args(["--home", &home.display().to_string()])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(error)
        .spawn()
        .unwrap()
}

/// The first line a command prints.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.as_mut().unwrap());
    output.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

pub(crate) fn terminate(child: &mut Child) -> Option<i32> {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.unwrap().success());
    child.wait().unwrap().code()
}

/// One request on a connection of its own.
pub(crate) fn send(address: &str, head: &str, body: &str) -> String {
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
fn a_server_prints_its_address_and_stops_on_request() {
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
fn the_address_is_the_first_line() {
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

/// The output of a service is a journal that others read and that is kept.
#[test]
fn a_new_token_is_shown_at_a_terminal_and_nowhere_else() {
    let folder = scratch("serve-token");
    let mut child = command(&["serve", "--listen", "127.0.0.1:0"], &folder.join("piped"));
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    while !said.contains("press Ctrl-C to stop") {
        assert!(output.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert_eq!(terminate(&mut child), Some(0));
    let token = std::fs::read_to_string(folder.join("piped/token")).unwrap();
    assert!(!said.contains(token.trim()), "{said}");
    assert!(said.contains("piped/token"), "{said}");
    // At a terminal it is there.
    let program = env!("CARGO_BIN_EXE_ringfence");
    let line = format!("{program} serve --listen 127.0.0.1:0 --home shown");
    let mut terminal = Terminal::start(&line, &folder);
    terminal.until("press Ctrl-C to stop", 1);
    let shown = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let token = std::fs::read_to_string(folder.join("shown/token")).unwrap();
    assert!(shown.contains(token.trim()), "{shown}");
    terminal.type_in("\u{3}");
    terminal.end();
}

#[test]
fn a_bad_listen_address_is_reported() {
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

/// The error names the process that has the port, and how to choose another.
#[test]
fn a_port_in_use_is_reported_with_a_fix() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let home = scratch("serve-taken").join("ring").display().to_string();
    let output = ringfence(&["serve", "--listen", &listen, "--home", &home]).output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&format!("`{listen}` cannot be listened on; `"))
            && said.contains(&format!("`, process {}, uses it", std::process::id())),
        "{said}"
    );
    assert!(said.contains("`--listen 127.0.0.1:0`"), "{said}");
}

/// A token that a service manager hands over is the one the server takes, and none is
/// made.
#[test]
fn a_token_can_be_a_credential() {
    let folder = scratch("serve-credential");
    let handed = folder.join("handed");
    std::fs::create_dir_all(&handed).unwrap();
    let only_owner = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&handed, only_owner).unwrap();
    let arguments = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let serve = |home: &Path| {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        serve.args(arguments).arg("--home").arg(home).env_clear();
        serve.env("CREDENTIALS_DIRECTORY", &handed);
        serve.stdout(Stdio::piped()).stderr(Stdio::piped());
        serve.spawn().unwrap()
    };
    // Another home's token, because tokens have a checksum.
    let mut other = serve(&folder.join("other"));
    first_line(&mut other);
    assert_eq!(terminate(&mut other), Some(0));
    let token = std::fs::read_to_string(folder.join("other/token")).unwrap();
    let credential = handed.join("ringfence.token");
    std::fs::write(&credential, &token).unwrap();
    let only_reading = std::fs::Permissions::from_mode(0o400);
    std::fs::set_permissions(&credential, only_reading).unwrap();

    let home = folder.join("ring");
    let mut child = serve(&home);
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    assert_eq!(ready["tokenFile"], credential.display().to_string());
    assert!(!home.join("token").exists());
    let url = ready["url"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{META}}}}}"#);
    let status = |authorization: &str| {
        let head = format!(
            "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n{authorization}"
        );
        let answer = send(address, &head, &body);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(""), "401");
    let bearer = format!("authorization: Bearer {}\r\n", token.trim_end());
    assert_eq!(status(&bearer), "200");
    assert_eq!(terminate(&mut child), Some(0));

    std::fs::remove_file(&credential).unwrap();
    std::fs::write(&credential, "no token").unwrap();
    let only_reading = std::fs::Permissions::from_mode(0o400);
    std::fs::set_permissions(&credential, only_reading).unwrap();
    let output = serve(&home).wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ringfence.token` holds no token"), "{said}");
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
    let refused = said
        .iter()
        .find(|said| said.get("id") == Some(&Value::Null));
    let code = refused.unwrap().pointer("/error/code");
    assert_eq!(code, Some(&json!(-32700)), "{lines}");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(
        warned.contains("a line of standard input is dropped"),
        "{warned}"
    );
    let answer = said.iter().find(|said| said.get("id") == Some(&json!(2)));
    let value = answer.unwrap().pointer("/result/structuredContent/value");
    assert_eq!(value, Some(&json!(1000)), "{lines}");
}

/// What a running server does not take up it says aloud, once; and once more when all is
/// as it was.
#[test]
fn settings_that_need_a_restart_are_reported() {
    let folder = scratch("serve-settings");
    let home = folder.join("ring");
    std::fs::create_dir_all(&home).unwrap();
    let settings = |text: &str| {
        // As editors do, so that no reader sees half a file.
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
        said.ends_with("take effect only after a restart of this server: serve.hosts"),
        "{said}"
    );
    settings("[serve]\nhosts = [\"a.test\"]\n[oauth]\nissuer = \"https://a.test\"\n");
    let said = hear();
    assert!(
        said.ends_with("restart of this server: serve.hosts, oauth"),
        "{said}"
    );
    settings("");
    let said = hear();
    assert!(
        said.ends_with("again those that this server started with"),
        "{said}"
    );
    assert_eq!(terminate(&mut child), Some(0));
    assert!(lines.recv().is_err(), "it said nothing else");
}

const OPERATORS: &str = r#"
[codecall]
mode = "off"
[callers.reader]
allow = ["convertUnits"]
[callers.planner]
allow = ["convert*", "countWords"]
[[rule]]
id = "far"
tools = ["convertUnits"]
when = "args.value > 1000.0"
effect = "deny"
reason = "too far"
"#;

/// What a client gets for a request that shows a key.
fn asks(address: &str, key: &str, method: &str, tool: Option<&str>, params: &Value) -> Value {
    let mut params = params.clone();
    let meta: Value = serde_json::from_str(META).unwrap();
    params
        .as_object_mut()
        .unwrap()
        .insert("_meta".to_owned(), meta);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let name = tool.map(|tool| format!("mcp-name: {tool}\r\n"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer {key}\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\n{}",
        name.unwrap_or_default()
    );
    let answer = send(address, &head, &body.to_string());
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = body.lines().find(|line| line.contains("\"jsonrpc\""));
    let body = body.unwrap_or(&answer).trim_start_matches("data: ");
    serde_json::from_str(body).expect(body)
}

/// A home, and the server on it.
struct Operator {
    home: PathBuf,
    address: String,
    server: Option<Child>,
}

impl Operator {
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let at = self.home.display().to_string();
        let arguments: Vec<_> = arguments.iter().copied().chain(["--home", &at]).collect();
        let output = ringfence(&arguments).output();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    }

    /// A call at the terminal.
    fn metres(&self, value: i64) -> Option<i32> {
        let arguments = metres(value).to_string();
        self.run(&["run", "convertUnits", "--args", &arguments]).0
    }

    fn key(&self, name: &str) -> String {
        let (_, said) = self.run(&["keys", "add", name]);
        said.lines().next().unwrap().to_owned()
    }

    fn serve(&mut self) {
        let mut child = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &self.home);
        let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
        let url = ready.get("url").unwrap().as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        self.address = address.to_owned();
        self.server = Some(child);
    }

    fn lists(&self, key: &str) -> Vec<String> {
        let list = asks(&self.address, key, "tools/list", None, &json!({}));
        let tools = list.pointer("/result/tools").unwrap().as_array().unwrap();
        let name = |tool: &Value| tool.get("name").unwrap().as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    }

    fn calls(&self, key: &str, tool: &str, arguments: &Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        asks(&self.address, key, "tools/call", Some(tool), &params).to_string()
    }

    fn explains(&self, caller: &str, tool: &str, arguments: &Value) -> String {
        let arguments = arguments.to_string();
        let (code, why) = self.run(&[
            "explain", "--caller", caller, "--tool", tool, "--args", &arguments, "--door", "mcp",
        ]);
        assert_eq!(code, Some(1), "{why}");
        why
    }
}

fn metres(value: i64) -> Value {
    json!({"value": value, "from": "km", "to": "m"})
}

/// An operator's lines that `policy lint` and `policy test` agree with, in force, and
/// a server with two keys.
fn operator() -> (Operator, String, String) {
    let mut operator = Operator {
        home: scratch("serve-operator").join("ring"),
        address: String::new(),
        server: None,
    };
    assert_eq!(operator.metres(5_000), Some(0));
    let next = operator.home.join("next.toml");
    std::fs::write(&next, OPERATORS).unwrap();
    let path = next.display().to_string();
    assert_eq!(operator.run(&["policy", "lint", &path]).0, Some(0));
    let (code, tested) = operator.run(&["policy", "test", &path]);
    assert_eq!(code, Some(0), "{tested}");
    assert!(tested.contains("1 differ, 0 looser"), "{tested}");
    std::fs::rename(&next, operator.home.join("ringfence.toml")).unwrap();
    let (reader, planner) = (operator.key("reader"), operator.key("planner"));
    operator.serve();
    (operator, reader, planner)
}

/// Two clients come with two keys, and each sees and can call exactly what was
/// written; `explain` says why, and who is denied again and again is paused, the
/// owner's terminal not.
#[test]
fn two_clients_with_two_keys_see_and_call_what_was_written() {
    let (mut operator, reader, planner) = operator();
    assert_eq!(operator.lists(&reader), ["convertUnits"]);
    let expected = ["convertTimeZone", "convertUnits", "countWords"];
    assert_eq!(operator.lists(&planner), expected);
    let is_through = |key: &str| {
        let answer = operator.calls(key, "convertUnits", &metres(1));
        answer.contains("\"value\":1000")
    };
    assert!(is_through(&reader) && is_through(&planner));
    let words = json!({"text": "two words"});
    let counted = operator.calls(&planner, "countWords", &words);
    assert!(counted.contains("\"isError\":false"), "{counted}");
    let strange = operator.calls(&reader, "countWords", &words);
    let absent = operator.calls(&reader, "countsWords", &words);
    assert_eq!(strange.replace("`countWords`", "`countsWords`"), absent);
    assert!(strange.contains("there is no tool"), "{strange}");
    let why = operator.explains("reader", "countWords", &words);
    assert!(why.contains("[access.denied]"), "{why}");

    for _ in 0..3 {
        let denied = operator.calls(&reader, "convertUnits", &metres(5_000));
        assert!(denied.contains("too far (rule `far`)"), "{denied}");
    }
    let (_, newest) = operator.run(&["audit", "list", "--json", "--limit", "1"]);
    let newest: Value = serde_json::from_str(&newest).unwrap();
    let id = newest.pointer("/0/opening/callId").expect("an entry");
    let (code, why) = operator.run(&["explain", id.as_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        why.contains("by reader through mcp") && why.contains("too far"),
        "{why}"
    );
    let why = operator.explains("planner", "convertUnits", &metres(5_000));
    assert!(why.contains("too far"), "{why}");

    assert!(!is_through(&reader), "three times no, and it is paused");
    let why = operator.explains("reader", "convertUnits", &metres(1));
    assert!(why.contains("[caller.paused]"), "{why}");
    assert!(is_through(&planner), "not the other");
    for _ in 0..4 {
        assert_eq!(operator.metres(5_000), Some(1));
    }
    assert_eq!(operator.metres(5), Some(0), "nor the terminal");
    assert_eq!(operator.run(&["callers", "resume", "reader"]).0, Some(0));
    assert!(is_through(&reader));
    assert_eq!(operator.server.as_mut().map(terminate), Some(Some(0)));
}
