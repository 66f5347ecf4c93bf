//! The supervisor: one process for each child, between it and the parent.
//!
//! It starts the child (`start`), reports what becomes of it, and answers for everything
//! the child starts. The socket to the parent is its lifeline: when the parent closes
//! it, or dies, the supervisor kills every descendant until none is left. It reads
//! nothing the child writes, and the child cannot signal it.

use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};
use sandbox::walls::{process, system};

use crate::bound::Bounds;
use crate::child_parts::ChildParts;
use crate::connect_answer;
use crate::control_group::ControlGroup;
use crate::identity::ChildIdentity;
use crate::limit;
use crate::line::{self, LineBuffer, OrderedDescriptors};
use crate::message::{JailExit, JailOrder, JailReport, JailUsage, TERMINATE};
use crate::process_tree;
use crate::reaper::{End, Ends};
use crate::settings::JailNetwork;
use crate::start::{self, Running};

/// As root the number of processes is not bounded by the kernel, so the supervisor must
/// come to its turn among very many of them.
const PRIORITY_AS_ROOT: i32 = -20;

/// Rounds of killing before the supervisor takes breath between them.
const ROUNDS_AT_ONCE: u32 = 200;

/// The pause between later rounds.
const ROUND_PAUSE: Duration = Duration::from_millis(2);

/// How long the first process of the namespaces has to end, once it has said that it does.
const END_PAUSE: Duration = Duration::from_millis(20);

/// Becomes the supervisor of one child. Returns when the child has ended and nothing it
/// started is left.
pub(crate) fn supervise(control: UnixStream) -> io::Result<()> {
    // What the parent forgot to close at an execution is no part of a process that may wait for hours.
    system::close_all_but(&[control.as_raw_fd()])?;
    // A signal from the parent's terminal is the parent's business.
    process::own_session().map_err(io::Error::other)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    wait_for_order(&control);
    control.set_read_timeout(Some(Duration::from_millis(limit::START_MS_MAX)))?;
    let (order, descriptors) = line::receive_order(&control)?;
    control.set_read_timeout(None)?;
    let group = ControlGroup::make(&order.limits);
    supervise_child(&control, &order, descriptors, &group)
}

/// Waits until an order begins, as long as it takes: a supervisor that is ready costs nothing. When
/// the parent ends, so does its end of the socket.
fn wait_for_order(control: &UnixStream) {
    let mut set = [PollFd::new(control, PollFlags::IN)];
    while rustix::event::poll(&mut set, None) == Err(Errno::INTR) {}
}

/// Starts the child, waits for its end, and tells the parent when all is over.
fn supervise_child(
    control: &UnixStream,
    order: &JailOrder,
    descriptors: OrderedDescriptors,
    group: &Result<ControlGroup, String>,
) -> io::Result<()> {
    let (streams, door) = descriptors;
    // The way a launcher hands the listener for `connect` to this process.
    let hands = match order.network {
        JailNetwork::Proxy => Some(UnixStream::pair()?),
        JailNetwork::None | JailNetwork::Open => None,
    };
    let mut parts = ChildParts {
        order,
        streams: &streams,
        door: door.as_ref(),
        hand: hands.as_ref().map(|(_, theirs)| theirs),
        group,
        user: (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        ),
        identity: ChildIdentity::claim(),
        no_namespaces: String::new(),
    };
    let started = start::start(control, &mut parts);
    // Held as long as the child runs.
    let identity = parts.identity;
    // Ours would keep the pipes open after the child has closed its own.
    drop(streams);
    if rustix::process::getuid().is_root() {
        // Without the right to do so it is as any other process.
        let _ = rustix::process::setpriority_process(None, PRIORITY_AS_ROOT);
    }
    let running = match started {
        Ok(running) => running,
        Err(report) => {
            end_attempts();
            return line::send(control, &report);
        }
    };
    let mut watch = Watch {
        ends: running.ends()?,
        bounds: Bounds::new(order, &running, group.as_ref().ok()),
        control,
        order,
        group: group.as_ref().ok(),
        running,
        heard: LineBuffer::default(),
        door: None,
    };
    let user = identity.as_ref().ok().and_then(Option::as_ref);
    let user = user.map_or_else(|| rustix::process::getuid().as_raw(), |user| user.user);
    let answering = match (hands, door) {
        (Some((ours, theirs)), Some(door)) => {
            drop(theirs);
            watch.answer_connects(&ours, door, user)
        }
        (_, _) => Ok(()),
    };
    let exit = match answering {
        Ok(()) => watch.run(),
        Err(error) => Some(JailReport::Refused(format!(
            "connections cannot be handed over: {error}"
        ))),
    };
    watch.end_all(exit.as_ref());
    if matches!(exit, Some(JailReport::Exited(_))) {
        let (cpu_ms, memory_peak_bytes) = system::children_usage();
        let usage = JailUsage {
            cpu_ms,
            memory_peak_bytes,
        };
        let _ = line::send(control, &JailReport::Used(usage));
    }
    // The parent may be gone.
    match exit {
        Some(report) => line::send(control, &watch.explain(report)),
        None => Ok(()),
    }
}

