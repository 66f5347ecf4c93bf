//! The functions that walk a tree: `find` and `searchInFiles`. Links are neither
//! followed nor entered.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, FileType};
use regex::Regex;
use serde_json::{Value, json};

use crate::files::Files;
use crate::files::answer::{Done, Items};
use crate::files::argument::{FileArguments, Options};
use crate::files::limit;
use crate::files::line::lines;
use crate::files::open;
use crate::files::pattern::{Case, Expression, PatternError, glob};
use crate::files::refusal::{PathPurpose, PathRefusal, leads_out, shown};
use crate::files::root::PathEntry;

/// `find(dir = '.', glob = '*', {maxDepth, type}?)`: by name, a folder before
/// what is in it, the start left out.
pub(crate) fn find(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.readable(arguments.raw_path_or(0, ".")?)?;
    let glob = glob_argument(arguments, "find-invalid-glob")?;
    let options = arguments.options(2)?;
    let wanted = Wanted::new(options)?;
    let start = start(&place, "find-not-a-directory")?;
    let mut items = Items::new(limit::FIND_ENTRIES_MAX, "too-many-entries");
    let mut walk = Walk::new(files, options)?;
    walk.enter(&start, &place.absolute, 1, &mut |entry| {
        let name = entry.name.to_string_lossy();
        if wanted.includes(entry.kind) && glob.is_match(&name) {
            items.push_text(files.roots.display(entry.absolute))?;
        }
        Ok(Next::Onward)
    })?;
    Ok(Done::plain(items.into_value()))
}

/// `searchInFiles(dir, glob, pattern, {caseInsensitive, maxDepth, limit}?)`.
/// Files that cannot be read, are too large or are not UTF-8 are skipped, and so
/// are lines too long for the pattern.
pub(crate) fn search_in_files(
    files: &Files,
    arguments: FileArguments<'_>,
) -> Result<Done, PathRefusal> {
    let raw_pattern = arguments.text(2)?.filter(|pattern| !pattern.is_empty());
    let Some(raw_pattern) = raw_pattern else {
        return Err(PathRefusal::invalid(
            "search-pattern-required",
            "pattern required",
        ));
    };
    let place = files.roots.readable(arguments.raw_path_or(0, ".")?)?;
    let glob = glob_argument(arguments, "search-invalid-glob")?;
    let options = arguments.options(3)?;
    let case = Case::from_flag(options.flag("caseInsensitive"));
    let pattern = Expression::new(&raw_pattern, case).map_err(|PatternError(what)| {
        PathRefusal::invalid("search-invalid-pattern", format!("invalid pattern: {what}"))
    })?;
    let start = start(&place, "search-not-a-directory")?;
    let lines_max = options.bound("limit", limit::SEARCH_LINES_MAX)?;
    let mut items = Items::new(lines_max, "too-many-lines");
    let mut bytes = 0_usize;
    let mut walk = Walk::new(files, options)?;
    walk.enter(&start, &place.absolute, 1, &mut |entry| {
        if !entry.kind.is_file() || !glob.is_match(&entry.name.to_string_lossy()) {
            return Ok(Next::Onward);
        }
        // By name alone: an entry that became a link since it was listed is not followed.
        let opened = open::regular_entry(entry.folder, Path::new(&entry.name));
        let Ok((file, metadata)) = opened else {
            return Ok(Next::Onward);
        };
        let Ok(text) = open::whole(file, &metadata, "") else {
            return Ok(Next::Onward);
        };
        bytes = bytes.saturating_add(text.len());
        let file = files.roots.display(entry.absolute);
        search(files, &text, &file, &pattern, &mut items, lines_max)
    })?;
    Ok(Done::from_content(items.into_value(), bytes))
}

/// The matching lines of one file.
fn search(
    files: &Files,
    text: &str,
    file: &str,
    pattern: &Expression,
    items: &mut Items,
    lines_max: usize,
) -> Result<Next, PathRefusal> {
    for (index, line) in lines(text).enumerate() {
        files.in_time_at(index, line)?;
        if pattern.takes(line) && pattern.regex.is_match(line) {
            let found = json!({ "file": file, "line": index + 1, "text": line });
            items.push(found, file.len() + line.len())?;
        }
        if items.count() >= lines_max {
            return Ok(Next::Stop);
        }
    }
    Ok(Next::Onward)
}

