//! The root folder of a child with namespaces: a small file system in memory, on which
//! everything given is mounted, and nothing else can be seen.
//!
//! What only the parent's user reaches is opened first, as that user (`open_given`); the
//! rest, and all mounting, is done inside (`enter`).

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use sandbox::walls::system::{
    self, MOUNT_NO_DEVICES, MOUNT_NO_SET_USER, MOUNT_READ_ONLY, OldMount,
};

use crate::file_rule::FileRight;
use crate::identity::{self, ChildIdentity, Owners};
use crate::limit;
use crate::message::JailOrder;
use crate::name_files::NameFiles;
use crate::place::{DEVICES, Place, RootPlan};
use crate::settings::JailOverlay;

/// Folders that exist everywhere, one of which the new root is mounted on while it is built.
const BASES: &[&str] = &["/tmp", "/run", "/mnt", "/usr"];

/// Where programs put what they do not keep.
const TEMPORARY: &str = "/tmp";

/// Where the layers of overlays stand while they are put together.
const LAYERS: &str = ".layers";

/// Mounts that are nowhere yet.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    given: BTreeMap<PathBuf, OwnedFd>,
    /// For each overlay, the folder that holds its changes.
    uppers: Vec<OwnedFd>,
}

impl Trees {
    /// The descriptors of the mounts.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let all = self.given.values().chain(&self.uppers);
        all.map(AsRawFd::as_raw_fd)
    }
}

/// Opens what the parent gives, as root, so that the child's user sees it as its own.
pub(crate) fn open_given(
    plan: &RootPlan,
    order: &JailOrder,
    identity: &ChildIdentity,
) -> Result<Trees, String> {
    let mut trees = Trees::default();
    let mut owners = Owners::default();
    let user = identity.user;
    for (path, place) in &plan.places {
        let tree = match place {
            Place::System | Place::Setting | Place::Hidden => continue,
            Place::Installation => open_tree(path, Depth::All)?,
            Place::Own => {
                give_back(path)?;
                let tree = open_tree(path, Depth::One)?;
                // Some file systems and kernels cannot map owners on a mount. Then the files on
                // the disk become the child's; the next start gives them back.
                if owners.show(&tree, user).is_err() {
                    identity::hand(path, user)?;
                }
                tree
            }
            // Where owners cannot be shown otherwise, the child is one of the others.
            Place::Declared(_) | Place::Overlay(_) => {
                let tree = open_tree(path, Depth::One)?;
                match owners.show(&tree, user) {
                    Ok(()) => tree,
                    Err(_) => open_tree(path, Depth::All)?,
                }
            }
        };
        trees.given.insert(path.clone(), tree);
    }
    for overlay in &order.overlays {
        let folder = holder(overlay)?;
        for path in [&overlay.upper, &overlay.work] {
            give_back(path)?;
        }
        let tree = open_tree(folder, Depth::One)?;
        if owners.show(&tree, user).is_err() {
            identity::hand(&overlay.upper, user)?;
            identity::hand(&overlay.work, user)?;
        }
        trees.uppers.push(tree);
    }
    Ok(trees)
}

