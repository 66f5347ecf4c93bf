//! Who is paused. A caller that a rule, a level or a person denied three times in
//! a row, or twenty times in all, is paused until a person resumes it; a person
//! can also pause one. Denials of the owner at a terminal are counted and announced, but
//! do not pause: the owner resumes paused callers and must not lock themselves out.
//!
//! Counters and pauses are in the store, for all processes of the home, and every
//! call looks whether they changed. A denial that cannot be written down is owed:
//! until it is, nothing of its caller runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use model::caller::{Caller, CallerKind, folded};
use model::govern::access::quota::{DenialCount, Denials};
use model::govern::trust::{Strategy, TrustState};
use model::limits;
use model::reason::Reason;
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice};
use model::record::outcome::{CallError, Outcome};
use model::text;
use serde::Serialize;
use store::callers::{CallerRow, Paused};
use store::{Store, StoreError};

use crate::error::causes;
use crate::notice::{loudly, with_notice};
use crate::refusal::{CallRefusal, GatePass, GateResult};
use crate::request::{CallPurpose, CallRequest, shown};
use crate::services::{Alarm, Clock};
use crate::snapshot::Snapshot;
use crate::trust::{self, Schedule};
use model::sync::lock;

/// Who pauses those who are denied too often.
const BY_DENIALS: &str = "denials";

/// What is remembered about callers, as of the last look.
#[derive(Debug)]
pub(crate) struct CallerBook {
    store: Store,
    clock: Clock,
    alarm: Alarm,
    latest: Mutex<Option<Latest>>,
    debts: Arc<Debts>,
}

/// Denials that are not written down yet.
#[derive(Debug, Default)]
struct Debts {
    /// Until they are written, so that no call runs between the two.
    owed: Mutex<BTreeMap<Debtor, u32>>,
    /// Held while some are written: two calls must not write the same ones.
    paying: Mutex<()>,
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
    pub(crate) fn new(store: &Store, clock: &Clock, alarm: &Alarm) -> CallerBook {
        CallerBook {
            store: store.clone(),
            clock: clock.clone(),
            alarm: alarm.clone(),
            latest: Mutex::default(),
            debts: Arc::default(),
        }
    }

    /// What every caller earned; the same pointer while nothing changed.
    pub(crate) fn earned(&self) -> Result<Arc<BTreeMap<String, TrustState>>, StoreError> {
        self.look(|latest| Arc::clone(&latest.earned))
    }

