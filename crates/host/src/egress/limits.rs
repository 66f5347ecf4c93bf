//! Every bound of a child's network, named, with its default.

use std::time::Duration;

use crate::fetch::connection::ConnectionLimits;
use crate::fetch::limits::{
    FETCH_ADDRESSES_MAX, FETCH_ATTEMPTS_MAX, FETCH_CONNECT_MS, FETCH_READ_BUFFER_BYTES,
    FETCH_RESOLVE_MS, FETCH_RESPONSE_HEADER_BYTES_MAX, FETCH_RESPONSE_HEADERS_MAX,
};

model::limits! {
    /// Connections of one child at the same time; more are closed at once.
    EGRESS_AT_ONCE_MAX: u32 = 64;
    /// Connections of one child in its whole life.
    EGRESS_CONNECTIONS_MAX: u64 = 10_000;
    /// Bytes that one child sends and receives, all connections together.
    EGRESS_BYTES_MAX: u64 = 1 << 30;
    /// Milliseconds for the head of a request, also from one request to the next.
    EGRESS_HEAD_MS: u64 = 15_000;
    /// Milliseconds from a request sent to the status line.
    EGRESS_FIRST_BYTE_MS: u64 = 120_000;
    /// Milliseconds without a byte either way.
    EGRESS_SILENCE_MS: u64 = 120_000;
    /// Milliseconds of one connection.
    EGRESS_CONNECTION_MS: u64 = 3_600_000;
    /// Headers of a request.
    EGRESS_HEADERS_MAX: usize = 100;
    /// Bytes of the head of a request.
    EGRESS_HEAD_BYTES_MAX: usize = 64 << 10;
    /// Decisions that are kept for the record of a call; of more, only the number.
    EGRESS_EVENTS_MAX: usize = 1_000;
    /// Milliseconds to wait for connections that were told to end.
    EGRESS_END_MS: u64 = 2_000;
}

/// How long and how much, for one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressLimits {
    /// Connections at the same time; more are closed at once: 64.
    pub concurrent_max: u32,
    /// Connections in its whole life: 10 000.
    pub connection_count_max: u64,
    /// Bytes both ways, all connections together: 1 GiB.
    pub bytes_max: u64,
    /// The head of a request, also from one request to the next: 15 s.
    pub head: Duration,
    /// One name lookup: 5 s.
    pub resolve: Duration,
    /// All attempts to connect, TLS included: 5 s.
    pub connect: Duration,
    /// From a request sent to the status line: 120 s.
    pub first_byte: Duration,
    /// Without a byte either way: 120 s.
    pub silence: Duration,
    /// One connection: one hour.
    pub connection: Duration,
}

impl Default for EgressLimits {
    fn default() -> EgressLimits {
        EgressLimits {
            concurrent_max: EGRESS_AT_ONCE_MAX,
            connection_count_max: EGRESS_CONNECTIONS_MAX,
            bytes_max: EGRESS_BYTES_MAX,
            head: Duration::from_millis(EGRESS_HEAD_MS),
            resolve: Duration::from_millis(FETCH_RESOLVE_MS),
            connect: Duration::from_millis(FETCH_CONNECT_MS),
            first_byte: Duration::from_millis(EGRESS_FIRST_BYTE_MS),
            silence: Duration::from_millis(EGRESS_SILENCE_MS),
            connection: Duration::from_millis(EGRESS_CONNECTION_MS),
        }
    }
}

impl EgressLimits {
    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            connect: self.connect,
            attempt_count_max: FETCH_ATTEMPTS_MAX,
            header_count_max: FETCH_RESPONSE_HEADERS_MAX,
            header_bytes_max: FETCH_RESPONSE_HEADER_BYTES_MAX,
            read_buffer_bytes: FETCH_READ_BUFFER_BYTES,
        }
    }

    pub(crate) fn address_count_max(&self) -> usize {
        FETCH_ADDRESSES_MAX
    }
}