/// What a child of an earlier time owns on the disk is root's again.
fn give_back(path: &Path) -> Result<(), String> {
    let found =
        rustix::fs::lstat(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    match identity::is_child_user(found.st_uid) {
        true => identity::hand(path, 0),
        false => Ok(()),
    }
}

fn holder(overlay: &JailOverlay) -> Result<&Path, String> {
    let holder = overlay.upper.parent();
    holder.ok_or_else(|| "changes cannot be kept in the root folder".to_owned())
}

/// Builds the root folder and enters it. Whether there are facts about processes in it,
/// or why not. Everything is done inside new namespaces, by their first process.
pub(crate) fn enter(
    plan: &RootPlan,
    order: &JailOrder,
    trees: Trees,
) -> Result<Result<(), String>, String> {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let parts = open_rest(plan, order, trees)?;
    // Before a folder of the machine is covered: a resolver's file may lie in it.
    let names = NameFiles::read(order.network, Path::new("/etc"));
    // No mount made here reaches the machine, and no later mount of the machine appears here.
    let private = OldMount {
        kind: None,
        flags: libc::MS_REC | libc::MS_PRIVATE,
        options: None,
    };
    system::mount(c"/", private).map_err(said_io("make the mounts private"))?;
    let base = mount_base()?;
    for (path, target) in &plan.links {
        symlink(target, within(&base, path)).map_err(said_io("make a link"))?;
    }
    if !plan.places.contains_key(Path::new(TEMPORARY)) {
        let target = within(&base, Path::new(TEMPORARY));
        fs::create_dir_all(&target).map_err(said_io("make `/tmp`"))?;
        mount_memory(&target, order.limits.temporary_bytes, "1777")?;
    }
    fill(plan, order, parts, &base)?;
    let facts = mount_facts(&base);
    write_settings(&base, &names)?;
    switch(&base)?;
    Ok(facts)
}

/// Everything that is mounted, opened before anything covers it.
struct Parts {
    trees: Trees,
    devices: Vec<(&'static str, OwnedFd)>,
}

fn open_rest(plan: &RootPlan, order: &JailOrder, mut trees: Trees) -> Result<Parts, String> {
    for (path, place) in &plan.places {
        if matches!(place, Place::Setting | Place::Hidden) || trees.given.contains_key(path) {
            continue;
        }
        let real = match place {
            // `/etc/localtime` is a link; what it leads to is what is read.
            Place::System => path
                .canonicalize()
                .map_err(|error| format!("`{}`: {error}", path.display()))?,
            Place::Installation
            | Place::Declared(_)
            | Place::Own
            | Place::Overlay(_)
            | Place::Setting
            | Place::Hidden => path.clone(),
        };
        let tree = open_tree(&real, Depth::All)?;
        trees.given.insert(path.clone(), tree);
    }
    if trees.uppers.is_empty() {
        for overlay in &order.overlays {
            trees.uppers.push(open_tree(holder(overlay)?, Depth::All)?);
        }
    }
    for (path, tree) in &trees.given {
        let attributes = match plan.places.get(path) {
            Some(Place::Own | Place::Declared(FileRight::Write | FileRight::Device)) => {
                MOUNT_NO_SET_USER | MOUNT_NO_DEVICES
            }
            Some(_) | None => MOUNT_READ_ONLY | MOUNT_NO_SET_USER | MOUNT_NO_DEVICES,
        };
        set(tree, attributes).map_err(|error| format!("`{}`: {error}", path.display()))?;
    }
    for upper in &trees.uppers {
        set(upper, MOUNT_NO_SET_USER | MOUNT_NO_DEVICES)
            .map_err(|error| format!("changes: {error}"))?;
    }
    let mut devices = Vec::new();
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        if path.exists() {
            devices.push((*name, open_tree(&path, Depth::All)?));
        }
    }
    Ok(Parts { trees, devices })
}

fn set(tree: &OwnedFd, attributes: u64) -> io::Result<()> {
    system::set_mount_attributes(tree.as_fd(), attributes)
}

/// Whether mounts below come along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// No: owners can be shown otherwise on one mount only.
    One,
    /// Yes: the kernel does not let a namespace uncover what a mount covers.
    All,
}

/// A copy of the mount at `path`, which has no links in it.
fn open_tree(path: &Path, depth: Depth) -> Result<OwnedFd, String> {
    let shown = path.display();
    let opened = rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    );
    // Attack: a child that may write into a folder puts a link in the place of something
    // given there.
    let opened = opened.map_err(|error| match error {
        rustix::io::Errno::LOOP => format!("`{shown}` leads elsewhere now; start again"),
        error => format!("could not open `{shown}`: {error}"),
    })?;
    system::copy_mount(opened.as_fd(), depth == Depth::All)
        .map_err(|error| format!("could not mount `{shown}`: {error}"))
}

fn mount_base() -> Result<PathBuf, String> {
    let base = BASES.iter().map(Path::new).find(|path| path.is_dir());
    let base = base.ok_or("there is no folder to build a root on")?;
    mount_memory(base, limit::ROOT_BYTES_MAX, "0755")?;
    Ok(base.to_path_buf())
}

