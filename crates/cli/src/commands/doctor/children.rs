//! Which walls this machine has for child processes. A missing one does not make the home
//! unsound: a server that would need it does not start.

use engine::health::child_fix;
use jail::Wall;
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
    if lines.is_empty() {
        let state = printer.styled(Style::Good, "up  ");
        let count = walls.len();
        lines.push(format!("{state}  {NAME:18} {count} layers around each"));
    }
    lines
}

pub(super) fn to_value(walls: &[Wall]) -> Value {
    walls
        .iter()
        .map(|wall| json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing}))
        .collect()
}
