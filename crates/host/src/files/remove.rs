//! Removing a folder that a program filled. It may have left folders that their owner may not
//! enter, and so may the kernel: an overlay keeps one in its folder for work. Root enters them
//! all the same; an ordinary user must give himself the right first.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, chmod, fstat, openat};
use rustix::io::Errno;

use crate::files::limit;

/// Removes a folder with all in it, links not followed. Blocks on the disk.
///
/// Fails if something in it is another user's, or if it is too large to look for the folders
/// that may not be entered.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(path)?;
            fs::remove_dir_all(path)
        }
        ended => ended,
    }
}

/// Gives the owner every right to a folder and those in it.
fn open_folders(path: &Path) -> io::Result<()> {
    let mut entries = 0_usize;
    // Handles instead of paths, and a list instead of recursion: depth is bounded, and so
    // are the handles.
    let mut open = vec![open_folder(CWD, path)?];
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.read() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        entries += 1;
        if entries > limit::REMOVE_ENTRIES_MAX {
            return Err(io::Error::other("it has too many files and folders"));
        }
        let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        let is_dots = [&b"."[..], b".."].contains(&entry.file_name().to_bytes());
        if !may_be_folder || is_dots {
            continue;
        }
        let inside = match open_folder(folder.fd()?, entry.file_name()) {
            Ok(inside) => inside,
            // It is no folder, or none any more.
            Err(error) if is_no_folder(&error) => continue,
            Err(error) => return Err(error),
        };
        if open.len() > limit::WALK_DEPTH_MAX {
            return Err(io::Error::other("its folders are too deep in each other"));
        }
        open.push(inside);
    }
    Ok(())
}

/// Opens a folder, after its owner got every right to it.
fn open_folder(parent: impl AsFd, name: impl rustix::path::Arg) -> io::Result<Dir> {
    // Attack: a folder that became a link, so that another one is opened to its owner. The
    // handle is made without following, and the right is set by the handle.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle: OwnedFd = openat(parent, name, flags, Mode::empty())?;
    if !Mode::from_raw_mode(fstat(&handle)?.st_mode).contains(Mode::RWXU) {
        // The kernel sets no mode on a handle of this kind, but by its name in `/proc` it does.
        chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Dir::new(openat(&handle, ".", flags, Mode::empty())?)?)
}

fn is_no_folder(error: &io::Error) -> bool {
    let is_link = Errno::from_io_error(error) == Some(Errno::LOOP);
    let is_other = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    );
    is_link || is_other
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Root may enter them all the same, so what is given is looked at instead of what is
    /// removed.
    #[test]
    fn folders_are_opened_to_their_owner_and_links_are_not_followed() {
        let name = format!("ringfence-remove-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let (tree, aside) = (root.join("tree"), root.join("aside"));
        for folder in [&tree.join("work/work/deep"), &aside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(tree.join("work/file"), "x").unwrap();
        set_mode(&tree.join("work/file"), 0o400);
        symlink(&aside, tree.join("work/link")).unwrap();
        set_mode(&tree.join("work/work/deep"), 0o000);
        set_mode(&tree.join("work/work"), 0o000);
        set_mode(&tree, 0o500);
        set_mode(&aside, 0o500);
        open_folders(&tree).unwrap();
        for folder in ["", "work/work", "work/work/deep"] {
            assert_eq!(mode(&tree.join(folder)), 0o700, "{folder}");
        }
        assert_eq!(
            (mode(&tree.join("work/file")), mode(&aside)),
            (0o400, 0o500)
        );
        remove_folder(&tree).unwrap();
        assert!(!tree.exists() && aside.exists());
        let gone = remove_folder(&tree).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        // A link in the place of the folder itself.
        symlink(&aside, &tree).unwrap();
        assert!(open_folders(&tree).is_err());
        assert_eq!(mode(&aside), 0o500);
        fs::remove_dir_all(&root).unwrap();
    }
}
