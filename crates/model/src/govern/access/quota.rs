//! Quotas: calls in a minute, calls at one time, units in a day; and the pause of a
//! caller that is denied repeatedly.
//!
//! State machines without a clock or storage: the caller of a function passes the time
//! and what was counted so far, and keeps what comes back. They are exact on the
//! safe side: no minute, wherever it starts, holds more than the limit.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::caller;
use crate::govern::pattern::{NamePattern, first};
use crate::limits;
use crate::reason::Reason;
use crate::record::audit::Status;
use crate::record::outcome::Outcome;
use crate::{text, time};

/// One limit. Each caller it holds for is counted apart; the tools it names are
/// counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The name people know it by.
    pub id: String,
    /// The callers it applies to; all if there are no callers and no groups.
    pub callers: Vec<NamePattern>,
    /// Groups of callers, in lower case.
    pub groups: Vec<String>,
    /// For which tools; all if empty.
    pub tools: Vec<NamePattern>,
    /// Calls in any minute.
    pub calls_per_minute: Option<u64>,
    /// Calls at one time.
    pub concurrent: Option<u64>,
    /// Units in a day of universal time. The operator decides what a unit is; [`Costs`]
    /// has the units of a call.
    pub units_per_day: Option<u64>,
}

/// The price of a call, in units of a day, by tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Patterns of tools, and the units a call of one costs.
    pub list: Vec<(NamePattern, u64)>,
}

/// The price of a call without an entry in [`Costs`].
const UNITS_DEFAULT: u64 = 1;

/// A call that asks for a place.
#[derive(Clone, Copy, Debug)]
pub struct LimitedCall<'a> {
    /// Who calls.
    pub caller: &'a str,
    /// The caller's groups.
    pub groups: &'a [String],
    /// What is called.
    pub tool: &'a str,
    /// Its price, in units of a day.
    pub units: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A call that a limit refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LimitExceeded {
    /// The limit.
    pub id: String,
    /// What is used up.
    pub message: String,
    /// When it makes sense to try again.
    pub again: RetryAfter,
}

/// When a refused call may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// After so many milliseconds.
    Later(u64),
    /// With the next day, which begins after so many milliseconds.
    Tomorrow(u64),
    /// When another call has ended.
    AfterAnother,
    /// Never: it costs more than a whole day has.
    Never,
}

/// The units of a day under one limit, before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyUnits {
    /// Units of a day.
    pub most: u64,
    /// Those that are used.
    pub used: u64,
    /// What the call costs.
    pub costs: u64,
    /// How long until the day turns, in milliseconds.
    pub turns_in_ms: u64,
}

/// The usage of one limit by one caller: calls by second for one minute, what runs, and
/// the units of the day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitUsage {
    seconds: BTreeMap<u64, u64>,
    /// By process: the calls of a dead process are over.
    running: BTreeMap<String, u64>,
    day: u64,
    units: u64,
    /// The latest time seen. If the clock is set back, this stays.
    now_ms: u64,
}

/// What is used of one limit at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedLimit {
    /// Calls of the last minute.
    pub in_minute: u64,
    /// Calls that run.
    pub running: u64,
    /// Units of this day.
    pub units: u64,
}

const SECONDS: u64 = 60;
const DAY_MS: u64 = time::DAY_MS.unsigned_abs();

impl RateLimit {
    /// `mornings: 5 calls a minute on web.*`.
    #[must_use]
    pub fn words(&self) -> String {
        let kinds = [
            (self.calls_per_minute, "calls a minute"),
            (self.concurrent, "at one time"),
            (self.units_per_day, "units a day"),
        ];
        let kinds = kinds
            .into_iter()
            .filter_map(|(most, what)| Some(format!("{} {what}", most?)));
        let tools: Vec<_> = self.tools.iter().map(ToString::to_string).collect();
        let tools = match tools.is_empty() {
            true => "all tools".to_owned(),
            false => tools.join(", "),
        };
        let kinds: Vec<_> = kinds.collect();
        format!("{}: {} on {tools}", self.id, kinds.join(", "))
    }