/// Which entries `find` gives back.
enum Wanted {
    All,
    Files,
    Folders,
}

impl Wanted {
    fn new(options: Options<'_>) -> Result<Wanted, PathRefusal> {
        match options.get("type") {
            Value::Null => Ok(Wanted::All),
            Value::String(word) if word == "file" => Ok(Wanted::Files),
            Value::String(word) if word == "dir" => Ok(Wanted::Folders),
            _ => Err(PathRefusal::invalid(
                "find-invalid-type",
                "type is `file` or `dir`",
            )),
        }
    }

    fn includes(&self, kind: FileType) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Files => kind.is_file(),
            Wanted::Folders => kind.is_dir(),
        }
    }
}

/// One walk over a tree, within its bounds.
struct Walk<'a> {
    files: &'a Files,
    depth_max: usize,
    entries_count: usize,
}

/// What a walk shows its visitor.
struct Entry<'a> {
    folder: &'a Dir,
    name: OsString,
    absolute: &'a Path,
    kind: FileType,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Onward,
    Stop,
}

impl<'a> Walk<'a> {
    fn new(files: &'a Files, options: Options<'_>) -> Result<Walk<'a>, PathRefusal> {
        Ok(Walk {
            files,
            depth_max: options.bound("maxDepth", usize::MAX)?,
            entries_count: 0,
        })
    }

    /// Visits what is in a folder, and what is below that.
    fn enter(
        &mut self,
        folder: &Dir,
        absolute: &Path,
        depth: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> Result<Next, PathRefusal>,
    ) -> Result<Next, PathRefusal> {
        for (name, kind) in self.entries(folder)? {
            self.files.in_time()?;
            let path: PathBuf = absolute.join(&name);
            let entry = Entry {
                folder,
                name,
                absolute: &path,
                kind,
            };
            if visit(&entry)? == Next::Stop {
                return Ok(Next::Stop);
            }
            // A bound of the script's own ends quietly; the one below is a refusal.
            if !kind.is_dir() || depth >= self.depth_max {
                continue;
            }
            if depth >= limit::WALK_DEPTH_MAX {
                let message = format!("more than {} folders deep", limit::WALK_DEPTH_MAX);
                return Err(PathRefusal::runtime("tree-too-deep", message));
            }
            // Attack: the folder may have become a link since it was listed. One
            // that cannot be entered is passed over.
            if let Ok(below) = folder.open_dir_nofollow(&entry.name)
                && self.enter(&below, &path, depth + 1, visit)? == Next::Stop
            {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Onward)
    }

    /// The entries of a folder by name; none if it cannot be listed.
    fn entries(&mut self, folder: &Dir) -> Result<Vec<(OsString, FileType)>, PathRefusal> {
        let mut entries = Vec::new();
        // A folder that may not be read is passed over, as `find` does it.
        let Ok(listed) = folder.entries() else {
            return Ok(entries);
        };
        for entry in listed.flatten() {
            self.files.in_time()?;
            self.entries_count += 1;
            if self.entries_count > limit::WALK_ENTRIES_MAX {
                let message = format!("more than {} entries", limit::WALK_ENTRIES_MAX);
                return Err(PathRefusal::runtime("too-many-entries", message));
            }
            if let Ok(kind) = entry.file_type() {
                entries.push((entry.file_name(), kind));
            }
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(entries)
    }
}

/// The folder a walk starts in.
fn start(place: &PathEntry<'_>, reason: &'static str) -> Result<Dir, PathRefusal> {
    place.root.open_dir(&place.relative).map_err(|error| {
        let is_missing = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        );
        match is_missing && !leads_out(&error) {
            true => {
                PathRefusal::invalid(reason, format!("not a folder: {}", shown(&place.display)))
            }
            false => PathRefusal::io(PathPurpose::Read, &place.display, &error),
        }
    })
}

fn glob_argument(arguments: FileArguments<'_>, reason: &'static str) -> Result<Regex, PathRefusal> {
    let raw_glob = arguments.text(1)?.filter(|glob| !glob.is_empty());
    let raw_glob = raw_glob.as_deref().unwrap_or("*");
    glob(raw_glob)
        .map_err(|PatternError(what)| PathRefusal::invalid(reason, format!("invalid glob: {what}")))
}
