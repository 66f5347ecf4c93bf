//! The arguments of `ringfence wrap`, `unwrap` and `scan`.

use clap::Args;
use model::policy::risk::Level;

use super::HomeArguments;
use super::connect::risk;

/// Moves the MCP servers of a client behind Ringfence. Each becomes a server of the
/// settings, held until you accept it; plain secrets of variables and headers move into
/// `secrets.env`; the client gets one entry, for Ringfence, and may answer questions about its
/// own calls (`--answers`). `ringfence unwrap` puts the file back.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit: 0 done, 1 not changed, 2 could not be done. A server that cannot be imported stays in the client's file."
)]
pub(crate) struct WrapArguments {
    /// claude-desktop, claude-code, cursor, vscode, or a file of such settings
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) target: Option<String>,
    /// The client's name in rules and the audit; by default its own
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The highest risk, L0 to L5, at which the client may answer questions about its own
    /// calls; L0 is never, L4 is the default
    #[arg(long, value_name = "RISK", value_parser = risk)]
    pub(crate) answers: Option<Level>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// Restores the client's file byte for byte. The servers stay in the settings of Ringfence.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 not changed, 2 could not be done.")]
pub(crate) struct UnwrapArguments {
    /// The client or the file; not needed if only one is wrapped
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) target: Option<String>,
    /// Restore the file even if it changed since; those changes are lost
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// Starts nothing and changes nothing. Secrets are found and never printed.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 nothing was found, 1 there are findings, 2 a file cannot be read.")]
pub(crate) struct ScanArguments {
    /// claude-desktop, claude-code, cursor, vscode, or a file; every client if none
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}
