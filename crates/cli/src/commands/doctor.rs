//! `ringfence doctor`: checks that every sandbox layer is active and the home is sound.

use engine::health::{self, Health, layer_fix, purpose};
use model::config::JailConfig;
use sandbox::walls::{Layer, LayerStatus};
use serde_json::{Value, json};

use crate::arguments::HomeArguments;
use crate::output::exit::Exit;
use crate::output::hint;
use crate::output::printer::{Format, Printer, Style};
use crate::settings;
use crate::wiring;

mod children;

pub(crate) fn run(arguments: &HomeArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let handed = settings::credentials();
    let folder = wiring::absolute_home(arguments)?;
    let home = health::examine_home(&folder, handed.as_ref(), &hint::of_store);
    // Settings that cannot be read are a finding of the home.
    let jail = engine::settings::read_config(&folder).map_or_else(
        |_| JailConfig::standard(),
        |(config, _)| config.sandbox.jail,
    );
    // Where children would be: as root without namespaces it may be closed to them.
    let folder = match folder.is_dir() {
        true => folder,
        false => std::env::temp_dir(),
    };
    let health = wiring::runtime()?.block_on(health::examine(home, jail, folder));
    let sound = health.is_sound();
    match printer.format() {
        Format::Json => printer.json(&to_value(&health, sound)),
        Format::Human => show(&health, printer),
    }
    Ok(if sound { Exit::Done } else { Exit::No })
}

fn show(health: &Health, printer: &mut Printer) {
    for layer in Layer::ALL {
        let what = purpose(layer);
        let fix = layer_fix(layer);
        let standing = health.walls.layers.get(&layer);
        let line = match standing {
            Some(LayerStatus::Up) => format!(
                "{}  {:18} {what}",
                printer.styled(Style::Good, "up  "),
                layer.name()
            ),
            Some(LayerStatus::Missing(reason)) => {
                format!(
                    "{}  {:18} {what}: {reason}",
                    printer.styled(Style::Bad, "DOWN"),
                    layer.name()
                )
            }
            None => format!(
                "{}  {:18} {what}: not reported",
                printer.styled(Style::Bad, "DOWN"),
                layer.name()
            ),
        };
        printer.line(&line);
        if let Some(LayerStatus::Missing(_)) = standing {
            printer.line(&format!("      fix: {fix}"));
        }
    }
    let line = match (&health.start, &health.probe) {
        (Some(error), _) => format!("{}  {error}", printer.styled(Style::Bad, "DOWN")),
        (None, Err(error)) => format!("{}  {error}", printer.styled(Style::Bad, "DOWN")),
        (None, Ok(elapsed_ms)) => {
            format!(
                "{}  a worker started and gave the right answer in {elapsed_ms:.0} ms",
                printer.styled(Style::Good, "up  ")
            )
        }
    };
    printer.line(&line);
    children::show(health, printer);
    for finding in &health.home {
        let name = finding.name;
        let what = &finding.what;
        let line = match &finding.fault {
            None => format!("{}  {name:18} {what}", printer.styled(Style::Good, "up  ")),
            Some(_) => format!("{}  {name:18} {what}", printer.styled(Style::Bad, "DOWN")),
        };
        printer.line(&line);
        if let Some(fix) = &finding.fault {
            printer.line(&format!("      fix: {fix}"));
        }
    }
}

fn to_value(health: &Health, sound: bool) -> Value {
    let layers: Vec<_> = Layer::ALL
        .iter()
        .map(|layer| {
            let reason = match health.walls.layers.get(layer) {
                Some(LayerStatus::Up) => None,
                Some(LayerStatus::Missing(reason)) => Some(reason.as_str()),
                None => Some("not reported"),
            };
            json!({"layer": layer.name(), "up": reason.is_none(), "reason": reason})
        })
        .collect();
    let home = health.home.iter().map(|finding| {
        json!({"what": finding.name, "up": finding.fault.is_none(), "says": finding.what, "fix": finding.fault})
    });
    json!({
        "ok": sound,
        "home": home.collect::<Vec<_>>(),
        "landlockAbi": health.walls.landlock_abi,
        "layers": layers,
        "children": children::to_value(health),
        "startError": health.start,
        "probeError": health.probe.as_ref().err(),
        "firstResultMs": health.probe.as_ref().ok().map(|ms| (ms * 1000.0).round() / 1000.0),
    })
}
