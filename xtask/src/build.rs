//! Builds with cargo and shows progress: at least every ten seconds, and without
//! redrawing in a pipe.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};

/// How often the line is written, at a terminal and in a pipe.
const TERMINAL: Duration = Duration::from_millis(500);
const PIPE: Duration = Duration::from_secs(8);

/// Packages that must be done before the rest of the time is guessed from them.
const GUESS_FROM: usize = 20;

/// The flags that make cargo report its progress, for [`watch`].
pub(crate) const MESSAGES: [&str; 3] = ["--quiet", "--message-format", "json-render-diagnostics"];

/// The packages of the program, for [`watch`].
pub(crate) const PROGRAM: &[&str] = &["--package", "ringfence-cli", "--edges", "normal,build"];

/// The packages of everything in the workspace, tests included, for [`watch`].
pub(crate) const WORKSPACE: &[&str] = &["--workspace", "--edges", "normal,build,dev"];

/// Builds the program, with progress. `usual` is the time of a cold build on two cores.
pub(crate) fn build(root: &Root, arguments: &[&str], usual: Duration) -> Result<TaskAnswer> {
    let mut command = run::cargo(root, arguments);
    command.args(MESSAGES);
    watch(root, &mut command, PROGRAM, usual)
}

/// Runs a cargo command that has [`MESSAGES`] among its arguments and shows how far it
/// is. `tree` are the arguments of `cargo tree` for counting packages.
pub(crate) fn watch(
    root: &Root,
    command: &mut Command,
    tree: &[&str],
    usual: Duration,
) -> Result<TaskAnswer> {
    let total = count_packages(root, tree);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| run::not_started(command))?;
    let output = child.stdout.take().context("cargo has no output")?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut progress = Progress::new(total, usual);
    loop {
        match receiver.recv_timeout(progress.due_in()) {
            Ok(line) => progress.note(&line),
            Err(RecvTimeoutError::Timeout) => progress.show(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    progress.end();
    let status = child.wait().context("could not wait for cargo")?;
    Ok(if status.success() {
        TaskAnswer::Yes
    } else {
        TaskAnswer::No
    })
}

/// The packages of the program, build scripts included. An estimate: progress is not
/// worth failing for.
fn count_packages(root: &Root, tree: &[&str]) -> usize {
    let mut command: Command = run::cargo(root, &["tree", "--locked"]);
    command.args(tree);
    command.args(["--prefix", "none", "--format", "{p}"]);
    let tree = run::output(&mut command).unwrap_or_default();
    let names: BTreeSet<_> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.is_empty())
        .collect();
    names.len()
}

/// How far a build is.
#[derive(Debug)]
struct Progress {
    started: Instant,
    usual: Duration,
    total: usize,
    built: BTreeSet<String>,
    last: String,
    shown: Option<Instant>,
    every: Duration,
    is_terminal: bool,
}

impl Progress {
    fn new(total: usize, usual: Duration) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        Progress {
            started: Instant::now(),
            usual,
            total,
            built: BTreeSet::new(),
            last: String::new(),
            shown: None,
            every: if is_terminal { TERMINAL } else { PIPE },
            is_terminal,
        }
    }

    /// Takes one of cargo's messages.
    fn note(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else {
            return;
        };
        let word = |key: &str| message.get(key).and_then(serde_json::Value::as_str);
        if word("reason") != Some("compiler-artifact") {
            return;
        }
        if let Some(id) = word("package_id") {
            self.built.insert(id.to_owned());
        }
        let target = message.get("target").and_then(|target| target.get("name"));
        if let Some(name) = target.and_then(serde_json::Value::as_str) {
            name.clone_into(&mut self.last);
        }
        if self.shown.is_none_or(|shown| shown.elapsed() >= self.every) {
            self.show();
        }
    }

    /// The time until the next line is due, however many messages come before it.
    fn due_in(&self) -> Duration {
        let silent = self.shown.map(|shown| shown.elapsed());
        self.every.saturating_sub(silent.unwrap_or_default())
    }

    fn show(&mut self) {
        self.shown = Some(Instant::now());
        let line = line(
            self.built.len(),
            self.total,
            self.started.elapsed(),
            self.usual,
            &self.last,
        );
        match self.is_terminal {
            true => printer::replace(&line),
            false => printer::note(&line),
        }
    }

    fn end(&mut self) {
        if self.is_terminal && self.shown.is_some() {
            printer::replace("");
        }
    }
}

fn line(built: usize, total: usize, elapsed: Duration, usual: Duration, last: &str) -> String {
    let total = total.max(built);
    // Packages differ, but there are hundreds. The last ones are the longest: a quarter of
    // the packages is done after about a sixteenth of the time.
    let left = match built {
        built if built < GUESS_FROM => usual.saturating_sub(elapsed),
        built => {
            let share = built as f64 / total.max(1) as f64;
            let all = elapsed.as_secs_f64() / (share * share);
            Duration::from_secs_f64(all - elapsed.as_secs_f64()).min(2 * usual)
        }
    };
    format!(
        "   {built} of {total} packages, {} so far, about {} left  {last}",
        clock(elapsed),
        clock(left)
    )
}

/// `3:07`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        let usual = Duration::from_secs(300);
        let early = line(3, 400, Duration::from_secs(10), usual, "serde");
        assert_eq!(
            early,
            "   3 of 400 packages, 0:10 so far, about 4:50 left  serde"
        );
        let half = line(200, 400, Duration::from_secs(100), usual, "tokio");
        assert_eq!(
            half,
            "   200 of 400 packages, 1:40 so far, about 5:00 left  tokio"
        );
        // More than was counted is no more than everything.
        let over = line(410, 400, Duration::from_secs(200), usual, "ringfence");
        assert!(over.starts_with("   410 of 410 packages"), "{over}");
    }

    #[test]
    fn a_message_that_is_not_shown_does_not_put_off_the_next_line() {
        let mut progress = Progress::new(2, Duration::from_secs(1));
        progress.every = Duration::from_secs(8);
        assert_eq!(progress.due_in(), progress.every);
        progress.shown = Instant::now().checked_sub(Duration::from_secs(6));
        progress.note(r#"{"reason":"compiler-artifact","package_id":"a","target":{"name":"a"}}"#);
        assert!(progress.due_in() <= Duration::from_secs(2));
    }

    #[test]
    fn cargo_s_messages_are_counted_by_package() {
        let mut progress = Progress::new(2, Duration::from_secs(1));
        for line in [
            r#"{"reason":"compiler-artifact","package_id":"a","target":{"name":"build-script-build"}}"#,
            r#"{"reason":"compiler-artifact","package_id":"a","target":{"name":"a"}}"#,
            r#"{"reason":"build-script-executed","package_id":"b"}"#,
            "not JSON",
        ] {
            progress.note(line);
        }
        assert_eq!((progress.built.len(), progress.last.as_str()), (1, "a"));
    }
}
