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

/// Holds the pins that were installed, once the installation is complete.
const STAMP: &str = "installed";

/// Installs missing and outdated packages.
pub(crate) fn peers(root: &Root) -> Result<TaskAnswer> {
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
