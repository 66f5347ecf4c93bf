//! Several calls that are made together, such as a model asks for in one turn.
//!
//! When a model writes a file and then reads it in one turn, order is meaning. So
//! calls that only read run at the same time, and any other runs alone, in the
//! order it was asked for. Each is a call like any other: it enters the one path,
//! and its result stops no other.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::BoxFuture;
use model::limits;
use model::record::mask::Masked;
use model::record::outcome::Outcome;

use crate::engine::Engine;
use crate::gates;
use crate::request::CallRequest;

/// More calls than may be made together. Nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given} calls were made together, at most {} are allowed; no call ran",
    limits::CALLS_TOGETHER_MAX
)]
pub struct TooManyCalls {
    /// How many there were.
    pub given: usize,
}

type Running<'a> = BoxFuture<'a, Masked<Outcome>>;

impl Engine {
    /// Makes calls together. Results are in the order of the calls.
    pub async fn call_many(
        &self,
        requests: Vec<CallRequest>,
    ) -> Result<Vec<Masked<Outcome>>, TooManyCalls> {
        let given = requests.len();
        if given > limits::CALLS_TOGETHER_MAX {
            return Err(TooManyCalls { given });
        }
        let mut outcomes = Vec::with_capacity(given);
        let mut group: Vec<CallRequest> = Vec::new();
        for request in requests {
            // Looked at when its turn comes: what went before may have changed it.
            let is_joining = self.may_overlap(&request);
            if !is_joining {
                self.run_group(&mut group, &mut outcomes).await;
            }
            group.push(request);
            if !is_joining {
                self.run_group(&mut group, &mut outcomes).await;
            }
        }
        self.run_group(&mut group, &mut outcomes).await;
        Ok(outcomes)
    }

    /// Whether a call may run beside others: it only reads, or the operator wants
    /// everything at the same time. What cannot be told runs alone.
    fn may_overlap(&self, request: &CallRequest) -> bool {
        let now = self.registry().current();
        if now.config.calls.concurrent {
            return true;
        }
        let Ok(held) = gates::settle(&now, request) else {
            return false;
        };
        let document = &held.found.usable.document;
        let none = serde_json::Map::new();
        let arguments = request.arguments.as_object().unwrap_or(&none);
        let stated = held.found.body.stated_actions(arguments, &held.policy);
        let known = &now.config.rules.actions;
        let actions = known.of_call(document, &held.policy, stated.as_deref());
        actions.iter().all(model::govern::action::Action::is_read)
    }

    /// Runs calls at the same time, so many at once, and adds their outcomes.
    async fn run_group(&self, group: &mut Vec<CallRequest>, outcomes: &mut Vec<Masked<Outcome>>) {
        let mut waiting = std::mem::take(group).into_iter();
        let mut running: Vec<(usize, Running<'_>)> = Vec::new();
        let mut done: Vec<(usize, Masked<Outcome>)> = Vec::new();
        let mut next = 0;
        loop {
            while running.len() < limits::CALLS_AT_ONCE_MAX
                && let Some(request) = waiting.next()
            {
                running.push((next, self.call(request)));
                next += 1;
            }
            if running.is_empty() {
                break;
            }
            done.extend(some_end(&mut running).await);
        }
        done.sort_by_key(|(place, _)| *place);
        outcomes.extend(done.into_iter().map(|(_, outcome)| outcome));
    }
}

/// Waits until at least one has ended. They run in the caller's own task, because
/// a question to a client finds its stream by that.
async fn some_end(running: &mut Vec<(usize, Running<'_>)>) -> Vec<(usize, Masked<Outcome>)> {
    // Each wake-up polls all of them: a group is small.
    poll_fn(|context| {
        let mut ended = Vec::new();
        running.retain_mut(|(place, call)| match call.as_mut().poll(context) {
            Poll::Ready(outcome) => {
                ended.push((*place, outcome));
                false
            }
            Poll::Pending => true,
        });
        match ended.is_empty() {
            true => Poll::Pending,
            false => Poll::Ready(ended),
        }
    })
    .await
}
