//! Limits on calls: how many in a minute, how many at one time, how many in a day.
//!
//! What was used is in the store, one count for all processes of the home, so that
//! neither a restart nor a second process gives more. A call is counted when the
//! gates before have let it in and before a person is asked; it holds its place
//! until it ends, however it ends, and gives its units back if it never ran.

use std::sync::Arc;
use std::time::Duration;

use model::config::Config;
use model::govern::access::quota::{
    self, DailyUnits, LimitExceeded, LimitUsage, LimitedCall, RateLimit, RetryAfter, UsedLimit,
};
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;
use store::usage::UsageKey;
use store::{Store, StoreError};

use crate::error::causes;
use crate::refusal::{CallRefusal, GatePass, GateResult};
use crate::request::{CallPurpose, CallRequest, shown};
use crate::services::{Alarm, Clock};

/// What is noted where no limit is about the call.
const NONE_HOLDS: &str = "no limit applies";
const TASK_PANICKED: &str = "the usage task panicked";

/// Counts calls against their limits.
#[derive(Debug)]
pub(crate) struct Quotas {
    store: Store,
    clock: Clock,
    alarm: Alarm,
}

/// The place of a call among those its limits count. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct QuotaHold {
    store: Store,
    keys: Vec<UsageKey>,
    at_ms: u64,
    units: u64,
    has_run: bool,
    is_over: bool,
}

impl Quotas {
    pub(crate) fn new(store: &Store, clock: &Clock, alarm: &Alarm) -> Quotas {
        Quotas {
            store: store.clone(),
            clock: clock.clone(),
            alarm: alarm.clone(),
        }
    }

    /// Counts a call, if its limits let it in.
    pub(crate) async fn take(
        &self,
        config: &Config,
        request: &CallRequest,
        tool: &str,
        groups: &[String],
    ) -> GateResult<Option<QuotaHold>> {
        // A proof of the tool by its owner, not a use of it.
        if request.purpose == CallPurpose::LocalPass {
            return Ok(GatePass::new(None, "a Local Pass"));
        }
        let caller = shown(&request.caller);
        let visit = self.visit(config, &caller, tool, groups);
        let held = holding(&config.limits, &visit);
        if held.is_empty() {
            return Ok(GatePass::new(None, NONE_HOLDS));
        }
        let mut note = text::count(held.len(), "limit");
        if held.iter().any(|limit| limit.units_per_day.is_some()) {
            note.push_str(&format!("; it costs {} of the day", counted(visit.units)));
        }
        let asked = AskedPlace {
            keys: keys(&held, &visit),
            held,
            caller: caller.clone(),
            tool: tool.to_owned(),
            groups: groups.to_vec(),
            units: visit.units,
            at_ms: visit.at_ms,
        };
        // A task of its own: it finishes even if the call is cancelled. Then its result is
        // dropped, and with it the place.
        match tokio::spawn(enter(self.store.clone(), asked)).await {
            Ok(Ok(hold)) => Ok(GatePass::new(Some(hold), note)),
            Ok(Err(NotCounted::LimitExceeded(exceeded))) => Err(refuse(&exceeded)),
            Ok(Err(NotCounted::Unavailable(why))) => Err(self.unavailable(&why)),
            Err(_) => Err(self.unavailable(TASK_PANICKED)),
        }
    }

    /// What the limits would say to a call, without counting it: `explain`.
    pub(crate) fn preview(
        &self,
        config: &Config,
        request: &CallRequest,
        tool: &str,
        groups: &[String],
    ) -> GateResult<()> {
        let caller = shown(&request.caller);
        let visit = self.visit(config, &caller, tool, groups);
        let held = holding(&config.limits, &visit);
        if held.is_empty() {
            return Ok(GatePass::new((), NONE_HOLDS));
        }
        let usage = self.store.usage();
        let used = usage.peek(&keys(&held, &visit));
        let used = used.map_err(|fault| self.unavailable(&causes(&fault)))?;
        let mut both: Vec<_> = held.iter().zip(used).collect();
        let lines: Vec<_> = both
            .iter()
            .map(|(limit, tally)| line(limit, tally, &visit))
            .collect();
        // On copies of the counts, which are dropped.
        quota::enter(&mut both, &visit, usage.process()).map_err(|exceeded| refuse(&exceeded))?;
        let note = format!("a call counts towards {}", lines.join(", "));
        Ok(GatePass::new((), note))
    }

