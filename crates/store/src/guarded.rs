//! Only the owner may write what Ringfence obeys: settings, rules, tools, the store. A
//! home that other users can write is refused, for they could allow themselves anything.
//!
//! What lies in the home counts only for those who can enter it: where new files are
//! writable by the group, as on many systems, a home of mode 0700 is still safe.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::{Others, StoreError};
use crate::settings::{CONFIG_FILE, RULES_FOLDER};

/// Bits that let the group or everybody write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Bits that let the group or everybody enter a folder.
const ENTERED_BY_OTHERS: u32 = 0o011;

/// What is obeyed, below the home; the home itself is the empty name.
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
    // For the home itself, every class counts.
    let mut classes = WRITABLE_BY_OTHERS;
    for name in OBEYED {
        let path = match name {
            "" => home.to_owned(),
            name => home.join(name),
        };
        let about = match fs::metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::file("look at", &path, error)),
        };
        // The super-user can write everywhere anyway.
        let who = match (about.uid(), about.mode() & classes) {
            (owner, _) if owner != user && owner != 0 => Some(Others::Owner(owner)),
            (_, 0) => None,
            (_, _) => Some(Others::Anyone),
        };
        if let Some(who) = who {
            return Err(StoreError::Writable { path, who });
        }
        if name.is_empty() {
            // The write bit of each class stands beside the bit to enter.
            classes = (about.mode() & ENTERED_BY_OTHERS) << 1;
        }
    }
    Ok(())
}
