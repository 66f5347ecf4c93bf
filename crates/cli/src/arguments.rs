//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::exit::Exit;
use crate::printer::Format;

/// Runs the tools of AI agents behind a fence.
#[derive(Debug, Parser)]
#[command(
    name = "ringfence",
    version,
    max_term_width = 80,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Validate tool documents: state, risk, reasons, findings
    Check(Check),
    /// Call one tool once, in the sandbox
    Run(Run),
    /// Look whether everything that keeps tool code in is up
    Doctor(Doctor),
}

/// Exit code 0: every document can be used. 1: a finding is an error. 2: a file
/// could not be read.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 all sound, 1 a finding is an error, 2 a file could not be read.")]
pub(crate) struct Check {
    /// Files of one document or an array of them; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Takes the document as it stands in its file.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 refused or failed, 2 could not be tried.")]
pub(crate) struct Run {
    /// A file of one document, or of several with `--tool`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The arguments, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Which document of an array
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What commands that judge a document have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// More variables, as NAME=value lines
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Folder of ringfence.toml [env: RINGFENCE_HOME]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// One JSON value on standard output, nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// Starts a worker and lets it report.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 all up, 1 something is down, 2 could not look.")]
pub(crate) struct Doctor {
    /// One JSON value on standard output, nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

impl Arguments {
    /// Reads the process's arguments.
    pub(crate) fn read() -> Result<Arguments, clap::Error> {
        Arguments::try_parse()
    }

    /// How the command wants its output.
    pub(crate) fn format(&self) -> Format {
        let json = match &self.command {
            Command::Check(check) => check.common.json,
            Command::Run(run) => run.common.json,
            Command::Doctor(doctor) => doctor.json,
        };
        if json { Format::Json } else { Format::Human }
    }
}

/// Prints help, version or a usage error, and says how to exit.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    // A closed pipe is nobody's news.
    let _ = error.print();
    if error.use_stderr() {
        Exit::CouldNot.into()
    } else {
        Exit::Done.into()
    }
}
