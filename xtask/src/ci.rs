//! `cargo xtask ci`: everything CI runs, which is what `make test` runs. It lists first
//! the parts, their costs and installations, and last the time of each.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::build::clock;
use crate::check;
use crate::guest;
use crate::peers;
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};
use crate::setup;
use crate::studio;
use crate::test::{self, Lanes, Totals};

/// Holds the commit for which everything was green.
const GREEN: &str = "target/green";

/// How often a line says why it waits.
const SIGN_EVERY: Duration = Duration::from_secs(8);

/// A part of the whole.
#[derive(Debug)]
struct Part {
    name: &'static str,
    /// Minutes and seconds on two cores: from nothing, and when everything is built.
    cold: &'static str,
    warm: &'static str,
    /// What it installs, and where.
    installs: &'static str,
}

const SETUP: Part = Part {
    name: "what is needed on this machine",
    cold: "0:01",
    warm: "0:01",
    installs: "rustfmt and clippy, by rustup, where they are missing",
};
const GUEST: Part = Part {
    name: "the sandbox guest, built and compared",
    cold: "4:00",
    warm: "0:01",
    installs: "a C compiler from PyPI, into target/guest",
};
const STUDIO: Part = Part {
    name: "the web page of the Studio",
    cold: "0:15",
    warm: "0:00",
    installs: "packages of npm into web/; Node from PyPI into target/node, where there is none",
};
const CLIENTS: Part = Part {
    name: "clients and suites of other people",
    cold: "0:10",
    warm: "0:00",
    installs: "packages of npm and PyPI, into target/peers, beside the parts before it",
};
const BUILD: Part = Part {
    name: "building the tests",
    cold: "8:00",
    warm: "0:05",
    installs: "",
};
const TESTS: Part = Part {
    name: "tests",
    cold: "8:00",
    warm: "7:30",
    installs: "",
};
const PAGES: Part = Part {
    name: "the Studio in a browser",
    cold: "3:30",
    warm: "3:00",
    installs: "Debian's chromium, unpacked into target/peers, where there is none",
};
const LOAD: Part = Part {
    name: "three nodes under load, two of them killed",
    cold: "1:20",
    warm: "1:20",
    installs: "",
};
const RELEASE: Part = Part {
    name: "a release, made, installed and used",
    cold: "1:30",
    warm: "1:05",
    installs: "a Docker engine from Debian, unpacked into target/peers, if apt has one",
};

/// The parts that `cargo xtask check` has, by its names.
const CHECKS: &[Part] = &[
    Part {
        name: "format",
        cold: "0:02",
        warm: "0:02",
        installs: "",
    },
    Part {
        name: "tidy",
        cold: "0:02",
        warm: "0:02",
        installs: "",
    },
    Part {
        name: "lints",
        cold: "3:00",
        warm: "0:05",
        installs: "",
    },
    Part {
        name: "docs",
        cold: "0:40",
        warm: "0:02",
        installs: "",
    },
    Part {
        name: "generated files",
        cold: "0:01",
        warm: "0:01",
        installs: "",
    },
];

/// Runs everything. The totals of the tests are alone on the last line.
pub(crate) fn ci(root: &Root) -> Result<TaskAnswer> {
    for line in announcement() {
        printer::note(&line);
    }
    let mut report = Report::new();
    let mut totals = Totals::default();
    let ended = run_parts(root, &mut report, &mut totals);
    for line in report.table() {
        printer::note(&line);
    }
    let answer = ended?;
    if answer == TaskAnswer::Yes {
        mark_green(root)?;
    }
    printer::line(&totals.to_string());
    Ok(answer)
}

/// Notes that everything was green for the commit that is checked out. A tree with other
/// changes is no commit, so it gets no mark.
pub(crate) fn mark_green(root: &Root) -> Result<()> {
    let Some(commit) = clean_commit(root) else {
        return Ok(());
    };
    let path = root.join(GREEN);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).context("could not make target")?;
    }
    fs::write(&path, commit).with_context(|| format!("could not write {GREEN}"))
}

/// The commit for which everything was green last.
pub(crate) fn green_commit(root: &Root) -> Option<String> {
    fs::read_to_string(root.join(GREEN)).ok()
}

/// The commit that is checked out, if nothing else is.
fn clean_commit(root: &Root) -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        run::output(command.current_dir(root.path()).args(arguments))
    };
    let changes = git(&["status", "--porcelain"])?;
    let commit = git(&["rev-parse", "HEAD"])?;
    changes.is_empty().then(|| commit.trim().to_owned())
}

