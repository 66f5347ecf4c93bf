//! Which other processes are alive: those of the home by their lock files, those of a
//! cluster by their leases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::home::process;
use crate::postgres::Cluster;
use crate::sql::{self, Executor, values};

/// Whether a process has a lease that is not over.
const HAS_LEASE: &str =
    "SELECT count(*) FROM processes WHERE id = ?1 AND expires > clock_timestamp()";

/// The other processes that share what this one works on.
#[derive(Clone, Debug)]
pub(crate) enum Peers {
    Home(PathBuf),
    Shared(Arc<Cluster>),
}

impl Peers {
    pub(crate) fn new(cluster: Option<&Arc<Cluster>>, home: &Path) -> Peers {
        match cluster {
            None => Peers::Home(home.to_owned()),
            Some(cluster) => Peers::Shared(Arc::clone(cluster)),
        }
    }

    /// Whether a process is dead. In doubt it counts as alive.
    pub(crate) fn is_dead(&self, executor: Executor<'_>, process: &str) -> sql::Result<bool> {
        match self {
            Peers::Home(home) => Ok(process::is_dead(home, process)),
            Peers::Shared(cluster) if cluster.news().is_living(process) => Ok(false),
            Peers::Shared(_) => Ok(executor.number(HAS_LEASE, values![process])? == 0),
        }
    }
}
