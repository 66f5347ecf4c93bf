//! Who is paused. A caller that a rule, a level or a person denied three times in
//! a row, or twenty times in all, is paused until a person resumes it; a person
//! can also pause one.
//!
//! Counters and pauses are in the store, for all processes of the home, and every
//! call looks whether they changed. A denial that cannot be written down is owed:
//! until it is, nothing of its caller runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::access::quota::{Conduct, Denials};
use model::audit::notice::SERVER;
use model::audit::{Act, Notice};
use model::caller::Caller;
use model::limits;
use model::outcome::{CallError, Outcome};
use model::reason::Reason;
use model::text;
use model::trust::TrustState;
use serde::Serialize;
use store::callers::{CallerRow, Paused};
use store::{Store, StoreError};

use crate::call::{CallRequest, NAME_SHOWN_CHARS_MAX, Purpose};
use crate::notice::{loudly, with_notice};
use crate::record::Stop;
use crate::registry::Snapshot;
use crate::{Engine, causes, trust};

/// Who pauses those who are denied too often.
const BY_DENIALS: &str = "denials";
/// Through what people pause and resume.
const THROUGH: &str = "cli";

/// What is remembered about callers, as of the last look.
#[derive(Debug)]
pub(crate) struct CallerBook {
    store: Store,
    latest: Mutex<Option<Latest>>,
    /// Denials that could not be written down, by caller.
    owed: Mutex<BTreeMap<String, u32>>,
}

#[derive(Debug)]
struct Latest {
    version: u64,
    rows: Arc<BTreeMap<String, CallerRow>>,
    earned: Arc<BTreeMap<String, TrustState>>,
}

impl CallerBook {
    pub(crate) fn new(store: &Store) -> CallerBook {
        CallerBook {
            store: store.clone(),
            latest: Mutex::default(),
            owed: Mutex::default(),
        }
    }

    /// What every caller earned; the same pointer while nothing changed.
    pub(crate) fn earned(&self) -> Result<Arc<BTreeMap<String, TrustState>>, StoreError> {
        self.look(|latest| Arc::clone(&latest.earned))
    }

    /// The same, read anew. Whoever starts with what everybody starts with is no
    /// news; when the settings change what that is, it matters who had begun.
    pub(crate) fn earned_anew(&self) -> Result<Arc<BTreeMap<String, TrustState>>, StoreError> {
        lock(&self.latest).take();
        self.earned()
    }

    fn rows(&self) -> Result<Arc<BTreeMap<String, CallerRow>>, StoreError> {
        self.look(|latest| Arc::clone(&latest.rows))
    }

