//! `cargo xtask check`: everything that can be said about the source without
//! running it. Cheap steps come first, and the first failure ends the task.

use std::time::Instant;

use anyhow::Result;

use crate::root::Root;
use crate::run::{self, TaskAnswer};
use crate::{generate, printer, test, tidy};

struct Step {
    name: &'static str,
    run: fn(&Root) -> Result<TaskAnswer>,
    /// Said when the answer is no.
    failure: &'static str,
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: format,
        failure: "the formatting is off; run `cargo fmt --all`",
    },
    Step {
        name: "tidy",
        run: tidy::tidy,
        failure: "the tree is untidy; the lines above say where",
    },
    Step {
        name: "lints",
        run: lints,
        failure: "clippy or the compiler has something to say",
    },
    Step {
        name: "docs",
        run: docs,
        failure: "the documentation does not build cleanly",
    },
    Step {
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
        let answer = (step.run)(root)?;
        printer::duration(step.name, start.elapsed());
        match answer {
            TaskAnswer::Yes => {}
            TaskAnswer::No => {
                printer::note(&format!("check failed: {}", step.failure));
                return Ok(TaskAnswer::No);
            }
        }
    }
    Ok(TaskAnswer::Yes)
}

fn format(root: &Root) -> Result<TaskAnswer> {
    run::run(&mut run::cargo(root, &["fmt", "--all", "--check"]))
}

fn lints(root: &Root) -> Result<TaskAnswer> {
    let arguments = [
        "clippy",
        "--quiet",
        "--locked",
        "--workspace",
        "--all-targets",
        "--features",
        test::PEERS,
        "--",
        "-D",
        "warnings",
    ];
    run::run(&mut run::cargo(root, &arguments))
}

fn docs(root: &Root) -> Result<TaskAnswer> {
    let arguments = [
        "doc",
        "--quiet",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    run::run(run::cargo(root, &arguments).env("RUSTDOCFLAGS", "-D warnings"))
}
