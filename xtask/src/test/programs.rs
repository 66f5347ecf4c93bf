//! The test programs of the workspace, several at a time: most of them wait more than they
//! compute. What failed beside others runs once more alone, so that a test that was only late
//! is told apart from one that is wrong. It is named in any case.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::{LOAD, Patience, SIGN_EVERY, SILENCE_MAX, Totals, watch};
use crate::build::clock;
use crate::printer;
use crate::run::{self, TaskAnswer};

/// Programs that run at one time. Each has as many threads as there are processors.
const AT_ONCE: usize = 2;

/// Failed tests that run once more. More of them are no matter of being late.
const AGAIN_MAX: usize = 12;

/// Programs that take longest. They start first, so that none of them runs alone at the end.
const LONGEST: [&str; 4] = [
    "ringfence-engine it",
    "ringfence-cli peers",
    "ringfence-mcp conformance",
    "ringfence-cli it",
];

/// One test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// Its package and its target.
    name: String,
    path: PathBuf,
    /// The folder of its package.
    folder: PathBuf,
}

/// How one program ended.
#[derive(Debug)]
struct Ended {
    program: TestProgram,
    answer: TaskAnswer,
    totals: Totals,
    lines: Vec<String>,
    took: Duration,
}

/// The programs that `cargo test --no-run` of `command` names, the longest first.
pub(super) fn find(command: &mut Command) -> Result<Vec<TestProgram>> {
    command.args(["--no-run", "--quiet", "--message-format", "json"]);
    let messages = run::output(command).ok_or_else(|| anyhow!("cargo names no test programs"))?;
    let mut programs = read(&messages);
    programs.sort_by_key(|program| {
        let place = LONGEST.iter().position(|name| *name == program.name);
        (place.unwrap_or(LONGEST.len()), program.name.clone())
    });
    Ok(programs)
}

fn read(messages: &str) -> Vec<TestProgram> {
    let lines = messages.lines();
    let messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| one(&message)).collect()
}

fn one(message: &Value) -> Option<TestProgram> {
    let text = |pointer: &str| message.pointer(pointer)?.as_str();
    let is_test = message.pointer("/profile/test")?.as_bool()?;
    let path = PathBuf::from(text("/executable")?);
    let folder = Path::new(text("/manifest_path")?).parent()?.to_owned();
    let (package, target) = (package_name(text("/package_id")?), text("/target/name")?);
    // A part of its own: it takes all processors.
    if !is_test || target == LOAD {
        return None;
    }
    Some(TestProgram {
        name: format!("{package} {target}"),
        path,
        folder,
    })
}

/// `path+file:///w/crates/cli#ringfence-cli@0.1.0`; the name is left out where it is that of
/// the folder.
fn package_name(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.rsplit_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

/// Runs all of them and adds up their totals. `prepare` sets what they all need.
pub(super) fn run(
    programs: Vec<TestProgram>,
    totals: &mut Totals,
    prepare: impl Fn(&mut Command) + Sync,
) -> Result<TaskAnswer> {
    let ended = run_together(programs, &prepare)?;
    let failed: usize = ended.iter().map(|it| failed_tests(&it.lines).len()).sum();
    let mut answer = TaskAnswer::Yes;
    for mut ended in ended {
        if ended.answer == TaskAnswer::No && failed <= AGAIN_MAX {
            run_again(&mut ended, &prepare)?;
        }
        totals.merge(ended.totals);
        answer = answer.and(ended.answer);
    }
    Ok(answer)
}

/// What runs now and what is to run.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<TestProgram>,
    running: BTreeMap<String, Instant>,
}

fn run_together(
    programs: Vec<TestProgram>,
    prepare: &(impl Fn(&mut Command) + Sync),
) -> Result<Vec<Ended>> {
    let queue = Mutex::new(Queue {
        waiting: programs.into(),
        running: BTreeMap::new(),
    });
    let work = || {
        let mut all = Vec::new();
        while let Some(program) = next(&queue) {
            let ended = run_one(program, &[], prepare)?;
            lock(&queue).running.remove(&ended.program.name);
            show(&ended);
            all.push(ended);
        }
        Ok::<_, anyhow::Error>(all)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let mut shown = Instant::now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(50));
            if shown.elapsed() >= SIGN_EVERY {
                shown = Instant::now();
                printer::note(&format!("   still running: {}", lock(&queue).words()));
            }
        }
        let mut all = Vec::new();
        for worker in workers {
            let ended = worker
                .join()
                .map_err(|_| anyhow!("a runner of tests died"))?;
            all.extend(ended?);
        }
        Ok(all)
    })
}

