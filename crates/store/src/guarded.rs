//! Nobody but the owner may write what Ringfence obeys: settings, rules, tools, the
//! store. A home that other users can write is refused, for they could allow
//! themselves anything.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::{Others, StoreError};
use crate::settings::{CONFIG_FILE, RULES_FOLDER};

/// Bits that let the group or everybody write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

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
        let who = match (about.uid(), about.mode() & WRITABLE_BY_OTHERS) {
            (owner, _) if owner != user && owner != 0 => Others::Owner(owner),
            (_, 0) => continue,
            (_, _) => Others::Anyone,
        };
        return Err(StoreError::Writable { path, who });
    }
    Ok(())
}
