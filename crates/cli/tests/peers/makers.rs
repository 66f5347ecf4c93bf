//! Servers of every maker over pipes, each in its jail: the reference servers of npm and
//! PyPI, FastMCP, rmcp, both lines of the TypeScript SDK. Each is listed, called, restarted
//! and killed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Client, Kind, Way, node, peers, place_scripts};
use crate::servers::section;
use crate::tools::said;
use crate::world::{Home, NAMED};

/// A server, and what is asked of it.
struct Foreign {
    name: &'static str,
    section: String,
    call: (&'static str, Value),
    says: &'static str,
}

/// A variable of every one of them, so that the processes of this test are known.
const MARK: &str = "PEERS_MARK";

/// What a server may use, as its section says it.
#[derive(Default)]
struct Uses<'a> {
    read: &'a [&'a Path],
    write: &'a [&'a Path],
    variables: &'a [(&'a str, String)],
    more: &'a str,
}

impl Uses<'_> {
    fn lines(&self) -> String {
        let paths = |paths: &[&Path]| {
            let texts: Vec<_> = paths.iter().map(|path| text(path)).collect();
            json!(texts)
        };
        let mut variables = vec![format!("{MARK} = \"1\"")];
        for (name, value) in self.variables {
            variables.push(format!("{name} = {}", json!(value)));
        }
        format!(
            "read = {}\nwrite = {}\nenv = {{ {} }}\n{}",
            paths(self.read),
            paths(self.write),
            variables.join(", "),
            self.more
        )
    }
}

fn text(path: &Path) -> String {
    path.canonicalize().unwrap().display().to_string()
}

fn repository(folder: &Path) -> PathBuf {
    let repository = folder.join("repository");
    let mut made = Command::new("git");
    let made = made.args(["init", "-q"]).arg(&repository).status();
    assert!(made.unwrap().success());
    repository
}

/// The reference servers of npm, and an echo on each line of the TypeScript SDK.
fn of_node(folder: &Path) -> Vec<Foreign> {
    let home = peers().join("node").canonicalize().unwrap();
    let node = text(&node());
    let package = |name: &str| {
        let file = format!("node_modules/@modelcontextprotocol/{name}/dist/index.js");
        home.join(file).display().to_string()
    };
    let script = |name: &str| home.join(name).display().to_string();
    let read = Uses {
        read: &[&home],
        ..Uses::default()
    };
    let echo = |name: &'static str, file: &str, era: &str| Foreign {
        name,
        section: section(name, &[&node, &script(file), "--stdio"], &read.lines())
            .replace("era = \"legacy\"", &format!("era = \"{era}\"")),
        call: ("echo", json!({"text": name})),
        says: name,
    };
    let files = folder.display().to_string();
    let write = Uses {
        read: &[&home],
        write: &[folder],
        ..Uses::default()
    };
    let kept = [("MEMORY_FILE_PATH", format!("{files}/memory.jsonl"))];
    let memory = Uses {
        read: &[&home],
        write: &[folder],
        variables: &kept,
        ..Uses::default()
    };
    vec![
        Foreign {
            name: "everything",
            section: section(
                "everything",
                &[&node, &package("server-everything")],
                &read.lines(),
            ),
            call: ("get-sum", json!({"a": 2, "b": 3})),
            says: "is 5",
        },
        Foreign {
            name: "files",
            section: section(
                "files",
                &[&node, &package("server-filesystem"), &files],
                &write.lines(),
            ),
            call: ("read_text_file", json!({"path": format!("{files}/a.txt")})),
            says: "hello from a file",
        },
        Foreign {
            name: "memory",
            section: section(
                "memory",
                &[&node, &package("server-memory")],
                &memory.lines(),
            ),
            call: ("read_graph", json!({})),
            says: "entities",
        },
        echo("older", "echo-v1.mjs", "legacy"),
        echo("newer", "echo-v2.mjs", "modern"),
    ]
}

/// A program of a virtual environment.
fn program(venv: &Path, name: &str) -> String {
    venv.join("bin").join(name).display().to_string()
}

/// What a server of a virtual environment uses.
fn with_venv(venv: &Path, write: &[&Path], more: &str) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let uses = Uses {
        read: &[venv, &scripts],
        write,
        more,
        ..Uses::default()
    };
    uses.lines()
}

/// The reference servers of PyPI that stand on the newer SDK.
fn of_python(folder: &Path, lab: u16) -> Vec<Foreign> {
    let python = peers().join("python");
    let (repository, at) = (repository(folder), text(&folder.join("repository")));
    let git = program(&python, "mcp-server-git");
    let hosts = format!("hosts = [\"127.0.0.1:{lab}\"]");
    vec![
        Foreign {
            name: "git",
            section: section(
                "git",
                &[&git, "--repository", &at],
                &with_venv(&python, &[&repository], ""),
            ),
            call: ("git_status", json!({"repo_path": at})),
            says: "branch",
        },
        Foreign {
            name: "time",
            section: section(
                "time",
                &[&program(&python, "mcp-server-time")],
                &with_venv(&python, &[], ""),
            ),
            call: ("get_current_time", json!({"timezone": "Europe/Paris"})),
            says: "Europe/Paris",
        },
        Foreign {
            name: "web",
            section: section(
                "web",
                &[&program(&python, "mcp-server-fetch"), "--allow-private-ips"],
                &with_venv(&python, &[], &hosts),
            ),
            call: (
                "fetch",
                json!({"url": format!("http://127.0.0.1:{lab}/page")}),
            ),
            says: "the lab greets",
        },
    ]
}

