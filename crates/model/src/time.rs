//! Lengths of time. What time it is comes in as an argument.

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;
