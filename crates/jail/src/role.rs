//! The two parts this program plays when it is started again for a child: the
//! supervisor, which outlives the child and ends what the child leaves behind, and
//! the launcher, which puts up the walls and becomes the child.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use sandbox::pool::WorkerProgram;

/// The first argument of a process that plays one of the parts.
const MARKER: &str = "__ringfence-jail";

/// The version of what the parts tell each other: the file of this program may be replaced
/// while it runs.
const VERSION: &str = "1";

/// Which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JailRole {
    Supervisor,
    Launcher,
}

impl JailRole {
    fn name(self) -> &'static str {
        match self {
            JailRole::Supervisor => "ringfence-supervisor",
            JailRole::Launcher => "ringfence-launcher",
        }
    }
}

/// The part this process was started to play, and the process that started it. `None` if
/// it plays none; `Some(None)` if it does, but of another version.
pub(crate) fn of_arguments(
    mut arguments: impl Iterator<Item = OsString>,
) -> Option<Option<(JailRole, u32)>> {
    if arguments.next()? != MARKER {
        return None;
    }
    let mut next = || arguments.next()?.into_string().ok();
    let parsed = (|| {
        (next()? == VERSION).then_some(())?;
        let name = next()?;
        let role = [JailRole::Supervisor, JailRole::Launcher]
            .into_iter()
            .find(|role| role.name() == name)?;
        Some((role, next()?.parse().ok()?))
    })();
    Some(parsed)
}

/// Starts this program again to play `role`, with `control` as its only descriptor.
pub(crate) fn start(
    role: JailRole,
    program: &WorkerProgram,
    control: OwnedFd,
) -> io::Result<Child> {
    let (path, added) = match program {
        // The file this process was started from, even if it was replaced since.
        WorkerProgram::ThisProgram => (PathBuf::from("/proc/self/exe"), [].as_slice()),
        WorkerProgram::Other(path, added) => (path.clone(), added.as_slice()),
    };
    Command::new(path)
        .arg0(role.name())
        .args([MARKER, VERSION, role.name()])
        .arg(std::process::id().to_string())
        .args(added)
        .env_clear()
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
