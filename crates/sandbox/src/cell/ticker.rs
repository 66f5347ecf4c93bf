//! The thread that keeps the time: about each millisecond it tells the engine to
//! look at the clocks. It sleeps when no guest runs, so an idle worker costs nothing.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use model::sync::lock;
use wasmtime::Engine;

const TICK: Duration = Duration::from_millis(1);

/// The thread needs no more than this.
const STACK_BYTES: usize = 64 << 10;

/// See the module.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    engine: Engine,
    /// Guests inside a step now.
    running: AtomicU32,
    /// Steps begun, ever. Tells a busy millisecond from an idle one.
    begun: AtomicU32,
    asleep: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Ticker {
    pub(super) fn new(engine: Engine) -> Ticker {
        let shared = Shared {
            engine,
            running: AtomicU32::new(0),
            begun: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: Mutex::new(None),
        };
        Ticker {
            shared: Arc::new(shared),
            thread: Mutex::new(None),
        }
    }

    /// Starts the thread, once, and returns when it runs: setting a thread up takes
    /// system calls that a sealed worker may not make.
    pub(super) fn start(&self) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        if thread.is_some() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let (ready, begun) = mpsc::channel();
        let handle = thread::Builder::new()
            .name("ticker".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // The call is for the thread that makes it, and the list of a
                // sealed worker lacks it.
                ask_for_short_turns();
                let _ = ready.send(());
                shared.tick_until_stopped();
            })?;
        // It ends before its word only if it could not begin, and then never ticks.
        let _ = begun.recv();
        *lock(&self.shared.thread) = Some(handle.thread().clone());
        *thread = Some(handle);
        Ok(())
    }

    /// Keeps the ticker awake while it is held.
    pub(super) fn ticking(&self) -> Ticking<'_> {
        let shared = &*self.shared;
        shared.begun.fetch_add(1, Ordering::Relaxed);
        // The order matters: we say that we run, then look whether it sleeps; it
        // says that it sleeps, then looks whether we run. One of us sees the other.
        shared.running.fetch_add(1, Ordering::SeqCst);
        if shared.asleep.load(Ordering::SeqCst) {
            shared.wake();
        }
        Ticking { shared }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.wake();
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // It cannot have panicked: it does nothing that could.
            let _ = thread.join();
        }
    }
}

/// Asks the scheduler for turns of a tenth of a millisecond. A thread that wants so
/// little is let in at once when it wakes, so that deadlines are kept on a busy
/// machine too. Needs no privilege; kernels before 6.12 take no notice.
#[expect(unsafe_code, reason = "the call has no wrapper")]
fn ask_for_short_turns() {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    // Safety: it takes numbers and gives one back; 0 is this thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: 48,
        policy: 0,
        flags: 0,
        nice,
        priority: 0,
        runtime: 100_000,
        deadline: 0,
        period: 0,
    };
    // Safety: the struct is of the size it says and outlives the call. A refusal
    // changes nothing, and then there is nothing to do about it.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// While it lives, the epoch moves.
pub(super) struct Ticking<'a> {
    shared: &'a Shared,
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn wake(&self) {
        let thread = lock(&self.thread);
        if let Some(thread) = thread.as_ref() {
            thread.unpark();
        }
    }

    fn tick_until_stopped(&self) {
        let mut seen = self.begun.load(Ordering::Relaxed);
        while !self.stop.load(Ordering::SeqCst) {
            thread::sleep(TICK);
            self.engine.increment_epoch();
            let begun = self.begun.load(Ordering::Relaxed);
            // A whole millisecond without a step: a worker in use does not go to sleep and
            // wake for each call.
            if begun == seen && self.running.load(Ordering::SeqCst) == 0 {
                self.sleep();
            }
            seen = begun;
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        while self.running.load(Ordering::SeqCst) == 0 && !self.stop.load(Ordering::SeqCst) {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}
