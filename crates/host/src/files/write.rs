//! The write group. Every path lies in the workspace, but for what `copy` reads.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, File, Metadata};
use serde_json::json;

use crate::files::Files;
use crate::files::answer::Done;
use crate::files::argument::FileArguments;
use crate::files::limit;
use crate::files::open::{self, OpenError};
use crate::files::refusal::{PathPurpose, PathRefusal, shown};
use crate::files::replace::{Parents, ReplaceTarget, hold};
use crate::files::repository::{RepositoryPrograms, is_bare};
use crate::files::root::PathEntry;
use crate::files::untouchable::{GIT_DATA, of_name};

/// `writeText(path, content = '')`: makes folders, overwrites.
pub(crate) fn write_text(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.writable(arguments.raw_path(0)?)?;
    let content = arguments.text(1)?.unwrap_or_default();
    bounded(&place, content.len())?;
    // Before the lock: counting a workspace can take long.
    files.admit(&place, content.len())?;
    files.in_time()?;
    let _held = hold(&[&place.absolute]);
    let target = made(&place)?;
    let bytes = put(&target, &[&content])?;
    Ok(written(&place, bytes))
}

/// `appendText(path, content = '')`: makes the file if it is missing.
pub(crate) fn append_text(
    files: &Files,
    arguments: FileArguments<'_>,
) -> Result<Done, PathRefusal> {
    let place = files.roots.writable(arguments.raw_path(0)?)?;
    let content = arguments.text(1)?.unwrap_or_default();
    bounded(&place, content.len())?;
    files.admit(&place, content.len())?;
    files.in_time()?;
    let _held = hold(&[&place.absolute]);
    let target = made(&place)?;
    target.expect_file()?;
    if target.existing.is_none() {
        let bytes = put(&target, &[&content])?;
        return Ok(written(&place, bytes));
    }
    let (before, metadata) = existing(&target, &place)?;
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    // The length after appending is bounded too, or a file could grow step by step.
    bounded(&place, length.saturating_add(content.len()))?;
    target.replace(|file| {
        let copied = copy_up_to(before, file, limit::WRITE_BYTES_MAX, &place.display)?;
        let written = file.write_all(content.as_bytes());
        written.map_err(|error| target.refusal(&error))?;
        Ok(copied)
    })?;
    Ok(written(&place, byte_count(content.len())))
}

/// `editText(path, old, new, replaceAll = false)`: exactly one match, or all.
pub(crate) fn edit_text(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.writable(arguments.raw_path(0)?)?;
    let old = arguments.text(1)?.filter(|old| !old.is_empty());
    let Some(old) = old else {
        return Err(PathRefusal::invalid(
            "edit-old-required",
            "old text required",
        ));
    };
    let Some(new) = arguments.text(2)? else {
        return Err(PathRefusal::invalid("missing-args", "new text required"));
    };
    let replaces_all = arguments.flag(3);
    let missing = || {
        let message = format!("no such file: {}", shown(&place.display));
        PathRefusal::invalid("edit-file-missing", message)
    };
    files.in_time()?;
    let _held = hold(&[&place.absolute]);
    let target = ReplaceTarget::open(&place, Parents::Expect)?.ok_or_else(missing)?;
    target.expect_file()?;
    if target.existing.is_none() {
        return Err(missing());
    }
    let (file, metadata) = existing(&target, &place)?;
    let text = open::whole(file, &metadata, &place.display)?;
    let count = text.matches(old.as_ref()).count();
    if count == 0 {
        return Err(PathRefusal::invalid(
            "edit-no-match",
            "the old text does not occur",
        ));
    }
    // Counted with overlaps: `aa` occurs twice in `aaa`, and which one is
    // meant is not clear.
    if !replaces_all && has_second(&text, &old) {
        return Err(PathRefusal::invalid(
            "edit-ambiguous",
            "the old text occurs more than once",
        ));
    }
    let removed = count.saturating_mul(old.len());
    let added = count.saturating_mul(new.len());
    bounded(
        &place,
        text.len().saturating_sub(removed).saturating_add(added),
    )?;
    files.admit(&place, added.saturating_sub(removed))?;
    let edited = text.replace(old.as_ref(), &new);
    let bytes = put(&target, &[&edited])?;
    Ok(Done {
        value: json!({ "path": place.absolute_text(), "replacements": count }),
        bytes,
    })
}

