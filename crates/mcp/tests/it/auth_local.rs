//! The token of this machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp::auth::local::{self, TokenError};

fn home(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = format!("gate-{name}-{}-{count}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_token_file_is_made_once_and_private() {
    let home = home("made");
    let first = local::open(&home).unwrap();
    assert!(first.is_new);
    assert!(first.secret.reveal().starts_with("rf_local_"));
    let about = fs::metadata(home.join("token")).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let second = local::open(&home).unwrap();
    assert!(!second.is_new);
    assert_eq!(first.secret, second.secret);
    let names: Vec<_> = fs::read_dir(&home)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["token"]);
    assert!(!format!("{first:?}").contains(first.secret.reveal()));
}

#[test]
fn each_home_has_its_own_token() {
    let (one, two) = (home("one"), home("two"));
    let (one, two) = (local::open(&one).unwrap(), local::open(&two).unwrap());
    assert_ne!(one.secret, two.secret);
}

#[test]
fn servers_that_start_together_share_one_token() {
    let home = home("race");
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let home = home.clone();
            std::thread::spawn(move || local::open(&home).unwrap())
        })
        .collect();
    let tokens: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert!(tokens.iter().all(|token| token.secret == tokens[0].secret));
    assert_eq!(tokens.iter().filter(|token| token.is_new).count(), 1);
}

#[test]
fn a_token_file_others_can_read_is_refused() {
    for mode in [0o640, 0o604, 0o620, 0o666, 0o601] {
        let home = home("open");
        local::open(&home).unwrap();
        let path = home.join("token");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = local::open(&home).unwrap_err();
        assert!(matches!(error, TokenError::Open { .. }), "{mode:o}");
        assert!(error.to_string().contains("remove it"), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(local::open(&home).unwrap().is_new);
    }
}

#[test]
fn a_file_without_a_token_is_reported_and_kept() {
    let home = home("spoilt");
    let path = home.join("token");
    let good = local::open(&home).unwrap().secret;
    for text in [
        "",
        "secret",
        good.reveal().split_at(1).1,
        &format!("{}x", good.reveal()),
        &format!(" {}", good.reveal()),
        &"rf_local_".repeat(100),
    ] {
        fs::write(&path, text).unwrap();
        let error = local::open(&home).unwrap_err();
        assert!(matches!(error, TokenError::Spoilt { .. }), "{text}");
        assert!(!error.to_string().contains(good.reveal()));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::remove_file(&path).unwrap();
    let elsewhere = home.join("elsewhere");
    fs::write(&elsewhere, good.reveal()).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(
        local::open(&home).unwrap_err(),
        TokenError::Foreign { .. }
    ));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(
        local::open(&home).unwrap_err(),
        TokenError::Foreign { .. }
    ));
    // A home that is not there is made, for its owner alone.
    let absent = home.join("not/there");
    assert!(local::open(&absent).unwrap().is_new);
    let mode = fs::metadata(&absent).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(local::open(&elsewhere).is_err());
}
