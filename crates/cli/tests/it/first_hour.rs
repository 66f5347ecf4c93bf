//! Errors of the first hour. Each is brought about for real, and its answer says what to
//! do next.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{command, first_line, terminate};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringfence");

/// Gives every call of the numbered system calls an error, then becomes the program. A
/// kernel that lacks them answers the same.
const WITHOUT: &str = r#"
    my ($errno, @numbers) = (shift, split(/,/, shift));
    my $filter = pack("SCCL", 0x20, 0, 0, 0);
    my $left = @numbers;
    $filter .= pack("SCCL", 0x15, --$left + 1, 0, $_) for @numbers;
    $filter .= pack("SCCL", 0x06, 0, 0, 0x7fff0000) . pack("SCCL", 0x06, 0, 0, 0x00050000 | $errno);
    my $program = pack("Sx6P", length($filter) / 8, $filter);
    my $prctl = `uname -m` =~ /x86_64/ ? 157 : 167;
    syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall($prctl, 22, 2, $program) == 0 or die "filter: $!";
    exec @ARGV or die "exec: $!";
"#;
const ENOSYS: u32 = 38;
const EPERM: u32 = 1;
/// `landlock_create_ruleset`, the same everywhere.
const LANDLOCK: &str = "444";

fn without(errno: u32, numbers: &str, arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = Command::new("perl")
        .args(["-e", WITHOUT, &errno.to_string(), numbers, PROGRAM])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("RINGFENCE_HOME", "ring")
        .output()
        .unwrap();
    said(&output)
}

fn said(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), all)
}

#[test]
fn a_kernel_without_landlock_is_named_with_the_fix() {
    let folder = scratch("first-landlock");
    let (code, said) = without(ENOSYS, LANDLOCK, &["doctor"], &folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("DOWN  landlock_files"), "{said}");
    assert!(
        said.contains("fix: enable Landlock: Linux 5.13 or newer"),
        "{said}"
    );
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let (code, said) = without(ENOSYS, LANDLOCK, &serve, &folder);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("the layer `landlock_files` of the sandbox is missing"),
        "{said}"
    );
    assert!(
        said.contains("\nhint: enable Landlock: Linux 5.13 or newer"),
        "{said}"
    );
    assert!(said.contains("`ringfence doctor`"), "{said}");
    let run = ["run", "countWords", "--args", "{\"text\":\"a b\"}"];
    let (code, said) = without(ENOSYS, LANDLOCK, &run, &folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("hint: `ringfence doctor` says which layer is missing"),
        "{said}"
    );
}

/// The sandbox needs no user namespaces, so a system that forbids them is as good.
#[cfg(target_arch = "x86_64")]
#[test]
fn user_namespaces_are_not_needed() {
    let folder = scratch("first-namespaces");
    // `unshare` and `setns`.
    let (code, said) = without(EPERM, "272,308", &["doctor"], &folder);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("rung `landlock`"), "{said}");
    assert!(said.contains("no `namespaces` layer: "), "{said}");
    let run = ["run", "countWords", "--args", "{\"text\":\"a b\"}"];
    let (code, said) = without(EPERM, "272,308", &run, &folder);
    assert_eq!(code, Some(0), "{said}");
}

/// As an ordinary user under a filter that refuses namespaces: as root, a program without
/// namespaces is another user, to whom a home is closed. `numbers` are refused.
fn ordinary_without(numbers: &str, arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let mut command = ordinary("perl");
    command.args(["-e", WITHOUT, &EPERM.to_string(), numbers, PROGRAM]);
    command.args(arguments).current_dir(folder).env_clear();
    command
        .env("PATH", "/usr/bin:/bin")
        .env("RINGFENCE_HOME", "ring");
    said(&command.output().unwrap())
}

/// A home with settings, below `folder`, of the ordinary user; all else in `folder`, too.
fn ordinary_home(folder: &Path, settings: &str) {
    let ring = folder.join("ring");
    fs::create_dir_all(&ring).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&ring, mode).unwrap();
    fs::write(ring.join("ringfence.toml"), settings).unwrap();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop().filter(|_| is_root()) {
        std::os::unix::fs::lchown(&path, Some(ORDINARY), Some(ORDINARY)).unwrap();
        let inside = fs::read_dir(&path).into_iter().flatten().flatten();
        open.extend(inside.map(|entry| entry.path()));
    }
}

