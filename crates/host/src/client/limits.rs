//! Every bound of the client, named, with its default.

use std::time::Duration;

use crate::fetch::connection::ConnectionLimits;

model::limits! {
    /// Milliseconds of one name lookup.
    CLIENT_RESOLVE_MS: u64 = 5_000;
    /// Milliseconds of all attempts to connect for one hop, TLS included.
    CLIENT_CONNECT_MS: u64 = 10_000;
    /// Milliseconds from the request sent to the status line, unless the request says otherwise.
    CLIENT_FIRST_BYTE_MS: u64 = 30_000;
    /// Milliseconds of a body that is read whole.
    CLIENT_BODY_MS: u64 = 30_000;
    /// Milliseconds a stream may be silent.
    CLIENT_STREAM_SILENCE_MS: u64 = 600_000;
    /// Milliseconds of a whole stream.
    CLIENT_STREAM_MS: u64 = 6 * 3_600_000;
    /// Bytes of one reply, streamed or read whole.
    CLIENT_REPLY_BYTES_MAX: u64 = 64 * 1024 * 1024;
    /// Redirects followed, all to the same origin.
    CLIENT_REDIRECTS_MAX: usize = 3;
    /// Bytes of the URL.
    CLIENT_URL_BYTES_MAX: usize = 16 * 1024;
    /// Bytes of the request body.
    CLIENT_REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
    /// Response headers.
    CLIENT_RESPONSE_HEADERS_MAX: usize = 100;
    /// Bytes of the status line and the response headers.
    CLIENT_RESPONSE_HEADER_BYTES_MAX: usize = 64 * 1024;
    /// Bytes read from a connection at once.
    CLIENT_READ_BUFFER_BYTES: usize = 64 * 1024;
    /// Addresses looked at in one DNS answer; a longer answer is refused.
    CLIENT_ADDRESSES_MAX: usize = 64;
    /// Addresses tried for one hop.
    CLIENT_ATTEMPTS_MAX: usize = 4;
    /// Requests of one client at the same time, open streams included; more wait.
    CLIENT_AT_ONCE_MAX: usize = 128;
    /// Bytes of a reply that nothing waits for any more which are read to keep its connection.
    CLIENT_REST_BYTES_MAX: usize = 16 * 1024;
    /// Milliseconds of that.
    CLIENT_REST_MS: u64 = 200;
    /// Unused connections of one client.
    CLIENT_IDLE_MAX: usize = 16;
    /// Milliseconds an unused connection is kept.
    CLIENT_IDLE_MS: u64 = 20_000;
}

/// How long and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// One name lookup: 5 s.
    pub resolve: Duration,
    /// All attempts to connect for one hop, TLS included: 10 s.
    pub connect: Duration,
    /// From the request sent to the status line: 30 s.
    pub first_byte: Duration,
    /// A body that is read whole: 30 s.
    pub body: Duration,
    /// Silence of a stream: 10 minutes.
    pub stream_silence: Duration,
    /// A whole stream: 6 hours.
    pub stream: Duration,
    /// One reply, streamed or read whole, in bytes: 64 MiB.
    pub reply_bytes_max: u64,
    /// Redirects followed, all to the same origin: 3.
    pub redirect_count_max: usize,
    /// Requests at the same time, open streams included; more wait: 128.
    pub concurrent_max: usize,
    /// Unused connections: 16.
    pub idle_count_max: usize,
    /// How long an unused connection is kept: 20 s.
    pub idle: Duration,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        ClientLimits {
            resolve: Duration::from_millis(CLIENT_RESOLVE_MS),
            connect: Duration::from_millis(CLIENT_CONNECT_MS),
            first_byte: Duration::from_millis(CLIENT_FIRST_BYTE_MS),
            body: Duration::from_millis(CLIENT_BODY_MS),
            stream_silence: Duration::from_millis(CLIENT_STREAM_SILENCE_MS),
            stream: Duration::from_millis(CLIENT_STREAM_MS),
            reply_bytes_max: CLIENT_REPLY_BYTES_MAX,
            redirect_count_max: CLIENT_REDIRECTS_MAX,
            concurrent_max: CLIENT_AT_ONCE_MAX,
            idle_count_max: CLIENT_IDLE_MAX,
            idle: Duration::from_millis(CLIENT_IDLE_MS),
        }
    }
}

impl ClientLimits {
    pub(crate) fn connection(&self) -> ConnectionLimits {
        ConnectionLimits {
            connect: self.connect,
            attempt_count_max: CLIENT_ATTEMPTS_MAX,
            header_count_max: CLIENT_RESPONSE_HEADERS_MAX,
            header_bytes_max: CLIENT_RESPONSE_HEADER_BYTES_MAX,
            read_buffer_bytes: CLIENT_READ_BUFFER_BYTES,
        }
    }
}
