//! What the operator decides about the store, and how much room is left.

use model::limits;

use crate::limit;

/// How soon a committed record is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// At once where a call waits for it, otherwise within [`limit::SYNC_MS_MAX`].
    Standard,
    /// Before any answer.
    Full,
}

/// What the operator decides about the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// How soon a record is on the disk.
    pub durability: Durability,
    /// The size of the audit's log, in bytes, beyond which calls are refused.
    pub audit_bytes_max: u64,
    /// Requests that may wait to be written; beyond that calls are refused.
    pub queue_max: usize,
}

impl StoreSettings {
    /// Standard durability, [`limits::AUDIT_BYTES_DEFAULT`] and
    /// [`limit::QUEUE_DEFAULT`].
    #[must_use]
    pub fn standard() -> StoreSettings {
        StoreSettings {
            durability: Durability::Standard,
            audit_bytes_max: limits::AUDIT_BYTES_DEFAULT,
            queue_max: limit::QUEUE_DEFAULT,
        }
    }
}

/// How much of its allowed size the audit uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the log.
    pub bytes: u64,
    /// Bytes it may have.
    pub bytes_max: u64,
}

impl Room {
    /// The used part, in percent.
    #[must_use]
    pub fn percent(&self) -> u64 {
        self.bytes.saturating_mul(100) / self.bytes_max.max(1)
    }
}
