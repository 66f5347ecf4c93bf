//! Which walls this machine has for child processes, found out with one that does nothing. A
//! missing one does not make the home unsound: a child that would need it does not start.

use std::fs;

use jail::{JailLayer, JailRung, JailTrial, WorkerProgram};
use serde_json::{Value, json};

use crate::output::printer::{Printer, Style};

const NAME: &str = "child processes";

/// Starts a child that does nothing, in a folder that is removed again.
pub(super) async fn try_out() -> Result<JailTrial, String> {
    let folder = std::env::temp_dir().join(format!("ringfence-doctor-{}", std::process::id()));
    let trial = jail::try_out(folder.clone(), &WorkerProgram::ThisProgram).await;
    let _ = fs::remove_dir_all(folder);
    trial.map_err(|fault| fault.to_string())
}

/// One line for the rung, and one for each layer that is missing.
pub(super) fn show(trial: &Result<JailTrial, String>, printer: &mut Printer) {
    for line in lines(trial, printer) {
        printer.line(&line);
    }
}

fn lines(trial: &Result<JailTrial, String>, printer: &Printer) -> Vec<String> {
    let trial = match trial {
        Ok(trial) => trial,
        Err(reason) => {
            let state = printer.styled(Style::Caution, "none");
            return vec![format!("{state}  {NAME:18} none can be started: {reason}")];
        }
    };
    let count = trial.walls.iter().filter(|wall| wall.is_up()).count();
    let state = printer.styled(Style::Good, "up  ");
    let mut lines = vec![format!(
        "{state}  {NAME:18} rung `{}`: {count} layers around each",
        trial.rung.name()
    )];
    for wall in &trial.walls {
        // Facts belong to the higher rung.
        let is_other_rung = trial.rung == JailRung::Landlock && wall.layer == JailLayer::Facts;
        if let (Some(reason), false) = (&wall.missing, is_other_rung) {
            let state = printer.styled(Style::Caution, "none");
            let layer = wall.layer;
            lines.push(format!("{state}  {NAME:18} no `{layer}` layer: {reason}"));
            lines.push(format!("      fix: {}", fix(layer)));
        }
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

pub(super) fn to_value(trial: &Result<JailTrial, String>) -> Value {
    match trial {
        Ok(trial) => {
            let layers = trial.walls.iter().map(|wall| {
                let fix = wall.missing.as_ref().map(|_| fix(wall.layer));
                json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing, "fix": fix})
            });
            json!({"rung": trial.rung.name(), "layers": layers.collect::<Vec<_>>()})
        }
        Err(reason) => json!({"error": reason}),
    }
}
