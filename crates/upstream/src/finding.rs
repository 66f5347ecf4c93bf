//! Suspicious parts of a definition, or of the way a server is started.
//!
//! Structure holds: hidden characters, names of other tools, clones, encoded commands.
//! Words only warn, because words do not separate good from bad: a handful of strong
//! phrases catches one poisoned description in seven and flags many harmless ones. What
//! carries the weight is the pin and what the server can reach.

use model::text::{elided, one_line};
use model::words;

use crate::definition::ItemKey;
use crate::limit;

mod encoded;
mod hidden;
mod launch;
mod meaning;
mod neighbour;
mod secret;
mod shape;
mod text;
mod wording;

pub use launch::{LaunchSpec, is_exact, of_launch};
pub use neighbour::{KnownTool, Neighbours};
pub use text::{of_item, of_server};

words! {
    /// The code of a finding. It never changes its meaning.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FindingCode {
        /// An invisible character.
        Invisible = "text.invisible",
        /// A control that changes the direction of text.
        Direction = "text.direction",
        /// Tags that spell a hidden text.
        Tags = "text.tags",
        /// A character without a meaning of its own.
        PrivateUse = "text.private_use",
        /// A sequence that commands a terminal, or another control.
        Escape = "text.escape",
        /// Space that pushes text out of sight.
        Padding = "text.padding",
        /// A text that is too long to be read.
        LongText = "text.long",
        /// The name of another server's tool in a text.
        ForeignTool = "text.foreign_tool",
        /// The name of one of our own tools in a text.
        OwnTool = "text.own_tool",
        /// A command, encoded.
        EncodedCommand = "text.encoded_command",
        /// A readable text, encoded.
        EncodedText = "text.encoded_text",
        /// A name of several alphabets that look alike.
        MixedScript = "name.mixed_script",
        /// A name that can be taken for another.
        LookAlike = "name.look_alike",
        /// The words of another server's tool.
        Clone = "tool.clone",
        /// A schema that is nested deeply.
        DeepSchema = "schema.deep",
        /// A schema that is very large.
        LargeSchema = "schema.large",
        /// A reference that leads out of the document.
        ForeignReference = "schema.foreign_reference",
        /// An argument that travels as a header.
        HeaderArgument = "schema.header_argument",
        /// An order to a model, or markup that looks like one.
        Directive = "wording.directive",
        /// An attempt to replace what a model was told.
        Override = "wording.override",
        /// Something to be kept from people.
        Secrecy = "wording.secrecy",
        /// A claim to come before other tools.
        Precedence = "wording.precedence",
        /// Files and words of credentials.
        Credentials = "wording.credentials",
        /// A request to send data somewhere.
        Transfer = "wording.transfer",
        /// A program whose version is not exact.
        UnpinnedVersion = "launch.unpinned_version",
        /// More rights than a server needs.
        Privileged = "launch.privileged",
        /// A folder of the host inside a container.
        HostMount = "launch.host_mount",
        /// A shell that reads a command line.
        Shell = "launch.shell",
        /// A secret in plain text.
        PlainSecret = "launch.plain_secret",
        /// An address without encryption.
        PlainHttp = "launch.plain_http",
    }
}

words! {
    /// The effect of a finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FindingWeight {
        /// It is shown, and the risk may rise.
        Warn = "warn",
        /// The item is held until the owner accepts exactly this text.
        Hold = "hold",
    }
}

/// One suspicious thing, with evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamFinding {
    /// Its code.
    pub code: FindingCode,
    /// Where: the item, if it is about one.
    pub item: Option<ItemKey>,
    /// The field, such as `inputSchema.properties.path.description`.
    pub field: String,
    /// The place in the field's text, in characters from 0.
    pub position: usize,
    /// The text there, made safe to show.
    pub excerpt: String,
    /// The finding as a sentence without its full stop.
    pub message: String,
}

