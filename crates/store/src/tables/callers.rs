//! Callers: their denials, pauses, trust levels, and the feedback people gave on them.
//!
//! Every call checks whether its caller is paused, so a small file beside the database
//! holds a version number that all processes see, as for publications. The engine
//! decides what to change; a change is one transaction.

use std::collections::BTreeMap;

use model::caller::folded;
use model::govern::access::AccessLevel;
use model::govern::access::quota::Denials;
use model::govern::trust::{Feedback, Track, TrustState};
use model::limits;
use model::word::Word as _;

use crate::error::StoreError;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::version::VersionCounter;
use crate::sql::{self, Executor, SqlRow, SqlValue, unknown, values};

const READING: &str = "read the callers";
const CHANGING: &str = "change a caller";
const READ_VERSION: &str = "SELECT version FROM callers_version";
const COLUMNS: &str = "name, shown, in_a_row, in_all, paused_ms, paused_by, paused_why, \
                       evaluated_ms, changed_ms";
/// The category that stands for all tools.
const ALL_TOOLS: &str = "";
/// Named as the person who agreed to a level that the settings start with.
const BY_SETTINGS: &str = "settings";

/// One caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerRow {
    /// The name in the form [`folded`] returns.
    pub name: String,
    /// The name as the audit shows it.
    pub shown: String,
    /// How often it was denied.
    pub denials: Denials,
    /// Whether its calls are refused.
    pub paused: Option<Paused>,
    /// Its trust levels.
    pub trust: Option<TrustState>,
    /// When they were last computed, in milliseconds since 1970.
    pub evaluated_ms: Option<i64>,
    /// When the row last changed.
    pub changed_ms: i64,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Since when, in milliseconds since 1970.
    pub at_ms: i64,
    /// By whom.
    pub by: String,
    /// Why.
    pub why: Option<String>,
}

/// Feedback from a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedbackRow {
    /// The score, when and about what.
    pub feedback: Feedback,
    /// What they added.
    pub note: Option<String>,
    /// Who.
    pub by: String,
}

/// A promotion that a person agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raise {
    /// The category; all tools if absent.
    pub category: Option<String>,
    /// The track as it was when the person was asked.
    pub from: Track,
    /// The track from now on.
    pub to: Track,
    /// Who agreed.
    pub by: String,
}

/// The result of saving trust levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustSave {
    /// They are saved.
    Yes,
    /// Another process changed them meanwhile.
    Changed,
    /// There is no room for another caller.
    Full,
}

/// Denials, pauses, trust levels and feedback of callers.
#[derive(Debug)]
pub struct CallerRecords {
    tables: Tables,
    counter: VersionCounter,
}

impl CallerRecords {
    /// `opened` is connected already; the records connect at their first use.
    pub(crate) fn open(
        tables: Tables,
        opened: &Tables,
        counter: VersionCounter,
    ) -> Result<CallerRecords, StoreError> {
        // A process may have died after the database changed and before the file did.
        let version = opened.read(READING, |tables| tables.number(READ_VERSION, values![]))?;
        counter.raise(version)?;
        Ok(CallerRecords { tables, counter })
    }

    /// A number that changes whenever any process changes denials, pauses or
    /// levels. Read it before [`CallerRecords::all`], never after.
    pub fn version(&self) -> Result<u64, StoreError> {
        if self.counter.find()? {
            self.write_news(|_| Ok((true, ())))?;
        }
        self.counter.read()
    }

    /// All of them, by name.
    pub fn all(&self) -> Result<Vec<CallerRow>, StoreError> {
        let (mut rows, found) = self.tables.read_moment(READING, |moment| {
            let sql = format!("SELECT {COLUMNS} FROM callers ORDER BY name");
            let rows = moment.query(&sql, values![], caller_of)?;
            let sql = "SELECT caller, category, level, since_ms, verified_ms FROM trust";
            let found: Vec<(String, String, Track)> = moment.query(sql, values![], |row| {
                Ok((row.get(0)?, row.get(1)?, track_of(row, 2)?))
            })?;
            Ok((rows, found))
        })?;
        let mut tracks: BTreeMap<String, Vec<(String, Track)>> = BTreeMap::new();
        for (caller, category, track) in found {
            tracks.entry(caller).or_default().push((category, track));
        }
        for row in &mut rows {
            row.trust = tracks.remove(&row.name).and_then(state_of);
        }
        Ok(rows)
    }

