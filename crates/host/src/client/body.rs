//! The body of a reply, piece by piece, bounded in bytes, silence and time.
//!
//! A stream of events is usually left when its answer has come, an empty body is not looked
//! at. What little is still to come of either is read in the background, so that the next
//! request needs no new connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Origin};

use crate::client::limits::{CLIENT_REST_BYTES_MAX, CLIENT_REST_MS};
use crate::client::pool::IdlePool;
use crate::fetch::connection::{Connection, broken, next_piece};
use crate::fetch::fault::HttpFault;

/// A body under way. Dropped before its end, it takes its connection with it, unless the rest
/// of it is short and comes at once.
pub struct ReplyBody {
    pub(crate) host: Host<String>,
    pub(crate) bytes_left: u64,
    pub(crate) silence: Duration,
    pub(crate) end: Instant,
    /// Nothing once the body has ended, well or not.
    pub(crate) lease: Option<Lease>,
}

/// What a reply holds until its body ends.
pub(crate) struct Lease {
    pub(crate) incoming: Incoming,
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
        let lease = self.lease.as_mut()?;
        let end = self.end.min(Instant::now() + self.silence);
        let fault = match timeout_at(end, next_piece(&mut lease.incoming)).await {
            Ok(None) => {
                if let Some(lease) = self.lease.take() {
                    lease.give_back();
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
        let announced = self.lease.as_ref();
        let announced = announced.map_or(0, |lease| lease.incoming.size_hint().lower());
        if announced > self.bytes_left {
            self.lease = None;
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
        let lease = self.lease.as_ref();
        lease.is_none_or(|lease| lease.incoming.size_hint().exact() == Some(0))
    }

    fn too_large(&self) -> HttpFault {
        let rule = format!("the reply of {} is larger than allowed", self.host);
        HttpFault::denied("response-body-too-large", rule)
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        if lease.incoming.is_end_stream() {
            return lease.give_back();
        }
        // One that carries several requests is in the pool already, and hears at once that this
        // reply is no longer wanted.
        let is_shared = lease.connection.share().is_some();
        if let (false, Ok(runtime)) = (is_shared, Handle::try_current()) {
            runtime.spawn(lease.read_rest());
        }
    }
}

impl Lease {
    /// Read to its end, so the connection is clean and may be used again.
    fn give_back(self) {
        self.pool.give(self.origin, self.connection);
    }

    /// Reads what is left, if that is little. Otherwise the connection closes.
    async fn read_rest(mut self) {
        let incoming = &mut self.incoming;
        let reading = async {
            let mut left = CLIENT_REST_BYTES_MAX;
            while let Some(piece) = next_piece(incoming).await {
                left = left.checked_sub(piece.ok()?.len())?;
            }
            Some(())
        };
        let within = Duration::from_millis(CLIENT_REST_MS);
        if let Ok(Some(())) = timeout(within, reading).await {
            self.give_back();
        }
    }
}
