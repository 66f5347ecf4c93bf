//! The part this program plays when it is started again for a child: the supervisor,
//! which outlives the child and ends what the child leaves behind.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use sandbox::pool::WorkerProgram;

/// The first argument of a process that plays the part.
const MARKER: &str = "__ringfence-jail";

/// The version of what parent and supervisor tell each other: the file of this program may be replaced
/// while it runs.
const VERSION: &str = "2";

/// What the process is called, in lists of processes.
const NAME: &str = "ringfence-supervisor";

/// Whether this process was started to be a supervisor. `None` if not; `Some(false)` if it
/// was, but of another version.
pub(crate) fn of_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<bool> {
    if arguments.next()? != MARKER {
        return None;
    }
    Some(arguments.next().is_some_and(|version| version == VERSION))
}

/// Starts this program again as a supervisor, with `control` as its only descriptor.
pub(crate) fn start_supervisor(program: &WorkerProgram, control: OwnedFd) -> io::Result<Child> {
    let (path, added) = match program {
        // The file this process was started from, even if it was replaced since.
        WorkerProgram::ThisProgram => (PathBuf::from("/proc/self/exe"), [].as_slice()),
        WorkerProgram::Other(path, added) => (path.clone(), added.as_slice()),
    };
    Command::new(path)
        .arg0(NAME)
        .args([MARKER, VERSION])
        .args(added)
        .env_clear()
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
