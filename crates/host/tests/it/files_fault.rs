//! What `safety.fs` does when the system does not do its part.

use std::fs;
use std::process::Command;

use host::files::Files;
use model::policy::grant::FileGrant;
use model::record::mask::Masker;
use serde_json::json;

use crate::scratch::{Scratch, call, grant, tree};

/// Set in the child that may write only a little.
const SMALL_DISK: &str = "RINGFENCE_TEST_SMALL_DISK";

/// A disk that is full, as far as one process can tell: a shell lowers what it
/// may write and becomes this very test.
#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    if std::env::var_os(SMALL_DISK).is_some() {
        return on_a_small_disk();
    }
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "files_fault::a_full_disk_leaves_the_old_file_and_nothing_else",
        ])
        .env(SMALL_DISK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

fn on_a_small_disk() {
    let scratch = Scratch::new("full");
    let files = scratch.files();
    call(&files, "writeText", json!(["a.txt", "old x"])).unwrap();
    let before = tree(&scratch.workspace());
    let large = "y".repeat(64 * 1024);
    let calls = [
        ("writeText", json!(["a.txt", large])),
        ("writeText", json!(["new.txt", large])),
        ("appendText", json!(["a.txt", large])),
        ("editText", json!(["a.txt", "x", large])),
    ];
    for (function, arguments) in calls {
        let fault = call(&files, function, arguments).unwrap_err();
        assert_eq!(fault.reason, "io", "{function}");
        assert!(
            fault
                .told(&Masker::none())
                .starts_with("the system allows no file of this size")
        );
        assert_eq!(tree(&scratch.workspace()), before, "{function}");
    }
}

#[test]
fn a_folder_that_takes_no_files_is_an_error() {
    // Nobody can make a file there, root included.
    let base_path = Some("/proc/self".to_owned());
    let grant = FileGrant {
        base_path,
        ..grant(true, true)
    };
    let scratch = Scratch::new("read-only");
    let files = Files::open(&grant, &scratch.settings()).unwrap().unwrap();
    for (function, arguments) in [
        ("writeText", json!(["new.txt", "x"])),
        ("appendText", json!(["comm", "x"])),
        ("writeText", json!(["new/new.txt", "x"])),
        ("delete", json!(["comm"])),
        ("deleteDir", json!(["net"])),
        ("copy", json!(["comm", "copy"])),
    ] {
        let fault = call(&files, function, arguments).unwrap_err();
        assert!(
            ["io", "write-through-symlink"].contains(&fault.reason),
            "{fault:?}"
        );
    }
}

#[test]
fn a_workspace_that_is_gone_is_an_error_and_not_another_folder() {
    let scratch = Scratch::new("gone");
    fs::write(scratch.workspace().join("a.txt"), "a").unwrap();
    let files = scratch.files();
    // Attack: the folder is moved away and a link put in its place.
    fs::rename(scratch.workspace(), scratch.path.join("moved")).unwrap();
    std::os::unix::fs::symlink("outside", scratch.workspace()).unwrap();
    let before = scratch.outside();
    assert!(call(&files, "readText", json!(["canary.txt"])).is_err());
    assert_eq!(
        call(&files, "readText", json!(["a.txt"])).unwrap().value,
        json!("a")
    );
    call(&files, "writeText", json!(["canary.txt", "x"])).unwrap();
    assert_eq!(scratch.outside(), before);
    fs::remove_dir_all(scratch.path.join("moved")).unwrap();
    assert!(call(&files, "readText", json!(["a.txt"])).is_err());
    assert!(call(&files, "writeText", json!(["a.txt", "x"])).is_err());
    assert_eq!(scratch.outside(), before);
}
