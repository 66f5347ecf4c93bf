//! Starts children, and keeps one supervisor ready for the next: what it takes to execute
//! this program again is done before the next child is asked for.
//!
//! A ready supervisor knows nothing of the child it will be for, holds nothing but its control
//! socket, and waits in the kernel. It is used once. When its parent ends in any way, so does
//! the socket, and with it the supervisor. It has the rights its parent had when it was
//! started: a process that gives up rights does so before its first child.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;
use sandbox::pool::WorkerProgram;

use crate::child::{self, JailedChild};
use crate::fault::JailFault;
use crate::settings::JailSettings;
use crate::supervisor_process::ReadySupervisor;

/// Starts children. With the first, a supervisor is made ready for the second, and so on. Copies
/// share it; with the last copy it ends.
#[derive(Clone, Debug)]
pub struct JailStarter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: WorkerProgram,
    spare: Mutex<Spare>,
}

/// The supervisor for the next child.
#[derive(Debug)]
enum Spare {
    Missing,
    /// It is being started.
    Coming,
    Ready(ReadySupervisor),
}

impl JailStarter {
    /// Starts nothing yet. `program` is how to start this program again: its `main` must begin
    /// with `jail_main`.
    pub fn new(program: WorkerProgram) -> JailStarter {
        let spare = Mutex::new(Spare::Missing);
        JailStarter {
            shared: Arc::new(Shared { program, spare }),
        }
    }

    /// Starts a child, as [`spawn`](crate::spawn) does.
    pub async fn spawn(&self, settings: JailSettings) -> Result<JailedChild, JailFault> {
        let ready = self.shared.take();
        let child = child::spawn_by(settings, &self.shared.program, ready).await?;
        let shared = Arc::clone(&self.shared);
        // In its own time: the child runs already.
        drop(tokio::task::spawn_blocking(move || shared.prepare()));
        Ok(child)
    }

    /// The process of the supervisor that is ready, if there is one.
    pub fn ready_pid(&self) -> Option<u32> {
        match &*self.shared.spare() {
            Spare::Ready(ready) => {
                let pid = ready.supervisor.pid().map(Pid::as_raw_nonzero);
                pid.map(|pid| pid.get().unsigned_abs())
            }
            Spare::Missing | Spare::Coming => None,
        }
    }
}

impl Shared {
    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ready supervisor, for one child. One that has ended or was stopped is none.
    fn take(&self) -> Option<ReadySupervisor> {
        let mut spare = self.spare();
        let ready = match std::mem::replace(&mut *spare, Spare::Missing) {
            Spare::Ready(ready) => ready,
            other @ (Spare::Missing | Spare::Coming) => {
                *spare = other;
                return None;
            }
        };
        drop(spare);
        if ready.is_waiting() {
            return Some(ready);
        }
        ready.end();
        None
    }

    /// Starts the supervisor for the next child, if none is there or comes. If that fails, the
    /// next child gets one of its own and says why.
    fn prepare(&self) {
        let mut spare = self.spare();
        match *spare {
            Spare::Missing => *spare = Spare::Coming,
            Spare::Coming | Spare::Ready(_) => return,
        }
        drop(spare);
        let started = ReadySupervisor::start(&self.program);
        *self.spare() = started.map_or(Spare::Missing, Spare::Ready);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Spare::Ready(ready) = std::mem::replace(&mut *self.spare(), Spare::Missing) {
            ready.end();
        }
    }
}
