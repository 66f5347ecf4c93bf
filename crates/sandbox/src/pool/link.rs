//! The parent's end of one worker: its pipe, its calls, its end.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use crate::frame::{self, FRAME_OVERHEAD_BYTES, FrameBuffer, FrameError};
use crate::job::{CallId, Down, HostAnswer, HostCallId, Job, JobLimits, Up};
use model::sync::lock;

use super::call::{Aftermath, Call};
use super::checker::{CallChecker, REPORT_BYTES_MAX, THROWN_BYTES_MAX};
use super::error::{RunError, Violation};
use super::spawner::WorkerId;

/// Unsent bytes above which no job or answer may be added.
const OUT_BYTES_HIGH: usize = 1 << 20;

/// Why a worker is no longer used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It closed its pipe, or the pipe broke.
    Ended,
    /// A call was not over by its deadline, or not after its cancellation.
    Hung,
    /// It broke the protocol.
    Doubt(Violation),
    /// A sandbox in it broke.
    Broken,
    /// It has served its time and its last call is over.
    Retired,
    /// The pool is closing.
    Closed,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: WorkerId,
    pub(super) pid: u32,
    pipe: Pipe,
    out: Mutex<Out>,
    calls: Mutex<HashMap<CallId, Arc<Call>>>,
    call_next: AtomicU64,
    /// The longest body that any job of this worker allows it to send.
    body_bytes_max: AtomicU32,
    doom: Mutex<Option<Loss>>,
    retiring: AtomicBool,
    /// Tells the hearing task to look at `doom`, `retiring` and `out`.
    nudge: Notify,
}

#[derive(Debug, Default)]
struct Out {
    bytes: Vec<u8>,
    sent: usize,
    /// Tasks that wait for room.
    waiting: Vec<Waker>,
}

/// The kind of a message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A call is over; the roster wants to know.
    Ended,
    /// Something else.
    Other,
}

impl Link {
    pub(super) fn new(id: WorkerId, pid: u32, pipe: Pipe) -> Link {
        Link {
            id,
            pid,
            pipe,
            out: Mutex::default(),
            calls: Mutex::default(),
            call_next: AtomicU64::new(1),
            body_bytes_max: AtomicU32::new(0),
            doom: Mutex::default(),
            retiring: AtomicBool::new(false),
            nudge: Notify::new(),
        }
    }

    /// Sends a job. From here on the call ends by the worker's report or with the
    /// worker.
    pub(super) fn start(&self, job: Job) -> Result<(CallId, Arc<Call>), RunError> {
        let id = CallId(self.call_next.fetch_add(1, Ordering::Relaxed));
        let checker = CallChecker::new(job.limits.clone(), Instant::now());
        let call = Arc::new(Call::new(checker));
        // Before the job is sent: the report may come at once, and is held to this bound.
        // It only grows, because frames of earlier calls may still be on their way.
        self.body_bytes_max
            .fetch_max(longest_body(&job.limits), Ordering::Relaxed);
        {
            let mut calls = lock(&self.calls);
            // Under the lock, because the end of a worker empties the map under it.
            if self.doomed().is_some() {
                return Err(RunError::Lost);
            }
            calls.insert(id, Arc::clone(&call));
        }
        match self.send(&Down::Start(id, Box::new(job))) {
            Ok(()) => Ok((id, call)),
            Err(_) => {
                // The job never left, so the worker owes no report about it.
                lock(&self.calls).remove(&id);
                Err(RunError::TooLarge)
            }
        }
    }

    pub(super) fn answer(
        &self,
        id: CallId,
        host_call: HostCallId,
        answer: HostAnswer,
    ) -> Result<(), FrameError> {
        self.send(&Down::Answer(id, host_call, answer))
    }

    pub(super) fn cancel(&self, id: CallId) {
        // Small enough to fit always.
        let _ = self.send(&Down::Cancel(id));
    }

    pub(super) fn is_running(&self, id: CallId) -> bool {
        lock(&self.calls).contains_key(&id)
    }

    pub(super) fn calls_count(&self) -> usize {
        lock(&self.calls).len()
    }

    /// Gives the worker up. The first reason stays.
    pub(super) fn doom(&self, loss: Loss) {
        // The first reason is the cause; what follows from it, such as a
        // broken pipe, is not.
        lock(&self.doom).get_or_insert(loss);
        self.nudge.notify_one();
    }

