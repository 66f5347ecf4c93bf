//! The facts about a tool, shared by all its calls and spelled once: they are the
//! longest part of a record and the same from call to call.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::canonical::CanonicalError;
use crate::record::audit::{ToolFacts, spell};

/// Facts that do not change, and their canonical text, made when first needed.
#[derive(Clone)]
pub struct SharedFacts(Arc<Inner>);

struct Inner {
    facts: ToolFacts,
    text: OnceLock<String>,
}

impl SharedFacts {
    /// Their canonical text.
    pub(crate) fn text(&self) -> Result<&str, CanonicalError> {
        if let Some(text) = self.0.text.get() {
            return Ok(text);
        }
        // Made before it is put there: `get_or_init` takes no error.
        let text = spell::facts(&self.0.facts)?;
        Ok(self.0.text.get_or_init(|| text))
    }
}

impl From<ToolFacts> for SharedFacts {
    fn from(facts: ToolFacts) -> SharedFacts {
        let text = OnceLock::new();
        SharedFacts(Arc::new(Inner { facts, text }))
    }
}

impl Deref for SharedFacts {
    type Target = ToolFacts;

    fn deref(&self) -> &ToolFacts {
        &self.0.facts
    }
}

impl fmt::Debug for SharedFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.facts.fmt(f)
    }
}

impl PartialEq for SharedFacts {
    fn eq(&self, other: &SharedFacts) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.facts == other.0.facts
    }
}

impl Serialize for SharedFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.facts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedFacts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedFacts, D::Error> {
        ToolFacts::deserialize(deserializer).map(SharedFacts::from)
    }
}
