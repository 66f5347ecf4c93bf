//! Where `safety.fs` may look and write: the workspace and the read roots, each
//! a directory handle, and how the text of a path becomes a place below one.
//!
//! The text decides only which root is meant. What is opened is opened beneath
//! that root's handle, where no link, `..` or swapped name leads out, so a wrong
//! decision here could never widen anything.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use cap_fs_ext::DirExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _};

use crate::files::limit;
use crate::files::protect::ProtectedHome;
use crate::files::refusal::{PathPurpose, PathRefusal, shown};
use crate::files::repository::{RepositoryPrograms, makes_bare};
use crate::files::untouchable::{GIT_DATA, untouchable};
use crate::files::{FileSettings, FilesError};

/// The folders of one call.
#[derive(Debug)]
pub(crate) struct Roots {
    workspace: Root,
    /// The workspace among them, or a folder around it.
    read: Vec<Root>,
    /// What repositories in the workspace name, if it is the operator's own. Searched for once,
    /// before the first change.
    programs: OnceLock<RepositoryPrograms>,
    /// When that search is given up.
    deadline: Option<Instant>,
}

#[derive(Debug)]
struct Root {
    handle: Dir,
    /// Absolute, links resolved.
    path: PathBuf,
    /// As the operator wrote it; scripts may use either.
    raw_path: PathBuf,
    /// It is the operator's own, where some names are not for tools.
    is_operators: bool,
}

/// A path below a root.
#[derive(Debug)]
pub(crate) struct PathEntry<'a> {
    roots: &'a Roots,
    /// The root's handle.
    pub(crate) root: &'a Dir,
    /// The root, absolute, links resolved.
    root_path: &'a Path,
    /// Below it; `.` for the root itself.
    pub(crate) relative: PathBuf,
    /// Absolute, `.` and `..` folded.
    pub(crate) absolute: PathBuf,
    /// As the script sees it: relative to the workspace when inside it.
    pub(crate) display: String,
    /// Its root is the operator's own: no link on the way is followed for writing.
    pub(crate) is_operators: bool,
}

impl PathEntry<'_> {
    /// Whether it is the root itself.
    pub(crate) fn is_root(&self) -> bool {
        self.relative == Path::new(".")
    }

    /// Refuses what no tool changes in a folder of the operator's.
    pub(crate) fn check_touchable(&self) -> Result<(), PathRefusal> {
        if !self.is_operators {
            return Ok(());
        }
        let named = untouchable(&self.relative);
        let named = named.or_else(|| self.programs().find(&self.absolute));
        // Attack: a bare repository is a folder with ordinary names, and git obeys its settings.
        let named =
            named.or_else(|| makes_bare(self.root_path, &self.relative).then_some(GIT_DATA));
        match named {
            None => Ok(()),
            Some(what) => Err(PathRefusal::protected(what, &self.display)),
        }
    }

    /// What repositories in the workspace and around it name. Attack: `core.hooksPath` of a
    /// nested repository leads out of it, to files that nothing above them tells of.
    pub(crate) fn programs(&self) -> RepositoryPrograms {
        let Roots {
            workspace,
            programs,
            deadline,
            ..
        } = self.roots;
        match workspace.is_operators {
            true => programs
                .get_or_init(|| RepositoryPrograms::of_tree(&workspace.path, *deadline))
                .clone(),
            // A folder of our own has no repositories of the operator's.
            false => RepositoryPrograms::default(),
        }
    }

    /// The absolute path as text.
    pub(crate) fn absolute_text(&self) -> String {
        self.absolute.to_string_lossy().into_owned()
    }

    /// Folder and name below the root; nothing for the root itself.
    pub(crate) fn parent_and_name(&self) -> Option<(&Path, &str)> {
        if self.is_root() {
            return None;
        }
        let name = self.relative.file_name()?.to_str()?;
        let parent = self.relative.parent().unwrap_or(Path::new(""));
        match parent.as_os_str().is_empty() {
            true => Some((Path::new("."), name)),
            false => Some((parent, name)),
        }
    }
}