    /// Lets the worker end once its calls have.
    pub(super) fn retire(&self) {
        self.retiring.store(true, Ordering::Release);
        self.nudge.notify_one();
    }

    /// Tells the hearing task that its roster entry may be empty now.
    pub(super) fn nudge(&self) {
        self.nudge.notify_one();
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.retiring.load(Ordering::Acquire)
    }

    pub(super) fn doomed(&self) -> Option<Loss> {
        *lock(&self.doom)
    }

    /// Ends every call, all with the same error: closed, or lost.
    pub(super) fn fail_calls(&self, loss: Loss) {
        let calls = {
            let mut calls = lock(&self.calls);
            // The same order of locks as in `start`: either a call sees the doom, or it is
            // in the map that is taken here.
            lock(&self.doom).get_or_insert(loss);
            std::mem::take(&mut *calls)
        };
        for call in calls.into_values() {
            call.fail(match loss {
                Loss::Closed => RunError::Closed,
                Loss::Ended | Loss::Hung | Loss::Doubt(_) | Loss::Broken | Loss::Retired => {
                    RunError::Lost
                }
            });
        }
        // Their worker is gone, so there is room: they wake up and find the loss.
        let waiting = std::mem::take(&mut lock(&self.out).waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether a job or an answer may be sent now. A doomed worker always has room:
    /// messages to it are lost, and its calls fail.
    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut out = lock(&self.out);
        // Bounded by the bytes not yet sent: a worker that stops reading must not make the
        // parent keep answers without end.
        if out.bytes.len() - out.sent < OUT_BYTES_HIGH || self.doomed().is_some() {
            return Poll::Ready(());
        }
        if !out
            .waiting
            .iter()
            .any(|waker| waker.will_wake(context.waker()))
        {
            out.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn send(&self, down: &Down) -> Result<(), FrameError> {
        let mut out = lock(&self.out);
        // Bytes that wait must leave first, so only an empty buffer is written to the pipe
        // from here. That is the usual case, and it saves a turn of the hearing task.
        let idle = out.bytes.is_empty();
        frame::encode_down(down, &mut out.bytes)?;
        if idle {
            self.flush(&mut out);
            if !out.bytes.is_empty() {
                // The rest is for the hearing task, when the pipe takes more.
                self.nudge.notify_one();
            }
        }
        Ok(())
    }

    /// Writes as much as the pipe accepts. The reading task notices a broken pipe.
    fn flush(&self, out: &mut Out) {
        while let Some(rest) = out.bytes.get(out.sent..).filter(|rest| !rest.is_empty()) {
            match self.pipe.send(rest) {
                Ok(count) => out.sent += count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    drop_rest(out);
                    // The calls end there too: a worker that reads no more
                    // cannot be told anything.
                    self.doom(Loss::Ended);
                    return;
                }
            }
        }
        if out.sent == out.bytes.len() {
            drop_rest(out);
        } else if out.sent > OUT_BYTES_HIGH {
            // Not after each write: moving the rest to the front costs as much as the rest is long.
            out.bytes.drain(..out.sent);
            out.sent = 0;
        }
    }

    fn unsent(&self) -> bool {
        !lock(&self.out).bytes.is_empty()
    }

    fn flush_rest(&self) {
        let mut out = lock(&self.out);
        self.flush(&mut out);
        let waiting = if out.bytes.len() - out.sent < OUT_BYTES_HIGH {
            std::mem::take(&mut out.waiting)
        } else {
            Vec::new()
        };
        // Woken outside the lock, because the woken asks for room and takes the same lock.
        drop(out);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Reads messages until calls end, or the worker needs attention.
    pub(super) async fn hear(&self, buffer: &mut FrameBuffer) -> Result<u32, Loss> {
        if let Some(loss) = self.doomed() {
            return Err(loss);
        }
        let unsent = self.unsent();
        tokio::select! {
            // A doomed worker first: what it sends after that is not heard any more.
            biased;
            () = self.nudge.notified() => {
                match self.doomed() {
                    Some(loss) => Err(loss),
                    None => Ok(0),
                }
            }
            arrived = self.pipe.receive(buffer) => match arrived {
                Ok(0) | Err(_) => Err(Loss::Ended),
                Ok(_) => self.hear_frames(buffer),
            },
            writable = self.pipe.writable(), if unsent => match writable {
                Ok(()) => {
                    self.flush_rest();
                    Ok(0)
                }
                Err(_) => Err(Loss::Ended),
            },
        }
    }

    fn hear_frames(&self, buffer: &mut FrameBuffer) -> Result<u32, Loss> {
        buffer.allow(self.body_bytes_max.load(Ordering::Relaxed));
        let mut ended = 0;
        loop {
            let up = match buffer.next_body() {
                Ok(None) => return Ok(ended),
                Ok(Some(body)) => frame::decode_up(body),
                Err(error) => Err(error),
            };
            let up = up.map_err(|error| Loss::Doubt(Violation::Frame(error)))?;
            match self.hear_one(up)? {
                Heard::Ended => ended += 1,
                Heard::Other => {}
            }
        }
    }

    fn hear_one(&self, up: Up) -> Result<Heard, Loss> {
        let id = match &up {
            Up::Console(id, _) | Up::Host(id, _) | Up::Ended(id, _) => *id,
        };
        let call = match &up {
            // Removed before it is checked: a second report about the same call is then
            // about a call that is not running.
            Up::Ended(..) => lock(&self.calls).remove(&id),
            Up::Console(..) | Up::Host(..) => lock(&self.calls).get(&id).cloned(),
        };
        let Some(call) = call else {
            return Err(Loss::Doubt(Violation::UnknownCall));
        };
        let heard = match up {
            Up::Console(_, line) => call.console(line).map(|()| Heard::Other),
            Up::Host(_, request) => call.queue_request(request).map(|()| Heard::Other),
            Up::Ended(_, report) => match call.finish(*report) {
                Ok(Aftermath::Sound) => Ok(Heard::Ended),
                // `finish` has told the call already; the worker around a broken sandbox is
                // not used again.
                Ok(Aftermath::Broken) => return Err(Loss::Broken),
                Err(violation) => Err(violation),
            },
        };
        heard.map_err(|violation| {
            call.fail(RunError::InDoubt(violation));
            Loss::Doubt(violation)
        })
    }
}

/// The parent's end of the pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    /// Registered for reading alone. A pipe that is also watched for writing
    /// wakes its parent each time the worker reads, which is once for each call.
    fd: AsyncFd<OwnedFd>,
}

impl Pipe {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Pipe> {
        Ok(Pipe {
            fd: watch(fd, Interest::READABLE)?,
        })
    }

    /// Reads once into `buffer`. Zero means the end.
    pub(super) async fn receive(&self, buffer: &mut FrameBuffer) -> io::Result<usize> {
        loop {
            let mut ready = self.fd.readable().await?;
            let room = buffer.room();
            let most = room.len();
            match rustix::net::recv(&self.fd, room, RecvFlags::DONTWAIT) {
                Ok((_, count)) => {
                    // Less than there was room for: the pipe is empty now, and the next
                    // bytes will wake us.
                    if count < most {
                        ready.clear_ready();
                    }
                    buffer.advance(count);
                    return Ok(count);
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        // A worker may die at any time. Without the flag the kernel would end the
        // parent by a signal.
        rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }

    /// Waits until a full pipe takes more.
    async fn writable(&self) -> io::Result<()> {
        // Rare, so it is watched only now, and through a descriptor of its own:
        // one descriptor has one set of interests.
        let watched = self.fd.get_ref().try_clone()?;
        let watched = watch(watched, Interest::WRITABLE)?;
        watched.writable().await.map(|_| ())
    }
}

fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the runtime asks for this promise")]
    // Safety: an owned descriptor is the same one for as long as it is watched.
    let watched = unsafe { AsyncFd::register_with_interest(fd, interest) };
    Ok(watched?)
}

/// The longest body an honest worker sends about a job with these limits.
fn longest_body(limits: &JobLimits) -> u32 {
    limits
        .result_bytes_max
        .max(limits.console_bytes_max)
        .max(limits.payload_bytes_max.saturating_add(THROWN_BYTES_MAX))
        // Saturating, because limits come from documents; `FrameBuffer`
        // caps the sum anyway.
        .saturating_add(FRAME_OVERHEAD_BYTES + REPORT_BYTES_MAX)
}

fn drop_rest(out: &mut Out) {
    out.sent = 0;
    out.bytes.clear();
    // One large answer must not keep its memory for the life of the worker.
    out.bytes.shrink_to(OUT_BYTES_HIGH / 16);
}
