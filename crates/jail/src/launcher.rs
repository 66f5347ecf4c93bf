//! The launcher: puts up the walls around itself, one by one, tries each, and
//! becomes the child. What it says goes to the supervisor on a socket that closes
//! when the child is executed.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit};
use sandbox::walls::{process, system};

use crate::child_parts::ChildParts;
use crate::file_rule::FileRule;
use crate::file_wall;
use crate::identity::{self, ChildIdentity};
use crate::limit;
use crate::line::{self, STREAMS};
use crate::message::{JailOrder, JailReport};
use crate::process_tree;
use crate::seccomp;
use crate::settings::{JailLimits, JailNetwork, JailRung};
use crate::wall::{self, JailLayer, Wall};

/// When memory runs out the kernel takes the child before its parent.
const OOM_SCORE: &str = "800";

/// The place of a child among processes.
pub(crate) struct Surroundings {
    pub(crate) rung: JailRung,
    pub(crate) rules: Vec<FileRule>,
    /// What is up already.
    pub(crate) walls: Vec<Wall>,
    /// The process whose end is the child's, too.
    pub(crate) parent: u32,
}

/// A copy of the supervisor: becomes the child on the lower rung.
pub(crate) fn launch_here(parts: &ChildParts<'_>, report: &UnixStream, supervisor: u32) -> ! {
    let joined = parts
        .open_group()
        .and_then(|group| group.join().map_err(|error| error.to_string()));
    let outcome = parts.identity().and_then(|identity| {
        let Some(identity) = identity else {
            return Ok(());
        };
        ChildIdentity::leave_groups()?;
        identity.enter()?;
        identity::check_reach(&parts.order.own, &parts.order.declared)
    });
    let mut walls = vec![
        Wall::new(JailLayer::Namespaces, Err(parts.no_namespaces.clone())),
        Wall::new(JailLayer::Identity, outcome),
        Wall::new(JailLayer::ControlGroup, joined),
    ];
    walls.retain(|wall| wall.layer != JailLayer::Namespaces || !parts.no_namespaces.is_empty());
    let surroundings = Surroundings {
        rung: JailRung::Landlock,
        rules: parts.order.rules.clone(),
        walls,
        parent: supervisor,
    };
    launch(parts, report, surroundings)
}

/// Becomes the child. Does not return; if it could not, it has said why.
pub(crate) fn launch(parts: &ChildParts<'_>, report: &UnixStream, surroundings: Surroundings) -> ! {
    let order = parts.order;
    let rung = surroundings.rung;
    let reason = match fence(parts, surroundings) {
        Err(reason) => reason,
        Ok(walls) => {
            let refusal = wall::refusal(&walls).filter(|_| !order.accept_missing);
            match (
                line::send(report, &JailReport::Walls { rung, walls }),
                refusal,
            ) {
                (Err(_), _) => system::exit_now(1),
                (Ok(()), Some(refusal)) => refusal,
                (Ok(()), None) => execute(order, parts.streams),
            }
        }
    };
    let reason = reason.chars().take(limit::REASON_CHARS_MAX).collect();
    let _ = line::send(report, &JailReport::Refused(reason));
    system::exit_now(1)
}

/// Every wall, in the one order that works: what needs files or privileges comes before
/// Landlock and the loss of capabilities, the filter of system calls comes last.
fn fence(parts: &ChildParts<'_>, surroundings: Surroundings) -> Result<Vec<Wall>, String> {
    let order = parts.order;
    let Surroundings {
        rung,
        rules,
        mut walls,
        parent,
    } = surroundings;
    walls.extend([
        Wall::new(JailLayer::Descriptors, process::close_on_exec()),
        Wall::new(JailLayer::Session, process::own_session()),
        Wall::new(JailLayer::Rlimits, set_rlimits(&order.limits, rung)),
        Wall::new(JailLayer::Capabilities, process::drop_all_capabilities()),
        Wall::new(JailLayer::NoNewPrivileges, process::renounce_privileges()),
        // After the capabilities, because the kernel forgets this on some changes of them.
        Wall::new(JailLayer::ParentDeath, process::die_with(parent)),
    ]);
    // Without it the order is the kernel's own, which is no breach.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    let folder = order.folder.display();
    std::env::set_current_dir(&order.folder).map_err(|error| {
        // Who the program is says more than what fails because of it.
        let mut known = walls.iter().filter(|one| one.layer == JailLayer::Identity);
        let why = known.find_map(|one| one.missing.clone());
        why.unwrap_or_else(|| format!("could not enter the folder `{folder}`: {error}"))
    })?;
    let (files, signals) = file_wall::restrict(&rules, order.network, rung)?;
    walls.push(Wall::new(JailLayer::Files, files));
    walls.push(Wall::new(JailLayer::Signals, signals));
    let calls = restrict_calls(parts, rung);
    let tried = match order.network {
        JailNetwork::None => Some(internet_is_denied()),
        JailNetwork::Proxy => Some(outside_is_denied(rung)),
        JailNetwork::Open => None,
    };
    if let Some(tried) = tried {
        let network = calls.clone().and(tried);
        walls.push(Wall::new(JailLayer::Network, network));
    }
    walls.push(Wall::new(JailLayer::SystemCalls, calls));
    walls.sort_by_key(|wall| wall.layer);
    Ok(walls)
}

