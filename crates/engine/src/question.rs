//! What a person is asked about a call, who asks them, and what comes back.

use std::fmt::{self, Write as _};
use std::pin::Pin;

use model::govern::approval::{ApprovalScope, ApprovalState, Channel, ShownChanges};
use model::policy::risk::Risk;
use model::{limits, text};

/// Someone who can be asked.
pub trait Approver: fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer. Dropping the future takes the question
    /// back: another person answered, or the call no longer waits.
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>>;

    /// How its answers come, where it is the caller's own client. The person at this
    /// process's own terminal is [`Channel::Terminal`], whatever this says.
    fn channel(&self) -> Channel {
        Channel::Elicitation
    }
}

/// What a person is asked. Secrets are masked and hidden characters shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The call it is about.
    pub call_id: String,
    /// The tool that would run.
    pub tool: String,
    /// The caller as people see it.
    pub caller: String,
    /// The badge and why.
    pub risk: Risk,
    /// The question in words, the document's or ours.
    pub prompt: String,
    /// The arguments, as one line of JSON, whole.
    pub arguments: String,
    /// What the answer counts for: a digest of document, policy, arguments and
    /// caller.
    pub binding: String,
    /// The name of the question in the inbox.
    pub id: String,
    /// When it can no longer be answered, in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// What an approval may count for; the risk decides.
    pub scopes: Vec<ApprovalScope>,
    /// Why a person is asked: the rule and its reason, or what else wants it.
    pub why: String,
    /// Who may answer, in words.
    pub may_answer: String,
}

impl Question {
    /// All of it in a few lines, of long arguments both ends; changes of files whole. The document's words come
    /// after ours and cannot stand in for them.
    #[must_use]
    pub fn text(&self) -> String {
        let level = self.risk.level;
        let changes = ShownChanges::read(&self.tool, &self.arguments);
        let arguments = changes.as_ref().map(|changes| &changes.arguments);
        let arguments = arguments.unwrap_or(&self.arguments);
        let mut text = format!(
            "[risk {} {}] {} wants to run {}\n{}\narguments: {}",
            level.badge(),
            level.label(),
            self.caller,
            self.tool,
            self.prompt,
            text::elided(arguments, limits::APPROVAL_ARGUMENTS_CHARS_MAX)
        );
        // Whole: a yes counts for every one of these files. Behind bars, so that no line of a
        // file reads as one of ours.
        for (name, lines) in changes.iter().flat_map(ShownChanges::parts) {
            let _ = write!(text, "\n{name}:");
            for line in lines {
                let _ = write!(text, "\n| {line}");
            }
        }
        let reasons = self.risk.signals.iter().map(|signal| signal.words.as_str());
        let reasons: Vec<_> = reasons.take(limits::APPROVAL_REASONS_MAX).collect();
        if !reasons.is_empty() {
            let _ = write!(text, "\nrisk: {}", reasons.join("; "));
        }
        let _ = write!(
            text,
            "\nasked because: {}\nmay answer: {}",
            self.why, self.may_answer
        );
        text
    }
}

/// What a person said, or what came instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Run it, and these calls after it.
    Approved(ApprovalScope),
    /// The person said no.
    Declined,
    /// The question was put away without an answer.
    Dismissed,
    /// No one answered in time.
    TimedOut,
    /// There was no one to ask.
    Unavailable,
    /// A yes that came faster than a person reads: the client did not show the question.
    NotRendered,
    /// An answer that does not fit the question.
    Malformed,
    /// The answer will come with another call.
    Deferred,
}

impl ApprovalAnswer {
    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ApprovalAnswer::Approved(_) => "approved",
            ApprovalAnswer::Declined => "declined",
            ApprovalAnswer::Dismissed => "dismissed",
            ApprovalAnswer::TimedOut => "timed out",
            ApprovalAnswer::Unavailable => "unavailable",
            ApprovalAnswer::NotRendered => "not rendered",
            ApprovalAnswer::Malformed => "malformed",
            ApprovalAnswer::Deferred => "deferred",
        }
    }

    /// What it makes of a question; nothing if the question still waits.
    pub(crate) fn settles(self) -> Option<(ApprovalState, Option<ApprovalScope>)> {
        match self {
            ApprovalAnswer::Approved(scope) => Some((ApprovalState::Approved, Some(scope))),
            ApprovalAnswer::Declined => Some((ApprovalState::Declined, None)),
            ApprovalAnswer::Dismissed => Some((ApprovalState::Dismissed, None)),
            ApprovalAnswer::Malformed => Some((ApprovalState::Malformed, None)),
            ApprovalAnswer::TimedOut
            | ApprovalAnswer::Unavailable
            | ApprovalAnswer::NotRendered
            | ApprovalAnswer::Deferred => None,
        }
    }
}
