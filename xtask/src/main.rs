//! The project's own tasks, typed as `cargo xtask <task>`.
//!
//! What CI runs and what a person runs at home are the same program. A task
//! answers yes (exit 0) or no (exit 1); when it could not find out, it says why
//! and exits 2.

mod bench;
mod check;
mod generate;
mod guest;
mod peers;
mod printer;
mod root;
mod run;
mod setup;
mod subject;
mod test;
mod tidy;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::root::Root;
use crate::run::Answer;

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Formatting, lints, docs, tidiness, generated files
    Check,
    /// The rules of the house that no compiler knows
    Tidy,
    /// Write the schema and the reference pages
    #[command(name = "gen")]
    Generate {
        /// Only say which files are stale
        #[arg(long)]
        check: bool,
    },
    /// Run all tests and print the totals
    Test {
        /// Leave out the slow lanes
        #[arg(long)]
        fast: bool,
    },
    /// Run the benchmarks; arguments after `--` go to them
    Bench {
        /// One crate; all of them without it
        #[arg(value_name = "CRATE")]
        name: Option<String>,
        /// Fail if a promise of SPECIFICATION.md breaks
        #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
        gate: Option<bench::Gate>,
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Build what runs inside the sandbox
    Guest,
    /// Install the clients and suites that tests use
    Peers,
    /// What `.ci/run` runs: setup, guest, check, test
    Ci,
    /// Say what is missing on this machine
    Setup,
    /// Check the first line of a commit message
    Subject {
        /// The file with the message, as git hands it to a hook
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    match perform(Arguments::parse().task) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => {
            printer::error(&error);
            ExitCode::from(2)
        }
    }
}

fn perform(task: Task) -> Result<Answer> {
    let root = Root::find()?;
    match task {
        Task::Check => check::check(&root),
        Task::Tidy => tidy::tidy(&root),
        Task::Generate { check: false } => generate::write(&root),
        Task::Generate { check: true } => generate::compare(&root),
        Task::Test { fast: false } => test::test(&root, test::Lanes::All),
        Task::Test { fast: true } => test::test(&root, test::Lanes::Fast),
        Task::Bench {
            name,
            gate,
            arguments,
        } => bench::bench(&root, name.as_deref(), gate, &arguments),
        Task::Guest => guest::guest(&root),
        Task::Peers => peers::peers(&root),
        Task::Ci => ci(&root),
        Task::Setup => setup::setup(&root),
        Task::Subject { file } => subject::check(&file),
    }
}

fn ci(root: &Root) -> Result<Answer> {
    let steps: [fn(&Root) -> Result<Answer>; 4] =
        [setup::setup, guest::guest, check::check, |root| {
            test::test(root, test::Lanes::All)
        }];
    for step in steps {
        match step(root)? {
            Answer::Yes => {}
            Answer::No => return Ok(Answer::No),
        }
    }
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests;
