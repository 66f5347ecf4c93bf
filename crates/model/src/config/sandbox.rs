//! What runs tool code and programs, as the operator sets it: the worker processes of the
//! sandbox, and how strong the jail around child processes must be.

use serde::Deserialize;

use super::Faults;
use crate::limits;
use crate::word::Word as _;

/// The worker processes, and the jail.
///
/// Defaults ([`SandboxConfig::standard`]): two workers, shared by all callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Worker processes kept ready.
    pub workers: u64,
    /// How long one is shared.
    pub sharing: WorkerSharing,
    /// The fence around child processes.
    pub jail: JailConfig,
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

/// How strong the jail around child processes must be.
///
/// Defaults: Landlock will do to start a child, and counts as weaker: the risk of its tools
/// is one level higher, and they are not contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JailConfig {
    /// The weakest jail in which a child starts.
    pub require: JailStrength,
    /// The weakest jail that counts as full containment.
    pub accept: JailStrength,
}

crate::words! {
    /// How strong a jail is. Ordered: the stronger holds all that the weaker does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum JailStrength {
        /// Landlock and a filter of system calls, as inside a default container.
        Landlock = "landlock",
        /// Also users, mounts, processes and a network of the child's own.
        Namespaces = "namespaces",
    }
}

impl SandboxConfig {
    /// What holds when the operator says nothing.
    #[must_use]
    pub fn standard() -> SandboxConfig {
        SandboxConfig {
            workers: limits::WORKERS_DEFAULT,
            sharing: WorkerSharing::Shared,
            jail: JailConfig::standard(),
        }
    }

    /// The settings as rows, for people.
    pub(super) fn rows(&self) -> [(&'static str, String); 4] {
        let quoted = super::shown::toml_text;
        [
            ("sandbox.workers", self.workers.to_string()),
            ("sandbox.sharing", quoted(self.sharing.word())),
            ("sandbox.jail.require", quoted(self.jail.require.word())),
            ("sandbox.jail.accept", quoted(self.jail.accept.word())),
        ]
    }
}

impl JailConfig {
    /// What holds when the operator says nothing.
    #[must_use]
    pub fn standard() -> JailConfig {
        JailConfig {
            require: JailStrength::Landlock,
            accept: JailStrength::Namespaces,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SandboxFile {
    workers: Option<toml::Spanned<u64>>,
    sharing: Option<toml::Spanned<String>>,
    jail: JailFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JailFile {
    require: Option<toml::Spanned<String>>,
    accept: Option<toml::Spanned<String>>,
}

impl Faults<'_> {
    /// `[sandbox]`.
    pub(super) fn sandbox(&mut self, file: SandboxFile) -> SandboxConfig {
        let mut sandbox = SandboxConfig::standard();
        self.set_word("sharing", file.sharing, &mut sandbox.sharing);
        let workers = self.read_number("workers", file.workers, 1..=limits::WORKERS_MAX);
        sandbox.workers = workers.unwrap_or(sandbox.workers);
        let jail = &mut sandbox.jail;
        self.set_word("require", file.jail.require, &mut jail.require);
        if let Some(accept) = &file.jail.accept {
            self.set_word("accept", Some(accept.clone()), &mut jail.accept);
            if jail.accept < jail.require {
                let message = "`accept` is `landlock`, and `require` lets no such jail start";
                let fix = "remove one of the two lines".to_owned();
                self.say(accept, message.to_owned(), Some(fix));
            }
        }
        sandbox
    }
}
