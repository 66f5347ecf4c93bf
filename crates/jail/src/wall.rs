//! The layers of the fence, each up or missing with its reason.
//!
//! The launcher puts them up and tries them out before it becomes the child.
//! Whether a missing one matters is for the settings to say.

use std::fmt;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// The first version of Landlock that can deny truncating a file.
pub(crate) const FILES_ABI: u8 = 3;

/// The first version of Landlock that knows of signals and abstract sockets.
pub(crate) const SIGNALS_ABI: u8 = 6;

/// One layer of the fence around a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum JailLayer {
    /// Users, mounts, processes, network, queues, host name and control groups of its own,
    /// and a root folder with nothing in it but what is given.
    Namespaces,
    /// A user of its own, never root.
    Identity,
    /// Only the given files and folders.
    Files,
    /// No signal and no abstract socket reaches beyond the child.
    Signals,
    /// No socket, where no network was declared.
    Network,
    /// No system call that looks into other processes or changes the system.
    SystemCalls,
    /// Nothing executed gains privileges.
    NoNewPrivileges,
    /// No capability, even when the parent runs as root.
    Capabilities,
    /// Bounds of memory, files and processor time.
    Rlimits,
    /// A session of its own: no terminal.
    Session,
    /// No descriptor but the three standard streams.
    Descriptors,
    /// The child dies with its supervisor.
    ParentDeath,
    /// The memory and the processes of the whole child bounded by the kernel.
    ControlGroup,
    /// Facts about its own processes and the machine.
    Facts,
}

impl JailLayer {
    /// Every layer, in the order of a report.
    pub const ALL: [JailLayer; 14] = [
        JailLayer::Namespaces,
        JailLayer::Identity,
        JailLayer::Files,
        JailLayer::Signals,
        JailLayer::Network,
        JailLayer::SystemCalls,
        JailLayer::NoNewPrivileges,
        JailLayer::Capabilities,
        JailLayer::Rlimits,
        JailLayer::Session,
        JailLayer::Descriptors,
        JailLayer::ParentDeath,
        JailLayer::ControlGroup,
        JailLayer::Facts,
    ];

    /// The stable name, for settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            JailLayer::Namespaces => "namespaces",
            JailLayer::Identity => "identity",
            JailLayer::Files => "files",
            JailLayer::Signals => "signals",
            JailLayer::Network => "network",
            JailLayer::SystemCalls => "system_calls",
            JailLayer::NoNewPrivileges => "no_new_privs",
            JailLayer::Capabilities => "capabilities",
            JailLayer::Rlimits => "rlimits",
            JailLayer::Session => "session",
            JailLayer::Descriptors => "descriptors",
            JailLayer::ParentDeath => "parent_death",
            JailLayer::ControlGroup => "control_group",
            JailLayer::Facts => "facts",
        }
    }

    /// Whether a child starts without it: a rung is chosen by the settings, and of the
    /// others something weaker remains, which is said.
    pub fn is_optional(self) -> bool {
        match self {
            JailLayer::Namespaces | JailLayer::ControlGroup | JailLayer::Facts => true,
            JailLayer::Identity
            | JailLayer::Files
            | JailLayer::Signals
            | JailLayer::Network
            | JailLayer::SystemCalls
            | JailLayer::NoNewPrivileges
            | JailLayer::Capabilities
            | JailLayer::Rlimits
            | JailLayer::Session
            | JailLayer::Descriptors
            | JailLayer::ParentDeath => false,
        }
    }
}

impl fmt::Display for JailLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One layer, and why it is missing if it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// Which layer.
    pub layer: JailLayer,
    /// `None` if it is up and was tried out; else why it is not.
    pub missing: Option<String>,
}

impl Wall {
    pub(crate) fn new(layer: JailLayer, outcome: Result<(), String>) -> Wall {
        Wall {
            layer,
            missing: outcome.err(),
        }
    }

    /// Whether the layer is up.
    pub fn is_up(&self) -> bool {
        self.missing.is_none()
    }
}

/// The sentence of a refusal, if a layer is missing.
pub(crate) fn refusal(walls: &[Wall]) -> Option<String> {
    let missing: Vec<String> = walls
        .iter()
        .filter(|wall| !wall.layer.is_optional())
        .filter_map(|wall| Some(format!("{} ({})", wall.layer, wall.missing.as_ref()?)))
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "missing around the program: {}; it does not start without, unless its settings accept that",
            missing.join(", ")
        )
    })
}

/// Why the kernel makes no namespaces, as far as it can be known.
pub(crate) fn namespaces_refusal(error: &io::Error) -> String {
    let says =
        |file: &str, word: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == word);
    if says("/proc/sys/user/max_user_namespaces", "0") {
        return "the sysctl `user.max_user_namespaces` is 0".to_owned();
    }
    if says("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "the sysctl `kernel.unprivileged_userns_clone` is 0".to_owned();
    }
    if says(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        return format!("AppArmor restricts user namespaces: {error}");
    }
    format!("user namespaces are refused, as in a default container: {error}")
}

pub(crate) fn landlock_since(first: u8, abi: u8) -> Result<(), String> {
    match abi {
        0 => Err("the kernel has no landlock, or it is not enabled".to_owned()),
        abi if abi < first => Err(format!(
            "needs landlock version {first}, the kernel has {abi}"
        )),
        _ => Ok(()),
    }
}
