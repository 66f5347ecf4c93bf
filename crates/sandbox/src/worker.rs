//! The worker: one locked process, one thread, many sandboxes in turn.
//!
//! It reads frames from its pipe, gives each runnable sandbox a slice in turn,
//! and writes what they have to say, many frames in one write. It knows neither
//! callers nor policy: the parent asks, the worker runs, and when the parent is
//! gone it ends.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};

use crate::cell::{self, Cell, CellSettings, CellStep, Cells};
use crate::frame::{self, FRAME_BYTES_MAX, FrameBuffer, Hello, PROTOCOL_VERSION};
use crate::job::{CallId, Down, Ended, HostAnswer, HostCallId, Job, JobLimits, RunReport, Up};
use crate::walls;

/// The first argument of a process that is a worker.
pub const WORKER_MARKER: &str = "__ringfence-worker";

/// Outgoing bytes that are held back to be written together, at most.
const OUT_BYTES_MAX: usize = 64 << 10;

/// While sandboxes are runnable the pipe is looked at this often.
const READ_INTERVAL: Duration = Duration::from_micros(500);

/// The longest that receiving waits by itself. Deadlines nearer than this are waited for
/// with a poll, which can be given any time but is a system call more.
const RECEIVE_MAX: Duration = Duration::from_secs(1);

/// How long a sandbox past its deadline waits for its next step.
const OVERTIME: Duration = Duration::from_millis(2);

/// What the loop needs of wall one: starts sandboxes.
pub trait Guests {
    /// One sandbox.
    type Guest: Guest;

    /// Names the guest build, for the hello.
    fn key(&self) -> &str;

    /// Whether what runs here is held by wall one, tried out if possible.
    fn wall_one(&self) -> Result<(), String>;

    /// Starts what must run beside the loop; called once, before the walls close.
    fn start_threads(&self) -> Result<(), String>;

    /// A fresh sandbox for one job.
    fn start(&self, id: CallId, job: Job) -> Self::Guest;
}

/// What the loop needs of one sandbox.
pub trait Guest {
    /// Runs at most one slice and appends what the script has to say.
    fn step(&mut self, out: &mut Vec<Up>) -> CellStep;
    /// The answer to one of its host calls.
    fn answer(&mut self, id: HostCallId, answer: HostAnswer);
    /// Its next step ends it.
    fn cancel(&mut self);
    /// When it must be stepped even though it waits.
    fn deadline(&self) -> Instant;
}

/// What a parent tells a worker on its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerArguments {
    /// The process that started it.
    pub parent: u32,
    /// Sandboxes that may live at one time.
    pub live_max: u32,
}

impl WorkerArguments {
    /// As arguments, after the program's name.
    pub fn to_arguments(self) -> [String; 4] {
        [
            WORKER_MARKER.to_owned(),
            PROTOCOL_VERSION.to_string(),
            self.parent.to_string(),
            self.live_max.to_string(),
        ]
    }

    /// Reads them back. `None` unless this process is to be a worker at all;
    /// `Some(None)` if it is, but of another version.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Option<WorkerArguments>> {
        if arguments.next()? != WORKER_MARKER {
            return None;
        }
        let mut number = || arguments.next()?.parse::<u32>().ok();
        let parsed = (|| {
            (number()? == u32::from(PROTOCOL_VERSION)).then_some(())?;
            Some(WorkerArguments {
                parent: number()?,
                live_max: number()?,
            })
        })();
        Some(parsed)
    }
}

/// Why a worker ended. The numbers are its exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// The parent closed the pipe.
    Done = 0,
    /// Its arguments were not those of a worker of this version.
    Arguments = 64,
    /// The guest could not be loaded.
    Load = 65,
    /// The pipe broke.
    Pipe = 66,
    /// The parent sent what is not a frame, or a call twice.
    Protocol = 67,
}

impl From<WorkerEnd> for ExitCode {
    fn from(end: WorkerEnd) -> ExitCode {
        ExitCode::from(end as u8)
    }
}

/// Must be the first thing `main` does. If this process was started to be a
/// worker it is one now, and this is its exit code when it is over; otherwise
/// nothing has happened.
pub fn worker_main() -> Option<ExitCode> {
    let arguments = std::env::args_os()
        .skip(1)
        // An argument that is not UTF-8 ends the list: no marker of ours has such a thing.
        .map_while(|one| one.into_string().ok());
    match WorkerArguments::parse(arguments)? {
        None => Some(WorkerEnd::Arguments.into()),
        Some(arguments) => Some(serve(arguments, load).into()),
    }
}

