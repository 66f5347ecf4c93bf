//! `cargo xtask release VERSION`: the one command that makes a release.
//!
//! Cheap steps come before expensive ones, and checks before changes: the version and
//! the changelog agree, the tree is clean and untagged, the tests were green for this
//! very commit or are run, the files are built twice in two folders and are the same
//! bytes, then they are signed and the commit is tagged. Nothing is published: pushing
//! the tag and uploading the files stay with the maintainer.

mod changelog;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::ci;
use crate::dist;
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer, TaskStep};

/// Where the second build happens: a clone in a folder of its own.
const AGAIN: &str = "target/release-again";

/// The notes of the release, beside its files.
const NOTES: &str = "NOTES.md";

/// The arguments of a release.
#[derive(Debug)]
pub(crate) struct ReleaseWish {
    /// Such as `0.2.0`.
    pub(crate) version: String,
    /// A key of OpenSSH that signs the checksums and the tag.
    pub(crate) key: Option<PathBuf>,
    /// Whether anything is done after the checks.
    pub(crate) extent: Extent,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Check, and say what would be done.
    DryRun,
    /// Do it.
    Whole,
}

/// The long parts, so that tests can stand in for them.
struct Parts {
    test: TaskStep,
    build: fn(&Root, Option<&Path>) -> Result<TaskAnswer>,
}

/// Makes a release.
pub(crate) fn release(root: &Root, wish: &ReleaseWish) -> Result<TaskAnswer> {
    let parts = Parts {
        test: ci::ci,
        build: dist::dist,
    };
    perform(root, wish, &parts)
}

fn perform(root: &Root, wish: &ReleaseWish, parts: &Parts) -> Result<TaskAnswer> {
    printer::heading("1 of 5: version, changelog, tree and tag");
    let changes = check(root, wish)?;
    let commit = git(root, &["rev-parse", "HEAD"])?;
    let is_green = ci::green_commit(root).is_some_and(|green| green == commit);
    if wish.extent == Extent::DryRun {
        for line in plan(wish, &commit, is_green) {
            printer::line(&line);
        }
        return Ok(TaskAnswer::Yes);
    }
    printer::heading("2 of 5: the tests");
    if is_green {
        printer::note("   they were green for this commit and a clean tree");
    } else if (parts.test)(root)? == TaskAnswer::No {
        return Ok(TaskAnswer::No);
    }
    // A test run may leave something behind.
    check_tree(root)?;
    printer::heading("3 of 5: the files");
    if (parts.build)(root, wish.key.as_deref())? == TaskAnswer::No {
        return Ok(TaskAnswer::No);
    }
    printer::heading("4 of 5: the files again, from a clone in another folder");
    if build_again(root, &commit, parts)? == TaskAnswer::No {
        return Ok(TaskAnswer::No);
    }
    printer::heading("5 of 5: notes and tag");
    let notes = root.join(dist::FOLDER).join(NOTES);
    let text = notes_text(wish, &changes, &sums(root)?);
    fs::write(&notes, text).with_context(|| format!("could not write {}", notes.display()))?;
    make_tag(root, wish, &notes)?;
    printer::line(&notes.display().to_string());
    printer::note(&format!(
        "   tagged v{0}; publish it with `git push origin v{0}` and the files above",
        wish.version
    ));
    Ok(TaskAnswer::Yes)
}

/// Every check that needs no build. Returns the release's changes.
fn check(root: &Root, wish: &ReleaseWish) -> Result<String> {
    let version = wish.version.as_str();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers: Vec<_> = version.split('.').collect();
    ensure!(
        numbers.len() == 3 && numbers.iter().all(|part| is_number(part)),
        "`{version}` is not a version; write three numbers, such as `0.2.0`"
    );
    let manifest = fs::read_to_string(root.join("Cargo.toml"))
        .context("could not read the workspace manifest")?;
    let stated = workspace_version(&manifest).context("Cargo.toml states no version")?;
    ensure!(
        stated == version,
        "Cargo.toml says {stated}, not {version}; set `version` below [workspace.package]"
    );
    let log = fs::read_to_string(root.join("CHANGELOG.md")).context("there is no CHANGELOG.md")?;
    let changes = changelog::changes(&log, version)?;
    if let Some(key) = &wish.key {
        ensure!(key.is_file(), "there is no key `{}`", key.display());
    }
    check_tree(root)?;
    let tags = git(root, &["tag", "--list", &format!("v{version}")])?;
    ensure!(
        tags.is_empty(),
        "the tag v{version} exists; a release is made once, so choose the next version"
    );
    Ok(changes)
}

