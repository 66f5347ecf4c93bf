//! What an operator can do about a layer of the jail that is missing.

use jail::JailLayer;

/// Why namespaces are refused is in the reason; each cause has its own remedy.
const NAMESPACES_FIX: &str = "on Ubuntu: an AppArmor profile with `userns,` for the program; in Docker: \
     `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or stay on the lower rung; \
     elsewhere: `sysctl user.max_user_namespaces=10000`";

/// What to do when a layer around child processes is missing.
#[must_use]
pub fn child_fix(layer: JailLayer) -> &'static str {
    match layer {
        JailLayer::Namespaces => NAMESPACES_FIX,
        JailLayer::Identity => {
            "run Ringfence as an ordinary user, or give root CAP_SETUID, CAP_SETGID and CAP_KILL"
        }
        JailLayer::ControlGroup => {
            "in the unit: `Delegate=yes` and `DelegateSubgroup=server`; until then memory is bounded for each process"
        }
        JailLayer::Facts => {
            "in Docker: `--security-opt systempaths=unconfined`; until then programs see no `/proc`"
        }
        JailLayer::Files => "Linux 6.2 or newer, with `landlock` in the kernel's `lsm=` list",
        JailLayer::Signals => "Linux 6.12 or newer, with `landlock` in the kernel's `lsm=` list",
        JailLayer::Network | JailLayer::SystemCalls => {
            "run on a kernel, or in a container, that allows seccomp filters"
        }
        JailLayer::NoNewPrivileges
        | JailLayer::Capabilities
        | JailLayer::Rlimits
        | JailLayer::Session
        | JailLayer::Descriptors
        | JailLayer::ParentDeath => "the kernel refused: ask the administrator of this system",
    }
}
