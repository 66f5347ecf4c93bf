//! Where the powers that only compute do so: a small pool of threads of its own.
//!
//! Nothing else runs there, so that no file and no name waits for a password to be
//! stretched. Callers take turns: a caller that waits gets the next turn before another
//! caller gets its second, and work that has had its time steps back while others wait.
//! What is spent is charged to the `Account` of the call. When the call is gone,
//! or the account is empty, the work ends at its next `Turn::check`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::sync::lock;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;

use crate::message::{FaultKind, PowerFault, PowerReply};

/// Work that has begun, whether it is its turn or not; each has a thread.
pub const THREADS_MAX: usize = 16;
/// Of these, those of one caller.
pub const THREADS_PER_CALLER_MAX: usize = 4;
/// Work of one caller that has not begun.
pub const WAITING_PER_CALLER_MAX: usize = 256;
/// Work of all callers that has not begun.
pub const WAITING_MAX: usize = 2_048;
/// How long a turn lasts while others wait.
const TURN_MAX: Duration = Duration::from_millis(5);
/// How far the threads stand back behind those that answer requests.
const NICENESS: i32 = 5;

/// Who pays: one call of one caller, and what it may spend.
#[derive(Clone, Debug)]
pub struct Account(Arc<Purse>);

#[derive(Debug)]
struct Purse {
    caller: String,
    left_us: AtomicU64,
    deadline: Instant,
}

impl Account {
    /// An account of so much processor time, until a deadline.
    #[must_use]
    pub fn new(caller: &str, cpu_max: Duration, deadline: Instant) -> Account {
        let left_us = u64::try_from(cpu_max.as_micros()).unwrap_or(u64::MAX);
        Account(Arc::new(Purse {
            caller: caller.to_owned(),
            left_us: AtomicU64::new(left_us),
            deadline,
        }))
    }

    /// When the call must be over.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.0.deadline
    }

    fn charge(&self, spent_us: u64) {
        let left = |left: u64| Some(left.saturating_sub(spent_us));
        let _ = self
            .0
            .left_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    }

    fn is_empty(&self) -> bool {
        self.0.left_us.load(Ordering::Relaxed) == 0
    }
}

/// Why work does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The call is gone, or out of time.
    Over,
    /// The call has used up its processor time.
    Spent,
}

impl Stopped {
    /// As the script would read it.
    #[must_use]
    pub fn into_fault(self, helper: &str) -> PowerFault {
        let (reason, message) = match self {
            Stopped::Over => ("stopped", "the call is over"),
            Stopped::Spent => (
                "compute-budget",
                "the call used up its processor time in helpers",
            ),
        };
        PowerFault::new(FaultKind::HelperRuntime, reason, helper, message)
    }
}

/// The turn of some work. It asks between its chunks whether it may go on.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// None outside a pool.
    ticket: Option<Ticket>,
}

/// What identifies work inside the pool.
#[derive(Clone, Debug)]
struct Ticket {
    shared: Arc<Shared>,
    number: u64,
    account: Account,
    gone: Arc<AtomicBool>,
    began: Arc<Mutex<Began>>,
}

/// When a turn began, on the wall and on the processor.
#[derive(Clone, Copy, Debug)]
struct Began {
    at: Instant,
    cpu_us: u64,
}

impl Began {
    fn now() -> Began {
        Began {
            at: Instant::now(),
            cpu_us: thread_cpu_us(),
        }
    }
}

impl Turn {
    /// For work outside a pool: nothing ends it.
    #[must_use]
    pub fn endless() -> Turn {
        Turn::default()
    }

    /// Whether to go on. Stands still while it is the turn of others.
    ///
    /// # Errors
    /// The call is gone, or has nothing left to spend.
    pub fn check(&self) -> Result<(), Stopped> {
        let Some(ticket) = &self.ticket else {
            return Ok(());
        };
        ticket.check()?;
        // By the wall clock: asking for processor time is a system call, and
        // this is asked often.
        let began = *lock(&ticket.began);
        if began.at.elapsed() < TURN_MAX {
            return Ok(());
        }
        ticket.charge();
        ticket.shared.step_back(ticket);
        *lock(&ticket.began) = Began::now();
        ticket.check()
    }
}

