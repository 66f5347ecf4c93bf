//! That one changed byte of the image in the repository is noticed, and that a clone has
//! all that a build of the program reads.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::{env, fs, process};

use super::{Image, difference, key, sum};

/// A copy of the image in the repository, removed at the end.
struct Copy(Image);

impl Copy {
    fn new(name: &str) -> Copy {
        let folder = env::temp_dir().join(format!("ringfence-guest-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        for file in [key::ARTIFACT, key::KEY, sum::SUM] {
            fs::copy(kept().join(file), folder.join(file)).unwrap();
        }
        Copy(Image { folder })
    }

    fn flip(&self, file: &str, place: usize) {
        let path = self.0.folder.join(file);
        let mut bytes = fs::read(&path).unwrap();
        bytes[place] ^= 1;
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.folder);
    }
}

fn kept() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("guest/image").join(env::consts::ARCH)
}

#[test]
fn the_image_in_the_repository_has_its_digest() {
    let bytes = fs::read(kept().join(key::ARTIFACT)).unwrap();
    let kept_sum = fs::read_to_string(kept().join(sum::SUM)).unwrap();
    assert_eq!(sum::sum_of(&bytes, key::ARTIFACT), kept_sum);
}

#[test]
fn one_changed_byte_is_noticed() {
    let built = Copy::new("built");
    let same = Copy::new("same");
    assert_eq!(difference(&same.0, &built.0).unwrap(), None);
    let last = fs::metadata(kept().join(key::ARTIFACT)).unwrap().len() - 1;
    for place in [0, 4096, usize::try_from(last).unwrap()] {
        let changed = Copy::new("changed");
        changed.flip(key::ARTIFACT, place);
        let expected = format!("guest.cwasm differs from byte {place} on");
        assert_eq!(difference(&changed.0, &built.0).unwrap(), Some(expected));
    }
}

#[test]
fn a_key_or_digest_of_another_image_is_noticed() {
    let built = Copy::new("pair");
    for file in [key::KEY, sum::SUM] {
        let changed = Copy::new("other");
        changed.flip(file, 5);
        let expected = format!("{file} belongs to another");
        assert_eq!(difference(&changed.0, &built.0).unwrap(), Some(expected));
    }
}

/// The files git has, from the root.
fn tracked() -> BTreeSet<PathBuf> {
    let mut git = process::Command::new("git");
    let output = git.arg("ls-files").current_dir(root()).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(PathBuf::from).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The files that a source takes in when it is compiled, from the root. What a build script
/// made is named by a macro, not by a text.
fn taken_in(file: &Path, source: &str) -> Vec<PathBuf> {
    let macros = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];
    let named = |open: &str| {
        let pieces: Vec<_> = source.split(open).skip(1).collect();
        let names = pieces.into_iter().filter_map(|piece| piece.split_once('"'));
        names.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let paths = macros.into_iter().flat_map(named);
    paths.map(|name| plain(&folder.join(name))).collect()
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
        path
    })
}

/// `cargo install` builds from a clone, where nothing was generated or built before.
#[test]
fn a_clone_has_all_that_a_build_reads() {
    let tracked = tracked();
    let is_built = |file: &&PathBuf| {
        let mut parts = file.components().skip(2);
        let is_source = file.extension().is_some_and(|it| it == "rs");
        let place = parts.next().map(|part| part.as_os_str().to_owned());
        let in_crate = file.starts_with("crates") && is_source;
        in_crate && place.is_some_and(|place| place == "src" || place == "build.rs")
    };
    let mut seen = 0;
    for file in tracked.iter().filter(is_built) {
        let source = fs::read_to_string(root().join(file)).unwrap();
        for wanted in taken_in(file, &source) {
            seen += 1;
            assert!(
                tracked.contains(&wanted),
                "{}: {} is not in git",
                file.display(),
                wanted.display()
            );
        }
    }
    assert!(seen > 30, "only {seen} files are taken in");
    // The guests of these sources, so that nothing has to be built before.
    for arch in ["x86_64", "aarch64"] {
        let folder = Path::new("guest/image").join(arch);
        let image = Image {
            folder: root().join(&folder),
        };
        assert!(
            image.is_of(&key::of_inputs(root(), arch).unwrap()),
            "{arch}"
        );
        for name in [key::ARTIFACT, key::KEY, sum::SUM] {
            let file = folder.join(name);
            assert!(tracked.contains(&file), "{} is not in git", file.display());
        }
    }
    for name in ["Cargo.lock", "catalog/presets.toml"] {
        assert!(tracked.contains(Path::new(name)), "{name} is not in git");
    }
}

#[test]
fn what_a_source_takes_in_is_found() {
    let source = "const A: &str = include_str!(\"../a.txt\");\n#[path = \"b/c.rs\"]\nmod c;";
    let file = Path::new("crates/x/src/lib.rs");
    let expected = ["crates/x/a.txt", "crates/x/src/b/c.rs"].map(PathBuf::from);
    assert_eq!(taken_in(file, source), expected);
}