    /// What a caller used of the limits that hold for it, whatever tools they name.
    pub(crate) fn used(
        &self,
        config: &Config,
        caller: &str,
        groups: &[String],
    ) -> Result<Vec<(RateLimit, UsedLimit)>, StoreError> {
        let held = config.limits.iter();
        let held = held.filter(|limit| limit.concerns(caller, groups));
        let held: Vec<_> = held.cloned().collect();
        let visit = self.visit(config, caller, "", groups);
        let used = self.store.usage().peek(&keys(&held, &visit))?;
        let used = used.iter().map(|usage| usage.at(visit.at_ms));
        Ok(held.into_iter().zip(used).collect())
    }

    /// A call with what it costs.
    fn visit<'a>(
        &self,
        config: &Config,
        caller: &'a str,
        tool: &'a str,
        groups: &'a [String],
    ) -> LimitedCall<'a> {
        LimitedCall {
            caller,
            groups,
            tool,
            units: config.costs.of(tool),
            at_ms: u64::try_from(self.clock.now_ms()).unwrap_or(0),
        }
    }

    fn unavailable(&self, why: &str) -> CallRefusal {
        self.alarm.raise(&format!("calls cannot be counted: {why}"));
        let message = "your usage cannot be read; the call did not run";
        let error = CallError::passing(Reason::LimitUnavailable, message);
        CallRefusal::new(error).noted(why)
    }
}

/// The limits a call would count under.
fn holding(limits: &[RateLimit], visit: &LimitedCall<'_>) -> Vec<RateLimit> {
    let held = limits.iter().filter(|limit| limit.holds_for(visit));
    held.cloned().collect()
}

/// A limit, and how its day stands.
fn line(limit: &RateLimit, tally: &LimitUsage, visit: &LimitedCall<'_>) -> String {
    match tally.day(limit, visit) {
        None => limit.id.clone(),
        Some(day) => {
            let (id, most, turns) = (&limit.id, counted(day.most), turns(&day));
            format!("{id} ({most} in a day: {day}; {turns})")
        }
    }
}

fn turns(day: &DailyUnits) -> String {
    let seconds = day.turns_in_ms.div_ceil(1_000);
    format!("the day ends in {seconds} s, at 00:00 UTC")
}

fn counted(units: u64) -> String {
    text::count(usize::try_from(units).unwrap_or(usize::MAX), "unit")
}

/// What a caller used of each limit is kept under these.
fn keys(held: &[RateLimit], visit: &LimitedCall<'_>) -> Vec<UsageKey> {
    // The names of keys are case-insensitive. `Bot` and `bot` must not have two limits.
    let caller = model::caller::folded(visit.caller);
    let key = |limit: &RateLimit| (limit.id.clone(), caller.clone());
    held.iter().map(key).collect()
}

/// Why a call was not counted.
enum NotCounted {
    LimitExceeded(LimitExceeded),
    Unavailable(String),
}

/// A call that asks for a place, with copies of its own.
struct AskedPlace {
    keys: Vec<UsageKey>,
    held: Vec<RateLimit>,
    caller: String,
    tool: String,
    groups: Vec<String>,
    units: u64,
    at_ms: u64,
}

impl AskedPlace {
    fn enter(&self, tallies: &mut Vec<LimitUsage>, process: &str) -> Result<(), LimitExceeded> {
        let visit = LimitedCall {
            caller: &self.caller,
            groups: &self.groups,
            tool: &self.tool,
            units: self.units,
            at_ms: self.at_ms,
        };
        // Moved out and back: `quota::enter` wants each limit with its count.
        let used = std::mem::take(tallies);
        let mut both: Vec<_> = self.held.iter().zip(used).collect();
        let entered = quota::enter(&mut both, &visit, process);
        tallies.extend(both.into_iter().map(|(_, tally)| tally));
        entered
    }
}

async fn enter(store: Store, asked: AskedPlace) -> Result<QuotaHold, NotCounted> {
    let (keys, units, at_ms) = (asked.keys.clone(), asked.units, asked.at_ms);
    let process = Arc::clone(store.usage().process());
    let entering = move |tallies: &mut Vec<LimitUsage>| asked.enter(tallies, &process);
    let entered = store.usage().change_in_task(&keys, at_ms, entering).await;
    match entered {
        Ok(Some(Ok(()))) => Ok(QuotaHold {
            at_ms,
            units,
            keys,
            has_run: false,
            is_over: false,
            store,
        }),
        Ok(Some(Err(exceeded))) => Err(NotCounted::LimitExceeded(exceeded)),
        // Fails closed: a caller that cannot be counted would have no limit.
        Ok(None) => Err(NotCounted::Unavailable(
            "there are too many callers to count".to_owned(),
        )),
        Err(fault) => Err(NotCounted::Unavailable(causes(&fault))),
    }
}