fn mount_memory(target: &Path, bytes: u64, mode: &str) -> Result<(), String> {
    let options = CString::new(format!("size={bytes},mode={mode}")).unwrap_or_default();
    let memory = OldMount {
        kind: Some(c"tmpfs"),
        flags: libc::MS_NOSUID | libc::MS_NODEV,
        options: Some(&options),
    };
    system::mount(&c_path(target)?, memory).map_err(said_io("mount a file system in memory"))
}

/// Mounts every place, in the order of their paths.
fn fill(plan: &RootPlan, order: &JailOrder, parts: Parts, base: &Path) -> Result<(), String> {
    let Parts { mut trees, devices } = parts;
    for (path, place) in &plan.places {
        let target = within(base, path);
        match (place, trees.given.remove(path)) {
            (Place::Hidden, _) => {
                make_target(&target, FileType::Directory)?;
                mount_memory(&target, limit::ROOT_BYTES_MAX, "0755")?;
            }
            (Place::Setting, _) => copy_setting(path, &target)?,
            (Place::Overlay(number), Some(lower)) => {
                make_target(&target, FileType::Directory)?;
                let (overlay, upper) = (order.overlays.get(*number), trees.uppers.get(*number));
                let (Some(overlay), Some(upper)) = (overlay, upper) else {
                    return Err("an overlay without a place for its changes".to_owned());
                };
                mount_overlay(base, &lower, upper, overlay, &target)?;
            }
            (_, Some(tree)) => {
                let found = rustix::fs::fstat(&tree).map_err(said("look at a mount"))?;
                make_target(&target, FileType::from_raw_mode(found.st_mode))?;
                attach(&tree, &target)?;
            }
            (_, None) => return Err(format!("`{}` was not opened", path.display())),
        }
    }
    let folder = base.join("dev");
    fs::create_dir_all(&folder).map_err(said_io("make the folder of devices"))?;
    for (name, device) in devices {
        let target = folder.join(name);
        make_target(&target, FileType::RegularFile)?;
        attach(&device, &target)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        // Shared memory has no mount of its own: it counts against the bound of `/tmp`.
        ("shm", "/tmp"),
    ] {
        symlink(target, folder.join(name)).map_err(said_io("make a link to a device"))?;
    }
    Ok(())
}

/// Copies a file of the system's settings, if the child's user may read it.
fn copy_setting(path: &Path, target: &Path) -> Result<(), String> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| {
        // It may have grown since.
        let mut file = file.take(limit::SETTING_BYTES_MAX);
        file.read_to_end(&mut bytes)
    });
    if read.is_err() {
        return Ok(());
    }
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(said_io("make a folder of settings"))?;
    }
    fs::write(target, bytes).map_err(said_io("copy the settings of the system"))
}

/// Something to mount on, and the folders that lead there.
fn make_target(target: &Path, kind: FileType) -> Result<(), String> {
    if target.exists() {
        return Ok(());
    }
    let made = match (kind, target.parent()) {
        (FileType::Directory, _) => fs::create_dir_all(target),
        (_, Some(folder)) => {
            fs::create_dir_all(folder).and_then(|()| fs::File::create(target).map(drop))
        }
        (_, None) => Ok(()),
    };
    made.map_err(|error| format!("could not make `{}`: {error}", target.display()))
}

fn attach(tree: &OwnedFd, target: &Path) -> Result<(), String> {
    system::attach(tree.as_fd(), &c_path(target)?)
        .map_err(|error| format!("could not mount on `{}`: {error}", target.display()))
}