impl Roots {
    /// One folder for everything.
    pub(crate) fn base(raw_path: &str, home: Option<&ProtectedHome>) -> Result<Roots, FilesError> {
        let workspace = Root::base(raw_path, home)?;
        let read = vec![workspace.again()?];
        Ok(Roots::new(workspace, read))
    }

    /// A copy in the place of one folder for everything; scripts may use the path of
    /// either.
    pub(crate) fn stand_in(copy: &Path, raw_path: &str) -> Result<Roots, FilesError> {
        let mut workspace = Root::make(copy)?;
        workspace.raw_path = folded(Path::new(raw_path));
        let read = vec![workspace.again()?];
        Ok(Roots::new(workspace, read))
    }

    /// The workspace, made if it is missing, and the read roots. Without the
    /// right to read, `copy` has nothing but the workspace to copy from.
    pub(crate) fn workspace(settings: &FileSettings, may_read: bool) -> Result<Roots, FilesError> {
        let mut workspace = Root::make(&settings.workspace)?;
        if let Some(home) = &settings.home {
            // Also for a workspace: the operator may have set it to a place in the home.
            home.check(&workspace.path, &workspace.handle)?;
        }
        if let Some(id) = &settings.sub_workspace {
            // Below and never beside: the handle of the whole workspace is
            // dropped with `self`.
            workspace = workspace.below(id)?;
        }
        let mut read: Vec<Root> = Vec::new();
        let raw_roots = settings.read_roots.iter().filter(|_| may_read);
        for raw_root in raw_roots {
            read.push(Root::open(raw_root)?);
        }
        read.push(workspace.again()?);
        Ok(Roots::new(workspace, merged(read)))
    }

    fn new(workspace: Root, read: Vec<Root>) -> Roots {
        Roots {
            workspace,
            read,
            programs: OnceLock::new(),
            deadline: None,
        }
    }

    /// The same, for a call that ends at some time.
    pub(crate) fn until(mut self, deadline: Instant) -> Roots {
        self.deadline = Some(deadline);
        self
    }

    /// The workspace, absolute.
    pub(crate) fn workspace_path(&self) -> String {
        self.workspace.path.to_string_lossy().into_owned()
    }

    /// The read roots, absolute.
    pub(crate) fn read_paths(&self) -> Vec<String> {
        let paths = self.read.iter().map(|root| root.path.to_string_lossy());
        paths.map(|path| path.into_owned()).collect()
    }

    /// A path to read, below the first read root it lies under.
    pub(crate) fn readable(&self, raw_path: &str) -> Result<PathEntry<'_>, PathRefusal> {
        let absolute = self.absolute(raw_path)?;
        let mut places = self.read.iter();
        places
            .find_map(|root| self.place(root, &absolute))
            .ok_or_else(|| PathRefusal::escape(PathPurpose::Read, raw_path))?
    }

    /// A path to write, below the workspace.
    pub(crate) fn writable(&self, raw_path: &str) -> Result<PathEntry<'_>, PathRefusal> {
        let absolute = self.absolute(raw_path)?;
        let place = self
            .place(&self.workspace, &absolute)
            .ok_or_else(|| PathRefusal::escape(PathPurpose::Write, raw_path))??;
        place.check_touchable()?;
        Ok(place)
    }

    /// A path to copy listed changes to: what may be changed was decided when they were
    /// listed.
    pub(crate) fn copied(&self, raw_path: &str) -> Result<PathEntry<'_>, PathRefusal> {
        let absolute = self.absolute(raw_path)?;
        self.place(&self.workspace, &absolute)
            .ok_or_else(|| PathRefusal::escape(PathPurpose::Write, raw_path))?
    }

    /// An absolute path as the script sees it.
    pub(crate) fn display(&self, absolute: &Path) -> String {
        match absolute.strip_prefix(&self.workspace.path) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.to_string_lossy().into_owned(),
            Err(_) => absolute.to_string_lossy().into_owned(),
        }
    }

    fn place<'a>(
        &'a self,
        root: &'a Root,
        absolute: &Path,
    ) -> Option<Result<PathEntry<'a>, PathRefusal>> {
        // Component by component: `/data-old` does not lie under `/data`.
        let inside = absolute.strip_prefix(&root.path);
        let inside = inside.or_else(|_| absolute.strip_prefix(&root.raw_path));
        let inside = inside.ok()?;
        if inside.components().count() > limit::PATH_NAMES_MAX {
            return Some(Err(invalid(&absolute.to_string_lossy(), "is too deep")));
        }
        let absolute = root.path.join(inside);
        let relative = match inside.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => inside.to_owned(),
        };
        let display = self.display(&absolute);
        Some(Ok(PathEntry {
            roots: self,
            root: &root.handle,
            root_path: &root.path,
            relative,
            absolute,
            display,
            is_operators: root.is_operators,
        }))
    }

    /// The text as an absolute path, `.` and `..` folded.
    fn absolute(&self, raw_path: &str) -> Result<PathBuf, PathRefusal> {
        if raw_path.trim().is_empty() {
            return Err(PathRefusal::invalid("path-required", "path required"));
        }
        if raw_path.len() > limit::PATH_BYTES_MAX {
            return Err(invalid(raw_path, "is too long"));
        }
        // Attack: a path with a line break forges lines in logs and questions.
        if raw_path.chars().any(char::is_control) {
            return Err(invalid(raw_path, "holds a control character"));
        }
        let path = folded(&self.workspace.path.join(raw_path));
        let is_overlong = |name: Component<'_>| name.as_os_str().len() > limit::NAME_BYTES_MAX;
        match path.components().any(is_overlong) {
            true => Err(invalid(raw_path, "holds a name that is too long")),
            false => Ok(path),
        }
    }
}

