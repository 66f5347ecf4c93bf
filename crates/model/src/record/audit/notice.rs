//! A notice: a change outside of calls, such as a new key or an answered question. It
//! is one record of the chain, without a closing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::text;

/// The author of changes that no person made.
pub const SERVER: &str = "server";

/// A change: its kind, its author and the door.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The notice, a UUID.
    pub id: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The kind of change.
    pub act: Act,
    /// Who did it; [`SERVER`] if not known.
    pub by: String,
    /// Through what: `cli`, `inbox`, `file`.
    pub through: String,
    /// The tool, caller, question, key or file it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// In a sentence.
    pub message: String,
    /// Details, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

impl Notice {
    /// A notice without a subject. Long texts are cut.
    #[must_use]
    pub fn new(act: Act, by: &str, through: &str, message: &str) -> Notice {
        Notice {
            id: String::new(),
            at_ms: 0,
            act,
            by: cut(by),
            through: cut(through),
            about: None,
            message: text::elided(message, limits::NOTICE_MESSAGE_CHARS_MAX),
            details: BTreeMap::new(),
        }
    }

    /// Sets the subject.
    #[must_use]
    pub fn about(mut self, about: &str) -> Notice {
        self.about = Some(cut(about));
        self
    }

    /// Adds a detail. Beyond a bound, details are left out.
    #[must_use]
    pub fn detail(mut self, name: &str, value: &str) -> Notice {
        if self.details.len() < limits::NOTICE_DETAILS_MAX {
            self.details.insert(cut(name), cut(value));
        }
        self
    }

    /// The same, if the announced change failed afterwards.
    #[must_use]
    pub fn undone(mut self, why: &str) -> Notice {
        let message = format!("it failed: {why}; {}", self.message);
        self.message = text::elided(&message, limits::NOTICE_MESSAGE_CHARS_MAX);
        self.detail("undone", why)
    }
}

fn cut(words: &str) -> String {
    text::elided(words, limits::NOTICE_WORDS_CHARS_MAX)
}

/// Kinds of changes outside of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Another text of the operator's file is in force.
    #[serde(rename = "settings.changed")]
    SettingsChanged,
    /// Settings or rules could not be used; the last good ones stay.
    #[serde(rename = "settings.refused")]
    SettingsRefused,
    /// Other files of rules are in force.
    #[serde(rename = "rules.changed")]
    RulesChanged,
    /// A shadow candidate cannot be used.
    #[serde(rename = "shadow.refused")]
    ShadowRefused,
    /// A question was answered.
    #[serde(rename = "approval.answered")]
    ApprovalAnswered,
    /// A client answered faster than a person reads; the question waits on.
    #[serde(rename = "approval.unread")]
    ApprovalUnread,
    /// An approval was revoked.
    #[serde(rename = "approval.revoked")]
    ApprovalRevoked,
    /// A key was created.
    #[serde(rename = "key.made")]
    KeyMade,
    /// A key was replaced.
    #[serde(rename = "key.replaced")]
    KeyReplaced,
    /// A key was revoked.
    #[serde(rename = "key.revoked")]
    KeyRevoked,
    /// A tool was published.
    #[serde(rename = "tool.published")]
    ToolPublished,
    /// A tool is a draft again.
    #[serde(rename = "tool.unpublished")]
    ToolUnpublished,
    /// A tool was moved to the trash.
    #[serde(rename = "tool.deleted")]
    ToolDeleted,
    /// The owner granted a tool the access it needs.
    #[serde(rename = "tool.consented")]
    ToolConsented,
    /// The owner's grants for a tool were withdrawn.
    #[serde(rename = "tool.consent_withdrawn")]
    ToolConsentWithdrawn,
    /// A caller was paused.
    #[serde(rename = "caller.paused")]
    CallerPaused,
    /// A caller was resumed.
    #[serde(rename = "caller.resumed")]
    CallerResumed,
    /// A caller earned or lost a level.
    #[serde(rename = "trust.changed")]
    TrustChanged,
    /// The definitions of a server changed.
    #[serde(rename = "server.listed")]
    ServerListed,
    /// The process of a server connected to hosts, or tried to, outside of calls.
    #[serde(rename = "server.connected")]
    ServerConnected,
    /// The owner accepted what a server offers.
    #[serde(rename = "server.accepted")]
    ServerAccepted,
    /// The owner blocked a server or one of its tools.
    #[serde(rename = "server.blocked")]
    ServerBlocked,
    /// The owner added a server to the settings.
    #[serde(rename = "server.added")]
    ServerAdded,
    /// A server that is not in the settings was tried out.
    #[serde(rename = "server.tried")]
    ServerTried,
    /// The owner removed a server.
    #[serde(rename = "server.removed")]
    ServerRemoved,
    /// The owner restarted a server.
    #[serde(rename = "server.restarted")]
    ServerRestarted,
    /// A code to sign in at the Studio was created.
    #[serde(rename = "person.code_made")]
    PersonCodeMade,
    /// A person signed in at the Studio.
    #[serde(rename = "person.signed_in")]
    PersonSignedIn,
    /// Sessions of people at the Studio ended.
    #[serde(rename = "person.signed_out")]
    PersonSignedOut,
    /// A secret was set or removed.
    #[serde(rename = "secret.changed")]
    SecretChanged,
    /// A background job ended.
    #[serde(rename = "job.ended")]
    JobEnded,
    /// The log ends before a record that its index or the database remembers.
    #[serde(rename = "audit.cut")]
    AuditCut,
    /// The owner acknowledged that records are missing.
    #[serde(rename = "audit.cut_acknowledged")]
    AuditCutAcknowledged,
    /// Another log that this node vouches for signed heads that contradict each other.
    #[serde(rename = "audit.contradicted")]
    AuditContradicted,
    /// The owner knows why; that log is seen again as if for the first time.
    #[serde(rename = "audit.contradiction_acknowledged")]
    AuditContradictionAcknowledged,
}

