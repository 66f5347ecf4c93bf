//! Every bound of authentication that is not the operator's to set, named.

use std::time::Duration;

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
    /// A token, in bytes.
    TOKEN_BYTES_MAX: usize = 8 * 1024;
    /// A key's name in a token, in bytes.
    KEY_NAME_BYTES_MAX: usize = 256;
    /// A caller's name in a token, in characters.
    CLAIM_CHARS_MAX: usize = 128;
    /// Documents of an issuer, in bytes.
    ISSUER_BYTES_MAX: usize = 256 * 1024;
    /// Keys of an issuer.
    ISSUER_KEYS_MAX: usize = 64;
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

/// How far two clocks may differ.
pub const CLOCK_LEEWAY: Duration = Duration::from_secs(30);
/// How long an issuer may take for one document.
pub const ISSUER_WAIT_MAX: Duration = Duration::from_secs(5);
/// How soon an issuer is asked again, whatever keys tokens name.
pub const ISSUER_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// How old keys of an issuer are when they are asked for again.
pub const ISSUER_FRESH: Duration = Duration::from_secs(600);
/// How old they may become while the issuer does not answer.
pub const ISSUER_STALE_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long a verified token is remembered.
pub const VERIFIED_AGE_MAX: Duration = Duration::from_secs(30);
