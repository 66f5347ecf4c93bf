//! Which walls this machine has for child processes. A missing one does not make the home
//! unsound: a server that would need it does not start.

use engine::health::child_fix;
<<<<<<< HEAD
use jail::{JailLayer, JailRung, Wall};
=======
use jail::{JailLayer, JailRung, JailTrial};
>>>>>>> main
use serde_json::{Value, json};

use crate::output::printer::{Printer, Style};

const NAME: &str = "child processes";

<<<<<<< HEAD
/// One line for all walls, or one for each that is missing.
pub(super) fn show(walls: &[Wall], printer: &mut Printer) {
    for line in lines(walls, printer) {
=======
/// One line for the rung, and one for each layer that is missing.
pub(super) fn show(trial: &Result<JailTrial, String>, printer: &mut Printer) {
    for line in lines(trial, printer) {
>>>>>>> main
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
            lines.push(format!("      fix: {}", child_fix(layer)));
        }
    }
    let state = printer.styled(Style::Good, "up  ");
    let count = walls.iter().filter(|wall| wall.is_up()).count();
    let has_namespaces = walls
        .iter()
        .any(|wall| wall.layer == JailLayer::Namespaces && wall.is_up());
    let rung = match has_namespaces {
        true => JailRung::Namespaces,
        false => JailRung::Landlock,
    };
    let rung = rung.name();
    let line = format!("{state}  {NAME:18} {count} layers around each, rung `{rung}`");
    lines.insert(0, line);
    lines
}

<<<<<<< HEAD
pub(super) fn to_value(walls: &[Wall]) -> Value {
    walls
        .iter()
        .map(|wall| json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing}))
        .collect()
=======
pub(super) fn to_value(trial: &Result<JailTrial, String>) -> Value {
    match trial {
        Ok(trial) => {
            let layers = trial.walls.iter().map(|wall| {
                let fix = wall.missing.as_ref().map(|_| child_fix(wall.layer));
                json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing, "fix": fix})
            });
            json!({"rung": trial.rung.name(), "layers": layers.collect::<Vec<_>>()})
        }
        Err(reason) => json!({"error": reason}),
    }
>>>>>>> main
}
