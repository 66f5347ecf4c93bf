//! What a preset means: the limits of a script, all in one table.

use guard::sanitise;
use model::config::ScriptPreset;
use sandbox::job::JobLimits;
use sandbox::pool::RESULT_DEPTH_MAX;

/// The limits of one script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptLimits {
    /// How strict the guard is.
    pub(crate) level: guard::PresetLevel,
    /// Milliseconds of the script itself, on the processor and on the wall.
    pub(crate) script_ms_max: u32,
    /// Milliseconds of the tools it calls, those at one time counted once.
    pub(crate) tools_ms_max: u32,
    /// Turns of all loops together.
    pub(crate) iterations_max: u64,
    /// Tools it calls.
    pub(crate) tool_calls_max: u32,
    /// Bytes of all it logs.
    pub(crate) console_bytes_max: u32,
    /// Lines it logs.
    pub(crate) console_lines_max: u32,
    /// Bytes of its memory.
    pub(crate) memory_bytes_max: u32,
    /// Units of work, as the sandbox counts them.
    pub(crate) work_max: u64,
    depth_max: usize,
    properties_max: usize,
}

impl ScriptLimits {
    pub(crate) fn of(preset: ScriptPreset) -> ScriptLimits {
        match preset {
            ScriptPreset::LockedDown => ScriptLimits {
                level: guard::PresetLevel::Strict,
                script_ms_max: 2_000,
                tools_ms_max: 30_000,
                iterations_max: 2_000,
                tool_calls_max: 10,
                console_bytes_max: 32 << 10,
                console_lines_max: 50,
                memory_bytes_max: 16 << 20,
                work_max: 10_000_000,
                depth_max: 5,
                properties_max: 500,
            },
            ScriptPreset::Secure => ScriptLimits {
                level: guard::PresetLevel::Secure,
                script_ms_max: 3_500,
                tools_ms_max: 60_000,
                iterations_max: 5_000,
                tool_calls_max: 100,
                console_bytes_max: 64 << 10,
                console_lines_max: 100,
                memory_bytes_max: 32 << 20,
                work_max: 25_000_000,
                depth_max: 10,
                properties_max: 1_000,
            },
            ScriptPreset::Balanced => ScriptLimits {
                level: guard::PresetLevel::Standard,
                script_ms_max: 5_000,
                tools_ms_max: 120_000,
                iterations_max: 10_000,
                tool_calls_max: 200,
                console_bytes_max: 256 << 10,
                console_lines_max: 500,
                memory_bytes_max: 64 << 20,
                work_max: 50_000_000,
                depth_max: 15,
                properties_max: 5_000,
            },
            ScriptPreset::Experimental => ScriptLimits {
                level: guard::PresetLevel::Permissive,
                script_ms_max: 10_000,
                tools_ms_max: 300_000,
                iterations_max: 20_000,
                tool_calls_max: 500,
                console_bytes_max: 1 << 20,
                console_lines_max: 1_000,
                memory_bytes_max: 64 << 20,
                work_max: 100_000_000,
                depth_max: 20,
                properties_max: 10_000,
            },
        }
    }

    /// The bounds of the run. On the wall it may take as long as script, tools and
    /// people together; the clock of the script knows them apart.
    pub(crate) fn sandbox(&self, people_ms_max: u64) -> JobLimits {
        let standard = JobLimits::standard();
        let people_ms_max = u32::try_from(people_ms_max).unwrap_or(u32::MAX);
        JobLimits {
            work_max: self.work_max,
            cpu_ms_max: self.script_ms_max,
            wall_ms_max: self
                .script_ms_max
                .saturating_add(self.tools_ms_max)
                .saturating_add(people_ms_max),
            memory_bytes_max: self.memory_bytes_max,
            // What is deeper than the preset wants is cut, not refused.
            result_depth_max: RESULT_DEPTH_MAX,
            console_lines_max: self.console_lines_max,
            console_bytes_max: self.console_bytes_max,
            // Everything a script calls without an answer, notices included.
            host_outstanding_max: self.tool_calls_max + standard.host_outstanding_max,
            ..standard
        }
    }

    pub(crate) fn sanitise(&self) -> sanitise::Limits {
        sanitise::Limits {
            depth_max: self.depth_max,
            properties_max: self.properties_max,
            ..sanitise::Limits::default()
        }
    }
}
