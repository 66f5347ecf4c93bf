//! The Debian package: the files of the archive below `/usr`, and a unit that is
//! there to be enabled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::stage::Stage;
use super::{Release, must};
use crate::root::Root;

/// Where each file or folder of the archive goes.
const PLACES: &[(&str, &str)] = &[
    ("bin", "usr/bin"),
    ("share", "usr/share"),
    ("lib", "usr/lib"),
    ("LICENSE", "usr/share/doc/ringfence/copyright"),
    ("LICENSES.txt", "usr/share/doc/ringfence/LICENSES.txt"),
    (
        "ringfence.cdx.json",
        "usr/share/doc/ringfence/ringfence.cdx.json",
    ),
    ("README.md", "usr/share/doc/ringfence/README.md"),
    ("CHANGELOG.md", "usr/share/doc/ringfence/CHANGELOG.md"),
    ("SECURITY.md", "usr/share/doc/ringfence/SECURITY.md"),
];

/// Makes the package.
pub(crate) fn make(root: &Root, release: &Release, stage: &Stage) -> Result<PathBuf> {
    let folder = release.folder.join("deb");
    for (from, to) in PLACES {
        copy(&stage.folder().join(from), &folder.join(to))?;
    }
    let manual = folder.join("usr/share/man/man1");
    must(Command::new("gzip").args(["-n9", "-r"]).arg(&manual))?;
    let control = folder.join("DEBIAN");
    fs::create_dir_all(&control)?;
    let template = fs::read_to_string(root.join("packaging/control"))
        .context("there is no packaging/control")?;
    let text = template
        .replace("@VERSION@", &release.version)
        .replace("@ARCH@", debian_arch(release.arch));
    fs::write(control.join("control"), text)?;
    let package = release.folder.join(format!(
        "ringfence_{}_{}.deb",
        release.version,
        debian_arch(release.arch)
    ));
    let mut command = Command::new("dpkg-deb");
    command
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&folder)
        .arg(&package)
        .env("SOURCE_DATE_EPOCH", release.time.to_string())
        .stdout(std::process::Stdio::null());
    must(&mut command)?;
    fs::remove_dir_all(&folder)?;
    Ok(package)
}

/// The processor as Debian names it.
fn debian_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("could not copy {}", from.display()))?;
    Ok(())
}