fn load(arguments: WorkerArguments) -> Result<Cells, String> {
    let settings = CellSettings {
        live_max: arguments.live_max,
        ..CellSettings::default()
    };
    Cells::load(&settings).map_err(|error| error.to_string())
}

impl Guests for Cells {
    type Guest = Cell;

    fn key(&self) -> &str {
        cell::guest_key()
    }

    fn wall_one(&self) -> Result<(), String> {
        try_out(&mut self.start(CallId(0), try_out_job()))
    }

    fn start_threads(&self) -> Result<(), String> {
        self.start_ticker().map_err(|error| error.to_string())
    }

    fn start(&self, id: CallId, job: Job) -> Cell {
        Cells::start(self, id, job)
    }
}

impl Guest for Cell {
    fn step(&mut self, out: &mut Vec<Up>) -> CellStep {
        Cell::step(self, out)
    }

    fn answer(&mut self, id: HostCallId, answer: HostAnswer) {
        Cell::answer(self, id, answer);
    }

    fn cancel(&mut self) {
        Cell::cancel(self);
    }

    fn deadline(&self) -> Instant {
        Cell::deadline(self)
    }
}

/// Becomes a worker over `load`ed guests. Returns only if it could not.
pub fn serve<G: Guests>(
    arguments: WorkerArguments,
    load: impl FnOnce(WorkerArguments) -> Result<G, String>,
) -> WorkerEnd {
    let entered = walls::enter(arguments.parent);
    // A panic ends the process; there is nowhere to say more, and printing would
    // be a forbidden system call.
    std::panic::set_hook(Box::new(|_| {}));
    // Standard input is the pipe: see `walls::process::PIPE_FD`.
    // Not closed on any way out: dropping `io::stdin` closes nothing.
    let pipe = io::stdin();
    let guests = match load(arguments) {
        Ok(guests) => guests,
        Err(reason) => return apologise(entered, reason, pipe.as_fd()),
    };
    // Before the seal, because the first run sets up what a sealed process could not.
    let entered = entered.with_wasm(guests.wall_one());
    // Before the walls close, because its maps draw their keys from the kernel.
    let mut turns = Loop::new(guests, pipe.as_fd());
    let mut threads = Ok(());
    let walls = walls::seal(entered, || threads = turns.guests.start_threads());
    // Without the ticker no deadline is kept, so such a worker may not even say hello.
    if threads.is_err() {
        leave(WorkerEnd::Load);
    }
    let hello = Hello {
        guest_key: turns.guests.key().to_owned(),
        walls,
    };
    leave(turns.run(&hello))
}

/// Ends the process at once. Taking the guest down in good order would close
/// files, which is not on the list of a sealed worker, and serve no call.
fn leave(end: WorkerEnd) -> ! {
    #[expect(
        unsafe_code,
        reason = "the standard library only ends a process in good order"
    )]
    // Safety: always safe to call; it does not return.
    unsafe {
        libc::_exit(end as i32)
    }
}

/// Says hello with wall one missing, so that the parent can tell why. It will not use
/// this worker.
fn apologise(entered: walls::ProcessLayers, reason: String, pipe: BorrowedFd<'_>) -> WorkerEnd {
    let walls = entered.with_wasm(Err(reason)).walls;
    let hello = Hello {
        guest_key: String::new(),
        walls,
    };
    let mut bytes = Vec::new();
    if frame::encode_hello(&hello, &mut bytes).is_ok() {
        // Short enough for the pipe to take at once; if not, the exit code is left.
        let _ = rustix::net::send(pipe, &bytes, SendFlags::NOSIGNAL);
    }
    WorkerEnd::Load
}

/// A worker without walls, which reports none. For tests of what walls refuse.
#[cfg(feature = "testing")]
pub fn serve_bare<G: Guests>(load: impl FnOnce() -> Result<G, String>) -> WorkerEnd {
    let Ok(guests) = load() else {
        return WorkerEnd::Load;
    };
    let hello = Hello {
        guest_key: guests.key().to_owned(),
        walls: walls::Walls::default(),
    };
    let pipe = io::stdin();
    Loop::new(guests, pipe.as_fd()).run(&hello)
}

/// Runs the one-line job that shows whether wall one works. Also touches what is set up
/// on first use, some of which is not possible once the walls close.
fn try_out(guest: &mut impl Guest) -> Result<(), String> {
    let mut said = Vec::new();
    for _ in 0..TRY_OUT_STEPS_MAX {
        match guest.step(&mut said) {
            CellStep::Ready => {}
            CellStep::Waiting => return Err("the first sandbox waits for nothing".to_owned()),
            CellStep::Ended(report) => {
                return match report.ended {
                    Ended::Value(json) if json == "2" => Ok(()),
                    other => Err(format!("the first sandbox ended with {other:?}")),
                };
            }
        }
    }
    Err("the first sandbox did not end".to_owned())
}

