//! A text that nothing shows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token, a code or a secret of a client.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct TokenText(String);

impl TokenText {
    /// Takes a text out of sight.
    #[must_use]
    pub fn new(text: impl Into<String>) -> TokenText {
        TokenText(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(…)")
    }
}
