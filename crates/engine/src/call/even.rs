//! Answers about tools that are not there leave at even moments.

use std::time::Duration;

use model::caller::CallerKind;
use model::limits;
use model::reason::Reason;
use model::record::outcome::Outcome;

use crate::request::CallRequest;

/// Invariant 10, by the clock. The gates do the same work for a hidden tool and an
/// absent one; what is left of a difference (a lookup, a longer note in the record) is
/// covered by letting both answers leave at the next of a row of even moments.
pub(super) async fn even_out(
    request: &CallRequest,
    outcome: &Outcome,
    began: tokio::time::Instant,
) {
    let reason = outcome.error.as_ref().map(|error| error.reason);
    // The owner is told why a tool is missing, so there is nothing to hide from it.
    let is_told = request.caller.kind == CallerKind::Owner;
    if is_told || reason != Some(Reason::ToolUnknown) {
        return;
    }
    tokio::time::sleep_until(began + even_moment(began.elapsed())).await;
}

/// The first even moment after so much time.
fn even_moment(elapsed: Duration) -> Duration {
    let step = u128::from(limits::UNKNOWN_STEP_MS);
    // At least one step, never zero: an answer that takes longer than a step leaves at
    // the next one, so no length of work shows through but in whole steps.
    let moment = (elapsed.as_millis() / step + 1) * step;
    Duration::from_millis(u64::try_from(moment).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_similar_duration_leave_at_the_same_moment() {
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
