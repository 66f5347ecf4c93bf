//! `cargo xtask gen`: files that are written by a program and committed because
//! people read them. The text comes from pure functions in the crates; this
//! module only knows where each belongs.

mod modules;

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::printer;
use crate::root::Root;
use crate::run::TaskAnswer;

/// A committed file and the function that makes its text.
#[derive(Debug)]
struct Generated {
    path: &'static str,
    text: fn() -> String,
}

/// A task runner that only serves is built without the types these come from.
#[cfg(not(feature = "gen"))]
const GENERATED: &[Generated] = &[];

#[cfg(feature = "gen")]
const GENERATED: &[Generated] = &[
    Generated {
        path: "docs/reference/reasons.md",
        text: model::reason::page,
    },
    Generated {
        path: "schema/safe-tool-spec.schema.json",
        text: model::document::schema_text,
    },
];

/// Writes every file whose text has changed.
pub(crate) fn write(root: &Root) -> Result<TaskAnswer> {
    refuse_without_types()?;
    for entry in GENERATED {
        if !entry.is_fresh(root.path())? {
            entry.write(root.path())?;
            printer::line(&format!("wrote {}", entry.path));
        }
    }
    let page = modules::page(root.path())?;
    if !is_text(root.path(), modules::PATH, &page)? {
        write_text(root.path(), modules::PATH, &page)?;
        printer::line(&format!("wrote {}", modules::PATH));
    }
    Ok(TaskAnswer::Yes)
}

/// Reports files that differ from their generated text.
pub(crate) fn compare(root: &Root) -> Result<TaskAnswer> {
    refuse_without_types()?;
    let mut answer = TaskAnswer::Yes;
    for entry in GENERATED {
        if !entry.is_fresh(root.path())? {
            printer::line(&format!("{}:1: stale; run `cargo xtask gen`", entry.path));
            answer = TaskAnswer::No;
        }
    }
    if !is_text(root.path(), modules::PATH, &modules::page(root.path())?)? {
        let path = modules::PATH;
        printer::line(&format!("{path}:1: stale; run `cargo xtask gen`"));
        answer = TaskAnswer::No;
    }
    Ok(answer)
}

fn refuse_without_types() -> Result<()> {
    if GENERATED.is_empty() {
        bail!("this task runner was built to serve only; use `cargo xtask`");
    }
    Ok(())
}

impl Generated {
    /// Whether the file under `root` exists and holds the text.
    fn is_fresh(&self, root: &Path) -> Result<bool> {
        is_text(root, self.path, &(self.text)())
    }

    fn write(&self, root: &Path) -> Result<()> {
        write_text(root, self.path, &(self.text)())
    }
}

fn is_text(root: &Path, path: &str, text: &str) -> Result<bool> {
    match fs::read(root.join(path)) {
        Ok(bytes) => Ok(bytes == text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("could not read `{path}`")),
    }
}

fn write_text(root: &Path, path: &str, text: &str) -> Result<()> {
    let place = root.join(path);
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("could not make the folder of `{path}`"))?;
    }
    fs::write(&place, text).with_context(|| format!("could not write `{path}`"))
}

#[cfg(test)]
mod tests;
