//! The first settings: asked for at a terminal, or taken from flags; whole or not at all.

use std::fs;
use std::process::Command;

use crate::run::scratch;
use crate::terminal::Terminal;

#[test]
fn four_answers_make_the_settings_and_connect_the_client() {
    let folder = scratch("init");
    fs::create_dir_all(folder.join(".cursor")).unwrap();
    let program = env!("CARGO_BIN_EXE_ringfence");
    let project = folder.join("project");
    fs::create_dir_all(&project).unwrap();
    let line = format!("HOME={} {program} init --home ../ring", folder.display());
    let mut terminal = Terminal::start(&line, &project);
    // Cursor, the developer's tools, this folder, questions in the client; then connect
    // shows what it changes and asks.
    for (number, answer) in ["3\n", "2\n", "2\n", "2\n", "y\n"].into_iter().enumerate() {
        terminal.answer(answer, number + 1);
    }
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    let settings = fs::read_to_string(folder.join("ring/ringfence.toml")).unwrap();
    assert!(settings.contains("preset = \"developer\""), "{settings}");
    let here = format!("workspace = \"{}\"", project.display());
    assert!(settings.contains(&here), "{settings}");
    assert!(settings.contains("answers = \"L4\""), "{settings}");
    let client = fs::read_to_string(folder.join(".cursor/mcp.json")).unwrap();
    assert!(client.contains("\"ringfence\""), "{client}");
    assert!(shown.contains("ringfence approvals watch"), "{shown}");
}

/// A first run in the folder that holds the home: the choice that would fail is not offered,
/// and a slip chooses nothing.
#[test]
fn a_folder_that_holds_the_home_is_not_offered() {
    let folder = scratch("init-holds");
    let program = env!("CARGO_BIN_EXE_ringfence");
    let line = format!("HOME={} {program} init --home below/ring", folder.display());
    let mut terminal = Terminal::start(&line, &folder);
    // No client; a slip and the first tools; a slip and a folder in the home.
    for (number, answer) in ["5\n", "banana\n", "1\n", "2\n", "1\n"]
        .into_iter()
        .enumerate()
    {
        terminal.answer(answer, number + 1);
    }
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert_eq!(
        shown.matches("anything else = ask again").count(),
        5,
        "{shown}"
    );
    assert!(!shown.contains("2 = this folder"), "{shown}");
    let unbroken = shown.replace("\r\n| ", " ");
    assert!(unbroken.contains("holds the home"), "{shown}");
    let settings = fs::read_to_string(folder.join("below/ring/ringfence.toml")).unwrap();
    assert!(settings.contains("workspace = \"workspace\""), "{settings}");
    assert!(settings.contains("preset = \"starter\""), "{settings}");
}

#[test]
fn flags_are_enough_and_settings_that_are_there_stay() {
    let folder = scratch("init-flags");
    let init = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        command
            .arg("init")
            .args(arguments)
            .args(["--home", "ring"])
            .env_clear()
            .env("HOME", &folder)
            .current_dir(&folder);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let path = folder.join("ring/ringfence.toml");
    // No terminal to ask at, no such preset, no such folder: nothing is written.
    for (arguments, words) in [
        (&[][..], "there is no terminal to ask at"),
        (&["--yes", "--preset", "no"], "there is no preset `no`"),
        (&["--yes", "--folder", "gone"], "`gone` is not a folder"),
    ] {
        let (code, said) = init(arguments);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!path.exists());
    }
    // A workspace that would hold the home is refused before anything is made.
    let (code, said) = init(&["--yes", "--folder", "."]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`.` holds the home"), "{said}");
    assert!(!folder.join("ring").exists(), "{said}");
    // One in the home is refused by the engine, and the settings are taken back.
    fs::create_dir_all(folder.join("ring/tools")).unwrap();
    let (code, said) = init(&["--yes", "--folder", "ring/tools"]);
    assert_eq!((code, path.exists()), (Some(2), false), "{said}");
    assert!(said.contains("no settings were written"), "{said}");
    // A client that is not there leaves good settings.
    let (code, said) = init(&["--yes", "--client", "cursor"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the client is not connected"), "{said}");
    let before = fs::read_to_string(&path).unwrap();
    let (code, said) = init(&["--yes", "--preset", "everything"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("there are settings already"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}