impl Root {
    fn open(raw_path: &Path) -> Result<Root, FilesError> {
        let attempt = |source| FilesError::Open {
            path: raw_path.display().to_string(),
            source,
        };
        if !raw_path.is_absolute() {
            let path = raw_path.display().to_string();
            return Err(FilesError::Relative { path });
        }
        // Once: from here on the handle counts, not the name.
        let path = raw_path.canonicalize().map_err(attempt)?;
        if path.to_str().is_none() {
            let path = path.display().to_string();
            return Err(FilesError::NotText { path });
        }
        let handle = Dir::open_ambient_dir(&path, ambient_authority()).map_err(attempt)?;
        Ok(Root {
            handle,
            path,
            raw_path: folded(raw_path),
            is_operators: false,
        })
    }

    /// The folder a grant names, if it may be used. A relative one lies in a place of
    /// its own and is made when it is missing.
    fn base(raw_path: &str, home: Option<&ProtectedHome>) -> Result<Root, FilesError> {
        let raw_path = Path::new(raw_path);
        let Some(home) = home else {
            let mut root = Root::open(raw_path)?;
            root.is_operators = true;
            return Ok(root);
        };
        let path = home.absolute(raw_path)?;
        let mut root = match raw_path.is_absolute() {
            true => Root::open(&path)?,
            false => Root::make(&path)?,
        };
        home.check(&root.path, &root.handle)?;
        root.raw_path = folded(raw_path);
        // A relative one lies in our own home, where no person works.
        root.is_operators = raw_path.is_absolute();
        Ok(root)
    }

    /// [`Root::open`], after making the folder, for its owner only.
    fn make(raw_path: &Path) -> Result<Root, FilesError> {
        if raw_path.is_absolute() && !raw_path.is_dir() {
            use std::os::unix::fs::DirBuilderExt as _;
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(raw_path);
            made.map_err(|source| FilesError::Open {
                path: raw_path.display().to_string(),
                source,
            })?;
        }
        Root::open(raw_path)
    }

    /// A folder of its own for one id.
    fn below(self, id: &str) -> Result<Root, FilesError> {
        let name = folder_name(id)?;
        let path = self.path.join(&name);
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let made = self.handle.create_dir_with(&name, &builder);
        let made = made.or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        });
        // Attack: a link planted under the name would give one caller the files
        // of another.
        let handle = made.and_then(|()| self.handle.open_dir_nofollow(&name));
        let handle = handle.map_err(|source| FilesError::Open {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Root {
            handle,
            raw_path: self.raw_path.join(&name),
            path,
            is_operators: self.is_operators,
        })
    }

    fn again(&self) -> Result<Root, FilesError> {
        let handle = self.handle.try_clone();
        let handle = handle.map_err(|source| FilesError::Open {
            path: self.path.display().to_string(),
            source,
        })?;
        Ok(Root {
            handle,
            path: self.path.clone(),
            raw_path: self.raw_path.clone(),
            is_operators: self.is_operators,
        })
    }
}

