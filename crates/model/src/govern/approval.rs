//! Approvals: scope, lifetime, binding, and the text of a question. The engine asks
//! people; the store keeps their answers.
//!
//! An approval is bound to a digest of everything that was shown and checked. Any
//! change makes another digest, and the approval no longer applies.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::caller::{Caller, CallerKind};
use crate::canonical::CanonicalError;
use crate::document::digest;
use crate::limits;
use crate::policy::EffectivePolicy;
use crate::policy::host_bound::HostList;
use crate::policy::risk::Level;
use crate::word::Word;

pub mod authority;
mod config;
mod question;

pub use authority::{AnswerRefusal, ApprovalSubject, Channel};
pub use config::ApprovalsConfig;
pub use question::{
    COPIES_CHANGES, ShownChanges, arguments, prompt, read_arguments, shown, shown_patch_line,
};

crate::words! {
    /// Which further calls an approval covers. Later is wider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ApprovalScope {
        /// Nothing else.
        Once = "once",
        /// The same tool with the same arguments, for a while.
        SameArguments = "same-arguments",
        /// The same tool, in the same session.
        Session = "session",
        /// The same tool, until its document or its policy changes.
        UntilChanged = "until-changed",
    }
}

impl ApprovalScope {
    /// The scope in words, for the person who approves.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            ApprovalScope::Once => "this call",
            ApprovalScope::SameArguments => "this tool with these arguments, for an hour",
            ApprovalScope::Session => "this tool in this session, for a day at most",
            ApprovalScope::UntilChanged => {
                "this tool until it or its policy changes, for thirty days at most"
            }
        }
    }

    /// Seconds it is valid. An approval for one call lasts as long as a question: as
    /// the operator sets.
    #[must_use]
    pub fn lasts_seconds(self, expire_seconds: u64) -> u64 {
        match self {
            ApprovalScope::Once => expire_seconds,
            ApprovalScope::SameArguments => limits::APPROVAL_SAME_ARGUMENTS_SECONDS,
            ApprovalScope::Session => limits::APPROVAL_SESSION_SECONDS,
            ApprovalScope::UntilChanged => limits::APPROVAL_UNTIL_CHANGED_SECONDS,
        }
    }
}

/// The scopes a risk allows, narrowest first.
#[must_use]
pub fn scopes(level: Level) -> &'static [ApprovalScope] {
    match level {
        Level::L5 => &[ApprovalScope::Once],
        Level::L4 => &[ApprovalScope::Once, ApprovalScope::SameArguments],
        Level::L3 => &[
            ApprovalScope::Once,
            ApprovalScope::SameArguments,
            ApprovalScope::Session,
        ],
        Level::L0 | Level::L1 | Level::L2 => ApprovalScope::ALL,
    }
}

/// The scopes an approval of one call may have. The scope `session` needs a session.
#[must_use]
pub fn scopes_of_call(level: Level, has_session: bool) -> Vec<ApprovalScope> {
    let fits = |scope: &ApprovalScope| *scope != ApprovalScope::Session || has_session;
    scopes(level).iter().copied().filter(fits).collect()
}

crate::words! {
    /// The state of a question.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ApprovalState {
        /// Not answered yet.
        Pending = "pending",
        /// Approved, and still valid.
        Approved = "approved",
        /// Approved, and used up.
        Used = "used",
        /// A person declined.
        Declined = "declined",
        /// The client dismissed it without an answer.
        Dismissed = "dismissed",
        /// The answer did not fit.
        Malformed = "malformed",
        /// Approved, and revoked.
        Revoked = "revoked",
        /// Not answered in time, or the approval is too old.
        Expired = "expired",
    }
}

impl ApprovalState {
    /// The state at a moment: open questions and valid approvals expire.
    #[must_use]
    pub fn at(self, expires_at_ms: i64, now_ms: i64) -> ApprovalState {
        match self {
            ApprovalState::Pending | ApprovalState::Approved if expires_at_ms <= now_ms => {
                ApprovalState::Expired
            }
            ApprovalState::Pending
            | ApprovalState::Approved
            | ApprovalState::Used
            | ApprovalState::Declined
            | ApprovalState::Dismissed
            | ApprovalState::Malformed
            | ApprovalState::Revoked
            | ApprovalState::Expired => self,
        }
    }
}

/// Everything an approval depends on.
#[derive(Clone, Copy, Debug)]
pub struct BindingInput<'a> {
    /// The document's digest.
    pub document: &'a str,
    /// The safety record in force.
    pub safety: &'a Value,
    /// The policy in force.
    pub policy: &'a EffectivePolicy,
    /// The badge.
    pub level: Level,
    /// Where the tool finds files.
    pub files: &'a str,
    /// Who calls.
    pub caller: &'a Caller,
    /// With what, checked.
    pub arguments: &'a Map<String, Value>,
}

/// The digests that an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// All of it.
    pub call: String,
    /// All but the arguments.
    pub tool: String,
}

impl BindingInput<'_> {
    /// The digests.
    pub fn binding(&self) -> Result<Binding, CanonicalError> {
        let policy = self.policy;
        let hosts: Vec<_> = policy.hosts.iter().map(ToString::to_string).collect();
        let bounds = &policy.bounds;
        let lists = |lists: &[HostList]| {
            let hosts = |list: &HostList| {
                let hosts = list.hosts.iter().map(ToString::to_string);
                json!({"by": list.by.to_string(), "hosts": hosts.collect::<Vec<_>>()})
            };
            lists.iter().map(hosts).collect::<Vec<_>>()
        };
        // A key that is named like the owner must not use the owner's approvals.
        let kind = match self.caller.kind {
            CallerKind::Owner => "owner",
            CallerKind::Named => "named",
        };
        let mut bound = json!({
            "document": self.document,
            "safety": self.safety,
            "policy": {
                "allowClasses": *policy.allow_classes,
                "denyClasses": *policy.deny_classes,
                "network": policy.network.word(),
                "hosts": hosts,
                "hostsWithin": lists(&bounds.within),
                "hostsNever": lists(&bounds.never),
                "fileRead": policy.file_read,
                "fileWrite": policy.file_write,
                "fsBasePath": policy.fs_base_path,
                "destructive": policy.destructive,
                // As text: canonical numbers end at 2^53.
                "statementsMax": policy.statements_max.to_string(),
                "timeoutMs": policy.timeout_ms.to_string(),
            },
            "risk": self.level.badge(),
            "files": self.files,
            "caller": [kind, self.caller.name],
        });
        let tool = digest::of_value(&bound)?;
        if let Some(members) = bound.as_object_mut() {
            let arguments = Value::Object(self.arguments.clone());
            members.insert("arguments".to_owned(), arguments);
        }
        let call = digest::of_value(&bound)?;
        Ok(Binding { call, tool })
    }
}

#[cfg(test)]
mod tests;
