//! Limits on calls: how many in a minute, how many at one time, how many in a day.
//!
//! What was used is in the store, one count for all processes of the home, so that
//! neither a restart nor a second process gives more. A call is counted when the
//! gates before have let it in and before a person is asked; it holds its place
//! until it ends, however it ends, and gives its units back if it never ran.

use model::access::quota::{self, Again, Day, Exceeded, Limit, Tally, Visit};
use model::config::Config;
use model::outcome::CallError;
use model::reason::Reason;
use model::text;
use store::Store;
use store::usage::UsageKey;

use crate::call::{CallRequest, Purpose};
use crate::callers::shown;
use crate::record::Stop;
use crate::{Engine, causes};

/// What is noted where no limit is about the call.
const NONE_HOLDS: &str = "none holds";

/// A call that was let in. Dropped, it gives its place back.
#[derive(Debug)]
pub(crate) struct Admission {
    store: Store,
    keys: Vec<UsageKey>,
    at_ms: u64,
    units: u64,
    has_run: bool,
    is_over: bool,
}

/// Do the limits let the call in?
pub(crate) async fn admit(
    engine: &Engine,
    config: &Config,
    request: &CallRequest,
    tool: &str,
    groups: &[String],
) -> Result<(Option<Admission>, String), Stop> {
    if request.purpose == Purpose::LocalPass {
        return Ok((None, "a Local Pass".to_owned()));
    }
    let caller = shown(&request.caller);
    let visit = visit(engine, config, &caller, tool, groups);
    let held = holding(&config.limits, &visit);
    if held.is_empty() {
        return Ok((None, NONE_HOLDS.to_owned()));
    }
    let mut note = text::count(held.len(), "limit");
    if held.iter().any(|limit| limit.units_per_day.is_some()) {
        note.push_str(&format!("; it costs {} of the day", counted(visit.units)));
    }
    let store = engine.store().clone();
    let (units, at_ms) = (visit.units, visit.at_ms);
    let (caller, tool, groups) = (caller.clone(), tool.to_owned(), groups.to_vec());
    let entering = move || {
        let visit = Visit {
            caller: &caller,
            groups: &groups,
            tool: &tool,
            units,
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

/// A call at the door, with what it costs.
fn visit<'a>(
    engine: &Engine,
    config: &Config,
    caller: &'a str,
    tool: &'a str,
    groups: &'a [String],
) -> Visit<'a> {
    Visit {
        caller,
        groups,
        tool,
        units: config.costs.of(tool),
        at_ms: u64::try_from(engine.now_ms()).unwrap_or(0),
    }
}

/// The limits a call would count under.
fn holding(limits: &[Limit], visit: &Visit<'_>) -> Vec<Limit> {
    let held = limits.iter().filter(|limit| limit.holds_for(visit));
    held.cloned().collect()
}

/// What the limits would say to a call, without counting it: `explain`.
pub(crate) fn told(
    engine: &Engine,
    config: &Config,
    request: &CallRequest,
    tool: &str,
    groups: &[String],
) -> Result<((), String), Stop> {
    let caller = shown(&request.caller);
    let visit = visit(engine, config, &caller, tool, groups);
    let held = holding(&config.limits, &visit);
    if held.is_empty() {
        return Ok(((), NONE_HOLDS.to_owned()));
    }
    let usage = engine.store().usage();
    let used = usage.peek(&keys(&held, &visit));
    let used = used.map_err(|fault| unavailable(engine, &causes(&fault)))?;
    let mut both: Vec<_> = held.iter().zip(used).collect();
    let lines: Vec<_> = both
        .iter()
        .map(|(limit, tally)| line(limit, tally, &visit))
        .collect();
    quota::enter(&mut both, &visit, usage.process()).map_err(|exceeded| refused(&exceeded))?;
    Ok(((), format!("a call counts under {}", lines.join(", "))))
}

/// A limit, and how its day stands.
fn line(limit: &Limit, tally: &Tally, visit: &Visit<'_>) -> String {
    match tally.day(limit, visit) {
        None => limit.id.clone(),
        Some(day) => {
            let (id, most, turns) = (&limit.id, counted(day.most), turns(&day));
            format!("{id} ({most} in a day: {day}; {turns})")
        }
    }
}

fn turns(day: &Day) -> String {
    let seconds = day.turns_in_ms.div_ceil(1_000);
    format!("the day turns in {seconds} s, at 00:00 UTC")
}

fn counted(units: u64) -> String {
    text::count(usize::try_from(units).unwrap_or(usize::MAX), "unit")
}

/// What a caller used of each limit is kept under these.
fn keys(held: &[Limit], visit: &Visit<'_>) -> Vec<UsageKey> {
    let caller = model::caller::folded(visit.caller);
    let key = |limit: &Limit| (limit.id.clone(), caller.clone());
    held.iter().map(key).collect()
}

enum Refusal {
    Exceeded(Exceeded),
    Unavailable(String),
}

fn enter(store: Store, held: &[Limit], visit: &Visit<'_>) -> Result<Admission, Refusal> {
    let keys = keys(held, visit);
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
            units: visit.units,
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
    let seconds = |ms: u64| ms.div_ceil(1_000);
    let again = match exceeded.again {
        Again::Later(ms) => format!("try again in {} s", seconds(ms)),
        Again::Tomorrow(ms) => {
            let seconds = seconds(ms);
            format!("try again in {seconds} s, when the day turns at 00:00 UTC")
        }
        Again::AfterAnother => "try again when one has ended".to_owned(),
        Again::Never => "and trying again does not help: no day has that many".to_owned(),
    };
    let message = format!("{exceeded}; it did not run, {again}");
    Stop::refused(match exceeded.again {
        Again::Never => CallError::new(Reason::LimitExceeded, message),
        Again::Later(_) | Again::Tomorrow(_) | Again::AfterAnother => {
            CallError::passing(Reason::LimitExceeded, message)
        }
    })
}

fn unavailable(engine: &Engine, why: &str) -> Stop {
    engine.alarm(&format!("calls cannot be counted: {why}"));
    let message = "it cannot be looked up how much you used so far; it did not run";
    let error = CallError::passing(Reason::LimitUnavailable, message);
    Stop::refused(error).note(why.to_owned())
}

impl Admission {
    /// From here on it has used its units.
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
        let (at_ms, units_back) = (self.at_ms, if self.has_run { 0 } else { self.units });
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
