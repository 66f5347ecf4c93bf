//! Wall two: the layers around a worker process, put up one by one and reported.
//!
//! `enter` runs first thing in a worker, before any thread exists; `seal`
//! runs once the guest is loaded and before the first job. Between the two the
//! worker may still open files, which loading needs. Each layer is tried out
//! after it is up, as far as it can be tried without dying of it; the outcome
//! travels to the parent in the hello. Whether a missing layer matters is for
//! the pool's settings to say: nothing is decided and nothing is hidden here.

#[cfg(feature = "testing")]
pub mod attempt;
mod landlock;
/// The layers that are properties of a process, one function each.
pub mod process;
mod seccomp;
/// System calls that the library of checked ones lacks.
pub mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::landlock::kernel_abi as landlock_abi;
pub use self::process::{ProcessLayers, enter};
pub use self::seccomp::offered as seccomp_offered;

/// One layer of the walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// Wall one: the script runs as WebAssembly and gave the right answer.
    Wasm,
    /// Only listed system calls; any other kills the process.
    Seccomp,
    /// No file can be opened.
    LandlockFiles,
    /// No port can be bound or connected to.
    LandlockNetwork,
    /// No signal and no abstract socket reaches beyond the worker.
    LandlockScopes,
    /// Nothing executed could gain privileges.
    NoNewPrivileges,
    /// No capability is held, even when the parent runs as root.
    Capabilities,
    /// No core file, no file growth, no new descriptor, no new process.
    Rlimits,
    /// A session of its own: no terminal.
    Session,
    /// No environment variable was handed over.
    Environment,
    /// No descriptor but the pipe and what the guest's memory image needs.
    Descriptors,
    /// The worker dies with its parent.
    ParentDeath,
    /// No core dump and no attaching by processes of the same user.
    NotDumpable,
}

impl Layer {
    /// Every layer, in the order of a report.
    pub const ALL: [Layer; 13] = [
        Layer::Wasm,
        Layer::Seccomp,
        Layer::LandlockFiles,
        Layer::LandlockNetwork,
        Layer::LandlockScopes,
        Layer::NoNewPrivileges,
        Layer::Capabilities,
        Layer::Rlimits,
        Layer::Session,
        Layer::Environment,
        Layer::Descriptors,
        Layer::ParentDeath,
        Layer::NotDumpable,
    ];

    /// The stable name, for settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Wasm => "wasm",
            Layer::Seccomp => "seccomp",
            Layer::LandlockFiles => "landlock_files",
            Layer::LandlockNetwork => "landlock_network",
            Layer::LandlockScopes => "landlock_scopes",
            Layer::NoNewPrivileges => "no_new_privs",
            Layer::Capabilities => "capabilities",
            Layer::Rlimits => "rlimits",
            Layer::Session => "session",
            Layer::Environment => "environment",
            Layer::Descriptors => "descriptors",
            Layer::ParentDeath => "parent_death",
            Layer::NotDumpable => "not_dumpable",
        }
    }

    /// The layer of a stable name.
    pub fn from_name(name: &str) -> Option<Layer> {
        Layer::ALL.into_iter().find(|layer| layer.name() == name)
    }

    /// The layer on the wire.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The layer from the wire.
    pub(crate) fn from_number(number: u8) -> Option<Layer> {
        Layer::ALL
            .into_iter()
            .find(|layer| layer.number() == number)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a layer is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerStatus {
    /// Up, and tried out where that is possible.
    Up,
    /// Not up, and why.
    Missing(String),
}

/// Which layers are up. A layer not listed is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walls {
    /// The kernel's version of Landlock; 0 where there is none.
    pub landlock_abi: u8,
    /// Each layer that was tried.
    pub layers: BTreeMap<Layer, LayerStatus>,
}

