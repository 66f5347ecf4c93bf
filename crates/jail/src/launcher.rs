//! The launcher: puts up the walls around itself, one by one, tries each, and
//! becomes the child. What it says goes to the supervisor on a socket that closes
//! when the child is executed.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit};
use sandbox::walls::process;

use crate::file_wall;
use crate::limit;
use crate::line::{self, STREAMS};
use crate::message::{JailOrder, JailReport};
use crate::process_tree;
use crate::seccomp;
use crate::settings::{JailLimits, JailNetwork};
use crate::wall::{self, JailLayer, Wall};

/// When memory runs out the kernel takes the child before its parent.
const OOM_SCORE: &str = "800";

/// Becomes the child. Returns only if it could not, after it has said why.
pub(crate) fn launch(control: &UnixStream, supervisor: u32) -> io::Result<()> {
    let (order, streams) = line::receive_order(control)?;
    let reason = match fence(&order, supervisor) {
        Err(reason) => reason,
        Ok(walls) => {
            let refusal = wall::refusal(&walls).filter(|_| !order.accept_missing);
            line::send(control, &JailReport::Walls(walls))?;
            match refusal {
                Some(refusal) => refusal,
                None => execute(&order, streams),
            }
        }
    };
    let reason = reason.chars().take(limit::REASON_CHARS_MAX).collect();
    line::send(control, &JailReport::Refused(reason))
}

/// Every wall, in the one order that works: what needs files or privileges comes before
/// Landlock and the loss of capabilities, the filter of system calls comes last.
fn fence(order: &JailOrder, supervisor: u32) -> Result<Vec<Wall>, String> {
    let mut walls = vec![
        Wall::new(JailLayer::Descriptors, process::close_on_exec()),
        Wall::new(JailLayer::Session, process::own_session()),
        Wall::new(JailLayer::Rlimits, set_rlimits(&order.limits)),
        Wall::new(JailLayer::Capabilities, process::drop_all_capabilities()),
        Wall::new(JailLayer::NoNewPrivileges, process::renounce_privileges()),
        // After the capabilities, because the kernel forgets this on some changes of them.
        Wall::new(JailLayer::ParentDeath, process::die_with(supervisor)),
    ];
    // Without it the order is the kernel's own, which is no breach.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    let folder = order.folder.display();
    std::env::set_current_dir(&order.folder)
        .map_err(|error| format!("could not enter the folder `{folder}`: {error}"))?;
    let (files, signals) = file_wall::restrict(&order.rules, order.network)?;
    walls.push(Wall::new(JailLayer::Files, files));
    walls.push(Wall::new(JailLayer::Signals, signals));
    let calls = seccomp::deny(order.network).and_then(|()| local_sockets_are_denied());
    if order.network == JailNetwork::None {
        let network = calls.clone().and_then(|()| internet_is_denied());
        walls.push(Wall::new(JailLayer::Network, network));
    }
    walls.push(Wall::new(JailLayer::SystemCalls, calls));
    walls.sort_by_key(|wall| wall.layer);
    Ok(walls)
}

/// Bounds that every process of the child inherits and none can raise.
fn set_rlimits(limits: &JailLimits) -> Result<(), String> {
    let mut bounds = vec![
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
    ];
    bounds.extend(limits.cpu_seconds.map(|seconds| (Resource::Cpu, seconds)));
    if !rustix::process::getuid().is_root() {
        // The kernel counts every process of the user here, so this is only the last
        // resort against a flood; the supervisor counts the child's own.
        let others = process_tree::user_count();
        let bound = others
            .saturating_add(limits.processes)
            .saturating_add(limit::PROCESSES_SLACK);
        bounds.push((Resource::Nproc, bound));
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

/// Executes the command in place of this process; why not, if it could not.
fn execute(order: &JailOrder, streams: [OwnedFd; STREAMS]) -> String {
    let Some((program, arguments)) = order.command.split_first() else {
        return "the command is empty".to_owned();
    };
    let [input, output, error] = streams;
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