fn restrict_calls(parts: &ChildParts<'_>, rung: JailRung) -> Result<(), String> {
    let listener = seccomp::restrict(parts.order.network, rung)?;
    if let Some(listener) = listener {
        let handed = parts.hand.ok_or("there is no one to hand connections to")?;
        line::send_descriptor(handed, line::HANDED, listener.as_fd())
            .map_err(|error| format!("could not hand connections over: {error}"))?;
    }
    local_sockets_are_denied()
}

/// Bounds that every process of the child inherits and none can raise.
fn set_rlimits(limits: &JailLimits, rung: JailRung) -> Result<(), String> {
    let mut bounds = vec![
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
    ];
    bounds.extend(limits.cpu_seconds.map(|seconds| (Resource::Cpu, seconds)));
    let seen = limits.processes.saturating_add(limit::PROCESSES_SEEN);
    match rung {
        // Counted for each namespace of users.
        JailRung::Namespaces => bounds.push((Resource::Nproc, seen)),
        JailRung::Landlock if !rustix::process::getuid().is_root() => {
            // The kernel counts every process of the user here, so this is only the last
            // resort against a flood; the supervisor counts the child's own.
            let others = process_tree::user_count();
            let bound = others
                .saturating_add(seen)
                .saturating_add(limit::PROCESSES_SLACK);
            bounds.push((Resource::Nproc, bound));
        }
        JailRung::Landlock => {}
    }
    for (resource, wanted) in bounds {
        // What was lower already stays lower.
        let before = rustix::process::getrlimit(resource).maximum;
        let bound = before.map_or(wanted, |before| before.min(wanted));
        let limit = Rlimit {
            current: Some(bound),
            maximum: Some(bound),
        };
        rustix::process::setrlimit(resource, limit)
            .map_err(|error| format!("{resource:?}: {error}"))?;
        if rustix::process::getrlimit(resource) != limit {
            return Err(format!("{resource:?} was not taken"));
        }
    }
    Ok(())
}

fn local_sockets_are_denied() -> Result<(), String> {
    match UnixDatagram::unbound() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Ok(_) => Err("a local socket could still be made".to_owned()),
        Err(error) => Err(format!("making a local socket failed otherwise: {error}")),
    }
}

fn internet_is_denied() -> Result<(), String> {
    match std::net::UdpSocket::bind("127.0.0.1:0") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Ok(_) => Err("an internet socket could still be made".to_owned()),
        Err(error) => Err(format!(
            "making an internet socket failed otherwise: {error}"
        )),
    }
}

/// With a network of its own: that no address beyond it has a route. Without: that no
/// packet and no listener can be made.
fn outside_is_denied(rung: JailRung) -> Result<(), String> {
    match rung {
        JailRung::Namespaces => {
            // Nothing is sent: the kernel only looks for a way.
            let socket = std::net::UdpSocket::bind("0.0.0.0:0")
                .map_err(|error| format!("making an internet socket failed: {error}"))?;
            match socket.connect("192.0.2.1:53") {
                Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => Ok(()),
                Ok(()) => Err("there still is a way out".to_owned()),
                Err(error) => Err(format!("looking for a way out failed otherwise: {error}")),
            }
        }
        JailRung::Landlock => {
            internet_is_denied().and_then(|()| match TcpListener::bind("127.0.0.1:0") {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                Ok(_) => Err("a listener could still be made".to_owned()),
                Err(error) => Err(format!("making a listener failed otherwise: {error}")),
            })
        }
    }
}

/// Executes the command in place of this process; why not, if it could not.
fn execute(order: &JailOrder, streams: &[OwnedFd; STREAMS]) -> String {
    let Some((program, arguments)) = order.command.split_first() else {
        return "the command is empty".to_owned();
    };
    let copies: io::Result<Vec<OwnedFd>> = streams.iter().map(OwnedFd::try_clone).collect();
    let copies = copies.map(<[OwnedFd; STREAMS]>::try_from);
    let Ok(Ok([input, output, error])) = copies else {
        return "could not hand the streams over".to_owned();
    };
    let error = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&order.environment)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(error))
        .exec();
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; if it needs files outside the system folders, declare them in `read`"
        }
        _ => "",
    };
    format!("could not execute `{program}`: {error}{hint}")
}
