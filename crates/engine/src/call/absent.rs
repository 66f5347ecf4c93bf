//! A tool that is not there, and one that may not be known: the same words to all but
//! its owner.

use std::time::Duration;

use model::caller::{CallerKind, Origin};
use model::limits;
use model::outcome::{CallError, Outcome};
use model::reason::Reason;
use model::text;

use super::{CallRequest, NAME_SHOWN_CHARS_MAX};
use crate::native;
use crate::record::Stop;
use crate::registry::Snapshot;

/// To its owner a tool that cannot be used is explained; to everybody else it
/// does not exist.
pub(super) fn hidden(request: &CallRequest, name: &str, error: CallError) -> Stop {
    if request.caller.kind == CallerKind::Owner {
        return Stop::refused(error);
    }
    let note = error.message.clone();
    Stop::refused(no_such_tool(name))
        .because(error.reason)
        .note(note)
}

/// There is no such tool; its owner is told what is known about it.
pub(super) fn absent(now: &Snapshot, request: &CallRequest, name: &str) -> Stop {
    let why = now.why_not(name);
    let mut stop = unknown(name, why.clone());
    if request.caller.kind == CallerKind::Owner {
        // A script is not sent to what it cannot call.
        let is_callable =
            |near: &&str| request.origin != Origin::Script || !native::is_self_reference(near);
        let nearest = now
            .nearest(name)
            .filter(is_callable)
            .map(|near| format!("; did you mean `{near}`?"));
        stop.says(&format!(": {why}{}", nearest.unwrap_or_default()));
    }
    stop
}

pub(super) fn unknown(name: &str, note: impl Into<String>) -> Stop {
    Stop::refused(no_such_tool(name)).note(note.into())
}

fn no_such_tool(name: &str) -> CallError {
    let name = text::elided(name, NAME_SHOWN_CHARS_MAX);
    CallError::new(Reason::ToolUnknown, format!("there is no tool `{name}`"))
}

/// Invariant 10, by the clock: a tool that is hidden takes a few microseconds more to
/// refuse than one that never was. Either answer leaves at the next of a row of even
/// moments, so that the difference does not show.
pub(super) async fn even_out(
    request: &CallRequest,
    outcome: &Outcome,
    began: tokio::time::Instant,
) {
    let reason = outcome.error.as_ref().map(|error| error.reason);
    let is_told = request.caller.kind == CallerKind::Owner;
    if is_told || reason != Some(Reason::ToolUnknown) {
        return;
    }
    tokio::time::sleep_until(began + even_moment(began.elapsed())).await;
}

/// The first even moment after so much time.
fn even_moment(elapsed: Duration) -> Duration {
    let step = u128::from(limits::UNKNOWN_STEP_MS);
    let moment = (elapsed.as_millis() / step + 1) * step;
    Duration::from_millis(u64::try_from(moment).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_little_longer_leaves_at_the_same_moment() {
        let moment = |us| even_moment(Duration::from_micros(us)).as_micros();
        for (absent_us, hidden_us, both_us) in [
            (90, 104, 2_000),
            (1_980, 1_999, 2_000),
            (2_000, 3_999, 4_000),
        ] {
            assert_eq!((moment(absent_us), moment(hidden_us)), (both_us, both_us));
        }
        assert_eq!(moment(u64::MAX / 2) % 2_000, 0);
    }
}
