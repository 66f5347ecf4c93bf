//! The file of secrets: what is refused, and that a change is seen.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use host::secrets::{SECRETS_BYTES_MAX, Secrets, SecretsFault};
use model::Environment;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scratch::Scratch;

struct ProtectedHome {
    scratch: Scratch,
}

impl ProtectedHome {
    fn new(name: &str) -> ProtectedHome {
        ProtectedHome {
            scratch: Scratch::new(name),
        }
    }

    fn path(&self) -> PathBuf {
        self.scratch.path.join("secrets.env")
    }

    fn write(&self, text: impl AsRef<[u8]>, mode: u32) {
        fs::write(self.path(), text).unwrap();
        fs::set_permissions(self.path(), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn fault(&self) -> SecretsFault {
        Secrets::open(self.path()).read().unwrap_err()
    }
}

#[track_caller]
fn holds(secrets: &Secrets, expected: &str) {
    let values = secrets.read().unwrap();
    assert_eq!(values.get("KEY"), Some(expected));
}

#[test]
fn no_file_is_an_empty_set() {
    let home = ProtectedHome::new("secrets-none");
    let values = Secrets::open(home.path()).read().unwrap();
    assert_eq!(format!("{values:?}"), "{}");
}

#[test]
fn lines_are_read_if_the_file_is_the_users_own() {
    for mode in [0o600, 0o400] {
        let home = ProtectedHome::new("secrets-plain");
        home.write("# keys\nKEY=one\nexport OTHER=\"two words\"\n", mode);
        let values = Secrets::open(home.path()).read().unwrap();
        assert_eq!(values.get("KEY"), Some("one"));
        assert_eq!(values.get("OTHER"), Some("two words"));
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn a_mode_that_lets_others_in_is_refused_and_the_mend_is_named() {
    for mode in [0o640, 0o604, 0o660, 0o666, 0o610, 0o620, 0o700, 0o4600] {
        let home = ProtectedHome::new("secrets-mode");
        home.write("KEY=one\n", mode);
        let fault = home.fault();
        assert!(matches!(fault, SecretsFault::Mode { .. }), "{mode:o}");
        let path = home.path().display().to_string();
        let expected =
            format!("`{path}` has mode {mode:04o}, so others may use it; run `chmod 600 {path}`");
        assert_eq!(fault.to_string(), expected);
    }
}

#[test]
fn a_link_is_refused_even_to_a_good_file() {
    let home = ProtectedHome::new("secrets-link");
    home.write("KEY=one\n", 0o600);
    let real = home.scratch.path.join("real.env");
    fs::rename(home.path(), &real).unwrap();
    symlink(&real, home.path()).unwrap();
    assert!(matches!(home.fault(), SecretsFault::Link(_)));
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let home = ProtectedHome::new("secrets-folder");
    fs::create_dir(home.path()).unwrap();
    assert!(matches!(home.fault(), SecretsFault::NotRegular(_)));
    let home = ProtectedHome::new("secrets-pipe");
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, home.path(), FileType::Fifo, mode, 0).unwrap();
    assert!(matches!(home.fault(), SecretsFault::NotRegular(_)));
    let home = ProtectedHome::new("secrets-socket");
    let _socket = std::os::unix::net::UnixListener::bind(home.path()).unwrap();
    assert!(matches!(home.fault(), SecretsFault::NotRegular(_)));
}

/// Only the superuser can give a file away; anybody can look at one of theirs.
#[test]
fn a_file_of_another_user_is_refused() {
    let home = ProtectedHome::new("secrets-owner");
    home.write("KEY=one\n", 0o600);
    let path = match std::os::unix::fs::chown(home.path(), Some(65_534), None) {
        Ok(()) => home.path(),
        Err(_) => PathBuf::from("/proc/1/status"),
    };
    let fault = Secrets::open(path).read().unwrap_err();
    assert!(matches!(fault, SecretsFault::Owner(_)), "{fault}");
}

#[test]
fn what_is_too_large_or_no_text_is_refused() {
    let home = ProtectedHome::new("secrets-large");
    let count = usize::try_from(SECRETS_BYTES_MAX).unwrap();
    home.write(format!("#{}", "a".repeat(count)), 0o600);
    assert!(matches!(home.fault(), SecretsFault::TooLarge(_)));
    home.write(format!("#{}", "a".repeat(count - 1)), 0o600);
    assert!(Secrets::open(home.path()).read().is_ok());
    home.write(b"KEY=\xff\n", 0o600);
    assert!(matches!(home.fault(), SecretsFault::NotText(_)));
}

#[test]
fn a_bad_line_is_named_but_not_shown() {
    let home = ProtectedHome::new("secrets-line");
    home.write("KEY=one\nhunter2 is the password\n", 0o600);
    let shown = home.fault().to_string();
    assert!(shown.starts_with("line 2 of "), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_change_is_seen_without_a_restart() {
    let home = ProtectedHome::new("secrets-change");
    let secrets = Secrets::open(home.path());
    assert_eq!(secrets.read().unwrap().get("KEY"), None);
    // Same length, within one tick of the clock of the file system.
    for value in ["one", "two", "six"] {
        home.write(format!("KEY={value}\n"), 0o600);
        holds(&secrets, value);
    }
    home.write("KEY=one\n", 0o644);
    assert!(secrets.read().is_err());
    home.write("KEY=ten\n", 0o600);
    holds(&secrets, "ten");
    fs::remove_file(home.path()).unwrap();
    assert_eq!(secrets.read().unwrap().get("KEY"), None);
}

/// A file put in place of another, as old and as long, is another all the same.
#[test]
fn a_file_that_was_swapped_is_read_again() {
    let home = ProtectedHome::new("secrets-swap");
    let old = SystemTime::now() - Duration::from_secs(3_600);
    let age = || {
        let file = fs::File::options().write(true).open(home.path()).unwrap();
        file.set_modified(old).unwrap();
    };
    home.write("KEY=one\n", 0o600);
    age();
    let secrets = Secrets::open(home.path());
    holds(&secrets, "one");
    home.write("KEY=two\n", 0o600);
    age();
    holds(&secrets, "two");
}

#[test]
fn the_environment_comes_first_and_blank_counts_as_unset() {
    let home = ProtectedHome::new("secrets-order");
    home.write("KEY=file\nBLANK=file\nONLY=file\n", 0o600);
    let environment: Environment = [("KEY", "variable"), ("BLANK", "  ")].into_iter().collect();
    let merged = Secrets::open(home.path()).below(&environment).unwrap();
    let get = |name| merged.get(name);
    assert_eq!(
        (get("KEY"), get("BLANK"), get("ONLY"), get("NONE")),
        (Some("variable"), Some("file"), Some("file"), None)
    );
}
