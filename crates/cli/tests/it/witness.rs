//! A second Ringfence as the witness of a log: it cosigns growth, and notices a log that
//! was rolled back although nothing in that log's own home can show it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

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

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

#[test]
fn a_second_ringfence_cosigns_growth_and_notices_a_roll_back() {
    let folder = scratch("witness");
    let (log, other) = (folder.join("log"), folder.join("other"));
    let witness = folder.join("witness");
    make_call(&log);
    make_call(&other);
    let key = run(&log, &["audit", "key"]);
    let key = key.lines().find(|line| line.starts_with("ringfence/"));
    let key = key.unwrap().to_owned();
    fs::create_dir_all(&witness).unwrap();
    let settings = format!("[audit]\nwitness_of = [\"{key}\"]\n");
    fs::write(witness.join("ringfence.toml"), settings).unwrap();
    let mut server = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &witness);
    let ready: Value = serde_json::from_str(&first_line(&mut server)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let url = url.replace("/mcp", "/witness");

    let first = run(&log, &["audit", "witness", &url]);
    assert!(first.contains("cosigned  "), "{first}");
    let before = folder.join("before");
    copy(&log, &before);
    make_call(&log);
    let grown = run(&log, &["audit", "witness", &url]);
    assert!(grown.contains("cosigned  "), "{grown}");
    assert_ne!(first, grown, "more records");
    // The same head again.
    let again = run(&log, &["audit", "witness", &url]);
    assert_eq!(again, grown);
    // The key of the witness, pinned: its own is taken, another is not.
    let pinned = run(&witness, &["audit", "witness", "--key"]);
    let pinned = pinned.lines().find(|line| line.starts_with("ringfence/"));
    let right = ["audit", "witness", &url, "--witness-key", pinned.unwrap()];
    assert_eq!(run(&log, &right), grown);
    let foreign = run(&other, &["audit", "witness", "--key"]);
    let foreign = foreign.lines().find(|line| line.starts_with("ringfence/"));
    let wrong = ["audit", "witness", &url, "--witness-key", foreign.unwrap()];
    let refused = run(&log, &wrong);
    assert!(refused.starts_with("exit 2"), "{refused}");
    assert!(refused.contains("the cosignature is not by"), "{refused}");
    let whole = run(&log, &["audit", "verify"]);
    assert!(whole.contains("whole  "), "{whole}");
    // A log that the witness was not told of.
    let unknown = run(&other, &["audit", "witness", &url]);
    assert!(unknown.starts_with("exit 2"), "{unknown}");
    assert!(unknown.contains("the witness answers 404"), "{unknown}");
    // The whole home of an hour ago: it is whole in itself.
    let whole = run(&before, &["audit", "verify"]);
    assert!(whole.contains("whole  "), "{whole}");
    let rolled = run(&before, &["audit", "witness", &url]);
    assert!(rolled.starts_with("exit 2"), "{rolled}");
    assert!(rolled.contains("the log was rolled back"), "{rolled}");
    // It goes on to the same length with other records.
    make_call(&before);
    let forked = run(&before, &["audit", "witness", &url]);
    assert!(forked.starts_with("exit 2"), "{forked}");
    assert!(forked.contains("the witness answers 422"), "{forked}");
    assert!(!forked.contains("\\n"), "{forked}");
    // It goes on to a greater length than the witness saw: the same fork, told once.
    make_call(&before);
    make_call(&before);
    let longer = run(&before, &["audit", "witness", &url]);
    assert!(longer.contains("the witness answers 422"), "{longer}");

    assert_eq!(terminate(&mut server), Some(0));
    let list = run(&witness, &["audit", "witness", "--list"]);
    let name = key.split('+').next().unwrap();
    assert!(list.contains(name), "{list}");
    // The witness raised the alarm, wrote it down, and kept both heads.
    let mut said = String::new();
    server
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said.matches("its log was forked").count(), 1, "{said}");
    let notices = run(&witness, &["audit", "list", "--kind", "notice"]);
    assert_eq!(
        notices.matches("audit.contradicted").count(),
        1,
        "{notices}"
    );
    let evidence = witness.join("audit/conflicts");
    let kept = fs::read_to_string(&evidence).unwrap();
    assert_eq!(
        kept.matches(&format!("\u{2014} {name} ")).count(),
        2,
        "{kept}"
    );
    // Anyone who has the key can hold the log against them.
    let (evidence, log) = (evidence.display().to_string(), before.display().to_string());
    let words = ["audit", "verify", "--home", &log, "--checkpoint", &evidence];
    let found = ringfence(&words).shown();
    assert!(found.starts_with("exit 1"), "{found}");
    // When the owner knows why, the log counts again from its next head.
    let id = notices.split("  ").find(|word| word.len() == 36).unwrap();
    let note = [
        "audit",
        "acknowledge",
        id,
        "--note",
        "a backup was put back",
    ];
    let known = run(&witness, &note);
    assert!(known.starts_with("exit 0"), "{known}");
    assert_eq!(
        fs::read_to_string(witness.join("audit/conflicts")).unwrap(),
        ""
    );
    let list = run(&witness, &["audit", "witness", "--list"]);
    assert!(!list.contains(name), "{list}");
}
