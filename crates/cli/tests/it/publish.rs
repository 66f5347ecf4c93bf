//! Publishing when the disk does not go along.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::ringfence;
use crate::run::scratch;

/// A tool whose file cannot be written again stays a draft, in the list, for callers
/// and in the audit, and nothing unfinished is left behind.
#[test]
fn a_file_that_cannot_be_written_leaves_a_draft() {
    let folder = scratch("publish-unwritten");
    let home = folder.join("ring").display().to_string();
    let shown = |words: &[&str]| ringfence(&[words, &["--home", &home]].concat()).shown();
    // Longer than the limit below, which everything else is well within.
    let code = format!("return 1 // {}", "x".repeat(900_000));
    let document = json!({"name": "long", "code": code, "codeType": "Javascript"});
    let file = folder.join("long.json");
    fs::write(&file, document.to_string()).unwrap();
    let said = shown(&["import", &file.display().to_string()]);
    assert!(said.starts_with("exit 0"), "{said}");
    let said = shown(&["test", "long"]);
    assert!(said.starts_with("exit 0"), "{said}");
    let before = fs::read(folder.join("ring/tools/long.json")).unwrap();

    // Files of at most 512 KiB; to go on writing is an error and no signal.
    let line = format!(
        "trap '' XFSZ; ulimit -f 1024; exec '{}' publish long --home '{home}'",
        env!("CARGO_BIN_EXE_ringfence")
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
    assert!(error.starts_with("error: cannot write `"), "{error}");
    assert!(error.contains("tools/long.json`\ncause: "), "{error}");

    let listed = ringfence(&["list", "--own", "--json", "--home", &home]).output();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["state"], "DRAFT", "{listed}");
    let said = shown(&["run", "long"]);
    assert!(said.contains("refused[tool.draft]"), "{said}");
    let said = shown(&["audit", "list", "--kind", "notice"]);
    assert!(!said.contains("tool.published"), "{said}");
    assert_eq!(
        fs::read(folder.join("ring/tools/long.json")).unwrap(),
        before
    );
    assert_eq!(fs::read_dir(folder.join("ring/tools")).unwrap().count(), 1);

    // Once there is room the same command does it.
    let said = shown(&["publish", "long"]);
    assert!(said.starts_with("exit 0"), "{said}");
    let said = shown(&["audit", "list", "--kind", "notice"]);
    assert!(said.contains("tool.published"), "{said}");
}
