//! What `ringfence connect` writes into the settings of a client is read back as that
//! client reads it, and used as it stands there: a real client starts the program or goes
//! to the address, with nothing added, and finds the tools.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{Client, Kind};
use crate::inspector::listed_by_file;
use crate::world::Home;

/// A client's word, where it keeps its settings on this system, the part that names
/// servers, and whether its settings can name an address.
const CLIENTS: [(&str, &str, &str, bool); 4] = [
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "mcpServers",
        false,
    ),
    ("claude-code", ".claude.json", "mcpServers", true),
    ("cursor", ".cursor/mcp.json", "mcpServers", true),
    ("vscode", ".config/Code/User/mcp.json", "servers", true),
];

/// What each of them had before. It must still be there.
const BEFORE: &str = "{\n  \"theme\": \"dark\"\n}\n";

/// Lets `connect` write, and returns the file and the entry in it.
fn connected(home: &Home, client: (&str, &str, &str), more: &[&str]) -> (PathBuf, Value) {
    let (word, file, section) = client;
    let person = PathBuf::from(home.path()).join("person");
    let file = person.join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, BEFORE).unwrap();
    let arguments = [&["connect", word, "--yes"], more].concat();
    let output = home
        .ringfence(&arguments)
        .env("HOME", &person)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{word}: {said}");
    let whole: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(whole["theme"], "dark", "{word}: {whole}");
    let entry = whole[section]["ringfence"].clone();
    (file, entry)
}

/// Only what the client's documentation names.
fn assert_known(word: &str, entry: &Value, known: &[&str]) {
    let names: Vec<_> = entry.as_object().unwrap().keys().collect();
    let is_known = |name: &&String| known.contains(&name.as_str());
    assert!(names.iter().all(is_known), "{word}: {entry}");
    let kind = entry.get("type").and_then(Value::as_str);
    let expected = if known.contains(&"url") {
        "http"
    } else {
        "stdio"
    };
    // These two want it said; the others tell by what else is there.
    let must_say = matches!(word, "claude-code" | "vscode");
    assert_eq!(kind, must_say.then_some(expected), "{word}: {entry}");
}

/// The client finds the tools by this part of a plan alone.
fn lists(kind: Kind, mut plan: Value, what: &str) {
    plan["mode"] = json!("legacy");
    plan["steps"] = json!([{"do": "list"}]);
    let client = Client::with_plan(kind, &plan, format!("{kind:?} as {what}"));
    let connected = client.next();
    client.check(connected["connected"] == json!(true), &connected);
    let listed = client.step(0);
    client.check(listed.to_string().contains("greet"), &listed);
}

#[test]
fn programs_are_started_as_written() {
    let home = Home::new("connect-programs");
    for (word, file, section, _) in CLIENTS {
        let (file, entry) = connected(&home, (word, file, section), &[]);
        assert_known(word, &entry, &["type", "command", "args", "env"]);
        let mut command = vec![entry["command"].clone()];
        command.extend(entry["args"].as_array().unwrap().iter().cloned());
        for kind in [Kind::SdkV1, Kind::ClientV2, Kind::Python] {
            lists(
                kind,
                json!({"command": command, "environment": entry["env"]}),
                word,
            );
        }
        if section == "mcpServers" {
            listed_by_file(&home, &file, word);
        }
    }
}

#[test]
fn addresses_are_gone_to_as_written() {
    let home = Home::new("connect-addresses");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap();
    home.settings(&format!("[serve]\nlisten = \"{listen}\"\n"));
    drop(free);
    let _server = home.serve_as_set();
    for (word, file, section, takes_addresses) in CLIENTS {
        if !takes_addresses {
            let output = home.run(&["connect", word, "--yes", "--http"]);
            assert!(!output.status.success(), "{word} takes no addresses");
            continue;
        }
        let (file, entry) = connected(&home, (word, file, section), &["--http"]);
        assert_known(word, &entry, &["type", "url", "headers"]);
        let header = entry["headers"]["Authorization"].as_str().unwrap();
        let token = header.strip_prefix("Bearer ").unwrap();
        for kind in [Kind::SdkV1, Kind::ClientV2, Kind::Python] {
            lists(kind, json!({"url": entry["url"], "token": token}), word);
        }
        // The Inspector wants the kind said where Cursor tells by the address.
        if section == "mcpServers" && entry.get("type").is_some() {
            listed_by_file(&home, &file, word);
        }
    }
}
