//! The arguments of `ringfence keys`.

use clap::{Args, Subcommand, ValueEnum};

use super::HomeArguments;
use super::callers::NamedCaller;

/// Days a key may be given.
const DAYS_MAX: u32 = 3_650;

#[derive(Debug, Args)]
pub(crate) struct KeysArguments {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key for a caller and show it, once
    Add(KeysAdd),
    /// List keys: caller, role, expiry
    List(HomeArguments),
    /// Revoke a key, from the next request on
    Revoke(NamedCaller),
    /// Replace a key and show the new one, once
    Rotate(KeysRotate),
}

#[derive(Debug, Args)]
pub(crate) struct KeysAdd {
    /// The caller's name in rules and the audit
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The role: agents call tools, operators answer questions
    #[arg(long, value_name = "ROLE", default_value = "agent")]
    pub(crate) role: RoleWord,
    /// Days until it expires; never by default
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    pub(crate) expires: Option<u32>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct KeysRotate {
    /// The caller
    #[arg(value_name = "CALLER")]
    pub(crate) name: String,
    /// Days until it expires; by default as many as before
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    pub(crate) expires: Option<u32>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleWord {
    Agent,
    Operator,
}

impl KeysArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            KeysCommand::Add(add) => &add.home,
            KeysCommand::List(home) => home,
            KeysCommand::Revoke(name) => &name.home,
            KeysCommand::Rotate(rotate) => &rotate.home,
        }
    }
}
