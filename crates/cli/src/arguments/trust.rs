//! The arguments of `ringfence trust`.

use clap::{Args, Subcommand};

use super::HomeArguments;

/// Trust only lowers the level the operator gave; the settings turn it on.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 2 could not be tried.")]
pub(crate) struct TrustArguments {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Compute a caller's trust level, and explain it
    Show(ShowTrust),
    /// Rate a caller's work, from 0 to 10
    Feedback(FeedbackArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShowTrust {
    /// The caller
    #[arg(value_name = "CALLER")]
    pub(crate) caller: String,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct FeedbackArguments {
    /// The caller
    #[arg(value_name = "CALLER")]
    pub(crate) caller: String,
    /// From 0, useless, to 10, excellent
    #[arg(value_name = "SCORE", value_parser = clap::value_parser!(u8).range(0..=10))]
    pub(crate) score: u8,
    /// For the tools of one category only
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// The reason, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

impl TrustArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            TrustCommand::Show(show) => &show.home,
            TrustCommand::Feedback(feedback) => &feedback.home,
        }
    }
}
