//! `ringfence servers login` and `logs` from end to end: a server and its issuer on loopback,
//! the person at the browser played by the test.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::run::scratch;

const SECRET: &str = "a-very-secret-client-word";

/// A server that wants a token, and its issuer. Ends with the test.
struct Lab {
    base: String,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    /// The last token there is.
    token: Option<String>,
    count: usize,
    /// Paths and bodies, with the credentials of a client if it showed some.
    seen: Vec<String>,
}

impl Lab {
    fn start() -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let book: Arc<Mutex<Book>> = Arc::default();
        let (own_base, own_book) = (base.clone(), Arc::clone(&book));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (base, book) = (own_base.clone(), Arc::clone(&own_book));
                std::thread::spawn(move || {
                    stream.ok().and_then(|stream| answer(stream, &base, &book))
                });
            }
        });
        Lab { base, book }
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    fn seen(&self, word: &str) -> Vec<String> {
        let book = self.book.lock().unwrap();
        let seen = book.seen.iter().filter(|line| line.contains(word));
        seen.cloned().collect()
    }
}

/// One request on one connection.
fn answer(mut stream: TcpStream, base: &str, book: &Mutex<Book>) -> Option<()> {
    let (target, headers, body) = request(&stream)?;
    let (path, query) = target.split_once('?').unwrap_or((target.as_str(), ""));
    let header = |name: &str| {
        let mut all = headers.iter();
        let found = all.find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let authorization = header("authorization");
    let mut book = book.lock().unwrap();
    book.seen
        .push(format!("{path}?{query} {body} {authorization}"));
    let (status, more, reply) = match path {
        "/.well-known/oauth-protected-resource/mcp" => (200, String::new(), json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [base],
        }).to_string()),
        "/.well-known/oauth-authorization-server" => (200, String::new(), json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        }).to_string()),
        "/register" => (201, String::new(), json!({"client_id": "registered-here"}).to_string()),
        "/authorize" => {
            let field = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            };
            let back = decoded(&field("redirect_uri")?);
            (200, String::new(), format!("{back}?code=one-time&state={}", field("state")?))
        }
        "/token" => {
            book.count += 1;
            let token = format!("token-number-{}-of-the-lab", book.count);
            book.token = Some(token.clone());
            (200, String::new(), json!({
                "access_token": token, "token_type": "Bearer", "expires_in": 3600,
            }).to_string())
        }
        "/mcp" if book.token.as_ref().is_none_or(|token| authorization != format!("Bearer {token}")) => {
            let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
            (401, format!("www-authenticate: Bearer resource_metadata=\"{place}\"\r\n"), String::new())
        }
        "/mcp" => mcp(&serde_json::from_str(&body).unwrap_or_default(), &authorization),
        _ => (404, String::new(), String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n",
        reply.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(reply.as_bytes()).ok()
}

fn mcp(message: &Value, authorization: &str) -> (u16, String, String) {
    let id = message["id"].clone();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "lab", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "confess", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": format!("you said {authorization}")}]})
        }
        _ if id.is_null() => return (202, String::new(), String::new()),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return (
                200,
                String::new(),
                json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
            );
        }
    };
    (
        200,
        String::new(),
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
    )
}

type Heard = (String, Vec<(String, String)>, String);

fn request(stream: &TcpStream) -> Option<Heard> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((target, headers, String::from_utf8(body).ok()?))
}

fn decoded(text: &str) -> String {
    text.replace("%3A", ":").replace("%2F", "/")
}

/// The person at the browser.
fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.trim().to_owned()
}

struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str, settings: &str) -> Place {
        let folder = scratch(name);
        fs::create_dir_all(folder.join("ring")).unwrap();
        fs::write(folder.join("ring/ringfence.toml"), settings).unwrap();
        let secrets = folder.join("ring/secrets.env");
        fs::write(&secrets, format!("ROBOT={SECRET}\n")).unwrap();
        fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
        Place { folder }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        let tests = Path::new(env!("CARGO_BIN_EXE_ringfence")).parent().unwrap();
        command
            .args(words)
            .current_dir(&self.folder)
            .env_clear()
            .env("RINGFENCE_HOME", self.folder.join("ring"))
            .env("PATH", tests)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            format!("{}{}", text(&output.stdout), text(&output.stderr)),
        )
    }

    /// Signs in, with a person who agrees.
    fn sign_in(&self) -> (Option<i32>, String) {
        let mut command = self.command(&["servers", "login", "lab"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let page = loop {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "{said}");
            said.push_str(&line);
            if line.starts_with("http://") {
                break line.trim().to_owned();
            }
        };
        let back = get(&page);
        get(&back);
        lines.read_to_string(&mut said).unwrap();
        let output = child.wait_with_output().unwrap();
        said.push_str(&String::from_utf8_lossy(&output.stdout));
        (output.status.code(), said)
    }
}

