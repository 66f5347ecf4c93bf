//! Every bound of `fetch`, named, with its default.

use std::time::Duration;

use crate::fetch::connection::ConnectionLimits;

model::limits! {
    /// Milliseconds of one name lookup.
    FETCH_RESOLVE_MS: u64 = 5_000;
    /// Milliseconds of all attempts to connect for one hop, TLS included.
    FETCH_CONNECT_MS: u64 = 5_000;
    /// Milliseconds from the request sent to the status line.
    FETCH_FIRST_BYTE_MS: u64 = 30_000;
    /// Milliseconds between two pieces of a body.
    FETCH_BETWEEN_BYTES_MS: u64 = 10_000;
    /// Milliseconds of the whole `fetch`, redirects and all.
    FETCH_WHOLE_MS: u64 = 30_000;
    /// Redirects followed.
    FETCH_REDIRECTS_MAX: usize = 5;
    /// Bytes of the URL.
    FETCH_URL_BYTES_MAX: usize = 16 * 1024;
    /// Request headers.
    FETCH_REQUEST_HEADERS_MAX: usize = 64;
    /// Bytes of the names and values of request headers.
    FETCH_REQUEST_HEADER_BYTES_MAX: usize = 32 * 1024;
    /// Bytes of the request body.
    FETCH_REQUEST_BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
    /// Response headers; as many hyper parses without allocating.
    FETCH_RESPONSE_HEADERS_MAX: usize = 100;
    /// Bytes of the status line and the response headers.
    FETCH_RESPONSE_HEADER_BYTES_MAX: usize = 64 * 1024;
    /// Bytes read from a connection at once. With four times as many a body of 1 MB took four
    /// times as long, most of it page faults.
    FETCH_READ_BUFFER_BYTES: usize = 64 * 1024;
    /// Bytes of the response body, as sent and as decoded.
    FETCH_BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
    /// Decoded bytes for each byte sent.
    FETCH_RATIO_MAX: usize = 200;
    /// Decoded bytes for which the ratio does not count.
    FETCH_RATIO_FREE_BYTES: usize = 1024 * 1024;
    /// Addresses looked at in one DNS answer; a longer answer is refused.
    FETCH_ADDRESSES_MAX: usize = 64;
    /// Addresses tried for one hop.
    FETCH_ATTEMPTS_MAX: usize = 4;
    /// Requests of one call at the same time; more wait.
    FETCH_AT_ONCE_MAX: usize = 16;
}

/// How long and how much. [`FetchLimits::default`] is what the specification
/// says where it says something, and what ordinary tools stay far below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// One name lookup: 5 s.
    pub resolve: Duration,
    /// All attempts to connect for one hop, TLS included: 5 s.
    pub connect: Duration,
    /// From the request sent to the status line: 30 s.
    pub first_byte: Duration,
    /// Between two pieces of a body: 10 s.
    pub between_bytes: Duration,
    /// The whole call, redirects and all: 30 s.
    pub whole: Duration,
    /// Redirects followed: 5.
    pub redirect_count_max: usize,
    /// The URL, in bytes: 16 KiB.
    pub url_bytes_max: usize,
    /// Request headers: 64.
    pub request_header_count_max: usize,
    /// Names and values of request headers, in bytes: 32 KiB.
    pub request_header_bytes_max: usize,
    /// The request body, in bytes: 10 MiB.
    pub request_body_bytes_max: usize,
    /// Response headers: 100, which hyper parses without allocating.
    pub response_header_count_max: usize,
    /// Status line and response headers, in bytes: 64 KiB.
    pub response_header_bytes_max: usize,
    /// What is read from a connection at once, in bytes: 64 KiB. With 256 KiB a
    /// body of 1 MB took four times as long, most of it page faults.
    pub read_buffer_bytes: usize,
    /// The response body, in bytes, as sent and as decoded: 10 MiB.
    pub body_bytes_max: usize,
    /// Decoded bytes for each byte sent: 200.
    pub ratio_max: usize,
    /// Decoded bytes for which the ratio does not count: 1 MiB.
    pub ratio_free_bytes: usize,
    /// Addresses looked at in one DNS answer; a longer answer is refused: 64.
    pub address_count_max: usize,
    /// Addresses tried for one hop: 4.
    pub attempt_count_max: usize,
    /// Requests of one handle at the same time; more wait: 16.
    pub concurrent_max: usize,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            resolve: Duration::from_millis(FETCH_RESOLVE_MS),
            connect: Duration::from_millis(FETCH_CONNECT_MS),
            first_byte: Duration::from_millis(FETCH_FIRST_BYTE_MS),
            between_bytes: Duration::from_millis(FETCH_BETWEEN_BYTES_MS),
            whole: Duration::from_millis(FETCH_WHOLE_MS),
            redirect_count_max: FETCH_REDIRECTS_MAX,
            url_bytes_max: FETCH_URL_BYTES_MAX,
            request_header_count_max: FETCH_REQUEST_HEADERS_MAX,
            request_header_bytes_max: FETCH_REQUEST_HEADER_BYTES_MAX,
            request_body_bytes_max: FETCH_REQUEST_BODY_BYTES_MAX,
            response_header_count_max: FETCH_RESPONSE_HEADERS_MAX,
            response_header_bytes_max: FETCH_RESPONSE_HEADER_BYTES_MAX,
            read_buffer_bytes: FETCH_READ_BUFFER_BYTES,
            body_bytes_max: FETCH_BODY_BYTES_MAX,
            ratio_max: FETCH_RATIO_MAX,
            ratio_free_bytes: FETCH_RATIO_FREE_BYTES,
            address_count_max: FETCH_ADDRESSES_MAX,
            attempt_count_max: FETCH_ATTEMPTS_MAX,
            concurrent_max: FETCH_AT_ONCE_MAX,
        }
    }
}

impl FetchLimits {
    pub(crate) fn connection(&self) -> ConnectionLimits {
        ConnectionLimits {
            connect: self.connect,
            attempt_count_max: self.attempt_count_max,
            header_count_max: self.response_header_count_max,
            header_bytes_max: self.response_header_bytes_max,
            read_buffer_bytes: self.read_buffer_bytes,
        }
    }
}
