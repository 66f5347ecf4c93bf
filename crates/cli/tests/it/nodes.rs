//! Two servers that vouch for each other's audit, over the witness's protocol and through a
//! folder, and an auditor who holds their logs against each other.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{command, first_line, terminate};

fn run(home: &Path, words: &[&str]) -> String {
    let place = home.display().to_string();
    let words: Vec<&str> = words.iter().copied().chain(["--home", &place]).collect();
    ringfence(&words).shown()
}

/// Makes a call in a home, which becomes two records or more.
fn make_call(home: &Path) {
    let done = run(home, &["run", "countWords", "--args", r#"{"text": "a"}"#]);
    assert!(done.starts_with("exit 0"), "{done}");
}

fn key(home: &Path) -> String {
    let shown = run(home, &["audit", "key"]);
    let line = shown.lines().find(|line| line.starts_with("ringfence/"));
    line.unwrap().to_owned()
}

fn serve(home: &Path) -> (Child, String) {
    let mut server = command(&["serve", "--json", "--listen", "127.0.0.1:0"], home);
    let ready: Value = serde_json::from_str(&first_line(&mut server)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    (server, url.replace("/mcp", "/witness"))
}

fn verify(homes: &[&Path], more: &[&str]) -> String {
    let homes: Vec<String> = homes.iter().map(|it| it.display().to_string()).collect();
    let mut words = vec!["audit", "verify", "--nodes"];
    words.extend(homes.iter().map(String::as_str));
    words.extend(more);
    ringfence(&words).shown()
}

/// The pairs of nodes of which one anchors the other.
fn anchored(homes: &[&Path]) -> usize {
    verify(homes, &[]).matches("anchored  ").count()
}

#[test]
fn two_servers_vouch_for_each_other_and_an_auditor_finds_a_cut() {
    let folder = scratch("nodes");
    let (one, other) = (folder.join("one"), folder.join("other"));
    make_call(&one);
    make_call(&other);
    let keys = [key(&one), key(&other)];
    let alone = verify(&[&one, &other], &[]);
    assert!(alone.starts_with("exit 0"), "{alone}");
    assert!(!alone.contains("anchored"), "{alone}");
    let (mut first, first_url) = serve(&one);
    let (mut second, second_url) = serve(&other);
    // The first shows its heads to the second; the second leaves its own in a folder. One
    // file of settings serves both.
    let settings = format!(
        "[audit]\nanchor_seconds = 1\npeers_folder = {:?}\n\
         [audit.peers.one]\nkey = {:?}\n\
         [audit.peers.other]\nkey = {:?}\nurl = {second_url:?}\n",
        folder.join("heads"),
        keys[0],
        keys[1],
    );
    assert_ne!(first_url, second_url);
    for home in [&one, &other] {
        fs::write(home.join("ringfence.toml"), &settings).unwrap();
        make_call(home);
    }
    let within = Instant::now() + Duration::from_secs(60);
    while anchored(&[&one, &other]) < 2 {
        assert!(Instant::now() < within, "{}", verify(&[&one, &other], &[]));
    }
    assert_eq!(terminate(&mut first), Some(0));
    assert_eq!(terminate(&mut second), Some(0));
    let listed = run(&other, &["audit", "witness", "--list"]);
    assert!(
        listed.contains(keys[0].split('+').next().unwrap()),
        "{listed}"
    );
    let whole = verify(&[&one, &other], &["--key", &keys[0], "--key", &keys[1]]);
    assert!(whole.starts_with("exit 0"), "{whole}");
    assert_eq!(whole.matches("whole  ").count(), 2, "{whole}");
    assert_eq!(whole.matches("anchored  ").count(), 2, "{whole}");
    hold_against_a_kept_head(&folder, &one, &other);

    // Attack: everything behind the second record is cut off, with the heads over it.
    let log = one.join("audit/00000000000000000000.log");
    let text = fs::read_to_string(&log).unwrap();
    let kept: String = text
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&log, kept).unwrap();
    fs::write(one.join("audit/heads"), "").unwrap();
    let cut = verify(&[&one, &other], &["--key", &keys[0], "--key", &keys[1]]);
    assert!(cut.starts_with("exit 1"), "{cut}");
    assert!(
        cut.contains("the log ends with record 2, but record"),
        "{cut}"
    );
    // Keys in another order are those of other files.
    let swapped = verify(&[&one, &other], &["--key", &keys[1], "--key", &keys[0]]);
    assert!(swapped.starts_with("exit 1"), "{swapped}");
    let json = verify(&[&one, &other], &["--json"]);
    assert!(json.contains("\"faults\""), "{json}");
    let few = verify(&[&one, &other], &["--key", &keys[1]]);
    assert!(few.contains("one `--key` for each node"), "{few}");
}

/// A home whose settings name the logs gives them their names, and a kept head is held against
/// the log it is of.
fn hold_against_a_kept_head(folder: &Path, one: &Path, other: &Path) {
    let place = one.display().to_string();
    let head = run(other, &["audit", "checkpoint"]);
    let (_, head) = head.split_once("--- stdout\n").unwrap();
    let file = folder.join("head.txt").display().to_string();
    fs::write(&file, head).unwrap();
    let named = verify(&[one, other], &["--home", &place, "--checkpoint", &file]);
    assert!(named.starts_with("exit 0"), "{named}");
    for name in [" (one)  records: ", " (other)  records: "] {
        assert!(named.contains(name), "{named}");
    }
    let alone = verify(&[one], &["--checkpoint", &file]);
    assert!(alone.starts_with("exit 1"), "{alone}");
    assert!(alone.contains("its log is not among those"), "{alone}");
}
