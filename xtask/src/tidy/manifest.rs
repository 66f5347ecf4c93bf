//! The parts of a `Cargo.toml` that the rules look at, with line numbers.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::tidy::finding::TidyFinding;
use crate::tidy::tree::Tree;

/// The root manifest.
pub(crate) const ROOT: &str = "Cargo.toml";

/// A dependency as one manifest writes it.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The name it has in code.
    pub(crate) key: String,
    /// The package, when it is not named like the key.
    package: Option<String>,
    /// Whether it is a folder of this repository.
    pub(crate) is_path: bool,
    /// Whether it says `workspace = true`.
    pub(crate) is_shared: bool,
    /// Whether only tests and benches get it.
    pub(crate) is_dev: bool,
    /// Where key and value stand in the text.
    span: Range<usize>,
}

impl Dependency {
    pub(crate) fn package(&self) -> &str {
        self.package.as_deref().unwrap_or(&self.key)
    }
}

/// A parsed manifest.
#[derive(Debug)]
pub(crate) struct Manifest<'t> {
    pub(crate) path: String,
    text: &'t str,
    table: DeTable<'t>,
}

impl<'t> Manifest<'t> {
    /// The manifest of the workspace. Fails with a finding.
    pub(crate) fn root(tree: &'t Tree) -> Result<Self, TidyFinding> {
        Self::read(tree, ROOT)
    }

    /// The manifest at `path`. Fails with a finding if it is missing or broken.
    pub(crate) fn read(tree: &'t Tree, path: &str) -> Result<Self, TidyFinding> {
        let Some(text) = tree.text(path) else {
            return Err(TidyFinding::new(path, 1, "the manifest is missing"));
        };
        match DeTable::parse(text) {
            Ok(table) => Ok(Self {
                path: path.to_owned(),
                text,
                table: table.into_inner(),
            }),
            Err(error) => {
                let start = error.span().map_or(0, |span| span.start);
                let sentence = format!("the manifest cannot be read: {}", error.message());
                Err(TidyFinding::new(path, line(text, start), sentence))
            }
        }
    }

    /// The paths of the members' manifests: every crate, and the task runner.
    pub(crate) fn members(tree: &Tree) -> Vec<String> {
        let crates = tree.crates();
        let folders = crates
            .iter()
            .map(|name| format!("crates/{name}/Cargo.toml"));
        folders.chain(["xtask/Cargo.toml".to_owned()]).collect()
    }

    /// The value at a path of keys.
    pub(crate) fn get(&self, keys: &[&str]) -> Option<&DeValue<'t>> {
        let (first, others) = keys.split_first()?;
        let mut value = self.table.get(*first)?.get_ref();
        for key in others {
            value = value.as_table()?.get(*key)?.get_ref();
        }
        Some(value)
    }

    pub(crate) fn str(&self, keys: &[&str]) -> Option<&str> {
        self.get(keys)?.as_str()
    }

    /// The line of a key; the first line if it is missing.
    pub(crate) fn line_of(&self, keys: &[&str]) -> usize {
        let Some((last, outer)) = keys.split_last() else {
            return 1;
        };
        let table = match outer {
            [] => Some(&self.table),
            outer => self.get(outer).and_then(DeValue::as_table),
        };
        let entry = table.and_then(|table| table.get_key_value(*last));
        entry.map_or(1, |(key, _)| line(self.text, key.span().start))
    }

    /// A finding at the line of a dependency.
    pub(crate) fn finding(&self, at: &Dependency, sentence: impl Into<String>) -> TidyFinding {
        TidyFinding::new(&self.path, line(self.text, at.span.start), sentence)
    }

    /// What the members may share.
    pub(crate) fn shared(&self) -> Vec<Dependency> {
        let table = self
            .get(&["workspace", "dependencies"])
            .and_then(DeValue::as_table);
        table
            .map(|table| dependencies(table, false))
            .unwrap_or_default()
    }

    /// All dependencies of a member: ordinary, dev, build and per target.
    pub(crate) fn dependencies(&self) -> Vec<Dependency> {
        let targets = self.get(&["target"]).and_then(DeValue::as_table);
        let targets = targets.into_iter().flat_map(DeTable::values);
        let tables = targets.filter_map(|target| target.get_ref().as_table());
        let mut found = Vec::new();
        for table in [&self.table].into_iter().chain(tables) {
            for (name, is_dev) in [
                ("dependencies", false),
                ("dev-dependencies", true),
                ("build-dependencies", false),
            ] {
                let section = table.get(name).and_then(|value| value.get_ref().as_table());
                found.extend(
                    section
                        .map(|section| dependencies(section, is_dev))
                        .unwrap_or_default(),
                );
            }
        }
        found
    }

    /// The comment after a dependency, on the line where it ends.
    pub(crate) fn comment_after(&self, dependency: &Dependency) -> Option<&str> {
        let after = self.text.get(dependency.span.end..)?.lines().next()?;
        let comment = after.trim_start().strip_prefix('#')?.trim();
        (!comment.is_empty()).then_some(comment)
    }
}

/// Packages of this repository by the key the members use for them.
pub(crate) fn ours(root: &Manifest<'_>) -> BTreeMap<String, String> {
    let shared = root
        .shared()
        .into_iter()
        .filter(|dependency| dependency.is_path);
    shared
        .map(|dependency| (dependency.key.clone(), dependency.package().to_owned()))
        .collect()
}

fn dependencies(table: &DeTable<'_>, is_dev: bool) -> Vec<Dependency> {
    let entries = table.iter().map(|(key, value)| {
        let settings = value.get_ref().as_table();
        let setting = |name: &str| settings.and_then(|settings| settings.get(name));
        let package = setting("package").and_then(|package| package.get_ref().as_str());
        let shared = setting("workspace").and_then(|shared| shared.get_ref().as_bool());
        Dependency {
            key: key.get_ref().to_string(),
            package: package.map(str::to_owned),
            is_path: setting("path").is_some(),
            is_shared: shared == Some(true),
            is_dev,
            span: key.span().start..value.span().end,
        }
    });
    entries.collect()
}

fn line(text: &str, position: usize) -> usize {
    1 + text
        .bytes()
        .take(position)
        .filter(|byte| *byte == b'\n')
        .count()
}
