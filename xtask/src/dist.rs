//! `cargo xtask dist`: everything a release consists of, made from a checkout in one
//! command: an archive, a Debian package, a container image, a list of what is inside
//! (SBOM), licences, checksums, and signatures where a key is given.
//!
//! The same commit gives the same bytes: files are sorted, times are the commit's,
//! owners are root.

mod deb;
mod dependencies;
mod image;
mod licences;
mod sbom;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::build;
use crate::guest;
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};
use crate::studio;

use dependencies::Dependencies;
use stage::Stage;

/// The time of a cold build of the program, on two cores.
const USUAL: Duration = Duration::from_secs(12 * 60);

/// Bytes the stripped program may have.
const PROGRAM_BYTES_MAX: u64 = 40 << 20;

/// Packages the program may be built from, ours included. Cargo's metadata includes
/// features of every member of the workspace, so this is a little more than is linked.
const SHIPPED_COUNT_MAX: usize = 400;

/// Where the files of a release are made.
pub(crate) const FOLDER: &str = "target/release-files";

/// The checksums of everything else.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// The program as it is released.
pub(crate) const PROGRAM: &str = "target/dist/ringfence";

/// The purpose a signature names, so that it is valid for nothing else.
const SIGNED_FOR: &str = "ringfence-release";

/// The inputs of a release.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) version: String,
    /// The processor, as Rust names it.
    pub(crate) arch: &'static str,
    /// When the commit was made, in seconds since 1970.
    pub(crate) time: u64,
    /// `target/release-files`.
    pub(crate) folder: PathBuf,
}

impl Release {
    /// `ringfence-0.1.0-x86_64-linux`.
    pub(crate) fn name(&self) -> String {
        format!("ringfence-{}-{}-linux", self.version, self.arch)
    }
}

/// Makes a release. `key` is a key of OpenSSH that signs it.
pub(crate) fn dist(root: &Root, key: Option<&Path>) -> Result<TaskAnswer> {
    match guest::ensure(root)?.and_then(|| studio::ensure(root))? {
        TaskAnswer::Yes => {}
        TaskAnswer::No => return Ok(TaskAnswer::No),
    }
    match build_program(root)? {
        TaskAnswer::Yes => {}
        TaskAnswer::No => return Ok(TaskAnswer::No),
    }
    pack(root, &root.join(PROGRAM), key, Some(PROGRAM_BYTES_MAX))
}

/// Builds the program as it is released, into [`PROGRAM`].
pub(crate) fn build_program(root: &Root) -> Result<TaskAnswer> {
    printer::heading("the program");
    let arguments = [
        "build",
        "--locked",
        "--profile",
        "dist",
        "--bin",
        "ringfence",
    ];
    let mut command = run::cargo(root, &arguments);
    command.args(build::MESSAGES);
    set_flags(root, &mut command)?;
    build::watch(root, &mut command, build::PROGRAM, USUAL)
}

/// Packs a program that was built, of whatever size.
pub(crate) fn pack_given(root: &Root, program: &Path, key: Option<&Path>) -> Result<TaskAnswer> {
    pack(root, program, key, None)
}

fn pack(
    root: &Root,
    program: &Path,
    key: Option<&Path>,
    bytes_max: Option<u64>,
) -> Result<TaskAnswer> {
    let dependencies = Dependencies::read(root)?;
    let release = Release {
        version: dependencies.version()?,
        arch: std::env::consts::ARCH,
        time: commit_time(root),
        folder: root.join(FOLDER),
    };
    let shipped_count = dependencies.shipped().len();
    ensure!(
        shipped_count <= SHIPPED_COUNT_MAX,
        "the program is built from {shipped_count} packages, and may be from {SHIPPED_COUNT_MAX}; \
         CONTRIBUTING.md argues the number"
    );
    if release.folder.exists() {
        fs::remove_dir_all(&release.folder).with_context(|| format!("could not empty {FOLDER}"))?;
    }
    fs::create_dir_all(&release.folder).with_context(|| format!("could not make {FOLDER}"))?;
    printer::heading("what is inside");
    let stage = Stage::make(root, &release, &dependencies, program)?;
    let bytes = fs::metadata(stage.program())?.len();
    printer::note(&format!(
        "   the program has {} KiB and is built from {shipped_count} packages",
        bytes >> 10
    ));
    if let Some(max) = bytes_max {
        ensure!(
            bytes <= max,
            "the stripped program has {bytes} bytes, and may have {max}"
        );
    }
    printer::heading("the archive");
    let archive = stage.archive(&release)?;
    printer::heading("the Debian package");
    let package = deb::make(root, &release, &stage)?;
    printer::heading("the container image");
    let image = image::make(&release, &stage)?;
    let mut files = vec![archive, package, image];
    for loose in [sbom::FILE, stage::DEBUG] {
        let path = stage.loose(loose);
        if path.exists() {
            files.push(path);
        }
    }
    let sums = release.folder.join(SUMS);
    fs::write(&sums, checksums(&files)?).context("could not write the checksums")?;
    if let Some(key) = key {
        sign(&sums, key)?;
        files.push(release.folder.join(format!("{SUMS}.sig")));
    }
    files.push(sums);
    stage.remove()?;
    for file in files {
        printer::line(&file.display().to_string());
    }
    Ok(TaskAnswer::Yes)
}

/// What a release adds to the flags of compilers. Paths of this machine stay out of the
/// program and of its debug information: the same
/// commit gives the same bytes in every folder.
fn set_flags(root: &Root, command: &mut Command) -> Result<()> {
    let cargo_home = match std::env::var_os("CARGO_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let places = [(root.path(), "/ringfence"), (&cargo_home, "/cargo")];
    let mut rust = Vec::new();
    let mut c = Vec::new();
    for (from, to) in places {
        let from = from
            .to_str()
            .context("a path of this machine is not text")?;
        rust.push(format!("--remap-path-prefix={from}={to}"));
        c.push(format!("-ffile-prefix-map={from}={to}"));
    }
    // Functions that were compiled to the same code become one. The linker that Rust uses
    // for x86_64 can do that; those of other processors may not.
    if cfg!(target_arch = "x86_64") {
        rust.push("-Clink-arg=-Wl,--icf=all".to_owned());
    }
    // Parts are separated so because a path may hold a space.
    command.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
    command.env("CFLAGS", c.join(" "));
    Ok(())
}

/// The time of the commit, or of the calendar's beginning where there is none.
fn commit_time(root: &Root) -> u64 {
    if let Some(time) = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|time| time.parse().ok())
    {
        return time;
    }
    let mut git = Command::new("git");
    git.current_dir(root.path())
        .args(["log", "-1", "--format=%ct"]);
    let time = run::output(&mut git).unwrap_or_default();
    time.trim().parse().unwrap_or(0)
}

/// `sha256sum -c` reads it.
fn checksums(files: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    for file in files {
        let name = file.file_name().context("a file has no name")?;
        let sum = sha256(&fs::read(file)?);
        text.push_str(&format!("{sum}  {}\n", name.to_string_lossy()));
    }
    Ok(text)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One signature covers everything: it is of the checksums.
fn sign(sums: &Path, key: &Path) -> Result<()> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-Y", "sign", "-n", SIGNED_FOR, "-f"])
        .arg(key)
        .arg(sums);
    match run::run(&mut command)? {
        TaskAnswer::Yes => Ok(()),
        TaskAnswer::No => bail!("ssh-keygen could not sign with {}", key.display()),
    }
}

/// Runs a program that must succeed.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    match run::run(command)? {
        TaskAnswer::Yes => Ok(()),
        TaskAnswer::No => bail!("`{name}` failed"),
    }
}
