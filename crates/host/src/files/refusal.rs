//! Why a function of `safety.fs` gives no answer, before it is known which one
//! it was.

use std::io;

use crate::files::limit;
use crate::message::{FaultKind, PowerFault};

/// A fault without its helper.
#[derive(Debug)]
pub(crate) struct PathRefusal {
    pub(crate) kind: FaultKind,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What a path is wanted for; a path that leads out is named accordingly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathPurpose {
    Read,
    Write,
}

impl PathRefusal {
    /// Policy says no.
    pub(crate) fn security(reason: &'static str, message: impl Into<String>) -> PathRefusal {
        PathRefusal::new(FaultKind::Security, reason, message)
    }

    /// It is what no tool changes.
    pub(crate) fn protected(what: &str, path: &str) -> PathRefusal {
        let message = format!("no tool changes {what}: {}", shown(path));
        PathRefusal::security("path-protected", message)
    }

    /// The arguments make no sense.
    pub(crate) fn invalid(reason: &'static str, message: impl Into<String>) -> PathRefusal {
        PathRefusal::new(FaultKind::InvalidInput, reason, message)
    }

    /// It was tried, and did not work.
    pub(crate) fn runtime(reason: &'static str, message: impl Into<String>) -> PathRefusal {
        PathRefusal::new(FaultKind::HelperRuntime, reason, message)
    }

    /// A path that leads out of where it may lead.
    pub(crate) fn escape(purpose: PathPurpose, path: &str) -> PathRefusal {
        let path = shown(path);
        match purpose {
            PathPurpose::Read => {
                PathRefusal::security("path-escapes-base", format!("path escapes base: {path}"))
            }
            PathPurpose::Write => PathRefusal::security(
                "write-outside-workspace",
                format!("write outside workspace: {path}"),
            ),
        }
    }

    /// A pipe, a socket or a device.
    pub(crate) fn not_regular(path: &str) -> PathRefusal {
        let message = format!("not a regular file: {}", shown(path));
        PathRefusal::security("not-a-regular-file", message)
    }

    /// What the system said about a path.
    pub(crate) fn io(purpose: PathPurpose, path: &str, error: &io::Error) -> PathRefusal {
        if leads_out(error) {
            return PathRefusal::escape(purpose, path);
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
        PathRefusal::runtime("io", format!("{what}: {}", shown(path)))
    }

    /// The file is larger than is ever read or written.
    pub(crate) fn too_large(path: &str, bytes_max: u64) -> PathRefusal {
        let message = format!("more than {bytes_max} bytes: {}", shown(path));
        PathRefusal::runtime("file-too-large", message)
    }

    /// As the script sees it. A refusal by policy names the whole of
    /// `safety.fs`, any other the function, as the reference does.
    pub(crate) fn into_fault(self, function: &str) -> PowerFault {
        let helper = match self.kind {
            FaultKind::Security => "safety.fs".to_owned(),
            FaultKind::InvalidInput | FaultKind::HelperRuntime => format!("safety.fs.{function}"),
        };
        PowerFault::new(self.kind, self.reason, &helper, self.message)
    }

    fn new(kind: FaultKind, reason: &'static str, message: impl Into<String>) -> PathRefusal {
        PathRefusal {
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
