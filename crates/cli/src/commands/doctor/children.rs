//! Which walls this machine has for child processes. A missing one does not make the home
//! unsound: a server that would need it does not start.

use engine::health::child_fix;
use jail::{JailLayer, JailRung, Wall};
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

pub(super) fn to_value(walls: &[Wall]) -> Value {
    walls
        .iter()
        .map(|wall| json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing}))
        .collect()
}
