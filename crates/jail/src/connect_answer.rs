//! The lower rung's network: every `connect` of the child is answered here, with a
//! connection to the parent in the place of the child's socket.
//!
//! The address that the child named is not looked at, so there is nothing to check and
//! nothing that could change after a check. If this process ends, `connect` fails.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread;

use rustix::fs::OFlags;
use sandbox::walls::system::{self, HeldCall};

use crate::line;

/// Answers every `connect` that comes through `listener`, in a thread of its own, until no
/// process of the child is left. `user` owns the child's processes.
pub(crate) fn answer_connects(listener: OwnedFd, door: OwnedFd, user: u32) -> io::Result<()> {
    thread::Builder::new()
        .name("jail-connect".to_owned())
        .spawn(move || {
            // An error of the listener itself means that no process uses the filter any more.
            while let Ok(call) = next_call(&listener) {
                let outcome = connect(&listener, &door, &call, user);
                // The process may have been killed while it waited.
                let _ = system::answer_held_call(listener.as_fd(), call.id, outcome);
            }
        })
        .map(drop)
}

fn next_call(listener: &OwnedFd) -> io::Result<HeldCall> {
    loop {
        match system::take_held_call(listener.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The process was killed between the wake-up and the question.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && !is_over(listener) => {}
            answer => return answer,
        }
    }
}

/// Whether no process is left that could ask.
fn is_over(listener: &OwnedFd) -> bool {
    let mut set = [rustix::event::PollFd::new(
        listener,
        rustix::event::PollFlags::IN,
    )];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let _ = rustix::event::poll(&mut set, Some(&now));
    let [state] = &set;
    state.revents().contains(rustix::event::PollFlags::HUP)
}

/// Puts a connection in the place of the child's socket; the error the child gets otherwise.
fn connect(listener: &OwnedFd, door: &OwnedFd, call: &HeldCall, user: u32) -> Result<(), i32> {
    let place = u32::try_from(call.first & 0xffff_ffff).map_err(|_| libc::EBADF)?;
    let flags = system::with_file_user(user, user, || socket_flags(call.pid, place));
    let flags = flags.flatten().ok_or(libc::EBADF)?;
    let (ours, theirs) = pair().map_err(|_| libc::ECONNREFUSED)?;
    if flags.contains(OFlags::NONBLOCK) {
        ours.set_nonblocking(true).map_err(|_| libc::ECONNREFUSED)?;
    }
    // A parent that takes no more has no more to give.
    line::send_descriptor(door, line::STREAM, theirs.as_fd()).map_err(|_| libc::ECONNREFUSED)?;
    system::replace_descriptor(
        listener.as_fd(),
        call.id,
        place,
        &ours,
        flags.contains(OFlags::CLOEXEC),
    )
    .map_err(|_| libc::EPERM)
}

/// The flags of a descriptor of the child, if it is a socket.
fn socket_flags(pid: u32, place: u32) -> Option<OFlags> {
    let kind = fs::read_link(format!("/proc/{pid}/fd/{place}")).ok()?;
    kind.to_str()?.starts_with("socket:").then_some(())?;
    let facts = fs::read_to_string(format!("/proc/{pid}/fdinfo/{place}")).ok()?;
    let flags = facts
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .map(str::trim)?;
    Some(OFlags::from_bits_retain(
        u32::from_str_radix(flags, 8).ok()?,
    ))
}

/// Two ends of one connection on loopback, which no other process can be an end of.
fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let own: SocketAddr = ours.local_addr()?;
    // Attack: a process of this machine that connects first.
    const STRANGERS_MAX: usize = 16;
    for _ in 0..STRANGERS_MAX {
        let (theirs, from) = listener.accept()?;
        if from == own {
            ours.set_nodelay(true)?;
            return Ok((ours, theirs));
        }
    }
    Err(io::Error::other("others connected all the time"))
}