/// What the operator requires and the machine lacks is said, with the remedy.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_jail_that_is_required_and_missing_is_named_with_the_fix() {
    let folder = scratch("first-required");
    ordinary_home(&folder, "[sandbox.jail]\nrequire = \"namespaces\"\n");
    let (code, said) = ordinary_without("272,308", &["doctor"], &folder);
    assert_eq!(code, Some(1), "{said}");
    let line = "none starts: `[sandbox.jail]` requires namespaces, and there are none here";
    assert!(said.contains(line), "{said}");
    assert!(
        said.contains("an AppArmor profile with `userns,`"),
        "{said}"
    );
    // The control: where they are, nothing is wrong. A call that no kernel has is refused.
    let (code, said) = ordinary_without("9999", &["doctor"], &folder);
    assert_eq!(code, Some(0), "{said}");
}

/// As root without namespaces a child is another user, to whom the home is closed: said.
#[cfg(target_arch = "x86_64")]
#[test]
fn as_root_a_home_that_is_closed_to_children_is_said() {
    let folder = scratch("first-closed");
    fs::create_dir_all(folder.join("ring")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(folder.join("ring"), mode).unwrap();
    let (code, said) = without(EPERM, "272,308", &["doctor"], &folder);
    assert_eq!(code, Some(0), "{said}");
    let sentence = "or run Ringfence as an ordinary user";
    assert_eq!(said.contains(sentence), is_root(), "{said}");
}

/// Without namespaces nothing can be laid over a folder of the operator's: a command works on
/// a copy of it, and what it changed comes back the same way.
#[cfg(target_arch = "x86_64")]
#[test]
fn without_namespaces_a_command_works_on_a_copy_of_the_folder() {
    let folder = scratch("first-copy");
    let project = folder.join("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    for (name, text) in [("kept", "old"), ("gone", "old"), (".git/config", "safe")] {
        fs::write(project.join(name), text).unwrap();
    }
    let settings = |last: &str| {
        let place = project.display();
        format!(
            "[toolbox]\nenabled = [\"terminal\"]\nfolder = \"{place}\"\n{last}\
             [[rule]]\nid = \"all\"\neffect = \"allow\"\n"
        )
    };
    let line = "cat kept; echo new > made; echo changed > kept; rm gone; echo hook > .git/config";
    let arguments = format!("{{\"command\":\"{line}\"}}");
    let run = ["run", "shell", "--args", &arguments];
    let read = |name: &str| fs::read_to_string(project.join(name)).unwrap_or_default();
    let refused = "[[rule]]\nid = \"no\"\ntools = [\"applyChanges\"]\neffect = \"deny\"\n";
    ordinary_home(&folder, &settings(refused));
    let (code, said) = ordinary_without("272,308", &run, &folder);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("old"), "{said}");
    assert_eq!(
        [read("kept"), read("gone"), read("made")],
        ["old", "old", ""]
    );
    // The record tells what came after the gates, and a tool where the id of a call stands is
    // answered with the way to ask for it.
    let explain = |call: &str| {
        let arguments = ["explain", call];
        ordinary_without("272,308", &arguments, &folder)
    };
    let (code, listed) = ordinary_without("272,308", &["audit", "list", "--json"], &folder);
    assert_eq!(code, Some(0), "{listed}");
    let entries: Value = serde_json::from_str(&listed).unwrap();
    let of = |tool: &str| {
        let mut entries = entries.as_array().unwrap().iter();
        let opening = entries
            .find(|entry| entry["opening"]["tool"] == tool)
            .unwrap();
        opening["opening"]["callId"].as_str().unwrap().to_owned()
    };
    let (_, told) = explain(&of("shell"));
    for expected in [
        "ran           /usr/bin/sh, exit code 0, ".to_owned(),
        format!(
            "called        applyChanges, refused [rule.denied]  ({})",
            of("applyChanges")
        ),
    ] {
        assert!(told.contains(&expected), "{expected}: {told}");
    }
    let imagined = ["explain", "shell", "--args", "{}"];
    let (code, told) = ordinary_without("272,308", &imagined, &folder);
    assert_ne!(code, Some(0), "{told}");
    assert!(told.contains("`--tool shell`"), "{told}");
    let (_, told) = explain("shell");
    assert!(told.contains("`--tool shell`"), "{told}");
    // What a param may say is shown with it.
    let (_, told) = ordinary_without("272,308", &["show", "jobOutput"], &folder);
    let line = told.lines().find(|line| line.contains("stream: string"));
    assert!(
        line.is_some_and(|line| line.ends_with(": stdout, stderr")),
        "{told}"
    );
    ordinary_home(&folder, &settings(""));
    let (code, said) = ordinary_without("272,308", &run, &folder);
    assert_eq!(code, Some(0), "{said}");
    let now = [read("kept"), read("gone"), read("made")];
    assert_eq!(now, ["changed\n", "", "new\n"], "{said}");
    // What other programs obey does not come back.
    assert_eq!(read(".git/config"), "safe");
}