/// The path of the folder a grant names, links resolved, if it may be used.
pub(crate) fn base_path(
    raw_path: &str,
    home: Option<&ProtectedHome>,
) -> Result<PathBuf, FilesError> {
    Ok(Root::base(raw_path, home)?.path)
}

/// Without the roots that lie inside others.
fn merged(mut roots: Vec<Root>) -> Vec<Root> {
    roots.sort_by(|one, other| one.path.cmp(&other.path));
    let mut kept: Vec<Root> = Vec::new();
    for root in roots {
        let is_inside = kept.iter().any(|outer| root.path.starts_with(&outer.path));
        if !is_inside {
            kept.push(root);
        }
    }
    kept
}

/// The name of the folder of one id. Letters, digits, `.`, `_` and `-` stand for
/// themselves, every other byte for `~` and two digits, so two ids never share a
/// folder. An id that names no folder is an error, not the folder of all callers.
fn folder_name(id: &str) -> Result<String, FilesError> {
    let is_unusable = matches!(id, "" | "." | "..") || id.len() > limit::ID_BYTES_MAX;
    if is_unusable {
        return Err(FilesError::Id { id: shown(id) });
    }
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            // No `~`, so that the escape of another byte cannot be spelled out by hand.
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                name.push(char::from(byte));
            }
            other => name.push_str(&format!("~{other:02x}")),
        }
    }
    Ok(name)
}

/// `.` and `..` folded by their text, as the reference does before it looks at
/// the disk.
fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                folded.push(component);
            }
        }
    }
    folded
}

fn invalid(raw_path: &str, what: &str) -> PathRefusal {
    PathRefusal::invalid(
        "invalid-path",
        format!("the path {what}: {}", shown(raw_path)),
    )
}

/// Whatever the text of a path, the place it becomes lies below its root, holds no
/// step upwards, and is the same again when it is spelled the way it is shown.
pub(crate) fn fuzz(data: &[u8]) {
    let raw_path = String::from_utf8_lossy(data);
    let Ok(here) = std::env::current_dir() else {
        return;
    };
    let Ok(roots) = Roots::base(&here.to_string_lossy(), None) else {
        return;
    };
    let is_plain =
        |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    for place in [roots.readable(&raw_path), roots.writable(&raw_path)] {
        let Ok(place) = place else {
            continue;
        };
        let relative = &place.relative;
        assert!(relative.components().all(is_plain), "{relative:?}");
        assert!(
            place.absolute.starts_with(&roots.workspace.path),
            "{relative:?}"
        );
        assert!(raw_path.len() <= limit::PATH_BYTES_MAX && !raw_path.contains('\0'));
        // A name of blanks only is no path when it stands alone.
        if !place.display.trim().is_empty() {
            let again = roots.readable(&place.display);
            assert!(
                again.is_ok_and(|again| again.absolute == place.absolute),
                "{relative:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_never_share_a_folder() {
        let name = |id: &str| folder_name(id).ok();
        assert_eq!(name("chat-1.a_B").as_deref(), Some("chat-1.a_B"));
        assert_eq!(name("a/b").as_deref(), Some("a~2fb"));
        assert_eq!(name("a~2fb").as_deref(), Some("a~7e2fb"));
        assert_eq!(name("é").as_deref(), Some("~c3~a9"));
        for id in ["", ".", "..", &"x".repeat(65)] {
            assert_eq!(name(id), None, "{id}");
        }
        assert_eq!(name("...").as_deref(), Some("..."));
    }

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(folded(Path::new(raw)), Path::new(expected), "{raw}");
    }

    #[test]
    fn dots_are_folded_by_their_text() {
        check("/a/./b/../c", "/a/c");
        check("/a/../../..", "/");
        check("/../a//b/", "/a/b");
        check("/a/...", "/a/...");
    }
}
