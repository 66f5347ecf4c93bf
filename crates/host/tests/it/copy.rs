//! A copy that stands in for a folder: bounded, and blind to whatever leads out.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use host::files::changes::{ChangeLayer, ChangeRule, CollectedChanges, collect};
use host::files::{CopyError, Files, copy_tree};
use model::policy::grant::FileGrant;
use serde_json::json;

use crate::scratch::{CANARY, Scratch, call, tree};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn a_copy_holds_files_and_folders_and_nothing_that_leads_out() {
    let scratch = Scratch::new("copy");
    let from = scratch.workspace();
    fs::create_dir_all(from.join("a/b")).unwrap();
    fs::write(from.join("a/b/file.txt"), "content").unwrap();
    symlink("a/b/file.txt", from.join("inside")).unwrap();
    symlink("../outside/canary.txt", from.join("out")).unwrap();
    symlink(scratch.path.join("outside"), from.join("folder-out")).unwrap();
    let piped = Command::new("mkfifo").arg(from.join("pipe")).status();
    assert!(piped.unwrap().success());
    let before = tree(&from);
    let to = scratch.path.join("copy/deep");
    copy_tree(&from, &to, soon()).unwrap();
    assert_eq!(tree(&from), before, "the folder is as it was");
    let mut copied = tree(&to);
    assert_eq!(copied.remove("a/b/file.txt").unwrap(), "file \"content\"");
    assert!(!copied.contains_key("pipe"), "{copied:?}");
    assert!(!format!("{copied:?}").contains(CANARY), "{copied:?}");
    // Used as the folder it stands for, by either name; its links lead nowhere.
    let mut settings = scratch.settings();
    settings.stand_in = Some(to.clone());
    let grant = FileGrant {
        read: true,
        write: true,
        base_path: Some(from.display().to_string()),
    };
    let files = Files::open(&grant, &settings).unwrap().unwrap();
    let read = |path: &str| call(&files, "readText", json!([path]));
    assert_eq!(read("inside").unwrap().value, "content");
    let absolute = from.join("a/b/file.txt").display().to_string();
    assert_eq!(read(&absolute).unwrap().value, "content");
    assert!(read("out").is_err() && read("folder-out/canary.txt").is_err());
    call(&files, "deleteDir", json!([from.join("a")])).unwrap();
    call(&files, "writeText", json!([absolute, "changed"])).unwrap();
    assert_eq!(tree(&from), before, "whatever is done to the copy");
    assert_eq!(
        fs::read_to_string(to.join("a/b/file.txt")).unwrap(),
        "changed"
    );
}

/// A copy is the whole folder, so most of it is as it was: only what a program changed is a
/// change, or named as left out.
#[test]
fn what_is_as_it_was_in_a_copy_is_no_change() {
    let scratch = Scratch::new("unchanged");
    let from = scratch.workspace();
    for (path, mode) in [
        ("run.sh", 0o755),
        ("plain.txt", 0o644),
        (".git/config", 0o644),
        (".git/HEAD", 0o600),
        (".git/hooks/sample", 0o755),
        (".vscode/tasks.json", 0o644),
        ("sub/.git/index", 0o644),
        ("odd\nname/file", 0o644),
    ] {
        let path = from.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "[core]\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("run.sh", from.join(".git/link")).unwrap();
    // What is in no copy was not deleted from it.
    for pipe in ["pipe", ".git/pipe"] {
        let made = Command::new("mkfifo").arg(from.join(pipe)).status();
        assert!(made.unwrap().success());
    }
    let to = scratch.path.join("copy");
    copy_tree(&from, &to, soon()).unwrap();
    let look = |rule: &ChangeRule| collect(&from, &to, ChangeLayer::Copy, rule).unwrap();
    let repository = |path: &str| ChangeRule::Git {
        repository: path.into(),
    };
    let clone = ChangeRule::Clone {
        folder: "new".into(),
    };
    for rule in [
        ChangeRule::Program,
        repository(""),
        repository("sub"),
        clone,
    ] {
        assert_eq!(look(&rule), CollectedChanges::default(), "{rule:?}");
    }
    fs::write(to.join(".git/hooks/pre-commit"), "evil").unwrap();
    fs::remove_dir_all(to.join(".vscode")).unwrap();
    fs::set_permissions(to.join("run.sh"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(to.join("sub/.git/index"), "[CORE]\n").unwrap();
    let found = look(&ChangeRule::Program);
    let left_out: Vec<_> = found.left_out.keys().map(String::as_str).collect();
    assert_eq!(left_out, [".git", ".vscode", "sub/.git"]);
    let changed: Vec<_> = found.changes.iter().map(|change| &change.path).collect();
    assert_eq!(changed, ["run.sh"]);
    assert_eq!(
        (found.changes[0].base_mode(), found.changes[0].mode()),
        (Some("100755"), Some("100644"))
    );
}

#[test]
fn a_copy_is_bounded() {
    let scratch = Scratch::new("bounds");
    let from = scratch.workspace();
    let sparse = fs::File::create(from.join("big")).unwrap();
    sparse.set_len(65 * 1024 * 1024).unwrap();
    let copy = |name: &str, deadline| copy_tree(&from, &scratch.path.join(name), deadline);
    let bytes = copy("bytes", soon()).unwrap_err();
    assert!(bytes.to_string().contains("more than 64 MiB"), "{bytes}");
    fs::remove_file(from.join("big")).unwrap();
    let mut deep = from.join("d");
    for _ in 0..40 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let depth = copy("depth", soon()).unwrap_err();
    assert!(depth.to_string().contains("32 folders"), "{depth}");
    let late = copy("late", Instant::now()).unwrap_err();
    assert!(matches!(late, CopyError::Late { .. }), "{late}");
    fs::remove_dir_all(from.join("d")).unwrap();
    for index in 0..20_001 {
        fs::File::create(from.join(index.to_string())).unwrap();
    }
    let entries = copy("entries", soon()).unwrap_err();
    assert!(entries.to_string().contains("20000 files"), "{entries}");
}
