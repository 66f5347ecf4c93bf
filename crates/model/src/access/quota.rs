//! How much: calls in a minute, calls at one time, units in a day; and the pause
//! of a caller who is denied again and again.
//!
//! State machines without a clock: whoever asks brings the time. They are exact
//! on the safe side: no minute, wherever it starts, holds more than the limit.

use std::collections::BTreeMap;

use crate::limits;
use crate::pattern::NamePattern;

/// One limit. Each caller it holds for is counted apart; the tools it names are
/// counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name people know it by.
    pub id: String,
    /// Whom it holds for. With no callers and no groups: everybody.
    pub callers: Vec<NamePattern>,
    /// Groups of callers, in lower case.
    pub groups: Vec<String>,
    /// For which tools; all if empty.
    pub tools: Vec<NamePattern>,
    /// Calls in any minute.
    pub calls_per_minute: Option<u64>,
    /// Calls at one time.
    pub concurrent: Option<u64>,
    /// Units in a day of universal time. What a unit is, is the operator's affair;
    /// a call that names none costs one.
    pub units_per_day: Option<u64>,
}

/// A call at the door.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// Who calls.
    pub caller: &'a str,
    /// The caller's groups.
    pub groups: &'a [String],
    /// What is called.
    pub tool: &'a str,
    /// What it costs of a day's units.
    pub units: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A call that a limit does not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Exceeded {
    /// The limit.
    pub id: String,
    /// What is used up.
    pub message: String,
    /// How long until it makes sense to try again; unknown where it depends on
    /// other calls ending.
    pub retry_after_ms: Option<u64>,
}

/// A call that was let in. [`Meter::leave`] takes it back.
#[derive(Debug)]
#[must_use = "a call that never leaves counts as running for ever"]
pub struct Admission {
    keys: Vec<(String, String)>,
}

/// What has been used.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    tallies: BTreeMap<(String, String), Tally>,
    /// The latest time seen. A clock that is set back stands still here.
    now_ms: u64,
}

/// Calls by second for one minute, what runs, and the units of the day.
#[derive(Clone, Debug, Default)]
struct Tally {
    seconds: BTreeMap<u64, u64>,
    running: u64,
    day: u64,
    units: u64,
}

const SECONDS: u64 = 60;
const DAY_MS: u64 = 86_400_000;

impl Limit {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let all = [self.calls_per_minute, self.concurrent, self.units_per_day];
        all.iter().all(Option::is_none)
    }

    fn holds_for(&self, visit: &Visit<'_>, caller: &str, tool: &str) -> bool {
        let named = |patterns: &[NamePattern], name: &str| {
            patterns.iter().any(|pattern| pattern.matches_lowered(name))
        };
        let everybody = self.callers.is_empty() && self.groups.is_empty();
        let grouped = || visit.groups.iter().any(|group| self.groups.contains(group));
        (everybody || named(&self.callers, caller) || grouped())
            && (self.tools.is_empty() || named(&self.tools, tool))
    }
}

impl Meter {
    /// Lets a call in, or says which limit does not. Either it counts under every
    /// limit or under none.
    pub fn enter(&mut self, all: &[Limit], visit: &Visit<'_>) -> Result<Admission, Exceeded> {
        self.now_ms = self.now_ms.max(visit.at_ms);
        let (now_ms, units) = (self.now_ms, visit.units);
        let (caller, tool) = (visit.caller.to_lowercase(), visit.tool.to_lowercase());
        let holds = |limit: &&Limit| limit.holds_for(visit, &caller, &tool);
        let held: Vec<_> = all.iter().filter(holds).collect();
        let key = |limit: &Limit| (limit.id.clone(), caller.clone());
        for limit in &held {
            self.make_room(limit)?;
            let tally = self.tallies.entry(key(limit)).or_default();
            tally.forget(now_ms);
            tally.fits(limit, units, now_ms)?;
        }
        for limit in &held {
            let tally = self.tallies.entry(key(limit)).or_default();
            *tally.seconds.entry(now_ms / 1_000).or_default() += 1;
            tally.running += 1;
            tally.units = tally.units.saturating_add(units);
        }
        let keys = held.iter().map(|limit| key(limit)).collect();
        Ok(Admission { keys })
    }

    /// A call that was let in is over.
    pub fn leave(&mut self, admission: Admission) {
        for key in admission.keys {
            if let Some(tally) = self.tallies.get_mut(&key) {
                tally.running = tally.running.saturating_sub(1);
            }
        }
    }

    /// Drops what says nothing any more, when there is too much of it.
    fn make_room(&mut self, limit: &Limit) -> Result<(), Exceeded> {
        if self.tallies.len() < limits::METER_TALLIES_MAX {
            return Ok(());
        }
        let now_ms = self.now_ms;
        for tally in self.tallies.values_mut() {
            tally.forget(now_ms);
        }
        self.tallies.retain(|_, tally| !tally.is_idle());
        if self.tallies.len() < limits::METER_TALLIES_MAX {
            return Ok(());
        }
        Err(Exceeded {
            id: limit.id.clone(),
            message: "there are too many callers to count".to_owned(),
            retry_after_ms: None,
        })
    }
}