const TRY_OUT_STEPS_MAX: u32 = 100;

/// The job of [`try_out`].
fn try_out_job() -> Job {
    Job {
        body: "return one + 1".to_owned(),
        globals: r#"{"one":1}"#.to_owned(),
        declared: Vec::new(),
        powers: Vec::new(),
        limits: JobLimits {
            work_max: 1_000_000,
            cpu_ms_max: 10_000,
            wall_ms_max: 10_000,
            memory_bytes_max: 16 << 20,
            result_bytes_max: 1 << 10,
            result_depth_max: 4,
            console_lines_max: 1,
            console_bytes_max: 1 << 10,
            host_calls_max: 1,
            host_outstanding_max: 1,
            payload_bytes_max: 1 << 10,
        },
        seed: 1,
        now_ms: 0,
    }
}

struct Live<G> {
    guest: G,
    deadline: Instant,
    /// Whether it is in the queue already.
    queued: bool,
    /// Whether it has used up a slice before: it will likely use up the next.
    long: bool,
}

struct Loop<'a, G: Guests> {
    guests: G,
    pipe: BorrowedFd<'a>,
    calls: HashMap<CallId, Live<G::Guest>>,
    queue: VecDeque<CallId>,
    deadlines: BTreeSet<(Instant, CallId)>,
    incoming: FrameBuffer,
    /// Whether a blocking receive times out after [`RECEIVE_MAX`].
    receive_ends: bool,
    /// Nothing has come for that long, or a receive does not time out.
    quiet: bool,
    out: Vec<u8>,
    /// What one step said; kept to be used again.
    said: Vec<Up>,
}

/// Leaves the loop.
struct Leave(WorkerEnd);

impl<'a, G: Guests> Loop<'a, G> {
    fn new(guests: G, pipe: BorrowedFd<'a>) -> Self {
        // Here and not later, because a sealed worker may not.
        let receive_ends = set_socket_timeout(pipe, Timeout::Recv, Some(RECEIVE_MAX)).is_ok();
        Loop {
            guests,
            pipe,
            calls: HashMap::new(),
            queue: VecDeque::new(),
            deadlines: BTreeSet::new(),
            incoming: FrameBuffer::new(FRAME_BYTES_MAX),
            receive_ends,
            quiet: !receive_ends,
            out: Vec::new(),
            said: Vec::new(),
        }
    }

    fn run(&mut self, hello: &Hello) -> WorkerEnd {
        if frame::encode_hello(hello, &mut self.out).is_err() {
            return WorkerEnd::Protocol;
        }
        loop {
            if let Err(Leave(end)) = self.turn() {
                return end;
            }
        }
    }

    /// Waits until there is something to do, then does it until there is nothing.
    fn turn(&mut self) -> Result<(), Leave> {
        // What was said leaves before the worker sleeps: the parent may be waiting for it.
        self.flush()?;
        self.wait()?;
        let mut looked = Instant::now();
        loop {
            self.step_expired(looked)?;
            let Some(id) = self.queue.pop_front() else {
                return Ok(());
            };
            let Some(live) = self.calls.get_mut(&id) else {
                continue;
            };
            live.queued = false;
            if live.long {
                // Others' results must not wait for this one's slice.
                self.flush()?;
            }
            self.step(id)?;
            let now = Instant::now();
            // Not after each step: a look at the pipe is a system call, and
            // most steps are short.
            if now.duration_since(looked) >= READ_INTERVAL {
                looked = now;
                self.flush()?;
                self.receive(RecvFlags::DONTWAIT)?;
            }
        }
    }

