//! From a policy to the bounds of a run.

use model::policy::EffectivePolicy;

use crate::job::JobLimits;

model::limits! {
    // The reference counts statements; we count backward jumps, calls and steps of the
    // regular expression engine, which every loop and every recursion must make. A
    // statement is at most a few of them. With a hundred, the default of 500 000 statements
    // is 50 million units: seconds of computing, far beyond what an ordinary tool needs,
    // and the same verdict on every machine.
    /// Units of work for one statement of the specification.
    WORK_PER_STATEMENT: u64 = 100;
    /// Milliseconds of processor time of one run, unless its policy says otherwise.
    CPU_MS_DEFAULT: u32 = 30_000;
    /// Milliseconds of one run, unless its policy says otherwise.
    WALL_MS_DEFAULT: u32 = 30_000;
    /// Bytes of memory of one run.
    MEMORY_BYTES_MAX: u32 = 64 << 20;
    /// Bytes of a result.
    RESULT_BYTES_MAX: u32 = 8 << 20;
    /// Nesting of a result.
    RESULT_DEPTH_MAX: u32 = 64;
    /// Lines of the console.
    CONSOLE_LINES_MAX: u32 = 1_000;
    /// Bytes of the console.
    CONSOLE_BYTES_MAX: u32 = 256 << 10;
    /// Calls of one run to the host.
    HOST_CALLS_MAX: u32 = 10_000;
    /// Of these, calls that wait for an answer at one time.
    HOST_OUTSTANDING_MAX: u32 = 64;
    /// Bytes of one call to the host, and of its answer.
    PAYLOAD_BYTES_MAX: u32 = 16 << 20;
}

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

    /// The default bounds of a call.
    pub fn standard() -> JobLimits {
        JobLimits {
            work_max: model::limits::STATEMENTS_DEFAULT * WORK_PER_STATEMENT,
            cpu_ms_max: CPU_MS_DEFAULT,
            wall_ms_max: WALL_MS_DEFAULT,
            memory_bytes_max: MEMORY_BYTES_MAX,
            result_bytes_max: RESULT_BYTES_MAX,
            result_depth_max: RESULT_DEPTH_MAX,
            console_lines_max: CONSOLE_LINES_MAX,
            console_bytes_max: CONSOLE_BYTES_MAX,
            host_calls_max: HOST_CALLS_MAX,
            host_outstanding_max: HOST_OUTSTANDING_MAX,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }
}