impl Tally {
    fn forget(&mut self, now_ms: u64) {
        // A second that began up to a minute ago may still hold a call of the last
        // minute; it counts until it cannot.
        let second = now_ms / 1_000;
        self.seconds.retain(|began, _| began + SECONDS >= second);
        if self.day != now_ms / DAY_MS {
            self.day = now_ms / DAY_MS;
            self.units = 0;
        }
    }

    fn is_idle(&self) -> bool {
        self.seconds.is_empty() && self.running == 0 && self.units == 0
    }

    fn fits(&self, limit: &Limit, units: u64, now_ms: u64) -> Result<(), Exceeded> {
        let exceeded = |what: String, retry_after_ms| {
            Err(Exceeded {
                id: limit.id.clone(),
                message: format!("the limit `{}` allows {what}", limit.id),
                retry_after_ms,
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
            let free_ms = (first + SECONDS + 1) * 1_000;
            let wait = free_ms.saturating_sub(now_ms);
            return exceeded(format!("{most} calls in a minute"), Some(wait));
        }
        if let Some(most) = limit.concurrent.filter(|most| self.running >= *most) {
            return exceeded(format!("{most} calls at one time"), None);
        }
        if let Some(most) = limit.units_per_day
            && self.units.saturating_add(units) > most
        {
            let wait = (self.units > 0).then(|| DAY_MS - now_ms % DAY_MS);
            return exceeded(format!("{most} units in a day"), wait);
        }
        Ok(())
    }
}

/// How often a caller was denied. Three in a row, or twenty in all, and the
/// caller is paused until a person says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denials {
    /// Since the last call that was not denied.
    pub in_a_row: u32,
    /// Since a person last looked.
    pub in_all: u32,
}

impl Denials {
    /// After a call that was denied by a rule, a level or a preset. Arguments
    /// that do not fit, and tools that do not exist, are slips and not counted.
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
        Denials {
            in_a_row: 0,
            ..self
        }
    }

    /// After a person said so.
    #[must_use]
    pub fn resumed() -> Denials {
        Denials::default()
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

    fn limit(minute: Option<u64>, concurrent: Option<u64>, day: Option<u64>) -> Limit {
        Limit {
            id: "some".to_owned(),
            callers: Vec::new(),
            groups: Vec::new(),
            tools: Vec::new(),
            calls_per_minute: minute,
            concurrent,
            units_per_day: day,
        }
    }

    fn visit<'a>(caller: &'a str, tool: &'a str, units: u64, at_ms: u64) -> Visit<'a> {
        Visit {
            caller,
            groups: &[],
            tool,
            units,
            at_ms,
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
            "the limit `some` allows 10 units in a day"
        );
        assert_eq!(fault.retry_after_ms, Some(1_000));
        assert!(enter(10, DAY_MS).is_ok());
        assert!(enter(1, DAY_MS - 1_000).is_err());
        // More than a day has, even on a fresh day: waiting does not help.
        assert_eq!(
            enter(11, 5 * DAY_MS)
                .map_err(|fault| fault.retry_after_ms)
                .err(),
            Some(None)
        );
    }

    #[test]
    fn calls_at_one_time_come_back() {
        let all = [limit(None, Some(2), None)];
        let mut meter = Meter::default();
        let first = meter.enter(&all, &visit("Ann", "a", 1, 0)).expect("room");
        let _second = meter.enter(&all, &visit("ann", "b", 1, 0)).expect("room");
        assert!(meter.enter(&all, &visit("ANN", "c", 1, 0)).is_err());
        assert!(
            meter.enter(&all, &visit("bob", "c", 1, 0)).is_ok(),
            "counted apart"
        );
        meter.leave(first);
        assert!(meter.enter(&all, &visit("ann", "c", 1, 0)).is_ok());
    }

    #[test]
    fn a_refused_call_counts_nowhere() {
        let wide = limit(Some(5), None, None);
        let tight = Limit {
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
                (fault.id.as_str(), fault.retry_after_ms),
                ("tight", Some(61_000))
            );
        }
        assert!(
            meter.enter(&all[..1], &visit("ann", "a", 1, 0)).is_ok(),
            "four are left"
        );
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
        fn no_minute_holds_more(steps in prop::collection::vec(0_u64..20_000, 1..80), most in 1_u64..6) {
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
                    now += fault.retry_after_ms.unwrap();
                    prop_assert!(meter.enter(&all, &visit("ann", "a", 1, now)).is_ok());
                }
            }
        }
    }
}
