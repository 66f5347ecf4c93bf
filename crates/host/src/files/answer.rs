//! What a function of `safety.fs` gives back, and the bound on its size.

use serde_json::Value;

use crate::files::limit;
use crate::files::refusal::PathRefusal;

/// The answer, and how many bytes of content were read or written for it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) value: Value,
    pub(crate) bytes: u64,
}

impl Done {
    /// An answer that moved no content.
    pub(crate) fn plain(value: impl Into<Value>) -> Done {
        Done {
            value: value.into(),
            bytes: 0,
        }
    }

    /// An answer made from content of this length.
    pub(crate) fn from_content(value: impl Into<Value>, length: usize) -> Done {
        Done {
            value: value.into(),
            bytes: u64::try_from(length).unwrap_or(u64::MAX),
        }
    }
}

/// An array that grows up to a bound on its items and one on its bytes.
#[derive(Debug)]
pub(crate) struct Items {
    values: Vec<Value>,
    bytes: usize,
    items_max: usize,
    reason: &'static str,
}

impl Items {
    /// An empty array; beyond its bound it refuses for this reason.
    pub(crate) fn new(items_max: usize, reason: &'static str) -> Items {
        Items {
            values: Vec::new(),
            bytes: 0,
            items_max,
            reason,
        }
    }

    /// One more, this long.
    pub(crate) fn push(
        &mut self,
        value: impl Into<Value>,
        length: usize,
    ) -> Result<(), PathRefusal> {
        if self.values.len() >= self.items_max {
            let message = format!("more than {} items", self.items_max);
            return Err(PathRefusal::runtime(self.reason, message));
        }
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > limit::ANSWER_BYTES_MAX {
            let message = format!("the answer has more than {} bytes", limit::ANSWER_BYTES_MAX);
            return Err(PathRefusal::runtime("answer-too-large", message));
        }
        self.values.push(value.into());
        Ok(())
    }

    /// One more text.
    pub(crate) fn push_text(&mut self, text: impl Into<String>) -> Result<(), PathRefusal> {
        let text = text.into();
        let length = text.len();
        self.push(text, length)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    /// The array.
    pub(crate) fn into_value(self) -> Value {
        Value::Array(self.values)
    }
}
