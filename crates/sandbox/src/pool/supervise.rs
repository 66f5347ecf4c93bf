//! Keeps one place in the pool filled with a worker: starts it, reads its messages, and
//! waits for its end.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time;

use crate::frame::{self, FrameBuffer, FrameError, Hello};
use crate::walls::{Layer, Walls};

use super::Shared;
use super::error::StartError;
use super::link::{Link, Loss, Pipe};
use super::spawner::WorkerId;

/// A hello is not longer.
const HELLO_BYTES_MAX: u32 = 16 << 10;

/// The pause after a first failed start; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(10);

/// The longest pause between failed starts.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A worker's memory is looked at after this many calls.
const CALLS_PER_LOOK: u32 = 64;

/// A worker that was over its memory this many looks in a row is replaced.
const HIGH_LOOKS_MAX: u32 = 2;

/// One worker from its start to its end.
struct Worker {
    link: Arc<Link>,
    buffer: FrameBuffer,
    /// Held as long as the process lives: bounds how many there are.
    permit: OwnedSemaphorePermit,
    calls_since_look: u32,
    high_looks: u32,
}

/// Runs until the pool closes.
pub(super) async fn supervise(shared: Arc<Shared>) {
    let mut pause = PAUSE_FIRST;
    let mut closing = shared.closing.subscribe();
    loop {
        let worker = tokio::select! {
            // Closing first: a start would make one more process that has to be reaped.
            biased;
            _ = closing.wait_for(|closing| *closing) => return,
            worker = start(&shared) => worker,
        };
        let mut worker = match worker {
            Ok(worker) => worker,
            Err(error) => {
                // `Pool::start` and the status report it; later starts go on being tried.
                shared.note_start(Err(error));
                tokio::select! {
                    _ = closing.wait_for(|closing| *closing) => return,
                    () = time::sleep(pause) => {}
                }
                // A start that fails at once, such as for lack of memory, must not
                // become a busy loop.
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
        };
        pause = PAUSE_FIRST;
        shared.note_start(Ok(()));
        shared.roster.join(Arc::clone(&worker.link));
        match worker.hear(&shared, Until::Retiring).await {
            None => {
                // Its calls continue while the successor starts.
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let loss = worker.hear(&shared, Until::Idle).await;
                    worker.reap(&shared, loss.unwrap_or(Loss::Retired)).await;
                });
            }
            Some(Loss::Closed) => return worker.reap(&shared, Loss::Closed).await,
            Some(loss) => worker.reap(&shared, loss).await,
        }
    }
}

/// How long to hear a worker that does not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Retiring,
    Idle,
}

impl Worker {
    /// `None` when the time named by `until` has come, else why it ended.
    async fn hear(&mut self, shared: &Shared, until: Until) -> Option<Loss> {
        let mut closing = shared.closing.subscribe();
        loop {
            let retiring = self.link.is_retiring();
            match until {
                Until::Retiring if retiring => return None,
                Until::Idle if shared.roster.is_idle(self.link.id) => return None,
                Until::Retiring | Until::Idle => {}
            }
            let heard = tokio::select! {
                // The worker first. A report that is already in the pipe counts even if the
                // pool closes.
                biased;
                heard = self.link.hear(&mut self.buffer) => heard,
                _ = closing.wait_for(|closing| *closing) => Err(Loss::Closed),
            };
            match heard {
                Ok(0) => {}
                Ok(ended) => {
                    shared.roster.give_back(self.link.id, ended);
                    self.look_at_memory(shared, ended);
                }
                Err(loss) => return Some(loss),
            }
        }
    }

    /// A worker that stays large is replaced. Every sandbox in it is bounded, so this
    /// catches memory that builds up between them.
    fn look_at_memory(&mut self, shared: &Shared, ended: u32) {
        self.calls_since_look = self.calls_since_look.saturating_add(ended);
        if self.calls_since_look < CALLS_PER_LOOK {
            return;
        }
        self.calls_since_look = 0;
        match private_bytes(self.link.pid) {
            Some(bytes) if bytes > shared.settings.memory_bytes_max => self.high_looks += 1,
            // A process that is gone has no memory; its end is heard on the pipe, not here.
            Some(_) | None => self.high_looks = 0,
        }
        if self.high_looks >= HIGH_LOOKS_MAX {
            self.link.retire();
        }
    }

    async fn reap(self, shared: &Shared, loss: Loss) {
        // Out of the roster before its calls fail: a call that is tried again
        // must not land here.
        shared.roster.leave(self.link.id);
        self.link.fail_calls(loss);
        // After the calls are told, because killing takes as long as the kernel needs.
        let status = shared.spawner.reap(self.link.id).await;
        if !matches!(loss, Loss::Retired | Loss::Closed) {
            shared.lost_count.fetch_add(1, Ordering::Relaxed);
            shared.note_loss(format!("{loss:?}{}", describe(status)));
        }
        // Last: permits bound the number of processes, and this one is gone only now.
        drop(self.permit);
    }
}

