//! The layers that are properties of the process.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{Layer, Walls};

/// The worker's end of the pipe. Zero, so that a limit of one descriptor leaves no
/// number free.
pub(super) const PIPE_FD: RawFd = 0;

/// Proof that [`enter`] has run, and what it found.
#[derive(Debug)]
pub struct ProcessLayers {
    pub(crate) walls: Walls,
}

impl ProcessLayers {
    /// What is up so far, with the word on wall one added.
    pub fn with_wasm(mut self, outcome: Result<(), String>) -> ProcessLayers {
        self.walls.set(Layer::Wasm, outcome);
        self
    }
}

/// The first thing a worker does, while it has one thread and nothing open.
/// `parent` is the process that started it.
pub fn enter(parent: u32) -> ProcessLayers {
    let mut walls = Walls::default();
    walls.set(Layer::Environment, empty_environment());
    // After this only the pipe and two ends of nothing are open; see `seal`.
    close_inherited_descriptors();
    // A signal from a terminal must reach the parent alone, which then ends
    // its workers itself.
    walls.set(Layer::Session, own_session());
    walls.set(Layer::NoNewPrivileges, renounce_privileges());
    walls.set(Layer::Capabilities, drop_capabilities());
    // After the capabilities, because the kernel forgets this on some changes of them.
    walls.set(Layer::ParentDeath, die_with(parent));
    // When memory runs out, the kernel takes the worker and not its parent.
    // Without it the order is the kernel's own, which is no breach.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    ProcessLayers { walls }
}

fn empty_environment() -> Result<(), String> {
    match std::env::vars_os().next() {
        None => Ok(()),
        Some(_) => Err("variables were handed over".to_owned()),
    }
}

fn close_inherited_descriptors() {
    const FIRST: u32 = 3;
    #[expect(unsafe_code, reason = "rustix has no close_range")]
    // Safety: closes descriptors that nothing in this process owns yet: it is
    // the first thing a worker does.
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, 0_u32);
    }
    // An error is not lost: `only_known_descriptors` looks at what is left.
}

/// Leaves the terminal: a session of its own, and the root folder as working folder.
pub fn own_session() -> Result<(), String> {
    rustix::process::setsid().map_err(|error| error.to_string())?;
    // A folder held as working directory could not be unmounted.
    rustix::process::chdir(c"/").map_err(|error| error.to_string())
}

/// Nothing this process executes gains privileges, for good.
pub fn renounce_privileges() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    match rustix::thread::no_new_privs() {
        Ok(true) => Ok(()),
        Ok(false) => Err("the kernel did not accept it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Gives up every capability this thread holds.
pub fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::clear_ambient_capability_set().map_err(|error| error.to_string())?;
    rustix::thread::set_capabilities(None, none).map_err(|error| error.to_string())?;
    match rustix::thread::capabilities(None) {
        Ok(left) if left == none => Ok(()),
        Ok(_) => Err("some are left".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Has the kernel kill this process when the thread that started it ends. `parent` is that
/// thread's process.
pub fn die_with(parent: u32) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| error.to_string())?;
    // The parent may have died before the line above; then no signal comes.
    let now = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if now.is_some_and(|now| u32::try_from(now.get()) == Ok(parent)) {
        Ok(())
    } else {
        Err("the parent is gone or is another process".to_owned())
    }
}

/// Closes every descriptor but the standard streams as soon as something else is executed.
pub fn close_on_exec() -> Result<(), String> {
    const FIRST: u32 = 3;
    #[expect(unsafe_code, reason = "rustix has no close_range")]
    // Safety: with this flag nothing is closed now; descriptors only get a flag that
    // the standard library sets on its own anyway.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error().to_string()),
    }
}

/// As [`drop_capabilities`], and none comes back by executing something as root.
pub fn drop_all_capabilities() -> Result<(), String> {
    for capability in CapabilitySet::all().iter() {
        // Without the right to do so there is nothing held that could come back.
        if rustix::thread::capability_is_in_bounding_set(capability) == Ok(true) {
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
    drop_capabilities()
}

pub(super) fn close_standard_streams() {
    const STANDARD_OUTPUT: u32 = 1;
    const STANDARD_ERROR: u32 = 2;
    #[expect(unsafe_code, reason = "rustix has no close_range")]
    // Safety: nothing in a worker writes to the standard streams, and no
    // descriptor can be opened after `seal` that would take their numbers.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            STANDARD_OUTPUT,
            STANDARD_ERROR,
            0_u32,
        );
    }
}

/// Looks at every open descriptor. Beside the pipe there may be the sealed
/// memory holding the guest's image and this process's own page map, with which
/// a used sandbox is wiped.
pub(super) fn only_known_descriptors() -> Result<(), String> {
    let own_list = format!("/proc/{}/fd", std::process::id());
    let own_pages = format!("/proc/{}/pagemap", std::process::id());
    let entries = fs::read_dir("/proc/self/fd").map_err(|error| cannot_look(&error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot_look(&error))?;
        let target = fs::read_link(entry.path()).map_err(|error| cannot_look(&error))?;
        let target = target.to_string_lossy();
        let known = if entry.file_name().to_str() == Some("0") {
            target.starts_with("socket:")
        } else {
            target.starts_with("/memfd:wasm-memory-image") || target == own_pages
                // The list being read is open itself while it is read.
                || target == own_list
        };
        if !known {
            return Err(format!("`{target}` is open"));
        }
    }
    Ok(())
}

fn cannot_look(error: &io::Error) -> String {
    format!("could not list the open descriptors: {error}")
}

/// Whether this is the only thread: Landlock would not bind another.
pub(super) fn only_thread() -> Result<(), String> {
    match fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => Ok(()),
        Ok(count) => Err(format!("{count} threads were running already")),
        Err(error) => Err(format!("could not count the threads: {error}")),
    }
}

/// As tight as the worker can live with. There is no bound on address space:
/// the guest's guard regions reserve terabytes that are never backed, and what
/// is backed is bounded per sandbox.
pub(super) fn set_rlimits() -> Result<(), String> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Locks, 0),
        // `poll` counts its descriptors against this one; number 0 is taken by the pipe.
        (Resource::Nofile, 1),
    ];
    for (resource, bound) in limits {
        let limit = Rlimit {
            current: Some(bound),
            maximum: Some(bound),
        };
        rustix::process::setrlimit(resource, limit)
            .map_err(|error| format!("{resource:?}: {error}"))?;
        // Read back: a limit that was not taken would be a wall that only the report shows.
        if rustix::process::getrlimit(resource) != limit {
            return Err(format!("{resource:?} was not taken"));
        }
    }
    Ok(())
}

/// After loading: from here on the files below `/proc/self` are closed to us.
pub(super) fn forbid_dumping() -> Result<(), String> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| error.to_string())?;
    match rustix::process::dumpable_behavior() {
        Ok(DumpableBehavior::NotDumpable) => Ok(()),
        Ok(_) => Err("the kernel did not accept it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
