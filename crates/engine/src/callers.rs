//! Who is paused. A caller that a rule, a level or a person denied three times in
//! a row, or twenty times in all, is paused until a person resumes it; a person
//! can also pause one. Denials of the owner at a terminal are counted and said, and
//! pause nobody: whoever alone lets others go on must not be held by their own slips.
//!
//! Counters and pauses are in the store, for all processes of the home, and every
//! call looks whether they changed. A denial that cannot be written down is owed:
//! until it is, nothing of its caller runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::access::quota::{Conduct, Denials};
use model::audit::notice::SERVER;
use model::audit::{Act, Notice};
use model::caller::{Caller, CallerKind, folded};
use model::limits;
use model::outcome::{CallError, Outcome};
use model::reason::Reason;
use model::text;
use model::trust::{Strategy, TrustState};
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
    /// Denials that could not be written down.
    owed: Mutex<BTreeMap<Debtor, u32>>,
}

/// Whose denials are owed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Debtor {
    shown: String,
    /// The owner at a terminal, who is warned where others are paused.
    is_typed: bool,
}

impl Debtor {
    fn of(request: &CallRequest) -> Debtor {
        Debtor {
            shown: shown(&request.caller),
            is_typed: request.is_typed(),
        }
    }
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

    /// The rows as they were last looked at; every call looks when it begins.
    fn rows_seen(&self) -> Option<Arc<BTreeMap<String, CallerRow>>> {
        lock(&self.latest)
            .as_ref()
            .map(|known| Arc::clone(&known.rows))
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
    settled(&now)?;
    if request.purpose == Purpose::LocalPass {
        return Ok((now, "a Local Pass".to_owned()));
    }
    let caller = &request.caller;
    let note = not_paused(engine, request).await?;
    if !trust::is_reckoned(&now.config, caller) {
        return Ok((now, note));
    }
    match trust::look(engine, &now.config.trust, caller).await {
        Ok(None) => Ok((now, note)),
        Ok(Some(more)) => Ok((engine.registry().current(), format!("{note}; {more}"))),
        Err(why) => Err(unavailable(engine, &why)),
    }
}

/// What [`welcome`] would say, with nothing counted, kept or asked.
pub(crate) fn would_welcome(
    engine: &Engine,
    now: &Arc<Snapshot>,
    request: &CallRequest,
) -> Result<(Arc<Snapshot>, String), Stop> {
    settled(now)?;
    let note = looked_up(engine, request)?;
    match trust::foreseen(engine, now, &request.caller) {
        Ok(foreseen) => Ok((foreseen, note)),
        Err(why) => Err(unavailable(engine, &why)),
    }
}

/// Settings that are not in the audit let nobody in.
fn settled(now: &Snapshot) -> Result<(), Stop> {
    let Some(why) = &now.owed else {
        return Ok(());
    };
    let message = "the settings in force could not be written down; nothing runs until they are";
    let error = CallError::passing(Reason::AuditUnavailable, message);
    Err(Stop::refused(error).note(why.clone()))
}

/// Stops a caller that is paused.
pub(crate) async fn not_paused(engine: &Engine, request: &CallRequest) -> Result<String, Stop> {
    pay(engine, &Debtor::of(request)).await?;
    looked_up(engine, request)
}

/// Whether a caller is paused, as far as it is written down.
fn looked_up(engine: &Engine, request: &CallRequest) -> Result<String, Stop> {
    let shown = shown(&request.caller);
    let free = || Ok("not paused".to_owned());
    let rows = engine.book().rows();
    let rows = rows.map_err(|fault| unavailable(engine, &causes(&fault)))?;
    let Some(row) = rows.get(&folded(&shown)) else {
        return free();
    };
    let Some(paused) = &row.paused else {
        return free();
    };
    if request.is_typed() && paused.by == BY_DENIALS {
        return Ok("paused by denials, which holds at no terminal of the owner".to_owned());
    }
    let why = match paused.by.as_str() {
        BY_DENIALS => "you were denied too often and are paused",
        _ => "you are paused",
    };
    let mut message =
        format!("{why}; nothing runs until a person resumes you, trying again does not help");
    // Attack: an agent with a shell would take the command for the next thing to do.
    if request.caller.kind == CallerKind::Owner {
        let shown = text::one_line(&row.shown);
        message.push_str(&format!(": `ringfence callers resume {shown}`"));
    }
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
    let debtor = Debtor::of(request);
    let conduct = Conduct::of(outcome);
    trust::seen(engine, &request.caller, outcome, conduct);
    match conduct {
        Conduct::Neither => {}
        Conduct::Allowed => allowed(engine, &debtor).await,
        Conduct::Denied => {
            *lock(&engine.book().owed).entry(debtor.clone()).or_default() += 1;
            let _ = pay(engine, &debtor).await;
        }
    }
}

/// A row of denials ends. Most callers have none.
async fn allowed(engine: &Engine, debtor: &Debtor) {
    let Debtor { shown, is_typed } = debtor;
    let has_row = |rows: &BTreeMap<String, CallerRow>| {
        let row = rows.get(&folded(shown));
        row.is_some_and(|row| row.denials.in_a_row > 0 && row.paused.is_none())
    };
    // Asking again whether anything changed costs more than the rest of this. A row
    // that began meanwhile stays, which is on the safe side.
    match engine.book().rows_seen() {
        Some(rows) if !has_row(&rows) => return,
        Some(_) | None => {}
    }
    let is_typed = *is_typed;
    let ending = move |row: &mut CallerRow| {
        row.denials = match is_typed && row.paused.is_none() {
            true => row.denials.row_ended(),
            false => row.denials.allowed(),
        };
    };
    let changed = changed(engine, shown, ending).await;
    if let Err(why) = changed {
        // The row stays as long as it was, which is on the safe side.
        engine.alarm(&format!("a call could not be counted: {why}"));
    }
}

/// Writes down the denials that are owed.
async fn pay(engine: &Engine, debtor: &Debtor) -> Result<(), Stop> {
    let owed = lock(&engine.book().owed).remove(debtor);
    let Some(count) = owed else {
        return Ok(());
    };
    let Debtor { shown, is_typed } = debtor;
    let (now_ms, is_typed) = (engine.now_ms(), *is_typed);
    let paid = changed(engine, shown, move |row| {
        let before = row.denials;
        for _ in 0..count {
            row.denials = row.denials.denied();
        }
        if is_typed {
            return row.denials.is_news(before);
        }
        let is_too_often = row.denials.is_paused() && row.paused.is_none();
        if is_too_often {
            row.paused = Some(Paused {
                at_ms: now_ms,
                by: BY_DENIALS.to_owned(),
                why: Some(why_paused(row.denials)),
            });
        }
        is_too_often
    });
    match paid.await {
        Ok(is_new) => {
            let name = text::one_line(shown);
            if is_new && is_typed {
                engine.alarm(&format!(
                    "{name} was denied too often; anybody but the owner at a terminal would be paused"
                ));
            } else if is_new {
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
            *lock(&engine.book().owed).entry(debtor.clone()).or_default() += count;
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
        rows.into_iter().map(|row| self.as_of_now(row)).collect()
    }

    /// One of them.
    pub fn find(&self, name: &str) -> Result<Option<KnownCaller>, StoreError> {
        let row = self.engine.store().callers().get(name)?;
        row.map(|row| self.as_of_now(row)).transpose()
    }

    /// What is lost or earned by now is not kept yet, and holds at the next call.
    fn as_of_now(&self, mut row: CallerRow) -> Result<KnownCaller, StoreError> {
        let now = self.engine.registry().current();
        let caller = Caller::named(&*row.shown);
        let is_on = now.config.trust.strategy != Strategy::Disabled;
        if is_on && !trust::is_reckoned(&now.config, &caller) {
            // What it earned before counts for nothing where trust does not cover it.
            row.trust = None;
        }
        if row.trust.is_some() {
            let due = trust::due(self.engine, &now.config.trust, &row.shown)?;
            row.trust = due.or(row.trust);
        }
        Ok(known(row))
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
