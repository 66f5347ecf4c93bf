//! How far a long reading of the log is, for a person who waits: verifying it, exporting
//! it, indexing it again.
//!
//! There is one gauge for the process. A command does one such thing at a time; a server
//! does several, and shows none.

use std::sync::atomic::{AtomicU64, Ordering};

static DONE: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Bytes of the log that were read, and how many there are to read. Nothing if nothing is
/// being read.
#[must_use]
pub fn log_read() -> Option<(u64, u64)> {
    match TOTAL.load(Ordering::Relaxed) {
        0 => None,
        total => Some((DONE.load(Ordering::Relaxed), total)),
    }
}

/// One long reading. While it lives, [`log_read`] tells how far it is.
#[derive(Debug)]
pub(crate) struct LogReading(());

impl LogReading {
    pub(crate) fn begin(bytes: u64) -> LogReading {
        DONE.store(0, Ordering::Relaxed);
        TOTAL.store(bytes, Ordering::Relaxed);
        LogReading(())
    }

    /// The line at this position is being read.
    pub(crate) fn reach(&self, position: u64) {
        DONE.store(position, Ordering::Relaxed);
    }
}

impl Drop for LogReading {
    fn drop(&mut self) {
        TOTAL.store(0, Ordering::Relaxed);
    }
}
