//! Upkeep between calls: the audit is kept within its bounds, and the owner is told in
//! time that it fills up.

use std::sync::Mutex;

use model::config::{AuditConfig, WhenFull};
use model::limits;
use store::{Retention, Room, Store};

use crate::error::causes;
use crate::limit;
use crate::services::{Alarm, Clock};
use model::sync::lock;
use model::time::DAY_MS;

/// The owner is told once at each of these.
const TOLD_AT_PERCENT: [u64; 3] = [limit::AUDIT_TOLD_FROM_PERCENT, 90, 95];

/// Keeps the audit within its bounds.
#[derive(Debug)]
pub(crate) struct Upkeep {
    store: Store,
    clock: Clock,
    alarm: Alarm,
    progress: Mutex<Progress>,
}

/// What was done about the audit's room.
#[derive(Debug, Default)]
struct Progress {
    /// When entries were last removed by age.
    removed_ms: Option<i64>,
    /// The threshold that was last reported to the owner.
    told_percent: u64,
    /// Why the log cannot be signed, as it was last reported.
    told_unsigned: Option<String>,
}

impl Upkeep {
    pub(crate) fn new(store: &Store, clock: &Clock, alarm: &Alarm) -> Upkeep {
        Upkeep {
            store: store.clone(),
            clock: clock.clone(),
            alarm: alarm.clone(),
            progress: Mutex::default(),
        }
    }

    /// Removes audit entries that are too old or, where the settings say so, too many,
    /// and tells the owner in time that the audit fills up. Blocks while it removes.
    pub(crate) fn tend(&self, config: &AuditConfig) {
        self.remove_by_age(config);
        let fault = self.store.audit().signing().fault;
        let fault = fault.map(|fault| causes(&fault));
        if let Some(sentence) = lock(&self.progress).report_unsigned(fault) {
            self.alarm.raise(&sentence);
        }
        let room = match self.store.room() {
            Ok(room) => room,
            Err(fault) => return self.alarm.raise(&causes(&fault)),
        };
        let room = match config.when_full {
            WhenFull::RemoveOldest if room.percent() >= limit::AUDIT_REMOVE_FROM_PERCENT => {
                // Divided first: the product could overflow. Down to a lower mark, so
                // that not every call removes a little.
                let bytes = room.bytes_max / 100 * limit::AUDIT_REMOVE_TO_PERCENT;
                self.remove(&Retention {
                    older_than_ms: None,
                    bytes_max: Some(bytes),
                });
                self.store.room().unwrap_or(room)
            }
            WhenFull::RemoveOldest | WhenFull::Refuse => room,
        };
        if let Some(sentence) = lock(&self.progress).warning(room, config.when_full) {
            self.alarm.raise(&sentence);
        }
    }

    fn remove_by_age(&self, config: &AuditConfig) {
        let Some(days) = config.keep_days else {
            return;
        };
        let now_ms = self.clock.now_ms();
        if !lock(&self.progress).begin_if_due(now_ms) {
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
        if let Err(fault) = self.store.audit().retain(rule) {
            let why = causes(&fault);
            let alarm = &self.alarm;
            alarm.raise(&format!("old audit entries could not be removed: {why}"));
        }
    }
}

impl Progress {
    /// Whether entries were last removed by age so long ago that more are too old.
    fn begin_if_due(&mut self, now_ms: i64) -> bool {
        let is_due = self.removed_ms.is_none_or(|removed_ms| {
            let passed_ms = now_ms.saturating_sub(removed_ms);
            u64::try_from(passed_ms).is_ok_and(|it| it >= limits::AUDIT_REMOVE_EVERY_MS)
        });
        if is_due {
            self.removed_ms = Some(now_ms);
        }
        is_due
    }

    /// What the owner is told about a log that cannot be signed, once for each reason.
    fn report_unsigned(&mut self, fault: Option<String>) -> Option<String> {
        let told = std::mem::replace(&mut self.told_unsigned, fault.clone());
        fault.filter(|fault| told.as_ref() != Some(fault))
    }

    /// What the owner is told about the room, once for each threshold.
    fn warning(&mut self, room: Room, when_full: WhenFull) -> Option<String> {
        let percent = room.percent();
        let reached = TOLD_AT_PERCENT.into_iter().rfind(|at| percent >= *at);
        let told = std::mem::replace(&mut self.told_percent, reached.unwrap_or(0));
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
        let mut progress = Progress::default();
        let mut told = |percent| progress.warning(room(percent), WhenFull::Refuse).is_some();
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
    fn each_reason_for_not_signing_is_told_once() {
        let mut progress = Progress::default();
        let fault = || Some("the key is missing".to_owned());
        assert_eq!(progress.report_unsigned(None), None);
        assert_eq!(progress.report_unsigned(fault()), fault());
        assert_eq!(progress.report_unsigned(fault()), None);
        assert_eq!(progress.report_unsigned(None), None);
        assert_eq!(progress.report_unsigned(fault()), fault());
    }

    #[test]
    fn entries_are_removed_by_age_once_in_a_while() {
        let mut progress = Progress::default();
        let every_ms = i64::try_from(limits::AUDIT_REMOVE_EVERY_MS).expect("a length");
        assert!(progress.begin_if_due(0));
        assert!(!progress.begin_if_due(every_ms - 1));
        assert!(progress.begin_if_due(every_ms));
    }
}
