//! A shell completes names. A real bash loads the script and is asked as at a key press;
//! the home stays as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ringfence;
use crate::run::scratch;
use crate::terminal::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringfence");

/// A home with a tool, a key, a paused caller and a rule, and names that no shell should
/// get.
fn home(name: &str) -> PathBuf {
    let folder = scratch(name);
    let home = folder.join("ring");
    fs::create_dir_all(home.join("tools")).unwrap();
    let rules =
        "[[rule]]\nid = \"no-deletes\"\ntools = [\"delete*\"]\neffect = \"deny\"\nreason = \"x\"\n";
    fs::write(home.join("ringfence.toml"), rules).unwrap();
    let document = |name: &str| {
        format!("{{\"name\":\"{name}\",\"code\":\"return 1\",\"codeType\":\"Javascript\"}}")
    };
    fs::write(home.join("tools/a.json"), document("countMyBeans")).unwrap();
    fs::write(home.join("tools/b.json"), document("count$(touch owned)")).unwrap();
    fs::write(home.join("tools/c.json"), "{ broken").unwrap();
    for arguments in [
        &["keys", "add", "build-bot"][..],
        &["callers", "pause", "loopy"],
    ] {
        let run = ringfence(arguments).within(&folder);
        let shown = run.variable("RINGFENCE_HOME", "ring").shown();
        assert!(shown.starts_with("exit 0"), "{shown}");
    }
    home
}

/// What bash offers for the last of these words.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let programs = Path::new(PROGRAM).parent().unwrap().display();
    let script = "eval \"$(ringfence completions bash)\"; COMP_WORDS=(ringfence \"$@\"); \
        COMP_CWORD=$#; _ringfence ringfence; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{programs}:/usr/bin:/bin"))
        .env("RINGFENCE_HOME", "ring")
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{:?}",
        String::from_utf8(output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Every file of a folder with its bytes. The index of the write-ahead log belongs to
/// whichever process reads it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.to_string_lossy().ends_with("-shm") {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn bash_offers_tools_callers_and_rules_of_the_home() {
    let home = home("complete");
    let folder = home.parent().unwrap();
    let before = files(folder);
    let all: &[(&[&str], &[&str])] = &[
        (&["ser"], &["serve", "servers"]),
        (&["run", "countM"], &["countMyBeans"]),
        (&["run", "countW"], &["countWords"]),
        (&["run", "count$"], &[]),
        (&["audit", "list", "--tool", "countM"], &["countMyBeans"]),
        (&["keys", "revoke", "bu"], &["build-bot"]),
        (&["callers", "resume", "lo"], &["local", "loopy"]),
        (&["policy", "show", "no"], &["no-deletes"]),
        (&["policy", "show", "--caller", "=", "bu"], &["build-bot"]),
        (&["run", "--home", "nowhere", "countM"], &[]),
        (&["audit", "list", "--status", "ref"], &["refused"]),
    ];
    for (words, expected) in all {
        assert_eq!(offered(folder, words), *expected, "{words:?}");
    }
    assert!(offered(folder, &["run", "--home", "ring/ringfence.toml", "countM"]).is_empty());
    assert_eq!(files(folder), before);
    assert!(!folder.join("nowhere").exists() && !folder.join("owned").exists());
}

/// A key press, at a terminal.
#[test]
fn a_tab_writes_the_rest_of_a_name() {
    let home = home("complete-tab");
    let folder = home.parent().unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap().display();
    let line = format!(
        "PATH={programs}:$PATH RINGFENCE_HOME=ring PS1='ready> ' bash --norc --noprofile -i"
    );
    let mut terminal = Terminal::start(&line, folder);
    terminal.until("ready> ", 1);
    terminal.type_in("eval \"$(ringfence completions bash)\"\n");
    terminal.until("ready> ", 2);
    terminal.type_in("echo is: ringfence show countM");
    terminal.type_in("\u{1}\u{b}ringfence show countM\t");
    terminal.until("countMyBeans", 1);
    terminal.type_in("\u{15}exit\n");
    terminal.end();
}

/// However much there is, and whatever it is, a key press is answered soon.
#[test]
fn a_large_home_is_answered_in_time() {
    let home = home("complete-large");
    let long = format!(
        "{{\"name\":\"countX\",\"description\":\"{}\"}}",
        "x".repeat(20_000)
    );
    for number in 0..3_000 {
        fs::write(home.join(format!("tools/many-{number}.json")), &long).unwrap();
    }
    let begun = Instant::now();
    let shown = ringfence(&["complete", "--", "run", "countW"])
        .within(home.parent().unwrap())
        .variable("RINGFENCE_HOME", "ring")
        .shown();
    assert!(shown.starts_with("exit 0"), "{shown}");
    // The program gives itself 400 ms; the rest is for a machine that is busy.
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}