    fn look<T>(&self, read: impl FnOnce(&Latest) -> T) -> Result<T, StoreError> {
        let callers = self.store.callers();
        let mut latest = lock(&self.latest);
        let version = callers.version()?;
        match &*latest {
            Some(known) if known.version == version => return Ok(read(known)),
            Some(_) | None => {}
        }
        let rows = callers.all()?;
        let rows: BTreeMap<_, _> = rows
            .into_iter()
            .map(|row| (row.name.clone(), row))
            .collect();
        let earned = rows.iter();
        let earned = earned.filter_map(|(name, row)| Some((name.clone(), row.trust.clone()?)));
        let earned: BTreeMap<_, _> = earned.collect();
        let earned = match latest.take() {
            Some(old) if *old.earned == earned => old.earned,
            Some(_) | None => Arc::new(earned),
        };
        let new = latest.insert(Latest {
            version,
            rows: Arc::new(rows),
            earned,
        });
        Ok(read(new))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name a caller is remembered by, as the audit has it.
pub(crate) fn shown(caller: &Caller) -> String {
    text::elided(&caller.name, NAME_SHOWN_CHARS_MAX)
}

/// May anything of this caller run? Whoever trust is to be reckoned for is looked
/// at first, so the answer is what holds after that.
pub(crate) async fn welcome(
    engine: &Engine,
    now: Arc<Snapshot>,
    request: &CallRequest,
) -> Result<(Arc<Snapshot>, String), Stop> {
    if request.purpose == Purpose::LocalPass {
        return Ok((now, "a Local Pass".to_owned()));
    }
    let caller = &request.caller;
    not_paused(engine, caller).await?;
    if !trust::is_reckoned(&now.config.trust, caller) {
        return Ok((now, "not paused".to_owned()));
    }
    match trust::look(engine, &now.config.trust, caller).await {
        Ok(None) => Ok((now, "not paused".to_owned())),
        Ok(Some(note)) => Ok((engine.registry().current(), format!("not paused; {note}"))),
        Err(why) => Err(unavailable(engine, &why)),
    }
}

/// Stops a caller that is paused.
pub(crate) async fn not_paused(engine: &Engine, caller: &Caller) -> Result<(), Stop> {
    pay(engine, &shown(caller)).await?;
    looked_up(engine, caller).map(|_| ())
}

/// Whether a caller is paused, as far as it is written down.
pub(crate) fn looked_up(engine: &Engine, caller: &Caller) -> Result<((), String), Stop> {
    let shown = shown(caller);
    let free = || Ok(((), "not paused".to_owned()));
    let rows = engine.book().rows();
    let rows = rows.map_err(|fault| unavailable(engine, &causes(&fault)))?;
    let Some(row) = rows.get(&shown.to_lowercase()) else {
        return free();
    };
    let Some(paused) = &row.paused else {
        return free();
    };
    let why = match paused.by.as_str() {
        BY_DENIALS => "you were denied too often and are paused",
        _ => "you are paused",
    };
    let message = format!(
        "{why}; nothing runs until a person resumes you, trying again does not help: \
         `ringfence callers resume {}`",
        text::one_line(&row.shown)
    );
    let note = format!(
        "paused by {}: {}",
        text::one_line(&paused.by),
        paused.why.as_deref().unwrap_or("no reason given")
    );
    Err(Stop::refused(CallError::new(Reason::CallerPaused, message)).note(note))
}

fn unavailable(engine: &Engine, why: &str) -> Stop {
    engine.alarm(&format!("callers cannot be looked up: {why}"));
    let message = "it cannot be looked up whether you may call; it did not run";
    let error = CallError::passing(Reason::CallerUnavailable, message);
    Stop::refused(error).note(why.to_owned())
}

/// Writes down what a call says about its caller, before its answer leaves.
pub(crate) async fn count(engine: &Engine, request: &CallRequest, outcome: &Outcome) {
    if request.purpose == Purpose::LocalPass {
        return;
    }
    let shown = shown(&request.caller);
    let conduct = Conduct::of(outcome);
    trust::seen(engine, &request.caller, outcome, conduct);
    match conduct {
        Conduct::Neither => {}
        Conduct::Allowed => allowed(engine, &shown).await,
        Conduct::Denied => {
            *lock(&engine.book().owed).entry(shown.clone()).or_default() += 1;
            let _ = pay(engine, &shown).await;
        }
    }
}

/// A row of denials ends. Most callers have none.
async fn allowed(engine: &Engine, shown: &str) {
    let has_row = |rows: &BTreeMap<String, CallerRow>| {
        let row = rows.get(&shown.to_lowercase());
        row.is_some_and(|row| row.denials.in_a_row > 0 && row.paused.is_none())
    };
    match engine.book().rows() {
        Ok(rows) if !has_row(&rows) => return,
        Ok(_) | Err(_) => {}
    }
    let changed = changed(engine, shown, |row| row.denials = row.denials.allowed()).await;
    if let Err(why) = changed {
        // The row stays as long as it was, which is on the safe side.
        engine.alarm(&format!("a call could not be counted: {why}"));
    }
}

/// Writes down the denials that are owed.
async fn pay(engine: &Engine, shown: &str) -> Result<(), Stop> {
    let owed = lock(&engine.book().owed).remove(shown);
    let Some(count) = owed else {
        return Ok(());
    };
    let now_ms = engine.now_ms();
    let paid = changed(engine, shown, move |row| {
        for _ in 0..count {
            row.denials = row.denials.denied();
        }
        let is_new = row.denials.is_paused() && row.paused.is_none();
        if is_new {
            row.paused = Some(Paused {
                at_ms: now_ms,
                by: BY_DENIALS.to_owned(),
                why: Some(why_paused(row.denials)),
            });
        }
        is_new
    });
    match paid.await {
        Ok(is_new) => {
            if is_new {
                let name = text::one_line(shown);
                engine.alarm(&format!(
                    "{name} was denied too often and is paused; `ringfence callers resume {name}`"
                ));
                let message = format!("{name} was denied too often and is paused");
                let notice = Notice::new(Act::CallerPaused, SERVER, BY_DENIALS, &message);
                let notice = notice.about(shown);
                let (store, alarm) = (engine.store().clone(), engine.alarm_of().clone());
                let writing = move || loudly(&store, &alarm, notice);
                let _ = tokio::task::spawn_blocking(writing).await;
            }
            Ok(())
        }
        Err(why) => {
            *lock(&engine.book().owed)
                .entry(shown.to_owned())
                .or_default() += count;
            Err(unavailable(engine, &why))
        }
    }
}

fn why_paused(denials: Denials) -> String {
    if denials.in_a_row >= limits::DENIALS_IN_A_ROW_MAX {
        return format!("denied {} times in a row", denials.in_a_row);
    }
    format!("denied {} times in all", denials.in_all)
}

/// Work on the database waits for the disk, and so on a thread that may.
async fn changed<T: Send + 'static>(
    engine: &Engine,
    shown: &str,
    change: impl FnOnce(&mut CallerRow) -> T + Send + 'static,
) -> Result<T, String> {
    let (store, shown) = (engine.store().clone(), shown.to_owned());
    let now_ms = engine.now_ms();
    let work = move || store.callers().change(&shown, now_ms, change);
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(Some(done))) => Ok(done),
        Ok(Ok(None)) => Err(too_many()),
        Ok(Err(fault)) => Err(causes(&fault)),
        Err(_) => Err("the thread that counts died".to_owned()),
    }
}

