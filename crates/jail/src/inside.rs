//! The higher rung: namespaces, and the first process in them.
//!
//! The first process inside is a copy of the supervisor, made in them. It becomes the child's
//! user, builds the root folder, starts the launcher, ends orphans, and tells how the child
//! ended. When it ends, the kernel ends all others.

use std::fs;
use std::io;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::process::{DumpableBehavior, Pid, Signal};
use sandbox::walls::{process, system};

use crate::child_parts::ChildParts;
use crate::control_group::OpenGroup;
use crate::identity::ChildIdentity;
use crate::launcher::{self, Surroundings};
use crate::limit;
use crate::line;
use crate::message::{JailReport, TERMINATE};
use crate::new_root::{self, Trees};
use crate::place::RootPlan;
use crate::reaper::{self, End};
use crate::settings::{JailNetwork, JailRung, PROXY_PORT};
use crate::wall::{self, JailLayer, Wall};

/// What the supervisor says when the user of the first process is known.
pub(crate) const GO: &str = "go";

/// The kernel's number for a file system in memory.
const IN_MEMORY: rustix::fs::FsWord = 0x0102_1994;

/// As root: who the child will be, and what is given to it, opened. Why not, if it cannot be:
/// without the right to mount there is no other owner to be shown.
pub(crate) fn open_given<'a>(
    parts: &'a ChildParts<'_>,
    plan: &RootPlan,
) -> Result<(Option<&'a ChildIdentity>, Trees), String> {
    let opened = match parts.identity() {
        Ok(None) => return Ok((None, Trees::default())),
        Ok(Some(identity)) => ChildIdentity::leave_groups()
            .and_then(|()| new_root::open_given(plan, parts.order, identity))
            .map(|trees| (Some(identity), trees)),
        Err(reason) => Err(reason),
    };
    opened.map_err(|reason| shorten(&reason))
}

/// Copies the supervisor into new namespaces: `None` in the copy, and whether it is in the
/// control group already.
pub(crate) fn fork(
    parts: &ChildParts<'_>,
    group: Option<&OpenGroup>,
) -> io::Result<(Option<Pid>, bool)> {
    let mut namespaces = system::NEW_USERS
        | system::NEW_MOUNTS
        | system::NEW_PROCESSES
        | system::NEW_QUEUES
        | system::NEW_HOST_NAME;
    match parts.order.network {
        JailNetwork::None | JailNetwork::Proxy => namespaces |= system::NEW_NETWORK,
        JailNetwork::Open => {}
    }
    system::fork_into(namespaces, group.and_then(OpenGroup::folder))
}

/// The first process inside: becomes the child's user, builds the root folder, starts the
/// launcher and stays. `group` is what it has still to join.
pub(crate) fn begin(
    parts: &ChildParts<'_>,
    plan: &RootPlan,
    trees: Trees,
    group: Result<Option<OpenGroup>, String>,
    report: &UnixStream,
    lifeline: UnixStream,
) -> ! {
    let joined = group.and_then(|group| match group {
        Some(group) => group.join().map_err(|error| error.to_string()),
        None => Ok(()),
    });
    if let Err(said) = enter(parts, &lifeline) {
        give_up(report, &said);
    }
    let mut walls = vec![
        Wall::new(JailLayer::Identity, Ok(())),
        Wall::new(JailLayer::ControlGroup, joined),
    ];
    match prepare(parts, plan, trees, &mut walls) {
        Ok(has_facts) => {
            let surroundings = Surroundings {
                rung: JailRung::Namespaces,
                rules: plan.rules(has_facts),
                walls,
                parent: 1,
            };
            run(parts, report, &lifeline, surroundings)
        }
        Err(reason) => give_up(report, &JailReport::NoNamespaces(shorten(&reason))),
    }
}

fn give_up(report: &UnixStream, said: &JailReport) -> ! {
    let _ = line::send(report, said);
    system::exit_now(1)
}

/// Becomes the child's user, known in the new namespaces.
fn enter(parts: &ChildParts<'_>, lifeline: &UnixStream) -> Result<(), JailReport> {
    let no_namespaces = |reason: String| JailReport::NoNamespaces(shorten(&reason));
    // As a line of JSON: the word, two quotes and a line feed.
    let mut go = [0; GO.len() + 3];
    let mut reader = lifeline;
    reader
        .read_exact(&mut go)
        .map_err(|error| no_namespaces(format!("the supervisor is gone: {error}")))?;
    // Only now, so that its root is the group that was joined.
    system::enter_new_namespaces(system::NEW_GROUPS)
        .map_err(|error| no_namespaces(wall::namespaces_refusal(&error)))?;
    match parts.identity() {
        Ok(Some(identity)) => identity
            .enter()
            .map_err(|reason| JailReport::Refused(shorten(&reason))),
        Ok(None) => map_self(parts.user).map_err(no_namespaces),
        Err(reason) => Err(no_namespaces(reason)),
    }
}