    /// One by its name; case does not matter.
    pub fn get(&self, name: &str) -> Result<Option<CallerRow>, StoreError> {
        let name = folded(name);
        let read_one = |moment: Executor<'_>| read(moment, &name);
        self.tables.read_moment(READING, read_one)
    }

    /// Changes the denials and the pause of a caller. Returns nothing if the caller is new
    /// and there is no room for it.
    pub fn change<T>(
        &self,
        shown: &str,
        now_ms: i64,
        change: impl FnOnce(&mut CallerRow) -> T,
    ) -> Result<Option<T>, StoreError> {
        let name = folded(shown);
        self.write(|transaction| {
            let found = read(transaction, &name)?;
            if found.is_none() && !has_room(transaction)? {
                return Ok((false, None));
            }
            let before = found.unwrap_or_else(|| new_row(&name, shown, now_ms));
            let mut after = before.clone();
            let changed = change(&mut after);
            let is_same = after.denials == before.denials && after.paused == before.paused;
            if !is_same {
                put(transaction, &after, now_ms)?;
            }
            Ok((!is_same, Some(changed)))
        })
    }

    /// Saves the trust levels of a caller, if they are still what they were.
    pub fn keep_trust(
        &self,
        shown: &str,
        before: Option<&TrustState>,
        after: &TrustState,
        now_ms: i64,
    ) -> Result<TrustSave, StoreError> {
        let name = folded(shown);
        self.write(|transaction| {
            let found = read(transaction, &name)?;
            if found.is_none() {
                if !has_room(transaction)? {
                    return Ok((false, TrustSave::Full));
                }
                put(transaction, &new_row(&name, shown, now_ms), now_ms)?;
            }
            let kept = found.and_then(|row| row.trust);
            if kept.as_ref() != before {
                return Ok((false, TrustSave::Changed));
            }
            let old = tracks_of(before);
            for (category, track) in tracks_of(Some(after)) {
                let had = old.get(&category);
                put_track(transaction, &name, &category, track, had.is_none())?;
            }
            transaction.execute(
                "UPDATE callers SET evaluated_ms = ?2 WHERE name = ?1",
                values![name, now_ms],
            )?;
            let levels = |state: Option<&TrustState>| -> Vec<_> {
                let tracks = tracks_of(state).into_iter();
                tracks.map(|(name, track)| (name, track.level)).collect()
            };
            // A new caller has the initial levels, which is no change.
            let is_news = before.is_some() && levels(before) != levels(Some(after));
            Ok((is_news, TrustSave::Yes))
        })
    }

    /// Raises a level, if it is still the one the person was asked about.
    pub fn raise(&self, name: &str, raise: &Raise) -> Result<bool, StoreError> {
        let category = raise.category.as_deref().unwrap_or(ALL_TOOLS);
        self.write(|transaction| {
            let changed = transaction.execute(
                "UPDATE trust SET level = ?5, since_ms = ?6, verified_ms = ?7, agreed_by = ?8
                 WHERE caller = ?1 AND category = ?2 AND level = ?3 AND since_ms = ?4",
                values![
                    folded(name),
                    category,
                    raise.from.level.word(),
                    raise.from.since_ms,
                    raise.to.level.word(),
                    raise.to.since_ms,
                    raise.to.verified_ms,
                    raise.by,
                ],
            )?;
            Ok((changed == 1, changed == 1))
        })
    }