impl Ticket {
    fn check(&self) -> Result<(), Stopped> {
        // The deadline too: no timer ends work on a thread.
        if self.gone.load(Ordering::Relaxed) || Instant::now() >= self.account.0.deadline {
            return Err(Stopped::Over);
        }
        match self.account.is_empty() {
            true => Err(Stopped::Spent),
            false => Ok(()),
        }
    }

    /// Charges what was used since the turn began.
    fn charge(&self) {
        let began = *lock(&self.began);
        let spent_us = thread_cpu_us().saturating_sub(began.cpu_us);
        self.account.charge(spent_us);
        self.shared.spent_us.fetch_add(spent_us, Ordering::Relaxed);
    }
}

/// What a piece of work is: it gives its answer, or stops at a check.
type Work = Box<dyn FnOnce(&Turn) -> Result<PowerReply, PowerFault> + Send>;

struct Job {
    number: u64,
    account: Account,
    gone: Arc<AtomicBool>,
    work: Work,
    answer: oneshot::Sender<Result<PowerReply, PowerFault>>,
}

/// The pool. Clones are the same pool; its threads start when they are needed and end
/// with the last clone.
#[derive(Clone, Debug)]
pub struct Compute {
    shared: Arc<Shared>,
    _end: Arc<End>,
}

struct Shared {
    /// How many work at one time.
    turns_max: usize,
    state: Mutex<State>,
    /// For threads without work.
    work: Condvar,
    /// For work whose turn it is not.
    turn: Condvar,
    spent_us: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("turns_max", &self.turns_max)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    callers: HashMap<String, Line>,
    /// Callers with something in their line, whose turn is next first.
    round: VecDeque<String>,
    /// Jobs that have a turn and want a thread.
    ready: VecDeque<Job>,
    /// Work that stepped back and has a turn again.
    recalled: Vec<u64>,
    turns: usize,
    threads: usize,
    idle: usize,
    waiting: usize,
    made: u64,
    is_over: bool,
}

/// What one caller has in the pool.
#[derive(Default)]
struct Line {
    /// What wants a turn, in the order of arrival.
    queue: VecDeque<Wish>,
    /// How many of these have not begun.
    waiting: usize,
    begun: usize,
}

/// What wants a turn.
enum Wish {
    /// To begin.
    Begin(Job),
    /// To go on: the work of this number, which stepped back.
    GoOn(u64),
}

impl Line {
    fn is_idle(&self) -> bool {
        self.begun == 0 && self.queue.is_empty()
    }

    /// The first that can be done: to begin, work needs a thread.
    fn take(&mut self, has_thread: bool) -> Option<Wish> {
        let may_begin = has_thread && self.begun < THREADS_PER_CALLER_MAX;
        // Not only the first: work that cannot begin must not hold up work that can go on.
        let place = self.queue.iter().position(|wish| match wish {
            Wish::Begin(_) => may_begin,
            Wish::GoOn(_) => true,
        })?;
        self.queue.remove(place)
    }
}

/// Ends the threads with the last handle.
#[derive(Debug)]
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        // Turns are still handed out: what has begun ends at its next check, because
        // the call that asked for it is gone.
        self.0.state().is_over = true;
        self.0.work.notify_all();
    }
}

impl Default for Compute {
    /// Half of the processors compute; the others answer.
    fn default() -> Compute {
        // Asked once: the answer takes several files of control groups, and every call of a tool
        // without code has a pool of its own, which it never uses.
        static COUNT: OnceLock<usize> = OnceLock::new();
        let count = COUNT.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
        Compute::new(count / 2)
    }
}

impl Compute {
    /// A pool in which so many work at one time, at least one.
    #[must_use]
    pub fn new(turns_max: usize) -> Compute {
        let shared = Arc::new(Shared {
            turns_max: turns_max.clamp(1, THREADS_MAX),
            state: Mutex::default(),
            work: Condvar::new(),
            turn: Condvar::new(),
            spent_us: AtomicU64::new(0),
        });
        Compute {
            _end: Arc::new(End(Arc::clone(&shared))),
            shared,
        }
    }