    /// Whether it limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let all = [self.calls_per_minute, self.concurrent, self.units_per_day];
        all.iter().all(Option::is_none)
    }

    /// Whether it holds for a call.
    #[must_use]
    pub fn holds_for(&self, visit: &LimitedCall<'_>) -> bool {
        self.concerns(visit.caller, visit.groups)
            && (self.tools.is_empty() || first(&self.tools, visit.tool).is_some())
    }

    /// Whether it can hold for calls of a caller who is in some groups.
    #[must_use]
    pub fn concerns(&self, caller: &str, groups: &[String]) -> bool {
        let is_for_all = self.callers.is_empty() && self.groups.is_empty();
        let grouped = || groups.iter().any(|group| self.groups.contains(group));
        let is_named = || {
            let name = caller::folded(caller);
            let mut callers = self.callers.iter();
            callers.any(|pattern| pattern.matches_caller(&name))
        };
        is_for_all || is_named() || grouped()
    }
}

impl Costs {
    /// The price of a call of a tool: the highest of all matching patterns, so a
    /// narrower entry cannot lower it and their order does not matter.
    #[must_use]
    pub fn of(&self, tool: &str) -> u64 {
        if self.list.is_empty() {
            return UNITS_DEFAULT;
        }
        let tool = tool.to_lowercase();
        let fitting = self.list.iter();
        let fitting = fitting.filter(|(pattern, _)| pattern.matches_lowered(&tool));
        let most = fitting.map(|(_, units)| *units).max();
        most.unwrap_or(UNITS_DEFAULT)
    }
}

impl DailyUnits {
    /// Units that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.used)
    }
}

impl fmt::Display for DailyUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DailyUnits { used, costs, .. } = self;
        write!(
            f,
            "{used} used, {} left, this call costs {costs}",
            self.left()
        )
    }
}

/// Counts a call, or returns the limit that refuses it. It counts under every limit or
/// under none. Each limit comes with its caller's usage.
pub fn enter(
    held: &mut [(&RateLimit, LimitUsage)],
    visit: &LimitedCall<'_>,
    process: &str,
) -> Result<(), LimitExceeded> {
    for (limit, tally) in held.iter_mut() {
        tally.forget(visit.at_ms);
        tally.fits(limit, visit.units)?;
    }
    // Only after every limit agreed: a refused call must use up nothing.
    for (_, tally) in held.iter_mut() {
        let second = tally.now_ms / 1_000;
        *tally.seconds.entry(second).or_default() += 1;
        *tally.running.entry(process.to_owned()).or_default() += 1;
        tally.units = tally.units.saturating_add(visit.units);
    }
    Ok(())
}

impl LimitUsage {
    /// What is used at this moment, counting nothing.
    #[must_use]
    pub fn at(&self, at_ms: u64) -> UsedLimit {
        let now_ms = self.now_ms.max(at_ms);
        let second = now_ms / 1_000;
        let recent = self.seconds.iter();
        let recent = recent.filter(|(at, _)| at.saturating_add(SECONDS) >= second);
        UsedLimit {
            in_minute: recent.map(|(_, calls)| calls).sum(),
            running: self.running.values().sum(),
            units: match self.day == now_ms / DAY_MS {
                true => self.units,
                false => 0,
            },
        }
    }

    /// A call that was let in is over. Units it did not use are given back, unless
    /// the day they were taken from is over too.
    pub fn leave(&mut self, process: &str, entered_ms: u64, units_back: u64) {
        if let Some(running) = self.running.get_mut(process) {
            *running = running.saturating_sub(1);
        }
        self.running.retain(|_, running| *running > 0);
        // A call that ran past midnight must not be refunded into the new day.
        if self.day == entered_ms / DAY_MS {
            self.units = self.units.saturating_sub(units_back);
        }
    }

    /// The processes that have calls under way.
    pub fn processes(&self) -> impl Iterator<Item = &str> {
        self.running.keys().map(String::as_str)
    }

    /// Ends the calls of a dead process.
    pub fn forget_process(&mut self, process: &str) {
        self.running.remove(process);
    }

