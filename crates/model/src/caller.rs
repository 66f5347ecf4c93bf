//! Who calls, and through which door.

use serde::{Deserialize, Serialize};

/// Who asks for a call.
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

    /// Someone a door has made sure of.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Caller {
        Caller {
            name: name.into(),
            kind: CallerKind::Named,
        }
    }
}

/// How a caller's name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// Whoever can read and write the home folder.
    Owner,
    /// A door made sure of the name.
    Named,
}

/// The door a call came in by. What differs by door is a branch of the call's
/// path, nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A terminal.
    Cli,
    /// The Studio.
    Studio,
    /// An MCP client.
    Mcp,
    /// A script in code mode.
    Script,
    /// The Studio's chat.
    Chat,
}

impl Origin {
    /// All doors.
    pub const ALL: [Origin; 5] = [
        Origin::Cli,
        Origin::Studio,
        Origin::Mcp,
        Origin::Script,
        Origin::Chat,
    ];

    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Origin::Cli => "cli",
            Origin::Studio => "studio",
            Origin::Mcp => "mcp",
            Origin::Script => "script",
            Origin::Chat => "chat",
        }
    }
}