    /// Runs work when it is its caller's turn. Dropped before its end, the work stops.
    ///
    /// # Errors
    /// What the work says; `busy` if too much waits already.
    pub async fn run(
        &self,
        account: &Account,
        helper: &str,
        work: impl FnOnce(&Turn) -> Result<PowerReply, PowerFault> + Send + 'static,
    ) -> Result<PowerReply, PowerFault> {
        let (answer, answered) = oneshot::channel();
        let gone = Arc::new(AtomicBool::new(false));
        let job = Job {
            number: 0,
            account: account.clone(),
            gone: Arc::clone(&gone),
            work: Box::new(work),
            answer,
        };
        let busy = |message| PowerFault::new(FaultKind::HelperRuntime, "busy", helper, message);
        let Some(number) = self.shared.enter(job) else {
            return Err(busy("too much is computed at one time; try again later"));
        };
        let _leave = Leave {
            shared: &self.shared,
            caller: &account.0.caller,
            gone,
            number,
        };
        match answered.await {
            Ok(answered) => answered,
            // The work panicked, or no thread could be started for it.
            Err(_) => Err(busy("the helper did not come to its end")),
        }
    }

    /// Work that has begun and is not over, and work that waits.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let state = self.shared.state();
        let begun = state.callers.values().map(|line| line.begun).sum();
        (begun, state.waiting)
    }

    /// Processor time all work together has used.
    #[must_use]
    pub fn spent(&self) -> Duration {
        Duration::from_micros(self.shared.spent_us.load(Ordering::Relaxed))
    }
}