    /// The same, read from the store. A caller that has the initial level changes no
    /// version; when the settings change the initial level, it matters who has one.
    pub(crate) fn read_earned(&self) -> Result<Arc<BTreeMap<String, TrustState>>, StoreError> {
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
        // Locked before the version is read: a slower reader must not put older rows over
        // newer ones.
        let mut latest = lock(&self.latest);
        // Read before the rows. A change in between leaves the older version, so the next
        // look reads again.
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
        // The same pointer where nothing changed: the registry compares pointers to
        // decide whether to build a new snapshot.
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

/// The gate of callers, and what a call says about its caller.
impl CallerBook {
    /// May anything of this caller run?
    pub(crate) async fn check(&self, now: &Snapshot, request: &CallRequest) -> GateResult<()> {
        // Before the purpose is looked at: without recorded settings not even a test
        // runs.
        check_settings_recorded(now)?;
        if request.purpose == CallPurpose::LocalPass {
            return Ok(GatePass::new((), "a Local Pass"));
        }
        let note = self.recheck(request).await?;
        Ok(GatePass::new((), note))
    }

    /// What [`CallerBook::check`] would say, with nothing counted, kept or asked.
    pub(crate) fn preview(&self, now: &Snapshot, request: &CallRequest) -> GateResult<()> {
        check_settings_recorded(now)?;
        let note = self.check_pause(request)?;
        Ok(GatePass::new((), note))
    }

    /// Refuses a caller that is paused. Also asked after a person answered, who may
    /// have taken long.
    pub(crate) async fn recheck(&self, request: &CallRequest) -> Result<String, CallRefusal> {
        // Written down first, because they may be what pauses the caller.
        self.pay(&Debtor::of(request)).await?;
        self.check_pause(request)
    }

    /// Whether a caller is paused, as far as it is written down.
    fn check_pause(&self, request: &CallRequest) -> Result<String, CallRefusal> {
        let shown = shown(&request.caller);
        let rows = self.rows();
        let rows = rows.map_err(|fault| self.unavailable(&causes(&fault)))?;
        let paused = rows
            .get(&folded(&shown))
            .and_then(|row| Some((row, row.paused.as_ref()?)));
        let Some((row, paused)) = paused else {
            return Ok("not paused".to_owned());
        };
        // Only a pause by denials. One by a person holds for the owner as well.
        if request.is_typed() && paused.by == BY_DENIALS {
            return Ok(
                "paused after denials, which does not apply to the owner at a terminal".to_owned(),
            );
        }
        Err(paused_refusal(request, row, paused))
    }

    /// The refusal of a call whose caller cannot be looked up.
    pub(crate) fn unavailable(&self, why: &str) -> CallRefusal {
        self.alarm
            .raise(&format!("the caller records cannot be read: {why}"));
        let message = "your caller record cannot be read; the call did not run";
        let error = CallError::passing(Reason::CallerUnavailable, message);
        CallRefusal::new(error).noted(why)
    }

    /// Writes down what a call says about its caller, before its answer leaves.
    pub(crate) async fn count(&self, request: &CallRequest, outcome: &Outcome) {
        if request.purpose == CallPurpose::LocalPass {
            return;
        }
        let debtor = Debtor::of(request);
        match DenialCount::of(outcome) {
            DenialCount::Neither => {}
            DenialCount::Allowed => self.end_denials_in_a_row(&debtor).await,
            DenialCount::Denied => {
                *lock(&self.debts.owed).entry(debtor.clone()).or_default() += 1;
                // If it is not written, it stays owed, and `recheck` refuses the next
                // call.
                let _ = self.pay(&debtor).await;
            }
        }
    }

    /// Ends a row of denials. Most callers have none.
    async fn end_denials_in_a_row(&self, debtor: &Debtor) {
        let Debtor { shown, is_typed } = debtor;
        let has_row = |rows: &BTreeMap<String, CallerRow>| {
            let row = rows.get(&folded(shown));
            row.is_some_and(|row| row.denials.in_a_row > 0 && row.paused.is_none())
        };
        // Asking again whether anything changed costs more than the rest of this. A row
        // that began in between stays, which is on the safe side.
        match self.rows_seen() {
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
        if let Err(why) = self.update_row(shown, ending).await {
            // The row stays as long as it was, which is on the safe side.
            self.alarm
                .raise(&format!("a call could not be counted: {why}"));
        }
    }

    /// Writes down the denials that are owed.
    async fn pay(&self, debtor: &Debtor) -> Result<(), CallRefusal> {
        if !lock(&self.debts.owed).contains_key(debtor) {
            return Ok(());
        }
        let payment = Payment {
            store: self.store.clone(),
            alarm: self.alarm.clone(),
            debts: Arc::clone(&self.debts),
            debtor: debtor.clone(),
            now_ms: self.clock.now_ms(),
        };
        // All of it on a thread that goes on if the call is given up meanwhile. It is awaited,
        // so that the notice stands before the end of the call that caused it.
        let paid = tokio::task::spawn_blocking(move || payment.make()).await;
        let paid = paid.unwrap_or_else(|_| Err("the usage task panicked".to_owned()));
        paid.map_err(|why| self.unavailable(&why))
    }

    /// Changes a caller's row, on a thread that may wait for the disk.
    async fn update_row<T: Send + 'static>(
        &self,
        shown: &str,
        change: impl FnOnce(&mut CallerRow) -> T + Send + 'static,
    ) -> Result<T, String> {
        let (store, shown) = (self.store.clone(), shown.to_owned());
        let now_ms = self.clock.now_ms();
        let work = move || store.callers().change(&shown, now_ms, change);
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(Some(done))) => Ok(done),
            Ok(Ok(None)) => Err(too_many()),
            Ok(Err(fault)) => Err(causes(&fault)),
            Err(_) => Err("the usage task panicked".to_owned()),
        }
    }
}

