//! The bounds of a child that its supervisor keeps, because the kernel does not or only
//! refuses, and when to look at them: as seldom as they allow, so that an idle child costs
//! next to nothing.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use crate::control_group::{ControlGroup, FullGroup};
use crate::disk_use::DiskUse;
use crate::limit;
use crate::message::JailOrder;
use crate::process_tree;
use crate::settings::JailLimits;
use crate::start::Running;
use crate::wall::{JailLayer, Wall};

/// The bounds of one child.
#[derive(Debug)]
pub(crate) struct Bounds {
    limits: JailLimits,
    processes: ProcessBound,
    /// Processes and threads around the child that are counted with it.
    ours: u64,
    disk: DiskUse,
}

/// Who keeps the bound of processes.
#[derive(Debug)]
enum ProcessBound {
    /// The kernel, which tells when it refused one.
    Group(FullGroup),
    /// The supervisor. The kernel's own bound, of all processes of a user, lies above.
    Counted(ProcessCount),
}

impl Bounds {
    /// Those of a child that has started, in a group or without.
    pub(crate) fn new(
        order: &JailOrder,
        running: &Running,
        group: Option<&ControlGroup>,
    ) -> Bounds {
        let is_inside = |wall: &Wall| wall.layer == JailLayer::ControlGroup && wall.is_up();
        let group = group.filter(|_| running.walls.iter().any(is_inside));
        let processes = match group.and_then(|group| group.watch_processes().ok()) {
            Some(full) => ProcessBound::Group(full),
            None => ProcessBound::Counted(ProcessCount::new()),
        };
        let ours = match running.inside {
            Some(_) => limit::PROCESSES_OURS,
            None => 0,
        };
        Bounds {
            limits: order.limits,
            processes,
            ours,
            disk: DiskUse::new(order),
        }
    }

    /// What has something urgent to say as soon as a bound is broken.
    pub(crate) fn alarm(&self) -> Option<BorrowedFd<'_>> {
        match &self.processes {
            ProcessBound::Group(full) => Some(full.as_fd()),
            ProcessBound::Counted(_) => None,
        }
    }

    /// How long until the next look; `None` if there is nothing to look at.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let counting = match &self.processes {
            ProcessBound::Group(_) => None,
            ProcessBound::Counted(count) => Some(count.pause),
        };
        [counting, self.disk.pause()].into_iter().flatten().min()
    }

    /// Finds the bound that the child broke.
    pub(crate) fn find_broken(&mut self) -> Option<String> {
        if self.has_too_many() {
            let max = self.limits.processes;
            return Some(format!("more than {max} processes and threads"));
        }
        let max = self.limits.disk_bytes;
        let is_broken = self.disk.is_too_much();
        is_broken.then(|| format!("more than {max} bytes written"))
    }

    fn has_too_many(&mut self) -> bool {
        match &mut self.processes {
            ProcessBound::Group(full) => match full.has_refused() {
                Ok(has_refused) => has_refused,
                Err(_) => {
                    // The group was removed from outside: its processes are elsewhere.
                    self.processes = ProcessBound::Counted(ProcessCount::new());
                    false
                }
            },
            ProcessBound::Counted(count) => {
                count.is_above(self.limits.processes.saturating_add(self.ours))
            }
        }
    }
}

/// The processes and threads of a child as they were counted last.
#[derive(Debug)]
struct ProcessCount {
    last_pid: Option<u32>,
    found: u64,
    /// Until the next count.
    pause: Duration,
}

impl ProcessCount {
    fn new() -> ProcessCount {
        ProcessCount {
            last_pid: None,
            found: 0,
            pause: Duration::from_millis(limit::LOOK_INTERVAL_MS_MIN),
        }
    }

    /// Counts, if any process was started on the machine since. While the count stays the same
    /// the pause grows: of a child that begins to start processes then, the kernel's own bound
    /// refuses what is far too much.
    fn is_above(&mut self, max: u64) -> bool {
        let last_pid = process_tree::last_pid();
        let before = self.found;
        if last_pid.is_none() || last_pid != self.last_pid {
            self.found = process_tree::count(max);
        }
        self.last_pid = last_pid;
        let longest = Duration::from_millis(limit::LOOK_INTERVAL_MS_MAX);
        self.pause = match self.found == before {
            true => self.pause.saturating_mul(2).min(longest),
            false => Duration::from_millis(limit::LOOK_INTERVAL_MS_MIN),
        };
        self.found > max
    }
}
