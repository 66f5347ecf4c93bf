//! The command line of `ringfence approvals`.

use clap::{Args, Subcommand, ValueEnum};
use engine::approve::ApprovalScope;

use super::HomeArguments;

/// Answers questions of every process that uses this home.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 this answer is not possible, 2 could not be done.")]
pub(crate) struct ApprovalsArguments {
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List waiting questions, and approvals that are still valid
    List(ApprovalsList),
    /// Show one question in full
    Show(ApprovalsShow),
    /// Show a question and approve it, at a terminal
    Approve(ApprovalsApprove),
    /// Decline a question
    Deny(ApprovalsDeny),
    /// Revoke an approval that is still valid
    Revoke(ApprovalsShow),
    /// Show questions as they come, and answer them at a terminal
    Watch(ApprovalsWatch),
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsList {
    /// Also past ones: used, declined, revoked, expired
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsShow {
    /// The id of a question, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// Shows the question at the terminal and takes a typed answer. Without a terminal
/// nothing is approved.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsApprove {
    /// The id of a question, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Which further calls it covers, as far as the risk allows; asked by default
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeWord>,
    /// Do not ask, where `approvals.automation` allows it; recorded
    #[arg(long)]
    pub(crate) automation: bool,
    /// A note for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsDeny {
    /// The id of a question, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// A message for the caller
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "With `--json` it prints one value per line and asks nothing.")]
pub(crate) struct ApprovalsWatch {
    /// Stop after this many questions
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeWord {
    /// This call only
    Once,
    /// The same tool with the same arguments, for an hour
    SameArguments,
    /// The same tool in the same session
    Session,
    /// The same tool until it or its policy changes
    UntilChanged,
}

impl ScopeWord {
    pub(crate) fn scope(self) -> ApprovalScope {
        match self {
            ScopeWord::Once => ApprovalScope::Once,
            ScopeWord::SameArguments => ApprovalScope::SameArguments,
            ScopeWord::Session => ApprovalScope::Session,
            ScopeWord::UntilChanged => ApprovalScope::UntilChanged,
        }
    }
}

impl ApprovalsArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            ApprovalsCommand::List(list) => &list.home,
            ApprovalsCommand::Show(show) | ApprovalsCommand::Revoke(show) => &show.home,
            ApprovalsCommand::Approve(approve) => &approve.home,
            ApprovalsCommand::Deny(deny) => &deny.home,
            ApprovalsCommand::Watch(watch) => &watch.home,
        }
    }
}
