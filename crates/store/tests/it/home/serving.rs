//! Where servers listen is known while they run, and only from a file of this user.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use store::serving::{ServedAddress, running, tell};

use crate::scratch::Home;

fn home(name: &str) -> Home {
    let home = Home::new(name);
    fs::create_dir_all(&home.path).unwrap();
    home
}

fn served(port: u16) -> ServedAddress {
    ServedAddress {
        listen: ([127, 0, 0, 1], port).into(),
        url: format!("http://127.0.0.1:{port}"),
    }
}

fn files(home: &Path) -> usize {
    fs::read_dir(home).unwrap().count()
}

#[test]
fn a_server_is_known_while_it_runs() {
    let home = home("serving");
    assert_eq!(running(&home.path).unwrap(), []);
    let one = tell(&home.path, &served(1)).unwrap().unwrap();
    let two = tell(&home.path, &served(2)).unwrap().unwrap();
    assert_eq!(running(&home.path).unwrap(), [served(1), served(2)]);
    let path = home.path.join("serving-1");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(one);
    assert_eq!(running(&home.path).unwrap(), [served(2)]);
    // Its place is free again.
    let three = tell(&home.path, &served(3)).unwrap().unwrap();
    assert_eq!(running(&home.path).unwrap(), [served(3), served(2)]);
    drop((two, three));
    assert_eq!(files(&home.path), 0, "they took their files along");
    // A home that is not there has no server, and is not made.
    let absent = home.path.join("absent");
    assert_eq!(running(&absent).unwrap(), []);
    assert!(!absent.exists());
}

/// What a server left that was killed counts for nothing, and its place is taken again.
#[test]
fn a_file_that_no_process_holds_counts_for_nothing() {
    let home = home("serving-dead");
    let path = home.path.join("serving-1");
    fs::write(&path, "127.0.0.1:1\nhttp://127.0.0.1:1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(running(&home.path).unwrap(), []);
    let lock = tell(&home.path, &served(2)).unwrap().unwrap();
    assert_eq!(running(&home.path).unwrap(), [served(2)]);
    // Held, but not whole: a server that only begins.
    for text in [
        "",
        "127.0.0.1:1\nhttp://a",
        "x\nhttp://a\n",
        "127.0.0.1:1\nftp://a\n",
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(running(&home.path).unwrap(), [], "{text}");
    }
    drop(lock);
}

#[test]
fn so_many_servers_are_known_and_no_more() {
    let home = home("serving-many");
    let most = u16::try_from(store::limit::SERVING_FILES_MAX).unwrap();
    let told = (1..=most).map(|port| tell(&home.path, &served(port)).unwrap().unwrap());
    let told: Vec<_> = told.collect();
    assert!(tell(&home.path, &served(9_999)).unwrap().is_none());
    assert_eq!(running(&home.path).unwrap().len(), told.len());
}

/// Attack: a link in place of the file has the server write elsewhere, and a file of another
/// user says where a person types a code.
#[test]
fn a_link_and_a_file_of_others_are_refused() {
    let home = home("serving-foreign");
    let path = home.path.join("serving-1");
    let other = home.path.join("other");
    fs::write(&other, "precious").unwrap();
    let is_refused = || {
        let faults = [
            running(&home.path).map(drop).expect_err("refused"),
            tell(&home.path, &served(1)).map(drop).expect_err("refused"),
        ];
        for fault in faults {
            let sentence = store_words(&fault);
            assert!(sentence.contains("serving-1"), "{sentence}");
            assert!(sentence.contains("remove it"), "{sentence}");
        }
        fs::remove_file(&path).unwrap();
    };
    symlink(&other, &path).unwrap();
    is_refused();
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
    fs::write(&path, "127.0.0.1:1\nhttp://127.0.0.1:1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    is_refused();
    if rustix::process::geteuid().is_root() {
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(4_321), None).unwrap();
        is_refused();
    }
}

fn store_words(fault: &store::StoreError) -> String {
    let mut words = fault.to_string();
    let mut source = std::error::Error::source(fault);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
