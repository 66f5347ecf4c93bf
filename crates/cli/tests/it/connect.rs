//! What `connect` asks at a terminal: whether to write, and how far the client answers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::scratch;
use crate::terminal::Terminal;

/// A person with a client that has been started once.
fn person(name: &str) -> PathBuf {
    let folder = scratch(name);
    fs::create_dir_all(folder.join("me/.cursor")).unwrap();
    folder
}

/// Runs `connect cursor` and types an answer to each question.
fn connect(folder: &Path, words: &str, answers: &[&str]) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_ringfence");
    let line = format!("HOME=$PWD/me {program} connect cursor {words} --home ring");
    let mut terminal = Terminal::start(&line, folder);
    for (index, answer) in answers.iter().enumerate() {
        terminal.answer(answer, index + 1);
    }
    let (status, shown) = terminal.end();
    (status.code(), shown)
}

fn settings(folder: &Path) -> String {
    fs::read_to_string(folder.join("ring/ringfence.toml")).unwrap_or_default()
}

const QUESTION: &str = "up to which risk may questions about its calls be answered in Cursor";

#[test]
fn connect_asks_up_to_which_risk_a_client_answers() {
    for (typed, level) in [("L0\n", "L0"), ("L2\n", "L2"), ("L5\n", "L5"), ("\n", "L4")] {
        let folder = person("connect-answers");
        let (code, shown) = connect(&folder, "", &["y\n", typed]);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains(QUESTION), "{shown}");
        assert!(shown.contains("L0 = never"), "{shown}");
        let written = format!("[callers.cursor]\nanswers = \"{level}\"\n");
        assert_eq!(settings(&folder), written, "{shown}");
    }
}

/// `--answers` says it, and so do settings that have the line.
#[test]
fn connect_does_not_ask_what_is_already_known() {
    let folder = person("connect-said");
    let (code, shown) = connect(&folder, "--answers L1", &["y\n"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains(QUESTION), "{shown}");
    assert_eq!(settings(&folder), "[callers.cursor]\nanswers = \"L1\"\n");
    let (code, shown) = connect(&folder, "--http", &["y\n"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains(QUESTION), "{shown}");
    assert_eq!(settings(&folder), "[callers.cursor]\nanswers = \"L1\"\n");
}

/// A no, and a terminal that closes, leave the client without an entry and the home
/// without a line.
#[test]
fn without_an_answer_nothing_is_written() {
    let folder = person("connect-no");
    let (code, shown) = connect(&folder, "", &["n\n"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(!shown.contains(QUESTION), "{shown}");
    assert!(!folder.join("me/.cursor/mcp.json").exists());
    // The end of input, at the second question.
    let (code, shown) = connect(&folder, "", &["y\n", "\u{4}"]);
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("there was no answer; use `--answers L0` to `L5`"),
        "{shown}"
    );
    assert!(!folder.join("me/.cursor/mcp.json").exists(), "{shown}");
    assert_eq!(settings(&folder), "");
}
