//! `cases/cli/<name>/`: what a person types, and all that comes back.
//!
//! `steps.sh` is typed line by line into a shell, in a scratch copy of the folder
//! with a fresh home. `expect.txt` is the transcript, with what differs between
//! two runs (ids, hashes, times, places) replaced by a word.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;

use crate::cases;
use crate::run::scratch;

/// What differs between two runs, and what is shown instead.
static FLEETING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let each = [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            "<call>",
        ),
        (r"\b[0-9a-f]{64}\b", "<hash>"),
        (r"\b[0-9a-f]{32}\b", "<question>"),
        (r"(?m)^[0-9a-f]{8}  ", "<question>  "),
        (r"\brf_[0-9a-z]{8}_[0-9a-z]{60}\b", "<key>"),
        (r"\brf_local_[0-9a-z]{60}\b", "<token>"),
        (r"\brf_[0-9a-z]{8}\b", "<key id>"),
        (r"\b(made|until) \d{4}-\d\d-\d\d\b", "$1 <day>"),
        (r#"("id"): "[0-9a-z]{8}""#, "$1: <key id>"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
        (r"\b\d+ µs", "<n> µs"),
        (r"\b\d+\.\d+ ms", "<n> ms"),
        (r"in \d+ ms", "in <n> ms"),
        (r"try again in \d+ s", "try again in <n> s"),
        (r#"("elapsedMs"): [0-9.]+"#, "$1: <n>"),
        (
            r#"("(?:atMs|askedAtMs|expiresAtMs|answeredAtMs|pausedAtMs|sinceMs|createdMs|expiresMs|totalUs|runUs|cpuUs|updateTimestamp|createTimestamp|us)"): \d+"#,
            "$1: <n>",
        ),
        (r"\.\d{13}\.json", ".<time>.json"),
    ];
    let read = |(pattern, word)| (Regex::new(pattern).unwrap(), word);
    each.into_iter().map(read).collect()
});

#[test]
fn sessions() {
    cases::compare("cli", 10, transcript);
}

fn transcript(folder: &Path) -> String {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let place = scratch(&format!("session-{name}"));
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, place.join(path.file_name().unwrap())).unwrap();
    }
    let steps = fs::read_to_string(folder.join("steps.sh")).unwrap();
    let mut transcript = String::new();
    for step in steps.lines().filter(|line| !line.trim().is_empty()) {
        transcript.push_str(&format!("$ {step}\n{}", typed(step, &place)));
    }
    let place = place.display().to_string();
    let program = Path::new(env!("CARGO_BIN_EXE_ringfence"));
    let transcript = transcript.replace(&program.display().to_string(), "<program>");
    let transcript = transcript.replace(&place, "<folder>");
    FLEETING.iter().fold(transcript, |text, (pattern, word)| {
        pattern.replace_all(&text, *word).into_owned()
    })
}

/// Runs one line as a shell would, with nothing of this machine but the program
/// and the plainest tools.
fn typed(step: &str, place: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_ringfence"));
    let folder = program.parent().unwrap().display();
    let output = Command::new("sh")
        .args(["-c", step])
        .current_dir(place)
        .env_clear()
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .env("RINGFENCE_HOME", place.join("ring"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut shown = String::new();
    for bytes in [&output.stdout, &output.stderr] {
        shown.push_str(std::str::from_utf8(bytes).expect("output is text"));
    }
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    match output.status.code() {
        Some(0) => shown,
        code => format!("{shown}[exit {}]\n", code.expect("an exit code")),
    }
}
