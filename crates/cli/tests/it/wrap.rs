//! `wrap` under faults: whatever stops it, the client's file is the old one or the new
//! one, and the command can be repeated.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ringfence;
use crate::run::scratch;
use crate::terminal::Terminal;

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// A person with a client that has two servers, one with a secret.
fn person(name: &str) -> (PathBuf, String) {
    let folder = scratch(name);
    fs::create_dir_all(folder.join("me/.cursor")).unwrap();
    fs::create_dir_all(folder.join("ring")).unwrap();
    let text = format!(
        "{{\"mcpServers\":{{\n \"one\": {{\"command\": \"bridge-test-server\"}},\n\n \"two\": {{\"command\": \"npx\", \"args\": [\"-y\",\"x@1.0.0\"], \"env\": {{\"X_TOKEN\": \"{SECRET}\"}}}}}}}}"
    );
    fs::write(folder.join("me/.cursor/mcp.json"), &text).unwrap();
    (folder, text)
}

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let home = folder.join("me").display().to_string();
    let run = ringfence(words).within(folder);
    let run = run
        .variable("HOME", &home)
        .variable("RINGFENCE_HOME", "ring");
    let output = run.output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code(), shown)
}

fn settings(folder: &Path) -> String {
    fs::read_to_string(folder.join("me/.cursor/mcp.json")).unwrap()
}

/// Each fault stops the command at another step.
#[test]
fn a_fault_at_any_step_leaves_the_file_and_the_command_can_be_repeated() {
    type Fault = fn(&Path);
    let faults: [(&str, Fault, Fault); 4] = [
        (
            "secrets",
            |folder| {
                fs::write(folder.join("ring/secrets.env"), "OLD=1\n").unwrap();
                mode(&folder.join("ring/secrets.env"), 0o644);
            },
            |folder| mode(&folder.join("ring/secrets.env"), 0o600),
        ),
        (
            "settings",
            |folder| fs::write(folder.join("ring/ringfence.toml"), "server = 3\n").unwrap(),
            |folder| fs::write(folder.join("ring/ringfence.toml"), "# mine\n").unwrap(),
        ),
        (
            "record",
            |folder| fs::write(folder.join("ring/wraps"), "").unwrap(),
            |folder| fs::remove_file(folder.join("ring/wraps")).unwrap(),
        ),
        (
            "key",
            |folder| {
                let (code, shown) = run(folder, &["keys", "add", "cursor"]);
                assert_eq!(code, Some(0), "{shown}");
            },
            |folder| {
                let (code, shown) = run(folder, &["keys", "revoke", "cursor"]);
                assert_eq!(code, Some(0), "{shown}");
            },
        ),
    ];
    for (name, fault, mend) in faults {
        let (folder, text) = person(&format!("wrap-fault-{name}"));
        fault(&folder);
        let (code, shown) = run(&folder, &["wrap", "cursor", "--yes"]);
        assert_eq!(code, Some(2), "{name}: {shown}");
        assert_eq!(settings(&folder), text, "{name}: {shown}");
        mend(&folder);
        let (code, shown) = run(&folder, &["wrap", "cursor", "--yes"]);
        assert_eq!(code, Some(0), "{name}: {shown}");
        // With its quotes: the letters alone can be a part of the key.
        let wrapped = settings(&folder);
        assert!(!wrapped.contains("\"npx\""), "{name}: {wrapped}");
        let (_, listed) = run(&folder, &["servers", "list"]);
        assert_eq!(listed.lines().count(), 2, "{name}: {listed}");
        let secrets = fs::read_to_string(folder.join("ring/secrets.env")).unwrap();
        assert_eq!(secrets.matches(SECRET).count(), 1, "{name}");
        let (code, shown) = run(&folder, &["unwrap", "--yes"]);
        assert_eq!(code, Some(0), "{name}: {shown}");
        assert_eq!(settings(&folder), text, "{name}: {shown}");
    }
}

/// As a crash leaves it: everything but the last step was done.
#[test]
fn a_run_that_ended_before_its_last_step_is_repeated() {
    let (folder, text) = person("wrap-interrupted");
    let (code, shown) = run(&folder, &["wrap", "cursor", "--yes"]);
    assert_eq!(code, Some(0), "{shown}");
    fs::write(folder.join("me/.cursor/mcp.json"), &text).unwrap();
    let (code, shown) = run(&folder, &["wrap", "cursor", "--yes"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(settings(&folder).contains("stdio"), "{shown}");
    let (_, listed) = run(&folder, &["servers", "list"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let (_, keys) = run(&folder, &["keys", "list"]);
    assert_eq!(keys.matches("cursor").count(), 1, "{keys}");
    let (code, shown) = run(&folder, &["unwrap", "--yes"]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(settings(&folder), text);
    let names = fs::read_dir(folder.join("me/.cursor")).unwrap().count();
    assert_eq!(names, 1, "no copy is left");
}

/// A copy that is not the one that was made restores nothing.
#[test]
fn a_changed_copy_is_not_restored() {
    let (folder, _) = person("wrap-copy");
    run(&folder, &["wrap", "cursor", "--yes"]);
    let wrapped = settings(&folder);
    let copy = folder.join("me/.cursor/mcp.json.ringfence-backup");
    fs::write(&copy, "{}").unwrap();
    let (code, shown) = run(&folder, &["unwrap", "--yes", "--force"]);
    assert_eq!(code, Some(2), "{shown}");
    assert_eq!(settings(&folder), wrapped);
}

/// At a terminal a no changes nothing, and what the question shows holds no secret.
#[test]
fn a_person_is_asked_first() {
    let (folder, text) = person("wrap-asked");
    let program = env!("CARGO_BIN_EXE_ringfence");
    for (answer, code) in [("n\n", 1), ("y\n", 0)] {
        let line = format!("HOME=$PWD/me {program} wrap cursor --home ring");
        let mut terminal = Terminal::start(&line, &folder);
        terminal.answer(answer, 1);
        let (status, shown) = terminal.end();
        assert_eq!(status.code(), Some(code), "{shown}");
        assert!(!shown.contains(SECRET), "{shown}");
        assert_eq!(settings(&folder) == text, code == 1, "{shown}");
    }
}

/// The owner accepts what was shown, by a typed yes.
#[test]
fn accepting_is_asked_at_a_terminal() {
    let folder = scratch("servers-asked");
    let path = PathBuf::from(env!("CARGO_BIN_EXE_ringfence"));
    let path = path.parent().unwrap().display().to_string();
    let program = format!("PATH={path}:/usr/bin:/bin ringfence");
    let add = [
        "servers", "add", "acme", "--era", "legacy", "--home", "ring",
    ];
    let add = [&add[..], &["--", "bridge-test-server"]].concat();
    let added = ringfence(&add).within(&folder).variable("PATH", &path);
    assert_eq!(added.output().status.code(), Some(0), "{}", added.shown());
    for (answer, code) in [("n\n", 1), ("y\n", 0)] {
        let line = format!("{program} servers accept acme --home ring");
        let mut terminal = Terminal::start(&line, &folder);
        terminal.answer(answer, 1);
        let (status, shown) = terminal.end();
        assert_eq!(status.code(), Some(code), "{shown}");
        assert!(shown.contains("Gives the words back."), "{shown}");
    }
}

fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