/// Says what is used up and when it makes sense to try again.
fn refuse(exceeded: &LimitExceeded) -> CallRefusal {
    // Rounded up, so that a retry after that time does not come too early.
    let seconds = |ms: u64| ms.div_ceil(1_000);
    let again = match exceeded.again {
        RetryAfter::Later(ms) => format!("try again in {} s", seconds(ms)),
        RetryAfter::Tomorrow(ms) => {
            let seconds = seconds(ms);
            format!("try again in {seconds} s, when the day ends at 00:00 UTC")
        }
        RetryAfter::AfterAnother => "try again when one has ended".to_owned(),
        RetryAfter::Never => "and retrying will not help: no day allows that many".to_owned(),
    };
    let message = format!("{exceeded}; it did not run, {again}");
    CallRefusal::new(match exceeded.again {
        RetryAfter::Never => CallError::new(Reason::LimitExceeded, message),
        RetryAfter::Later(_) | RetryAfter::Tomorrow(_) | RetryAfter::AfterAnother => {
            CallError::passing(Reason::LimitExceeded, message)
        }
    })
}

impl QuotaHold {
    /// The call runs: it has used its units.
    pub(crate) fn use_units(&mut self) {
        self.has_run = true;
    }

    /// The call is over.
    pub(crate) async fn release(mut self, alarm: &Alarm) {
        let leaving = self.leaving();
        let why = match leaving.leave_in_task().await {
            Ok(()) => return,
            Err(fault) => {
                let why = causes(&fault);
                if is_undone(&fault) {
                    // In a task of its own: the answer does not wait for the store.
                    tokio::spawn(leaving.leave_later());
                }
                why
            }
        };
        // It counts as running until that is written or this process ends, which is on the
        // safe side.
        alarm.raise(&format!("the end of a call could not be counted: {why}"));
    }

    fn leaving(&mut self) -> Leaving {
        self.is_over = true;
        Leaving {
            store: self.store.clone(),
            keys: std::mem::take(&mut self.keys),
            at_ms: self.at_ms,
            // A call that was refused after it was counted costs nothing.
            units_back: if self.has_run { 0 } else { self.units },
        }
    }
}

/// A call that is over and still counts as running.
#[derive(Debug)]
struct Leaving {
    store: Store,
    keys: Vec<UsageKey>,
    at_ms: u64,
    units_back: u64,
}

impl Leaving {
    /// Blocks the thread.
    fn leave(&self) -> Result<(), StoreError> {
        let usage = self.store.usage();
        let left = usage.change(&self.keys, self.at_ms, self.ending());
        left.map(drop)
    }

    /// Done even if the task is given up meanwhile.
    async fn leave_in_task(&self) -> Result<(), StoreError> {
        let usage = self.store.usage();
        let left = usage.change_in_task(&self.keys, self.at_ms, self.ending());
        left.await.map(drop)
    }

    /// What ends the call in its tallies.
    fn ending(&self) -> impl FnMut(&mut Vec<LimitUsage>) + Send + 'static {
        let process = Arc::clone(self.store.usage().process());
        let (at_ms, units_back) = (self.at_ms, self.units_back);
        move |tallies| {
            for tally in tallies {
                tally.leave(&process, at_ms, units_back);
            }
        }
    }

    /// Tries again until the shared store answers. If it did not confirm, the call may have
    /// left, and trying again could free another call's place.
    async fn leave_later(self) {
        loop {
            tokio::time::sleep(LEAVE_AGAIN_AFTER).await;
            let left = self.leave_in_task().await;
            if !matches!(left, Err(fault) if is_undone(&fault)) {
                return;
            }
        }
    }
}

/// Whether nothing was changed, and will not be.
fn is_undone(fault: &StoreError) -> bool {
    matches!(fault, StoreError::Unavailable { .. })
}

/// The pause before the end of a call is counted again.
const LEAVE_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Drop for QuotaHold {
    /// The task of the call is gone: cancelled with its door, or panicking.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let leaving = self.leaving();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn_blocking(move || leaving.leave());
            }
            // No runtime, so no thread to hand it to. If it fails, the place is free once
            // this process is gone.
            Err(_) => {
                let _ = leaving.leave();
            }
        }
    }
}