fn section(lab: &Lab, oauth: &str) -> String {
    let url = lab.url();
    format!(
        "[[server]]\nname = \"lab\"\nera = \"legacy\"\nurl = \"{url}\"\nprivate = true\n{oauth}\n"
    )
}

#[test]
fn a_person_signs_in_and_the_server_is_used_without_a_token_in_sight() {
    let lab = Lab::start();
    let place = Place::new("login", &section(&lab, ""));
    let (code, said) = place.run(&["servers", "accept", "lab", "--yes"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("servers login"), "{said}");
    let (code, said) = place.sign_in();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("signed in at"), "{said}");
    assert_eq!(lab.seen("/register").len(), 1);
    let (code, accepted) = place.run(&["servers", "accept", "lab", "--yes"]);
    assert_eq!(code, Some(0), "{accepted}");
    let (code, ran) = place.run(&["run", "lab__confess"]);
    assert_eq!(code, Some(0), "{ran}");
    assert_eq!(ran.trim(), "you said Bearer ***");
    let (_, audit) = place.run(&["audit", "list"]);
    for shown in [said, accepted, ran, audit] {
        assert!(!shown.contains("token-number"), "{shown}");
    }
}

#[test]
fn a_client_of_the_owners_own_signs_in_with_its_secret_and_its_scopes() {
    let lab = Lab::start();
    let oauth = "oauth = { client_id = \"robot\", client_secret = \"${ROBOT}\", scopes = [\"read\", \"write\"] }";
    let place = Place::new("login-own", &section(&lab, oauth));
    let (code, said) = place.sign_in();
    assert_eq!(code, Some(0), "{said}");
    assert!(lab.seen("/register").is_empty(), "no client is registered");
    let asked = lab.seen("/authorize").join("\n");
    assert!(asked.contains("client_id=robot"), "{asked}");
    assert!(
        asked.contains("scope=read+write") || asked.contains("scope=read%20write"),
        "{asked}"
    );
    assert!(
        lab.seen("/token")[0].contains("Basic "),
        "{:?}",
        lab.seen("/token")
    );
    let (code, shown) = place.run(&["servers", "show", "lab"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("ROBOT") && !shown.contains(SECRET),
        "{shown}"
    );
}

#[test]
fn client_credentials_need_no_person() {
    let lab = Lab::start();
    let oauth = "oauth = { grant = \"client-credentials\", client_id = \"robot\", client_secret = \"${ROBOT}\", scopes = [\"read\"] }";
    let place = Place::new("login-robot", &section(&lab, oauth));
    let (code, said) = place.run(&["servers", "login", "lab"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("by itself"), "{said}");
    let (code, said) = place.run(&["servers", "accept", "lab", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, ran) = place.run(&["run", "lab__confess"]);
    assert_eq!((code, ran.trim()), (Some(0), "you said Bearer ***"));
    let asked = &lab.seen("/token")[0];
    assert!(
        asked.contains("grant_type=client_credentials") && asked.contains("scope=read"),
        "{asked}"
    );
    let kept = fs::read_to_string(place.folder.join("ring/server-tokens/lab.json")).unwrap();
    assert!(!kept.contains(SECRET), "the secret stays in secrets.env");
    // Without the secret nothing is sent.
    fs::write(place.folder.join("ring/secrets.env"), "").unwrap();
    let (code, said) = place.run(&["run", "lab__confess"]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_sign_in_that_would_leak_or_cannot_work_is_refused_by_the_settings() {
    let lab = Lab::start();
    for (oauth, words) in [
        (
            "oauth = { client_id = \"r\", client_secret = \"plain\" }",
            "plain text",
        ),
        (
            "oauth = { grant = \"client-credentials\", client_id = \"r\" }",
            "need a",
        ),
        ("oauth = { client_id = \"a b\" }", "cannot be a client id"),
        ("oauth = { grant = \"password\" }", "password"),
    ] {
        let place = Place::new("login-settings", &section(&lab, oauth));
        let (code, said) = place.run(&["servers", "list"]);
        assert_eq!(code, Some(2), "{oauth}: {said}");
        assert!(said.contains(words), "{oauth}: {said}");
    }
}

/// A client at the pipe of `ringfence stdio`, which keeps its server running.
struct Session(Child);

impl Session {
    fn say(&mut self, message: &Value) {
        let input = self.0.stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Held by tests that count the processes of servers.
static ALONE: Mutex<()> = Mutex::new(());

/// A call of the server's echo.
fn echo(words: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "notes__echo", "arguments": {"words": words},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

#[test]
fn logs_are_those_of_the_running_server_and_start_none() {
    let settings = "[[server]]\nname = \"notes\"\nera = \"legacy\"\ncommand = [\"bridge-test-server\", \"good\"]\n";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new("logs", settings);
    let (code, said) = place.run(&["servers", "logs", "notes"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("was not started yet"), "{said}");
    let (code, said) = place.run(&["servers", "accept", "notes", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let mut command = place.command(&["stdio"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut session = Session(command.spawn().unwrap());
    let mut answers = BufReader::new(session.0.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        line
    };
    session.say(&echo("complain of the weather"));
    let answer = next();
    assert!(answer.contains("complain of the weather"), "{answer}");
    let before = processes();
    // The line reaches the file a moment after the answer.
    let said = loop {
        let (code, said) = place.run(&["servers", "logs", "notes"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("1 connection open"), "{said}");
        if said.contains("complain of the weather") {
            break said;
        }
    };
    assert_eq!(processes(), before, "none was started: {said}");
    drop(session);
    let (_, said) = place.run(&["servers", "logs", "notes", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let logs = said["processes"].as_array().unwrap();
    assert!(logs.iter().all(|log| log["running"] == false), "{said}");
    assert!(
        said.to_string().contains("complain of the weather"),
        "{said}"
    );
}

/// Attack: our own end by SIGKILL, which no code of ours survives. The server has a tree of
/// processes below it, one of which left its group.
#[test]
fn nothing_of_a_server_outlives_our_own_kill() {
    let settings = "[[server]]\nname = \"notes\"\nera = \"legacy\"\ncommand = [\"bridge-test-server\", \"fork\"]\n";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new("killed", settings);
    let (code, said) = place.run(&["servers", "accept", "notes", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let mut command = place.command(&["stdio"]);
    let tests = Path::new(env!("CARGO_BIN_EXE_ringfence")).parent().unwrap();
    command
        .env("PATH", format!("{}:/usr/bin:/bin", tests.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut session = Session(command.spawn().unwrap());
    let mut answers = BufReader::new(session.0.stdout.take().unwrap());
    session.say(&echo("hello"));
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    assert!(line.contains("hello"), "{line}");
    let scratch = place.folder.file_name().unwrap().to_string_lossy();
    let own = format!("{scratch}/ring/servers/notes");
    let left = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let variables = all.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
        let ours = |text: &Vec<u8>| String::from_utf8_lossy(text).contains(&own);
        variables.filter(ours).count()
    };
    assert!(left() >= 2, "the control: the server and its child run");
    session.0.kill().unwrap();
    session.0.wait().unwrap();
    for _ in 0..200 {
        if left() == 0 {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    panic!("{} processes are left", left());
}

/// How many servers of these tests run below this test.
fn processes() -> usize {
    let me = std::process::id().to_string();
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let folder = entry.ok()?.path();
        let name = fs::read_to_string(folder.join("cmdline")).ok()?;
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        Some((folder.file_name()?.to_str()?.to_owned(), name, stat))
    });
    let all: Vec<_> = all.collect();
    let parent = |id: &str| {
        let found = all.iter().find(|(known, ..)| known == id)?;
        let rest = found.2.rsplit_once(')')?.1;
        rest.split_whitespace().nth(1).map(str::to_owned)
    };
    let is_mine = |id: &str| {
        let mut at = Some(id.to_owned());
        for _ in 0..8 {
            match at {
                Some(id) if id == me => return true,
                Some(id) => at = parent(&id),
                None => return false,
            }
        }
        false
    };
    let servers = all.iter().filter(|(_, name, _)| {
        name.starts_with("bridge-test-server") || name.contains("/bridge-test-server")
    });
    servers.filter(|(id, ..)| is_mine(id)).count()
}
