//! The one thread that starts worker processes and reaps them.
//!
//! A worker dies with the *thread* that started it, so that thread must live as
//! long as the pool: a runtime's own threads may come and go. Reaping waits for
//! the process, which must not hold up the runtime either.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread::{self, JoinHandle};

use model::sync::lock;
use tokio::sync::oneshot;

use crate::worker::WorkerArguments;

/// Which program is the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerProgram {
    /// This one, started again. Its `main` must begin with `worker_main`.
    ThisProgram,
    /// Another one, for tests: a path and what to add to its arguments.
    Other(PathBuf, Vec<String>),
}

/// Names one worker in the life of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WorkerId(pub(super) u64);

#[derive(Debug)]
enum Order {
    Start {
        id: WorkerId,
        pipe: OwnedFd,
        done: oneshot::Sender<io::Result<u32>>,
    },
    Reap {
        id: WorkerId,
        done: oneshot::Sender<Option<ExitStatus>>,
    },
    Stop,
}

#[derive(Debug)]
pub(super) struct Spawner {
    orders: mpsc::Sender<Order>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Spawner {
    pub(super) fn start(program: WorkerProgram, live_max: u32) -> io::Result<Spawner> {
        let (orders, inbox) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("sandbox-spawner".to_owned())
            .spawn(move || serve(&program, live_max, &inbox))?;
        Ok(Spawner {
            orders,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Starts a worker that has `pipe` for its only descriptor; its process id.
    pub(super) async fn spawn(&self, id: WorkerId, pipe: OwnedFd) -> io::Result<u32> {
        let (done, answer) = oneshot::channel();
        let gone = || io::Error::other("the spawner is gone");
        self.orders
            .send(Order::Start { id, pipe, done })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Kills a worker if need be, and waits until nothing is left of it.
    pub(super) async fn reap(&self, id: WorkerId) -> Option<ExitStatus> {
        let (done, answer) = oneshot::channel();
        self.orders.send(Order::Reap { id, done }).ok()?;
        answer.await.ok().flatten()
    }

    /// As [`Spawner::reap`], where waiting is not possible.
    pub(super) fn reap_later(&self, id: WorkerId) {
        let (done, _) = oneshot::channel();
        // Without a spawner there are no workers either.
        let _ = self.orders.send(Order::Reap { id, done });
    }

    /// Ends every worker. After this none is left, not even as a zombie; it takes
    /// as long as the kernel needs.
    pub(super) fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // It does not panic; if it did, the workers died with it.
            let _ = thread.join();
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(program: &WorkerProgram, live_max: u32, inbox: &mpsc::Receiver<Order>) {
    let mut workers = HashMap::new();
    while let Ok(order) = inbox.recv() {
        match order {
            Order::Start { id, pipe, done } => {
                let started = spawn(program, live_max, pipe);
                let pid = started.map(|child| {
                    let pid = child.id();
                    // Kept, because a child that is not waited for stays as a zombie.
                    workers.insert(id, child);
                    pid
                });
                // No task waits for it any more: it must not stay either.
                if let Err(Ok(_)) = done.send(pid)
                    && let Some(child) = workers.remove(&id)
                {
                    reap(child);
                }
            }
            Order::Reap { id, done } => {
                let status = workers.remove(&id).and_then(reap);
                let _ = done.send(status);
            }
            Order::Stop => break,
        }
    }
    // All are killed before the first is waited for: they end side by side.
    for child in workers.values_mut() {
        let _ = child.kill();
    }
    for (_, child) in workers {
        reap(child);
    }
}

fn spawn(program: &WorkerProgram, live_max: u32, pipe: OwnedFd) -> io::Result<Child> {
    let arguments = WorkerArguments {
        parent: std::process::id(),
        live_max,
    };
    let (path, added) = match program {
        // The file this process was started from, even if it was replaced since.
        WorkerProgram::ThisProgram => (PathBuf::from("/proc/self/exe"), [].as_slice()),
        WorkerProgram::Other(path, added) => (path.clone(), added.as_slice()),
    };
    Command::new(path)
        .arg0("ringfence-worker")
        .args(arguments.to_arguments())
        .args(added)
        // Attack: a variable of the parent may be a secret. The worker checks this again in
        // `walls::enter`.
        .env_clear()
        .stdin(Stdio::from(pipe))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn reap(mut child: Child) -> Option<ExitStatus> {
    // Fails only if it has been waited for already, which no other code does.
    let _ = child.kill();
    child.wait().ok()
}