fn too_many() -> String {
    let most = limits::CALLERS_MAX;
    format!("there are more than {most} callers to remember; resume or forget some")
}

/// A caller as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownCaller {
    /// Its name.
    pub name: String,
    /// Whether nothing of it runs.
    pub paused: bool,
    /// Since when, in milliseconds since 1970.
    pub paused_at_ms: Option<i64>,
    /// By whom.
    pub paused_by: Option<String>,
    /// Why.
    pub paused_why: Option<String>,
    /// Denials since the last call that was let through.
    pub denied_in_a_row: u32,
    /// Denials since a person last resumed it.
    pub denied_in_all: u32,
    /// The level it earned for all tools; nothing while trust was never reckoned.
    pub earned: Option<&'static str>,
}

/// Pauses and resumes callers. For the owner and operators; which door may have
/// it is for the door to make sure of.
#[derive(Clone, Copy, Debug)]
pub struct Callers<'a> {
    engine: &'a Engine,
}

impl Engine {
    /// What is remembered about callers, for the owner and for operators.
    #[must_use]
    pub fn callers(&self) -> Callers<'_> {
        Callers { engine: self }
    }
}

impl Callers<'_> {
    /// All of whom something is remembered, by name.
    pub fn list(&self) -> Result<Vec<KnownCaller>, StoreError> {
        let rows = self.engine.store().callers().all()?;
        Ok(rows.into_iter().map(known).collect())
    }

    /// One of them.
    pub fn find(&self, name: &str) -> Result<Option<KnownCaller>, StoreError> {
        let row = self.engine.store().callers().get(name)?;
        Ok(row.map(known))
    }

    /// Nothing of the caller runs from here on, whether it was ever seen or not.
    /// The answer is nothing if there are too many callers to remember.
    pub fn pause(
        &self,
        name: &str,
        by: &Caller,
        why: Option<&str>,
    ) -> Result<Option<KnownCaller>, StoreError> {
        let at_ms = self.engine.now_ms();
        let why = why.map(str::trim).filter(|why| !why.is_empty());
        let why = why.map(|why| text::elided(why, limits::APPROVAL_NOTE_CHARS_MAX));
        let paused = Paused {
            at_ms,
            by: by.name.clone(),
            why: why.clone(),
        };
        let callers = self.engine.store().callers();
        let changed = callers.change(name, at_ms, |row| {
            row.paused.get_or_insert(paused);
            known(row.clone())
        })?;
        if changed.is_some() {
            let message = format!("{} was paused", text::one_line(name));
            let notice = Notice::new(Act::CallerPaused, &by.name, THROUGH, &message);
            let notice = notice.about(name);
            self.engine.noticed(match &why {
                Some(why) => notice.detail("why", why),
                None => notice,
            });
        }
        Ok(changed)
    }

    /// A person looked: the caller goes on, and its denials count from nothing.
    /// The answer is whether it was paused.
    pub fn resume(&self, name: &str, by: &Caller) -> Result<bool, StoreError> {
        let (store, alarm) = (self.engine.store(), self.engine.alarm_of());
        let callers = store.callers();
        if callers.get(name)?.is_none_or(|row| row.paused.is_none()) {
            return Ok(false);
        }
        let message = format!("{} may go on", text::one_line(name));
        let notice = Notice::new(Act::CallerResumed, &by.name, THROUGH, &message);
        let resume = || {
            let changed = callers.change(name, self.engine.now_ms(), |row| {
                row.denials = Denials::resumed();
                row.paused.take().is_some()
            })?;
            Ok(changed.unwrap_or(false))
        };
        with_notice(store, alarm, true, notice.about(name), resume, |done| *done)
    }
}

fn known(row: CallerRow) -> KnownCaller {
    use model::document::Word as _;
    let paused = row.paused;
    KnownCaller {
        name: text::one_line(&row.shown),
        paused: paused.is_some(),
        paused_at_ms: paused.as_ref().map(|paused| paused.at_ms),
        paused_by: paused.as_ref().map(|paused| text::one_line(&paused.by)),
        paused_why: paused
            .and_then(|paused| paused.why)
            .map(|why| text::one_line(&why)),
        denied_in_a_row: row.denials.in_a_row,
        denied_in_all: row.denials.in_all,
        earned: row.trust.map(|state| state.all.level.word()),
    }
}
