//! The arguments of `ringfence init`.

use std::path::PathBuf;

use clap::Args;

use super::{ClientWord, HomeArguments};

/// Without `--yes` it asks at the terminal for every answer that no flag gives.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 written, 1 stopped at a question, 2 there are settings already.")]
pub(crate) struct InitArguments {
    /// Which bundled tools callers get: starter, developer, files, everything or none
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// The folder that tools read and write; by default `workspace` in the home
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The client to connect
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<ClientWord>,
    /// Answer approval questions in that client, up to risk L4
    #[arg(long, requires = "client")]
    pub(crate) client_answers: bool,
    /// Do not ask: use the flags, and the first choice for everything else
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}
