//! Who reaps: the child, and every orphan that comes to this process. It is waited for in the
//! kernel, so an idle child costs nothing.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};

use crate::message::JailExit;

/// What there is to say about a child.
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

/// The end of a child, and the end of all; readable when there is one to take.
#[derive(Debug)]
pub(crate) struct Ends {
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A thread that waits for every process that comes to this one.
    Thread(PipeReader),
    /// The child alone.
    Handle {
        child: Pid,
        handle: OwnedFd,
        has_ended: bool,
    },
}

impl Ends {
    /// Of a child whose descendants may come to this process: a thread reaps them.
    pub(crate) fn of_tree(child: Pid) -> io::Result<Ends> {
        let (reader, writer) = io::pipe()?;
        thread::Builder::new()
            .name("jail-reaper".to_owned())
            .spawn(move || reap(child, writer))?;
        let source = Source::Thread(reader);
        Ok(Ends { source })
    }

    /// Of the first process of a namespace, from which no other comes to this process.
    pub(crate) fn of_namespace(child: Pid) -> io::Result<Ends> {
        match rustix::process::pidfd_open(child, PidfdFlags::empty()) {
            Ok(handle) => Ok(Ends {
                source: Source::Handle {
                    child,
                    handle,
                    has_ended: false,
                },
            }),
            // The kernel may not have it.
            Err(_) => Ends::of_tree(child),
        }
    }

    /// The next end; waits for it.
    pub(crate) fn next(&mut self) -> End {
        match &mut self.source {
            Source::Thread(reader) => {
                let mut record = [0; 5];
                match reader.read_exact(&mut record) {
                    Ok(()) => End::from_record(record),
                    // The thread ends only after it has said that nothing is left.
                    Err(_) => End::NoneLeft,
                }
            }
            Source::Handle {
                child, has_ended, ..
            } => {
                let end = match *has_ended {
                    true => End::NoneLeft,
                    false => wait_for(*child),
                };
                *has_ended = true;
                if end == End::NoneLeft {
                    reap_rest();
                }
                end
            }
        }
    }
}

impl AsFd for Ends {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.source {
            Source::Thread(reader) => reader.as_fd(),
            // Stays readable after the end.
            Source::Handle { handle, .. } => handle.as_fd(),
        }
    }
}

/// Reaps all that comes to this process until `child` has ended, and says how.
pub(crate) fn reap_until(child: Pid) -> End {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return End::of(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return End::NoneLeft,
        }
    }
}

fn wait_for(child: Pid) -> End {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return End::of(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return End::NoneLeft,
        }
    }
}

/// What else this process has started was killed before.
fn reap_rest() {
    while let Ok(_) | Err(Errno::INTR) = rustix::process::wait(WaitOptions::empty()) {}
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
