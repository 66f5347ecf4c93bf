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
    /// Where to: it must be empty there
    #[arg(long, value_name = "PLACE")]
    pub(crate) to: StorePlace,
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

impl From<StorePlace> for CopyTarget {
    fn from(place: StorePlace) -> CopyTarget {
        match place {
            StorePlace::Postgres => CopyTarget::Shared,
            StorePlace::Home => CopyTarget::Home,
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
