//! Folders a child is given to change: workspaces, and folders whose changes are kept
//! beside them.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use serde_json::json;

use crate::help::{Rung, Scratch, User, everywhere};

#[test]
fn a_workspace_in_the_private_folder_is_the_childs() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        fs::create_dir(scratch.path("home/.ringfence/work")).unwrap();
        fs::write(scratch.path("home/.ringfence/work/file"), "before").unwrap();
        for name in ["home/.ringfence/work", "home/.ringfence/work/file"] {
            scratch.give(name);
        }
        let script = "cat file && echo after > file && mkdir sub && echo x > sub/new && ls -d . \
                      && cat ../key ../../canary; true";
        let mut request = scratch.request(&["/bin/sh", "-c", script]);
        request["workspaces"] = json!([scratch.path("home/.ringfence/work")]);
        request["folder"] = json!(scratch.path("home/.ringfence/work"));
        let ran = scratch.run(&request);
        assert_eq!(ran.done(), "before.\n", "{user:?} {rung:?} {ran:?}");
        let text = fs::read_to_string(scratch.path("home/.ringfence/work/file")).unwrap();
        assert_eq!(text, "after\n");
        // Once more, after a child has owned it.
        let mut again = request.clone();
        again["command"][2] = json!("cat file sub/new; echo more >> sub/new");
        assert_eq!(scratch.run(&again).done(), "after\nx\n");
        // By one that only reads it, and has a new folder of its own.
        let mut reading = request.clone();
        reading["home"] = json!(scratch.path("home/.ringfence/fresh"));
        reading["read"] = reading["workspaces"].take();
        reading["workspaces"] = json!([]);
        reading["private"] = json!([]);
        reading["command"][2] = json!("cat file; echo no > file; true");
        let ran = scratch.run(&reading);
        assert_eq!(ran.done(), "after\n", "{user:?} {rung:?} {ran:?}");
        let text = fs::read_to_string(scratch.path("home/.ringfence/work/file")).unwrap();
        assert_eq!(text, "after\n");
        let owner = fs::metadata(scratch.path("home/.ringfence/work/sub/new"))
            .unwrap()
            .uid();
        if user == User::Same && rung == Rung::Namespaces && User::all().len() > 1 {
            assert_eq!(owner, 0, "on the disk nothing changes hands");
        }
    }
}

#[test]
fn changes_of_an_overlay_are_kept_beside_the_folder() {
    let script = "echo changed > file; echo new > made; mkdir -p deep/er && echo d > deep/er/file; rm gone; \
                  cat file made; true";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        fs::write(scratch.path("project/gone"), "old").unwrap();
        scratch.give("project/gone");
        for name in [
            "home/.ringfence/kept",
            "home/.ringfence/kept/upper",
            "home/.ringfence/kept/work",
        ] {
            fs::create_dir(scratch.path(name)).unwrap();
            scratch.give(name);
        }
        let mut request = scratch.request(&["/bin/sh", "-c", script]);
        request["overlays"] = json!([{
            "folder": scratch.path("project"),
            "upper": scratch.path("home/.ringfence/kept/upper"),
            "work": scratch.path("home/.ringfence/kept/work"),
        }]);
        request["folder"] = json!(scratch.path("project"));
        let ran = scratch.run(&request);
        // The folder itself never changes.
        assert_eq!(
            fs::read_to_string(scratch.path("project/file")).unwrap(),
            "canary"
        );
        assert_eq!(
            fs::read_to_string(scratch.path("project/gone")).unwrap(),
            "old"
        );
        assert!(!scratch.path("project/made").exists());
        let upper = scratch.path("home/.ringfence/kept/upper");
        match rung {
            Rung::Namespaces => {
                assert_eq!(ran.done(), "changed\nnew\n", "{user:?} {ran:?}");
                assert_eq!(fs::read_to_string(upper.join("file")).unwrap(), "changed\n");
                assert_eq!(
                    fs::read_to_string(upper.join("deep/er/file")).unwrap(),
                    "d\n"
                );
                let gone = fs::symlink_metadata(upper.join("gone")).unwrap();
                assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
            }
            Rung::Landlock => {
                assert_eq!(ran.done(), "canary", "{user:?} {ran:?}");
                assert_eq!(fs::read_dir(&upper).unwrap().count(), 0);
            }
        }
    }
}

#[test]
fn a_link_in_the_place_of_a_workspace_is_refused() {
    let scratch = Scratch::new(User::Same);
    std::os::unix::fs::symlink(scratch.path("home"), scratch.path("home/.ringfence/link")).unwrap();
    for path in [
        "home/.ringfence/link",
        "home/.ringfence/key",
        "home/.ringfence/none",
    ] {
        let mut request = scratch.request(&["/bin/true"]);
        request["workspaces"] = json!([scratch.path(path)]);
        let ran = scratch.run(&request);
        assert!(ran.fault.contains("workspace"), "{path} {ran:?}");
    }
}