    fn wait(&mut self) -> Result<(), Leave> {
        let nearest = self.deadlines.first().map(|(deadline, _)| *deadline);
        let timeout = nearest.map(|nearest| nearest.saturating_duration_since(Instant::now()));
        // One system call instead of two, as long as words keep coming.
        if !self.quiet && timeout.is_none_or(|timeout| timeout > RECEIVE_MAX) {
            self.quiet = true;
            return self.receive(RecvFlags::empty());
        }
        let timeout = match timeout.map(Timespec::try_from).transpose() {
            Ok(timeout) => timeout,
            // A deadline that does not fit the kernel's type cannot be waited for, and not
            // waiting at all would be a busy loop.
            Err(_) => return Err(Leave(WorkerEnd::Pipe)),
        };
        let mut polled = [PollFd::from_borrowed_fd(self.pipe, PollFlags::IN)];
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => self.receive(RecvFlags::DONTWAIT),
            Err(_) => Err(Leave(WorkerEnd::Pipe)),
        }
    }

    fn receive(&mut self, flags: RecvFlags) -> Result<(), Leave> {
        match rustix::net::recv(self.pipe, self.incoming.room(), flags) {
            Ok((_, 0)) => return Err(Leave(WorkerEnd::Done)),
            Ok((_, count)) => {
                self.incoming.advance(count);
                self.quiet = !self.receive_ends;
            }
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(_) => return Err(Leave(WorkerEnd::Pipe)),
        }
        loop {
            let down = match self.incoming.next_body() {
                Ok(None) => return Ok(()),
                Ok(Some(body)) => frame::decode_down(body),
                Err(error) => Err(error),
            };
            self.take(down.map_err(|_| Leave(WorkerEnd::Protocol))?)?;
        }
    }

    fn take(&mut self, down: Down) -> Result<(), Leave> {
        match down {
            Down::Start(id, job) => {
                // The parent never reuses a number, so this is not our parent's word.
                if self.calls.contains_key(&id) {
                    return Err(Leave(WorkerEnd::Protocol));
                }
                let guest = self.guests.start(id, *job);
                let deadline = guest.deadline();
                self.deadlines.insert((deadline, id));
                self.calls.insert(
                    id,
                    Live {
                        guest,
                        deadline,
                        queued: true,
                        long: false,
                    },
                );
                self.queue.push_back(id);
            }
            // A call that ended while the parent's words were under way is no fault.
            Down::Answer(id, host_call, answer) => {
                if let Some(live) = self.calls.get_mut(&id) {
                    live.guest.answer(host_call, answer);
                    if !std::mem::replace(&mut live.queued, true) {
                        self.queue.push_back(id);
                    }
                }
            }
            Down::Cancel(id) => {
                if let Some(live) = self.calls.get_mut(&id) {
                    live.guest.cancel();
                    live.queued = true;
                    // It ends at once, so it may go first; a second entry does no harm.
                    self.queue.push_front(id);
                }
            }
        }
        Ok(())
    }

    /// A sandbox whose time is up goes before all others, so that no one's slice
    /// makes it late.
    fn step_expired(&mut self, now: Instant) -> Result<(), Leave> {
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                return Ok(());
            }
            self.step(id)?;
            // Still there: it is given a moment, because one that never ends
            // must not starve the others. The parent ends such a worker.
            if self.deadlines.remove(&(deadline, id))
                && let Some(live) = self.calls.get_mut(&id)
            {
                live.deadline = now + OVERTIME;
                self.deadlines.insert((live.deadline, id));
            }
        }
        Ok(())
    }

    fn step(&mut self, id: CallId) -> Result<(), Leave> {
        let Some(live) = self.calls.get_mut(&id) else {
            return Ok(());
        };
        let step = live.guest.step(&mut self.said);
        let mut said = std::mem::take(&mut self.said);
        let mut fits = true;
        for up in said.drain(..) {
            fits &= frame::encode_up(&up, &mut self.out).is_ok();
        }
        self.said = said;
        let report = match step {
            CellStep::Ended(report) => report,
            // A message was lost, so the script may not go on as if it had been sent.
            CellStep::Ready | CellStep::Waiting if !fits => Box::new(too_long()),
            CellStep::Ready => {
                live.long = true;
                if !std::mem::replace(&mut live.queued, true) {
                    self.queue.push_back(id);
                }
                return self.make_room();
            }
            CellStep::Waiting => {
                live.long = false;
                return self.make_room();
            }
        };
        self.deadlines.remove(&(live.deadline, id));
        self.calls.remove(&id);
        if frame::encode_up(&Up::Ended(id, report), &mut self.out).is_err() {
            // The limits should have kept it from growing so large.
            frame::encode_up(&Up::Ended(id, Box::new(too_long())), &mut self.out)
                .map_err(|_| Leave(WorkerEnd::Protocol))?;
        }
        self.make_room()
    }

    /// Back-pressure: nothing more runs until what was said is taken.
    fn make_room(&mut self) -> Result<(), Leave> {
        if self.out.len() > OUT_BYTES_MAX {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Leave> {
        let mut rest = self.out.as_slice();
        while !rest.is_empty() {
            // Blocks while the pipe is full: no script runs on until the parent has read.
            match rustix::net::send(self.pipe, rest, SendFlags::NOSIGNAL) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Leave(WorkerEnd::Pipe)),
            }
        }
        self.out.clear();
        // One large result must not keep its memory for the life of the worker.
        self.out.shrink_to(2 * OUT_BYTES_MAX);
        Ok(())
    }
}

fn too_long() -> RunReport {
    RunReport::new(Ended::Broken(
        "a message was longer than a frame may be".to_owned(),
    ))
}