fn all_parts() -> Vec<&'static Part> {
    let mut parts = vec![&SETUP, &GUEST, &STUDIO];
    parts.extend(CHECKS);
    parts.extend([&CLIENTS, &BUILD, &TESTS, &PAGES, &LOAD, &RELEASE]);
    parts
}

/// The announcement before anything runs.
fn announcement() -> Vec<String> {
    let mut lines = vec![
        "Everything CI runs. On two cores it usually takes 30 minutes from nothing and 14 when"
            .to_owned(),
        "everything is built. Nothing is installed outside target/ but what `installs` says."
            .to_owned(),
        format!("   {:<40}{:>13}{:>7}", "part", "from nothing", "built"),
    ];
    for part in all_parts() {
        lines.push(format!(
            "   {:<40}{:>13}{:>7}",
            part.name, part.cold, part.warm
        ));
        if !part.installs.is_empty() {
            lines.push(format!("      installs {}", part.installs));
        }
    }
    lines
}

fn run_parts(root: &Root, report: &mut Report, totals: &mut Totals) -> Result<TaskAnswer> {
    thread::scope(|scope| {
        // Downloads wait for the network while the processors compile.
        let clients = scope.spawn(|| peers::peers(root));
        let mut answer = report.time(&SETUP, || setup::setup(root))?;
        answer = answer.and_then(|| report.time(&GUEST, || guest::compare(root)))?;
        answer = answer.and_then(|| report.time(&STUDIO, || studio::ensure(root)))?;
        for (part, step) in CHECKS.iter().zip(check::STEPS) {
            answer = answer.and_then(|| report.time(part, || step.run(root)))?;
        }
        answer = answer.and_then(|| {
            report.time(&CLIENTS, || {
                while !clients.is_finished() {
                    printer::note("   waiting for downloads");
                    sleep_while(SIGN_EVERY, || !clients.is_finished());
                }
                let joined = clients.join();
                joined.map_err(|_| anyhow!("installing the clients ended in a panic"))?
            })
        })?;
        answer = answer.and_then(|| report.time(&BUILD, || test::build(root, Lanes::All)))?;
        if answer == TaskAnswer::No {
            return Ok(answer);
        }
        let tested = report.time(&TESTS, || test::run(root, Lanes::All, None, totals))?;
        let pages = report.time(&PAGES, || test::studio(root, totals))?;
        let loaded = report.time(&LOAD, || test::load(root, totals))?;
        let released = report.time(&RELEASE, || test::release(root, totals))?;
        Ok(tested.and(pages).and(loaded).and(released))
    })
}

/// Sleeps for so long, or until the condition ends.
fn sleep_while(at_most: Duration, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while is_so() && began.elapsed() < at_most {
        thread::sleep(Duration::from_millis(50));
    }
}

/// The time of each part.
#[derive(Debug)]
struct Report {
    started: Instant,
    number: usize,
    rows: Vec<(&'static str, Duration, Ending)>,
}

/// How a part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Well,
    Badly,
}

impl Report {
    fn new() -> Report {
        Report {
            started: Instant::now(),
            number: 0,
            rows: Vec::new(),
        }
    }

    /// Runs a part under its name and keeps its time.
    fn time(
        &mut self,
        part: &Part,
        run: impl FnOnce() -> Result<TaskAnswer>,
    ) -> Result<TaskAnswer> {
        self.number += 1;
        let count = all_parts().len();
        printer::heading(&format!("{} of {count}: {}", self.number, part.name));
        let began = Instant::now();
        let answer = run();
        let ending = match answer {
            Ok(TaskAnswer::Yes) => Ending::Well,
            Ok(TaskAnswer::No) | Err(_) => Ending::Badly,
        };
        let took = began.elapsed();
        printer::duration(part.name, took);
        self.rows.push((part.name, took, ending));
        answer
    }

    fn table(&self) -> Vec<String> {
        let row = |name: &str, took: Duration, mark: &str| {
            format!("   {name:<40}{:>8}{mark}", clock(took))
        };
        let mut lines = vec!["== what each part took".to_owned()];
        for (name, took, ending) in &self.rows {
            let mark = match ending {
                Ending::Well => "",
                Ending::Badly => "  FAILED",
            };
            lines.push(row(name, *took, mark));
        }
        lines.push(row("everything", self.started.elapsed(), ""));
        lines
    }
}

#[cfg(test)]
mod tests;
