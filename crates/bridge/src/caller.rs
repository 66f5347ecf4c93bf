//! The caller's side of a call: who hears of its progress, and who answers a server's
//! question.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

/// Asks the person behind a call.
pub trait Elicitor: Send + Sync + fmt::Debug {
    /// Puts a form to the person.
    fn ask(&self, question: ElicitQuestion) -> BoxFuture<'_, ElicitAnswer>;
}

/// What a server asks.
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitQuestion {
    /// What the server calls it, in the era where questions have names.
    pub key: Option<String>,
    /// The parameters of `elicitation/create`.
    pub form: Value,
}

/// What the person did.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitAnswer {
    /// Filled the form in.
    Accept(Option<Value>),
    /// Said no, or cannot be asked.
    Decline,
    /// Closed the form.
    Cancel,
}

/// Is told how a call goes on: how much is done, of how much, in which words.
#[derive(Clone)]
pub struct ProgressSink(Arc<TellProgress>);

type TellProgress = dyn Fn(f64, Option<f64>, Option<&str>) + Send + Sync;

impl ProgressSink {
    /// Calls `tell` with each message.
    pub fn new(tell: impl Fn(f64, Option<f64>, Option<&str>) + Send + Sync + 'static) -> Self {
        ProgressSink(Arc::new(tell))
    }

    pub(crate) fn tell(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        (self.0)(progress, total, message);
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}
