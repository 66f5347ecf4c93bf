//! A supervisor as its parent holds it: started before there is an order for it, ended, and
//! waited for in every case.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions};
use sandbox::pool::WorkerProgram;

use crate::limit;
use crate::process_tree;
use crate::role;

/// A supervisor that waits for its order.
#[derive(Debug)]
pub(crate) struct ReadySupervisor {
    // First, so that the lifeline ends before the supervisor is waited for.
    pub(crate) control: StdStream,
    pub(crate) supervisor: Supervisor,
}

impl ReadySupervisor {
    /// Starts one.
    pub(crate) fn start(program: &WorkerProgram) -> io::Result<ReadySupervisor> {
        let (control, theirs) = StdStream::pair()?;
        let process = role::start_supervisor(program, OwnedFd::from(theirs))?;
        let supervisor = Supervisor::new(process);
        Ok(ReadySupervisor {
            control,
            supervisor,
        })
    }

    /// Whether it would take an order. Not if it has ended or was stopped, from outside.
    pub(crate) fn is_waiting(&self) -> bool {
        let Some(pid) = self.supervisor.pid() else {
            return false;
        };
        let states = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        // It is left as it is found, and reaped later.
        let look = states | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(rustix::process::waitid(WaitId::Pid(pid), look), Ok(None))
    }

    /// Ends it at once: nothing of a child is below it.
    pub(crate) fn end(mut self) {
        self.supervisor.kill();
    }
}

/// The supervisor's process, which must be waited for.
#[derive(Debug)]
pub(crate) struct Supervisor {
    process: Option<Child>,
}

impl Supervisor {
    pub(crate) fn new(process: Child) -> Supervisor {
        Supervisor {
            process: Some(process),
        }
    }

    /// Its process, until it was waited for.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.process.as_ref().map(Child::id).and_then(to_pid)
    }

    /// Whether a process is a child of the supervisor's. Attack: the number of another
    /// process, whose group would be killed in the end.
    pub(crate) fn has_child(&self, pid: u32) -> bool {
        let supervisor = self.pid();
        supervisor.is_some() && to_pid(pid).and_then(process_tree::parent) == supervisor
    }

    pub(crate) fn kill(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended.
            let _ = process.kill();
        }
    }

    /// Kills it and waits for its end; how it ended.
    pub(crate) fn kill_and_reap(mut self) -> String {
        let end = self.process.take().and_then(|mut process| {
            // It may have ended.
            let _ = process.kill();
            process.wait().ok()
        });
        end.map_or_else(|| "has ended".to_owned(), describe)
    }

    /// Waits for its end, once it has closed its socket; how it ended.
    pub(crate) async fn reap(&mut self) -> String {
        let Some(process) = self.process.take() else {
            return "has ended".to_owned();
        };
        // A thread of its own, so that dropping this leaves no zombie either.
        match tokio::task::spawn_blocking(move || wait_or_kill(process)).await {
            Ok(Ok(status)) => describe(status),
            Ok(Err(_)) | Err(_) => "has ended".to_owned(),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take()
            && !matches!(process.try_wait(), Ok(Some(_)))
        {
            // Its lifeline has been dropped or is about to be; it ends when all is killed,
            // and is not to stay as a zombie, nor at all if it was stopped.
            let _ = thread::Builder::new()
                .name("jail-wait".to_owned())
                .spawn(move || wait_or_kill(process));
        }
    }
}

/// Waits for the end of a supervisor that has been told to end, and makes it end if it
/// does not.
fn wait_or_kill(mut process: Child) -> io::Result<ExitStatus> {
    if !ends_within(process.id(), Duration::from_millis(limit::KILL_MS_MAX)) {
        process.kill()?;
    }
    process.wait()
}

fn ends_within(pid: u32, time: Duration) -> bool {
    let handle = to_pid(pid).and_then(|pid| {
        let flags = rustix::process::PidfdFlags::empty();
        rustix::process::pidfd_open(pid, flags).ok()
    });
    let Some(handle) = handle else {
        return false;
    };
    let mut set = [rustix::event::PollFd::new(
        &handle,
        rustix::event::PollFlags::IN,
    )];
    let time = rustix::event::Timespec::try_from(time).ok();
    matches!(rustix::event::poll(&mut set, time.as_ref()), Ok(1..))
}

fn to_pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "has ended".to_owned(),
    }
}
