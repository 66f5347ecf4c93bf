//! `ringfence doctor`: checks that every sandbox layer is active and the home is sound.

use std::time::Instant;

use engine::powers::Powers;
use sandbox::job::{Ended, Job, JobLimits};
use sandbox::pool::{Pool, PoolSettings, Sharing, WorkerProgram};
use sandbox::walls::{self, Layer, LayerStatus, Walls};
use serde_json::{Value, json};

use crate::arguments::HomeArguments;
use crate::output::exit::Exit;
use crate::output::hint;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

mod children;
mod home;

use home::Finding;
use jail::JailTrial;

/// What was found out.
struct Health {
    walls: Walls,
    /// Why no worker started, if none did.
    start: Option<String>,
    /// Whether a script gave the right answer, and how long the first took.
    probe: Result<f64, String>,
    /// What stands around a child process.
    children: Result<JailTrial, String>,
    /// The home folder and what is in it.
    home: Vec<Finding>,
}

/// Runs the command.
pub(crate) fn run(arguments: &HomeArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = home::examine(&wiring::absolute_home(arguments)?);
    let health = wiring::runtime()?.block_on(examine(home));
    let required = walls::expected();
    let sound = health.walls.missing(&required).is_empty()
        && health.start.is_none()
        && health.probe.is_ok()
        && health.home.iter().all(|finding| finding.fault.is_none());
    match printer.format() {
        Format::Json => printer.json(&to_value(&health, sound)),
        Format::Human => show(&health, printer),
    }
    Ok(if sound { Exit::Done } else { Exit::No })
}

async fn examine(home: Vec<Finding>) -> Health {
    let started = Instant::now();
    let mut settings = PoolSettings::new(WorkerProgram::ThisProgram, Sharing::PerCall);
    settings.workers = 1;
    match Pool::start(settings).await {
        Ok(pool) => {
            let probe = probe(&pool)
                .await
                .map(|()| started.elapsed().as_secs_f64() * 1000.0);
            Health {
                walls: pool.walls(),
                start: None,
                probe,
                children: children::try_out().await,
                home,
            }
        }
        Err(error) => Health {
            walls: walls::walls(),
            probe: Err("no worker".to_owned()),
            start: Some(format!("{:#}", anyhow::Error::from(error))),
            children: children::try_out().await,
            home,
        },
    }
}

async fn probe(pool: &Pool) -> Result<(), String> {
    let job = Job {
        body: "return [a + 1, typeof fetch, typeof process, typeof require].join()".to_owned(),
        globals: r#"{"a": 41}"#.to_owned(),
        declared: Vec::new(),
        powers: Vec::new(),
        limits: JobLimits::standard(),
        seed: 1,
        now_ms: 0,
    };
    let powers = Powers::none();
    match pool
        .run("doctor", job, &powers)
        .await
        .map(|run| run.report.ended)
    {
        Ok(Ended::Value(value)) if value == r#""42,undefined,undefined,undefined""# => Ok(()),
        Ok(other) => Err(format!("the probe gave {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// What a layer is for.
fn purpose(layer: Layer) -> &'static str {
    match layer {
        Layer::Wasm => "tool code runs as WebAssembly",
        Layer::Seccomp => "only listed system calls",
        Layer::LandlockFiles => "no file can be opened",
        Layer::LandlockNetwork => "no port can be reached",
        Layer::LandlockScopes => "no signal leaves the worker",
        Layer::NoNewPrivileges => "nothing can gain privileges",
        Layer::Capabilities => "no capability is held",
        Layer::Rlimits => "no core file, no growth, no new process",
        Layer::Session => "no terminal",
        Layer::Environment => "no environment variable",
        Layer::Descriptors => "no descriptor but its pipe, its image and its page map",
        Layer::ParentDeath => "the worker dies with its parent",
        Layer::NotDumpable => "no core dump, no debugger",
    }
}

fn show(health: &Health, printer: &mut Printer) {
    for layer in Layer::ALL {
        let what = purpose(layer);
        let fix = hint::of_layer(layer);
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
    children::show(&health.children, printer);
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
        "children": children::to_value(&health.children),
        "startError": health.start,
        "probeError": health.probe.as_ref().err(),
        "firstResultMs": health.probe.as_ref().ok().map(|ms| (ms * 1000.0).round() / 1000.0),
    })
}