/// The one on the older SDK, and one on FastMCP.
fn of_older_python(folder: &Path) -> Vec<Foreign> {
    let proxies = peers().join("proxies");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/notes.py");
    let database = folder.join("peers.db").display().to_string();
    let sqlite = program(&proxies, "mcp-server-sqlite");
    vec![
        Foreign {
            name: "sqlite",
            section: section(
                "sqlite",
                &[&sqlite, "--db-path", &database],
                &with_venv(&proxies, &[folder], ""),
            ),
            call: ("read_query", json!({"query": "SELECT 6 * 7 AS answer"})),
            says: "42",
        },
        Foreign {
            name: "notes",
            section: section(
                "notes",
                &[&program(&proxies, "python"), &text(&script)],
                &with_venv(&proxies, &[], "prompts = true\nresources = true"),
            ),
            call: ("add_note", json!({"text": "tea"})),
            says: "",
        },
    ]
}

/// A server on rmcp, built beside the program.
fn of_rust() -> Foreign {
    let program = Path::new(env!("CARGO_BIN_EXE_ringfence"));
    let program = program.with_file_name("bridge-test-rmcp");
    assert!(program.exists(), "build the workspace first");
    Foreign {
        name: "rust",
        section: section("rust", &[&text(&program)], &Uses::default().lines()),
        call: ("add", json!({"a": 20, "b": 22})),
        says: "the sum is 42",
    }
}

/// A page on loopback, for the server that fetches.
fn lab() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or_default();
            let is_robots = String::from_utf8_lossy(&head[..count]).contains("robots.txt");
            let (status, body) = match is_robots {
                true => ("404 Not Found", "none"),
                false => ("200 OK", "the lab greets"),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}

/// Ends every process of these servers at once, as a crash does.
fn kill_all() -> usize {
    let mut count = 0;
    for entry in fs::read_dir("/proc").unwrap() {
        let folder = entry.unwrap().path();
        let variables = fs::read(folder.join("environ")).unwrap_or_default();
        let mark = format!("{MARK}=1");
        let is_marked = variables
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes());
        let id = folder
            .file_name()
            .and_then(|name| name.to_str()?.parse::<u32>().ok());
        if let (true, Some(id)) = (is_marked, id) {
            let killed = Command::new("kill").args(["-9", &id.to_string()]).status();
            count += usize::from(killed.unwrap().success());
        }
    }
    count
}

/// A home with all of them, accepted.
fn accepted(servers: &[Foreign]) -> Home {
    let home = Home::new("makers");
    let sections = servers.iter().map(|server| server.section.as_str());
    let sections: String = sections.collect();
    home.settings(&format!(
        "[approvals]\nwait_seconds = 20\n{NAMED}{sections}"
    ));
    for server in servers {
        home.must(&["servers", "accept", server.name, "--yes"]);
    }
    home
}

#[test]
fn servers_of_every_maker_are_listed_called_restarted_and_killed() {
    place_scripts();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers/makers.files");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    fs::write(folder.join("a.txt"), "hello from a file").unwrap();
    let lab = lab();
    let mut servers = of_node(&folder);
    servers.extend(of_python(&folder, lab));
    servers.extend(of_older_python(&folder));
    servers.push(of_rust());
    let home = accepted(&servers);
    let serving = home.serve();
    let mut steps: Vec<_> = servers
        .iter()
        .map(|server| {
            let name = format!("{}__{}", server.name, server.call.0);
            json!({"do": "call", "name": name, "arguments": server.call.1})
        })
        .collect();
    // Another port of the same machine is another place.
    let elsewhere = json!({"url": "http://127.0.0.1:9/"});
    steps.push(json!({"do": "call", "name": "web__fetch", "arguments": elsewhere}));
    let round = |kind: Kind, mode: (&'static str, bool)| {
        let client = Client::start(kind, mode, Way::Http(&serving), &json!({"steps": steps}));
        let mut wrong = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            let event = client.step(number);
            let is_good = event["isError"] == json!(false) && said(&event).contains(server.says);
            if !is_good {
                wrong.push(format!("{}: {event}", server.name));
            }
        }
        let refused = client.step(servers.len());
        if refused["isError"] != json!(true) {
            wrong.push(format!("web, elsewhere: {refused}"));
        }
        wrong
    };
    for (kind, mode) in [
        (Kind::SdkV1, ("legacy", false)),
        (Kind::ClientV2, ("2026-07-28", true)),
    ] {
        let wrong = round(kind, mode);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    for server in &servers {
        home.must(&["servers", "restart", server.name]);
    }
    let wrong = round(Kind::SdkV1, ("legacy", false));
    assert!(wrong.is_empty(), "after a restart: {wrong:#?}");
    assert!(kill_all() >= servers.len(), "each has a process");
    // They are started again, after a pause that grows.
    let mut wrong = Vec::new();
    for _ in 0..20 {
        wrong = round(Kind::SdkV1, ("legacy", false));
        if wrong.is_empty() {
            break;
        }
    }
    assert!(wrong.is_empty(), "after they were killed: {wrong:#?}");
    let verified = home.must(&["audit", "verify"]);
    assert!(verified.contains("whole"), "{verified}");
}
