//! From a policy to the bounds of a run.

use model::policy::EffectivePolicy;

use crate::job::JobLimits;

/// Units of work for one statement of the specification.
///
/// The reference counts statements; we count backward jumps, calls and steps of
/// the regular expression engine, which every loop and every recursion must make.
/// A statement is at most a few of them. With a hundred, the default of 500 000
/// statements is 50 million units: seconds of computing, far beyond what an
/// ordinary tool needs, and the same verdict on every machine.
pub const WORK_PER_STATEMENT: u64 = 100;

impl JobLimits {
    /// The bounds of a call under a policy.
    pub fn for_policy(policy: &EffectivePolicy) -> JobLimits {
        let time_ms = u32::try_from(policy.timeout_ms).unwrap_or(u32::MAX);
        JobLimits {
            work_max: policy.statements_max.saturating_mul(WORK_PER_STATEMENT),
            cpu_ms_max: time_ms,
            wall_ms_max: time_ms,
            ..JobLimits::standard()
        }
    }

    /// The bounds of a call when nobody says otherwise.
    pub fn standard() -> JobLimits {
        JobLimits {
            work_max: model::limits::STATEMENTS_DEFAULT * WORK_PER_STATEMENT,
            cpu_ms_max: 30_000,
            wall_ms_max: 30_000,
            memory_bytes_max: 64 << 20,
            result_bytes_max: 8 << 20,
            result_depth_max: 64,
            console_lines_max: 1_000,
            console_bytes_max: 256 << 10,
            host_calls_max: 10_000,
            host_outstanding_max: 64,
            payload_bytes_max: 16 << 20,
        }
    }
}
