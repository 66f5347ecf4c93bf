//! What readers of the audit ask for, and what they get.

use model::caller::Origin;
use model::record::audit::{Act, Closing, Notice, Opening, Status};
use serde::Serialize;

/// One call: how it began and, unless it is still running, how it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// What was asked.
    pub opening: Opening,
    /// How it ended.
    pub closing: Option<Closing>,
    /// The sequence of its open record.
    pub sequence: u64,
    /// The sequence of its close record.
    pub closed_sequence: Option<u64>,
    /// The hash of its last record, in hexadecimal.
    pub hash: String,
}

/// Something that happened beside calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoticeEntry {
    /// What happened.
    pub notice: Notice,
    /// The sequence of its record.
    pub sequence: u64,
    /// Its hash, in hexadecimal.
    pub hash: String,
}

/// A call or a notice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AuditItem {
    /// A call.
    Call(Box<AuditEntry>),
    /// A notice.
    Notice(NoticeEntry),
}

impl AuditItem {
    /// The sequence of its first record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        match self {
            AuditItem::Call(entry) => entry.sequence,
            AuditItem::Notice(notice) => notice.sequence,
        }
    }

    /// The sequence of its last record.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        match self {
            AuditItem::Call(entry) => entry.closed_sequence.unwrap_or(entry.sequence),
            AuditItem::Notice(notice) => notice.sequence,
        }
    }
}

/// Whether a filter selects calls, notices or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// Both.
    #[default]
    All,
    /// Calls.
    Calls,
    /// Notices.
    Notices,
}

/// A record that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its sequence.
    pub sequence: u64,
    /// Its hash, in hexadecimal.
    pub hash: String,
}

/// Which entries to read; a field that is not set selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Calls, notices or both; ignored by a list of one kind.
    pub rows: Rows,
    /// The tool's name as it was asked for.
    pub tool: Option<String>,
    /// Who asked.
    pub caller: Option<String>,
    /// How it ended.
    pub status: Option<Status>,
    /// The door.
    pub origin: Option<Origin>,
    /// Only calls the shadow rules decide differently.
    pub differs: bool,
    /// What happened, for notices; ignored for calls.
    pub act: Option<Act>,
    /// Opened at this time or later.
    pub since_ms: Option<i64>,
    /// Opened before this time.
    pub until_ms: Option<i64>,
    /// At most this many; [`crate::limit::LIST_MAX`] is the most a list returns.
    pub limit: Option<usize>,
    /// Only entries opened before this sequence, for paging.
    pub before: Option<u64>,
    /// Only entries opened after this sequence, to continue.
    pub after: Option<u64>,
}

/// What an id of a call or notice, or a prefix of one, finds.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundEntry {
    /// Nothing.
    None,
    /// One entry.
    One(Box<AuditEntry>),
    /// One notice.
    Notice(Box<NoticeEntry>),
    /// Several ids have this prefix; the first few.
    Several(Vec<String>),
}
