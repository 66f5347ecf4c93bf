//! Which files and folders a child is given, as paths without links.
//!
//! The system's programs and libraries, the program's own installation, what was
//! declared, and a folder of its own. Never the user's home as a whole, and never
//! Ringfence's own folders, whatever was declared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

use crate::fault::JailFault;
use crate::file_rule::{FileRight, FileRule};
use crate::identity;
use crate::limit;
use crate::settings::{JailNetwork, JailOverlay, JailSettings};

/// Programs, libraries, settings of the system.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
    // A child is never root: what only root may read of it stays closed.
    "/etc",
];

/// What programs ask about the machine and themselves.
const FACTS: &[&str] = &[
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Where names are looked up; often a link out of `/etc`.
const RESOLVER: &str = "/etc/resolv.conf";

/// The devices every program expects.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The child's own folders, made and checked.
#[derive(Clone, Debug)]
pub(crate) struct OwnFolders {
    pub(crate) home: PathBuf,
    pub(crate) temporary: PathBuf,
}

/// Makes the child's own folder and one for temporary files in it, for their owner only.
pub(crate) fn make_own_folders(home: &Path) -> Result<OwnFolders, JailFault> {
    const OWNER_ONLY: u32 = 0o700;
    if !home.is_absolute() {
        return fault(format!("`{}` is not an absolute path", home.display()));
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(OWNER_ONLY)
        .create(home)
        .map_err(JailFault::setup("make the program's own folder"))?;
    let found = fs::symlink_metadata(home).map_err(JailFault::setup("look at the own folder"))?;
    if !found.is_dir() || !is_own(found.uid()) {
        return fault(format!(
            "`{}` is not a folder of this user; choose another",
            home.display()
        ));
    }
    fs::set_permissions(home, fs::Permissions::from_mode(OWNER_ONLY))
        .map_err(JailFault::setup("close the program's own folder to others"))?;
    let home = home
        .canonicalize()
        .map_err(JailFault::setup("find the program's own folder"))?;
    let temporary = home.join("tmp");
    // The child may have put anything there. Only a name is handed over, so nothing comes of it.
    let made = fs::DirBuilder::new().mode(OWNER_ONLY).create(&temporary);
    if made.is_ok() && found.uid() != rustix::process::geteuid().as_raw() {
        lchown(&temporary, Some(found.uid()), Some(found.gid()))
            .map_err(JailFault::setup("hand the folder of temporary files over"))?;
    }
    Ok(OwnFolders { home, temporary })
}

/// What a child is given, by who owns it.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenFiles {
    /// Every rule of a child without namespaces, one for each path.
    pub(crate) rules: Vec<FileRule>,
    /// The program's installation.
    pub(crate) installation: Vec<PathBuf>,
    /// What was declared.
    pub(crate) declared: Vec<FileRule>,
    /// The child's own folder and its workspaces.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) overlays: Vec<JailOverlay>,
    pub(crate) private: Vec<PathBuf>,
}

/// Everything a child is given.
pub(crate) fn given(
    settings: &JailSettings,
    home: &Path,
    needs: &BTreeSet<PathBuf>,
) -> Result<GivenFiles, JailFault> {
    check_counts(settings)?;
    let mut own = vec![home.to_path_buf()];
    for workspace in &settings.workspaces {
        own.push(own_folder(workspace)?);
    }
    let protected = Protected {
        private: canonical(&settings.private),
        user_home: settings
            .user_home
            .iter()
            .flat_map(|home| home.canonicalize())
            .next(),
        written: canonical(&settings.write),
        own,
    };
    let mut rules = Rules::default();
    system(&protected, settings.network, &mut rules);
    let mut installation = Vec::new();
    for path in needs {
        if protected.is_private(path) {
            return fault(format!(
                "the program needs `{}`, which lies in Ringfence's own folder; install it elsewhere",
                path.display()
            ));
        }
        rules.add(path.clone(), FileRight::Execute);
        installation.push(path.clone());
    }
    let mut declared = Rules::default();
    for path in &settings.read {
        declared.add(protected.check(path)?, FileRight::Execute);
    }
    for path in &settings.write {
        declared.add(protected.check(path)?, FileRight::Write);
    }
    let mut overlays = Vec::new();
    for overlay in &settings.overlays {
        let overlay = check_overlay(&protected, overlay)?;
        // Where changes cannot be kept beside it, it is not changed.
        rules.add(overlay.folder.clone(), FileRight::Execute);
        overlays.push(overlay);
    }
    let declared = declared.into_list();
    for rule in &declared {
        rules.add(rule.path.clone(), rule.right);
    }
    for folder in &protected.own {
        rules.add(folder.clone(), FileRight::Write);
    }
    if rules.rights.len() > limit::FILE_RULES_MAX {
        return fault(format!(
            "the program would need {} rules for files; at most {} are possible",
            rules.rights.len(),
            limit::FILE_RULES_MAX
        ));
    }
    Ok(GivenFiles {
        rules: rules.into_list(),
        installation,
        declared,
        overlays,
        private: protected.private,
        own: protected.own,
    })
}

fn check_counts(settings: &JailSettings) -> Result<(), JailFault> {
    let declared = settings.read.len() + settings.write.len() + settings.workspaces.len();
    if declared > limit::PATHS_MAX {
        return fault(format!(
            "{declared} folders and files are declared; at most {} can be",
            limit::PATHS_MAX
        ));
    }
    if settings.overlays.len() > limit::OVERLAYS_MAX {
        return fault(format!(
            "{} folders are laid over; at most {} can be",
            settings.overlays.len(),
            limit::OVERLAYS_MAX
        ));
    }
    Ok(())
}

/// A workspace: a folder of this user's, or of a user that children run as, and no link.
fn own_folder(path: &Path) -> Result<PathBuf, JailFault> {
    let shown = path.display();
    let found = fs::symlink_metadata(path).map_err(|error| {
        JailFault::Settings(format!("could not find the workspace `{shown}`: {error}"))
    })?;
    if !path.is_absolute() || !found.is_dir() || !is_own(found.uid()) {
        return fault(format!(
            "`{shown}` is no workspace: it must be a folder of this user's, by its absolute path"
        ));
    }
    path.canonicalize().map_err(|error| {
        JailFault::Settings(format!("could not find the workspace `{shown}`: {error}"))
    })
}

/// Whether a folder of `owner` can be a child's own.
fn is_own(owner: u32) -> bool {
    let user = rustix::process::geteuid();
    owner == user.as_raw() || (user.is_root() && identity::is_child_user(owner))
}

fn check_overlay(protected: &Protected, overlay: &JailOverlay) -> Result<JailOverlay, JailFault> {
    let folder = protected.check(&overlay.folder)?;
    let upper = own_folder(&overlay.upper)?;
    let work = own_folder(&overlay.work)?;
    if upper == work || upper.parent() != work.parent() {
        return fault(format!(
            "`{}` and `{}` must be two folders in one folder",
            upper.display(),
            work.display()
        ));
    }
    if upper.starts_with(&folder) || folder.starts_with(&upper) {
        return fault(format!(
            "the changes of `{}` cannot be kept in it or around it",
            folder.display()
        ));
    }
    Ok(JailOverlay {
        folder,
        upper,
        work,
    })
}

#[derive(Debug, Default)]
struct Rules {
    rights: BTreeMap<PathBuf, FileRight>,
}

impl Rules {
    fn add(&mut self, path: PathBuf, right: FileRight) {
        // A path that cannot be told to the launcher is not given.
        if path.to_str().is_none() {
            return;
        }
        let held = self.rights.entry(path).or_insert(right);
        *held = (*held).max(right);
    }

    fn into_list(self) -> Vec<FileRule> {
        self.rights
            .into_iter()
            .map(|(path, right)| FileRule { path, right })
            .collect()
    }
}

/// What no declaration opens.
#[derive(Debug)]
struct Protected {
    private: Vec<PathBuf>,
    user_home: Option<PathBuf>,
    /// The child's own folder and its workspaces.
    own: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Protected {
    /// Whether `path` is in a folder of Ringfence's own, and not in the child's part of it.
    fn is_private(&self, path: &Path) -> bool {
        let is_own = self.own.iter().any(|one| path.starts_with(one));
        !is_own && self.private.iter().any(|one| path.starts_with(one))
    }

    /// A declared path without links, if it may be given.
    fn check(&self, declared: &Path) -> Result<PathBuf, JailFault> {
        let shown = declared.display();
        if !declared.is_absolute() {
            return fault(format!("`{shown}` is not an absolute path"));
        }
        let path = declared.canonicalize().map_err(|error| {
            JailFault::Settings(format!(
                "could not find `{shown}`, which is declared: {error}; create it or take it out"
            ))
        })?;
        if self.private.iter().any(|one| one.starts_with(&path)) || self.is_private(&path) {
            return fault(format!(
                "`{shown}` cannot be declared: it holds Ringfence's own folder or lies in it; declare a narrower folder"
            ));
        }
        if self.user_home.iter().any(|home| home.starts_with(&path)) {
            return fault(format!(
                "`{shown}` cannot be declared: it is the user's home or holds it; declare a folder in it"
            ));
        }
        if path.starts_with("/proc") || path.starts_with("/dev") || path.starts_with("/sys") {
            return fault(format!(
                "`{shown}` cannot be declared: it belongs to the kernel; take it out"
            ));
        }
        self.check_links(declared)?;
        if path.to_str().is_none() {
            return fault(format!("the path `{shown}` is not UTF-8"));
        }
        Ok(path)
    }

    /// Attack: a child replaces something declared by a link, and the next start gives it
    /// what the link leads to. Where a child can write, no link counts.
    fn check_links(&self, declared: &Path) -> Result<(), JailFault> {
        for path in declared.ancestors() {
            let is_link = path
                .symlink_metadata()
                .is_ok_and(|found| found.is_symlink());
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let is_writable = folder.is_some_and(|folder| {
                let mut written = self.written.iter().chain(&self.own);
                written.any(|one| folder.starts_with(one))
            });
            if is_link && is_writable {
                return fault(format!(
                    "`{}` cannot be declared: `{}` is a link that the program could have made; declare what it leads to",
                    declared.display(),
                    path.display()
                ));
            }
        }
        Ok(())
    }
}

fn canonical(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().flat_map(|path| path.canonicalize()).collect()
}

fn system(protected: &Protected, network: JailNetwork, rules: &mut Rules) {
    for path in SYSTEM {
        let Ok(path) = Path::new(path).canonicalize() else {
            continue;
        };
        let mut cut = Cut {
            left_out: &protected.private,
            entries: 0,
        };
        match cut.examine(&path, 0) {
            Examined::Whole => rules.add(path, FileRight::Execute),
            Examined::Parts(parts) => {
                for part in parts {
                    rules.add(part, FileRight::Execute);
                }
            }
        }
    }
    for path in FACTS {
        add_existing(path, FileRight::Read, rules);
    }
    for path in DEVICES {
        add_existing(path, FileRight::Device, rules);
    }
    match network {
        // Names are the parent's to look up.
        JailNetwork::None | JailNetwork::Proxy => {}
        JailNetwork::Open => add_existing(RESOLVER, FileRight::Read, rules),
    }
}

fn add_existing(path: &str, right: FileRight, rules: &mut Rules) {
    if let Ok(path) = Path::new(path).canonicalize() {
        rules.add(path, right);
    }
}

/// Leaves folders out of a folder: rules can only give, never take back.
struct Cut<'a> {
    left_out: &'a [PathBuf],
    entries: usize,
}

/// What of a folder is given.
#[derive(Debug, PartialEq, Eq)]
enum Examined {
    Whole,
    Parts(Vec<PathBuf>),
}

impl Cut<'_> {
    fn examine(&mut self, path: &Path, depth: usize) -> Examined {
        self.entries += 1;
        let nothing = Examined::Parts(Vec::new());
        if self.left_out.iter().any(|one| path.starts_with(one)) {
            return nothing;
        }
        let holds_left_out = self.left_out.iter().any(|one| one.starts_with(path));
        if !holds_left_out {
            return Examined::Whole;
        }
        let Ok(found) = path.symlink_metadata() else {
            return nothing;
        };
        // A link gives nothing by itself: what it leads to has its own place.
        if found.is_symlink() {
            return Examined::Whole;
        }
        if !found.is_dir() {
            return Examined::Whole;
        }
        if depth >= limit::SYSTEM_DEPTH_MAX || self.entries >= limit::SYSTEM_ENTRIES_MAX {
            return nothing;
        }
        self.examine_folder(path, depth)
    }

    fn examine_folder(&mut self, folder: &Path, depth: usize) -> Examined {
        let mut parts = Vec::new();
        let mut is_whole = true;
        let Ok(entries) = fs::read_dir(folder) else {
            return Examined::Parts(parts);
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match self.examine(&path, depth + 1) {
                Examined::Whole if entry.file_type().is_ok_and(|kind| kind.is_symlink()) => {}
                Examined::Whole => parts.push(path),
                Examined::Parts(inner) => {
                    is_whole = false;
                    parts.extend(inner);
                }
            }
        }
        match is_whole {
            true => Examined::Whole,
            false => Examined::Parts(parts),
        }
    }
}

fn fault<T>(sentence: String) -> Result<T, JailFault> {
    Err(JailFault::Settings(sentence))
}
