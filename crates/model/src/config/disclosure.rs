//! Progressive disclosure, as the operator sets it.

use serde::Deserialize;

use crate::document::Document;
use crate::document::codecall::Metadata;

/// Lists that tell a little first and more when asked.
///
/// Default: off, clients list every tool in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisclosureConfig {
    /// Whether there are `list_tools`, `load_tool` and `load_tool_resource`. Then
    /// clients list these instead of the tools, which they call as before.
    pub enabled: bool,
}

impl DisclosureConfig {
    /// Whether a document stays on the list of clients that have the three.
    #[must_use]
    pub fn lists(self, document: &Document) -> bool {
        !self.enabled || Metadata::of(document).visible == Some(true)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DisclosureFile {
    enabled: Option<bool>,
}

impl DisclosureFile {
    pub(super) fn resolve(self) -> DisclosureConfig {
        DisclosureConfig {
            enabled: self.enabled.unwrap_or_default(),
        }
    }
}
