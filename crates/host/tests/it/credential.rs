//! The credentials a service manager hands over: what counts as one, and what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;

use host::secrets::{CREDENTIALS_MAX, Credentials, Secrets, SecretsFault, TOKEN_CREDENTIAL};

use crate::scratch::Scratch;

struct HandedOver {
    scratch: Scratch,
}

impl HandedOver {
    fn new(name: &str) -> HandedOver {
        let handed = HandedOver {
            scratch: Scratch::new(name),
        };
        fs::create_dir(handed.folder()).unwrap();
        handed.set_folder_mode(0o500);
        handed
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path.join("credentials")
    }

    fn set_folder_mode(&self, mode: u32) {
        fs::set_permissions(self.folder(), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        self.set_folder_mode(0o700);
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        self.set_folder_mode(0o500);
        path
    }

    fn credentials(&self) -> Credentials {
        Credentials::open(self.folder())
    }

    fn fault(&self) -> SecretsFault {
        self.credentials().values().unwrap_err()
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        self.set_folder_mode(0o700);
    }
}

#[test]
fn a_file_is_a_variable_without_its_last_line_break() {
    let handed = HandedOver::new("credential-plain");
    handed.put("KEY", "one\n", 0o400);
    handed.put("OTHER", "two\n\n", 0o600);
    handed.put("EMPTY", "", 0o400);
    let values = handed.credentials().values().unwrap();
    assert_eq!(values.get("KEY"), Some("one"));
    assert_eq!(values.get("OTHER"), Some("two\n"));
    assert_eq!(values.get("EMPTY"), None);
}

#[test]
fn the_environment_comes_first_then_credentials_then_the_file() {
    let handed = HandedOver::new("credential-order");
    for name in ["A", "B"] {
        handed.put(name, "credential", 0o400);
    }
    let file = handed.scratch.path.join("secrets.env");
    fs::write(&file, "A=file\nB=file\nC=file\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let environment = [("A", "environment")].into_iter().collect();
    let secrets = Secrets::open(file).with_credentials(Some(handed.credentials()));
    let values = secrets.below(&environment).unwrap();
    let get = |name| values.get(name);
    assert_eq!(
        (get("A"), get("B"), get("C")),
        (Some("environment"), Some("credential"), Some("file"))
    );
}

#[test]
fn the_token_is_no_variable() {
    let handed = HandedOver::new("credential-token");
    assert_eq!(handed.credentials().token().unwrap(), None);
    handed.put(TOKEN_CREDENTIAL, "a token\n", 0o400);
    let token = handed.credentials().token().unwrap();
    assert_eq!(token.as_deref(), Some("a token"));
    assert_eq!(
        format!("{:?}", handed.credentials().values().unwrap()),
        "{}"
    );
}

#[test]
fn a_name_that_no_variable_has_is_refused() {
    for name in ["service-key", "ringfence.tokn", ".hidden", "schlüssel"] {
        let handed = HandedOver::new("credential-name");
        handed.put(name, "one", 0o400);
        let fault = handed.fault();
        assert!(matches!(fault, SecretsFault::Name(_)), "{name}: {fault}");
        assert!(fault.to_string().contains(name), "{fault}");
    }
}

#[test]
fn a_file_that_others_can_use_is_refused() {
    for mode in [0o440, 0o404, 0o420, 0o666, 0o500, 0o4400] {
        let handed = HandedOver::new("credential-mode");
        handed.put("KEY", "one", mode);
        // The group's bit is a mask of an access list only where root owns the file and
        // another user reads it.
        assert!(
            matches!(handed.fault(), SecretsFault::Mode { .. }),
            "{mode:o}"
        );
        assert!(handed.credentials().token().is_ok());
    }
}

#[test]
fn what_is_no_file_of_ours_is_refused() {
    let handed = HandedOver::new("credential-link");
    let real = handed.scratch.path.join("real");
    fs::write(&real, "one").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o400)).unwrap();
    handed.set_folder_mode(0o700);
    symlink(&real, handed.folder().join("KEY")).unwrap();
    assert!(matches!(handed.fault(), SecretsFault::Link(_)));
    let handed = HandedOver::new("credential-folder-inside");
    handed.set_folder_mode(0o700);
    fs::create_dir(handed.folder().join("KEY")).unwrap();
    assert!(matches!(handed.fault(), SecretsFault::NotRegular(_)));
    let handed = HandedOver::new("credential-owner");
    let path = handed.put("KEY", "one", 0o400);
    // Only the superuser can give a file away.
    if chown(path, Some(65_534), None).is_ok() {
        assert!(matches!(handed.fault(), SecretsFault::Owner(_)));
    }
}

#[test]
fn a_folder_that_others_can_change_is_refused() {
    let handed = HandedOver::new("credential-folder");
    handed.put("KEY", "one", 0o400);
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        handed.set_folder_mode(mode);
        assert!(
            matches!(handed.fault(), SecretsFault::Folder(_)),
            "{mode:o}"
        );
        let token = handed.credentials().token();
        assert!(matches!(token, Err(SecretsFault::Folder(_))), "{mode:o}");
    }
    handed.set_folder_mode(0o500);
    let link = handed.scratch.path.join("link");
    symlink(handed.folder(), &link).unwrap();
    let fault = Credentials::open(link).values().unwrap_err();
    assert!(matches!(fault, SecretsFault::Folder(_)), "{fault}");
    let fault = Credentials::open("relative").values().unwrap_err();
    assert!(matches!(fault, SecretsFault::Read { .. }), "{fault}");
    let none = handed.scratch.path.join("none");
    let fault = Credentials::open(none).values().unwrap_err();
    assert!(matches!(fault, SecretsFault::Read { .. }), "{fault}");
}

#[test]
fn too_many_files_are_refused() {
    let handed = HandedOver::new("credential-many");
    for number in 0..CREDENTIALS_MAX {
        handed.put(&format!("K{number}"), "one", 0o400);
    }
    assert!(handed.credentials().values().is_ok());
    handed.put("LAST", "one", 0o400);
    assert!(matches!(handed.fault(), SecretsFault::TooMany(_)));
}
