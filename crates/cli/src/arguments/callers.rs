//! The arguments of `ringfence callers`.

use clap::{Args, Subcommand};

use super::HomeArguments;

/// A caller that is denied three times in a row, or twenty times in all, is paused.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 it was not paused, 2 could not be tried.")]
pub(crate) struct CallersArguments {
    #[command(subcommand)]
    pub(crate) command: CallersCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallersCommand {
    /// List callers that were denied, are paused or have a trust level
    List(HomeArguments),
    /// Show one of them
    Show(NamedCaller),
    /// Refuse every call of a caller, from the next one on
    Pause(Pause),
    /// Let a caller call again; its denials are reset
    Resume(NamedCaller),
}

#[derive(Debug, Args)]
pub(crate) struct NamedCaller {
    /// The caller
    #[arg(value_name = "CALLER")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// The caller, known or not
    #[arg(value_name = "CALLER")]
    pub(crate) name: String,
    /// The reason, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

impl CallersArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            CallersCommand::List(home) => home,
            CallersCommand::Show(name) | CallersCommand::Resume(name) => &name.home,
            CallersCommand::Pause(pause) => &pause.home,
        }
    }
}
