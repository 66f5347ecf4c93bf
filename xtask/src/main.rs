//! The project's own tasks, typed as `cargo xtask <task>`.
//!
//! CI and people run the same program. A task answers yes (exit 0) or no (exit 1); when
//! it could not find out, it says why and exits 2.

mod bench;
mod build;
mod check;
mod ci;
mod dist;
mod generate;
mod guest;
mod peers;
mod printer;
mod release;
mod root;
mod run;
mod serve;
mod setup;
mod studio;
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
    /// Project rules that no compiler checks
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
        /// Only the tests of one crate, such as `engine`, without the slow lanes
        #[arg(value_name = "CRATE")]
        name: Option<String>,
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
        #[arg(long = "gate", value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
        promises: Option<bench::PromiseSet>,
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Build the code inside the sandbox, if its sources changed
    Guest {
        /// Build it and put it into the repository
        #[arg(long)]
        write: bool,
        /// Build it and compare it with the one in the repository
        #[arg(long, conflicts_with = "write")]
        check: bool,
    },
    /// Build the web page of the Studio, if its sources changed
    Studio,
    /// Build the program and start its server
    Serve,
    /// Make a release: archive, Debian package, image, SBOM, checksums
    Dist {
        /// A key of OpenSSH that signs the checksums
        #[arg(long, value_name = "FILE")]
        sign: Option<PathBuf>,
        /// A program that was built already, instead of building it
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Make a release and tag it: checks, tests, files built twice, signature, notes
    Release {
        /// The version, as Cargo.toml and CHANGELOG.md state it
        version: String,
        /// A key of OpenSSH that signs the checksums and the tag
        #[arg(long, value_name = "FILE")]
        sign: Option<PathBuf>,
        /// Only check, and say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Install the clients and suites that tests use
    Peers,
    /// Run everything that CI runs
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
        Task::Test { fast, name } => {
            let lanes = match fast || name.is_some() {
                true => test::Lanes::Fast,
                false => test::Lanes::All,
            };
            test::test(&root, lanes, name.as_deref())
        }
        Task::Bench {
            name,
            promises,
            arguments,
        } => bench::bench(&root, name.as_deref(), promises, &arguments),
        Task::Guest { write, check } => guest::guest(
            &root,
            match (write, check) {
                (true, _) => guest::Wish::Write,
                (_, true) => guest::Wish::Compare,
                (false, false) => guest::Wish::Ensure,
            },
        ),
        Task::Studio => studio::ensure(&root),
        Task::Serve => serve::serve(&root),
        Task::Dist { sign, program } => match program {
            Some(program) => dist::pack_given(&root, &program, sign.as_deref()),
            None => dist::dist(&root, sign.as_deref()),
        },
        Task::Release {
            version,
            sign,
            dry_run,
        } => release::release(
            &root,
            &release::ReleaseWish {
                version,
                key: sign,
                extent: match dry_run {
                    true => release::Extent::DryRun,
                    false => release::Extent::Whole,
                },
            },
        ),
        Task::Peers => peers::peers(&root),
        Task::Ci => ci::ci(&root),
        Task::Setup => setup::setup(&root),
        Task::Subject { file } => subject::check(&file),
    }
}

#[cfg(test)]
mod tests;
