//! How strong a fence this machine puts around child processes. It decides whether a level
//! that wants containment takes native tools, raises their risk where it is weak, and is
//! what their safety records say.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jail::{JailLayer, JailRung, JailTrial, Wall, WorkerProgram};
use model::config::{JailConfig, JailStrength};
use model::document::safety::JailRecord;
use model::policy::risk::{Level, Risk, Signal};
use model::word::Word as _;

/// How strong a fence this machine puts around child processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JailStanding {
    /// How far it goes, or why no child starts.
    reached: Result<JailRung, String>,
    /// Each of its layers, as far as they could be tried.
    walls: Vec<Wall>,
}

/// How a child is started on this machine: this program again, and a folder for it.
static PROGRAM: OnceLock<(WorkerProgram, PathBuf)> = OnceLock::new();
/// What came of trying.
static STANDING: OnceLock<JailStanding> = OnceLock::new();

/// The rung that the settings require.
pub(crate) fn required_rung(settings: JailConfig) -> JailRung {
    match settings.require {
        JailStrength::Landlock => JailRung::Landlock,
        JailStrength::Namespaces => JailRung::Namespaces,
    }
}

impl JailStanding {
    /// Says how a child is started. It is tried when the answer is first needed.
    pub(crate) fn learn(program: &WorkerProgram, home: &Path) {
        PROGRAM.get_or_init(|| (program.clone(), home.join("scratch")));
    }

    /// What this machine has: found by starting a child, once.
    #[must_use]
    pub fn of_machine() -> &'static JailStanding {
        // Apart from `STANDING`: once the program is known, the machine is tried.
        static UNTRIED: OnceLock<JailStanding> = OnceLock::new();
        match PROGRAM.get() {
            Some((program, folder)) => STANDING.get_or_init(|| try_out(program, folder)),
            // Fails closed: what was not tried counts as the least.
            None => UNTRIED.get_or_init(|| JailStanding::none("it was not tried".to_owned())),
        }
    }

    /// What this machine has, if it was found out already.
    #[must_use]
    pub fn tried() -> Option<&'static JailStanding> {
        STANDING.get()
    }

    fn none(why: String) -> JailStanding {
        JailStanding {
            reached: Err(why),
            walls: Vec::new(),
        }
    }

    /// What a trial says.
    #[must_use]
    pub fn of_trial(trial: JailTrial) -> JailStanding {
        JailStanding {
            reached: match trial.refusal() {
                None => Ok(trial.rung),
                Some(refusal) => Err(refusal),
            },
            walls: trial.walls,
        }
    }

    /// The name of the rung; `none` if no child starts.
    #[must_use]
    pub fn rung(&self) -> &'static str {
        self.reached.as_ref().map_or("none", |rung| rung.name())
    }

    /// Each layer, and why it is missing if it is.
    #[must_use]
    pub fn walls(&self) -> &[Wall] {
        &self.walls
    }

    /// Whether a folder can be laid over: the child sees it writable, and it is not changed.
    #[must_use]
    pub fn has_overlays(&self) -> bool {
        self.reached == Ok(JailRung::Namespaces)
    }

    /// Whether a child counts as contained, by what the operator accepts.
    #[must_use]
    pub fn is_contained(&self, settings: JailConfig) -> bool {
        let strength = self.strength();
        // Below what is required no child starts, whatever is accepted.
        strength.is_ok_and(|strength| strength >= settings.require.max(settings.accept))
    }

    fn strength(&self) -> Result<JailStrength, &str> {
        match &self.reached {
            Ok(JailRung::Namespaces) => Ok(JailStrength::Namespaces),
            Ok(JailRung::Landlock) => Ok(JailStrength::Landlock),
            Err(why) => Err(why),
        }
    }

    /// Why no child starts under these settings, with the remedy; nothing if one does.
    #[must_use]
    pub fn refusal(&self, settings: JailConfig) -> Option<String> {
        match self.strength() {
            Err(why) => Some(why.to_owned()),
            Ok(strength) if strength < settings.require => Some(format!(
                "`[sandbox.jail]` requires {}, and there are none here ({}); {}",
                settings.require.word(),
                self.why_no_namespaces(),
                super::remedy::child_fix(JailLayer::Namespaces)
            )),
            Ok(_) => None,
        }
    }

    /// Adds to the risk of a tool that runs a process what its fence lacks: one level more,
    /// unless the operator accepts what there is.
    pub(crate) fn raise(&self, settings: JailConfig, risk: &mut Risk) {
        if self.is_contained(settings) {
            return;
        }
        let words = match self.strength() {
            Ok(strength) if strength >= settings.require => {
                format!("jail: no namespaces here ({})", self.why_no_namespaces())
            }
            Ok(_) => format!(
                "jail: not available here (the settings require {})",
                settings.require.word()
            ),
            Err(why) => format!("jail: not available here ({why})"),
        };
        let level = match risk.level {
            Level::L0 | Level::L1 | Level::L2 => Level::L3,
            Level::L3 => Level::L4,
            Level::L4 | Level::L5 => Level::L5,
        };
        risk.level = level;
        // Signals are kept worst first, and none is worse than this one.
        risk.signals.insert(0, Signal { level, words });
    }

    fn why_no_namespaces(&self) -> &str {
        let mut walls = self.walls.iter();
        let namespaces = walls.find(|wall| wall.layer == JailLayer::Namespaces);
        let why = namespaces.and_then(|wall| wall.missing.as_deref());
        why.unwrap_or("the kernel refused them")
    }

    /// What the safety record of a tool in the jail says.
    pub(crate) fn record(&self) -> JailRecord {
        let up = self.walls.iter().filter(|wall| wall.is_up());
        let missing = self.walls.iter().filter_map(|wall| {
            let why = wall.missing.as_ref()?;
            Some(format!("{}: {why}", wall.layer))
        });
        let whole = self
            .reached
            .as_ref()
            .err()
            .filter(|_| self.walls.is_empty());
        JailRecord {
            rung: Some(self.rung().to_owned()),
            up: up.map(|wall| wall.layer.name().to_owned()).collect(),
            missing: missing.chain(whole.cloned()).collect(),
        }
    }
}

