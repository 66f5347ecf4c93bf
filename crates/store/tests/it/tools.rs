//! Tools as files, changed by us and by others.

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use store::tools::FileFault;
use store::{StoreError, ToolFile, ToolFolder};

use crate::home::Home;

fn names(files: &[ToolFile]) -> Vec<&str> {
    files.iter().map(|file| file.file_name.as_str()).collect()
}

fn text(files: &[ToolFile], name: &str) -> Result<String, FileFault> {
    let file = files.iter().find(|file| file.file_name == name).unwrap();
    file.text.clone().map(|text| text.to_string())
}

#[test]
fn what_is_written_is_found() {
    let home = Home::new("tools");
    let folder = ToolFolder::open(&home.path).unwrap();
    folder.write("b", "{}").unwrap();
    folder.create("a", "[]").unwrap();
    let files = folder.scan().unwrap();
    assert_eq!(names(&files), ["a.json", "b.json"]);
    assert_eq!(text(&files, "a.json").unwrap(), "[]");
    folder.write("a", "[1]").unwrap();
    assert_eq!(text(&folder.scan().unwrap(), "a.json").unwrap(), "[1]");
    let mode = fs::metadata(folder.path("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for folder in ["tools", "trash"] {
        let mode = fs::metadata(home.path.join(folder))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn nothing_is_overwritten_by_accident() {
    let home = Home::new("overwrite");
    let folder = ToolFolder::open(&home.path).unwrap();
    folder.create("hello", "1").unwrap();
    for clash in ["hello", "Hello", "HELLO"] {
        let refused = folder.create(clash, "2");
        assert!(matches!(refused, Err(StoreError::Exists { .. })), "{clash}");
    }
    assert!(matches!(
        folder.write("Hello", "2"),
        Err(StoreError::Exists { .. })
    ));
    assert_eq!(text(&folder.scan().unwrap(), "hello.json").unwrap(), "1");
    let left: Vec<_> = fs::read_dir(home.path.join("tools")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing unfinished is left");
}

#[test]
fn the_trash_keeps_everything() {
    let home = Home::new("trash");
    let folder = ToolFolder::open(&home.path).unwrap();
    let mut places = Vec::new();
    for round in ["1", "2", "3", "4", "5"] {
        folder.create("hello", round).unwrap();
        places.push((folder.trash("hello").unwrap(), round));
    }
    for (place, round) in places {
        assert_eq!(fs::read_to_string(place).unwrap(), round);
    }
    assert!(matches!(
        folder.trash("hello"),
        Err(StoreError::Missing { .. })
    ));
    assert!(folder.scan().unwrap().is_empty());
}

#[test]
fn a_name_leads_nowhere_else() {
    let home = Home::new("stem");
    let folder = ToolFolder::open(&home.path).unwrap();
    let long = "x".repeat(201);
    let bad = [
        "",
        ".",
        "..",
        ".hidden",
        "a/b",
        "../a",
        "a\\b",
        "a\nb",
        "a\0b",
        "a\u{202e}b",
        &long,
    ];
    for stem in bad {
        for refused in [folder.write(stem, "{}"), folder.create(stem, "{}")] {
            assert!(
                matches!(refused, Err(StoreError::BadStem { .. })),
                "{stem:?}"
            );
        }
        let refused = folder.trash(stem);
        assert!(
            matches!(refused, Err(StoreError::BadStem { .. })),
            "{stem:?}"
        );
    }
    for stem in ["ordinary", "with space", "größe", "a.b", &"x".repeat(200)] {
        folder.write(stem, "{}").unwrap();
    }
}

/// Every way a file can be bad, beside one that is good.
#[test]
fn a_bad_file_hides_no_other() {
    let home = Home::new("bad");
    let folder = ToolFolder::open(&home.path).unwrap();
    let tools = home.path.join("tools");
    folder.write("good", "{}").unwrap();
    fs::write(tools.join("binary.json"), b"\xff\xfe").unwrap();
    fs::create_dir(tools.join("folder.json")).unwrap();
    fs::write(home.path.join("outside"), "secret").unwrap();
    symlink(home.path.join("outside"), tools.join("out.json")).unwrap();
    symlink("good.json", tools.join("in.json")).unwrap();
    symlink("nowhere", tools.join("dangling.json")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(tools.join("pipe.json"))
        .status();
    assert!(made.unwrap().success());
    let long = fs::File::create(tools.join("long.json")).unwrap();
    long.set_len(16 * 1024 * 1024 + 1).unwrap();
    fs::write(tools.join(std::ffi::OsStr::from_bytes(b"\xff.json")), "{}").unwrap();
    fs::write(tools.join("notes.txt"), "not a tool").unwrap();
    fs::write(tools.join(".hidden.json"), "not a tool").unwrap();

    let files = folder.scan().unwrap();
    assert_eq!(files.len(), 9);
    assert_eq!(text(&files, "good.json").unwrap(), "{}");
    assert_eq!(text(&files, "binary.json"), Err(FileFault::NotText));
    assert_eq!(text(&files, "folder.json"), Err(FileFault::NotAFile));
    assert_eq!(text(&files, "pipe.json"), Err(FileFault::NotAFile));
    for link in ["out.json", "in.json", "dangling.json"] {
        assert_eq!(text(&files, link), Err(FileFault::Link));
    }
    assert!(matches!(
        text(&files, "long.json"),
        Err(FileFault::TooLong { .. })
    ));
    let odd = files
        .iter()
        .find(|file| file.text == Err(FileFault::NameNotText));
    assert!(odd.unwrap().file_name.ends_with(".json"));
}

/// The same size within the same tick of the clock is still a change.
#[test]
fn a_quick_edit_of_the_same_size_is_seen() {
    let home = Home::new("quick");
    let folder = ToolFolder::open(&home.path).unwrap();
    let path = home.path.join("tools/a.json");
    for round in 0..200 {
        let wanted = format!("{round:04}");
        fs::write(&path, &wanted).unwrap();
        assert_eq!(text(&folder.scan().unwrap(), "a.json").unwrap(), wanted);
    }
}

/// What a person does, and whether it counts.
#[test]
fn changes_are_noticed_once() {
    let home = Home::new("changes");
    let folder = ToolFolder::open(&home.path).unwrap();
    let path = |name: &str| home.path.join(name);
    let append = |name: &Path| {
        let mut file = fs::OpenOptions::new().append(true).open(name).unwrap();
        file.write_all(b" ").unwrap();
    };
    let acts: Vec<(&str, Box<dyn Fn()>)> = vec![
        ("new tool", Box::new(|| folder.write("a", "{}").unwrap())),
        (
            "tool over tool",
            Box::new(|| folder.write("a", "[]").unwrap()),
        ),
        ("edit in place", Box::new(|| append(&path("tools/a.json")))),
        (
            "rename",
            Box::new(|| fs::rename(path("tools/a.json"), path("tools/b.json")).unwrap()),
        ),
        (
            "out",
            Box::new(|| fs::rename(path("tools/b.json"), path("b.json")).unwrap()),
        ),
        (
            "back in",
            Box::new(|| fs::rename(path("b.json"), path("tools/b.json")).unwrap()),
        ),
        (
            "touch",
            Box::new(|| {
                let file = fs::File::open(path("tools/b.json")).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                    .unwrap();
            }),
        ),
        ("trash", Box::new(|| drop(folder.trash("b").unwrap()))),
        (
            "settings",
            Box::new(|| fs::write(path("ringfence.toml"), "").unwrap()),
        ),
        (
            "settings edited",
            Box::new(|| append(&path("ringfence.toml"))),
        ),
        (
            "secrets",
            Box::new(|| fs::write(path("secrets.env"), "A=1").unwrap()),
        ),
        (
            "secrets replaced",
            Box::new(|| {
                fs::write(path("new"), "A=2").unwrap();
                fs::rename(path("new"), path("secrets.env")).unwrap();
            }),
        ),
        (
            "secrets gone",
            Box::new(|| fs::remove_file(path("secrets.env")).unwrap()),
        ),
        ("rules", Box::new(|| fs::create_dir(path("rules")).unwrap())),
        (
            "a rule",
            Box::new(|| fs::write(path("rules/one.toml"), "x").unwrap()),
        ),
        (
            "a rule edited",
            Box::new(|| append(&path("rules/one.toml"))),
        ),
        (
            "rules replaced",
            Box::new(|| {
                fs::rename(path("rules"), path("old-rules")).unwrap();
                fs::create_dir(path("rules")).unwrap();
            }),
        ),
        (
            "a rule in the new folder",
            Box::new(|| fs::write(path("rules/one.toml"), "y").unwrap()),
        ),
        (
            "tools replaced",
            Box::new(|| {
                fs::rename(path("tools"), path("old-tools")).unwrap();
                fs::create_dir(path("tools")).unwrap();
            }),
        ),
        (
            "a tool in the new folder",
            Box::new(|| fs::write(path("tools/c.json"), "{}").unwrap()),
        ),
        (
            "tools gone",
            Box::new(|| fs::remove_dir_all(path("tools")).unwrap()),
        ),
        (
            "tools back",
            Box::new(|| fs::create_dir(path("tools")).unwrap()),
        ),
        (
            "and a tool",
            Box::new(|| fs::write(path("tools/d.json"), "{}").unwrap()),
        ),
        (
            "more than the queue holds",
            Box::new(|| {
                for round in 0..7_000 {
                    let name = format!("tools/{}.json", round % 2);
                    fs::write(path(&name), "{}").unwrap();
                }
            }),
        ),
    ];
    assert!(!folder.changed());
    for (what, act) in acts {
        act();
        assert!(folder.changed(), "{what}");
        while folder.changed() {}
    }
    let quiet: Vec<(&str, Box<dyn Fn()>)> = vec![
        (
            "other files",
            Box::new(|| fs::write(path("notes.txt"), "x").unwrap()),
        ),
        (
            "hidden files",
            Box::new(|| fs::write(path("tools/.swap"), "x").unwrap()),
        ),
        (
            "the trash",
            Box::new(|| fs::write(path("trash/x"), "x").unwrap()),
        ),
        (
            "the store",
            Box::new(|| crate::home::fill(&home.store(), 0..20)),
        ),
    ];
    for (what, act) in quiet {
        act();
        assert!(!folder.changed(), "{what}");
    }
}

/// What died half-way is cleaned up, but not what may still be written.
#[test]
fn unfinished_files_are_removed_when_old() {
    let home = Home::new("unfinished");
    drop(ToolFolder::open(&home.path).unwrap());
    let young = home.path.join("tools/.ringfence-young.tmp");
    fs::write(&young, "x").unwrap();
    let folder = ToolFolder::open(&home.path).unwrap();
    assert!(young.exists());
    assert!(folder.scan().unwrap().is_empty());
}