    /// Saves feedback. Returns whether it was saved: there may be no room for a new caller.
    pub fn add_feedback(&self, shown: &str, said: &FeedbackRow) -> Result<bool, StoreError> {
        let name = folded(shown);
        let Feedback {
            at_ms,
            score,
            category,
        } = &said.feedback;
        self.write(|transaction| {
            if read(transaction, &name)?.is_none() {
                if !has_room(transaction)? {
                    return Ok((false, false));
                }
                put(transaction, &new_row(&name, shown, *at_ms), *at_ms)?;
            }
            transaction.execute(
                "INSERT INTO feedback VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                values![name, at_ms, i64::from(*score), category, said.note, said.by],
            )?;
            transaction.execute(
                "DELETE FROM feedback WHERE caller = ?1 AND rowid NOT IN
                 (SELECT rowid FROM feedback WHERE caller = ?1 ORDER BY at_ms DESC, rowid DESC LIMIT ?2)",
                values![name, bound(limits::TRUST_FEEDBACK_MAX)],
            )?;
            Ok((false, true))
        })
    }

    /// The feedback on a caller, newest first.
    pub fn feedback(&self, name: &str) -> Result<Vec<FeedbackRow>, StoreError> {
        let sql = "SELECT at_ms, score, category, note, by FROM feedback
                   WHERE caller = ?1 ORDER BY at_ms DESC, rowid DESC LIMIT ?2";
        let most = bound(limits::TRUST_FEEDBACK_MAX);
        self.tables.read(READING, |tables| {
            tables.query(sql, values![folded(name), most], |row| {
                let score: i64 = row.get(1)?;
                let score = score.try_into();
                Ok(FeedbackRow {
                    feedback: Feedback {
                        at_ms: row.get(0)?,
                        score: score.map_err(|_| unknown("a score is out of range"))?,
                        category: row.get(2)?,
                    },
                    note: row.get(3)?,
                    by: row.get(4)?,
                })
            })
        })
    }

