//! Other people's MCP servers behind the fence: the reference servers from npm and PyPI,
//! each in its jail, called by clients of both eras.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Client, Kind, Way, node, peers, place_scripts};
use crate::tools::{named, said};
use crate::world::{Home, NAMED};

/// A `[[server]]` section.
pub(crate) fn section(name: &str, command: &[&str], more: &str) -> String {
    format!(
        "\n[[server]]\nname = \"{name}\"\nera = \"legacy\"\ncommand = {}\n{more}\n",
        json!(command)
    )
}

/// A home with the servers of npm and PyPI, all accepted, and a folder for files.
fn home(name: &str) -> (Home, String) {
    let home = Home::new(name);
    let folder = Path::new(home.path()).with_extension("files");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.txt"), "hello from a file").unwrap();
    let folder = folder.canonicalize().unwrap().display().to_string();
    let packages = peers().join("node/node_modules");
    let packages = packages.canonicalize().unwrap();
    let script = |package: &str| {
        let file = format!("@modelcontextprotocol/{package}/dist/index.js");
        packages.join(file).display().to_string()
    };
    let node = node().canonicalize().unwrap().display().to_string();
    let read = format!("read = [{}]", json!(packages.display().to_string()));
    let write = format!("{read}\nwrite = [{}]", json!(folder));
    let memory = format!(
        "{read}\nenv = {{ MEMORY_FILE_PATH = {} }}\nwrite = [{}]",
        json!(format!("{folder}/memory.jsonl")),
        json!(folder)
    );
    let python = peers().join("python");
    let time = python.join("bin/mcp-server-time").display().to_string();
    let time_read = format!(
        "read = [{}]",
        json!(python.canonicalize().unwrap().display().to_string())
    );
    home.settings(&format!(
        "[approvals]\nwait_seconds = 20\n{NAMED}{}{}{}{}",
        section("everything", &[&node, &script("server-everything")], &read),
        section(
            "files",
            &[&node, &script("server-filesystem"), &folder],
            &write
        ),
        section("memory", &[&node, &script("server-memory")], &memory),
        section("time", &[&time], &time_read),
    ));
    for server in ["everything", "files", "memory", "time"] {
        home.must(&["servers", "accept", server, "--yes"]);
    }
    (home, folder)
}

#[test]
fn reference_servers_are_listed_and_called_by_clients_of_both_eras() {
    let (home, folder) = home("servers");
    let server = home.serve();
    let steps = json!([
        {"do": "list"},
        {"do": "call", "name": "everything__get-sum", "arguments": {"a": 2, "b": 3}},
        {"do": "call", "name": "everything__get-sum", "arguments": {"a": "two", "b": 3}},
        {"do": "call", "name": "files__read_text_file", "arguments": {"path": format!("{folder}/a.txt")}},
        {"do": "call", "name": "files__read_text_file", "arguments": {"path": "/etc/hostname"}},
        {"do": "call", "name": "memory__create_entities", "arguments": {"entities": [
            {"name": "Ann", "entityType": "person", "observations": ["likes tea"]},
        ]}},
        {"do": "call", "name": "memory__read_graph", "arguments": {}},
        {"do": "call", "name": "time__get_current_time", "arguments": {"timezone": "Europe/Paris"}},
        {"do": "call", "name": "everything__trigger-long-running-operation",
            "arguments": {"duration": 1, "steps": 4}, "progress": true},
    ]);
    for (kind, mode) in [
        (Kind::Python, ("legacy", false)),
        (Kind::SdkV1, ("legacy", false)),
        (Kind::ClientV2, ("2026-07-28", true)),
    ] {
        let client = Client::start(kind, mode, Way::Http(&server), &json!({"steps": steps}));
        let listed = client.step(0);
        for name in [
            "everything__get-tiny-image",
            "files__write_file",
            "time__convert_time",
        ] {
            client.check(named(&listed).contains(&name), &listed);
        }
        let step = |number: usize, is_error: bool, words: &str| {
            let event: Value = client.step(number);
            client.check(event["isError"] == json!(is_error), &event);
            client.check(said(&event).contains(words), &event);
            event
        };
        step(1, false, "is 5");
        step(2, true, "argument.schema");
        step(3, false, "hello from a file");
        step(4, true, "Access denied");
        // The first client makes it; for the others it is there.
        step(5, false, "");
        step(6, false, "likes tea");
        step(7, false, "Europe/Paris");
        let slow = step(8, false, "completed");
        let signs = slow["progress"].as_array().unwrap();
        client.check(!signs.is_empty(), &slow);
    }
    let verified = home.must(&["audit", "verify"]);
    assert!(verified.contains("whole"), "{verified}");
}

#[test]
fn every_command_has_a_server_of_its_own_and_a_blocked_tool_is_gone() {
    let (home, _) = home("servers-killed");
    let sum = || home.must(&["run", "everything__get-sum", "--args", r#"{"a":1,"b":1}"#]);
    assert!(sum().contains("is 2"));
    // Each command is a process of its own, so the second call has a server of its own.
    assert!(sum().contains("is 2"));
    home.must(&["servers", "block", "everything", "get-sum"]);
    let blocked = home.run(&["run", "everything__get-sum", "--args", r#"{"a":1,"b":1}"#]);
    assert!(!blocked.status.success());
}

/// A server of another SDK at an address of this machine.
struct Echo {
    child: Child,
    url: String,
}

impl Echo {
    fn start(mut command: Command) -> Echo {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = ready["url"].as_str().unwrap().to_owned();
        Echo { child, url }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All four combinations: clients of both eras, and servers of both at an address.
#[test]
fn servers_at_an_address_are_called_in_every_combination_of_eras() {
    place_scripts();
    let script = |name: &str| {
        let mut command = Command::new(node());
        command.arg(peers().join("node").join(name));
        command
    };
    let servers = [
        ("older", "legacy", Echo::start(script("echo-v1.mjs"))),
        ("newer", "modern", Echo::start(script("echo-v2.mjs"))),
        ("either", "auto", Echo::start(script("echo-v2.mjs"))),
    ];
    let home = Home::new("servers-http");
    let mut settings = format!("[approvals]\nwait_seconds = 20\n{NAMED}");
    for (name, era, echo) in &servers {
        settings.push_str(&format!(
            "\n[[server]]\nname = \"{name}\"\nera = \"{era}\"\nurl = \"{}\"\nprivate = true\n",
            echo.url
        ));
    }
    home.settings(&settings);
    for (name, ..) in &servers {
        home.must(&["servers", "accept", name, "--yes"]);
    }
    let server = home.serve();
    let steps: Vec<_> = servers
        .iter()
        .map(|(name, ..)| {
            json!({"do": "call", "name": format!("{name}__echo"), "arguments": {"text": name}})
        })
        .collect();
    for (kind, mode) in [
        (Kind::SdkV1, ("legacy", false)),
        (Kind::Python, ("legacy", false)),
        (Kind::ClientV2, ("2026-07-28", true)),
    ] {
        let client = Client::start(kind, mode, Way::Http(&server), &json!({"steps": steps}));
        for (number, (name, ..)) in servers.iter().enumerate() {
            let event = client.step(number);
            client.check(event["isError"] == json!(false), &event);
            client.check(said(&event).contains(name), &event);
        }
    }
}
