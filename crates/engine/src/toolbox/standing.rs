//! How strong a fence this machine puts around child processes. It decides whether a level
//! that wants containment takes native tools, and raises their risk where it is weak.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jail::{JailLayer, JailRung, JailSettings, WorkerProgram};
use model::policy::risk::{Level, Risk, Signal};

use super::PROGRAM_PATH;

/// How strong a fence this machine puts around child processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JailStanding {
    /// Namespaces, Landlock and seccomp.
    Namespaces,
    /// Landlock and seccomp only; why there are no namespaces.
    Landlock(String),
    /// Too little: native tools refuse; what is missing.
    Missing(String),
}

/// How a child is started on this machine: this program again, and a folder for it.
static PROGRAM: OnceLock<(WorkerProgram, PathBuf)> = OnceLock::new();
/// What came of trying.
static STANDING: OnceLock<JailStanding> = OnceLock::new();

impl JailStanding {
    /// Says how a child is started. It is tried when the answer is first needed.
    pub(crate) fn learn(program: &WorkerProgram, home: &Path) {
        PROGRAM.get_or_init(|| (program.clone(), home.join("scratch")));
    }

    /// What this machine has: found by starting a child, once.
    #[must_use]
    pub fn of_machine() -> &'static JailStanding {
        static UNTRIED: OnceLock<JailStanding> = OnceLock::new();
        match PROGRAM.get() {
            Some((program, folder)) => STANDING.get_or_init(|| try_out(program, folder)),
            // Fails closed: what was not tried counts as the least.
            None => UNTRIED.get_or_init(|| JailStanding::Missing("it was not tried".to_owned())),
        }
    }

    /// Whether a child counts as contained.
    #[must_use]
    pub fn is_contained(&self) -> bool {
        matches!(self, JailStanding::Namespaces)
    }

    /// Adds to the risk of a tool that runs a process what its fence lacks: one level more.
    pub(crate) fn raise(&self, risk: &mut Risk) {
        let why = match self {
            JailStanding::Namespaces => return,
            JailStanding::Landlock(why) => format!("jail: no namespaces here ({why})"),
            JailStanding::Missing(why) => format!("jail: not available here ({why})"),
        };
        let level = match risk.level {
            Level::L0 | Level::L1 | Level::L2 => Level::L3,
            Level::L3 => Level::L4,
            Level::L4 | Level::L5 => Level::L5,
        };
        risk.level = level;
        risk.signals.insert(0, Signal { level, words: why });
    }
}

/// Starts a program that does nothing, on a thread of its own: what asks may stand in the
/// middle of asynchronous work.
fn try_out(program: &WorkerProgram, folder: &Path) -> JailStanding {
    let program = program.clone();
    let own = folder.join(format!("probe-{}", std::process::id()));
    let folder = own.clone();
    let trying = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let idle =
            jail::resolve_program("true", PROGRAM_PATH).map_err(|fault| fault.to_string())?;
        let settings = JailSettings::new(vec![idle.display().to_string()], folder);
        let child = runtime.block_on(async {
            let mut child = jail::spawn(settings, &program).await?;
            child.wait().await;
            Ok::<_, jail::JailFault>((child.rung, child.walls.clone()))
        });
        child.map_err(|fault| fault.to_string())
    });
    let tried = trying
        .join()
        .unwrap_or_else(|_| Err("the try failed".to_owned()));
    let _ = std::fs::remove_dir_all(own);
    match tried {
        Ok((JailRung::Namespaces, _)) => JailStanding::Namespaces,
        Ok((JailRung::Landlock, walls)) => {
            let namespaces = walls
                .iter()
                .find(|wall| wall.layer == JailLayer::Namespaces);
            let why = namespaces.and_then(|wall| wall.missing.clone());
            JailStanding::Landlock(why.unwrap_or_else(|| "the kernel refused them".to_owned()))
        }
        Err(why) => JailStanding::Missing(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weaker_fence_never_lowers_the_risk() {
        for weak in [
            JailStanding::Landlock("x".to_owned()),
            JailStanding::Missing("x".to_owned()),
        ] {
            for level in Level::ALL {
                let mut risk = Risk {
                    level,
                    signals: Vec::new(),
                };
                weak.raise(&mut risk);
                assert!(risk.level > level || level == Level::L5, "{level:?}");
                assert_eq!(risk.signals.len(), 1);
            }
        }
    }
}
