//! Limits on calls: how many in a minute, how many at one time, how many in a day.
//!
//! What was used is in the store, one count for all processes of the home, so that
//! neither a restart nor a second process gives more. A call is counted when the
//! gates before have let it in and before a person is asked; it holds its place
//! until it ends, however it ends, and gives its unit back if it never ran.

use model::access::quota::{self, Exceeded, Limit, Visit};
use model::outcome::CallError;
use model::reason::Reason;
use model::text;
use store::Store;
use store::usage::Key;

use crate::call::{CallRequest, Purpose};
use crate::callers::shown;
use crate::record::Stop;
use crate::{Engine, causes};

/// What one call costs of a day's units.
const UNITS: u64 = 1;

/// What is noted where no limit is about the call.
const NONE_HOLDS: &str = "none holds";

/// A call that was let in. Dropped, it gives its place back.
#[derive(Debug)]
pub(crate) struct Admission {
    store: Store,
    keys: Vec<Key>,
    at_ms: u64,
    has_run: bool,
    is_over: bool,
}

/// Do the limits let the call in?
pub(crate) async fn admit(
    engine: &Engine,
    limits: &[Limit],
    request: &CallRequest,
    tool: &str,
    groups: &[String],
) -> Result<(Option<Admission>, String), Stop> {
    if request.purpose == Purpose::LocalPass {
        return Ok((None, "a Local Pass".to_owned()));
    }
    let at_ms = u64::try_from(engine.now_ms()).unwrap_or(0);
    let caller = shown(&request.caller);
    let held = holding(limits, &caller, tool, groups, at_ms);
    if held.is_empty() {
        return Ok((None, NONE_HOLDS.to_owned()));
    }
    let note = text::count(held.len(), "limit");
    let store = engine.store().clone();
    let (tool, groups) = (tool.to_owned(), groups.to_vec());
    let entering = move || {
        let visit = Visit {
            caller: &caller,
            groups: &groups,
            tool: &tool,
            units: UNITS,
            at_ms,
        };
        enter(store, &held, &visit)
    };
    // Whoever stops waiting drops the admission, and with it its place.
    match tokio::task::spawn_blocking(entering).await {
        Ok(Ok(admission)) => Ok((Some(admission), note)),
        Ok(Err(Refusal::Exceeded(exceeded))) => Err(refused(&exceeded)),
        Ok(Err(Refusal::Unavailable(why))) => Err(unavailable(engine, &why)),
        Err(_) => Err(unavailable(engine, "the thread that counts died")),
    }
}

/// The limits a call would count under.
fn holding(
    limits: &[Limit],
    caller: &str,
    tool: &str,
    groups: &[String],
    at_ms: u64,
) -> Vec<Limit> {
    let visit = Visit {
        caller,
        groups,
        tool,
        units: UNITS,
        at_ms,
    };
    let held = limits.iter().filter(|limit| limit.holds_for(&visit));
    held.cloned().collect()
}

/// What `explain` says of the limits: which would count the call, without counting it.
pub(crate) fn told(
    limits: &[Limit],
    request: &CallRequest,
    tool: &str,
    groups: &[String],
) -> String {
    let held = holding(limits, &shown(&request.caller), tool, groups, 0);
    let ids: Vec<_> = held.iter().map(|limit| limit.id.as_str()).collect();
    match ids.is_empty() {
        true => NONE_HOLDS.to_owned(),
        false => format!("a call counts under {}", ids.join(", ")),
    }
}

enum Refusal {
    Exceeded(Exceeded),
    Unavailable(String),
}

fn enter(store: Store, held: &[Limit], visit: &Visit<'_>) -> Result<Admission, Refusal> {
    let caller = visit.caller.to_lowercase();
    let key = |limit: &Limit| (limit.id.clone(), caller.clone());
    let keys: Vec<Key> = held.iter().map(key).collect();
    let usage = store.usage();
    let entered = usage.change(&keys, visit.at_ms, |tallies| {
        let used = std::mem::take(tallies);
        let mut both: Vec<_> = held.iter().zip(used).collect();
        let entered = quota::enter(&mut both, visit, usage.process());
        tallies.extend(both.into_iter().map(|(_, tally)| tally));
        entered
    });
    match entered {
        Ok(Some(Ok(()))) => Ok(Admission {
            at_ms: visit.at_ms,
            keys,
            has_run: false,
            is_over: false,
            store,
        }),
        Ok(Some(Err(exceeded))) => Err(Refusal::Exceeded(exceeded)),
        Ok(None) => Err(Refusal::Unavailable(
            "there are too many callers to count".to_owned(),
        )),
        Err(fault) => Err(Refusal::Unavailable(causes(&fault))),
    }
}

/// Says what is used up and when it makes sense to try again.
fn refused(exceeded: &Exceeded) -> Stop {
    let again = match exceeded.retry_after_ms {
        Some(ms) => format!("try again in {} s", ms.div_ceil(1_000)),
        None => "try again when one has ended".to_owned(),
    };
    let message = format!("{exceeded}; it did not run, {again}");
    Stop::refused(CallError::passing(Reason::LimitExceeded, message))
}

fn unavailable(engine: &Engine, why: &str) -> Stop {
    engine.alarm(&format!("calls cannot be counted: {why}"));
    let message = "it cannot be looked up how much you used so far; it did not run";
    let error = CallError::passing(Reason::LimitUnavailable, message);
    Stop::refused(error).note(why.to_owned())
}

impl Admission {
    /// From here on it has used its unit.
    pub(crate) fn runs(&mut self) {
        self.has_run = true;
    }

    /// The call is over.
    pub(crate) async fn leave(mut self, engine: &Engine) {
        let leaving = self.leaving();
        let left = tokio::task::spawn_blocking(leaving).await;
        let why = match left {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(_) => "the thread that counts died".to_owned(),
        };
        // It counts as running until this process ends, which is on the safe side.
        engine.alarm(&format!("the end of a call could not be counted: {why}"));
    }

    fn leaving(&mut self) -> impl FnOnce() -> Result<(), String> + Send + use<> {
        self.is_over = true;
        let (store, keys) = (self.store.clone(), std::mem::take(&mut self.keys));
        let (at_ms, units_back) = (self.at_ms, if self.has_run { 0 } else { UNITS });
        move || {
            let usage = store.usage();
            let left = usage.change(&keys, at_ms, |tallies| {
                for tally in tallies {
                    tally.leave(usage.process(), at_ms, units_back);
                }
            });
            left.map(|_| ()).map_err(|fault| causes(&fault))
        }
    }
}

impl Drop for Admission {
    /// The task of the call is gone: cancelled with its door, or panicking.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let leaving = self.leaving();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn_blocking(leaving);
            }
            Err(_) => {
                let _ = leaving();
            }
        }
    }
}
