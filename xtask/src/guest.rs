//! `cargo xtask guest`: what runs inside the sandbox. Its images, one for each kind of
//! processor, are in the repository, so a build needs no compiler for them; they
//! can be built again from their sources, byte for byte, and CI does.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::build;
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};

#[path = "../../guest/key.rs"]
mod key;
#[path = "../../guest/sum.rs"]
mod sum;

/// The builder's own workspace: it brings a compiler that nothing else needs.
const BUILDER: &str = "guest/builder/Cargo.toml";

/// Where the builder puts its results, each in a folder named for its architecture.
const BUILT: &str = "target/guest";

/// What building it takes from nothing, on two cores.
const USUAL: Duration = Duration::from_secs(4 * 60);

/// What to do about the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Ensure that there is one for the current sources.
    Ensure,
    /// Build it and put it into the repository.
    Write,
    /// Build it and compare it with the one in the repository.
    Compare,
}

/// Ensures that there is a guest for the current sources.
pub(crate) fn ensure(root: &Root) -> Result<TaskAnswer> {
    guest(root, Wish::Ensure)
}

/// Builds the guest and compares it with the one in the repository.
pub(crate) fn compare(root: &Root) -> Result<TaskAnswer> {
    guest(root, Wish::Compare)
}

/// Runs the task.
pub(crate) fn guest(root: &Root, wish: Wish) -> Result<TaskAnswer> {
    if wish == Wish::Ensure {
        let arch = std::env::consts::ARCH;
        let wanted = key::of_inputs(root.path(), arch).context("could not read guest/")?;
        if Image::kept(root, arch).is_of(&wanted) || Image::built(root, arch).is_of(&wanted) {
            printer::note("   the image is there and of these sources");
            return Ok(TaskAnswer::Yes);
        }
        printer::note("   its sources changed, so its compiler is built first");
    }
    match build(root)? {
        TaskAnswer::Yes => {}
        TaskAnswer::No => return Ok(TaskAnswer::No),
    }
    let mut answer = TaskAnswer::Yes;
    for arch in built_arches(root)? {
        let (kept, built) = (Image::kept(root, &arch), Image::built(root, &arch));
        match wish {
            Wish::Ensure => {}
            Wish::Write => write(&kept, &built)?,
            Wish::Compare => {
                if let Some(what) = difference(&kept, &built)? {
                    printer::note(&format!(
                        "guest/image/{arch} is not what its sources make: {what}; run `cargo xtask guest --write`"
                    ));
                    answer = TaskAnswer::No;
                }
            }
        }
    }
    Ok(answer)
}

/// The architectures the builder has compiled the guest for.
fn built_arches(root: &Root) -> Result<BTreeSet<String>> {
    let folders = fs::read_dir(root.join(BUILT)).context("could not read target/guest")?;
    let is_image = |entry: &fs::DirEntry| entry.path().join(key::KEY).exists();
    let images = folders.flatten().filter(is_image);
    let arches = images.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(arches.collect())
}

/// Puts a guest that was built into the repository.
fn write(kept: &Image, built: &Image) -> Result<()> {
    fs::create_dir_all(&kept.folder).context("could not make the image's folder")?;
    for name in [key::ARTIFACT, key::KEY] {
        fs::copy(built.folder.join(name), kept.folder.join(name))
            .with_context(|| format!("could not write guest/image/…/{name}"))?;
    }
    let sum = sum::sum_of(&built.bytes()?, key::ARTIFACT);
    fs::write(kept.folder.join(sum::SUM), sum)
        .with_context(|| format!("could not write guest/image/…/{}", sum::SUM))
}

/// How the guest in the repository differs from the one that was built, in its bytes, in
/// the key of its sources or in its digest.
fn difference(kept: &Image, built: &Image) -> Result<Option<String>> {
    let (kept_bytes, built_bytes) = (kept.bytes()?, built.bytes()?);
    if kept_bytes != built_bytes {
        let same = kept_bytes.iter().zip(&built_bytes);
        let place = same.take_while(|(kept, built)| kept == built).count();
        return Ok(Some(format!(
            "{} differs from byte {place} on",
            key::ARTIFACT
        )));
    }
    let expected_sum = sum::sum_of(&kept_bytes, key::ARTIFACT);
    let expected = [(key::KEY, built.text(key::KEY)?), (sum::SUM, expected_sum)];
    for (name, expected) in expected {
        if kept.text(name)? != expected {
            return Ok(Some(format!("{name} belongs to another")));
        }
    }
    Ok(None)
}

fn build(root: &Root) -> Result<TaskAnswer> {
    let target = root.join("target/guest/build");
    let Some(target) = target.to_str() else {
        bail!("the path of the project is not text");
    };
    let common = [
        "--release",
        "--locked",
        "--manifest-path",
        BUILDER,
        "--target-dir",
        target,
    ];
    let mut command = run::cargo(root, &["build"]);
    command.args(common).args(build::MESSAGES);
    let tree = ["--manifest-path", BUILDER, "--edges", "normal,build"];
    match build::watch(root, &mut command, &tree, USUAL)? {
        TaskAnswer::Yes => {}
        TaskAnswer::No => return Ok(TaskAnswer::No),
    }
    let mut command = run::cargo(root, &["run", "--quiet"]);
    run::run(command.args(common))
}

/// A guest in a folder, if there is one.
struct Image {
    folder: PathBuf,
}

impl Image {
    /// The one in the repository.
    fn kept(root: &Root, arch: &str) -> Image {
        let folder = root.join("guest/image").join(arch);
        Image { folder }
    }

    /// The one that was built here.
    fn built(root: &Root, arch: &str) -> Image {
        let folder = root.join(BUILT).join(arch);
        Image { folder }
    }

    fn is_of(&self, wanted: &str) -> bool {
        let key = self.text(key::KEY);
        key.is_ok_and(|key| key == wanted) && self.folder.join(key::ARTIFACT).exists()
    }

    fn text(&self, name: &str) -> Result<String> {
        let path = self.folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let path = self.folder.join(key::ARTIFACT);
        fs::read(&path).with_context(|| format!("could not read {}", path.display()))
    }
}

#[cfg(test)]
mod tests;
