//! What every request leaves in the record of its call.

use std::net::IpAddr;

use serde_json::{Value, json};

/// One request, one hop of a chain of redirects. Either it ended with a status,
/// or `refusal` says why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchEvent {
    /// The method of this hop.
    pub method: String,
    /// The host asked for, as an ASCII name or an address; empty if there was none.
    pub host: String,
    /// The port asked for; nothing if the address could not be read.
    pub port: Option<u16>,
    /// The address connected to; nothing if it did not come to that.
    pub address: Option<IpAddr>,
    /// The status of the reply.
    pub status: Option<u16>,
    /// Bytes of the body sent.
    pub sent_bytes: u64,
    /// Bytes of the body received, as they came over the wire.
    pub bytes: u64,
    /// Milliseconds from the decision to the end.
    pub duration_ms: u64,
    /// The reason of the fault this hop ended in.
    pub refusal: Option<&'static str>,
    /// The operator's list that left the host out.
    pub by: Option<String>,
}

impl FetchEvent {
    /// As the audit record keeps it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut event = json!({
            "kind": "fetch",
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
        if let (Some(by), Some(members)) = (&self.by, event.as_object_mut()) {
            members.insert("by".to_owned(), by.as_str().into());
        }
        event
    }
}
