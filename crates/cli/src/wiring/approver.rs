//! The person at the terminal of this process, as an approver. `ringfence approvals`
//! asks in the same words.

use std::pin::Pin;
use std::sync::Arc;

use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Question};
use model::govern::approval::ShownChanges;
use model::policy::risk::Level;

use crate::output::console::{self, Typed, Wanted};
use crate::output::sheet::{self, Sheet, SheetPart};

/// Characters of an id that people type.
const SHORT_ID_CHARS: usize = 8;

/// The prefix of an id, long enough to be unique.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_CHARS).collect()
}

/// The texts of a question.
pub(crate) struct QuestionWords<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) level: Level,
    pub(crate) caller: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) prompt: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) reasons: String,
    /// Which rule or setting requires a person.
    pub(crate) why: &'a str,
}

/// Which key means what.
pub(crate) type ScopeKeys = Vec<(&'static str, ApprovalScope)>;

impl QuestionWords<'_> {
    pub(crate) fn sheet(&self, scopes: &[ApprovalScope], otherwise: &str) -> (Sheet, ScopeKeys) {
        let risk = format!("[risk {} {}]", self.level.badge(), self.level.label());
        // Names come from callers and documents, so they are quoted and
        // short in our own line.
        let (caller, tool) = (sheet::name(self.caller), sheet::name(self.tool));
        let id = self.id.map(|id| format!("{}  ", short(id)));
        let keys: ScopeKeys = scopes.iter().map(|scope| (key(*scope), *scope)).collect();
        let meaning = |(key, scope): &(&'static str, ApprovalScope)| {
            ((*key).to_owned(), format!("yes, for {}", scope.meaning()))
        };
        let changes = ShownChanges::read(self.tool, self.arguments);
        let arguments = changes.as_ref().map(|changes| changes.arguments.as_str());
        let mut parts = vec![
            SheetPart::line("question", self.prompt),
            SheetPart::line("arguments", arguments.unwrap_or(self.arguments)),
        ];
        let shown = changes.iter().flat_map(ShownChanges::parts);
        parts.extend(shown.map(|(name, lines)| SheetPart::lines(name, lines)));
        if !self.reasons.is_empty() {
            parts.push(SheetPart::line("why this risk", &self.reasons));
        }
        if !self.why.is_empty() {
            parts.push(SheetPart::line("asked because", self.why));
        }
        let sheet = Sheet {
            head: format!(
                "{}{risk} {caller} wants to run {tool}",
                id.unwrap_or_default()
            ),
            parts,
            about: format!("{risk} {tool}, called by {caller}"),
            choices: keys.iter().map(meaning).collect(),
            otherwise: otherwise.to_owned(),
        };
        (sheet, keys)
    }
}

pub(crate) fn scope_of(keys: &ScopeKeys, typed: &str) -> Option<ApprovalScope> {
    let found = keys.iter().find(|(key, _)| *key == typed);
    found.map(|(_, scope)| *scope)
}

fn key(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Once => "y",
        ApprovalScope::SameArguments => "a",
        ApprovalScope::Session => "s",
        ApprovalScope::UntilChanged => "u",
    }
}

/// The person at the terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal;

/// Withdraws its question from the terminal when dropped.
struct Withdrawing(Arc<Wanted>);

impl Drop for Withdrawing {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

impl Approver for Terminal {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        let signals = question.risk.signals.iter();
        let reasons = signals.map(|signal| signal.words.as_str());
        let words = QuestionWords {
            id: None,
            level: question.risk.level,
            caller: &question.caller,
            tool: &question.tool,
            prompt: &question.prompt,
            arguments: &question.arguments,
            reasons: reasons.collect::<Vec<_>>().join("; "),
            why: &question.why,
        };
        let (sheet, keys) = words.sheet(&question.scopes, "no");
        Box::pin(async move {
            let wanted = Arc::new(Wanted::default());
            // Dropped with the future, whichever way it ends: no question stays on the
            // screen that no call waits for.
            let _withdrawing = Withdrawing(Arc::clone(&wanted));
            let typed = move || console::ask(&sheet, &wanted);
            // Reading a terminal blocks, and cancelling the future does not stop it:
            // the guard above withdraws the question instead.
            match tokio::task::spawn_blocking(typed).await {
                Ok(Typed::Key(key)) => match scope_of(&keys, &key) {
                    Some(scope) => ApprovalAnswer::Approved(scope),
                    None => ApprovalAnswer::Declined,
                },
                Ok(Typed::Otherwise) => ApprovalAnswer::Declined,
                Ok(Typed::Ended) => ApprovalAnswer::Dismissed,
                Ok(Typed::Withdrawn | Typed::Nowhere) | Err(_) => ApprovalAnswer::Unavailable,
            }
        })
    }
}
