//! Progressive listing, as the operator sets it.

use serde::Deserialize;

use super::Faults;
use crate::document::Document;
use crate::document::codecall::Metadata;

/// Progressive tool listing.
///
/// Default: off, clients list every tool in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressiveConfig {
    /// Whether there are `list_tools`, `load_tool` and `load_tool_resource`. Then
    /// clients list these instead of the tools, which they call as before.
    pub enabled: bool,
}

impl ProgressiveConfig {
    /// Whether a document stays on the list of clients that have the three.
    #[must_use]
    pub fn lists(self, document: &Document) -> bool {
        !self.enabled || Metadata::of(document).visible == Some(true)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProgressiveFile {
    enabled: Option<bool>,
}

impl Faults<'_> {
    /// Reads `[progressive]`, or `[disclosure]`, its old name.
    pub(super) fn progressive(
        &mut self,
        file: Option<ProgressiveFile>,
        old: Option<toml::Spanned<ProgressiveFile>>,
        outdated: &mut Vec<String>,
    ) -> ProgressiveConfig {
        let file = match (file, old) {
            (Some(_), Some(old)) => {
                let message =
                    "`[disclosure]` is the old name of `[progressive]`, which is there too";
                self.say(
                    &old,
                    message.to_owned(),
                    Some("remove `[disclosure]`".to_owned()),
                );
                old.into_inner()
            }
            (None, Some(old)) => {
                outdated.push(
                    "`[disclosure]` is now `[progressive]`; the old name works in this version \
                     only"
                        .to_owned(),
                );
                old.into_inner()
            }
            (file, None) => file.unwrap_or_default(),
        };
        ProgressiveConfig {
            enabled: file.enabled.unwrap_or_default(),
        }
    }
}
