//! Versions that every call checks: in a file that all processes of a home see, or in the
//! store that nodes share.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::StoreError;
use crate::home::counter::Counter;
use crate::postgres::Cluster;
use crate::postgres::watch::NewsKind;

/// A version that every call checks: in a file of the home, or in the shared store.
#[derive(Debug)]
pub(crate) enum VersionCounter {
    File(Counter),
    Shared(Arc<Cluster>, NewsKind),
}

impl VersionCounter {
    pub(crate) fn open(
        cluster: Option<&Arc<Cluster>>,
        kind: NewsKind,
        path: PathBuf,
    ) -> Result<VersionCounter, StoreError> {
        match cluster {
            None => Counter::open(path).map(VersionCounter::File),
            Some(cluster) => Ok(VersionCounter::Shared(Arc::clone(cluster), kind)),
        }
    }

    /// The version.
    pub(crate) fn read(&self) -> Result<u64, StoreError> {
        match self {
            VersionCounter::File(counter) => counter.read(),
            VersionCounter::Shared(cluster, kind) => cluster.news().version(*kind, cluster.pool()),
        }
    }

    /// Whether other processes may have missed a change, because the file was deleted.
    pub(crate) fn find(&self) -> Result<bool, StoreError> {
        match self {
            VersionCounter::File(counter) => counter.find(),
            VersionCounter::Shared(..) => Ok(false),
        }
    }

    /// Raises it to the database's version; never lowers it.
    pub(crate) fn raise(&self, version: i64) -> Result<(), StoreError> {
        match self {
            VersionCounter::File(counter) => counter.raise(version),
            VersionCounter::Shared(cluster, kind) => {
                cluster.news().raise(*kind, version);
                Ok(())
            }
        }
    }
}
