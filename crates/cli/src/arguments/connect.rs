//! The arguments of `ringfence connect`.

use clap::{Args, ValueEnum};
use model::policy::risk::Level;
use model::word::Word as _;

use super::HomeArguments;

/// Without a client it prints entries to copy. With one it shows what would change
/// in that client's settings, asks, and writes it.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 not changed, 2 could not be done.")]
pub(crate) struct ConnectArguments {
    /// The client
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<ClientWord>,
    /// Let the client connect to a running server instead of starting its own
    #[arg(long, requires = "client")]
    pub(crate) http: bool,
    /// The address of that server; otherwise the one in the settings
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The highest risk, L0 to L5, at which the client may answer questions about its own
    /// calls; L0 is never, L4 is the default
    #[arg(long, value_name = "RISK", requires = "client", conflicts_with = "remove", value_parser = risk)]
    pub(crate) answers: Option<Level>,
    /// The client's name in rules and the audit; by default its own
    #[arg(
        long,
        value_name = "NAME",
        requires = "client",
        conflicts_with = "remove"
    )]
    pub(crate) name: Option<String>,
    /// Remove the entry, and revoke its key
    #[arg(long, conflicts_with_all = ["http", "url"], requires = "client")]
    pub(crate) remove: bool,
    /// Do not ask
    #[arg(long, short, requires = "client")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientWord {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}

pub(super) fn risk(word: &str) -> Result<Level, String> {
    let mut all = Level::ALL.into_iter();
    let found = all.find(|level| level.word().eq_ignore_ascii_case(word));
    found.ok_or_else(|| "it must be one of L0 to L5".to_owned())
}
