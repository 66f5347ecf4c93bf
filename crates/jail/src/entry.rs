//! What `main` begins with: whether this process is the supervisor of a child.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use sandbox::walls::system;

use crate::role;
use crate::supervisor;

/// The exit code of a process that could not play its part at all.
const UNFIT: u8 = 64;

/// Must be among the first things `main` does, before any thread exists. If this process
/// was started to be a supervisor it is one now, and this is its exit code when it is over;
/// otherwise nothing has happened.
pub fn jail_main() -> Option<ExitCode> {
    let is_known = role::of_arguments(std::env::args_os().skip(1))?;
    // There is nowhere to print to.
    std::panic::set_hook(Box::new(|_| {}));
    let played = match is_known {
        true => control().and_then(supervisor::supervise),
        false => Err(io::Error::other("not a part of this version")),
    };
    Some(match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(UNFIT),
    })
}

/// The socket to the process that started this one. It is standard input, which no copy of
/// this process may keep; this copy of it is closed when something else is executed.
fn control() -> io::Result<UnixStream> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    system::close_standard_input()?;
    Ok(control)
}
