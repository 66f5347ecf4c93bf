//! `cargo xtask test`: runs every test and prints the totals at the end.
//!
//! The output of the test programs is passed on line by line while the totals
//! are gathered from it, so nothing waits and nothing is hidden.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::build::{self, clock};
use crate::dist;
use crate::peers;
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};
use crate::studio as page;

mod programs;

/// Tests that need more than a moment look for this variable.
const SLOW_TESTS: &str = "SLOW_TESTS";

/// For how many seconds three nodes are under load; and here, where time is short. Three
/// minutes find no more kinds of faults, and half an hour by hand shows the curve.
const LOAD_SECONDS: &str = "RINGFENCE_LOAD_SECONDS";
const LOAD_SECONDS_USUAL: &str = "60";

/// Tests against programs of other people are targets that need this.
pub(crate) const PEERS: &str = "ringfence-cli/peers,ringfence-mcp/peers";

/// A test program that prints nothing for this long is stuck. Building everything on a
/// slow machine takes less.
const SILENCE_MAX: Duration = Duration::from_secs(25 * 60);

/// After so much silence a line says that the tests still run.
const SIGN_EVERY: Duration = Duration::from_secs(8);

/// The time of a cold build of all tests, on two cores.
const BUILD_USUAL: Duration = Duration::from_secs(12 * 60);

/// The target that is a part of its own.
const LOAD: &str = "load";

/// Which tests to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lanes {
    All,
    /// Without lanes that need a browser, a database, a container or much time.
    Fast,
}

/// Runs the lanes, of one crate or of all, and prints the totals alone on the last line.
pub(crate) fn test(root: &Root, lanes: Lanes, name: Option<&str>) -> Result<TaskAnswer> {
    let mut totals = Totals::default();
    if page::ensure(root)? == TaskAnswer::No {
        return Ok(TaskAnswer::No);
    }
    if let Lanes::All = lanes {
        match peers::peers(root)? {
            TaskAnswer::Yes => {}
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
    }
    let mut answer = match name {
        // For quick runs: cargo's own output is shorter than ours.
        Some(_) => TaskAnswer::Yes,
        None => build(root, lanes)?,
    };
    if answer == TaskAnswer::Yes {
        answer = run(root, lanes, name, &mut totals)?;
        if let Lanes::All = lanes {
            answer = answer.and(studio(root, &mut totals)?);
            answer = answer.and(load(root, &mut totals)?);
            answer = answer.and(release(root, &mut totals)?);
        }
    }
    printer::line(&totals.to_string());
    Ok(answer)
}

/// Builds all tests first, so that their times are their own.
pub(crate) fn build(root: &Root, lanes: Lanes) -> Result<TaskAnswer> {
    let mut command = tests(root, lanes, None);
    command.arg("--no-run").args(build::MESSAGES);
    let answer = build::watch(root, &mut command, build::WORKSPACE, BUILD_USUAL)?;
    if answer == TaskAnswer::No {
        printer::note("a test program could not be built");
    }
    Ok(answer)
}

/// Runs the tests and adds up their totals.
pub(crate) fn run(
    root: &Root,
    lanes: Lanes,
    name: Option<&str>,
    totals: &mut Totals,
) -> Result<TaskAnswer> {
    if let (Lanes::All, None) = (lanes, name) {
        let found = programs::find(&mut tests(root, lanes, None))?;
        let ran = programs::run(found, totals, |command| prepare(command, lanes))?;
        let mut documentation = tests(root, lanes, None);
        documentation.arg("--doc");
        return Ok(ran.and(lane(&mut documentation, totals, Patience::USUAL)?));
    }
    let answer = lane(&mut tests(root, lanes, name), totals, Patience::USUAL)?;
    // Cargo fails without a failed test if something does not compile or a test program
    // dies.
    if answer == TaskAnswer::No && totals.failed == 0 {
        printer::note("a test program could not be built, or did not reach its end");
    }
    Ok(answer)
}

/// The Studio: its units, and its pages in a browser against the program the tests used.
pub(crate) fn studio(root: &Root, totals: &mut Totals) -> Result<TaskAnswer> {
    let mut command = page::tests(root)?;
    lane(&mut command, totals, Patience::USUAL)
}

/// Three nodes on one database under load, while two of them are killed at random.
pub(crate) fn load(root: &Root, totals: &mut Totals) -> Result<TaskAnswer> {
    let mut command = run::cargo(root, &["test", "--locked", "--workspace"]);
    command.args(["--features", PEERS, "--test", LOAD]);
    if std::env::var_os(LOAD_SECONDS).is_none() {
        command.env(LOAD_SECONDS, LOAD_SECONDS_USUAL);
    }
    lane(&mut command, totals, Patience::USUAL)
}

/// A release of the program the tests used: made, signed, installed and used by one who
/// has only its files.
pub(crate) fn release(root: &Root, totals: &mut Totals) -> Result<TaskAnswer> {
    let folder = root.join("target/tmp");
    fs::create_dir_all(&folder).context("could not make target/tmp")?;
    let key = folder.join("release-key");
    for old in [key.clone(), key.with_extension("pub")] {
        // `ssh-keygen` would ask before it overwrites a key.
        let _ = fs::remove_file(old);
    }
    let mut keygen = Command::new("ssh-keygen");
    keygen
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key);
    let program = root.join("target/debug/ringfence");
    let packed = match run::run(&mut keygen)? {
        TaskAnswer::Yes => dist::pack_given(root, &program, Some(&key))?,
        TaskAnswer::No => TaskAnswer::No,
    };
    if packed == TaskAnswer::No {
        printer::note("a release could not be made");
        return Ok(TaskAnswer::No);
    }
    let mut command = Command::new(root.join("packaging/try.sh"));
    command
        .arg(root.join("target/release-files"))
        .env("RELEASE_KEY", key.with_extension("pub"));
    lane(&mut command, totals, Patience::USUAL)
}

