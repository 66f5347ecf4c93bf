//! The processes a supervisor answers for: everything that descends from it.
//!
//! A supervisor is a subreaper, so a process whose parent has ended becomes its
//! child. Nothing leaves the tree, whatever groups and sessions it makes.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal};

/// How many processes and threads descend from this process, counted up to `max` + 1.
pub(crate) fn count(max: u64) -> u64 {
    let mut count = 0_u64;
    visit(&mut |pid| {
        count = count.saturating_add(thread_count(pid));
        match count > max {
            true => Visit::Stop,
            false => Visit::GoOn,
        }
    });
    count
}

/// Sends SIGKILL once to each descendant it finds. What was started meanwhile is for
/// the next round.
pub(crate) fn kill_once() {
    visit(&mut |pid| {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        Visit::GoOn
    });
}

/// Whether to look further.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    GoOn,
    Stop,
}

/// Visits each descendant as soon as it is seen: a process that is about to start another
/// should not win time while the rest are listed.
fn visit(each: &mut dyn FnMut(Pid) -> Visit) {
    let own = rustix::process::getpid();
    let listed = match children(own) {
        Some(children) => Source::Kernel(children),
        None => Source::Table(table()),
    };
    let mut open = match &listed {
        Source::Kernel(children) => children.clone(),
        Source::Table(table) => table.get(&own).cloned().unwrap_or_default(),
    };
    while let Some(pid) = open.pop() {
        if each(pid) == Visit::Stop {
            return;
        }
        match &listed {
            Source::Kernel(_) => open.extend(children(pid).unwrap_or_default()),
            Source::Table(table) => open.extend(table.get(&pid).into_iter().flatten()),
        }
    }
}

/// Where the children of a process are known from.
enum Source {
    /// The kernel lists them.
    Kernel(Vec<Pid>),
    /// The kernel does not: from the parents of all processes.
    Table(HashMap<Pid, Vec<Pid>>),
}

/// The children of every thread of a process; `None` where the kernel keeps no such list.
fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        found.extend(list.split_ascii_whitespace().filter_map(parse));
    }
    Some(found)
}

fn table() -> HashMap<Pid, Vec<Pid>> {
    let mut table: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(parse) else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            table.entry(parent).or_default().push(pid);
        }
    }
    table
}

/// The parent of a process, if it is there.
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    // The name in parentheses may hold anything, parentheses too; after it come the state
    // and the parent.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1).and_then(parse)
}

fn thread_count(pid: Pid) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map(Iterator::count);
    // A process that hides its threads (`hidepid`) still is one.
    u64::try_from(threads.unwrap_or(0).max(1)).unwrap_or(u64::MAX)
}

fn parse(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// The last process number the kernel gave out. While it stays the same, no process
/// was started.
pub(crate) fn last_pid() -> Option<u32> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Processes and threads of this user on the whole machine, as RLIMIT_NPROC counts them.
pub(crate) fn user_count() -> u64 {
    let user = rustix::process::getuid().as_raw().to_string();
    let mut count = 0_u64;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(parse).is_none() {
            continue;
        }
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()
        };
        if field("Uid:") == Some(user.as_str()) {
            let threads = field("Threads:").and_then(|threads| threads.parse().ok());
            count = count.saturating_add(threads.unwrap_or(1));
        }
    }
    count
}
