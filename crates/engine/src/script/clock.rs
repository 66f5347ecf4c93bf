//! Whose time it is: the script's, its tools', or a person's.
//!
//! While no tool is under way, time is the script's own. While one is, it is the
//! tools'. While every one of them waits for a person it is billed to neither: that wait
//! has a bound of its own. Both budgets run from the first moment to the last, whatever
//! is awaited in between.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use model::sync::lock;

use crate::services::Stopwatch;

/// How soon it is noticed that a budget is spent.
const LOOK: Duration = Duration::from_millis(5);

/// The clock of one script.
#[derive(Debug)]
pub(crate) struct ScriptClock {
    script_max: Duration,
    tools_max: Duration,
    watch: Stopwatch,
    state: Mutex<State>,
}

/// Whose budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    Script,
    Tools,
}

#[derive(Debug)]
struct State {
    since: Duration,
    script: Duration,
    tools: Duration,
    /// How many tools run and wait for no person.
    working: usize,
    /// How many tools wait for a person.
    asking: usize,
}

impl State {
    /// Books what passed since the last look.
    fn book(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.since);
        self.since = now;
        match (self.working, self.asking) {
            (0, 0) => self.script += passed,
            (0, _) => {}
            _ => self.tools += passed,
        }
    }
}

impl ScriptClock {
    pub(crate) fn start(watch: Stopwatch, script_ms_max: u32, tools_ms_max: u32) -> ScriptClock {
        ScriptClock {
            script_max: Duration::from_millis(u64::from(script_ms_max)),
            tools_max: Duration::from_millis(u64::from(tools_ms_max)),
            state: Mutex::new(State {
                since: watch.read(),
                script: Duration::ZERO,
                tools: Duration::ZERO,
                working: 0,
                asking: 0,
            }),
            watch,
        }
    }

    /// A tool works until this is dropped.
    pub(crate) fn work(&self) -> Working<'_> {
        self.change(|state| state.working += 1);
        Working { clock: self }
    }

    /// A tool that works begins, or ceases, to wait for a person.
    pub(crate) fn asks(&self, begins: bool) {
        self.change(|state| {
            if begins {
                state.working = state.working.saturating_sub(1);
                state.asking += 1;
            } else {
                state.asking = state.asking.saturating_sub(1);
                state.working += 1;
            }
        });
    }

    /// Returns when a budget is spent.
    pub(crate) async fn wait_until_spent(&self) -> Spent {
        loop {
            match self.left() {
                Err(spent) => return spent,
                Ok(left) => tokio::time::sleep(self.watch.pause(left, LOOK)).await,
            }
        }
    }

    /// How long both budgets last at least.
    fn left(&self) -> Result<Duration, Spent> {
        let mut state = self.state();
        state.book(self.watch.read());
        let script = self.script_max.saturating_sub(state.script);
        let tools = self.tools_max.saturating_sub(state.tools);
        if script.is_zero() {
            return Err(Spent::Script);
        }
        if tools.is_zero() {
            return Err(Spent::Tools);
        }
        Ok(script.min(tools))
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        state.book(self.watch.read());
        change(&mut state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// A tool that works.
#[derive(Debug)]
pub(crate) struct Working<'a> {
    clock: &'a ScriptClock,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        // A wait for a person ends before its tool does, so the tool counts as working
        // again here.
        self.clock
            .change(|state| state.working = state.working.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock on which only the time passes that `passed` says.
    fn frozen(script_ms_max: u32, tools_ms_max: u32) -> ScriptClock {
        let watch = Stopwatch::new(|| Duration::ZERO);
        ScriptClock::start(watch, script_ms_max, tools_ms_max)
    }

    fn passed(clock: &ScriptClock, ms: u64) {
        let mut state = clock.state();
        state.since = Duration::ZERO;
        state.book(Duration::from_millis(ms));
    }

    fn booked(clock: &ScriptClock) -> (u128, u128) {
        let state = clock.state();
        (state.script.as_millis(), state.tools.as_millis())
    }

    #[test]
    fn time_is_billed_to_script_tools_or_neither() {
        let clock = frozen(1_000, 1_000);
        passed(&clock, 10);
        assert_eq!(booked(&clock), (10, 0));
        let one = clock.work();
        passed(&clock, 20);
        let (script, tools) = booked(&clock);
        assert_eq!(tools, 20);
        // Two at one time count once.
        let two = clock.work();
        passed(&clock, 5);
        assert_eq!(booked(&clock), (script, 25));
        // One works on while the other waits for a person.
        clock.asks(true);
        passed(&clock, 5);
        assert_eq!(booked(&clock), (script, 30));
        drop(two);
        passed(&clock, 500);
        assert_eq!(booked(&clock), (script, 30));
        clock.asks(false);
        passed(&clock, 1);
        assert_eq!(booked(&clock), (script, 31));
        drop(one);
        passed(&clock, 7);
        assert_eq!(booked(&clock), (script + 7, 31));
    }

    #[test]
    fn a_spent_budget_says_whose() {
        let clock = frozen(10, 20);
        passed(&clock, 10);
        assert_eq!(clock.left(), Err(Spent::Script));
        let clock = frozen(10, 20);
        let _working = clock.work();
        passed(&clock, 20);
        assert_eq!(clock.left(), Err(Spent::Tools));
    }
}