/// `copy(from, to)`: from any readable regular file, into the workspace.
pub(crate) fn copy(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let from = files.roots.readable(arguments.raw_path(0)?)?;
    let to = files.roots.writable(arguments.raw_path(1)?)?;
    files.in_time()?;
    let source = match open::regular(from.root, &from.relative) {
        Ok((source, about)) => {
            // By the length that the open file has; `copy_up_to` bounds
            // what is really read.
            files.admit(&to, usize::try_from(about.len()).unwrap_or(usize::MAX))?;
            source
        }
        Err(OpenError::Io(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(PathRefusal::io(PathPurpose::Read, &from.display, &error));
        }
        Err(OpenError::Io(_) | OpenError::Folder | OpenError::NotRegular) => {
            let message = format!("not a regular file: {}", shown(&from.display));
            return Err(PathRefusal::invalid("copy-source-not-file", message));
        }
    };
    let _held = hold(&[&to.absolute]);
    let target = made(&to)?;
    let bytes =
        target.replace(|file| copy_up_to(source, file, limit::COPY_BYTES_MAX, &from.display))?;
    Ok(written(&to, bytes))
}

/// `move(from, to)`: a file or a folder, within the workspace.
pub(crate) fn move_entry(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let from = files.roots.writable(arguments.raw_path(0)?)?;
    let to = files.roots.writable(arguments.raw_path(1)?)?;
    // The workspace itself cannot move: its handle would follow it out of its place.
    if from.is_root() {
        return Err(PathRefusal::escape(PathPurpose::Write, &from.display));
    }
    if to.relative != from.relative && to.relative.starts_with(&from.relative) {
        let message = format!(
            "a folder cannot be moved into itself: {}",
            shown(&to.display)
        );
        return Err(PathRefusal::runtime("io", message));
    }
    files.in_time()?;
    // Both, in one order, so that two moves in opposite directions do not deadlock.
    let _held = hold(&[&from.absolute, &to.absolute]);
    let missing = || {
        let message = format!("no such file or folder: {}", shown(&from.display));
        PathRefusal::invalid("move-source-missing", message)
    };
    let source = ReplaceTarget::open(&from, Parents::Expect)?.ok_or_else(missing)?;
    match &source.existing {
        None => return Err(missing()),
        Some(metadata) if metadata.is_file() || metadata.is_dir() => {}
        Some(_) => return Err(PathRefusal::not_regular(&from.display)),
    }
    if source.existing.as_ref().is_some_and(Metadata::is_dir) {
        let opened = source.folder().open_dir_nofollow(source.name());
        let folder = opened.map_err(|error| source.refusal(&error))?;
        MovedTree::new(files, &from, &to).enter(&folder, Path::new(""), 1)?;
    }
    let target = made(&to)?;
    source.rename(&target)?;
    Ok(written(&to, 0))
}

/// `delete(path)`: a file; whether there was one.
pub(crate) fn delete(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.writable(arguments.raw_path(0)?)?;
    let is_folder = || {
        let message = format!("is a folder: {}", shown(&place.display));
        PathRefusal::invalid("delete-is-directory", message)
    };
    if place.is_root() {
        return Err(is_folder());
    }
    files.in_time()?;
    let _held = hold(&[&place.absolute]);
    let Some(target) = ReplaceTarget::open(&place, Parents::Expect)? else {
        return Ok(Done::plain(false));
    };
    match &target.existing {
        None => Ok(Done::plain(false)),
        Some(metadata) if metadata.is_dir() => Err(is_folder()),
        Some(_) => Ok(Done::plain(target.remove()?)),
    }
}

/// `deleteDir(path)`: a folder and all in it; how many entries, itself included.
pub(crate) fn delete_dir(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.writable(arguments.raw_path(0)?)?;
    if place.is_root() {
        return Err(PathRefusal::security(
            "deletedir-workspace-root",
            "the workspace itself cannot be deleted",
        ));
    }
    files.in_time()?;
    let Some(target) = ReplaceTarget::open(&place, Parents::Expect)? else {
        return Ok(Done::plain(0));
    };
    match &target.existing {
        None => return Ok(Done::plain(0)),
        Some(metadata) if metadata.is_dir() => {}
        Some(_) => {
            let message = format!("not a folder: {}", shown(&place.display));
            return Err(PathRefusal::invalid("deletedir-not-a-directory", message));
        }
    }
    let refusal = |error: io::Error| target.refusal(&error);
    let opened = || target.folder().open_dir_nofollow(target.name());
    // Counted first, so that a tree that is too large is left whole.
    let mut counting = Removal::new(files, &place, &target, Act::Count);
    counting.enter(&opened().map_err(refusal)?, &place.absolute, 1)?;
    let mut removing = Removal::new(files, &place, &target, Act::Remove);
    // Opened again, so that the second pass sees the folder as it is now.
    removing.enter(&opened().map_err(refusal)?, &place.absolute, 1)?;
    let removed = target.folder().remove_dir(target.name());
    removed.map_err(refusal)?;
    Ok(Done::plain(removing.count + 1))
}

/// A look at what is in a folder that is to move. Attack: what no tool may write at a place
/// comes there under the name of a folder around it, or leaves it that way.
struct MovedTree<'a> {
    files: &'a Files,
    from: &'a PathEntry<'a>,
    to: &'a PathEntry<'a>,
    programs: RepositoryPrograms,
    count: usize,
}

