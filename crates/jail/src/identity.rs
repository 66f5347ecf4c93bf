//! Who a child is when its parent is root: a user of its own, from a range that nothing
//! else uses. Root without capabilities still owns the files of root, so a child never
//! is root.
//!
//! What the child is given belongs to others. With namespaces it sees the owner of each
//! given folder as itself (`Owners`). Without, its own folders are handed over on the
//! disk, and declared ones are as open to it as to any other user.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::process::{DumpableBehavior, Gid, Pid, Signal, Uid};
use rustix::thread::CapabilitySet;
use sandbox::walls::system;

use crate::file_rule::{FileRight, FileRule};
use crate::limit;

/// Whether `user` is one that children run as.
pub(crate) fn is_child_user(user: u32) -> bool {
    user.checked_sub(limit::USER_FIRST)
        .is_some_and(|place| place < limit::USERS_MAX)
}

/// Whether a folder belongs to one of them.
pub(crate) fn is_of_child(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| is_child_user(found.uid()))
}

/// The user a child runs as. Its group has the same number.
#[derive(Debug)]
pub(crate) struct ChildIdentity {
    pub(crate) user: u32,
    /// Held while the child runs, so that no other child of this machine gets the number.
    claim: Option<UnixListener>,
}

impl ChildIdentity {
    /// A user no other child has; `None` if this process is an ordinary user, which its
    /// children then are, too.
    pub(crate) fn claim() -> Result<Option<ChildIdentity>, String> {
        if !rustix::process::getuid().is_root() {
            return Ok(None);
        }
        let held = rustix::thread::capabilities(None).map_err(|error| error.to_string())?;
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
        if !held.effective.contains(needed) {
            return Err(
                "root without the capabilities SETUID, SETGID and KILL cannot make another user of a child; \
                 run Ringfence as an ordinary user"
                    .to_owned(),
            );
        }
        // Begun at different places, two servers seldom meet.
        let start = std::process::id() % limit::USERS_MAX;
        for step in 0..limit::USERS_MAX {
            let user = limit::USER_FIRST + (start + step) % limit::USERS_MAX;
            // The name of a socket is held by the process and gone with it.
            let name = format!("ringfence-child-user-{user}");
            let claim = SocketAddr::from_abstract_name(name)
                .and_then(|name| UnixListener::bind_addr(&name));
            match claim {
                Ok(claim) => {
                    return Ok(Some(ChildIdentity {
                        user,
                        claim: Some(claim),
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(format!("could not claim a user number: {error}")),
            }
        }
        let count = limit::USERS_MAX;
        Err(format!("all {count} users for children are taken"))
    }

    /// The user that owns the child's folder already: children of one workspace share it,
    /// where owners are on the disk.
    pub(crate) fn of_folder(self, folder: &Path) -> ChildIdentity {
        match fs::symlink_metadata(folder) {
            Ok(found) if is_child_user(found.uid()) => ChildIdentity {
                user: found.uid(),
                claim: self.claim.filter(|_| found.uid() == self.user),
            },
            Ok(_) | Err(_) => self,
        }
    }

    /// Has no more groups than its own, as every process it starts.
    pub(crate) fn leave_groups() -> Result<(), String> {
        rustix::thread::set_thread_groups(&[])
            .map_err(|error| format!("could not leave the groups of root: {error}"))
    }

    /// Makes the user known in the user namespace of a process, and no other.
    pub(crate) fn map_in(&self, pid: Pid) -> Result<(), String> {
        let own = (self.user, self.user);
        fs::write(format!("/proc/{pid}/setgroups"), "deny")
            .and_then(|()| map_users(pid, own, own))
            .map_err(|error| format!("the users of a user namespace were refused: {error}"))
    }

    /// Becomes the user, for good. The groups were left before.
    pub(crate) fn enter(&self) -> Result<(), String> {
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.user));
        let changed = rustix::thread::set_thread_res_gid(group, group, group)
            .and_then(|()| rustix::thread::set_thread_res_uid(user, user, user));
        changed.map_err(|error| format!("could not become user {}: {error}", self.user))?;
        if rustix::process::getuid() != user
            || rustix::process::geteuid() != user
            || rustix::process::getgid() != group
            || rustix::thread::set_thread_uid(Uid::ROOT).is_ok()
        {
            return Err("the kernel did not take the user".to_owned());
        }
        // Otherwise the process's own files below `/proc` stay root's.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)
            .map_err(|error| error.to_string())
    }
}

/// Whether the user this process is now reaches what it was given.
pub(crate) fn check_reach(own: &[PathBuf], declared: &[FileRule]) -> Result<(), String> {
    let user = rustix::process::getuid().as_raw();
    for path in own {
        if rustix::fs::access(path, Access::WRITE_OK).is_err() {
            return Err(format!(
                "the program runs as user {user}, who cannot reach `{}`: a folder above it is closed to other users; \
                 keep Ringfence's folder elsewhere, or run Ringfence as an ordinary user",
                path.display()
            ));
        }
    }
    for rule in declared {
        let needed = match rule.right {
            FileRight::Read | FileRight::Execute => Access::READ_OK,
            FileRight::Device | FileRight::Write => Access::READ_OK | Access::WRITE_OK,
        };
        if rustix::fs::access(&rule.path, needed).is_err() {
            return Err(format!(
                "the program runs as user {user}, who cannot use `{}`; open it to that user or to others, \
                 or run Ringfence as an ordinary user",
                rule.path.display()
            ));
        }
    }
    Ok(())
}

/// Makes `user` the owner of a folder and all in it, without following links.
pub(crate) fn hand(folder: &Path, user: u32) -> Result<(), String> {
    let mut entries = 0_usize;
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        entries += 1;
        if entries > limit::HANDED_ENTRIES_MAX {
            return Err(format!(
                "`{}` has more than {} files; remove some, or run Ringfence as an ordinary user",
                folder.display(),
                limit::HANDED_ENTRIES_MAX
            ));
        }
        let failed =
            |error: io::Error| format!("could not hand over `{}`: {error}", path.display());
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            // Another child of the workspace removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        // Attack: a second name of someone else's file. A child cannot make one, but what
        // has one stays as it is.
        let is_shared = !found.is_dir() && found.nlink() > 1;
        if (found.uid() != user || found.gid() != user) && !is_shared {
            lchown(&path, Some(user), Some(user)).map_err(failed)?;
        }
        if found.is_dir() {
            let inner = fs::read_dir(&path).map_err(failed)?;
            open.extend(inner.flatten().map(|entry| entry.path()));
        }
    }
    Ok(())
}

/// User namespaces through which a child sees owners of files as itself, one for each owner.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    known: BTreeMap<(u32, u32), OwnedFd>,
}

