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
use crate::run::TaskAnswer;

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
        Ok(TaskAnswer::Yes) => ExitCode::SUCCESS,
        Ok(TaskAnswer::No) => ExitCode::from(1),
        Err(error) => {
            printer::error(&error);
            ExitCode::from(2)
        }
    }
}

fn perform(task: Task) -> Result<TaskAnswer> {
    let root = Root::find()?;
    match task {
        Task::Check => check::check(&root),
        Task::Tidy => tidy::tidy(&root),
        Task::Generate { check: false } => generate::write(&root),
        Task::Generate { check: true } => generate::compare(&root),
        Task::Test { fast: false } => test::test(&root, test::Lanes::All),
        Task::Test { fast: true } => test::test(&root, test::Lanes::Fast),
        Task::Bench { name, arguments } => bench::bench(&root, name.as_deref(), &arguments),
        Task::Guest => guest::guest(&root),
        Task::Peers => peers::peers(&root),
        Task::Ci => ci(&root),
        Task::Setup => setup::setup(&root),
        Task::Subject { file } => subject::check(&file),
    }
}

fn ci(root: &Root) -> Result<TaskAnswer> {
    let steps: [fn(&Root) -> Result<TaskAnswer>; 4] =
        [setup::setup, guest::guest, check::check, |root| {
            test::test(root, test::Lanes::All)
        }];
    for step in steps {
        match step(root)? {
            TaskAnswer::Yes => {}
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
    }
    Ok(TaskAnswer::Yes)
}

#[cfg(test)]
mod tests;