impl<'a> MovedTree<'a> {
    fn new(files: &'a Files, from: &'a PathEntry<'a>, to: &'a PathEntry<'a>) -> MovedTree<'a> {
        MovedTree {
            files,
            from,
            to,
            programs: from.programs(),
            count: 0,
        }
    }

    fn enter(&mut self, folder: &Dir, below: &Path, depth: usize) -> Result<(), PathRefusal> {
        // A folder of our own has no such names.
        if !self.from.is_operators {
            return Ok(());
        }
        check_depth(depth)?;
        let display = self.from.display.as_str();
        let refusal = |error: io::Error| PathRefusal::io(PathPurpose::Write, display, &error);
        let mut folders = Vec::new();
        for entry in folder.entries().map_err(refusal)? {
            self.files.in_time()?;
            self.count += 1;
            if self.count > limit::WALK_ENTRIES_MAX {
                return Err(too_many(limit::WALK_ENTRIES_MAX));
            }
            let entry = entry.map_err(refusal)?;
            let path = below.join(entry.file_name());
            let programs = &mut self.programs;
            let named = of_name(&entry.file_name().to_string_lossy())
                .or_else(|| programs.find(&self.from.absolute.join(&path)))
                .or_else(|| programs.find(&self.to.absolute.join(&path)));
            if let Some(what) = named {
                return Err(PathRefusal::protected(what, &path.to_string_lossy()));
            }
            if entry.file_type().map_err(refusal)?.is_dir() {
                folders.push(entry.file_name());
            }
        }
        if is_bare(|name| folder.symlink_metadata(name).is_ok()) {
            return Err(PathRefusal::protected(GIT_DATA, &below.to_string_lossy()));
        }
        for name in folders {
            let inner = folder.open_dir_nofollow(&name).map_err(refusal)?;
            self.enter(&inner, &below.join(&name), depth + 1)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Act {
    Count,
    Remove,
}

/// One pass over a tree that is to go. Links are removed, not followed.
struct Removal<'a> {
    files: &'a Files,
    target: &'a ReplaceTarget<'a>,
    is_operators: bool,
    programs: RepositoryPrograms,
    act: Act,
    count: usize,
}

impl<'a> Removal<'a> {
    fn new(
        files: &'a Files,
        place: &PathEntry<'_>,
        target: &'a ReplaceTarget<'a>,
        act: Act,
    ) -> Removal<'a> {
        Removal {
            files,
            target,
            is_operators: place.is_operators,
            programs: place.programs(),
            act,
            count: 0,
        }
    }

    fn enter(&mut self, folder: &Dir, path: &Path, depth: usize) -> Result<(), PathRefusal> {
        check_depth(depth)?;
        let target = self.target;
        let refusal = |error: io::Error| target.refusal(&error);
        let mut entries = Vec::new();
        for entry in folder.entries().map_err(refusal)? {
            self.files.in_time()?;
            self.count += 1;
            if self.count >= limit::DELETE_ENTRIES_MAX {
                return Err(too_many(limit::DELETE_ENTRIES_MAX));
            }
            let entry = entry.map_err(refusal)?;
            // In the counting pass already, so nothing is removed from a
            // folder that has to stay.
            self.check_touchable(&path.join(entry.file_name()))?;
            entries.push((entry.file_name(), entry.file_type().map_err(refusal)?));
        }
        if self.is_operators && is_bare(|name| folder.symlink_metadata(name).is_ok()) {
            return Err(PathRefusal::protected(GIT_DATA, &path.to_string_lossy()));
        }
        for (name, kind) in entries {
            self.files.in_time()?;
            match kind.is_dir() {
                true => {
                    // Attack: a folder swapped for a link is not entered.
                    let below = folder.open_dir_nofollow(&name).map_err(refusal)?;
                    self.enter(&below, &path.join(&name), depth + 1)?;
                    self.act_on(|| folder.remove_dir(&name))?;
                }
                false => self.act_on(|| folder.remove_file(&name))?,
            }
        }
        Ok(())
    }

    /// A folder that holds what no tool changes stays whole.
    fn check_touchable(&mut self, path: &Path) -> Result<(), PathRefusal> {
        if !self.is_operators {
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match of_name(&name).or_else(|| self.programs.find(path)) {
            None => Ok(()),
            Some(what) => Err(PathRefusal::protected(what, &name)),
        }
    }

    fn act_on(&self, remove: impl FnOnce() -> io::Result<()>) -> Result<(), PathRefusal> {
        match self.act {
            Act::Count => Ok(()),
            Act::Remove => remove().map_err(|error| self.target.refusal(&error)),
        }
    }
}

fn check_depth(depth: usize) -> Result<(), PathRefusal> {
    match depth > limit::WALK_DEPTH_MAX {
        true => {
            let message = format!("more than {} folders deep", limit::WALK_DEPTH_MAX);
            Err(PathRefusal::runtime("tree-too-deep", message))
        }
        false => Ok(()),
    }
}

fn too_many(most: usize) -> PathRefusal {
    PathRefusal::runtime("too-many-entries", format!("more than {most} entries"))
}

/// The target, its folders made.
fn made<'a>(place: &'a PathEntry<'_>) -> Result<ReplaceTarget<'a>, PathRefusal> {
    let missing = || {
        PathRefusal::io(
            PathPurpose::Write,
            &place.display,
            &io::ErrorKind::NotFound.into(),
        )
    };
    ReplaceTarget::open(place, Parents::Make)?.ok_or_else(missing)
}

/// The file under a target's name, opened without following anything.
fn existing(
    target: &ReplaceTarget<'_>,
    place: &PathEntry<'_>,
) -> Result<(File, Metadata), PathRefusal> {
    let opened = open::regular_entry(target.folder(), target.name().as_ref());
    opened.map_err(|error| match error {
        OpenError::Io(error) => target.refusal(&error),
        OpenError::Folder => target.refusal(&io::ErrorKind::IsADirectory.into()),
        OpenError::NotRegular => PathRefusal::not_regular(&place.display),
    })
}

fn put(target: &ReplaceTarget<'_>, parts: &[&str]) -> Result<u64, PathRefusal> {
    target.replace(|file| {
        let mut bytes = 0;
        for part in parts {
            let written = file.write_all(part.as_bytes());
            written.map_err(|error| target.refusal(&error))?;
            bytes += byte_count(part.len());
        }
        Ok(bytes)
    })
}

/// Copies within the kernel where it can.
fn copy_up_to(
    from: File,
    to: &mut File,
    bytes_max: u64,
    display: &str,
) -> Result<u64, PathRefusal> {
    let refusal = |error: io::Error| PathRefusal::io(PathPurpose::Write, display, &error);
    let mut to = to.try_clone().map_err(refusal)?.into_std();
    let mut from = from.into_std().take(bytes_max + 1);
    let bytes = io::copy(&mut from, &mut to).map_err(refusal)?;
    match bytes > bytes_max {
        true => Err(PathRefusal::too_large(display, bytes_max)),
        false => Ok(bytes),
    }
}

fn bounded(place: &PathEntry<'_>, length: usize) -> Result<(), PathRefusal> {
    match byte_count(length) > limit::WRITE_BYTES_MAX {
        true => Err(PathRefusal::too_large(
            &place.display,
            limit::WRITE_BYTES_MAX,
        )),
        false => Ok(()),
    }
}

fn written(place: &PathEntry<'_>, bytes: u64) -> Done {
    Done {
        value: place.absolute_text().into(),
        bytes,
    }
}

fn byte_count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Whether the text occurs again, overlapping itself or not.
fn has_second(text: &str, old: &str) -> bool {
    let first = text.find(old).and_then(|index| text.get(index..));
    let mut after = first.unwrap_or_default().chars();
    after.next();
    after.as_str().contains(old)
}
