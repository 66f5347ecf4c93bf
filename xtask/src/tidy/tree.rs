//! The files of the repository, as the rules see them: relative paths with
//! forward slashes, sizes, and the text of those that are text.
//!
//! Reading does not ask git, so it works in a plain copy too. It honours the
//! `.gitignore` files, of which it knows only the plain forms.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Larger files are findings anyway; their text is not read.
pub(crate) const FILE_BYTES_MAX: u64 = 512 * 1024;

/// A file without its path.
#[derive(Debug)]
pub(crate) struct TreeFile {
    pub(crate) bytes_count: u64,
    /// Nothing if the file is too large or not UTF-8.
    pub(crate) text: Option<String>,
}

/// All files by path.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, TreeFile>,
}

impl Tree {
    /// Reads everything under `root` that is not ignored. Symbolic links are
    /// not followed, so the walk ends.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "", &[])?;
        Ok(tree)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &TreeFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Every text file and its text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files()
            .filter_map(|(path, file)| Some((path, file.text.as_deref()?)))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text.as_deref()
    }

    /// Whether there is such a file, or a folder with a file in it.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(at, _)| at.starts_with(&folder))
    }

    /// The names of the folders in `crates/`, sorted.
    pub(crate) fn crates(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .files
            .keys()
            .filter_map(|path| path.strip_prefix("crates/")?.split_once('/'))
            .map(|(name, _)| name)
            .collect();
        names.dedup();
        names
    }

    fn read_folder(&mut self, root: &Path, folder: &str, outer: &[Ignore]) -> Result<()> {
        let mut ignored = outer.to_vec();
        if let Ok(text) = fs::read_to_string(root.join(folder).join(".gitignore")) {
            ignored.extend(Ignore::parse(folder, &text)?);
        }
        let entries = fs::read_dir(root.join(folder))
            .with_context(|| format!("could not list the folder `{folder}`"))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("could not list the folder `{folder}`"))?;
            let Ok(name) = entry.file_name().into_string() else {
                bail!("a file name in `{folder}` is not UTF-8");
            };
            let path = join(folder, &name);
            if name == ".git" || ignored.iter().any(|ignore| ignore.covers(&path, &name)) {
                continue;
            }
            let kind = entry
                .file_type()
                .with_context(|| format!("could not inspect `{path}`"))?;
            if kind.is_dir() {
                self.read_folder(root, &path, &ignored)?;
            } else if kind.is_file() {
                self.read_file(root, path)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, root: &Path, path: String) -> Result<()> {
        let place = root.join(&path);
        let bytes_count = place
            .metadata()
            .with_context(|| format!("could not inspect `{path}`"))?
            .len();
        let text = if bytes_count > FILE_BYTES_MAX {
            None
        } else {
            let bytes = fs::read(&place).with_context(|| format!("could not read `{path}`"))?;
            String::from_utf8(bytes).ok()
        };
        self.files.insert(path, TreeFile { bytes_count, text });
        Ok(())
    }
}

/// One line of a `.gitignore`, with paths counted from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ignore {
    /// `/target`: this path.
    Path(String),
    /// `node_modules`: this name at any depth.
    Name(String),
    /// `*.log`: names that end so.
    Suffix(String),
}

impl Ignore {
    /// Fails on a form it does not know, because guessing would hide files.
    fn parse(folder: &str, text: &str) -> Result<Vec<Self>> {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| {
                let plain = line.trim_end_matches('/');
                let inner = plain.trim_start_matches(['/', '*']);
                if inner.is_empty() || inner.contains(['*', '?', '[', '!', '\\']) {
                    bail!("`{line}` in a .gitignore is a form the tidy task does not know");
                }
                match (plain.strip_prefix('*'), plain.strip_prefix('/')) {
                    (Some(suffix), _) if suffix == inner => Ok(Self::Suffix(inner.to_owned())),
                    (None, Some(path)) if path == inner => Ok(Self::Path(join(folder, inner))),
                    (None, None) if plain.contains('/') => Ok(Self::Path(join(folder, inner))),
                    (None, None) => Ok(Self::Name(inner.to_owned())),
                    _ => bail!("`{line}` in a .gitignore is a form the tidy task does not know"),
                }
            })
            .collect()
    }

    fn covers(&self, path: &str, name: &str) -> bool {
        match self {
            Self::Path(ignored) => ignored == path,
            Self::Name(ignored) => ignored == name,
            Self::Suffix(suffix) => name.ends_with(suffix.as_str()),
        }
    }
}

fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

#[cfg(test)]
impl Tree {
    /// A tree of text files, for tests.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(Self::default(), |tree, (path, text)| tree.with(path, text))
    }

    /// The same tree with a file added or replaced.
    pub(crate) fn with(mut self, path: &str, text: &str) -> Self {
        let bytes_count = text.len() as u64;
        self.files.insert(
            path.to_owned(),
            TreeFile {
                bytes_count,
                text: Some(text.to_owned()),
            },
        );
        self
    }

    /// The same tree with a file of which only the size is known.
    pub(crate) fn with_binary(mut self, path: &str, bytes_count: u64) -> Self {
        self.files.insert(
            path.to_owned(),
            TreeFile {
                bytes_count,
                text: None,
            },
        );
        self
    }
}

#[cfg(test)]
mod tests;
