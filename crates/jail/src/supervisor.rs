//! The supervisor: one process for each child, between it and the parent.
//!
//! It starts the launcher, reports what becomes of it, and answers for everything
//! the child starts. The socket to the parent is its lifeline: when the parent closes
//! it, or dies, the supervisor kills every descendant until none is left. It reads
//! nothing the child writes, and the child cannot signal it.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sandbox::pool::WorkerProgram;
use sandbox::walls::process;

use crate::limit;
use crate::line::{self, LineBuffer};
use crate::message::{JailExit, JailReport, TERMINATE};
use crate::process_tree;
use crate::role::{self, JailRole};
use crate::wall::Wall;

/// As root the number of processes is not bounded by the kernel, so the supervisor must
/// come to its turn among very many of them.
const PRIORITY_AS_ROOT: i32 = -20;

/// Rounds of killing before the supervisor takes breath between them.
const ROUNDS_AT_ONCE: u32 = 200;

/// The pause between later rounds.
const ROUND_PAUSE: Duration = Duration::from_millis(2);

/// Becomes the supervisor of one child. Returns when the child has ended and nothing it
/// started is left.
pub(crate) fn supervise(control: UnixStream) -> io::Result<()> {
    process::close_on_exec().map_err(io::Error::other)?;
    // A signal from the parent's terminal is the parent's business.
    process::own_session().map_err(io::Error::other)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if rustix::process::getuid().is_root() {
        // Without the right to do so it is as any other process.
        let _ = rustix::process::setpriority_process(None, PRIORITY_AS_ROOT);
    }
    control.set_read_timeout(Some(Duration::from_millis(limit::START_MS_MAX)))?;
    let (order, streams) = line::receive_order(&control)?;
    control.set_read_timeout(None)?;
    let (ours, theirs) = UnixStream::pair()?;
    let launcher = role::start(
        JailRole::Launcher,
        &WorkerProgram::ThisProgram,
        OwnedFd::from(theirs),
    )?;
    let [input, output, error] = &streams;
    let sent = line::send_order(
        &ours,
        &order,
        &[input.as_fd(), output.as_fd(), error.as_fd()],
    );
    // Ours would keep the pipes open after the child has closed its own.
    drop(streams);
    let pid = i32::try_from(launcher.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no process number"))?;
    let ends = watch_ends(pid)?;
    let mut watch = Watch {
        control,
        launcher: Some(ours),
        heard: LineBuffer::default(),
        walls: None,
        ends,
        pid,
        processes_max: order.limits.processes,
        last_pid: None,
    };
    let exit = match sent {
        Ok(()) => watch.until_end(),
        Err(error) => Some(JailReport::Refused(format!(
            "the launcher ended early: {error}"
        ))),
    };
    watch.kill_all();
    match exit {
        // The parent may be gone.
        Some(report) => line::send(&watch.control, &report),
        None => Ok(()),
    }
}

/// One child under watch.
struct Watch {
    control: UnixStream,
    /// The launcher's socket, until the launcher has become the child.
    launcher: Option<UnixStream>,
    heard: LineBuffer,
    walls: Option<Vec<Wall>>,
    ends: PipeReader,
    pid: Pid,
    processes_max: u64,
    last_pid: Option<u32>,
}

/// What the reaping thread has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Code(i32),
    Signal(i32),
    /// No child is left, and so no descendant.
    NoneLeft,
}

impl Watch {
    /// Waits for the end of the child. `None` if the parent ended it.
    fn until_end(&mut self) -> Option<JailReport> {
        loop {
            let [control, launcher, ends] = self.poll();
            if control && self.hear_parent() == Lifeline::Ended {
                return None;
            }
            if launcher && let Err(report) = self.hear_launcher() {
                return Some(report);
            }
            if ends {
                return Some(self.hear_end());
            }
            if self.has_too_many() {
                let reason = format!("more than {} processes and threads", self.processes_max);
                return Some(JailReport::Exited(JailExit::Bound(reason)));
            }
        }
    }

    /// The child has ended. A short one may be over before its launcher was heard out.
    fn hear_end(&mut self) -> JailReport {
        while self.launcher.is_some() {
            if let Err(report) = self.hear_launcher() {
                return report;
            }
        }
        JailReport::Exited(match self.next_end() {
            End::Code(code) => JailExit::Code(code),
            End::Signal(signal) => JailExit::Signal(signal),
            End::NoneLeft => JailExit::Unknown("nothing was left to wait for".to_owned()),
        })
    }

    /// Which of the parent, the launcher and the reaping thread have something to say.
    fn poll(&self) -> [bool; 3] {
        let mut set = vec![
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(&self.ends, PollFlags::IN),
        ];
        if let Some(launcher) = &self.launcher {
            set.push(PollFd::new(launcher, PollFlags::IN));
        }
        let interval = Duration::from_millis(limit::COUNT_INTERVAL_MS);
        let timeout = Timespec::try_from(interval).ok();
        if rustix::event::poll(&mut set, timeout.as_ref()).is_err() {
            // Interrupted: all may be asked again.
            return [false; 3];
        }
        let has = |index: usize| set.get(index).is_some_and(|one| !one.revents().is_empty());
        [has(0), has(2), has(1)]
    }

