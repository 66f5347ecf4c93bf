//! The end of a whole request, which no single wait outlives.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use url::Host;

use crate::fetch::fault::HttpFault;

/// The end of the whole call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(whole: Duration) -> Deadline {
        Deadline(Instant::now() + whole)
    }

    /// Waits for something no longer than its own bound, nor than the whole.
    pub(crate) async fn wait<T>(
        self,
        bound: Duration,
        doing: &str,
        host: &Host<String>,
        future: impl Future<Output = T>,
    ) -> Result<T, HttpFault> {
        let end = self.0.min(Instant::now() + bound);
        let waited = timeout_at(end, future).await;
        waited.map_err(|_| HttpFault::failed("timeout", format!("timed out while {doing} {host}")))
    }
}
