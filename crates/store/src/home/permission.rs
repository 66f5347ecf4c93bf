//! Refuses a home whose settings, rules, tools or store other users can write: they
//! could allow themselves anything.
//!
//! A file inside the home is a problem only for users who can enter the home: on
//! systems where new files are group-writable, a home of mode 0700 is still safe.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::{OtherUsers, StoreError};
use crate::home::settings::{CONFIG_FILE, RULES_FOLDER};

/// Bits that let the group or all users write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Bits that let the group or all users enter a folder.
const ENTERED_BY_OTHERS: u32 = 0o011;

/// What must be protected, relative to the home; the empty name is the home itself.
const OBEYED: [&str; 7] = [
    "",
    CONFIG_FILE,
    RULES_FOLDER,
    "tools",
    "audit",
    "locks",
    "ringfence.db",
];

/// Refuses a home that other users can write to.
pub(crate) fn check(home: &Path) -> Result<(), StoreError> {
    let user = rustix::process::geteuid().as_raw();
    // For the home itself, both group and others count.
    let mut classes = WRITABLE_BY_OTHERS;
    for name in OBEYED {
        let path = match name {
            "" => home.to_owned(),
            name => home.join(name),
        };
        // Follows links: what counts is who can write to the file that is obeyed.
        let about = match fs::metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::file("look at", &path, error)),
        };
        // Root can write everywhere anyway.
        let who = match (about.uid(), about.mode() & classes) {
            (owner, _) if owner != user && owner != 0 => Some(OtherUsers::Owner(owner)),
            (_, 0) => None,
            (_, _) => Some(OtherUsers::Anyone),
        };
        if let Some(who) = who {
            return Err(StoreError::Writable { path, who });
        }
        if name.is_empty() {
            // Shifts each class's bit to enter to the place of its bit to write.
            classes = (about.mode() & ENTERED_BY_OTHERS) << 1;
        }
    }
    Ok(())
}