fn check_tree(root: &Root) -> Result<()> {
    let changed = git(root, &["status", "--porcelain"])?;
    let first = changed.lines().next().unwrap_or_default();
    ensure!(
        changed.is_empty(),
        "the tree is not clean (`{first}`); commit or remove what changed"
    );
    Ok(())
}

/// The plan that a dry run prints.
fn plan(wish: &ReleaseWish, commit: &str, is_green: bool) -> Vec<String> {
    let version = &wish.version;
    let tests = match is_green {
        true => "take the tests as run: they were green for this commit",
        false => "run all tests (`cargo xtask ci`)",
    };
    let signed = match &wish.key {
        Some(key) => format!("sign checksums and tag with {}", key.display()),
        None => "sign nothing: no --sign KEY was given".to_owned(),
    };
    vec![
        format!("version, changelog, tree and tag are in order for {version} at {commit}"),
        format!("would {tests}"),
        format!("would build {} twice and compare", dist::FOLDER),
        format!("would {signed}"),
        format!("would write {NOTES} and tag v{version}"),
    ]
}

/// Builds the same commit in another folder and compares the checksums, file by file.
fn build_again(root: &Root, commit: &str, parts: &Parts) -> Result<TaskAnswer> {
    let folder = root.join(AGAIN);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("could not remove {AGAIN}"))?;
    }
    git(
        root,
        &["clone", "--quiet", "--shared", "--no-checkout", ".", AGAIN],
    )?;
    let clone = Root::at(folder.clone());
    git(&clone, &["checkout", "--quiet", "--detach", commit])?;
    if (parts.build)(&clone, None)? == TaskAnswer::No {
        return Ok(TaskAnswer::No);
    }
    let (first, second) = (sums(root)?, sums(&clone)?);
    if first == second {
        fs::remove_dir_all(&folder).with_context(|| format!("could not remove {AGAIN}"))?;
        return Ok(TaskAnswer::Yes);
    }
    for line in first.lines().filter(|line| !second.contains(*line)) {
        let name = line.split_whitespace().nth(1).unwrap_or(line);
        printer::note(&format!("   {name} differs between the two builds"));
    }
    printer::note(&format!(
        "the release is not reproducible; both builds are there: {} and {AGAIN}/{}",
        dist::FOLDER,
        dist::FOLDER
    ));
    Ok(TaskAnswer::No)
}

fn sums(root: &Root) -> Result<String> {
    let path = root.join(dist::FOLDER).join(dist::SUMS);
    fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
}

/// The text of the tag and of the release page.
fn notes_text(wish: &ReleaseWish, changes: &str, sums: &str) -> String {
    let mut text = format!("# Ringfence {}\n\n{}\n", wish.version, changes.trim_end());
    text.push_str("\n## Checksums\n\n");
    for line in sums.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    if wish.key.is_some() {
        text.push_str(&format!(
            "\n`{0}.sig` signs `{0}`; docs/guide/install.md says how to verify it.\n",
            dist::SUMS
        ));
    }
    text
}

/// A tag with the notes, signed where there is a key.
fn make_tag(root: &Root, wish: &ReleaseWish, notes: &Path) -> Result<()> {
    let name = format!("v{}", wish.version);
    let mut command = Command::new("git");
    command.current_dir(root.path());
    if let Some(key) = &wish.key {
        let key = std::path::absolute(key).context("could not tell the path of the key")?;
        command.args(["-c", "gpg.format=ssh", "-c"]);
        command.arg(format!("user.signingkey={}", key.display()));
    }
    // Lines of the notes that begin with `#` are headings here, not comments.
    command.args(["tag", "--cleanup=verbatim"]);
    command.arg(match wish.key {
        Some(_) => "--sign",
        None => "--annotate",
    });
    command.arg("--file").arg(notes).arg(&name);
    match run::run(&mut command)? {
        TaskAnswer::Yes => Ok(()),
        TaskAnswer::No => bail!("git could not make the tag {name}"),
    }
}

fn workspace_version(manifest: &str) -> Option<String> {
    let table: toml::Table = manifest.parse().ok()?;
    let package = table.get("workspace")?.get("package")?;
    Some(package.get("version")?.as_str()?.to_owned())
}

/// The output of git, without the final line break.
fn git(root: &Root, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.current_dir(root.path()).args(arguments);
    let text = run::output(&mut command);
    let text = text.with_context(|| format!("`git {}` failed", arguments.join(" ")))?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