/// An ordinary user is known as itself, and no other is.
fn map_self((user, group): (u32, u32)) -> Result<(), String> {
    for (file, text) in [
        // First: without it the kernel takes no map of groups from an ordinary user
        // (user_namespaces(7)).
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("`{file}` of a user namespace was refused: {error}"))?;
    }
    Ok(())
}

/// The root folder, the network, and the way to the parent. Whether there are facts about
/// processes.
fn prepare(
    parts: &ChildParts<'_>,
    plan: &RootPlan,
    trees: Trees,
    walls: &mut Vec<Wall>,
) -> Result<bool, String> {
    // Only after the user changed: the kernel clears the signal when credentials change
    // (prctl(2)).
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| error.to_string())?;
    process::own_session()?;
    let facts = new_root::enter(plan, parts.order, trees)?;
    if let (JailNetwork::Proxy, Some(door)) = (parts.order.network, parts.door) {
        system::bring_loopback_up().map_err(|error| format!("no loopback: {error}"))?;
        let listener = TcpListener::bind(("127.0.0.1", PROXY_PORT))
            .map_err(|error| format!("no listener: {error}"))?;
        // A socket stays in the network it was made in, whoever accepts on it.
        line::send_descriptor(door, line::LISTENER, listener.as_fd())
            .map_err(|error| format!("could not hand the listener out: {error}"))?;
    }
    walls.push(Wall::new(JailLayer::Namespaces, is_alone()));
    let has_facts = facts.is_ok();
    walls.push(Wall::new(JailLayer::Facts, facts));
    Ok(has_facts)
}

/// Whether the namespaces are what they should be.
fn is_alone() -> Result<(), String> {
    if std::process::id() != 1 {
        return Err("the process numbers are not its own".to_owned());
    }
    match rustix::fs::statfs("/") {
        Ok(found) if found.f_type == IN_MEMORY => Ok(()),
        Ok(_) => Err("the root folder is not its own".to_owned()),
        Err(error) => Err(format!("could not look at the root folder: {error}")),
    }
}

/// Starts the launcher and stays until the child has ended.
fn run(
    parts: &ChildParts<'_>,
    report: &UnixStream,
    lifeline: &UnixStream,
    surroundings: Surroundings,
) -> ! {
    // The launcher drops what it holds once more and reports it.
    let bare = process::drop_all_capabilities().and_then(|()| process::renounce_privileges());
    if let Err(reason) = bare {
        give_up(report, &JailReport::NoNamespaces(shorten(&reason)));
    }
    let mut surroundings = Some(surroundings);
    // Returns when the launcher has become the child, or has ended and said why.
    let started = system::start_sharing(&mut || {
        if let Some(surroundings) = surroundings.take() {
            launcher::launch(parts, report, surroundings);
        }
    });
    let child = match started {
        Ok(child) => child,
        Err(error) => give_up(report, &JailReport::Refused(error.to_string())),
    };
    // Nothing of the child's stays open here, or its streams would never end.
    let kept = [std::os::fd::AsRawFd::as_raw_fd(lifeline)];
    if system::close_all_but(&kept).is_err() {
        system::exit_now(1);
    }
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let end = watch(lifeline, child);
    if let Some(end) = end {
        let _ = line::send(lifeline, &JailReport::Exited(end.to_exit()));
    }
    // Takes everything inside along.
    system::exit_now(0)
}

/// Waits for the end of the child; `None` if the supervisor cannot be heard.
fn watch(lifeline: &UnixStream, child: Pid) -> Option<End> {
    let heard = lifeline.try_clone().ok()?;
    thread::Builder::new()
        .name("jail-lifeline".to_owned())
        .spawn(move || obey(heard, child))
        .ok()?;
    // This thread, so that its end is told without a detour.
    Some(reaper::reap_until(child))
}

/// Does what the supervisor says until it is gone, and with it everything inside.
fn obey(mut lifeline: UnixStream, child: Pid) {
    loop {
        let mut asked = [0; 16];
        match lifeline.read(&mut asked) {
            Ok(0) | Err(_) => system::exit_now(0),
            Ok(count) => {
                if asked.iter().take(count).any(|byte| *byte == TERMINATE) {
                    let _ = rustix::process::kill_process_group(child, Signal::TERM);
                }
            }
        }
    }
}

fn shorten(reason: &str) -> String {
    reason.chars().take(limit::REASON_CHARS_MAX).collect()
}
