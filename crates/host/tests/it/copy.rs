//! A copy that stands in for a folder: bounded, and blind to whatever leads out.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

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
