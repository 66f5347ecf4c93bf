//! Who may approve: for each channel and caller, the risk up to which an answer counts.
//! The engine asks before it shows a question, when an answer comes, and when a call
//! uses the answer.
//!
//! Attack: the program that wants a call is also the program that shows the
//! question. Its word that a person agreed is worth what the owner says it is
//! worth, for that one caller, and nothing where the owner said nothing.

use crate::caller::{self, Caller, CallerKind};
use crate::govern::approval::ApprovalsConfig;
use crate::limits;
use crate::policy::risk::Level;

/// The default risk up to which a connected client may answer.
pub const CONNECTED_DEFAULT: Level = Level::L4;

crate::words! {
    /// The channel of an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Channel {
        /// A form in the caller's own client, while its call waits.
        Elicitation = "elicitation",
        /// The caller's own client brings the answer with another call.
        InputRequired = "input_required",
        /// Typed at the terminal of a command: `run`, `script run`, `approvals approve`.
        Terminal = "terminal",
        /// Typed at the terminal of `approvals watch`.
        Watch = "watch",
        /// A command that was told to answer without a terminal.
        Automation = "automation",
        /// The interface for operators, with an operator's key.
        Inbox = "inbox",
        /// The page for people, by one who signed in there.
        Studio = "studio",
    }
}

/// The evidence that a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The caller's own program says so.
    ClientWord,
    /// Keys pressed at a terminal of the owner's.
    Typed,
    /// A credential that only people are given and that calls no tool.
    Credential,
    /// A command of the owner's user, without a typed answer.
    Command,
}

impl Channel {
    /// The evidence behind answers of this channel.
    #[must_use]
    pub fn evidence(self) -> Evidence {
        match self {
            Channel::Elicitation | Channel::InputRequired => Evidence::ClientWord,
            Channel::Terminal | Channel::Watch => Evidence::Typed,
            Channel::Automation => Evidence::Command,
            Channel::Inbox | Channel::Studio => Evidence::Credential,
        }
    }

    /// Whether it is the caller's own client that answers.
    #[must_use]
    pub fn is_own_client(self) -> bool {
        self.evidence() == Evidence::ClientWord
    }
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// A call of this risk.
    Call(Level),
    /// A step in trust.
    Trust,
}

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRefusal {
    /// The caller's own client may answer up to this risk only; nothing if none.
    Client(Option<Level>),
    /// A command without a person may answer up to this risk only; nothing if none.
    Automation(Option<Level>),
    /// A person other than the caller must answer.
    Separate,
}

/// The risk up to which answers of this channel count for this caller's calls. `None`
/// means that no answer counts.
#[must_use]
pub fn up_to(channel: Channel, caller: &Caller, settings: &ApprovalsConfig) -> Option<Level> {
    if channel == Channel::Automation {
        return settings.automation;
    }
    if !channel.is_own_client() {
        // A person typed it, or a credential that only people have.
        return Some(Level::L5);
    }
    if settings.separate {
        return None;
    }
    client_up_to(&caller.name, settings)
}

/// The risk up to which a caller's own client may answer. L0 means never, also for a
/// tool of L0.
#[must_use]
pub fn client_up_to(name: &str, settings: &ApprovalsConfig) -> Option<Level> {
    let said = settings.answers.get(&caller::folded(name)).copied();
    said.filter(|level| *level > Level::L0)
}

/// Whether an answer of `by` through this channel counts for this caller's question
/// about `matter`.
pub fn counts(
    channel: Channel,
    matter: ApprovalSubject,
    caller: &Caller,
    by: &str,
    settings: &ApprovalsConfig,
) -> Result<(), AnswerRefusal> {
    let is_self = caller::is_same(&caller.name, by);
    match matter {
        // Invariant 7: whatever the settings, trust is raised by another person.
        ApprovalSubject::Trust if channel.is_own_client() || is_self => {
            Err(AnswerRefusal::Separate)
        }
        ApprovalSubject::Trust if channel == Channel::Automation => {
            Err(AnswerRefusal::Automation(None))
        }
        ApprovalSubject::Trust => Ok(()),
        ApprovalSubject::Call(_) if settings.separate && (channel.is_own_client() || is_self) => {
            Err(AnswerRefusal::Separate)
        }
        ApprovalSubject::Call(level) => match up_to(channel, caller, settings) {
            Some(most) if level <= most => Ok(()),
            most if channel == Channel::Automation => Err(AnswerRefusal::Automation(most)),
            most => Err(AnswerRefusal::Client(most)),
        },
    }
}

/// Who may answer a question about a call, for people.
#[must_use]
pub fn told(caller: &Caller, level: Level, settings: &ApprovalsConfig) -> String {
    let mut places = Vec::new();
    let is_owner = caller.kind == CallerKind::Owner;
    let by_client = counts(
        Channel::Elicitation,
        ApprovalSubject::Call(level),
        caller,
        &caller.name,
        settings,
    );
    match by_client {
        Ok(()) => places.push("the person at the caller's own client".to_owned()),
        Err(AnswerRefusal::Client(Some(most))) => {
            let note = format!(
                "not the caller's own client, which answers up to {}",
                most.badge()
            );
            return format!("{ELSEWHERE}; {note}");
        }
        Err(
            AnswerRefusal::Client(None) | AnswerRefusal::Automation(_) | AnswerRefusal::Separate,
        ) => {}
    }
    let elsewhere = match (settings.separate, is_owner) {
        (true, true) => "an operator in the inbox of this Ringfence",
        (true, false) | (false, true | false) => ELSEWHERE,
    };
    places.push(elsewhere.to_owned());
    places.join(", or ")
}

/// Where the questions of every caller can be answered.
pub const ELSEWHERE: &str = "a person at the terminal or the inbox of this Ringfence";

/// Milliseconds that reading a question of this text takes at least. An answer that
/// comes faster was given by a program.
#[must_use]
pub fn reading_ms(question: &str) -> u64 {
    let chars = u64::try_from(question.chars().count()).unwrap_or(u64::MAX);
    let reading = chars.saturating_mul(1_000) / limits::APPROVAL_READ_CHARS_PER_SECOND;
    limits::APPROVAL_READ_MS_MIN
        .saturating_add(reading)
        .min(limits::APPROVAL_READ_MS_MAX)
}

#[cfg(test)]
mod tests;
