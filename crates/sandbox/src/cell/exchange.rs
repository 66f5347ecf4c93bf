//! The exchange between a cell and the run inside it: requests and lines out, answers
//! and cancellation in, and the time budgets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::UpdateDeadline;

use crate::job::{
    Breach, CallId, ConsoleLevel, GuestLine, HostAnswer, HostCallId, HostCallKind, HostRequest,
    Job, JobLimits, Payload, Up,
};

/// How long a script runs before others get their turn.
const SLICE: Duration = Duration::from_millis(5);

/// The longest name of an operation.
const OPERATION_BYTES_MAX: usize = 256;

/// Why a run was stopped from outside. Travels through the engine as an error, so
/// that neither `catch` nor `finally` in the script sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// A bound was reached.
    Breached(Breach),
    /// The parent cancelled it.
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped: {self:?}")
    }
}

impl std::error::Error for Stop {}

/// A host call on its way.
enum Outstanding {
    Asked,
    /// The answer, with its sequence number.
    Answered(u64, HostAnswer),
}

/// See the module.
pub(super) struct Exchange {
    id: CallId,
    limits: JobLimits,
    started: Instant,
    deadline: Instant,
    now_ms: i64,
    cancelled: bool,
    /// Spent in earlier slices.
    cpu_us: u64,
    slice_cpu_us: u64,
    slice_began: Instant,
    waiting: bool,
    outstanding: BTreeMap<HostCallId, Outstanding>,
    host_calls: u32,
    answers: u64,
    console_lines: u32,
    console_bytes: u64,
    /// Messages that the next step hands on.
    pub(super) out: Vec<Up>,
}

impl Exchange {
    pub(super) fn new(id: CallId, job: &Job) -> Exchange {
        let started = Instant::now();
        Exchange {
            id,
            limits: job.limits.clone(),
            started,
            deadline: started + Duration::from_millis(u64::from(job.limits.wall_ms_max)),
            now_ms: job.now_ms,
            cancelled: false,
            cpu_us: 0,
            slice_cpu_us: 0,
            slice_began: started,
            waiting: false,
            outstanding: BTreeMap::new(),
            host_calls: 0,
            answers: 0,
            console_lines: 0,
            console_bytes: 0,
            out: Vec::new(),
        }
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
    }

    pub(super) fn cpu_us(&self) -> u64 {
        self.cpu_us
    }