    /// From when on it can be dropped; never while a call runs.
    #[must_use]
    pub fn idle_from_ms(&self) -> Option<u64> {
        if !self.running.is_empty() {
            return None;
        }
        let last = self.seconds.keys().next_back();
        let minute = last.map_or(0, |second| (second + SECONDS + 1) * 1_000);
        let day = if self.units > 0 {
            (self.day + 1) * DAY_MS
        } else {
            0
        };
        Some(minute.max(day))
    }

    /// Units used on the day of the last call.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The units of the day for a call, under a limit that has units.
    #[must_use]
    pub fn day(&self, limit: &RateLimit, visit: &LimitedCall<'_>) -> Option<DailyUnits> {
        let mut now = self.clone();
        now.forget(visit.at_ms);
        now.day_of(limit, visit.units)
    }

    fn day_of(&self, limit: &RateLimit, units: u64) -> Option<DailyUnits> {
        limit.units_per_day.map(|most| DailyUnits {
            most,
            used: self.units,
            costs: units,
            turns_in_ms: DAY_MS - self.now_ms % DAY_MS,
        })
    }

    fn forget(&mut self, at_ms: u64) {
        self.now_ms = self.now_ms.max(at_ms);
        // A second that began up to a minute ago may still hold a call of the last
        // minute; it counts until it cannot.
        let second = self.now_ms / 1_000;
        self.seconds.retain(|began, _| began + SECONDS >= second);
        if self.day != self.now_ms / DAY_MS {
            self.day = self.now_ms / DAY_MS;
            self.units = 0;
        }
    }

    fn fits(&self, limit: &RateLimit, units: u64) -> Result<(), LimitExceeded> {
        let now_ms = self.now_ms;
        let exceeded = |what: String, again| {
            Err(LimitExceeded {
                id: limit.id.clone(),
                message: format!("the limit `{}` allows {what}", limit.id),
                again,
            })
        };
        let minute: u64 = self.seconds.values().sum();
        if let Some(most) = limit.calls_per_minute.filter(|most| minute >= *most) {
            let first = self
                .seconds
                .keys()
                .next()
                .copied()
                .unwrap_or(now_ms / 1_000);
            // Rounded up by a second, because calls are counted by whole seconds.
            let free_ms = (first + SECONDS + 1) * 1_000;
            let wait = free_ms.saturating_sub(now_ms);
            let what = format!("{} in a minute", counted(most, "call"));
            return exceeded(what, RetryAfter::Later(wait));
        }
        let running: u64 = self.running.values().sum();
        if let Some(most) = limit.concurrent.filter(|most| running >= *most) {
            let what = format!("{} at one time", counted(most, "call"));
            return exceeded(what, RetryAfter::AfterAnother);
        }
        if let Some(day) = self.day_of(limit, units)
            && units > day.left()
        {
            let again = match units > day.most {
                // Waiting cannot help a call that costs more than a whole day has.
                true => RetryAfter::Never,
                false => RetryAfter::Tomorrow(day.turns_in_ms),
            };
            let most = counted(day.most, "unit");
            return exceeded(format!("{most} in a day: {day}"), again);
        }
        Ok(())
    }
}

fn counted(number: u64, noun: &str) -> String {
    text::count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

/// How often a caller was denied. After three in a row, or twenty in all, it is paused
/// until a person resumes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denials {
    /// Since the last call that was not denied.
    pub in_a_row: u32,
    /// Since a person last resumed the caller.
    pub in_all: u32,
}

/// How a call counts towards a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialCount {
    /// It was let through.
    Allowed,
    /// A rule, a level or a person said no.
    Denied,
    /// Neither: invalid arguments, a limit, a cancelled call.
    Neither,
}

impl DenialCount {
    /// Judges by the caller's own error. Invalid arguments and unknown tools do not
    /// count. Neither does a tool that exists, but not for this caller: if it counted,
    /// a pause would tell the two apart (invariant 10).
    #[must_use]
    pub fn of(outcome: &Outcome) -> DenialCount {
        match outcome.status {
            // A tool that fails was let through. Only a refusal can be a denial.
            Status::Done | Status::Failed | Status::Crashed => DenialCount::Allowed,
            Status::Cancelled => DenialCount::Neither,
            Status::Refused => match outcome.error.as_ref().map(|error| error.reason) {
                Some(
                    Reason::ApprovalDeclined
                    | Reason::LevelDenied
                    | Reason::RuleDenied
                    | Reason::RuleUnevaluable,
                ) => DenialCount::Denied,
                Some(_) | None => DenialCount::Neither,
            },
        }
    }
}