/// Lays a folder for changes over a folder. The layers stand beside only while the kernel
/// puts them together: it keeps its own hold on them.
fn mount_overlay(
    base: &Path,
    lower: &OwnedFd,
    upper: &OwnedFd,
    overlay: &JailOverlay,
    target: &Path,
) -> Result<(), String> {
    let layers = base.join(LAYERS);
    let (below, above) = (layers.join("below"), layers.join("above"));
    for folder in [&below, &above] {
        fs::create_dir_all(folder).map_err(said_io("make a place for layers"))?;
    }
    attach(lower, &below)?;
    attach(upper, &above)?;
    let layer = |path: &Path| {
        let name = path.file_name().map(|name| above.join(name));
        name.ok_or_else(|| "a folder for changes has no name".to_owned())
    };
    let (upper, work) = (layer(&overlay.upper)?, layer(&overlay.work)?);
    let mount = system::make_mount(
        c"overlay",
        &[
            (c"lowerdir", Some(&c_path(&below)?)),
            (c"upperdir", Some(&c_path(&upper)?)),
            (c"workdir", Some(&c_path(&work)?)),
            // Marks are kept where an ordinary user may write them.
            (c"userxattr", None),
        ],
        MOUNT_NO_SET_USER | MOUNT_NO_DEVICES,
    )
    .map_err(said_io("make an overlay"))?;
    attach(&mount, target)?;
    for folder in [&below, &above] {
        system::detach(&c_path(folder)?).map_err(said_io("put a layer away"))?;
    }
    fs::remove_dir_all(&layers).map_err(said_io("put the place of layers away"))
}

/// Facts about the child's own processes. Refused where a container hides parts of its own.
fn mount_facts(base: &Path) -> Result<(), String> {
    let target = base.join("proc");
    fs::create_dir_all(&target).map_err(said_io("make `/proc`"))?;
    let facts = OldMount {
        kind: Some(c"proc"),
        flags: libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
        options: None,
    };
    system::mount(&c_path(&target)?, facts)
        .map_err(|error| format!("no `/proc` of its own could be mounted: {error}"))
}

/// Writes `/etc`: users, groups, and where the child looks names up, if it may.
fn write_settings(base: &Path, names: &NameFiles) -> Result<(), String> {
    let (user, group) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let folder = base.join("etc");
    fs::create_dir_all(&folder).map_err(said_io("make `/etc`"))?;
    let user_line = |name: &str, user: u32| format!("{name}:x:{user}:{group}::/tmp:/bin/sh\n");
    let group_line = |name: &str, group: u32| format!("{name}:x:{group}:\n");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).map_err(said_io("write the settings of the system"))
    };
    for (name, text) in [
        (
            "passwd",
            user_line("root", 0) + &user_line("nobody", 65534) + &user_line("jail", user),
        ),
        (
            "group",
            group_line("root", 0) + &group_line("nogroup", 65534) + &group_line("jail", group),
        ),
        (
            "nsswitch.conf",
            format!(
                "passwd: files\ngroup: files\n{}\nnetworks: files\nprotocols: files\nservices: files\n",
                names.sources
            ),
        ),
        ("host.conf", "multi on\n".to_owned()),
    ] {
        write(name, text.as_bytes())?;
    }
    write("hosts", &names.hosts)?;
    write("resolv.conf", &names.resolver)
}

/// Makes `base` the root folder and forgets the old one; nothing more can be made in it.
fn switch(base: &Path) -> Result<(), String> {
    rustix::process::chdir(base).map_err(said("enter the new root"))?;
    // The old root ends up mounted over the new one, in the same folder, so it needs none of its
    // own; detaching `.` takes the old one away (pivot_root(2)).
    rustix::process::pivot_root(c".", c".").map_err(said("change the root"))?;
    system::detach(c".").map_err(said_io("put the old root away"))?;
    rustix::process::chdir(c"/").map_err(said("enter the new root"))?;
    let closed = OldMount {
        kind: None,
        flags: libc::MS_REMOUNT
            | libc::MS_BIND
            | libc::MS_RDONLY
            | libc::MS_NOSUID
            | libc::MS_NODEV,
        options: None,
    };
    system::mount(c"/", closed).map_err(said_io("close the new root"))
}

/// Where `path` will be, while the new root still stands on `base`.
fn within(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| format!("`{}` holds a NUL character", path.display()))
}

fn said(attempt: &'static str) -> impl Fn(rustix::io::Errno) -> String {
    move |error| format!("could not {attempt}: {error}")
}

fn said_io(attempt: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("could not {attempt}: {error}")
}
