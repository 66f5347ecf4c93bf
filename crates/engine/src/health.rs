//! Whether this machine and a home are sound: every layer of the sandbox, a worker that
//! gives the right answer, the walls for child processes, and the home folder. What
//! `doctor` prints and the Studio shows.

use std::path::{Path, PathBuf};
use std::time::Instant;

use futures_util::future::BoxFuture;
use jail::JailTrial;
use model::config::{JailConfig, JailStrength};
use model::word::Word as _;
use sandbox::job::{Ended, Job, JobLimits};
use sandbox::pool::{Pool, PoolSettings, Sharing, WorkerProgram};
use sandbox::walls::{self, Layer, LayerStatus, Walls};

use crate::engine::Engine;
use crate::error::causes;
use crate::powers::Powers;
use crate::toolbox::JailStanding;

mod home;

pub use crate::toolbox::child_fix;
pub use home::{HomeFinding, examine as examine_home};

/// What was found out.
#[derive(Debug)]
pub struct Health {
    /// The layers around workers.
    pub walls: Walls,
    /// Why no worker started, if none did.
    pub start: Option<String>,
    /// Whether a script gave the right answer, and how many milliseconds the first took.
    pub probe: Result<f64, String>,
    /// What stands around a child process, found out with one that does nothing.
    pub children: Result<JailTrial, String>,
    /// How strong that must be.
    pub jail: JailConfig,
    /// The home folder and what is in it.
    pub home: Vec<HomeFinding>,
}

/// One check, whatever it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// `sandbox`, `worker`, `children` or `home`.
    pub group: &'static str,
    /// What was looked at.
    pub name: String,
    /// Whether it is as it should be.
    pub is_up: bool,
    /// Whether the machine is unsound without it.
    pub is_required: bool,
    /// What it is for, or what was found.
    pub says: String,
    /// Why it is not up.
    pub reason: Option<String>,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Health {
    /// Whether everything that is required is there.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.walls.missing(&walls::expected()).is_empty()
            && self.start.is_none()
            && self.probe.is_ok()
            && self.home.iter().all(|finding| finding.fault.is_none())
            && self.unmet_requirement().is_none()
    }

    /// Why no child process starts, if that is because the operator requires more than this
    /// machine has.
    #[must_use]
    pub fn unmet_requirement(&self) -> Option<String> {
        let trial = match &self.children {
            Ok(trial) => trial,
            // Nothing starts, so nothing that is required does.
            Err(why) => {
                let is_required = self.jail.require > JailStrength::Landlock;
                let word = self.jail.require.word();
                return is_required.then(|| {
                    format!("`[sandbox.jail]` requires {word}, and nothing starts: {why}")
                });
            }
        };
        let weakest = JailConfig {
            require: JailStrength::Landlock,
            ..self.jail
        };
        let standing = JailStanding::of_trial(trial.clone());
        // Where not even the weakest jail starts, the requirement is not the reason.
        match standing.refusal(weakest) {
            Some(_) => None,
            None => standing.refusal(self.jail),
        }
    }

    /// Every check.
    #[must_use]
    pub fn checks(&self) -> Vec<HealthCheck> {
        let layers = Layer::ALL.into_iter().map(|layer| self.layer(layer));
        let mut checks: Vec<_> = layers.collect();
        let reason = self.start.clone().or_else(|| self.probe.clone().err());
        checks.push(HealthCheck {
            group: "worker",
            name: "worker".to_owned(),
            is_up: reason.is_none(),
            is_required: true,
            says: match &self.probe {
                Ok(ms) => format!("a worker started and gave the right answer in {ms:.0} ms"),
                Err(_) => "no worker gave the right answer".to_owned(),
            },
            reason,
            fix: None,
        });
        checks.extend(self.child_checks());
        checks.extend(self.home.iter().map(|finding| HealthCheck {
            group: "home",
            name: finding.name.to_owned(),
            is_up: finding.fault.is_none(),
            is_required: true,
            says: finding.what.clone(),
            reason: None,
            fix: finding.fault.clone(),
        }));
        checks
    }

    /// What stands around child processes; one check that fails, if none can be started.
    fn child_checks(&self) -> Vec<HealthCheck> {
        let check = |name: &str, reason: Option<String>, fix: Option<String>| HealthCheck {
            group: "children",
            name: name.to_owned(),
            is_up: reason.is_none(),
            is_required: false,
            says: "a layer around each child process".to_owned(),
            reason,
            fix,
        };
        match &self.children {
            Ok(trial) => {
                let required = self.unmet_requirement().map(|refusal| HealthCheck {
                    is_required: true,
                    ..check("required", Some(refusal), None)
                });
                let walls = trial.walls.iter().map(|wall| {
                    let fix = wall
                        .missing
                        .as_ref()
                        .map(|_| child_fix(wall.layer).to_owned());
                    check(wall.layer.name(), wall.missing.clone(), fix)
                });
                required.into_iter().chain(walls).collect()
            }
            Err(reason) => vec![check("start", Some(reason.clone()), None)],
        }
    }

    fn layer(&self, layer: Layer) -> HealthCheck {
        let reason = match self.walls.layers.get(&layer) {
            Some(LayerStatus::Up) => None,
            Some(LayerStatus::Missing(reason)) => Some(reason.clone()),
            None => Some("not reported".to_owned()),
        };
        HealthCheck {
            group: "sandbox",
            name: layer.name().to_owned(),
            is_up: reason.is_none(),
            is_required: walls::expected().contains(&layer),
            says: purpose(layer).to_owned(),
            fix: reason.is_some().then(|| layer_fix(layer).to_owned()),
            reason,
        }
    }
}

