//! Which layers this machine has for child processes, tried with one that does nothing. A
//! missing one does not make the home unsound: a child that would need it does not start.

use engine::health::{Health, child_fix};
use jail::{JailLayer, JailRung, JailTrial};
use model::word::Word as _;
use serde_json::{Value, json};

use crate::output::printer::{Printer, Style};

const NAME: &str = "child processes";

/// One line for the rung, and one for each layer that is missing.
pub(super) fn show(health: &Health, printer: &mut Printer) {
    for line in lines(&health.children, printer) {
        printer.line(&line);
    }
    if let Some(refusal) = health.unmet_requirement() {
        let state = printer.styled(Style::Bad, "DOWN");
        printer.line(&format!("{state}  {NAME:18} none starts: {refusal}"));
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
            lines.push(format!("      fix: {}", child_fix(layer)));
        }
    }
    lines
}

pub(super) fn to_value(health: &Health) -> Value {
    match &health.children {
        Ok(trial) => {
            let layers = trial.walls.iter().map(|wall| {
                let fix = wall.missing.as_ref().map(|_| child_fix(wall.layer));
                json!({"layer": wall.layer.name(), "up": wall.is_up(), "reason": wall.missing, "fix": fix})
            });
            json!({
                "rung": trial.rung.name(),
                "layers": layers.collect::<Vec<_>>(),
                "required": health.jail.require.word(),
                "accepted": health.jail.accept.word(),
                "refusal": health.unmet_requirement(),
            })
        }
        Err(reason) => json!({"error": reason}),
    }
}
