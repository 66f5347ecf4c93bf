//! The higher rung: namespaces, and the first process in them.
//!
//! One copy of the supervisor becomes the child's user and makes the namespaces. Its own
//! copy is the first process inside: it builds the root folder, starts the launcher, ends
//! orphans, and tells how the child ended. When it ends, the kernel ends all others.

use std::fs;
use std::io;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{DumpableBehavior, Pid, Signal};
use sandbox::walls::{process, system};

use crate::ground::JailGround;
use crate::launcher::{self, Surroundings};
use crate::limit;
use crate::line;
use crate::message::{JailReport, TERMINATE};
use crate::new_root::{self, Trees};
use crate::place::RootPlan;
use crate::reaper::{self, End};
use crate::settings::{JailNetwork, JailRung, PROXY_PORT};
use crate::wall::{self, JailLayer, Wall};

/// What the supervisor says when it is the first process's parent.
pub(crate) const GO: &str = "go";

/// The kernel's number for a file system in memory.
const IN_MEMORY: rustix::fs::FsWord = 0x0102_1994;

/// A copy of the supervisor: makes the namespaces and ends, or says why it cannot.
pub(crate) fn make_namespaces(
    ground: &JailGround<'_>,
    report: &UnixStream,
    lifeline: UnixStream,
) -> ! {
    let joined = ground.join_group();
    let plan = RootPlan::new(ground.order);
    let trees = match become_user(ground, &plan) {
        Ok(trees) => trees,
        Err(said) => give_up(report, &said),
    };
    if let Err(reason) = enter(ground) {
        give_up(report, &JailReport::NoNamespaces(shorten(&reason)));
    }
    match system::fork() {
        Ok(None) => {
            let mut walls = vec![
                Wall::new(JailLayer::Identity, Ok(())),
                Wall::new(JailLayer::ControlGroup, joined),
            ];
            match prepare(ground, &plan, trees, &lifeline, &mut walls) {
                Ok(has_facts) => {
                    let surroundings = Surroundings {
                        rung: JailRung::Namespaces,
                        rules: plan.rules(has_facts),
                        walls,
                        parent: 1,
                    };
                    run(ground, report, lifeline, surroundings)
                }
                Err(reason) => give_up(report, &JailReport::NoNamespaces(shorten(&reason))),
            }
        }
        Ok(Some(pid)) => {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let _ = line::send(report, &JailReport::Inside { pid });
            system::exit_now(0)
        }
        Err(error) => give_up(report, &JailReport::NoNamespaces(error.to_string())),
    }
}

fn give_up(report: &UnixStream, said: &JailReport) -> ! {
    let _ = line::send(report, said);
    system::exit_now(1)
}

/// As root: opens what is given, then becomes the child's user.
fn become_user(ground: &JailGround<'_>, plan: &RootPlan) -> Result<Trees, JailReport> {
    let refuse = |reason: String| JailReport::Refused(shorten(&reason));
    match ground.identity() {
        Ok(None) => Ok(Trees::default()),
        Ok(Some(identity)) => {
            // Without the right to mount there is no other owner to be shown.
            let trees = new_root::open_given(plan, ground.order, identity)
                .map_err(|reason| JailReport::NoNamespaces(shorten(&reason)))?;
            identity.enter().map_err(refuse)?;
            Ok(trees)
        }
        Err(reason) => Err(JailReport::NoNamespaces(shorten(&reason))),
    }
}

/// New namespaces for this process, and its user known in them.
fn enter(ground: &JailGround<'_>) -> Result<(), String> {
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let mut namespaces = system::NEW_USERS
        | system::NEW_MOUNTS
        | system::NEW_PROCESSES
        | system::NEW_QUEUES
        | system::NEW_HOST_NAME
        | system::NEW_GROUPS;
    match ground.order.network {
        JailNetwork::None | JailNetwork::Proxy => namespaces |= system::NEW_NETWORK,
        JailNetwork::Open => {}
    }
    system::enter_new_namespaces(namespaces).map_err(|error| wall::namespaces_refusal(&error))?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("`{file}` of a user namespace was refused: {error}"))?;
    }
    Ok(())
}

/// The first process inside: the root folder, the network, and the way to the parent.
/// Whether there are facts about processes.
fn prepare(
    ground: &JailGround<'_>,
    plan: &RootPlan,
    trees: Trees,
    lifeline: &UnixStream,
    walls: &mut Vec<Wall>,
) -> Result<bool, String> {
    let gone = |error: io::Error| format!("the supervisor is gone: {error}");
    let mut go = [0; GO.len() + 3];
    let mut reader = lifeline;
    reader.read_exact(&mut go).map_err(gone)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| error.to_string())?;
    process::own_session()?;
    let facts = new_root::enter(plan, ground.order, trees)?;
    if let (JailNetwork::Proxy, Some(door)) = (ground.order.network, ground.door) {
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
    ground: &JailGround<'_>,
    report: &UnixStream,
    lifeline: UnixStream,
    surroundings: Surroundings,
) -> ! {
    // The launcher drops what it holds once more and reports it.
    let bare = process::drop_all_capabilities().and_then(|()| process::renounce_privileges());
    let child = match (bare, system::fork()) {
        (Ok(()), Ok(Some(child))) => child,
        (Ok(()), Ok(None)) => {
            drop(lifeline);
            launcher::launch(ground, report, surroundings)
        }
        (Err(reason), _) => give_up(report, &JailReport::NoNamespaces(shorten(&reason))),
        (Ok(()), Err(error)) => give_up(report, &JailReport::Refused(error.to_string())),
    };
    // Nothing of the child's stays open here, or its streams would never end.
    let kept = [std::os::fd::AsRawFd::as_raw_fd(&lifeline)];
    if system::close_all_but(&kept).is_err() {
        system::exit_now(1);
    }
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let end = watch(&lifeline, child);
    if let Some(end) = end {
        let _ = line::send(&lifeline, &JailReport::Exited(end.to_exit()));
    }
    // Takes everything inside along.
    system::exit_now(0)
}

/// Waits for the end of the child; `None` if the supervisor is gone.
fn watch(lifeline: &UnixStream, child: Pid) -> Option<End> {
    let mut ends = reaper::watch_ends(child).ok()?;
    loop {
        let mut set = [
            PollFd::new(lifeline, PollFlags::IN),
            PollFd::new(&ends, PollFlags::IN),
        ];
        if rustix::event::poll(&mut set, None).is_err() {
            continue;
        }
        let [from_supervisor, ended] = set.each_ref().map(|one| !one.revents().is_empty());
        if ended {
            return Some(reaper::next_end(&mut ends));
        }
        if from_supervisor {
            let mut asked = [0; 16];
            let mut reader = lifeline;
            match reader.read(&mut asked) {
                Ok(0) | Err(_) => return None,
                Ok(count) => {
                    if asked.iter().take(count).any(|byte| *byte == TERMINATE) {
                        let _ = rustix::process::kill_process_group(child, Signal::TERM);
                    }
                }
            }
        }
    }
}

fn shorten(reason: &str) -> String {
    reason.chars().take(limit::REASON_CHARS_MAX).collect()
}