/// Tells the pool that no call waits for some work any more.
struct Leave<'a> {
    shared: &'a Shared,
    caller: &'a str,
    gone: Arc<AtomicBool>,
    number: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        self.shared.forget(self.caller, self.number);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes a job into its caller's line, or nothing if that is full.
    fn enter(self: &Arc<Shared>, mut job: Job) -> Option<u64> {
        let mut state = self.state();
        // Before anything is taken: a full pool refuses instead of growing.
        if state.waiting >= WAITING_MAX {
            return None;
        }
        let caller = job.account.0.caller.clone();
        state.made += 1;
        let number = state.made;
        job.number = number;
        let line = state.callers.entry(caller.clone()).or_default();
        if line.waiting >= WAITING_PER_CALLER_MAX {
            return None;
        }
        line.queue.push_back(Wish::Begin(job));
        line.waiting += 1;
        state.waiting += 1;
        // A caller stands in the round once, however much it wants.
        if !state.round.contains(&caller) {
            state.round.push_back(caller);
        }
        self.give_turns(&mut state);
        Some(number)
    }

    /// Takes back a job that has not begun.
    fn forget(&self, caller: &str, number: u64) {
        let mut state = self.state();
        let Some(line) = state.callers.get_mut(caller) else {
            return;
        };
        let before = line.queue.len();
        line.queue
            .retain(|wish| !matches!(wish, Wish::Begin(job) if job.number == number));
        let gone = before - line.queue.len();
        line.waiting -= gone;
        state.waiting -= gone;
        tidy(&mut state, caller);
    }

    /// Hands out the turns that are free, one caller after the other.
    fn give_turns(self: &Arc<Shared>, state: &mut State) {
        let mut looked = 0;
        while state.turns < self.turns_max && looked < state.round.len() {
            let Some(caller) = state.round.pop_front() else {
                return;
            };
            let is_given = self.give_turn(state, &caller);
            let line = state.callers.get(&caller);
            let wants = line.is_some_and(|line| !line.queue.is_empty());
            if wants {
                state.round.push_back(caller);
            }
            match is_given {
                true => looked = 0,
                false => looked += usize::from(wants),
            }
        }
    }

    /// Gives a caller a turn, if there is anything it could do with it.
    fn give_turn(self: &Arc<Shared>, state: &mut State, caller: &str) -> bool {
        // Threads that are idle may be spoken for by jobs that are ready.
        let has_thread = state.idle > state.ready.len() || state.threads < THREADS_MAX;
        let Some(line) = state.callers.get_mut(caller) else {
            return false;
        };
        let job = match line.take(has_thread) {
            None => return false,
            Some(Wish::GoOn(number)) => {
                state.turns += 1;
                state.recalled.push(number);
                // All, because each waits for its own number; one could wake the wrong one.
                self.turn.notify_all();
                return true;
            }
            Some(Wish::Begin(job)) => job,
        };
        line.begun += 1;
        line.waiting -= 1;
        state.waiting -= 1;
        state.turns += 1;
        state.ready.push_back(job);
        if state.idle < state.ready.len() {
            match self.start() {
                Ok(()) => state.threads += 1,
                // The job is dropped, and the call that waits for it gets an error.
                Err(_) if state.threads == 0 => {
                    state.ready.pop_back();
                    state.turns -= 1;
                    if let Some(line) = state.callers.get_mut(caller) {
                        line.begun -= 1;
                    }
                }
                // A thread that is there takes it when it is free.
                Err(_) => {}
            }
        }
        self.work.notify_one();
        true
    }

    fn start(self: &Arc<Shared>) -> io::Result<()> {
        let shared = Arc::clone(self);
        let named = thread::Builder::new().name("compute".to_owned());
        named.spawn(move || shared.work()).map(drop)
    }

    /// The life of a thread.
    fn work(self: Arc<Shared>) {
        // Best effort: where it is refused, all threads are equal.
        // So that requests are answered while passwords are stretched.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        let mut state = self.state();
        loop {
            if let Some(job) = state.ready.pop_front() {
                drop(state);
                let caller = self.perform(job);
                state = self.state();
                state.turns -= 1;
                if let Some(line) = state.callers.get_mut(&caller) {
                    line.begun -= 1;
                }
                tidy(&mut state, &caller);
                self.give_turns(&mut state);
                continue;
            }
            // Only when nothing is ready: what has a turn is still done.
            if state.is_over {
                return;
            }
            state.idle += 1;
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn perform(self: &Arc<Shared>, job: Job) -> String {
        let caller = job.account.0.caller.clone();
        let ticket = Ticket {
            shared: Arc::clone(self),
            number: job.number,
            account: job.account,
            gone: job.gone,
            began: Arc::new(Mutex::new(Began::now())),
        };
        let turn = Turn {
            ticket: Some(ticket.clone()),
        };
        let work = job.work;
        // The call may have ended while its work waited for a thread.
        if let Err(stopped) = turn.check() {
            let _ = job.answer.send(Err(stopped.into_fault("host")));
            return caller;
        }
        // A parser that panics must not take the turn with it; its answer is dropped,
        // and the call that waits gets an error.
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&turn)));
        ticket.charge();
        if let Ok(answered) = worked {
            let _ = job.answer.send(answered);
        }
        caller
    }

    /// Lets others work, and waits for the next turn.
    fn step_back(self: &Arc<Shared>, ticket: &Ticket) {
        let (caller, number) = (&ticket.account.0.caller, ticket.number);
        let mut state = self.state();
        // No other caller waits, so stepping back would only cost time.
        if state.round.is_empty() {
            return;
        }
        if let Some(line) = state.callers.get_mut(caller) {
            line.queue.push_back(Wish::GoOn(number));
        }
        if !state.round.contains(caller) {
            state.round.push_back(caller.clone());
        }
        state.turns -= 1;
        self.give_turns(&mut state);
        while !state.recalled.contains(&number) {
            state = self
                .turn
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.recalled.retain(|other| *other != number);
    }
}

/// Forgets a caller that has nothing here.
fn tidy(state: &mut State, caller: &str) {
    if state.callers.get(caller).is_some_and(Line::is_idle) {
        state.callers.remove(caller);
        state.round.retain(|known| known != caller);
    }
}

fn thread_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (time.tv_sec, time.tv_nsec);
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let nanoseconds = u64::try_from(nanoseconds).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(nanoseconds / 1_000)
}

#[cfg(test)]
mod tests;
