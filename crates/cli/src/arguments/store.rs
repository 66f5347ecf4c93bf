//! The arguments of `ringfence store`.

use clap::{Args, Subcommand, ValueEnum};
use store::shared::CopyTarget;

use super::HomeArguments;

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Tell where decisions are kept, and how the shared store is
    Status(HomeArguments),
    /// Bring the tables of the shared store up to date
    Migrate(HomeArguments),
    /// Copy all decisions into the shared store, or back
    Copy(StoreCopy),
}

#[derive(Debug, Args)]
pub(crate) struct StoreCopy {
    /// Where to: it must be empty there, unless it is replaced
    #[arg(long, value_name = "PLACE")]
    pub(crate) to: StorePlace,
    /// With `--to home`: replace the decisions that the home has
    #[arg(long)]
    pub(crate) replace: bool,
    /// Replace without asking
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StorePlace {
    /// The Postgres that `store.url` names
    Postgres,
    /// The SQLite in the home
    Home,
}

impl StoreCopy {
    /// Where to; nothing if that is never replaced.
    pub(crate) fn target(&self) -> Option<CopyTarget> {
        match (self.to, self.replace) {
            (StorePlace::Postgres, false) => Some(CopyTarget::Shared),
            (StorePlace::Postgres, true) => None,
            (StorePlace::Home, false) => Some(CopyTarget::Home),
            (StorePlace::Home, true) => Some(CopyTarget::HomeReplaced),
        }
    }
}

impl StoreArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            StoreCommand::Status(home) | StoreCommand::Migrate(home) => home,
            StoreCommand::Copy(copy) => &copy.home,
        }
    }
}
