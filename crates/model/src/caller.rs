//! The caller of a tool, and the door it uses.

use serde::{Deserialize, Serialize};

/// The caller of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The name rules and the audit know the caller by.
    pub name: String,
    /// How the name is known.
    pub kind: CallerKind,
}

impl Caller {
    /// The owner of the home folder, at this machine.
    #[must_use]
    pub fn owner() -> Caller {
        Caller {
            name: "owner".to_owned(),
            kind: CallerKind::Owner,
        }
    }

    /// A caller that a door authenticated.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Caller {
        Caller {
            name: name.into(),
            kind: CallerKind::Named,
        }
    }
}

/// The prefix of the names of an issuer's subjects. No key can have such a name.
pub const SUBJECT_PREFIX: &str = "oauth:";

/// A name as it is looked up. Names of our own keys are ASCII and case-insensitive.
/// Names of an issuer's subjects are case-sensitive: `KIM` and `kim` may be two people.
#[must_use]
pub fn folded(name: &str) -> String {
    match name.get(..SUBJECT_PREFIX.len()) {
        // The prefix is ours, so its case does not matter.
        Some(head) if head.eq_ignore_ascii_case(SUBJECT_PREFIX) => {
            let subject = name.get(SUBJECT_PREFIX.len()..).unwrap_or_default();
            format!("{SUBJECT_PREFIX}{subject}")
        }
        Some(_) | None => name.to_ascii_lowercase(),
    }
}

/// Whether two names mean the same caller.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// How a caller's name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// The owner: whatever can read and write the home folder.
    Owner,
    /// A door authenticated the name.
    Named,
}

/// The door of a call. Only the path of a call branches by door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A terminal.
    Cli,
    /// An MCP client.
    Mcp,
    /// A script in code mode.
    Script,
    /// A person at the Studio.
    Studio,
}

impl Origin {
    /// All doors.
    pub const ALL: [Origin; 4] = [Origin::Cli, Origin::Mcp, Origin::Script, Origin::Studio];

    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Origin::Cli => "cli",
            Origin::Mcp => "mcp",
            Origin::Script => "script",
            Origin::Studio => "studio",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_fold_and_an_issuers_do_not() {
        for (one, other, same) in [
            ("Ann", "ann", true),
            ("ann", "anna", false),
            // The Kelvin sign is a small k to Unicode, and no letter of a key's name.
            ("\u{212a}im", "kim", false),
            ("oauth:KIM", "oauth:kim", false),
            ("oauth:\u{212a}im", "oauth:kim", false),
            ("OAUTH:kim", "oauth:kim", true),
            ("oauth:kim", "kim", false),
            ("oauth:", "OAuth:", true),
            ("é", "É", false),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        }
    }
}