/// Without namespaces a SQLite file of the workspace is made, changed and read, and no other file
/// is opened.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_sqlite_file_is_used_without_namespaces() {
    let folder = scratch("first-sqlite");
    let settings = |jail: &str| {
        format!(
            "[toolbox]\nenabled = [\"sql\"]\n{jail}[[rule]]\nid = \"all\"\neffect = \"allow\"\n"
        )
    };
    let run = |tool: &str, file: &str, statement: &str| {
        let arguments = format!("{{\"file\":\"{file}\",\"statement\":\"{statement}\"}}");
        ordinary_without("272,308", &["run", tool, "--args", &arguments], &folder)
    };
    ordinary_home(&folder, &settings(""));
    for statement in [
        "CREATE TABLE items (name TEXT)",
        "INSERT INTO items VALUES ('apple')",
    ] {
        let (code, said) = run("sqlExecute", "a.db", statement);
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = run("sqlQuery", "a.db", "SELECT name FROM items");
    assert!(code == Some(0) && said.contains("apple"), "{said}");
    for (file, statement) in [
        ("a.db", "ATTACH '/etc/passwd' AS x"),
        ("a.db", "DELETE FROM items"),
        ("../ringfence.toml", "SELECT 1"),
    ] {
        let (code, said) = run("sqlQuery", file, statement);
        assert_ne!(code, Some(0), "{statement}: {said}");
    }
    // The control: it was the lower rung.
    ordinary_home(
        &folder,
        &settings("[sandbox.jail]\nrequire = \"namespaces\"\n"),
    );
    let (code, said) = run("sqlQuery", "a.db", "SELECT name FROM items");
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("jail.unavailable"), "{said}");
}

/// Root may write everywhere, so as root the program runs as another user.
fn as_ordinary_user(arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = ordinary(PROGRAM)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    said(&output)
}

const ORDINARY: u32 = 65534;

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0)
}

fn ordinary(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let user = ORDINARY.to_string();
    command.args([
        "--reuid",
        &user,
        "--regid",
        &user,
        "--clear-groups",
        program,
    ]);
    command
}

#[test]
fn a_home_that_cannot_be_written_is_named_with_the_fix() {
    let folder = scratch("first-home");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    for arguments in [
        &["list", "--home", "ring"][..],
        &["serve", "--listen", "127.0.0.1:0", "--home", "ring"],
        &["init", "--yes", "--home", "ring"],
    ] {
        let (code, said) = as_ordinary_user(arguments, &folder);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains("ring"), "{arguments:?}: {said}");
        assert!(said.contains("\nhint: user "), "{arguments:?}: {said}");
        assert!(
            said.contains("`--home DIR` or RINGFENCE_HOME"),
            "{arguments:?}: {said}"
        );
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!folder.join("ring").exists());
    fs::write(folder.join("file"), "").unwrap();
    let (code, said) = said(
        &ringfence(&["list", "--home", "file"])
            .within(&folder)
            .output(),
    );
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("hint: a file is in the place of a folder"),
        "{said}"
    );
}

