//! Which walls this machine has for child processes. A missing one does not make the home
//! unsound: a server that would need it does not start.

use jail::{JailLayer, Wall};
use serde_json::{Value, json};

use crate::output::printer::{Printer, Style};

const NAME: &str = "child processes";

/// One line for all walls, or one for each that is missing.
pub(super) fn show(walls: &[Wall], printer: &mut Printer) {
    for line in lines(walls, printer) {
        printer.line(&line);
    }
}

fn lines(walls: &[Wall], printer: &Printer) -> Vec<String> {
    let mut lines = Vec::new();
    for wall in walls {
        if let Some(reason) = &wall.missing {
            let state = printer.styled(Style::Caution, "none");
            let layer = wall.layer;
            lines.push(format!("{state}  {NAME:18} no `{layer}` layer: {reason}"));
            lines.push(format!("      fix: {}", fix(layer)));
        }
    }
    if lines.is_empty() {
        let state = printer.styled(Style::Good, "up  ");
        let count = walls.len();
        lines.push(format!("{state}  {NAME:18} {count} layers around each"));
    }
    lines
}

/// Why namespaces are refused is in the reason; each cause has its own remedy.
const NAMESPACES_FIX: &str = "on Ubuntu: an AppArmor profile with `userns,` for the program; in Docker: \
     `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or stay on the lower rung; \
     elsewhere: `sysctl user.max_user_namespaces=10000`";

fn fix(layer: JailLayer) -> &'static str {
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
        | JailLayer::ParentDeath => "ask who set this system up: the kernel refused",
    }
}

pub(super) fn to_value(walls: &[Wall]) -> Value {
    walls
        .iter()
        .map(|wall| json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing}))
        .collect()
}
