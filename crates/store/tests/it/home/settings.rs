//! The operator's files: which count, and what makes them unreadable.

use std::fs;
use std::os::unix::fs::symlink;

use model::limits;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use store::settings::{self, read_rules};

use crate::scratch::Home;

fn home(name: &str) -> Home {
    let home = Home::new(name);
    fs::create_dir_all(home.path.join("rules")).unwrap();
    home
}

fn write(home: &Home, name: &str, text: &str) {
    fs::write(home.path.join(name), text).unwrap();
}

fn fault(home: &Home) -> String {
    let mut error: &dyn std::error::Error = &read_rules(&home.path).unwrap_err();
    let mut said = error.to_string();
    while let Some(source) = error.source() {
        said = format!("{said}: {source}");
        error = source;
    }
    said
}

#[test]
fn rule_files_are_read_by_name_and_other_files_are_not() {
    let home = home("rules-order");
    for name in ["b.toml", "a.toml", "10.toml", ".c.toml", "d.txt", "e.toml~"] {
        write(&home, &format!("rules/{name}"), name);
    }
    write(&home, "elsewhere", "behind a link");
    symlink("../elsewhere", home.path.join("rules/z.toml")).unwrap();
    let files = read_rules(&home.path).unwrap();
    let seen: Vec<_> = files
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
        .collect();
    let expected = [
        ("rules/10.toml", "10.toml"),
        ("rules/a.toml", "a.toml"),
        ("rules/b.toml", "b.toml"),
        ("rules/z.toml", "behind a link"),
    ];
    assert_eq!(seen, expected);
    fs::remove_dir_all(home.path.join("rules")).unwrap();
    assert_eq!(read_rules(&home.path).unwrap(), []);
}

/// What cannot be read is never nothing: without it less may be denied.
#[test]
fn unreadable_settings_are_an_error() {
    let nowhere = home("rules-nowhere");
    symlink("nowhere", nowhere.path.join("rules/a.toml")).unwrap();
    assert!(fault(&nowhere).contains("a.toml"));
    symlink("nowhere", nowhere.path.join("ringfence.toml")).unwrap();
    assert!(settings::read(&nowhere.path).is_err());

    let folder = home("rules-folder");
    fs::create_dir(folder.path.join("rules/a.toml")).unwrap();
    assert!(fault(&folder).contains("a.toml"));

    let pipe = home("rules-pipe");
    let path = pipe.path.join("rules/a.toml");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(fault(&pipe).contains("it is a pipe"));

    let bytes = home("rules-bytes");
    fs::write(bytes.path.join("rules/a.toml"), b"\xff").unwrap();
    assert!(fault(&bytes).contains("a.toml"));

    let file = Home::new("rules-file");
    fs::create_dir_all(&file.path).unwrap();
    write(&file, "rules", "");
    assert!(fault(&file).contains("rules"));
}

#[test]
fn rule_files_are_bounded() {
    let home = home("rules-bound");
    for number in 0..limits::RULE_FILES_MAX {
        write(&home, &format!("rules/{number}.toml"), "");
    }
    assert_eq!(
        read_rules(&home.path).unwrap().len(),
        limits::RULE_FILES_MAX
    );
    write(&home, "rules/more.toml", "");
    assert!(fault(&home).contains("more than 100 rule files"));
    fs::remove_file(home.path.join("rules/more.toml")).unwrap();
    let long = "#".repeat(limits::CONFIG_BYTES_MAX);
    let count = limits::RULE_FILES_BYTES_MAX / long.len();
    for number in 0..count {
        write(&home, &format!("rules/{number}.toml"), &long);
    }
    assert!(read_rules(&home.path).is_ok());
    write(&home, "rules/99.toml", "#");
    assert!(fault(&home).contains("more than 4 MiB together"));
}