/// One attempt to write down what a caller owes.
struct Payment {
    store: Store,
    alarm: Alarm,
    debts: Arc<Debts>,
    debtor: Debtor,
    now_ms: i64,
}

impl Payment {
    /// On an error the debt stays. Until it is written, nothing of the caller runs.
    fn make(&self) -> Result<(), String> {
        let _paying = lock(&self.debts.paying);
        let owed = lock(&self.debts.owed).get(&self.debtor).copied();
        let Some(count) = owed else {
            // Another call wrote it meanwhile.
            return Ok(());
        };
        let Debtor { shown, is_typed } = &self.debtor;
        let (now_ms, is_typed) = (self.now_ms, *is_typed);
        let changed = self.store.callers().change(shown, now_ms, |row| {
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
        let is_news = changed.map_err(|fault| causes(&fault))?;
        let is_news = is_news.ok_or_else(too_many)?;
        self.settle(count);
        if is_news {
            self.announce_denied_too_often();
        }
        Ok(())
    }

    /// Only what was written: more may be owed by now.
    fn settle(&self, count: u32) {
        let mut owed = lock(&self.debts.owed);
        if let Some(left) = owed.get_mut(&self.debtor) {
            *left = left.saturating_sub(count);
            if *left == 0 {
                owed.remove(&self.debtor);
            }
        }
    }

    fn announce_denied_too_often(&self) {
        let Debtor { shown, is_typed } = &self.debtor;
        let name = text::one_line(shown);
        if *is_typed {
            self.alarm.raise(&format!(
                "{name} was denied too often; any caller but the owner at a terminal would now be paused"
            ));
            return;
        }
        self.alarm.raise(&format!(
            "{name} is paused after repeated denials; to resume it, run `ringfence callers resume {}`",
            text::shell_argument(shown)
        ));
        let message = format!("{name} is paused after repeated denials");
        let notice = Notice::new(Act::CallerPaused, SERVER, BY_DENIALS, &message);
        loudly(&self.store, &self.alarm, notice.about(shown));
    }
}

/// Refuses every call while the audit does not say which settings are in force.
fn check_settings_recorded(now: &Snapshot) -> Result<(), CallRefusal> {
    let Some(why) = &now.owed else {
        return Ok(());
    };
    let message = "the settings in force could not be recorded; no call runs until they are";
    let error = CallError::passing(Reason::AuditUnavailable, message);
    Err(CallRefusal::new(error).noted(why.clone()))
}

fn paused_refusal(request: &CallRequest, row: &CallerRow, paused: &Paused) -> CallRefusal {
    let why = match paused.by.as_str() {
        BY_DENIALS => "paused after repeated denials",
        _ => "paused",
    };
    let mut message = format!("{why}; retrying will not help until an operator resumes you");
    // Attack: an agent with a shell would take the command for the next thing to do.
    if request.caller.kind == CallerKind::Owner {
        let shown = text::shell_argument(&row.shown);
        message.push_str(&format!(": `ringfence callers resume {shown}`"));
    }
    let note = format!(
        "paused by {}: {}",
        text::one_line(&paused.by),
        paused.why.as_deref().unwrap_or("no reason given")
    );
    CallRefusal::new(CallError::new(Reason::CallerPaused, message)).noted(note)
}

fn why_paused(denials: Denials) -> String {
    if denials.in_a_row >= limits::DENIALS_IN_A_ROW_MAX {
        return format!("denied {} times in a row", denials.in_a_row);
    }
    format!("denied {} times in total", denials.in_all)
}

fn too_many() -> String {
    let most = limits::CALLERS_MAX;
    format!("there are more than {most} caller records; resume or forget some")
}

/// A caller as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownCaller {
    /// The name, on one line.
    pub name: String,
    /// Whether nothing of it runs.
    pub paused: bool,
    /// Since when, in milliseconds since 1970.
    pub paused_at_ms: Option<i64>,
    /// The person who paused it, or `denials`.
    pub paused_by: Option<String>,
    /// The reason given for the pause.
    pub paused_why: Option<String>,
    /// Denials since the last call that was let through.
    pub denied_in_a_row: u32,
    /// Denials since a person last resumed it.
    pub denied_in_all: u32,
    /// The level it earned for all tools; nothing while trust was never computed.
    pub earned: Option<&'static str>,
}

/// Pauses and resumes callers. For the owner and operators; which door may have
/// it is for the door to make sure of.
#[derive(Clone, Debug)]
pub struct Callers<'a> {
    pub(crate) book: &'a CallerBook,
    pub(crate) schedule: &'a Schedule,
    pub(crate) now: Arc<Snapshot>,
    pub(crate) through: &'a str,
}

