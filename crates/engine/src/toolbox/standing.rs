//! How strong a fence this machine puts around child processes. It decides whether a level
//! that wants containment takes native tools, and raises their risk where it is weak.

use std::sync::OnceLock;

use model::policy::risk::{Level, Risk, Signal};

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

impl JailStanding {
    /// What this machine has, asked once.
    #[must_use]
    pub fn of_machine() -> &'static JailStanding {
        static STANDING: OnceLock<JailStanding> = OnceLock::new();
        STANDING.get_or_init(probe)
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

fn probe() -> JailStanding {
    let walls = jail::probe();
    let missing = |names_namespaces: bool| {
        let mut walls = walls.iter();
        walls.find_map(|wall| {
            let is_namespace = wall.layer.name() == "namespaces";
            let why = wall.missing.as_ref()?;
            (is_namespace == names_namespaces).then(|| format!("{}: {why}", wall.layer))
        })
    };
    if let Some(why) = missing(false) {
        return JailStanding::Missing(why);
    }
    let has_namespaces = walls.iter().any(|wall| wall.layer.name() == "namespaces");
    match (has_namespaces, missing(true)) {
        (true, None) => JailStanding::Namespaces,
        (_, Some(why)) => JailStanding::Landlock(why),
        (false, None) => JailStanding::Landlock("not built".to_owned()),
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
