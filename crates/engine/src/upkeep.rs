//! What a server does between calls: it says whether a call could run, and sees to it
//! that the audit has room.

use std::sync::Mutex;
use std::time::Duration;

use model::config::{AuditConfig, WhenFull};
use model::limits;
use store::{Retention, Room};
use tokio::time::timeout;

use crate::callers::lock;
use crate::{DAY_MS, Engine, causes};

/// How full the audit is, in percent, when the owner is first told.
pub const TOLD_FROM_PERCENT: u64 = 80;

/// The owner is told once at each of these.
const TOLD_AT_PERCENT: [u64; 3] = [TOLD_FROM_PERCENT, 90, 95];

/// How full it may be before the oldest records go, and how full it is then.
const REMOVE_FROM_PERCENT: u64 = 90;
const REMOVE_TO_PERCENT: u64 = 75;

/// What was done about the audit's room.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When entries were last removed by age.
    removed_ms: Option<i64>,
    /// The threshold the owner was last told of.
    told_percent: u64,
}

impl Engine {
    /// Whether a call could run now. Otherwise the first thing in its way, in words
    /// that anybody may read: the alarm has the details.
    pub async fn ready(&self, pool_wait: Duration) -> Result<(), &'static str> {
        if self.store().ready().is_err() || self.store().audit().head().is_err() {
            return Err("the audit cannot be written");
        }
        let now = self.registry().current();
        if now.owed.is_some() {
            return Err("no settings are in force");
        }
        if now.tools().next().is_none() {
            return Err("the tools cannot be read");
        }
        match timeout(pool_wait, self.pool()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err("the sandbox does not start"),
            Err(_) => Err("the sandbox is starting"),
        }
    }

    /// Removes audit entries that are too old or, where the settings say so, too many,
    /// and tells the owner in time that the audit fills up. Blocks while it removes.
    pub fn tend_audit(&self) {
        let config = &self.registry().current().config.audit;
        self.remove_by_age(config);
        let room = match self.store().room() {
            Ok(room) => room,
            Err(fault) => return self.alarm(&causes(&fault)),
        };
        let room = match config.when_full {
            WhenFull::RemoveOldest if room.percent() >= REMOVE_FROM_PERCENT => {
                let bytes = room.bytes_max / 100 * REMOVE_TO_PERCENT;
                self.remove(&Retention {
                    older_than_ms: None,
                    bytes_max: Some(bytes),
                });
                self.store().room().unwrap_or(room)
            }
            WhenFull::RemoveOldest | WhenFull::Refuse => room,
        };
        if let Some(sentence) = self.upkeep().warning(room, config.when_full) {
            self.alarm(&sentence);
        }
    }

    fn remove_by_age(&self, config: &AuditConfig) {
        let Some(days) = config.keep_days else {
            return;
        };
        let now_ms = self.now_ms();
        if !self.upkeep().is_due(now_ms) {
            return;
        }
        let kept_ms = i64::try_from(days)
            .unwrap_or(i64::MAX)
            .saturating_mul(DAY_MS);
        self.remove(&Retention {
            older_than_ms: Some(now_ms.saturating_sub(kept_ms)),
            bytes_max: None,
        });
    }

    fn remove(&self, rule: &Retention) {
        if let Err(fault) = self.store().audit().retain(rule) {
            let why = causes(&fault);
            self.alarm(&format!("old audit entries could not be removed: {why}"));
        }
    }
}

impl Upkeep {
    /// Whether entries were last removed by age so long ago that more are too old.
    fn is_due(&self, now_ms: i64) -> bool {
        let mut state = lock(&self.state);
        let is_due = state.removed_ms.is_none_or(|removed_ms| {
            let passed_ms = now_ms.saturating_sub(removed_ms);
            u64::try_from(passed_ms).is_ok_and(|it| it >= limits::AUDIT_REMOVE_EVERY_MS)
        });
        if is_due {
            state.removed_ms = Some(now_ms);
        }
        is_due
    }

    /// What the owner is told about the room, once for each threshold.
    fn warning(&self, room: Room, when_full: WhenFull) -> Option<String> {
        let percent = room.percent();
        let reached = TOLD_AT_PERCENT.into_iter().rfind(|at| percent >= *at);
        let mut state = lock(&self.state);
        let told = std::mem::replace(&mut state.told_percent, reached.unwrap_or(0));
        let is_news = reached.is_some_and(|reached| reached > told);
        is_news.then(|| full_soon(room, when_full))
    }
}

/// What a person is told about an audit that fills up, and what to do.
#[must_use]
pub fn full_soon(room: Room, when_full: WhenFull) -> String {
    let what_then = match when_full {
        WhenFull::Refuse => {
            "when it is full, calls are refused; run `ringfence audit prune --before 90d`, \
             raise `audit.bytes_max`, or set `audit.when_full = \"remove-oldest\"`"
        }
        WhenFull::RemoveOldest => {
            "its oldest entries are removed; raise `audit.bytes_max` to keep more"
        }
    };
    format!(
        "the audit uses {} % of its {} MiB; {what_then}",
        room.percent(),
        room.bytes_max >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(percent: u64) -> Room {
        Room {
            bytes: percent * 1_000,
            bytes_max: 100_000,
        }
    }

    #[test]
    fn each_threshold_is_told_once_until_there_is_room_again() {
        let upkeep = Upkeep::default();
        let told = |percent| upkeep.warning(room(percent), WhenFull::Refuse).is_some();
        let steps = [
            (10, false),
            (79, false),
            (80, true),
            (85, false),
            (91, true),
            (90, false),
            (96, true),
            (99, false),
            (50, false),
            (82, true),
        ];
        for (percent, expected) in steps {
            assert_eq!(told(percent), expected, "{percent}");
        }
    }

    #[test]
    fn entries_are_removed_by_age_once_in_a_while() {
        let upkeep = Upkeep::default();
        let every_ms = i64::try_from(limits::AUDIT_REMOVE_EVERY_MS).expect("a length");
        assert!(upkeep.is_due(0));
        assert!(!upkeep.is_due(every_ms - 1));
        assert!(upkeep.is_due(every_ms));
    }
}
