//! Which roles were found to hold no more than data, and when. The question costs the server
//! more than most statements, so its answer counts for a while, as it would for a connection
//! that is kept. Only good answers are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sql::limit;
use crate::sql::postgres::PostgresTarget;

/// A role at a database: host, port, database, user.
type RoleKey = (String, u16, String, String);

/// The roles that were checked lately; copies share what they know.
#[derive(Clone, Debug, Default)]
pub struct CheckedRoles(Arc<Mutex<HashMap<RoleKey, Instant>>>);

impl CheckedRoles {
    /// Whether the role of `target` was found good not long ago.
    pub(super) fn holds(&self, target: &PostgresTarget) -> bool {
        let fresh = Duration::from_millis(limit::POSTGRES_ROLE_MS);
        let checked = self.lock().get(&key(target)).copied();
        checked.is_some_and(|then| then.elapsed() < fresh)
    }

    /// The role of `target` was found good now.
    pub(super) fn remember(&self, target: &PostgresTarget) {
        let mut checked = self.lock();
        if checked.len() >= limit::POSTGRES_ROLES_MAX {
            checked.clear();
        }
        checked.insert(key(target), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RoleKey, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(target: &PostgresTarget) -> RoleKey {
    let host = target.host.to_string();
    (
        host,
        target.port,
        target.database.clone(),
        target.user.clone(),
    )
}