    fn hear_parent(&mut self) -> Lifeline {
        let mut asked = [0; 16];
        match self.control.read(&mut asked) {
            Ok(0) | Err(_) => Lifeline::Ended,
            Ok(count) => {
                if asked.iter().take(count).any(|byte| *byte == TERMINATE) {
                    // The child leads its group. It may have ended already.
                    let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
                }
                Lifeline::Holds
            }
        }
    }

    /// Takes the launcher's reports; its end of file means that it has become the child.
    fn hear_launcher(&mut self) -> Result<(), JailReport> {
        let Some(launcher) = &self.launcher else {
            return Ok(());
        };
        let is_open = self.heard.read_from(launcher);
        loop {
            match self.heard.next() {
                Ok(Some(JailReport::Walls(walls))) => self.walls = Some(walls),
                Ok(Some(JailReport::Refused(reason))) => return Err(JailReport::Refused(reason)),
                Ok(Some(JailReport::Started { .. } | JailReport::Exited(_))) | Err(_) => {
                    return Err(JailReport::Refused("the launcher said nonsense".to_owned()));
                }
                Ok(None) => break,
            }
        }
        match (is_open, &self.walls) {
            (Ok(true), _) => Ok(()),
            (Ok(false), Some(walls)) => {
                self.launcher = None;
                let pid = self.pid.as_raw_nonzero().get().unsigned_abs();
                // If the parent is gone, its end of file says so next.
                let _ = line::send(&self.control, &JailReport::Walls(walls.clone()));
                let _ = line::send(&self.control, &JailReport::Started { pid });
                Ok(())
            }
            (Ok(false) | Err(_), _) => Err(early_end()),
        }
    }

    fn next_end(&mut self) -> End {
        let mut record = [0; 5];
        match self.ends.read_exact(&mut record) {
            Ok(()) => End::from_record(record),
            // The thread ends only after it has said that nothing is left.
            Err(_) => End::NoneLeft,
        }
    }

    /// Counts the child's processes, if any process was started on the machine since.
    fn has_too_many(&mut self) -> bool {
        let last_pid = process_tree::last_pid();
        if last_pid.is_some() && last_pid == self.last_pid {
            return false;
        }
        self.last_pid = last_pid;
        process_tree::count(self.processes_max) > self.processes_max
    }

    /// Kills until nothing is left. A process that starts another while it is killed is
    /// outrun: every round begins at the supervisor, to which orphans return.
    fn kill_all(&mut self) {
        let mut rounds = 0_u32;
        loop {
            process_tree::kill_once();
            let mut set = [PollFd::new(&self.ends, PollFlags::IN)];
            let pause = match rounds < ROUNDS_AT_ONCE {
                true => Duration::ZERO,
                false => ROUND_PAUSE,
            };
            let timeout = Timespec::try_from(pause).ok();
            let has_news =
                rustix::event::poll(&mut set, timeout.as_ref()).is_ok_and(|ready| ready > 0);
            if has_news && self.next_end() == End::NoneLeft {
                return;
            }
            rounds = rounds.saturating_add(1);
        }
    }
}

fn early_end() -> JailReport {
    let reason = "the launcher ended before it could say why; \
                  the machine may be out of memory or processes";
    JailReport::Refused(reason.to_owned())
}

/// Whether the parent still holds its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifeline {
    Holds,
    Ended,
}

impl End {
    fn to_record(self) -> [u8; 5] {
        let (kind, number) = match self {
            End::Code(code) => (0, code),
            End::Signal(signal) => (1, signal),
            End::NoneLeft => (2, 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    fn from_record([kind, a, b, c, d]: [u8; 5]) -> End {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => End::Code(number),
            1 => End::Signal(number),
            _ => End::NoneLeft,
        }
    }

    fn of(status: WaitStatus) -> End {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => End::Code(code),
            (None, Some(signal)) => End::Signal(signal),
            (None, None) => End::Code(0),
        }
    }
}

/// Starts the thread that reaps: the child, and every orphan that comes to the supervisor.
/// It waits in the kernel, so an idle child costs nothing.
fn watch_ends(child: Pid) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    thread::Builder::new()
        .name("jail-reaper".to_owned())
        .spawn(move || reap(child, writer))?;
    Ok(reader)
}

fn reap(child: Pid, mut ends: PipeWriter) {
    loop {
        let end = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => End::of(status),
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => End::NoneLeft,
        };
        if ends.write_all(&end.to_record()).is_err() || end == End::NoneLeft {
            return;
        }
    }
}
