//! `cargo xtask check`: every check of the source that runs none of it. Cheap steps
//! come first, and the first failure ends the task.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::root::Root;
use crate::run::{self, TaskAnswer, TaskStep};
use crate::{build, generate, printer, test, tidy};

/// One thing that is checked.
#[derive(Debug)]
pub(crate) struct CheckStep {
    pub(crate) name: &'static str,
    run: TaskStep,
    /// The message of a failure.
    failure: &'static str,
}

impl CheckStep {
    /// Runs it and says what is wrong, if something is.
    pub(crate) fn run(&self, root: &Root) -> Result<TaskAnswer> {
        let answer = (self.run)(root)?;
        if answer == TaskAnswer::No {
            printer::note(&format!("check failed: {}", self.failure));
        }
        Ok(answer)
    }
}

/// The time of a cold check and documentation of the whole workspace, on two cores.
const LINTS_USUAL: Duration = Duration::from_secs(4 * 60);
const DOCS_USUAL: Duration = Duration::from_secs(60);

pub(crate) const STEPS: &[CheckStep] = &[
    CheckStep {
        name: "format",
        run: format,
        failure: "the formatting is off; run `cargo fmt --all`",
    },
    CheckStep {
        name: "tidy",
        run: tidy::tidy,
        failure: "the tree is untidy; the lines above say where",
    },
    CheckStep {
        name: "lints",
        run: lints,
        failure: "clippy or the compiler reports a problem",
    },
    CheckStep {
        name: "docs",
        run: docs,
        failure: "the documentation does not build cleanly",
    },
    CheckStep {
        name: "generated files",
        run: generate::compare,
        failure: "generated files are stale; run `cargo xtask gen`",
    },
];

/// Runs the steps in order and stops at the first that answers no.
pub(crate) fn check(root: &Root) -> Result<TaskAnswer> {
    for step in STEPS {
        printer::heading(step.name);
        let start = Instant::now();
        let answer = step.run(root)?;
        printer::duration(step.name, start.elapsed());
        match answer {
            TaskAnswer::Yes => {}
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
    }
    Ok(TaskAnswer::Yes)
}

fn format(root: &Root) -> Result<TaskAnswer> {
    run::run(&mut run::cargo(root, &["fmt", "--all", "--check"]))
}

fn lints(root: &Root) -> Result<TaskAnswer> {
    let mut command = run::cargo(root, &["clippy", "--locked", "--workspace"]);
    command
        .args(["--all-targets", "--features", test::PEERS])
        .args(build::MESSAGES)
        .args(["--", "-D", "warnings"]);
    build::watch(root, &mut command, build::WORKSPACE, LINTS_USUAL)
}

/// Examples are documented too because they take the dependencies with the features that
/// tests ask for, as the lints do: without them cargo checks 54 packages a second time.
fn docs(root: &Root) -> Result<TaskAnswer> {
    let mut command = run::cargo(root, &["doc", "--locked", "--workspace"]);
    command
        .args(["--no-deps", "--document-private-items"])
        .args(["--lib", "--bins", "--examples", "--features", test::PEERS])
        .args(build::MESSAGES)
        .env("RUSTDOCFLAGS", "-D warnings");
    build::watch(root, &mut command, build::WORKSPACE, DOCS_USUAL)
}