impl Denials {
    /// After a call that was denied.
    #[must_use]
    pub fn denied(self) -> Denials {
        Denials {
            in_a_row: self.in_a_row.saturating_add(1),
            in_all: self.in_all.saturating_add(1),
        }
    }

    /// After a call that was let through. Nothing ends a pause but a person.
    #[must_use]
    pub fn allowed(self) -> Denials {
        if self.is_paused() {
            return self;
        }
        self.row_ended()
    }

    /// After an allowed call of a caller that denials do not pause.
    #[must_use]
    pub fn row_ended(self) -> Denials {
        Denials {
            in_a_row: 0,
            ..self
        }
    }

    /// After a person resumed the caller.
    #[must_use]
    pub fn resumed() -> Denials {
        Denials::default()
    }

    /// Whether there are too many in a row, or in all, where before there were not.
    #[must_use]
    pub fn is_news(self, before: Denials) -> bool {
        let passed = |before: u32, now: u32, most: u32| before < most && now >= most;
        passed(before.in_a_row, self.in_a_row, limits::DENIALS_IN_A_ROW_MAX)
            || passed(before.in_all, self.in_all, limits::DENIALS_IN_ALL_MAX)
    }

    /// Whether the caller is paused.
    #[must_use]
    pub fn is_paused(self) -> bool {
        self.in_a_row >= limits::DENIALS_IN_A_ROW_MAX || self.in_all >= limits::DENIALS_IN_ALL_MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::outcome::CallError;

    fn limit(minute: Option<u64>, concurrent: Option<u64>, day: Option<u64>) -> RateLimit {
        RateLimit {
            id: "some".to_owned(),
            callers: Vec::new(),
            groups: Vec::new(),
            tools: Vec::new(),
            calls_per_minute: minute,
            concurrent,
            units_per_day: day,
        }
    }

    fn visit<'a>(caller: &'a str, tool: &'a str, units: u64, at_ms: u64) -> LimitedCall<'a> {
        LimitedCall {
            caller,
            groups: &[],
            tool,
            units,
            at_ms,
        }
    }

    /// The use of every limit by every caller, in memory.
    #[derive(Default)]
    struct Meter(BTreeMap<(String, String), LimitUsage>);

    impl Meter {
        fn enter(
            &mut self,
            all: &[RateLimit],
            visit: &LimitedCall<'_>,
        ) -> Result<(), LimitExceeded> {
            let caller = caller::folded(visit.caller);
            let key = |limit: &RateLimit| (limit.id.clone(), caller.clone());
            let held = all.iter().filter(|limit| limit.holds_for(visit));
            let mut held: Vec<_> = held
                .map(|limit| (limit, self.0.get(&key(limit)).cloned().unwrap_or_default()))
                .collect();
            let entered = enter(&mut held, visit, "p");
            for (limit, tally) in held {
                self.0.insert(key(limit), tally);
            }
            entered
        }

        fn tally(&mut self, caller: &str) -> &mut LimitUsage {
            let key = ("some".to_owned(), caller.to_owned());
            self.0.get_mut(&key).expect("counted")
        }
    }

    #[test]
    fn a_day_ends_at_midnight_and_a_clock_set_back_gives_nothing() {
        let all = [limit(None, None, Some(10))];
        let mut meter = Meter::default();
        let mut enter = |units, at| meter.enter(&all, &visit("ann", "pay", units, at));
        assert!(enter(6, DAY_MS - 1_000).is_ok());
        let fault = enter(5, DAY_MS - 1_000).expect_err("too much");
        assert_eq!(
            fault.to_string(),
            "the limit `some` allows 10 units in a day: 6 used, 4 left, this call costs 5"
        );
        assert_eq!(fault.again, RetryAfter::Tomorrow(1_000));
        assert!(enter(10, DAY_MS).is_ok());
        assert!(enter(1, DAY_MS - 1_000).is_err());
        // More than a day has, used or fresh: waiting does not help.
        for (units, at) in [(1, 4 * DAY_MS), (0, 5 * DAY_MS)] {
            enter(units, at).expect("room");
            let fault = enter(11, at).expect_err("too much for any day");
            assert_eq!(fault.again, RetryAfter::Never);
        }
    }

    #[test]
    fn ended_calls_free_their_place() {
        let all = [limit(None, Some(2), None)];
        let mut meter = Meter::default();
        meter.enter(&all, &visit("Ann", "a", 1, 0)).expect("room");
        meter.enter(&all, &visit("ann", "b", 1, 0)).expect("room");
        assert!(meter.enter(&all, &visit("ANN", "c", 1, 0)).is_err());
        assert!(
            meter.enter(&all, &visit("bob", "c", 1, 0)).is_ok(),
            "counted apart"
        );
        meter.tally("ann").leave("p", 0, 0);
        assert!(meter.enter(&all, &visit("ann", "c", 1, 0)).is_ok());
        assert!(meter.enter(&all, &visit("ann", "c", 1, 0)).is_err());
        meter.tally("ann").forget_process("p");
        assert!(meter.enter(&all, &visit("ann", "c", 1, 0)).is_ok());
    }

    #[test]
    fn units_are_refunded_to_their_own_day_only() {
        let all = [limit(None, None, Some(2))];
        let mut meter = Meter::default();
        for _ in 0..2 {
            meter.enter(&all, &visit("ann", "a", 1, 5)).expect("room");
        }
        meter.tally("ann").leave("p", 5, 1);
        assert_eq!(meter.tally("ann").units(), 1);
        assert!(meter.enter(&all, &visit("ann", "a", 1, DAY_MS)).is_ok());
        meter.tally("ann").leave("p", 5, 1);
        assert_eq!(meter.tally("ann").units(), 1, "yesterday's");
    }

    #[test]
    fn the_highest_price_applies_and_the_default_is_one() {
        let list = [
            ("pay.*", 5),
            ("PAY.Refund", 2),
            ("*.list", 0),
            ("pay.l*", 3),
        ];
        let pattern = |text: &str| NamePattern::parse(text).expect("a pattern");
        let mut list = Vec::from(list.map(|(name, units)| (pattern(name), units)));
        for _ in 0..2 {
            let costs = Costs { list: list.clone() };
            let of = ["Pay.refund", "pay.list", "user.list", "user.get"].map(|tool| costs.of(tool));
            assert_eq!(of, [5, 5, 0, 1]);
            list.reverse();
        }
        assert_eq!(Costs::default().of("anything"), 1);
    }

    #[test]
    fn a_day_is_reported_without_counting() {
        let all = [limit(None, None, Some(10))];
        let mut meter = Meter::default();
        meter.enter(&all, &visit("ann", "a", 4, 0)).expect("room");
        let at = |at_ms| {
            meter.0[&("some".to_owned(), "ann".to_owned())]
                .day(&all[0], &visit("ann", "a", 3, at_ms))
        };
        let day = at(DAY_MS - 60_000).expect("it has units");
        assert_eq!(
            (day.used, day.left(), day.costs, day.turns_in_ms),
            (4, 6, 3, 60_000)
        );
        let next = at(DAY_MS).expect("it has units");
        assert_eq!((next.used, next.turns_in_ms), (0, DAY_MS));
        assert_eq!(
            meter
                .tally("ann")
                .day(&limit(Some(1), None, None), &visit("ann", "a", 1, 0)),
            None
        );
    }

    #[test]
    fn usage_tells_when_it_can_be_dropped() {
        let all = [limit(Some(5), None, Some(5))];
        let mut meter = Meter::default();
        meter
            .enter(&all, &visit("ann", "a", 0, 1_500))
            .expect("room");
        assert_eq!(meter.tally("ann").idle_from_ms(), None, "it runs");
        meter.tally("ann").leave("p", 1_500, 0);
        assert_eq!(meter.tally("ann").idle_from_ms(), Some(62_000));
        meter
            .enter(&all, &visit("ann", "a", 1, 1_500))
            .expect("room");
        meter.tally("ann").leave("p", 1_500, 0);
        assert_eq!(meter.tally("ann").idle_from_ms(), Some(DAY_MS));
    }

    #[test]
    fn a_refused_call_counts_nowhere() {
        let wide = limit(Some(5), None, None);
        let tight = RateLimit {
            id: "tight".to_owned(),
            ..limit(Some(1), None, None)
        };
        let all = [wide, tight];
        let mut meter = Meter::default();
        assert!(meter.enter(&all, &visit("ann", "a", 1, 0)).is_ok());
        for _ in 0..10 {
            let fault = meter
                .enter(&all, &visit("ann", "a", 1, 0))
                .expect_err("tight");
            assert_eq!(
                (fault.id.as_str(), fault.again),
                ("tight", RetryAfter::Later(61_000))
            );
        }
        assert!(
            meter.enter(&all[..1], &visit("ann", "a", 1, 0)).is_ok(),
            "four are left"
        );
    }

    /// Every reason there is: only these are a no to the caller itself.
    #[test]
    fn invalid_calls_are_no_denials() {
        let outcome = |status, reason| Outcome {
            call_id: String::new(),
            status,
            relayed: None,
            value: None,
            error: Some(CallError::new(reason, "")),
            console: Vec::new(),
            notes: Vec::new(),
            usage: None,
            elapsed_us: 0,
        };
        let denies = |reason: &&Reason| {
            DenialCount::of(&outcome(Status::Refused, **reason)) == DenialCount::Denied
        };
        let denying = Reason::ALL
            .iter()
            .filter(denies)
            .map(|reason| reason.code());
        let expected = [
            "approval.declined",
            "level.denied",
            "rule.denied",
            "rule.unevaluable",
        ];
        assert_eq!(denying.collect::<Vec<_>>(), expected);
        for status in Status::ALL {
            let conduct = DenialCount::of(&outcome(status, Reason::ToolThrew));
            let is_through = matches!(status, Status::Done | Status::Failed | Status::Crashed);
            assert_eq!(conduct == DenialCount::Allowed, is_through, "{status:?}");
        }
    }

    #[test]
    fn only_a_person_ends_a_pause() {
        let three = Denials::default().denied().denied().denied();
        assert!(three.is_paused() && three.allowed().is_paused());
        assert!(!Denials::resumed().is_paused());
        let mut spread = Denials::default();
        for _ in 0..19 {
            spread = spread.denied().allowed();
        }
        assert!(!spread.is_paused());
        assert!(spread.denied().is_paused());
    }

    proptest! {
        #[test]
        fn no_minute_has_more_calls_than_its_limit(steps in prop::collection::vec(0_u64..20_000, 1..80), most in 1_u64..6) {
            let all = [limit(Some(most), None, None)];
            let mut meter = Meter::default();
            let (mut now, mut seen) = (0, Vec::new());
            for step in steps {
                now += step;
                if meter.enter(&all, &visit("ann", "a", 1, now)).is_ok() {
                    seen.push(now);
                }
            }
            for start in &seen {
                let within = seen.iter().filter(|at| **at >= *start && **at < start + 60_000);
                prop_assert!(within.count() as u64 <= most);
            }
        }

        #[test]
        fn waiting_as_long_as_told_is_enough(gaps in prop::collection::vec(0_u64..5_000, 1..20)) {
            let all = [limit(Some(3), None, None)];
            let mut meter = Meter::default();
            let mut now = 0;
            for gap in gaps {
                now += gap;
                if let Err(fault) = meter.enter(&all, &visit("ann", "a", 1, now)) {
                    let RetryAfter::Later(wait) = fault.again else {
                        return Err(TestCaseError::fail(format!("{fault:?}")));
                    };
                    now += wait;
                    prop_assert!(meter.enter(&all, &visit("ann", "a", 1, now)).is_ok());
                }
            }
        }
    }
}