fn describe(status: Option<ExitStatus>) -> String {
    match status {
        None => String::new(),
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!(", exit code {code}"),
            (None, Some(signal)) => format!(", signal {signal}"),
            (None, None) => String::new(),
        },
    }
}

async fn start(shared: &Arc<Shared>) -> Result<Worker, StartError> {
    let permit = Arc::clone(&shared.processes).acquire_owned().await;
    let permit = permit.map_err(|_| StartError::Closed)?;
    let id = WorkerId(shared.worker_next.fetch_add(1, Ordering::Relaxed));
    let (ours, theirs) = StdStream::pair().map_err(|error| StartError::Spawn(error.to_string()))?;
    let spawned = shared.spawner.spawn(id, OwnedFd::from(theirs)).await;
    let pid = spawned.map_err(|error| StartError::Spawn(error.to_string()))?;
    // From here on a process exists: whatever happens, it is waited for.
    // The task may also be dropped while it waits, when the pool closes.
    let guard = BuryOnDrop { shared, id };
    let pipe = Pipe::new(ours.into()).map_err(|error| StartError::Spawn(error.to_string()))?;
    let mut buffer = FrameBuffer::new(HELLO_BYTES_MAX);
    let limit = Duration::from_millis(u64::from(shared.settings.start_ms_max));
    let hello = time::timeout(limit, first_words(&pipe, &mut buffer)).await;
    let hello = hello.map_err(|_| StartError::Late)??;
    // A worker has nothing to say before its first job, and bytes after the hello would
    // stay unread in the buffer.
    if buffer.pending_bytes() > 0 {
        return Err(StartError::Hello(FrameError::Trailing));
    }
    check(shared, pid, &hello)?;
    shared.note_walls(hello.walls);
    // The `Worker` reaps from here on. The guard holds a borrow and a number, so forgetting
    // it leaks nothing.
    std::mem::forget(guard);
    let link = Arc::new(Link::new(id, pid, pipe));
    Ok(Worker {
        link,
        buffer,
        permit,
        calls_since_look: 0,
        high_looks: 0,
    })
}

/// Reaps the process of a worker that never got ready.
struct BuryOnDrop<'a> {
    shared: &'a Shared,
    id: WorkerId,
}

impl Drop for BuryOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.spawner.reap_later(self.id);
    }
}

async fn first_words(pipe: &Pipe, buffer: &mut FrameBuffer) -> Result<Hello, StartError> {
    loop {
        match buffer.next_body() {
            Err(error) => return Err(StartError::Hello(error)),
            Ok(Some(body)) => return frame::decode_hello(body).map_err(StartError::Hello),
            Ok(None) => {}
        }
        match pipe.receive(buffer).await {
            Ok(0) | Err(_) => return Err(StartError::Ended),
            Ok(_) => {}
        }
    }
}

fn check(shared: &Shared, pid: u32, hello: &Hello) -> Result<(), StartError> {
    let settings = &shared.settings;
    let mut walls = hello.walls.clone();
    look_from_outside(pid, &mut walls, &settings.require);
    if let Some((layer, reason)) = walls.missing(&settings.require).into_iter().next() {
        return Err(StartError::Layer { layer, reason });
    }
    match &settings.guest_key {
        Some(expected) if *expected != hello.guest_key => Err(StartError::Guest(
            hello.guest_key.chars().take(64).collect(),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Compares the worker's report with the kernel's view of it, where a parent may look.
fn look_from_outside(pid: u32, walls: &mut Walls, required: &BTreeSet<Layer>) {
    // Some systems hide other processes. Then the worker's own report stands, which only
    // our code could have written: no script has run yet.
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return;
    };
    let seen = |name: &str, value: &str| {
        status
            .lines()
            .filter_map(|line| line.split_once(':'))
            .any(|(found, rest)| found == name && rest.trim() == value)
    };
    for (layer, name, value) in [
        (Layer::Seccomp, "Seccomp", "2"),
        (Layer::NoNewPrivileges, "NoNewPrivs", "1"),
    ] {
        if required.contains(&layer) && !seen(name, value) {
            walls.set(layer, Err("the kernel does not show it".to_owned()));
        }
    }
}

/// Resident pages that are the process's own.
fn private_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = statm.split_ascii_whitespace().map(str::parse::<u64>);
    let (_, resident, shared) = (pages.next()?, pages.next()?.ok()?, pages.next()?.ok()?);
    let page_bytes = rustix::param::page_size() as u64;
    Some(resident.saturating_sub(shared) * page_bytes)
}