impl Act {
    /// All of them.
    pub const ALL: [Act; 35] = [
        Act::SettingsChanged,
        Act::SettingsRefused,
        Act::RulesChanged,
        Act::ShadowRefused,
        Act::ApprovalAnswered,
        Act::ApprovalUnread,
        Act::ApprovalRevoked,
        Act::KeyMade,
        Act::KeyReplaced,
        Act::KeyRevoked,
        Act::ToolPublished,
        Act::ToolUnpublished,
        Act::ToolDeleted,
        Act::ToolConsented,
        Act::ToolConsentWithdrawn,
        Act::CallerPaused,
        Act::CallerResumed,
        Act::TrustChanged,
        Act::ServerListed,
        Act::ServerConnected,
        Act::ServerAccepted,
        Act::ServerBlocked,
        Act::ServerAdded,
        Act::ServerTried,
        Act::ServerRemoved,
        Act::ServerRestarted,
        Act::PersonCodeMade,
        Act::PersonSignedIn,
        Act::PersonSignedOut,
        Act::SecretChanged,
        Act::JobEnded,
        Act::AuditCut,
        Act::AuditCutAcknowledged,
        Act::AuditContradicted,
        Act::AuditContradictionAcknowledged,
    ];

    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Act::SettingsChanged => "settings.changed",
            Act::SettingsRefused => "settings.refused",
            Act::RulesChanged => "rules.changed",
            Act::ShadowRefused => "shadow.refused",
            Act::ApprovalAnswered => "approval.answered",
            Act::ApprovalUnread => "approval.unread",
            Act::ApprovalRevoked => "approval.revoked",
            Act::KeyMade => "key.made",
            Act::KeyReplaced => "key.replaced",
            Act::KeyRevoked => "key.revoked",
            Act::ToolPublished => "tool.published",
            Act::ToolUnpublished => "tool.unpublished",
            Act::ToolDeleted => "tool.deleted",
            Act::ToolConsented => "tool.consented",
            Act::ToolConsentWithdrawn => "tool.consent_withdrawn",
            Act::CallerPaused => "caller.paused",
            Act::CallerResumed => "caller.resumed",
            Act::TrustChanged => "trust.changed",
            Act::ServerListed => "server.listed",
            Act::ServerConnected => "server.connected",
            Act::ServerAccepted => "server.accepted",
            Act::ServerBlocked => "server.blocked",
            Act::ServerAdded => "server.added",
            Act::ServerTried => "server.tried",
            Act::ServerRemoved => "server.removed",
            Act::ServerRestarted => "server.restarted",
            Act::PersonCodeMade => "person.code_made",
            Act::PersonSignedIn => "person.signed_in",
            Act::PersonSignedOut => "person.signed_out",
            Act::SecretChanged => "secret.changed",
            Act::JobEnded => "job.ended",
            Act::AuditCut => "audit.cut",
            Act::AuditCutAcknowledged => "audit.cut_acknowledged",
            Act::AuditContradicted => "audit.contradicted",
            Act::AuditContradictionAcknowledged => "audit.contradiction_acknowledged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_act_is_kept_by_its_word() {
        for act in Act::ALL {
            let kept = serde_json::to_value(act).expect("a word");
            assert_eq!(kept, serde_json::Value::from(act.word()));
            assert_eq!(serde_json::from_value::<Act>(kept).ok(), Some(act));
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(1_000_000);
        let mut notice = Notice::new(Act::KeyMade, &long, &long, &long).about(&long);
        for index in 0..1_000 {
            notice = notice.detail(&format!("{index}{long}"), &long);
        }
        let bytes = serde_json::to_vec(&notice).expect("JSON").len();
        assert!(bytes < 1_000_000, "{bytes}");
    }
}