impl Owners {
    /// Shows the files of one mount that belong to the owner of its root as `user`'s.
    pub(crate) fn show(&mut self, tree: &OwnedFd, user: u32) -> io::Result<()> {
        let found = rustix::fs::fstat(tree)?;
        let owner = (found.st_uid, found.st_gid);
        let users = match self.known.entry(owner) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(user_namespace(owner, user)?),
        };
        system::set_mount_users(tree.as_fd(), users.as_fd())
    }
}

/// A user namespace that maps an owner on the disk to a user of the system.
fn user_namespace((owner, group): (u32, u32), user: u32) -> io::Result<OwnedFd> {
    // A namespace without a process is gone, so there is one until it is open.
    let pid = system::start_user_namespace()?;
    let opened = map_users(pid, (owner, user), (group, user))
        .and_then(|()| fs::File::open(format!("/proc/{pid}/ns/user")));
    // Reaped with everything that ends below this process.
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    opened.map(OwnedFd::from)
}

/// Says who the users and groups of a process's user namespace are outside of it.
fn map_users(pid: Pid, users: (u32, u32), groups: (u32, u32)) -> io::Result<()> {
    for (file, (inside, outside)) in [("uid_map", users), ("gid_map", groups)] {
        fs::write(
            format!("/proc/{pid}/{file}"),
            format!("{inside} {outside} 1"),
        )?;
    }
    Ok(())
}
