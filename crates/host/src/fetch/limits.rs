//! Every bound of `fetch`, named, with its default.

use std::time::Duration;

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
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(30),
            between_bytes: Duration::from_secs(10),
            whole: Duration::from_secs(30),
            redirect_count_max: 5,
            url_bytes_max: 16 * 1024,
            request_header_count_max: 64,
            request_header_bytes_max: 32 * 1024,
            request_body_bytes_max: 10 * 1024 * 1024,
            response_header_count_max: 100,
            response_header_bytes_max: 64 * 1024,
            read_buffer_bytes: 64 * 1024,
            body_bytes_max: 10 * 1024 * 1024,
            ratio_max: 200,
            ratio_free_bytes: 1024 * 1024,
            address_count_max: 64,
            attempt_count_max: 4,
            concurrent_max: 16,
        }
    }
}
