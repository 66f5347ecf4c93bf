//! That one changed byte of the image in the repository is noticed.

use std::path::{Path, PathBuf};
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
