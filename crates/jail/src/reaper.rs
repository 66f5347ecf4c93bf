//! The thread that reaps: the child, and every orphan that comes to this process. It waits
//! in the kernel, so an idle child costs nothing.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::message::JailExit;

/// What the reaping thread has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    /// No child is left, and so no descendant.
    NoneLeft,
}

impl End {
    pub(crate) fn to_exit(self) -> JailExit {
        match self {
            End::Code(code) => JailExit::Code(code),
            End::Signal(signal) => JailExit::Signal(signal),
            End::NoneLeft => JailExit::Unknown("nothing was left to wait for".to_owned()),
        }
    }

    fn to_record(self) -> [u8; 5] {
        let (kind, number) = match self {
            End::Code(code) => (0, code),
            End::Signal(signal) => (1, signal),
            End::NoneLeft => (2, 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    fn from_record([kind, a, b, c, d]: [u8; 5]) -> End {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => End::Code(number),
            1 => End::Signal(number),
            _ => End::NoneLeft,
        }
    }

    fn of(status: WaitStatus) -> End {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => End::Code(code),
            (None, Some(signal)) => End::Signal(signal),
            (None, None) => End::Code(0),
        }
    }
}

/// Starts the thread; the end of `child` and the end of all come out of the pipe.
pub(crate) fn watch_ends(child: Pid) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    thread::Builder::new()
        .name("jail-reaper".to_owned())
        .spawn(move || reap(child, writer))?;
    Ok(reader)
}

/// The next end; waits for it.
pub(crate) fn next_end(ends: &mut PipeReader) -> End {
    let mut record = [0; 5];
    match ends.read_exact(&mut record) {
        Ok(()) => End::from_record(record),
        // The thread ends only after it has said that nothing is left.
        Err(_) => End::NoneLeft,
    }
}

fn reap(child: Pid, mut ends: PipeWriter) {
    loop {
        let end = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => End::of(status),
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => End::NoneLeft,
        };
        if ends.write_all(&end.to_record()).is_err() || end == End::NoneLeft {
            return;
        }
    }
}
