//! A home that other users can write is not obeyed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use store::{Store, StoreError, StoreSettings};

use crate::scratch::Home;

#[test]
fn a_home_that_others_can_write_is_refused() {
    let home = Home::new("writable");
    drop(home.store());
    fs::create_dir_all(home.path.join("rules")).unwrap();
    fs::create_dir_all(home.path.join("tools")).unwrap();
    fs::write(home.path.join("ringfence.toml"), "").unwrap();
    let set = |name: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(home.path.join(name), permissions).unwrap();
    };
    let open = || Store::open(&home.path, StoreSettings::standard());
    // Others can enter the home, so what is in it counts.
    set("", 0o755);
    for name in ["", "ringfence.toml", "rules", "tools", "audit", "locks"] {
        let was = fs::metadata(home.path.join(name)).unwrap().permissions();
        for more in [0o020, 0o002] {
            set(name, was.mode() | more);
            let error = open().expect_err("refused");
            assert!(matches!(error, StoreError::Writable { .. }), "{error}");
            let sentence = error.to_string();
            assert!(sentence.contains("chmod go-w"), "{sentence}");
            assert!(sentence.contains(name), "{sentence}");
        }
        // That others can read is for the owner to say.
        set(name, was.mode() | 0o044);
        assert!(open().is_ok(), "{name}");
        set(name, was.mode());
    }
    // Where nobody else can enter, nobody else can write; the group is a class of its own.
    set("ringfence.toml", 0o666);
    for (mode, is_taken) in [(0o700, true), (0o710, false), (0o701, false), (0o744, true)] {
        set("", mode);
        assert_eq!(open().is_ok(), is_taken, "{mode:o}");
    }
    set("ringfence.toml", 0o660);
    for (mode, is_taken) in [(0o710, false), (0o701, true)] {
        set("", mode);
        assert_eq!(open().is_ok(), is_taken, "{mode:o}");
    }
}

/// Only the super-user can give a folder away.
#[test]
fn a_home_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = Home::new("foreign");
    drop(home.store());
    std::os::unix::fs::chown(&home.path, Some(4_321), None).unwrap();
    let error = Store::open(&home.path, StoreSettings::standard()).expect_err("refused");
    let sentence = error.to_string();
    assert!(sentence.contains("user 4321"), "{sentence}");
    // Taking rights away from an owner would change nothing.
    assert!(
        sentence.contains("run the command as that user"),
        "{sentence}"
    );
    assert!(!sentence.contains("go-w"), "{sentence}");
    std::os::unix::fs::chown(&home.path, Some(0), None).unwrap();
    assert!(Store::open(&home.path, StoreSettings::standard()).is_ok());
}
