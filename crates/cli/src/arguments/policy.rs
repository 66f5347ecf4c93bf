//! The command lines of `ringfence policy` and `ringfence explain`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use model::caller::Origin;

use super::{Common, HomeArguments};

/// Nothing here changes what is in force.
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the rules in force
    Show(PolicyShow),
    /// Find rules that cannot have the intended effect
    Lint(PolicyLint),
    /// Decide recorded calls again under another rule file or configuration
    Test(PolicyTest),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyShow {
    /// Only these rules
    #[arg(value_name = "RULE")]
    pub(crate) rules: Vec<String>,
    /// Only what applies to this caller, and its rights
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// A file with only rules replaces all rules; any other replaces ringfence.toml.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 nothing wrong, 1 a finding is an error, 2 could not be read.")]
pub(crate) struct PolicyLint {
    /// A rule file or configuration, instead of those in force
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// A file with only rules replaces all rules; any other replaces ringfence.toml.
/// No tool runs and no question is asked.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 nothing gets looser, 1 something does, 2 could not be tried.")]
pub(crate) struct PolicyTest {
    /// A rule file or configuration
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only calls after this: a length such as `2h` or `7d`, or a date
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only calls by this caller
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// Explains a recorded call by its id, or a call that is not made.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit: 0 it would run or be asked about, 1 it is refused, 2 could not be explained."
)]
pub(crate) struct Explain {
    /// The id of a call, or a prefix of it; a call that is not made has `--tool`
    #[arg(
        value_name = "CALL-ID",
        required_unless_present = "tool",
        conflicts_with = "tool"
    )]
    pub(crate) id: Option<String>,
    /// The tool of a call that is not made
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// The caller; `owner` if it is not given
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// The arguments, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The way the call comes in; `mcp` if it is not given
    #[arg(long, value_name = "DOOR")]
    pub(crate) door: Option<DoorWord>,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl Explain {
    /// Whether it says how a call would be made.
    pub(crate) fn describes_a_call(&self) -> bool {
        self.caller.is_some() || self.args.is_some() || self.door.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoorWord {
    Cli,
    Mcp,
    Script,
    Studio,
}

impl DoorWord {
    pub(crate) fn origin(self) -> Origin {
        match self {
            DoorWord::Cli => Origin::Cli,
            DoorWord::Mcp => Origin::Mcp,
            DoorWord::Script => Origin::Script,
            DoorWord::Studio => Origin::Studio,
        }
    }
}

impl Policy {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            PolicyCommand::Show(show) => &show.home,
            PolicyCommand::Lint(lint) => &lint.home,
            PolicyCommand::Test(test) => &test.home,
        }
    }
}
