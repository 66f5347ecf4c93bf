//! The root of the repository, from which every path in a task is counted.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder that holds the workspace manifest.
#[derive(Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Looks upward from the current folder. Fails outside the repository.
    pub(crate) fn find() -> Result<Self> {
        let here = env::current_dir().context("could not tell the current folder")?;
        let root = here
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .context("the current folder is outside the repository")?;
        Ok(Self(root.to_path_buf()))
    }

    /// The root of another checkout.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }
}