/// Ends what is left of attempts that failed: a launcher that hangs or lies.
fn end_attempts() {
    loop {
        process_tree::kill_once();
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// One child under watch.
struct Watch<'a> {
    control: &'a UnixStream,
    order: &'a JailOrder,
    group: Option<&'a ControlGroup>,
    running: Running,
    /// What the first process inside has said so far.
    heard: LineBuffer,
    ends: Ends,
    bounds: Bounds,
    /// Held while the child runs: its end tells the parent that no connection comes any more.
    door: Option<OwnedFd>,
}

impl Watch<'_> {
    fn answer_connects(&mut self, ours: &UnixStream, door: OwnedFd, user: u32) -> io::Result<()> {
        if !start::needs_answers(&self.running, self.order) {
            self.door = Some(door);
            return Ok(());
        }
        match line::receive_descriptor(ours)? {
            Some((line::HANDED, listener)) => connect_answer::answer_connects(listener, door, user),
            Some(_) | None => Err(io::Error::other("the launcher handed nothing over")),
        }
    }

    /// Tells the parent that the child runs, and waits for its end. `None` if the parent
    /// ended it.
    fn run(&mut self) -> Option<JailReport> {
        let pid = self.running.pid.as_raw_nonzero().get().unsigned_abs();
        let walls = JailReport::Walls {
            rung: self.running.rung,
            walls: self.running.walls.clone(),
        };
        // If the parent is gone, its end of file says so next.
        let _ = line::send(self.control, &walls);
        let _ = line::send(self.control, &JailReport::Started { pid });
        loop {
            let [control, inside, ends] = self.poll();
            if control && self.hear_parent() == Lifeline::Ended {
                return None;
            }
            if inside && let Some(exit) = self.hear_inside() {
                return Some(JailReport::Exited(exit));
            }
            if ends {
                return Some(JailReport::Exited(self.hear_end()));
            }
            if let Some(reason) = self.bounds.find_broken() {
                return Some(JailReport::Exited(JailExit::Bound(reason)));
            }
        }
    }

    /// Which of the parent, the first process inside and the reaping thread have something
    /// to say. Returns as well when it is time to look at the bounds.
    fn poll(&self) -> [bool; 3] {
        let mut set = vec![
            PollFd::new(self.control, PollFlags::IN),
            PollFd::new(&self.ends, PollFlags::IN),
        ];
        let inside = self.running.inside.as_ref();
        set.extend(inside.map(|inside| PollFd::new(inside, PollFlags::IN)));
        let alarm = self.bounds.alarm();
        set.extend(alarm.map(|alarm| PollFd::from_borrowed_fd(alarm, PollFlags::PRI)));
        let pause = self.bounds.pause();
        let timeout = pause.and_then(|pause| Timespec::try_from(pause).ok());
        if rustix::event::poll(&mut set, timeout.as_ref()).is_err() {
            // Interrupted: all may be asked again.
            return [false; 3];
        }
        // As they were added: the parent, the reaping thread, then the first process inside while
        // there is one. The alarm behind them only ends the wait.
        let has = |index: usize| set.get(index).is_some_and(|one| !one.revents().is_empty());
        [has(0), inside.is_some() && has(2), has(1)]
    }

    fn hear_parent(&mut self) -> Lifeline {
        let mut asked = [0; 16];
        let mut control = self.control;
        match control.read(&mut asked) {
            Ok(0) | Err(_) => Lifeline::Ended,
            Ok(count) => {
                if asked.iter().take(count).any(|byte| *byte == TERMINATE) {
                    self.terminate();
                }
                Lifeline::Holds
            }
        }
    }

    /// Sends SIGTERM to the child's group. It may have ended already.
    fn terminate(&self) {
        match &self.running.inside {
            Some(inside) => {
                let mut inside = inside;
                let _ = io::Write::write_all(&mut inside, &[TERMINATE]);
            }
            None => {
                let _ = rustix::process::kill_process_group(self.running.pid, Signal::TERM);
            }
        }
    }

    /// How the child ended, from the first process inside. It says nothing else, and says
    /// nothing when it was killed itself.
    fn hear_inside(&mut self) -> Option<JailExit> {
        let inside = self.running.inside.as_ref()?;
        let is_open = self.heard.read_from(inside);
        match self.heard.next() {
            Ok(Some(JailReport::Exited(exit @ (JailExit::Code(_) | JailExit::Signal(_))))) => {
                return Some(exit);
            }
            Ok(Some(_)) | Err(_) => {
                let reason = "the process around the program said nonsense";
                return Some(JailExit::Unknown(reason.to_owned()));
            }
            Ok(None) => {}
        }
        if !matches!(is_open, Ok(true)) {
            // Its end comes from the reaping thread.
            self.running.inside = None;
        }
        None
    }

    /// The process that is waited for has ended.
    fn hear_end(&mut self) -> JailExit {
        while self.running.inside.is_some() {
            if let Some(exit) = self.hear_inside() {
                return exit;
            }
        }
        self.ends.next().to_exit()
    }

    /// What the kernel did, in words: a process that was killed for want of memory.
    fn explain(&self, report: JailReport) -> JailReport {
        let is_killed = matches!(
            report,
            JailReport::Exited(JailExit::Signal(signal)) if signal == Signal::KILL.as_raw()
        );
        if is_killed && self.group.is_some_and(ControlGroup::ran_out_of_memory) {
            let bytes = self.order.limits.memory_bytes;
            let reason = format!("more than {bytes} bytes of memory");
            return JailReport::Exited(JailExit::Bound(reason));
        }
        report
    }

    /// Ends everything that has not ended; when this returns nothing is left.
    fn end_all(&mut self, exit: Option<&JailReport>) {
        let is_ending =
            self.running.inside.is_some() && matches!(exit, Some(JailReport::Exited(_)));
        if !(is_ending && self.ends_by_itself()) {
            self.kill_all();
        }
    }

    /// Whether everything has ended within [`END_PAUSE`]: the kernel ends all processes of the
    /// namespaces with the first one, which ends when it has said how the child ended.
    fn ends_by_itself(&mut self) -> bool {
        let timeout = Timespec::try_from(END_PAUSE).ok();
        loop {
            let mut set = [PollFd::new(&self.ends, PollFlags::IN)];
            match rustix::event::poll(&mut set, timeout.as_ref()) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return false,
            }
            if self.ends.next() == End::NoneLeft {
                return true;
            }
        }
    }

    /// Kills until nothing is left. A process that starts another while it is killed is
    /// outrun: every round begins at the supervisor, to which orphans return.
    fn kill_all(&mut self) {
        let mut rounds = 0_u32;
        let mut last_pid = None;
        loop {
            process_tree::kill_once();
            let mut set = [PollFd::new(&self.ends, PollFlags::IN)];
            // Where no process was started since the last round there is none to outrun: the
            // end of those that were killed is waited for, and comes as an event.
            let now = process_tree::last_pid();
            let is_quiet = now.is_some() && now == last_pid;
            last_pid = now;
            let pause = match rounds < ROUNDS_AT_ONCE && !is_quiet {
                true => Duration::ZERO,
                false => ROUND_PAUSE,
            };
            let timeout = Timespec::try_from(pause).ok();
            let has_news =
                rustix::event::poll(&mut set, timeout.as_ref()).is_ok_and(|ready| ready > 0);
            if has_news && self.ends.next() == End::NoneLeft {
                return;
            }
            rounds = rounds.saturating_add(1);
        }
    }
}

/// Whether the parent still holds its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifeline {
    Holds,
    Ended,
}
