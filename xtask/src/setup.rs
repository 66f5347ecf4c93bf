//! `cargo xtask setup`: checks that this machine has what the tasks need. Quiet if it
//! has; otherwise one sentence for each thing. It installs only the two parts of the
//! toolchain that `check` uses, and only where rustup manages it.
//!
//! Whatever a later lane needs (a database, a browser, the guest's compiler)
//! becomes one more line in `setup`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};

/// Cargo's commands that `check` uses, and the rustup component of each.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Programs that `cargo xtask guest` needs.
const GUEST: &[(&str, &[&str])] = &[
    ("python3", &["--version"]),
    ("python3", &["-m", "pip", "--version"]),
];

/// Checks the needs of building and starting the program.
pub(crate) fn for_serving(root: &Root) -> Result<TaskAnswer> {
    compiler(root)
}

/// The package of the database that tests start for themselves.
const POSTGRES: &str = "postgresql-15";

/// Where Debian's packages put its programs.
const POSTGRES_FOLDER: &str = "/usr/lib/postgresql";

/// Keeps the package from creating and starting a system database: tests start their
/// own.
const POSTGRES_QUIET: (&str, &str) = (
    "/etc/postgresql-common/createcluster.d",
    "create_main_cluster = false\n",
);

/// Programs of the system that tests start in the jail: a file of each, and its package.
const JAILED: &[(&str, &str)] = &[
    ("/usr/bin/curl", "curl"),
    ("/usr/bin/git", "git"),
    ("/usr/lib/python3/dist-packages/pip", "python3-pip"),
];

/// Answers no if something needed is missing and could not be installed.
pub(crate) fn setup(root: &Root) -> Result<TaskAnswer> {
    let mut answer = compiler(root)?;
    for (command, component) in COMPONENTS {
        match installed(root, command, component) {
            TaskAnswer::Yes => {}
            TaskAnswer::No => answer = TaskAnswer::No,
        }
    }
    for (program, arguments) in GUEST {
        if run::output(Command::new(program).args(*arguments)).is_none() {
            let call = arguments.join(" ");
            printer::note(&format!(
                "`{program} {call}` fails; the sandbox guest needs python3 with pip to be built"
            ));
            answer = TaskAnswer::No;
        }
    }
    if let TaskAnswer::No = postgres() {
        answer = TaskAnswer::No;
    }
    for (file, package) in JAILED {
        let is_there = || Path::new(file).exists();
        if let TaskAnswer::No = package_with(package, &is_there) {
            printer::note(&format!(
                "tests of the jail need the package {package}; install it by hand"
            ));
            answer = TaskAnswer::No;
        }
    }
    Ok(answer)
}

/// The database that tests start for themselves, from the system's packages.
fn postgres() -> TaskAnswer {
    let is_there = || {
        let versions = fs::read_dir(POSTGRES_FOLDER)
            .into_iter()
            .flatten()
            .flatten();
        let mut programs = versions.map(|version| version.path().join("bin/initdb"));
        programs.any(|program| program.exists())
    };
    if !is_there() {
        let (folder, text) = POSTGRES_QUIET;
        // Without it a database of the system would be started, which harms nothing.
        let _ = fs::create_dir_all(folder);
        let _ = fs::write(format!("{folder}/ringfence.conf"), text);
    }
    let answer = package_with(POSTGRES, &is_there);
    if answer == TaskAnswer::No {
        printer::note(&format!(
            "tests of databases need the package {POSTGRES}; install it by hand"
        ));
    }
    answer
}

/// Installs a package of the system unless what it brings is there.
fn package_with(package: &str, is_there: &dyn Fn() -> bool) -> TaskAnswer {
    if is_there() {
        return TaskAnswer::Yes;
    }
    printer::note(&format!("{package} is missing; installing it with apt-get"));
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args([
        "install",
        "--yes",
        "--no-install-recommends",
        package,
    ]);
    match (run::run(&mut install), is_there()) {
        (Ok(TaskAnswer::Yes), true) => TaskAnswer::Yes,
        _ => TaskAnswer::No,
    }
}

fn compiler(root: &Root) -> Result<TaskAnswer> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))
        .context("could not read the workspace manifest")?;
    let wanted = wanted(&manifest).context("the workspace manifest has no `rust-version`")?;
    let found = run::output(
        Command::new("rustc")
            .arg("--version")
            .current_dir(root.path()),
    )
    .unwrap_or_default();
    if version(&found) >= Some(wanted) {
        return Ok(TaskAnswer::Yes);
    }
    let (major, minor) = wanted;
    let found = match found.trim() {
        "" => "there is no rustc",
        found => found,
    };
    printer::note(&format!(
        "Rust {major}.{minor} or newer is needed: {found}; run `rustup update`"
    ));
    Ok(TaskAnswer::No)
}

fn installed(root: &Root, command: &str, component: &str) -> TaskAnswer {
    if run::output(&mut run::cargo(root, &[command, "--version"])).is_some() {
        return TaskAnswer::Yes;
    }
    printer::note(&format!(
        "{component} is missing; installing it with rustup"
    ));
    let mut rustup = Command::new("rustup");
    rustup
        .current_dir(root.path())
        .args(["component", "add", component]);
    match run::run(&mut rustup) {
        Ok(TaskAnswer::Yes) => TaskAnswer::Yes,
        Ok(TaskAnswer::No) | Err(_) => {
            printer::note(&format!(
                "rustup could not install {component}; install it by hand"
            ));
            TaskAnswer::No
        }
    }
}

/// The compiler the workspace asks for, as (major, minor).
fn wanted(manifest: &str) -> Option<(u32, u32)> {
    let table: toml::Table = manifest.parse().ok()?;
    let package = table.get("workspace")?.get("package")?;
    numbers(package.get("rust-version")?.as_str()?)
}

/// The version in what `rustc --version` prints.
fn version(printed: &str) -> Option<(u32, u32)> {
    numbers(printed.strip_prefix("rustc ")?)
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|mark: char| !mark.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