impl<'a> Callers<'a> {
    /// The same through another door, which the audit names.
    #[must_use]
    pub fn through(self, through: &'a str) -> Callers<'a> {
        Callers { through, ..self }
    }

    /// All of whom something is remembered, by name.
    pub fn list(&self) -> Result<Vec<KnownCaller>, StoreError> {
        let rows = self.book.store.callers().all()?;
        rows.into_iter().map(|row| self.as_of_now(row)).collect()
    }

    /// What is recorded about one caller, if anything is.
    pub fn find(&self, name: &str) -> Result<Option<KnownCaller>, StoreError> {
        let row = self.book.store.callers().get(name)?;
        row.map(|row| self.as_of_now(row)).transpose()
    }

    /// What is lost or earned by now is not kept yet, and holds at the next call.
    fn as_of_now(&self, mut row: CallerRow) -> Result<KnownCaller, StoreError> {
        let now = &self.now;
        let caller = Caller::named(&*row.shown);
        let is_on = now.config.trust.strategy != Strategy::Disabled;
        if is_on && !trust::is_covered(&now.config, &caller) {
            // What it earned before counts for nothing where trust does not cover it.
            row.trust = None;
        }
        if row.trust.is_some() {
            let due = self.schedule.preview_state(&now.config.trust, &row.shown)?;
            row.trust = due.or(row.trust);
        }
        Ok(known(row))
    }

    /// Nothing of the caller runs from here on, whether it was ever seen or not.
    /// Returns nothing if there are too many callers to remember.
    pub fn pause(
        &self,
        name: &str,
        by: &Caller,
        why: Option<&str>,
    ) -> Result<Option<KnownCaller>, StoreError> {
        let at_ms = self.book.clock.now_ms();
        let why = why.map(str::trim).filter(|why| !why.is_empty());
        let why = why.map(|why| text::elided(why, limits::APPROVAL_NOTE_CHARS_MAX));
        let paused = Paused {
            at_ms,
            by: by.name.clone(),
            why: why.clone(),
        };
        let callers = self.book.store.callers();
        let changed = callers.change(name, at_ms, |row| {
            // A pause that is there keeps its author and its reason.
            row.paused.get_or_insert(paused);
            known(row.clone())
        })?;
        if changed.is_some() {
            let message = format!("{} was paused", text::one_line(name));
            let notice = Notice::new(Act::CallerPaused, &by.name, self.through, &message);
            let notice = notice.about(name);
            let notice = match &why {
                Some(why) => notice.detail("why", why),
                None => notice,
            };
            loudly(&self.book.store, &self.book.alarm, notice);
        }
        Ok(changed)
    }

    /// A person looked: the caller goes on, and its denials count from nothing.
    /// Returns whether it was paused.
    pub fn resume(&self, name: &str, by: &Caller) -> Result<bool, StoreError> {
        let (store, alarm) = (&self.book.store, &self.book.alarm);
        let callers = store.callers();
        // Looked up first, so that the audit gets no notice of a change that is none.
        if callers.get(name)?.is_none_or(|row| row.paused.is_none()) {
            return Ok(false);
        }
        let message = format!("{} was resumed", text::one_line(name));
        let notice = Notice::new(Act::CallerResumed, &by.name, self.through, &message);
        let resume = || {
            let changed = callers.change(name, self.book.clock.now_ms(), |row| {
                row.denials = Denials::resumed();
                row.paused.take().is_some()
            })?;
            Ok(changed.unwrap_or(false))
        };
        // Resuming grants something, so the notice comes before it.
        with_notice(store, alarm, true, notice.about(name), resume, |done| *done)
    }
}

fn known(row: CallerRow) -> KnownCaller {
    use model::word::Word as _;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    use store::StoreSettings;

    use super::*;

    struct Place(PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A book in a home of its own, and how many alarms it raised.
    fn book(name: &str) -> (Place, CallerBook, Arc<AtomicUsize>) {
        let name = format!("ringfence-callers-{name}-{}", std::process::id());
        let place = Place(std::env::temp_dir().join(name));
        let _ = fs::remove_dir_all(&place.0);
        fs::create_dir_all(&place.0).unwrap();
        let store = Store::open(&place.0, StoreSettings::standard()).unwrap();
        let alarms = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&alarms);
        let alarm = Alarm::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let book = CallerBook::new(&store, &Clock::system(), &alarm);
        (place, book, alarms)
    }

    fn ann() -> Debtor {
        Debtor {
            shown: "ann".to_owned(),
            is_typed: false,
        }
    }

    /// As a call does that is given up while its denials are being written.
    fn begin_to_pay(book: &CallerBook) {
        let debtor = ann();
        let mut paying = pin!(book.pay(&debtor));
        let mut context = Context::from_waker(Waker::noop());
        assert!(paying.as_mut().poll(&mut context).is_pending());
    }

    fn row(book: &CallerBook) -> CallerRow {
        let row = book.store.callers().get("ann").unwrap();
        row.unwrap()
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_takes_no_debt_with_it() {
        let (place, book, _) = book("debt");
        let counter = place.0.join("callers.version");
        let _ = fs::remove_file(&counter);
        fs::create_dir(&counter).unwrap();
        lock(&book.debts.owed).insert(ann(), 2);
        {
            let _slow = lock(&book.debts.paying);
            begin_to_pay(&book);
        }
        // Not written, so nothing of the caller runs.
        assert!(book.pay(&ann()).await.is_err());
        fs::remove_dir(&counter).unwrap();
        book.pay(&ann()).await.unwrap();
        assert_eq!(row(&book).denials.in_all, 2);
    }

    #[tokio::test]
    async fn a_debt_is_paid_once_and_announced_however_many_calls_are_given_up() {
        let (_place, book, alarms) = book("once");
        lock(&book.debts.owed).insert(ann(), limits::DENIALS_IN_A_ROW_MAX);
        {
            let _slow = lock(&book.debts.paying);
            for _ in 0..3 {
                begin_to_pay(&book);
            }
        }
        book.pay(&ann()).await.unwrap();
        // The one that wrote it announces it before it lets go.
        drop(lock(&book.debts.paying));
        let row = row(&book);
        assert_eq!(row.denials.in_all, limits::DENIALS_IN_A_ROW_MAX);
        assert!(row.paused.is_some());
        assert_eq!(alarms.load(Ordering::SeqCst), 1);
    }
}
