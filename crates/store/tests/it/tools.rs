//! Tools as files, changed by us and by others.

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use store::tools::FileFault;
use store::{StoreError, ToolFile, ToolFolder};

use crate::scratch::Home;

fn names(files: &[ToolFile]) -> Vec<&str> {
    files.iter().map(|file| file.file_name.as_str()).collect()
}

fn text(files: &[ToolFile], name: &str) -> Result<String, FileFault> {
    let file = files.iter().find(|file| file.file_name == name).unwrap();
    file.text.clone().map(|text| text.to_string())
}

#[test]
fn a_written_tool_is_found() {
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
fn file_names_cannot_leave_the_folder() {
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

/// One act, and what it does in a home.
type Act = (&'static str, fn(&Path));

fn put(home: &Path, name: &str) {
    fs::write(home.join(name), "{}").unwrap();
}

fn append(home: &Path, name: &str) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(home.join(name))
        .unwrap();
    file.write_all(b" ").unwrap();
}

fn rename(home: &Path, from: &str, to: &str) {
    fs::rename(home.join(from), home.join(to)).unwrap();
}

fn replace_folder(home: &Path, name: &str) {
    rename(home, name, &format!("old-{name}"));
    fs::create_dir(home.join(name)).unwrap();
}

/// Each counts, one after the other.
const NOTICED: &[Act] = &[
    ("new tool", |home| put(home, "tools/a.json")),
    ("edit in place", |home| append(home, "tools/a.json")),
    ("rename", |home| {
        rename(home, "tools/a.json", "tools/b.json")
    }),
    ("out", |home| rename(home, "tools/b.json", "b.json")),
    ("back in", |home| rename(home, "b.json", "tools/b.json")),
    ("touch", |home| {
        let file = fs::File::open(home.join("tools/b.json")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
    }),
    ("removed", |home| {
        fs::remove_file(home.join("tools/b.json")).unwrap()
    }),
    ("settings", |home| {
        fs::write(home.join("ringfence.toml"), "# {}").unwrap()
    }),
    ("settings edited", |home| append(home, "ringfence.toml")),
    ("secrets", |home| put(home, "secrets.env")),
    ("secrets replaced", |home| {
        put(home, "new");
        rename(home, "new", "secrets.env");
    }),
    ("secrets gone", |home| {
        fs::remove_file(home.join("secrets.env")).unwrap()
    }),
    ("rules", |home| fs::create_dir(home.join("rules")).unwrap()),
    ("a rule", |home| put(home, "rules/one.toml")),
    ("a rule edited", |home| append(home, "rules/one.toml")),
    ("rules replaced", |home| replace_folder(home, "rules")),
    ("a rule in the new folder", |home| {
        put(home, "rules/one.toml")
    }),
    ("tools replaced", |home| replace_folder(home, "tools")),
    ("a tool in the new folder", |home| put(home, "tools/c.json")),
    ("tools gone", |home| {
        fs::remove_dir_all(home.join("tools")).unwrap()
    }),
    ("tools back", |home| {
        fs::create_dir(home.join("tools")).unwrap()
    }),
    ("and a tool", |home| put(home, "tools/d.json")),
    ("a publication", publish),
    ("the counter of publications gone", |home| {
        fs::remove_file(home.join("standing.version")).unwrap()
    }),
    ("the counter back", |home| {
        drop(store::Store::open(home, store::StoreSettings::standard()).unwrap());
    }),
    ("a publication after that", publish),
    ("more than the queue holds", |home| {
        put(home, "tools/0.json");
        put(home, "tools/1.json");
        for round in 0..20_000 {
            let path = home.join(format!("tools/{}.json", round % 2));
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }),
];

/// Edits a file by another name, in a folder that nobody watches.
fn through_a_link(home: &Path, name: &str) {
    let links = home.with_extension("links");
    let link = links.join(name.replace('/', "-"));
    let _ = fs::remove_file(&link);
    fs::hard_link(home.join(name), &link).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&link).unwrap();
    std::io::Write::write_all(&mut file, b"\n# more").unwrap();
}

/// An edit by another name of the file is no event of a folder that is watched.
#[test]
fn an_edit_through_a_hard_link_is_noticed() {
    let home = Home::new("hard-links");
    drop(home.store());
    let links = home.path.with_extension("links");
    fs::create_dir_all(&links).unwrap();
    fs::create_dir_all(home.path.join("rules")).unwrap();
    let folder = ToolFolder::open(&home.path).unwrap();
    for name in ["ringfence.toml", "secrets.env", "rules/one.toml"] {
        put(&home.path, name);
        while folder.changed() {}
        through_a_link(&home.path, name);
        assert!(folder.changed(), "{name}");
        while folder.changed() {}
        // And again, by a link that was there before.
        let link = links.join(name.replace('/', "-"));
        fs::write(link, "# another").unwrap();
        assert!(folder.changed(), "{name}");
        while folder.changed() {}
    }
    put(&home.path, "tools/a.json");
    fs::hard_link(home.path.join("tools/a.json"), links.join("a.json")).unwrap();
    append(&home.path, "tools/a.json");
    while folder.changed() {}
    fs::write(links.join("a.json"), "{}").unwrap();
    assert!(folder.changed(), "a tool");
    fs::remove_dir_all(links).unwrap();
}

fn publish(home: &Path) {
    let store = store::Store::open(home, store::StoreSettings::standard()).unwrap();
    let pass = store::Pass {
        digest: "d".to_owned(),
        name: "hello".to_owned(),
        ok: true,
        at_ms: 1,
        error: None,
        elapsed_ms: 1,
    };
    store.publications().record_pass(&pass).unwrap();
}

/// None of these does.
const QUIET: &[Act] = &[
    ("other files", |home| put(home, "notes.txt")),
    ("hidden files", |home| put(home, "tools/.swap")),
    ("the trash", |home| put(home, "trash/x")),
    ("the store", |home| {
        let store = store::Store::open(home, store::StoreSettings::standard()).unwrap();
        crate::scratch::fill(&store, 0..20);
    }),
];

#[test]
fn changes_are_noticed_once() {
    let home = Home::new("changes");
    drop(home.store());
    let folder = ToolFolder::open(&home.path).unwrap();
    assert!(!folder.changed());
    assert!(folder.news().covers_publications);
    for (what, act) in NOTICED {
        act(&home.path);
        let news = folder.news();
        let is_publication = what.starts_with("a publication");
        assert_eq!(news.publications, is_publication, "{what}");
        assert_eq!(news.files, !is_publication, "{what}");
        while folder.changed() {}
    }
    folder.write("written", "{}").unwrap();
    assert!(folder.changed());
    folder.trash("written").unwrap();
    assert!(folder.changed());
    while folder.changed() {}
    for (what, act) in QUIET {
        act(&home.path);
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
