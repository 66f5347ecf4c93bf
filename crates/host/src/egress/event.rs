//! What every decision about a child's connection leaves in the record of its call.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// One connection or request of a child, or one hop of a route. Either it went through, or
/// `refusal` says why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressEvent {
    /// `CONNECT`, or the method of the request.
    pub method: String,
    /// The host asked for; empty if there was none.
    pub host: String,
    /// The port asked for.
    pub port: Option<u16>,
    /// The address connected to; nothing if it did not come to that.
    pub address: Option<IpAddr>,
    /// The status of the reply, where we see it.
    pub status: Option<u16>,
    /// Bytes the child sent.
    pub sent_bytes: u64,
    /// Bytes the child received.
    pub bytes: u64,
    /// Milliseconds from the decision to the end.
    pub duration_ms: u64,
    /// The reason of the refusal or the fault.
    pub refusal: Option<&'static str>,
    /// The operator's list that left the host out.
    pub by: Option<String>,
    /// The route it came by.
    pub route: Option<String>,
}

/// How many decisions there were, of all children that share it.
#[derive(Debug, Default)]
pub struct EgressTally {
    allowed: AtomicU64,
    refused: AtomicU64,
}

impl EgressTally {
    /// Connections and requests that went through.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Connections and requests that were refused or failed.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, event: &EgressEvent) {
        let counter = match event.refusal {
            None => &self.allowed,
            Some(_) => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl EgressEvent {
    /// As the audit record keeps it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut event = json!({
            "kind": "egress",
            "method": self.method,
            "host": self.host,
            "port": self.port,
            "address": self.address.map(|address| address.to_string()),
            "status": self.status,
            "sentBytes": self.sent_bytes,
            "bytes": self.bytes,
            "durationMs": self.duration_ms,
            "refusal": self.refusal,
        });
        if let Some(members) = event.as_object_mut() {
            for (name, value) in [("by", &self.by), ("route", &self.route)] {
                if let Some(value) = value {
                    members.insert(name.to_owned(), value.as_str().into());
                }
            }
        }
        event
    }
}
