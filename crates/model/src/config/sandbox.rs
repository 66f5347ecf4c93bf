//! What the operator set about the worker processes.

use serde::Deserialize;

use super::Faults;
use crate::limits;

/// The worker processes.
///
/// Defaults: two workers, shared by all callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Worker processes kept ready.
    pub workers: u64,
    /// How long one is shared.
    pub sharing: WorkerSharing,
}

crate::words! {
    /// How long a worker process is shared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WorkerSharing {
        /// By all calls.
        Shared = "shared",
        /// By the calls of one caller.
        PerCaller = "per-caller",
        /// Not at all.
        PerCall = "per-call",
    }
}

impl SandboxConfig {
    pub(super) fn standard() -> SandboxConfig {
        SandboxConfig {
            workers: limits::WORKERS_DEFAULT,
            sharing: WorkerSharing::Shared,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SandboxFile {
    workers: Option<toml::Spanned<u64>>,
    sharing: Option<toml::Spanned<String>>,
}

impl Faults<'_> {
    pub(super) fn sandbox(&mut self, file: SandboxFile) -> SandboxConfig {
        let mut sandbox = SandboxConfig::standard();
        self.set_word("sharing", file.sharing, &mut sandbox.sharing);
        let workers = self.read_number("workers", file.workers, 1..=limits::WORKERS_MAX);
        sandbox.workers = workers.unwrap_or(sandbox.workers);
        sandbox
    }
}
