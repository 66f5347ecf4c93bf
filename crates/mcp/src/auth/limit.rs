//! Every bound of authentication that is not the operator's to set, named.

use std::time::Duration;

pub use engine::claim::CLOCK_LEEWAY;
pub use engine::issuer::{ISSUER_FRESH, ISSUER_INTERVAL_MIN, ISSUER_STALE_MAX, ISSUER_WAIT_MAX};
pub use engine::limit::{CLAIM_CHARS_MAX, ISSUER_BYTES_MAX, ISSUER_KEYS_MAX, TOKEN_BYTES_MAX};

/// The time over which a bucket fills up.
pub const WINDOW: Duration = Duration::from_secs(60);
model::limits! {
    /// Requests of one network address in a minute, for each call one caller may make:
    /// several callers may come from one address.
    ADDRESS_CALLERS: u64 = 10;
    /// The least an address may ask in a minute.
    ADDRESS_REQUESTS_MIN: u64 = 600;
    /// Wrong keys from one network address in a minute.
    ADDRESS_FAILURES_MAX: u64 = 60;
    /// Network addresses, and callers, remembered at one time.
    BUCKETS_MAX: usize = 8_192;
    /// Verified tokens remembered at one time.
    VERIFIED_MAX: usize = 4_096;
    /// A session's id, in bytes.
    SESSION_ID_BYTES_MAX: usize = 256;
    /// How long a browser may cache the result of a preflight, in seconds.
    PREFLIGHT_SECONDS: u64 = 600;
    /// Headers a preflight may ask for.
    PREFLIGHT_HEADERS_MAX: usize = 64;
}
/// How often a full table is searched for entries to drop.
pub const PURGE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a verified token is remembered.
pub const VERIFIED_AGE_MAX: Duration = Duration::from_secs(30);