/// The home of a service: root does not obey what another user could write, and is told how
/// to act as that user.
#[test]
fn root_is_told_how_to_use_a_home_of_another_user() {
    if !is_root() {
        return;
    }
    let folder = scratch("first-foreign");
    ordinary_home(&folder, "");
    let list = || {
        said(
            &ringfence(&["list", "--home", "ring"])
                .within(&folder)
                .output(),
        )
    };
    let (code, shown) = list();
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("user 65534 can write to "), "{shown}");
    let hint = "hint: `setpriv --reuid=65534 --regid=65534 --clear-groups ringfence …`";
    assert!(shown.contains(hint), "{shown}");
    // One of the users that systemd gives to units: no process outside can enter its home.
    std::os::unix::fs::lchown(folder.join("ring"), Some(64_000), Some(64_000)).unwrap();
    let (code, shown) = list();
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("hint: that is the home of a systemd unit"),
        "{shown}"
    );
    assert!(
        shown.contains("-p DynamicUser=yes -p User=ringfence"),
        "{shown}"
    );
    assert!(!shown.contains("setpriv"), "{shown}");
}

/// Settings that cannot be read need other rights, not other words.
#[test]
fn settings_that_cannot_be_read_are_told_from_wrong_ones() {
    let folder = scratch("first-unreadable");
    ordinary_home(&folder, "");
    let settings = folder.join("ring/ringfence.toml");
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o000)).unwrap();
    let (code, shown) = as_ordinary_user(&["doctor", "--home", "ring"], &folder);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("DOWN  settings"), "{shown}");
    assert!(shown.contains("fix: user "), "{shown}");
    assert!(!shown.contains("mend ringfence.toml"), "{shown}");
    // The control: words that are wrong.
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&settings, "[audit]\nnothing = 1\n").unwrap();
    let (_, shown) = as_ordinary_user(&["doctor", "--home", "ring"], &folder);
    assert!(shown.contains("fix: mend ringfence.toml"), "{shown}");
}

/// A slip in `--home` must not look like a home in which all is well.
#[test]
fn a_home_that_is_not_there_is_said_and_not_made() {
    let folder = scratch("first-typo");
    fs::create_dir_all(folder.join("empty")).unwrap();
    for home in ["typo", "empty"] {
        for words in [
            "audit verify",
            "audit list",
            "audit export",
            "audit key",
            "explain --tool countWords",
            "top --once",
            "approvals list",
            "approvals watch --count 0",
            "callers pause ann",
            "trust show ann",
            "studio --no-open",
            "policy test absent.toml",
        ] {
            let mut line: Vec<_> = words.split(' ').collect();
            line.extend(["--home", home]);
            let output = ringfence(&line).within(&folder).output();
            assert!(output.stdout.is_empty(), "{words}");
            let (code, shown) = said(&output);
            assert_eq!(code, Some(2), "{words}: {shown}");
            let sentence = format!("there is no home at `{}`", folder.join(home).display());
            assert!(shown.contains(&sentence), "{words}: {shown}");
        }
    }
    assert!(!folder.join("typo").exists());
    assert_eq!(fs::read_dir(folder.join("empty")).unwrap().count(), 0);
    // The control: settings make a home, and an export needs none.
    fs::write(folder.join("empty/ringfence.toml"), "").unwrap();
    let verify = |more: &[&str]| {
        let words = [&["audit", "verify"], more].concat();
        said(&ringfence(&words).within(&folder).output())
    };
    let (code, shown) = verify(&["--home", "empty"]);
    assert_eq!(code, Some(0), "{shown}");
    let (_, shown) = verify(&["--file", "absent.jsonl", "--home", "typo"]);
    assert!(!shown.contains("there is no home"), "{shown}");
}