fn next(queue: &Mutex<Queue>) -> Option<TestProgram> {
    let mut queue = lock(queue);
    let program = queue.waiting.pop_front()?;
    queue.running.insert(program.name.clone(), Instant::now());
    Some(program)
}

impl Queue {
    fn words(&self) -> String {
        let running = self.running.iter();
        let running = running.map(|(name, began)| format!("{name} {}", clock(began.elapsed())));
        let running: Vec<_> = running.collect();
        format!("{}; {} more", running.join(", "), self.waiting.len())
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program, all of its tests or those with these names.
fn run_one(
    program: TestProgram,
    tests: &[String],
    prepare: &impl Fn(&mut Command),
) -> Result<Ended> {
    let mut command = Command::new("sh");
    // One stream, so that what a test writes to either stands where it was written.
    let script = "exec \"$0\" \"$@\" 2>&1";
    command.args(["-c", script]).arg(&program.path);
    if !tests.is_empty() {
        command.arg("--exact").args(tests);
    }
    // As cargo runs it.
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null());
    prepare(&mut command);
    let patience = Patience {
        silence_max: SILENCE_MAX,
        // The queue says what runs.
        sign_every: SILENCE_MAX,
    };
    let (began, mut totals) = (Instant::now(), Totals::default());
    let lines = Mutex::new(Vec::new());
    let keep = |line: &str| {
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.to_owned());
    };
    let answer = watch(&mut command, &mut totals, patience, keep)
        .with_context(|| format!("could not run {}", program.name))?;
    Ok(Ended {
        program,
        answer,
        totals,
        lines: lines.into_inner().unwrap_or_else(PoisonError::into_inner),
        took: began.elapsed(),
    })
}

/// One line for a program whose tests passed, everything it said for another.
fn show(ended: &Ended) {
    if ended.answer == TaskAnswer::No {
        for line in &ended.lines {
            printer::line(line);
        }
    }
    printer::line(&format!(
        "   {:<28}{:>8}  {}",
        ended.program.name,
        clock(ended.took),
        ended.totals
    ));
}

/// Runs what failed once more, alone.
fn run_again(ended: &mut Ended, prepare: &impl Fn(&mut Command)) -> Result<()> {
    let failed = failed_tests(&ended.lines);
    // Without a name it was the program that failed.
    if failed.is_empty() {
        return Ok(());
    }
    let count = u64::try_from(failed.len()).unwrap_or(u64::MAX);
    if count != ended.totals.failed {
        return Ok(());
    }
    printer::note(&format!("   once more, alone: {}", failed.join(", ")));
    let again = run_one(ended.program.clone(), &failed, prepare)?;
    show(&again);
    if ended.take(&again, &failed) {
        printer::line(&format!("   passed only alone: {}", failed.join(", ")));
    }
    Ok(())
}

impl Ended {
    /// Takes over what became of the failed tests alone, and whether all of them passed.
    fn take(&mut self, again: &Ended, failed: &[String]) -> bool {
        let passed = usize::try_from(again.totals.passed).unwrap_or(0);
        let have_passed = again.answer == TaskAnswer::Yes && passed == failed.len();
        if have_passed {
            self.answer = TaskAnswer::Yes;
            self.totals.failed = 0;
            self.totals.passed += again.totals.passed;
        }
        have_passed
    }
}

/// The names of the tests that failed.
fn failed_tests(lines: &[String]) -> Vec<String> {
    let names = lines.iter().filter_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(
            name.strip_suffix(" - should panic")
                .unwrap_or(name)
                .to_owned(),
        )
    });
    names.collect()
}

#[cfg(test)]
mod tests;