/// Starts a program that does nothing, on a thread of its own: what asks may stand in the
/// middle of asynchronous work.
fn try_out(program: &WorkerProgram, folder: &Path) -> JailStanding {
    let program = program.clone();
    // Several processes of a home may try at the same time.
    let own = folder.join(format!("probe-{}", std::process::id()));
    let folder = own.clone();
    let trying = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let trial = runtime.block_on(jail::try_out(folder, &program));
        trial.map_err(|fault| fault.to_string())
    });
    let tried = trying
        .join()
        .unwrap_or_else(|_| Err("the try failed".to_owned()));
    let _ = std::fs::remove_dir_all(own);
    match tried {
        Ok(trial) => JailStanding::of_trial(trial),
        Err(why) => JailStanding::none(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(rung: JailRung, missing: &[(JailLayer, &str)]) -> JailStanding {
        let wall = |layer: JailLayer| Wall {
            layer,
            missing: missing
                .iter()
                .find(|(lacking, _)| *lacking == layer)
                .map(|(_, why)| (*why).to_owned()),
        };
        JailStanding::of_trial(JailTrial {
            rung,
            walls: JailLayer::ALL.map(wall).to_vec(),
        })
    }

    fn lower() -> JailStanding {
        standing(
            JailRung::Landlock,
            &[(JailLayer::Namespaces, "refused as in Docker")],
        )
    }

    fn raised(standing: &JailStanding, settings: JailConfig, level: Level) -> Risk {
        let mut risk = Risk {
            level,
            signals: Vec::new(),
        };
        standing.raise(settings, &mut risk);
        risk
    }

    const STRICT: JailConfig = JailConfig {
        require: JailStrength::Namespaces,
        accept: JailStrength::Namespaces,
    };
    const LENIENT: JailConfig = JailConfig {
        require: JailStrength::Landlock,
        accept: JailStrength::Landlock,
    };

    #[test]
    fn a_weaker_fence_never_lowers_the_risk() {
        let broken = standing(JailRung::Namespaces, &[(JailLayer::Files, "no landlock")]);
        let untried = JailStanding::none("x".to_owned());
        for (weak, settings) in [
            (lower(), JailConfig::standard()),
            (lower(), STRICT),
            (broken.clone(), LENIENT),
            (broken, STRICT),
            (untried, LENIENT),
        ] {
            assert!(!weak.is_contained(settings), "{weak:?} {settings:?}");
            for level in Level::ALL {
                let risk = raised(&weak, settings, level);
                assert!(risk.level > level || level == Level::L5, "{level:?}");
                assert_eq!(risk.signals.len(), 1);
            }
        }
    }

    #[test]
    fn a_fence_that_is_whole_or_accepted_raises_nothing() {
        let whole = standing(
            JailRung::Namespaces,
            &[(JailLayer::ControlGroup, "not delegated")],
        );
        for (standing, settings) in [
            (whole.clone(), STRICT),
            (whole, JailConfig::standard()),
            (lower(), LENIENT),
        ] {
            assert!(standing.is_contained(settings));
            assert_eq!(standing.refusal(settings), None);
            let risk = raised(&standing, settings, Level::L3);
            assert_eq!((risk.level, risk.signals.len()), (Level::L3, 0));
        }
        // Accepted or not, without namespaces there is no overlay.
        assert!(!lower().has_overlays());
    }

    #[test]
    fn a_required_rung_that_is_missing_is_said_with_its_remedy() {
        let refusal = lower().refusal(STRICT).unwrap_or_default();
        let begin = "`[sandbox.jail]` requires namespaces, and there are none here (refused as in Docker); ";
        assert!(refusal.starts_with(begin), "{refusal}");
        assert!(refusal.contains("AppArmor"), "{refusal}");
        assert_eq!(lower().refusal(JailConfig::standard()), None);
    }

    #[test]
    fn the_record_names_every_layer() {
        let record = lower().record();
        assert_eq!(record.rung.as_deref(), Some("landlock"));
        assert_eq!(record.up.len(), JailLayer::ALL.len() - 1);
        assert_eq!(record.missing, ["namespaces: refused as in Docker"]);
        let none = JailStanding::none("no kernel".to_owned()).record();
        assert_eq!(none.rung.as_deref(), Some("none"));
        assert_eq!(none.missing, ["no kernel"]);
    }
}