impl FindingCode {
    /// Its effect.
    #[must_use]
    pub fn weight(self) -> FindingWeight {
        match self {
            FindingCode::Invisible
            | FindingCode::Direction
            | FindingCode::Tags
            | FindingCode::PrivateUse
            | FindingCode::Escape
            | FindingCode::Padding
            | FindingCode::LongText
            | FindingCode::ForeignTool
            | FindingCode::OwnTool
            | FindingCode::EncodedCommand
            | FindingCode::MixedScript
            | FindingCode::LookAlike
            | FindingCode::Clone
            | FindingCode::DeepSchema
            | FindingCode::LargeSchema
            | FindingCode::ForeignReference => FindingWeight::Hold,
            FindingCode::EncodedText
            | FindingCode::HeaderArgument
            | FindingCode::Directive
            | FindingCode::Override
            | FindingCode::Secrecy
            | FindingCode::Precedence
            | FindingCode::Credentials
            | FindingCode::Transfer
            | FindingCode::UnpinnedVersion
            | FindingCode::Privileged
            | FindingCode::HostMount
            | FindingCode::Shell
            | FindingCode::PlainSecret
            | FindingCode::PlainHttp => FindingWeight::Warn,
        }
    }
}

impl UpstreamFinding {
    /// Its effect.
    #[must_use]
    pub fn weight(&self) -> FindingWeight {
        self.code.weight()
    }
}

/// The holding findings in one sentence; `None` if there are none. A seen item carries
/// it.
#[must_use]
pub fn hold(findings: &[UpstreamFinding]) -> Option<String> {
    let holds = |finding: &&UpstreamFinding| finding.weight() == FindingWeight::Hold;
    let mut holding = findings.iter().filter(holds);
    let first = holding.next()?;
    Some(match holding.count() {
        0 => format!("{} in `{}`", first.message, first.field),
        more => format!("{} in `{}`, and {more} more", first.message, first.field),
    })
}

/// Findings of one item, up to a bound.
#[derive(Debug)]
struct Findings {
    item: Option<ItemKey>,
    all: Vec<UpstreamFinding>,
}

impl Findings {
    fn new(item: Option<ItemKey>) -> Findings {
        Findings {
            item,
            all: Vec::new(),
        }
    }

    /// Adds a finding about a piece of a text, unless the field has one of its kind.
    fn add(
        &mut self,
        code: FindingCode,
        field: &str,
        text: &str,
        span: std::ops::Range<usize>,
        message: impl Into<String>,
    ) {
        // One of a kind for each field is enough for a person; a text of a thousand marks
        // is one finding.
        let is_known = self
            .all
            .iter()
            .any(|known| known.code == code && known.field == field);
        // A finding that holds is always kept, because it decides.
        let is_full = self.all.len() >= limit::ITEM_FINDINGS_MAX;
        let holds = |finding: &UpstreamFinding| finding.weight() == FindingWeight::Hold;
        let is_first_hold = code.weight() == FindingWeight::Hold && !self.all.iter().any(holds);
        if is_known || (is_full && !is_first_hold) {
            return;
        }
        self.all.push(UpstreamFinding {
            code,
            item: self.item.clone(),
            field: one_line(field),
            position: text
                .get(..span.start)
                .map_or(0, |before| before.chars().count()),
            excerpt: excerpt(text, span),
            message: message.into(),
        });
    }
}

/// Characters shown on either side of a finding.
const AROUND_CHARS: usize = 24;
/// Characters of a finding that are shown.
const EXCERPT_CHARS_MAX: usize = 120;

/// The piece of a text that was found, with a little on both sides, safe to show.
fn excerpt(text: &str, span: std::ops::Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or("");
    let found = text.get(span.clone()).unwrap_or("");
    let after = text.get(span.end..).unwrap_or("");
    let skipped = before.chars().count().saturating_sub(AROUND_CHARS);
    let head: String = before.chars().skip(skipped).collect();
    let tail: String = after.chars().take(AROUND_CHARS).collect();
    let open = if skipped > 0 { "…" } else { "" };
    let close = if after.chars().nth(AROUND_CHARS).is_some() {
        "…"
    } else {
        ""
    };
    let (head, tail) = (one_line(&head), one_line(&tail));
    format!(
        "{open}{head}{}{tail}{close}",
        elided(found, EXCERPT_CHARS_MAX)
    )
}

#[cfg(test)]
mod tests;
