//! `cargo xtask peers`: clients and suites that other people wrote, for tests against our
//! server. Everything goes into `target/peers`, at the versions `peers/` pins, and nothing
//! is installed anywhere else. Quick when nothing has changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};

/// The files that npm reads.
const NODE: &[&str] = &["package.json", "package-lock.json", ".npmrc"];

/// The file that pip reads.
const PYTHON: &str = "requirements.txt";

/// The same for packages of the older Python SDK, which cannot be installed beside the
/// newer one.
const PROXIES: &str = "proxies.txt";

/// Packages of Debian, by name: they are unpacked and not installed.
const DEBIAN: &str = "debian.txt";

/// Holds what was installed, word for word, once all of it is there.
const STAMP: &str = "installed";

/// Installs missing and outdated packages.
pub(crate) fn peers(root: &Root) -> Result<TaskAnswer> {
    let debian = root.join("target/peers/debian");
    let (node, python, proxies) = (
        root.join("target/peers/node"),
        root.join("target/peers/python"),
        root.join("target/peers/proxies"),
    );
    for (folder, wanted, install) in [
        (node, pins(root, NODE)?, install_node as Install),
        (python, pins(root, &[PYTHON])?, |root, folder| {
            install_python(root, folder, PYTHON)
        }),
        (proxies, pins(root, &[PROXIES])?, |root, folder| {
            install_python(root, folder, PROXIES)
        }),
        (debian, pins(root, &[DEBIAN])?, install_debian as Install),
    ] {
        if fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted) {
            continue;
        }
        printer::heading(&format!("installing into {}", folder.display()));
        // Half of an older install would be worse than none.
        if folder.exists() {
            fs::remove_dir_all(&folder).context("could not remove the older packages")?;
        }
        fs::create_dir_all(&folder).context("could not make the folder of the packages")?;
        match install(root, &folder)? {
            TaskAnswer::Yes => {}
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
        fs::write(folder.join(STAMP), wanted).context("could not write the stamp")?;
    }
    Ok(TaskAnswer::Yes)
}

/// Bubblewrap, which the bench of the jail compares with: Debian's package, unpacked and not
/// installed, where the system has none. Without it the comparison is left out.
pub(crate) fn bubblewrap(root: &Root) {
    let folder = root.join("target/peers/bubblewrap");
    if Path::new("/usr/bin/bwrap").exists() || folder.join("usr/bin/bwrap").exists() {
        return;
    }
    let unpacked = fs::create_dir_all(&folder).is_ok()
        && run::output(
            Command::new("apt-get")
                .args(["download", "bubblewrap"])
                .current_dir(&folder),
        )
        .is_some()
        && fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "deb"))
            .all(|package| {
                let mut unpack = Command::new("dpkg");
                unpack.arg("-x").arg(package).arg(&folder);
                matches!(run::run(&mut unpack), Ok(TaskAnswer::Yes))
            });
    if !unpacked {
        printer::note("Debian's bubblewrap cannot be downloaded; the jail is not compared with it");
    }
}

type Install = fn(&Root, &Path) -> Result<TaskAnswer>;

/// The files that name every version, one after the other.
fn pins(root: &Root, names: &[&str]) -> Result<String> {
    let mut text = String::new();
    for name in names {
        let path = format!("peers/{name}");
        text += &fs::read_to_string(root.join(&path))
            .with_context(|| format!("could not read `{path}`"))?;
    }
    Ok(text)
}

fn install_node(root: &Root, folder: &Path) -> Result<TaskAnswer> {
    if run::output(Command::new("npm").arg("--version")).is_none() {
        bail!("`npm --version` fails; tests with real clients need npm, from Node 20 or newer");
    }
    for name in NODE {
        fs::copy(root.join(&format!("peers/{name}")), folder.join(name))
            .with_context(|| format!("could not copy `peers/{name}`"))?;
    }
    let mut npm = Command::new("npm");
    // Not `npm ci`: it wants the packages of every platform in the lockfile, and npm on Linux
    // leaves those of others out.
    npm.args(["install", "--no-save", "--loglevel=error"])
        .current_dir(folder);
    run::run(&mut npm)
}

/// Downloads packages of the system's distribution and unpacks them into the folder. Their
/// scripts do not run, so nothing is started and nothing changes elsewhere.
fn install_debian(root: &Root, folder: &Path) -> Result<TaskAnswer> {
    for name in pins(root, &[DEBIAN])?.split_whitespace() {
        let mut download = Command::new("apt-get");
        download.args(["download", name]).current_dir(folder);
        if !matches!(run::run(&mut download), Ok(TaskAnswer::Yes)) {
            // A fresh machine has no lists of packages.
            let updated = run::run(Command::new("apt-get").arg("update"));
            if !matches!(updated, Ok(TaskAnswer::Yes))
                || !matches!(run::run(&mut download), Ok(TaskAnswer::Yes))
            {
                bail!("`apt-get download {name}` fails; tests with real programs need Debian");
            }
        }
    }
    let files = fs::read_dir(folder).context("could not list the packages")?;
    for file in files.flatten().map(|entry| entry.path()) {
        if file.extension().is_none_or(|ending| ending != "deb") {
            continue;
        }
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&file).arg(folder);
        match run::run(&mut unpack)? {
            TaskAnswer::Yes => fs::remove_file(&file).context("could not remove a package")?,
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
    }
    Ok(TaskAnswer::Yes)
}

fn install_python(root: &Root, folder: &Path, pins: &str) -> Result<TaskAnswer> {
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(folder);
    if !matches!(run::run(&mut environment), Ok(TaskAnswer::Yes)) {
        bail!("`python3 -m venv` fails; tests with real clients need Python 3.10 with venv");
    }
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ])
    .arg("--requirement")
    .arg(root.join("peers").join(pins));
    run::run(&mut pip)
}
