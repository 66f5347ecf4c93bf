//! The body of a reply, piece by piece, bounded in bytes, silence and time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use url::{Host, Origin};

use crate::client::pool::IdlePool;
use crate::fetch::connection::{Connection, broken, next_piece};
use crate::fetch::fault::HttpFault;

/// A body under way. Dropped before its end, it takes its connection with it.
pub struct ReplyBody {
    pub(crate) incoming: Incoming,
    pub(crate) host: Host<String>,
    pub(crate) bytes_left: u64,
    pub(crate) silence: Duration,
    pub(crate) end: Instant,
    /// Nothing once the body has ended, well or not.
    pub(crate) lease: Option<Lease>,
}

/// What a reply holds until its body ends.
pub(crate) struct Lease {
    pub(crate) connection: Connection,
    pub(crate) origin: Origin,
    pub(crate) pool: Arc<IdlePool>,
    pub(crate) _place: OwnedSemaphorePermit,
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyBody")
            .field("bytes_left", &self.bytes_left)
            .finish_non_exhaustive()
    }
}

impl ReplyBody {
    /// The next piece; nothing after the end, and nothing after a fault.
    pub async fn next(&mut self) -> Option<Result<Bytes, HttpFault>> {
        // After the end or a fault the lease is gone, and with it the connection: nothing
        // is read again.
        self.lease.as_ref()?;
        let end = self.end.min(Instant::now() + self.silence);
        let fault = match timeout_at(end, next_piece(&mut self.incoming)).await {
            Ok(None) => {
                // Read to its end, so the connection is clean and may be used again.
                if let Some(lease) = self.lease.take() {
                    lease.pool.give(lease.origin, lease.connection);
                }
                return None;
            }
            Ok(Some(Ok(piece))) => {
                let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                match self.bytes_left.checked_sub(count) {
                    Some(left) => {
                        self.bytes_left = left;
                        return Some(Ok(piece));
                    }
                    None => self.too_large(),
                }
            }
            Ok(Some(Err(error))) => broken(&self.host, &error),
            Err(_) => {
                let host = &self.host;
                let what = format!("timed out while reading the body from {host}");
                HttpFault::failed("timeout", what)
            }
        };
        // Half a body is on the connection; the next request would read the rest of it.
        self.lease = None;
        Some(Err(fault))
    }

    /// The whole body, of at most so many bytes, in at most so much time.
    pub async fn read(mut self, bytes_max: u64, time_max: Duration) -> Result<Vec<u8>, HttpFault> {
        self.bytes_left = self.bytes_left.min(bytes_max);
        self.end = self.end.min(Instant::now() + time_max);
        // Refused on its own word, before a byte is read.
        if self.incoming.size_hint().lower() > self.bytes_left {
            return Err(self.too_large());
        }
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await {
            whole.extend_from_slice(&piece?);
        }
        Ok(whole)
    }

    /// Whether the reply says that it has no body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.incoming.size_hint().exact() == Some(0)
    }

    fn too_large(&self) -> HttpFault {
        let rule = format!("the reply of {} is larger than allowed", self.host);
        HttpFault::denied("response-body-too-large", rule)
    }
}
