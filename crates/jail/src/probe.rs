//! What a machine offers for the fence around children, without a child.

use sandbox::walls::system;

use crate::control_group::ControlGroup;
use crate::identity::ChildIdentity;
use crate::settings::JailLimits;
use crate::wall::{self, FILES_ABI, JailLayer, SIGNALS_ABI, Wall};

/// Which layers this machine offers, asked of the kernel without a child. A child's own
/// report knows better, because its launcher has tried: it blocks for some milliseconds.
pub fn probe() -> Vec<Wall> {
    let abi = sandbox::walls::landlock_abi();
    JailLayer::ALL
        .into_iter()
        .map(|layer| {
            let offered = match layer {
                JailLayer::Files => wall::landlock_since(FILES_ABI, abi),
                JailLayer::Signals => wall::landlock_since(SIGNALS_ABI, abi),
                JailLayer::Network | JailLayer::SystemCalls => sandbox::walls::seccomp_offered(),
                JailLayer::NoNewPrivileges
                | JailLayer::Capabilities
                | JailLayer::Rlimits
                | JailLayer::Session
                | JailLayer::Descriptors
                | JailLayer::ParentDeath
                | JailLayer::Facts => Ok(()),
                JailLayer::Namespaces => {
                    system::try_namespaces().map_err(|error| wall::namespaces_refusal(&error))
                }
                JailLayer::Identity => ChildIdentity::claim().map(drop),
                JailLayer::ControlGroup => ControlGroup::make(&JailLimits::standard()).map(drop),
            };
            Wall::new(layer, offered)
        })
        .collect()
}