    /// Makes a change in a transaction, and raises the version if the change says so.
    fn write<T>(
        &self,
        change: impl FnOnce(Executor<'_>) -> sql::Result<(bool, T)>,
    ) -> Result<T, StoreError> {
        // Checked before anything is written: if the version could not be raised after
        // the commit, the caller would get an error and make the change again.
        let is_lost = self.counter.find()?;
        self.write_news(|transaction| {
            let (is_news, done) = change(transaction)?;
            // Another process may have missed a change with the old file.
            Ok((is_news || is_lost, done))
        })
    }

    fn write_news<T>(
        &self,
        change: impl FnOnce(Executor<'_>) -> sql::Result<(bool, T)>,
    ) -> Result<T, StoreError> {
        let writers = Writers::OneOf(LockedTable::Callers);
        let (version, done) = self.tables.change(CHANGING, &writers, |executor| {
            let (is_news, done) = change(executor)?;
            if is_news {
                let sql = "UPDATE callers_version SET version = version + 1";
                executor.execute(sql, values![])?;
            }
            Ok((executor.number(READ_VERSION, values![])?, done))
        })?;
        self.counter.raise(version)?;
        Ok(done)
    }
}

fn new_row(name: &str, shown: &str, now_ms: i64) -> CallerRow {
    CallerRow {
        name: name.to_owned(),
        shown: shown.to_owned(),
        denials: Denials::default(),
        paused: None,
        trust: None,
        evaluated_ms: None,
        changed_ms: now_ms,
    }
}

fn read(transaction: Executor<'_>, name: &str) -> sql::Result<Option<CallerRow>> {
    let sql = format!("SELECT {COLUMNS} FROM callers WHERE name = ?1");
    let Some(mut row) = transaction.query_first(&sql, values![name], caller_of)? else {
        return Ok(None);
    };
    let sql = "SELECT category, level, since_ms, verified_ms FROM trust WHERE caller = ?1";
    let track = |row: &SqlRow<'_>| Ok((row.get(0)?, track_of(row, 1)?));
    row.trust = state_of(transaction.query(sql, values![name], track)?);
    Ok(Some(row))
}

fn caller_of(row: &SqlRow<'_>) -> sql::Result<CallerRow> {
    let paused = match (row.get(4)?, row.get(5)?) {
        (Some(at_ms), Some(by)) => Some(Paused {
            at_ms,
            by,
            why: row.get(6)?,
        }),
        _ => None,
    };
    Ok(CallerRow {
        name: row.get(0)?,
        shown: row.get(1)?,
        denials: Denials {
            in_a_row: row.count(2)?.try_into().unwrap_or(u32::MAX),
            in_all: row.count(3)?.try_into().unwrap_or(u32::MAX),
        },
        paused,
        trust: None,
        evaluated_ms: row.get(7)?,
        changed_ms: row.get(8)?,
    })
}

fn track_of(row: &SqlRow<'_>, first: usize) -> sql::Result<Track> {
    let word: String = row.get(first)?;
    // Invariant 8: an unknown word is an error, not a level.
    let level = AccessLevel::ALL.iter().find(|level| level.word() == word);
    let no_level = || unknown(format_args!("there is no level `{word}`"));
    Ok(Track {
        level: *level.ok_or_else(no_level)?,
        since_ms: row.get(first + 1)?,
        verified_ms: row.get(first + 2)?,
    })
}

fn state_of(tracks: Vec<(String, Track)>) -> Option<TrustState> {
    let mut categories: BTreeMap<_, _> = tracks.into_iter().collect();
    let all = categories.remove(ALL_TOOLS)?;
    Some(TrustState { all, categories })
}

fn tracks_of(state: Option<&TrustState>) -> BTreeMap<String, &Track> {
    let mut tracks = BTreeMap::new();
    if let Some(state) = state {
        tracks.insert(ALL_TOOLS.to_owned(), &state.all);
        let categories = state.categories.iter();
        tracks.extend(categories.map(|(name, track)| (name.clone(), track)));
    }
    tracks
}

fn put(transaction: Executor<'_>, row: &CallerRow, now_ms: i64) -> sql::Result<()> {
    let paused = row.paused.as_ref();
    transaction.execute(
        "INSERT INTO callers
         (name, shown, in_a_row, in_all, paused_ms, paused_by, paused_why, changed_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (name) DO UPDATE SET in_a_row = ?3, in_all = ?4, paused_ms = ?5,
         paused_by = ?6, paused_why = ?7, changed_ms = ?8",
        values![
            row.name,
            row.shown,
            i64::from(row.denials.in_a_row),
            i64::from(row.denials.in_all),
            paused.map(|paused| paused.at_ms),
            paused.map(|paused| &paused.by),
            paused.and_then(|paused| paused.why.as_ref()),
            now_ms,
        ],
    )?;
    Ok(())
}

fn put_track(
    transaction: Executor<'_>,
    name: &str,
    category: &str,
    track: &Track,
    is_new: bool,
) -> sql::Result<()> {
    let begins_elevated = is_new && track.level == AccessLevel::Elevated;
    let agreed = begins_elevated.then_some(BY_SETTINGS);
    let (level, since, verified) = (track.level.word(), track.since_ms, track.verified_ms);
    let sql = if is_new {
        "INSERT INTO trust VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    } else {
        // The agreement belongs to the level; with another level it is gone.
        "UPDATE trust SET agreed_by = CASE WHEN level = ?3 THEN agreed_by ELSE ?6 END,
         level = ?3, since_ms = ?4, verified_ms = ?5 WHERE caller = ?1 AND category = ?2"
    };
    let values: &[&dyn SqlValue] = values![name, category, level, since, verified, agreed];
    transaction.execute(sql, values)?;
    Ok(())
}

/// Whether another caller fits. The caller that changed longest ago makes room, unless
/// it is paused, has a trust level or has feedback.
fn has_room(transaction: Executor<'_>) -> sql::Result<bool> {
    let count = transaction.number("SELECT count(*) FROM callers", values![])?;
    if u64::try_from(count).unwrap_or(u64::MAX) < limits::CALLERS_MAX {
        return Ok(true);
    }
    // Those that were denied before stay longer: their count is what a pause is decided by.
    let removed = transaction.execute(
        "DELETE FROM callers WHERE name =
         (SELECT name FROM callers WHERE paused_ms IS NULL
          AND NOT EXISTS (SELECT 1 FROM trust WHERE caller = name)
          AND NOT EXISTS (SELECT 1 FROM feedback WHERE caller = name)
          ORDER BY in_all > 0, changed_ms LIMIT 1)",
        values![],
    )?;
    Ok(removed == 1)
}

fn bound(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
