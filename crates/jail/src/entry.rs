//! What `main` begins with: whether this process is one of the two around a child.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use crate::role::{self, JailRole};
use crate::{launcher, supervisor};

/// The exit code of a process that could not play its part at all.
const UNFIT: u8 = 64;

/// Must be among the first things `main` does, before any thread exists. If this process
/// was started to be a supervisor or a launcher it is one now, and this is its exit code when
/// it is over; otherwise nothing has happened.
pub fn jail_main() -> Option<ExitCode> {
    let part = role::of_arguments(std::env::args_os().skip(1))?;
    // There is nowhere to print to.
    std::panic::set_hook(Box::new(|_| {}));
    let played = match part {
        Some((JailRole::Supervisor, _)) => control().and_then(supervisor::supervise),
        Some((JailRole::Launcher, parent)) => {
            control().and_then(|control| launcher::launch(&control, parent))
        }
        None => Err(io::Error::other("not a part of this version")),
    };
    Some(match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(UNFIT),
    })
}

/// The socket to the process that started this one. It is standard input; the copy is closed
/// when something else is executed, so a child never has it.
fn control() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
