//! Asking a person. A question says what would run, with what, for whom and how
//! risky it is; an answer counts for exactly that, and for no more than its scope.
//!
//! `obtain` is the step of a call, with all its branches; `inbox` is where the owner
//! and operators answer; `answer` writes every answer down. Questions and answers are
//! committed before anyone acts on them, so that they survive this process and no
//! answer is used twice.

mod answer;
pub mod inbox;
mod obtain;

use std::sync::Arc;

use model::word::Word as _;
use store::Store;
use tokio::sync::Notify;

use crate::registry::Registry;
use crate::services::{Alarm, Clock, Observer};

pub use crate::question::{ApprovalAnswer, Approver, Question};
pub use answer::AnswerFault;
pub use inbox::{ApprovalDecision, ApprovalVerdict, Inbox, Listed, Listing};
pub use model::govern::approval::{ApprovalScope, Channel};
#[cfg(feature = "testing")]
pub use store::approvals::ApprovalChange;

pub(crate) use answer::{AnswerWriter, expiry, session_digest};
pub(crate) use obtain::{Asking, obtain};

/// The questions and answers of a home.
#[derive(Debug)]
pub(crate) struct Questions {
    writer: AnswerWriter,
    /// The person at this process's own terminal, if there is one.
    approver: Option<Arc<dyn Approver>>,
    observer: Option<Observer>,
}

impl Questions {
    pub(crate) fn new(
        (store, clock, alarm): (&Store, &Clock, &Alarm),
        registry: Arc<Registry>,
        approver: Option<Arc<dyn Approver>>,
        observer: Option<Observer>,
    ) -> Questions {
        Questions {
            writer: AnswerWriter {
                store: store.clone(),
                clock: clock.clone(),
                alarm: alarm.clone(),
                registry,
                answers: Arc::new(Notify::new()),
            },
            approver,
            observer,
        }
    }

    fn store(&self) -> &Store {
        &self.writer.store
    }

    fn now_ms(&self) -> i64 {
        self.writer.clock.now_ms()
    }

    fn observe(&self, step: &str) {
        if let Some(observer) = &self.observer {
            observer.see(step);
        }
    }
}

/// `once, same-arguments`.
pub(crate) fn words(scopes: &[ApprovalScope]) -> String {
    let words: Vec<_> = scopes.iter().map(|scope| scope.word()).collect();
    words.join(", ")
}