/// How long a program may print nothing.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Then it is stopped.
    silence_max: Duration,
    /// Then a line says that it still runs.
    sign_every: Duration,
}

impl Patience {
    const USUAL: Patience = Patience {
        silence_max: SILENCE_MAX,
        sign_every: SIGN_EVERY,
    };
}

/// Unit, integration and documentation tests of all crates.
fn tests(root: &Root, lanes: Lanes, name: Option<&str>) -> Command {
    let mut command = run::cargo(root, &["test", "--locked", "--no-fail-fast"]);
    match name {
        // The first time some dependencies are built again, with the features this
        // crate alone asks for; after that only the crate is.
        Some("xtask") => command.args(["--package", "xtask"]),
        Some(name) => command.args(["--package", &format!("ringfence-{name}")]),
        None => command.arg("--workspace"),
    };
    if let Lanes::All = lanes {
        command.args(["--features", PEERS]);
    }
    prepare(command.stdin(Stdio::null()), lanes);
    command
}

/// What every test program needs.
fn prepare(command: &mut Command, lanes: Lanes) {
    // A test run never rewrites the snapshots it is compared with.
    command.env("INSTA_UPDATE", "no");
    match lanes {
        Lanes::All => command.env(SLOW_TESTS, "1"),
        Lanes::Fast => command.env_remove(SLOW_TESTS),
    };
}

/// Runs a program to its end, or until it prints nothing for too long. The answer is no if
/// one of its tests failed, whatever its exit code.
fn lane(command: &mut Command, totals: &mut Totals, patience: Patience) -> Result<TaskAnswer> {
    watch(command, totals, patience, printer::line)
}

/// The same, with the lines of the program given to `show`.
fn watch(
    command: &mut Command,
    totals: &mut Totals,
    patience: Patience,
    show: impl Fn(&str),
) -> Result<TaskAnswer> {
    let failed_before = totals.failed;
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| run::not_started(command))?;
    let output = child
        .stdout
        .take()
        .context("the test program has no output")?;
    let (says, said) = mpsc::channel();
    // Ends with the output; after a stuck program, with us.
    std::thread::spawn(move || {
        // Bytes, not text: a failing test may print anything.
        for line in BufReader::new(output).split(b'\n') {
            if says.send(line).is_err() {
                return;
            }
        }
    });
    let began = Instant::now();
    let mut heard = began;
    loop {
        match said.recv_timeout(patience.sign_every) {
            Ok(line) => {
                heard = Instant::now();
                let line = line.context("could not read the output of the tests")?;
                let line = String::from_utf8_lossy(&line);
                totals.add(&line);
                show(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < patience.silence_max => {
                printer::note(&format!(
                    "   still running, {} so far",
                    clock(began.elapsed())
                ));
            }
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.silence_max.as_secs();
                printer::note(&format!("no test ended for {seconds} s; it is stopped"));
                stop(&mut child)?;
                break;
            }
        }
    }
    let status = child.wait().context("could not wait for the tests")?;
    // Only this program's tests count: a part that follows a failed one has not failed.
    Ok(if status.success() && totals.failed == failed_before {
        TaskAnswer::Yes
    } else {
        TaskAnswer::No
    })
}

/// Ends a program and all it has started.
fn stop(child: &mut Child) -> Result<()> {
    // Killing cargo alone would leave its test programs running, and their output open.
    let mut family = BTreeSet::from([child.id()]);
    let running = || fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    };
    loop {
        let pids = running().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let children = pids.filter(|pid| parent(*pid).is_some_and(|it| family.contains(&it)));
        let children: Vec<_> = children.collect();
        let known = family.len();
        family.extend(children);
        if family.len() == known {
            break;
        }
    }
    let pids = family.iter().map(u32::to_string);
    let _ = run::run(Command::new("kill").arg("-9").args(pids))?;
    Ok(())
}

/// Sums over all test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Totals {
    fn merge(&mut self, other: Totals) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Adds the counts of a `test result:` line; other lines change nothing.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_verdict, counts)) = result.split_once(". ") else {
            return;
        };
        for part in counts.split("; ") {
            let Some((count, word)) = part.split_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.skipped += count,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(formatter, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests;
