//! A secret of a call leaves by none of the ways a running server has: answers, signs
//! of progress, the page of metrics, the spans a collector gets, and the audit.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{META, command, first_line, terminate};

const SECRET: &str = "s3sAm&-0pen/w1de";

/// Says its secret in every way it has, and then fails or not.
const CODE: &str = "console.log(KEY, encodeURIComponent(KEY)); \
    if (fails) throw new Error('cannot use ' + KEY); return { key: KEY, [KEY]: btoa(KEY) };";

/// Forwards everything it hears to the waiting test.
const SCRIPT: &str = "const said = await callTool('leaky', { fails: false });\n\
    mcpNotify('heard', said);\n\
    try { await callTool('leaky', { fails: true }); }\n\
    catch (error) { mcpNotify('caught', String(error.message)); }\n\
    return said;";

/// Takes requests until the test ends and keeps what they hold.
fn collector() -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let taken = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !is_whole(&request) {
            let count = stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "half a request");
            request.extend_from_slice(piece.get(..count).unwrap());
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).unwrap();
        request
    });
    (endpoint, taken)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head_bytes = head.len() + 4;
    let head = head.to_lowercase();
    let length = head.split_once("content-length: ").unwrap().1;
    let length: usize = length.lines().next().unwrap().parse().unwrap();
    request.len() >= head_bytes + length
}

fn home(folder: &Path, endpoint: &str) -> std::path::PathBuf {
    let home = folder.join("ring");
    fs::create_dir_all(home.join("tools")).unwrap();
    let settings = format!("[telemetry]\notlp_endpoint = \"{endpoint}\"\n");
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    let secrets = home.join("secrets.env");
    fs::write(&secrets, format!("LEAKY_KEY='{SECRET}'\n")).unwrap();
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
    let document = json!({
        "name": "leaky", "description": "Says what it knows. Returns its key.",
        "code": CODE, "codeType": "Javascript",
        "params": [{"name": "fails", "type": "BOOLEAN", "required": true, "testValue": "false"}],
        "staticVariables": [{"KEY": "${LEAKY_KEY}"}],
    });
    fs::write(home.join("tools/leaky.json"), document.to_string()).unwrap();
    let place = home.display().to_string();
    let published = ringfence(&["publish", "leaky", "--yes", "--home", &place]).shown();
    assert!(published.starts_with("exit 0"), "{published}");
    home
}

pub(crate) fn key(home: &Path, name: &str, role: &str) -> String {
    let home = home.display().to_string();
    let arguments = ["keys", "add", name, "--role", role, "--home", &home];
    let output = ringfence(&arguments).output();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn ask(address: &str, key: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{head}host: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A call that wants to hear how it goes.
pub(crate) fn call(address: &str, key: &str, tool: &str, arguments: &Value) -> String {
    let meta = META.replacen('{', r#"{"progressToken":"tok","#, 1);
    let meta: Value = serde_json::from_str(&meta).unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta}});
    let head = format!(
        "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\n"
    );
    ask(address, key, &head, &body.to_string())
}

/// The ways out that show a secret, or lack what must stand in its place.
#[derive(Default)]
struct Leaks(Vec<String>);

impl Leaks {
    fn check(&mut self, what: &str, text: &str, expected: &[&str]) {
        for part in ["s3sAm", "0pen", "czNzQW0m"] {
            if text.contains(part) {
                self.0.push(format!("{what} shows {part}: {text}"));
            }
        }
        for part in expected {
            if !text.contains(part) {
                self.0.push(format!("{what} lacks {part}: {text}"));
            }
        }
    }
}

#[test]
fn a_secret_leaves_by_no_way_out() {
    let (endpoint, taken) = collector();
    let home = home(&scratch("masked"), &endpoint);
    let agent = key(&home, "ann", "agent");
    let operator = key(&home, "bob", "operator");
    let mut child = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &home);
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap().to_owned();

    let mut leaks = Leaks::default();
    let told = call(
        &address,
        &agent,
        "codecall_execute",
        &json!({"script": SCRIPT}),
    );
    let progress = told
        .lines()
        .filter(|line| line.contains("notifications/progress"));
    let progress: String = progress.collect();
    leaks.check("the answer", &told, &["***"]);
    leaks.check("progress", &progress, &["caught", "cannot use ***"]);
    let failed = call(&address, &agent, "leaky", &json!({"fails": true}));
    leaks.check("the error", &failed, &["cannot use ***"]);
    let metrics = ask(&address, &operator, "GET /metrics HTTP/1.1\r\n", "");
    leaks.check(
        "the metrics",
        &metrics,
        &["tool=\"leaky\"", "status=\"failed\""],
    );

    assert_eq!(terminate(&mut child), Some(0));
    let spans = String::from_utf8_lossy(&taken.join().unwrap()).into_owned();
    leaks.check("the spans", &spans, &["execute_tool leaky", "error.type"]);
    let mut audit = String::new();
    for entry in fs::read_dir(home.join("audit")).unwrap() {
        audit += &String::from_utf8_lossy(&fs::read(entry.unwrap().path()).unwrap());
    }
    leaks.check("the audit", &audit, &["leaky", "***"]);
    assert!(leaks.0.is_empty(), "{}", leaks.0.join("\n\n"));
}
