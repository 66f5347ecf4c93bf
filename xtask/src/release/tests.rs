//! Releases of a small repository, with the two long parts replaced: the tests say yes at
//! once, and the build writes one file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use anyhow::Result;

use super::{Extent, Parts, ReleaseWish, perform};
use crate::ci;
use crate::dist;
use crate::root::Root;
use crate::run::TaskAnswer;

/// A repository with one commit, removed at the end.
struct Repository(Root);

impl Repository {
    fn new(version: &str, changelog: &str) -> Repository {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfence-release-{}-{number}", process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let repository = Repository(Root::at(folder));
        repository.write(
            "Cargo.toml",
            &format!("[workspace.package]\nversion = \"{version}\"\n"),
        );
        repository.write("CHANGELOG.md", changelog);
        repository.write(".gitignore", "target\n");
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.commit();
        repository
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "all: a change"]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.0.path())
            .args(["-c", "user.name=One", "-c", "user.email=one@example.org"])
            .args(["-c", "commit.gpgsign=false"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn release(&self, wish: &ReleaseWish, parts: &Parts) -> Result<TaskAnswer> {
        // A tag needs a tagger.
        self.git(&["config", "user.name", "One"]);
        self.git(&["config", "user.email", "one@example.org"]);
        perform(&self.0, wish, parts)
    }

    #[track_caller]
    fn is_refused(&self, version: &str, because: &str) {
        let error = self.release(&wish(version), &PARTS).unwrap_err();
        assert_eq!(error.to_string(), because);
        assert_eq!(self.git(&["tag"]), "");
        assert!(!self.0.join(dist::FOLDER).exists());
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(dist::FOLDER).join(name)).unwrap()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.path());
    }
}

const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n## 1.2.0 (2026-11-17)\n\n### Added\n\n- A door.\n\n\
    ## 1.1.0\n\n- Older.\n";

const PARTS: Parts = Parts {
    test: |_| Ok(TaskAnswer::Yes),
    build: build_the_same,
};

fn wish(version: &str) -> ReleaseWish {
    ReleaseWish {
        version: version.to_owned(),
        key: None,
        extent: Extent::Whole,
    }
}

fn build_the_same(root: &Root, _key: Option<&Path>) -> Result<TaskAnswer> {
    write_sums(root, "abc  ringfence.tar.gz\n")
}

/// What a build gives that depends on where it happens.
fn build_by_place(root: &Root, _key: Option<&Path>) -> Result<TaskAnswer> {
    let place = root.path().display().to_string().len();
    write_sums(
        root,
        &format!("abc  ringfence.deb\n{place}  ringfence.tar.gz\n"),
    )
}

fn write_sums(root: &Root, text: &str) -> Result<TaskAnswer> {
    fs::create_dir_all(root.join(dist::FOLDER))?;
    fs::write(root.join(dist::FOLDER).join(dist::SUMS), text)?;
    Ok(TaskAnswer::Yes)
}

#[test]
fn a_release_is_tagged_with_its_changes_and_checksums() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    let answer = repository.release(&wish("1.2.0"), &PARTS).unwrap();
    assert_eq!(answer, TaskAnswer::Yes);
    assert_eq!(repository.git(&["tag"]), "v1.2.0");
    let expected = "# Ringfence 1.2.0\n\n### Added\n\n- A door.\n\n## Checksums\n\n    abc  ringfence.tar.gz\n";
    assert_eq!(repository.read("NOTES.md"), expected);
    let tag = repository.git(&["tag", "--list", "--format=%(contents)", "v1.2.0"]);
    assert_eq!(tag, expected.trim());
    assert!(!repository.0.join(super::AGAIN).exists());
}

#[test]
fn a_release_with_a_key_has_a_tag_that_verifies() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    let key = repository.0.join("target/key");
    fs::create_dir_all(key.parent().unwrap()).unwrap();
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    let signed = ReleaseWish {
        key: Some(key.clone()),
        ..wish("1.2.0")
    };
    let answer = repository.release(&signed, &PARTS).unwrap();
    assert_eq!(answer, TaskAnswer::Yes);
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    repository.write("target/signers", &format!("one@example.org {public}"));
    let signers: PathBuf = repository.0.join("target/signers");
    let allowed = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    repository.git(&["-c", &allowed, "tag", "--verify", "v1.2.0"]);
}

#[test]
fn a_build_that_depends_on_its_place_is_no_release() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    let parts = Parts {
        build: build_by_place,
        ..PARTS
    };
    let answer = repository.release(&wish("1.2.0"), &parts).unwrap();
    assert_eq!(answer, TaskAnswer::No);
    assert_eq!(repository.git(&["tag"]), "");
}

#[test]
fn failed_tests_end_it_unless_they_were_green_for_this_commit() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    let parts = Parts {
        test: |_| Ok(TaskAnswer::No),
        ..PARTS
    };
    let answer = repository.release(&wish("1.2.0"), &parts).unwrap();
    assert_eq!(answer, TaskAnswer::No);
    assert!(!repository.0.join(dist::FOLDER).exists());
    ci::mark_green(&repository.0).unwrap();
    let answer = repository.release(&wish("1.2.0"), &parts).unwrap();
    assert_eq!(answer, TaskAnswer::Yes);
    // The mark is of that commit alone.
    repository.git(&["tag", "--delete", "v1.2.0"]);
    repository.write("more", "");
    repository.commit();
    let answer = repository.release(&wish("1.2.0"), &parts).unwrap();
    assert_eq!(answer, TaskAnswer::No);
}

#[test]
fn a_tree_that_is_not_clean_is_never_marked_green() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    repository.write("more", "");
    ci::mark_green(&repository.0).unwrap();
    assert_eq!(ci::green_commit(&repository.0), None);
}

#[test]
fn a_dry_run_changes_nothing() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    let dry = ReleaseWish {
        extent: Extent::DryRun,
        ..wish("1.2.0")
    };
    let answer = repository.release(&dry, &PARTS).unwrap();
    assert_eq!(answer, TaskAnswer::Yes);
    assert_eq!(repository.git(&["tag"]), "");
    assert!(!repository.0.join("target").exists());
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    repository.is_refused(
        "1.2",
        "`1.2` is not a version; write three numbers, such as `0.2.0`",
    );
    repository.is_refused(
        "1.3.0",
        "Cargo.toml says 1.2.0, not 1.3.0; set `version` below [workspace.package]",
    );
    repository.write("more", "");
    repository.is_refused(
        "1.2.0",
        "the tree is not clean (`?? more`); commit or remove what changed",
    );
}

#[test]
fn the_changelog_must_know_the_version_and_nothing_newer() {
    let unknown = Repository::new("1.3.0", CHANGELOG);
    unknown.is_refused(
        "1.3.0",
        "CHANGELOG.md says nothing about 1.3.0; it needs the heading `## 1.3.0` and its changes",
    );
    let waiting = CHANGELOG.replace("## Unreleased\n", "## Unreleased\n\n- A window.\n");
    Repository::new("1.2.0", &waiting).is_refused(
        "1.2.0",
        "CHANGELOG.md still lists changes as `Unreleased`; rename that heading to `1.2.0`",
    );
    Repository::new("1.1.0", CHANGELOG).is_refused(
        "1.1.0",
        "1.1.0 is not the newest version of CHANGELOG.md; put its heading first",
    );
}

#[test]
fn a_version_is_released_once() {
    let repository = Repository::new("1.2.0", CHANGELOG);
    repository.git(&["tag", "v1.2.0"]);
    let error = repository.release(&wish("1.2.0"), &PARTS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tag v1.2.0 exists; a release is made once, so choose the next version"
    );
}
