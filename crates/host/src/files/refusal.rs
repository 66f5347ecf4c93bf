//! Why a function of `safety.fs` gives no answer, before it is known which one
//! it was.

use std::io;

use crate::ask::{Fault, FaultKind};
use crate::files::limit;

/// A fault without its helper.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: FaultKind,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What a path is wanted for; a path that leads out is named accordingly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Read,
    Write,
}

impl Refusal {
    /// Policy says no.
    pub(crate) fn security(reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal::new(FaultKind::Security, reason, message)
    }

    /// The arguments make no sense.
    pub(crate) fn invalid(reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal::new(FaultKind::InvalidInput, reason, message)
    }

    /// It was tried, and did not work.
    pub(crate) fn runtime(reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal::new(FaultKind::HelperRuntime, reason, message)
    }

    /// A path that leads out of where it may lead.
    pub(crate) fn escape(purpose: Purpose, path: &str) -> Refusal {
        let path = shown(path);
        match purpose {
            Purpose::Read => {
                Refusal::security("path-escapes-base", format!("path escapes base: {path}"))
            }
            Purpose::Write => Refusal::security(
                "write-outside-workspace",
                format!("write outside workspace: {path}"),
            ),
        }
    }

    /// A pipe, a socket or a device.
    pub(crate) fn not_regular(path: &str) -> Refusal {
        let message = format!("not a regular file: {}", shown(path));
        Refusal::security("not-a-regular-file", message)
    }

    /// What the system said about a path.
    pub(crate) fn io(purpose: Purpose, path: &str, error: &io::Error) -> Refusal {
        if leads_out(error) {
            return Refusal::escape(purpose, path);
        }
        let what = match error.kind() {
            io::ErrorKind::NotFound => "no such file or folder",
            io::ErrorKind::PermissionDenied => "the system refuses access",
            io::ErrorKind::IsADirectory => "is a folder",
            io::ErrorKind::NotADirectory => "not a folder",
            io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
            io::ErrorKind::StorageFull => "the disk is full",
            io::ErrorKind::QuotaExceeded => "the quota is used up",
            io::ErrorKind::FileTooLarge => "the system allows no file of this size",
            io::ErrorKind::DirectoryNotEmpty => "the folder is not empty",
            // `FilesystemLoop` has no stable name; neither have many others.
            _ => "input or output failed",
        };
        Refusal::runtime("io", format!("{what}: {}", shown(path)))
    }

    /// The file is larger than is ever read or written.
    pub(crate) fn too_large(path: &str, bytes_max: u64) -> Refusal {
        let message = format!("more than {bytes_max} bytes: {}", shown(path));
        Refusal::runtime("file-too-large", message)
    }

    /// As the script sees it. A refusal by policy names the whole of
    /// `safety.fs`, any other the function, as the reference does.
    pub(crate) fn into_fault(self, function: &str) -> Fault {
        let helper = match self.kind {
            FaultKind::Security => "safety.fs".to_owned(),
            FaultKind::InvalidInput | FaultKind::HelperRuntime => format!("safety.fs.{function}"),
        };
        Fault::new(self.kind, self.reason, &helper, self.message)
    }

    fn new(kind: FaultKind, reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            kind,
            reason,
            message: message.into(),
        }
    }
}

/// Whether a path led out of its root: what `cap-std` says about it has no
/// number of the system's, while a plain lack of permission has one.
pub(crate) fn leads_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// A path as it may stand in a message or an event: whole, because it is not masked
/// yet and half a secret would be no secret any more. Of what is longer than any
/// path, the length.
pub(crate) fn shown(path: &str) -> String {
    match path.len() <= limit::PATH_BYTES_MAX {
        true => path.to_owned(),
        false => format!("(a path of {} bytes)", path.len()),
    }
}