    pub(super) fn host_calls(&self) -> u32 {
        self.host_calls
    }

    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Milliseconds since the run began. Not finer: a fine clock allows timing attacks.
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The script's clock, milliseconds since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
            .saturating_add(i64::try_from(self.elapsed_ms()).unwrap_or(i64::MAX))
    }

    pub(super) fn begin_slice(&mut self) {
        self.slice_cpu_us = thread_cpu_us();
        self.slice_began = Instant::now();
        self.waiting = false;
    }

    pub(super) fn end_slice(&mut self) {
        self.cpu_us = self.cpu_now();
        self.slice_cpu_us = 0;
    }

    fn cpu_now(&self) -> u64 {
        self.cpu_us
            .saturating_add(thread_cpu_us().saturating_sub(self.slice_cpu_us))
    }

    /// Called by the engine about each millisecond while the guest runs.
    pub(super) fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.check()?;
        // Thread time and not the wall clock: a busy machine must not end an honest script.
        if self.cpu_now() >= u64::from(self.limits.cpu_ms_max) * 1_000 {
            return Err(Stop::Breached(Breach::Cpu).into());
        }
        if self.slice_began.elapsed() >= SLICE {
            // A yield, not an error: others get their turn, and the script
            // goes on where it was.
            return Ok(UpdateDeadline::Yield(1));
        }
        Ok(UpdateDeadline::Continue(1))
    }

    /// Checks the bounds that stop a run whether it computes or waits.
    pub(super) fn check(&self) -> Result<(), Stop> {
        if self.cancelled {
            return Err(Stop::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(Stop::Breached(Breach::Wall));
        }
        Ok(())
    }

    /// Whether a payload of so many bytes is allowed, for such an operation.
    pub(super) fn check_payload(&self, size: u64, operation_bytes: usize) -> Result<(), Stop> {
        let bytes_max = u64::from(self.limits.payload_bytes_max);
        if size > bytes_max || operation_bytes > OPERATION_BYTES_MAX {
            return Err(Stop::Breached(Breach::PayloadBytes));
        }
        Ok(())
    }

    /// Whether one more line of so many bytes is allowed.
    pub(super) fn check_line(&self, bytes: u32) -> Result<(), Stop> {
        if self.console_lines >= self.limits.console_lines_max {
            return Err(Stop::Breached(Breach::ConsoleLines));
        }
        if bytes > self.limits.console_bytes_max {
            return Err(Stop::Breached(Breach::ConsoleBytes));
        }
        Ok(())
    }

    /// Takes a request of the script, within its bounds.
    pub(super) fn ask(
        &mut self,
        id: HostCallId,
        kind: HostCallKind,
        operation: String,
        payload: Payload,
    ) -> Result<(), Stop> {
        // Checked again: replacing invalid UTF-8 made the text longer.
        let size = payload.json.len() as u64 + payload.bytes.len() as u64;
        self.check_payload(size, operation.len())?;
        if self.host_calls >= self.limits.host_calls_max {
            return Err(Stop::Breached(Breach::HostCalls));
        }
        if self.outstanding.len() >= self.limits.host_outstanding_max as usize {
            return Err(Stop::Breached(Breach::HostOutstanding));
        }
        self.host_calls += 1;
        self.outstanding.insert(id, Outstanding::Asked);
        self.out.push(Up::Host(
            self.id,
            HostRequest {
                id,
                kind,
                operation,
                payload,
            },
        ));
        Ok(())
    }

    /// The id the next request must carry.
    pub(super) fn next_id(&self) -> u32 {
        self.host_calls.saturating_add(1)
    }

    pub(super) fn answer(&mut self, id: HostCallId, answer: HostAnswer) {
        // An unknown id, or a second answer to one call, is dropped: the first one counts.
        if let Some(slot @ Outstanding::Asked) = self.outstanding.get_mut(&id) {
            self.answers += 1;
            *slot = Outstanding::Answered(self.answers, answer);
        }
    }

    /// Waits for the answer to one call.
    pub(super) fn poll_answer(&mut self, id: HostCallId) -> Poll<Result<HostAnswer, Stop>> {
        if let Err(stop) = self.check() {
            return Poll::Ready(Err(stop));
        }
        match self.outstanding.entry(id) {
            Entry::Occupied(slot) if matches!(slot.get(), Outstanding::Answered(..)) => {
                match slot.remove() {
                    Outstanding::Answered(_, answer) => Poll::Ready(self.within_bounds(answer)),
                    Outstanding::Asked => Poll::Pending,
                }
            }
            Entry::Occupied(_) | Entry::Vacant(_) => {
                self.waiting = true;
                Poll::Pending
            }
        }
    }

    /// Waits for the answer to any call. The answer that came first goes first: the
    /// order of answers alone decides what a script does next, so a replay repeats it.
    pub(super) fn poll_any(&mut self) -> Poll<Result<(HostCallId, HostAnswer), Stop>> {
        let came = |(id, state): (&HostCallId, &Outstanding)| match state {
            Outstanding::Asked => None,
            Outstanding::Answered(came, _) => Some((*came, *id)),
        };
        let first = self.outstanding.iter().filter_map(came).min();
        match first.map(|(_, id)| id) {
            Some(id) => self
                .poll_answer(id)
                .map(|answer| answer.map(|answer| (id, answer))),
            None => match self.check() {
                Ok(()) => {
                    self.waiting = true;
                    Poll::Pending
                }
                Err(stop) => Poll::Ready(Err(stop)),
            },
        }
    }

    fn within_bounds(&self, answer: HostAnswer) -> Result<HostAnswer, Stop> {
        let size = match &answer {
            HostAnswer::Value(payload) => payload.json.len() as u64 + payload.bytes.len() as u64,
            HostAnswer::Error(json) => json.len() as u64,
        };
        if size > u64::from(self.limits.payload_bytes_max) {
            return Err(Stop::Breached(Breach::PayloadBytes));
        }
        Ok(answer)
    }

    /// Takes a line of the script, within its bounds.
    pub(super) fn log(&mut self, level: ConsoleLevel, text: String) -> Result<(), Stop> {
        self.console_lines += 1;
        // Counted before the check, and never given back: a script cannot go
        // on after a breach.
        self.console_bytes += text.len() as u64;
        if self.console_bytes > u64::from(self.limits.console_bytes_max) {
            return Err(Stop::Breached(Breach::ConsoleBytes));
        }
        self.out
            .push(Up::Console(self.id, GuestLine { level, text }));
        Ok(())
    }
}

/// Microseconds this thread has spent on a processor.
fn thread_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(nanos / 1_000)
}