impl Walls {
    /// Whether `layer` is up.
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.get(&layer) == Some(&LayerStatus::Up)
    }

    /// The layers of `required` that are not up, each with its reason.
    pub fn missing(&self, required: &BTreeSet<Layer>) -> Vec<(Layer, String)> {
        required
            .iter()
            .filter_map(|layer| match self.layers.get(layer) {
                Some(LayerStatus::Up) => None,
                Some(LayerStatus::Missing(reason)) => Some((*layer, reason.clone())),
                // Fails closed: a layer that the worker did not mention counts as missing.
                None => Some((*layer, "not reported".to_owned())),
            })
            .collect()
    }

    pub(crate) fn set(&mut self, layer: Layer, outcome: Result<(), String>) {
        let standing = match outcome {
            Ok(()) => LayerStatus::Up,
            Err(reason) => LayerStatus::Missing(reason),
        };
        self.layers.insert(layer, standing);
    }
}

/// The layers a worker must have unless an operator says otherwise.
///
/// All of them, but for the parts of Landlock that a kernel with an older
/// Landlock does not know. A kernel without any Landlock is not
/// excused: there the operator has to lower the requirement by name.
pub fn expected() -> BTreeSet<Layer> {
    let abi = landlock::kernel_abi();
    Layer::ALL
        .into_iter()
        .filter(|layer| match layer {
            Layer::LandlockNetwork => abi >= landlock::NETWORK_ABI,
            Layer::LandlockScopes => abi >= landlock::SCOPES_ABI,
            Layer::Wasm
            | Layer::Seccomp
            | Layer::LandlockFiles
            | Layer::NoNewPrivileges
            | Layer::Capabilities
            | Layer::Rlimits
            | Layer::Session
            | Layer::Environment
            | Layer::Descriptors
            | Layer::ParentDeath
            | Layer::NotDumpable => true,
        })
        .collect()
}

/// Which layers this machine offers, asked of the kernel without a worker.
///
/// A pool is more exact, because its workers have tried: see `Pool::walls`. This is for
/// a report when no pool could be started.
pub fn walls() -> Walls {
    let abi = landlock::kernel_abi();
    let mut walls = Walls {
        landlock_abi: abi,
        ..Walls::default()
    };
    let since = |first: u8| {
        if abi >= first {
            Ok(())
        } else if abi == 0 {
            Err("the kernel has no landlock, or it is not enabled".to_owned())
        } else {
            Err(format!(
                "needs landlock version {first}, the kernel has {abi}"
            ))
        }
    };
    for layer in Layer::ALL {
        let offered = match layer {
            Layer::Seccomp => seccomp::offered(),
            Layer::LandlockFiles => since(1),
            Layer::LandlockNetwork => since(landlock::NETWORK_ABI),
            Layer::LandlockScopes => since(landlock::SCOPES_ABI),
            Layer::Wasm
            | Layer::NoNewPrivileges
            | Layer::Capabilities
            | Layer::Rlimits
            | Layer::Session
            | Layer::Environment
            | Layer::Descriptors
            | Layer::ParentDeath
            | Layer::NotDumpable => Ok(()),
        };
        walls.set(layer, offered);
    }
    walls
}

/// Closes all access that loading needed, in the one order that works.
///
/// `start_threads` starts what the guest needs beside this thread. It runs after
/// Landlock, which binds only the calling thread and those it starts later, and
/// before seccomp, which binds all threads there are and forbids new ones.
pub fn seal(entered: ProcessLayers, start_threads: impl FnOnce()) -> Walls {
    let mut walls = entered.walls;
    // The two ends of nothing go too, so that the limit of one descriptor
    // leaves no free number.
    process::close_standard_streams();
    // Reading the list of descriptors needs an open file system and a dumpable process.
    walls.set(Layer::Descriptors, process::only_known_descriptors());
    let alone = process::only_thread();
    landlock::deny_all(&mut walls, alone);
    start_threads();
    // After the thread: with a limit of nought processes none could be started.
    walls.set(Layer::Rlimits, process::set_rlimits());
    // After the descriptors were listed, because this closes `/proc/self` to us.
    walls.set(Layer::NotDumpable, process::forbid_dumping());
    // Last, because all of the above are system calls that the list refuses.
    walls.set(Layer::Seccomp, seccomp::allow_listed());
    walls
}