#[test]
fn times_in_the_future_are_told_with_how_far() {
    let folder = scratch("first-clock");
    let run = |arguments: &[&str]| {
        let run = ringfence(arguments).within(&folder);
        said(&run.variable("RINGFENCE_HOME", "ring").output())
    };
    run(&["init", "--yes"]);
    let settings = fs::File::options()
        .append(true)
        .open(folder.join("ring/ringfence.toml"));
    let later = SystemTime::now() + Duration::from_secs(3 * 86_400 + 600);
    settings.unwrap().set_modified(later).unwrap();
    let (code, said) = run(&["doctor"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("`ringfence.toml` was changed 3 days in the future"),
        "{said}"
    );
    assert!(
        said.contains("fix: set the system's clock; if it is right, `touch "),
        "{said}"
    );
}

/// One request on a connection of its own.
fn get(address: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_former_key_is_told_whose_settings_hold_it() {
    let folder = scratch("first-token");
    let home = folder.join("ring");
    let keys = |arguments: &[&str]| {
        let run = ringfence(&[&["keys"], arguments].concat()).within(&folder);
        let output = run.variable("RINGFENCE_HOME", "ring").output();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let first = keys(&["add", "cursor"]);
    let mut child = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &home);
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let address = ready["url"].as_str().unwrap();
    let address = address
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let shown = |key: &str| get(address, &format!("authorization: Bearer {key}\r\n"));
    assert!(!shown(&first).starts_with("HTTP/1.1 401"));
    let second = keys(&["rotate", "cursor"]);
    let answer = shown(&first);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(
        answer.contains("the key of `cursor` was replaced"),
        "{answer}"
    );
    assert!(
        !answer.contains(&first) && !answer.contains(&second),
        "{answer}"
    );
    assert!(!shown(&second).starts_with("HTTP/1.1 401"));
    keys(&["revoke", "cursor"]);
    for former in [&first, &second] {
        let answer = shown(former);
        assert!(answer.contains("the key of `cursor` was"), "{answer}");
    }
    // A key of the same id that never was learns no name.
    let id = first.get(3..11).unwrap();
    let forged = model::govern::key::key(id, [7; 32]);
    let answer = shown(forged.reveal());
    assert!(
        answer.contains("the key is wrong or was revoked"),
        "{answer}"
    );
    assert!(!answer.contains("cursor"), "{answer}");
    // A client that starts the server reads the same in its log.
    let stdio = ringfence(&["stdio", "--home", "ring"]).within(&folder);
    let (code, said) = said(&stdio.variable("RINGFENCE_KEY", &first).output());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the key of `cursor` was replaced"), "{said}");
    // A person with a browser gets a page, a program JSON.
    let page = get(address, "accept: text/html,*/*;q=0.8\r\n");
    assert!(page.starts_with("HTTP/1.1 401"), "{page}");
    let lower = page.to_ascii_lowercase();
    assert!(
        lower.contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    assert!(lower.contains("www-authenticate: bearer"), "{page}");
    assert!(page.contains("<code>ringfence connect</code>"), "{page}");
    assert!(!lower.contains("<script") && !page.contains(&folder.display().to_string()));
    let program = get(address, "accept: application/json, text/event-stream\r\n");
    assert!(program.contains("\"reason\":\"gate.token\""), "{program}");
    assert_eq!(terminate(&mut child), Some(0));
}

/// The caller learns that a person must answer, and where; the person learns it from
/// standard error, with the command, which the caller does not see.
#[test]
fn a_client_that_cannot_ask_is_explained_to_both_sides() {
    let folder = scratch("first-elicitation");
    let home = folder.join("ring");
    fs::create_dir_all(&home).unwrap();
    let settings = "[approvals]\nwait_seconds = 3\n\n[[rule]]\nid = \"ask\"\ntools = [\"convertUnits\"]\neffect = \"ask\"\nreason = \"try it\"\n";
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    let mut child = command(&["stdio"], &home);
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "convertUnits", "arguments": {"value": 1, "from": "km", "to": "m"}}}),
    ];
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("\"id\":2")) {
        let line = first_line(&mut child);
        assert!(!line.is_empty(), "{lines:?}");
        lines.push(line);
    }
    drop(input);
    let answer = lines.last().unwrap();
    assert!(
        answer.contains("a person at the terminal or the inbox"),
        "{answer}"
    );
    assert!(!answer.contains("ringfence approvals"), "{answer}");
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(
        log.contains("a call of `convertUnits` by `stdio` waits for approval: answer it with `ringfence approvals watch`"),
        "{log}"
    );
}
