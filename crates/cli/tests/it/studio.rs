//! The Studio of a real server: the code it prints, the code of another process, and the two
//! doors that do not open each other.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{command, first_line, terminate};

/// One request of a browser's page, or of something else; the head and the body of its answer.
fn send(address: &str, line: &str, headers: &str, body: &str) -> (String, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.to_owned(),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

#[test]
fn people_and_agents_have_doors_of_their_own() {
    let folder = scratch("studio");
    let home = folder.join("ring");
    let words = ["serve", "--json", "--print-code", "--listen", "127.0.0.1:0"];
    let mut child = command(&words, &home);
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let page = ready["studio"]["url"].as_str().unwrap();
    let address = page
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let own = format!(
        "origin: http://{address}\r\nsec-fetch-site: same-origin\r\ncontent-type: application/json\r\n"
    );
    // A code of another process of the same home, and the server's own: each once.
    let home_text = home.display().to_string();
    let output = ringfence(&[
        "studio",
        "--no-open",
        "--json",
        "--url",
        page,
        "--home",
        &home_text,
    ])
    .output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let other: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(other["running"], true);
    let mut cookies = Vec::new();
    for code in [&ready["studio"]["code"], &other["code"]] {
        let body = json!({ "code": code }).to_string();
        let (head, session) = send(&address, "POST /api/v1/session", &own, &body);
        assert!(head.starts_with("HTTP/1.1 200"), "{head} {session}");
        assert_eq!(session["person"]["name"], "owner");
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap();
        cookies.push(cookie.split(';').next().unwrap().to_owned());
        let (again, _) = send(&address, "POST /api/v1/session", &own, &body);
        assert!(again.starts_with("HTTP/1.1 401"), "{again}");
    }
    let signed = format!("{own}cookie: {}\r\n", cookies[0]);
    let (head, tools) = send(&address, "GET /api/v1/tools", &signed, "");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(tools["total"].as_u64().unwrap() > 50);
    // The token of the machine and an agent's key open no page; a session opens no tool.
    let token = fs::read_to_string(home.join("token")).unwrap();
    let made = ringfence(&["keys", "add", "ann", "--home", &home_text]).output();
    let key = String::from_utf8(made.stdout).unwrap();
    let (name, secret) = cookies[0].split_once('=').unwrap();
    for bearer in [token.trim(), key.trim()] {
        let shown = format!("{own}authorization: Bearer {bearer}\r\ncookie: {name}={bearer}\r\n");
        let (head, _) = send(&address, "GET /api/v1/tools", &shown, "");
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for headers in [
        format!(
            "content-type: application/json\r\ncookie: {}\r\n",
            cookies[0]
        ),
        format!("content-type: application/json\r\nauthorization: Bearer {secret}\r\n"),
    ] {
        let (head, _) = send(&address, "POST /mcp", &headers, ping);
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
        let (head, _) = send(&address, "GET /api/v1/approvals", &headers, "");
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    }
    assert_eq!(terminate(&mut child), Some(0));
}

/// What other commands believe about the server of a home.
struct Believed {
    studio: (Option<i32>, Value),
    overview: String,
    endpoint: String,
    codes: usize,
}

fn believed(home: &Path) -> Believed {
    let at = home.display().to_string();
    let run = |words: &[&str]| {
        let words = [words, &["--home", &at]].concat();
        let output = ringfence(&words).output();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = run(&["studio", "--no-open", "--json"]);
    let overview = ringfence(&[]).variable("RINGFENCE_HOME", &at).output();
    let connect: Value = serde_json::from_str(&run(&["connect", "--json"]).1).unwrap();
    let notices = run(&["audit", "list", "--kind", "notice", "--json"]).1;
    Believed {
        studio: (code, serde_json::from_str(&text).unwrap()),
        overview: String::from_utf8(overview.stdout).unwrap(),
        endpoint: connect.get("url").unwrap().as_str().unwrap().to_owned(),
        codes: notices.matches("person.code_made").count(),
    }
}

/// Attack: another program listens at the address of the settings, and waits for a person who
/// types a code into its page. A code is for a server of this home that is alive, wherever it
/// listens.
#[test]
fn a_code_is_made_for_a_server_of_this_home_alone() {
    let folder = scratch("studio-serving");
    let home = folder.join("ring");
    fs::create_dir_all(&home).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let settings = format!("[serve]\nlisten = \"{taken}\"\n");
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    let none = |codes: usize| {
        let seen = believed(&home);
        assert_eq!(seen.studio.0, Some(1), "{}", seen.studio.1);
        assert_eq!(seen.studio.1["running"], false);
        assert!(seen.studio.1["code"].is_null() && seen.studio.1["url"].is_null());
        assert!(seen.overview.contains("not running"), "{}", seen.overview);
        assert_eq!(seen.endpoint, format!("http://{taken}/mcp"));
        assert_eq!(seen.codes, codes);
    };
    none(0);
    let mut child = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &home);
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let endpoint = ready["url"].as_str().unwrap();
    let address = endpoint
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let seen = believed(&home);
    assert_eq!(seen.studio.0, Some(0), "{}", seen.studio.1);
    assert_eq!(seen.studio.1["url"], ready["studio"]["url"]);
    assert!(seen.studio.1["code"].is_string());
    let line = format!("running at {address}");
    assert!(seen.overview.contains(&line), "{}", seen.overview);
    assert_eq!((seen.endpoint.as_str(), seen.codes), (endpoint, 1));
    // Killed, so that it takes nothing along.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(home.join("serving-1").exists());
    none(1);
    // The next one takes the file, and takes it along.
    let mut child = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &home);
    first_line(&mut child);
    assert_eq!(believed(&home).codes, 2);
    assert_eq!(terminate(&mut child), Some(0));
    assert!(!home.join("serving-1").exists());
    // A link is not followed, neither by a command nor by a server.
    let aside = folder.join("aside");
    fs::write(&aside, "precious").unwrap();
    std::os::unix::fs::symlink(&aside, home.join("serving-1")).unwrap();
    let at = home.display().to_string();
    for words in [
        &["studio", "--no-open", "--home", &at][..],
        &["serve", "--listen", "127.0.0.1:0", "--home", &at],
    ] {
        let output = ringfence(words).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("serving-1"), "{words:?}: {said}");
    }
    assert_eq!(fs::read_to_string(&aside).unwrap(), "precious");
}

/// What is no terminal is kept, and others read it.
#[test]
fn a_code_is_printed_to_a_terminal_or_when_asked_for() {
    let folder = scratch("studio-code");
    let home = folder.join("ring");
    let codes_made = |words: &[&str]| {
        let mut child = command(words, &home);
        let line = first_line(&mut child);
        assert_eq!(terminate(&mut child), Some(0));
        let home_text = home.display().to_string();
        let listed = ringfence(&[
            "audit", "list", "--kind", "notice", "--json", "--home", &home_text,
        ])
        .output();
        let listed = String::from_utf8(listed.stdout).unwrap();
        (line, listed.matches("person.code_made").count())
    };
    let plain = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let (line, made) = codes_made(&plain);
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert!(ready["studio"]["code"].is_null(), "{line}");
    assert_eq!(made, 0, "none is made that no one sees");
    let (line, made) = codes_made(&["serve", "--json", "--print-code", "--listen", "127.0.0.1:0"]);
    let ready: Value = serde_json::from_str(&line).unwrap();
    assert!(ready["studio"]["code"].is_string(), "{line}");
    assert_eq!(made, 1);
}