impl Engine {
    /// Examines this machine with the workers that serve, and the home this engine is open
    /// on.
    pub fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.examine_open())
    }

    async fn examine_open(&self) -> Health {
        let started = Instant::now();
        let (walls, start, probe) = match self.pool().await {
            Ok(pool) => (pool.walls(), None, time_probe(pool, started).await),
            Err(fault) => none(&fault),
        };
        Health {
            walls,
            start,
            probe,
            children: try_children(self.home(), self.worker_program()).await,
            jail: self.registry().current().config.sandbox.jail,
            home: home::examine_open(self),
        }
    }
}

/// Examines this machine with a worker of its own. `home` was examined before, `jail` is
/// what its settings say, and `folder` is where child processes would have theirs.
pub fn examine(
    home: Vec<HomeFinding>,
    jail: JailConfig,
    folder: PathBuf,
) -> BoxFuture<'static, Health> {
    Box::pin(examine_alone(home, jail, folder))
}

async fn examine_alone(home: Vec<HomeFinding>, jail: JailConfig, folder: PathBuf) -> Health {
    let started = Instant::now();
    let mut settings = PoolSettings::new(WorkerProgram::ThisProgram, Sharing::PerCall);
    settings.workers = 1;
    let (walls, start, probe) = match Pool::start(settings).await {
        Ok(pool) => (pool.walls(), None, time_probe(&pool, started).await),
        Err(fault) => none(&fault),
    };
    Health {
        walls,
        start,
        probe,
        children: try_children(&folder, &WorkerProgram::ThisProgram).await,
        jail,
        home,
    }
}

/// Starts a child that does nothing, in a folder that is removed again.
async fn try_children(folder: &Path, program: &WorkerProgram) -> Result<JailTrial, String> {
    let own = folder.join(format!("ringfence-doctor-{}", std::process::id()));
    let trial = jail::try_out(own.clone(), program).await;
    let _ = std::fs::remove_dir_all(own);
    trial.map_err(|fault| fault.to_string())
}

fn none(fault: &sandbox::pool::PoolError) -> (Walls, Option<String>, Result<f64, String>) {
    (
        walls::walls(),
        Some(causes(fault)),
        Err("no worker".to_owned()),
    )
}

async fn time_probe(pool: &Pool, started: Instant) -> Result<f64, String> {
    probe(pool).await?;
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}

async fn probe(pool: &Pool) -> Result<(), String> {
    let job = Job {
        // The right answer also shows that a script without powers finds none.
        body: "return [a + 1, typeof fetch, typeof process, typeof require].join()".to_owned(),
        globals: r#"{"a": 41}"#.to_owned(),
        declared: Vec::new(),
        powers: Vec::new(),
        limits: JobLimits::standard(),
        seed: 1,
        now_ms: 0,
    };
    let powers = Powers::none();
    let ran = pool.run("doctor", job, &powers).await;
    match ran.map(|run| run.report.ended) {
        Ok(Ended::Value(value)) if value == r#""42,undefined,undefined,undefined""# => Ok(()),
        Ok(other) => Err(format!("the probe gave {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// What a layer is for.
#[must_use]
pub fn purpose(layer: Layer) -> &'static str {
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

/// What to do when a layer is missing.
#[must_use]
pub fn layer_fix(layer: Layer) -> &'static str {
    match layer {
        Layer::Wasm => "rebuild: `cargo xtask guest`, then build again",
        Layer::Seccomp => "run on a kernel, or in a container, that allows seccomp filters",
        Layer::LandlockFiles => {
            "enable Landlock: Linux 5.13 or newer, `landlock` in the kernel's `lsm=` list"
        }
        Layer::LandlockNetwork => "needs Linux 6.7 or newer",
        Layer::LandlockScopes => "needs Linux 6.12 or newer",
        Layer::Capabilities => "run as an ordinary user",
        Layer::Rlimits => "raise the hard limits of this shell",
        Layer::Environment | Layer::Descriptors => "this is a bug: please report it",
        Layer::NoNewPrivileges | Layer::Session | Layer::ParentDeath | Layer::NotDumpable => {
            "the kernel refused: ask the administrator of this system"
        }
    }
}
