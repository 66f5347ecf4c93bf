//! `safety.fs`: what each function promises, as folders of `cases/files` and
//! `cases/attack/files`, and the few things a folder cannot say.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use host::files::{FileEvent, FileRefusal, Files, FilesError, limit};
use host::message::FaultKind;
use model::policy::grant::FileGrant;
use model::record::mask::Masker;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toml::Table;

use crate::scratch::{CANARY, Scratch, call, grant, tree};

/// Every reason a case must show; the head of `host::files` names the newer ones.
const REASONS: &[&str] = &[
    "answer-too-large",
    "copy-source-not-file",
    "cut-fields-required",
    "cut-invalid-delimiter",
    "delete-is-directory",
    "deletedir-not-a-directory",
    "deletedir-workspace-root",
    "edit-ambiguous",
    "edit-file-missing",
    "edit-no-match",
    "edit-old-required",
    "fields-not-array",
    "fields-required",
    "file-too-large",
    "find-invalid-glob",
    "find-invalid-type",
    "find-not-a-directory",
    "grep-invalid-pattern",
    "grep-pattern-required",
    "invalid-arguments",
    "invalid-path",
    "io",
    "line-too-long",
    "missing-args",
    "move-source-missing",
    "not-a-directory",
    "not-a-regular-file",
    "not-granted",
    "not-utf8",
    "path-escapes-base",
    "path-required",
    "search-invalid-glob",
    "search-invalid-pattern",
    "search-not-a-directory",
    "search-pattern-required",
    "too-many-lines",
    "unknown-function",
    "write-outside-workspace",
    "write-through-symlink",
];

/// Reasons that need more than a small folder; each has a test below.
const REASONS_TESTED_HERE: &[&str] = &["timeout", "too-many-entries", "tree-too-deep"];

#[test]
fn cases_of_functions() {
    let mut reasons = BTreeSet::new();
    let mut functions = BTreeSet::new();
    for folder in folders("cases/files", 20) {
        Case::read(&folder).run(&mut functions, &mut reasons);
    }
    for folder in folders("cases/attack/files", 20) {
        Case::read(&folder).run(&mut functions, &mut reasons);
    }
    let scratch = Scratch::new("names");
    for name in scratch.files().functions() {
        assert!(functions.contains(name), "no case calls {name}");
    }
    let expected: BTreeSet<_> = REASONS.iter().map(|&reason| reason.to_owned()).collect();
    assert_eq!(reasons, expected, "the reasons the cases show");
    assert_eq!(REASONS_TESTED_HERE.len(), 3);
}

fn folders(place: &str, least: usize) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(place);
    let entries = fs::read_dir(root).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(
        paths.len() >= least,
        "only {} cases in {place}",
        paths.len()
    );
    paths
}

/// One folder. `case.toml` holds: `base`, `read`, `write`, `roots`, `id`; a
/// `[[tree]]` of what is there; a `[[call]]` for each call; an `[[after]]` of
/// what must be there in the end. `{ws}` and `{outside}` stand for folders.
struct Case {
    name: String,
    table: Table,
    scratch: Scratch,
}

impl Case {
    fn read(folder: &Path) -> Case {
        let text = fs::read_to_string(folder.join("case.toml")).unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            text.starts_with("# "),
            "{name} does not say what it defends"
        );
        let table = text
            .parse()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let scratch = Scratch::new(&name);
        Case {
            name,
            table,
            scratch,
        }
    }

    fn run(&self, functions: &mut BTreeSet<String>, reasons: &mut BTreeSet<String>) {
        for entry in self.tables("tree") {
            self.plant(entry);
        }
        let outside = self.scratch.outside();
        let files = self.open();
        for (index, wanted) in self.tables("call").into_iter().enumerate() {
            let at = format!("{} call {}", self.name, index + 1);
            let function = self.text(wanted, "function").unwrap();
            let raw_arguments = self.text(wanted, "arguments").unwrap_or("[]".to_owned());
            let arguments: Value = serde_json::from_str(&raw_arguments).unwrap();
            let answer = call(&files, &function, arguments);
            functions.insert(function);
            let shown = format!("{answer:?}");
            assert!(!shown.contains(CANARY), "{at} gave {shown}");
            match (answer, wanted.get("fault").is_some()) {
                (Ok(answer), false) => self.check_value(&at, answer.value, wanted),
                (Err(fault), true) => {
                    let words = format!("{} {}", fault.kind.word(), fault.reason);
                    assert_eq!(
                        words,
                        self.text(wanted, "fault").unwrap(),
                        "{at}: {fault:?}"
                    );
                    assert!(!fault.told(&Masker::none()).contains('\n'), "{at}");
                    if let Some(message) = self.text(wanted, "message") {
                        assert_eq!(fault.told(&Masker::none()), message, "{at}");
                    }
                    if let Some(helper) = self.text(wanted, "helper") {
                        assert_eq!(fault.helper, helper, "{at}");
                    }
                    reasons.insert(fault.reason.to_owned());
                }
                (Ok(answer), true) => panic!("{at} should refuse, gave {answer:?}"),
                (Err(fault), false) => panic!("{at} refused: {fault:?}"),
            }
        }
        assert_eq!(
            self.scratch.outside(),
            outside,
            "{} changed outside",
            self.name
        );
        self.check_after();
    }

    fn check_value(&self, at: &str, mut value: Value, wanted: &Table) {
        if let Some(mtime) = value.get_mut("mtime") {
            assert!(mtime.as_i64().unwrap() > 1_700_000_000_000, "{at}");
            *mtime = json!(0);
        }
        let raw_value = self.text(wanted, "value").unwrap_or("null".to_owned());
        let expected: Value = serde_json::from_str(&raw_value).unwrap();
        assert_eq!(value, expected, "{at}");
    }

    fn check_after(&self) {
        let found = tree(&self.scratch.path);
        for name in found.keys() {
            assert!(!name.contains(".ringfence-"), "{} left {name}", self.name);
        }
        for wanted in self.tables("after") {
            let path = self.text(wanted, "path").unwrap();
            let is = self.text(wanted, "is").unwrap();
            let found = found.get(&path).map_or("absent", String::as_str);
            assert_eq!(found, is, "{} {path}", self.name);
        }
    }

    fn open(&self) -> Files {
        let flag = |name: &str| {
            self.table
                .get(name)
                .is_none_or(|flag| flag.as_bool().unwrap())
        };
        let grant = FileGrant {
            read: flag("read"),
            write: flag("write"),
            base_path: self.text(&self.table, "base"),
        };
        let mut settings = self.scratch.settings();
        settings.sub_workspace = self.text(&self.table, "id");
        let roots = self.text(&self.table, "roots").unwrap_or_default();
        let roots = roots.split_whitespace().map(PathBuf::from);
        settings.read_roots = roots.collect();
        Files::open(&grant, &settings).unwrap().unwrap()
    }

    fn plant(&self, entry: &Table) {
        let path = self.scratch.path.join(self.text(entry, "path").unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Some(text) = self.text(entry, "text") {
            let times = entry
                .get("times")
                .map_or(1, |times| times.as_integer().unwrap());
            fs::write(&path, text.repeat(usize::try_from(times).unwrap())).unwrap();
        } else if let Some(bytes) = entry.get("bytes") {
            let bytes = bytes.as_array().unwrap().iter();
            let bytes = bytes.map(|byte| u8::try_from(byte.as_integer().unwrap()).unwrap());
            fs::write(&path, bytes.collect::<Vec<u8>>()).unwrap();
        } else if let Some(target) = self.text(entry, "link") {
            symlink(target, &path).unwrap();
        } else if let Some(original) = self.text(entry, "hard") {
            fs::hard_link(self.scratch.path.join(original), &path).unwrap();
        } else if entry.contains_key("pipe") {
            mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        } else if entry.contains_key("socket") {
            mknodat(CWD, &path, FileType::Socket, Mode::RWXU, 0).unwrap();
        } else {
            fs::create_dir_all(&path).unwrap();
        }
        if let Some(mode) = entry.get("mode") {
            let mode = u32::try_from(mode.as_integer().unwrap()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    fn tables(&self, key: &str) -> Vec<&Table> {
        let tables = self.table.get(key).and_then(|tables| tables.as_array());
        let tables = tables.into_iter().flatten();
        tables.map(|table| table.as_table().unwrap()).collect()
    }

    fn text(&self, table: &Table, key: &str) -> Option<String> {
        let text = table.get(key)?.as_str().unwrap();
        let outside = self.scratch.path.join("outside").display().to_string();
        let workspace = self.scratch.workspace().display().to_string();
        let text = text.replace("{ws}", &workspace);
        Some(text.replace("{outside}", &outside))
    }
}

#[test]
fn nothing_granted_is_nothing_there() {
    let scratch = Scratch::new("grant");
    let open = |read, write| Files::open(&grant(read, write), &scratch.settings()).unwrap();
    assert!(open(false, false).is_none());
    let always = ["workspace", "readRoots"];
    let reads = open(true, false).unwrap().functions();
    assert_eq!(reads.len(), 13);
    assert!(!reads.contains(&"writeText") && always.iter().all(|name| reads.contains(name)));
    let writes = open(false, true).unwrap().functions();
    assert_eq!(writes.len(), 9);
    assert!(!writes.contains(&"readText") && always.iter().all(|name| writes.contains(name)));
    assert_eq!(open(true, true).unwrap().functions().len(), 20);
}

#[test]
fn the_workspace_is_made_for_its_owner_only() {
    let scratch = Scratch::new("made");
    let mut settings = scratch.settings();
    settings.workspace = scratch.path.join("new/workspace");
    settings.sub_workspace = Some("chat/1".to_owned());
    let files = Files::open(&grant(true, true), &settings).unwrap().unwrap();
    let expected = settings.workspace.join("chat~2f1");
    assert_eq!(
        call(&files, "workspace", json!([])).unwrap().value,
        json!(expected)
    );
    for folder in [&settings.workspace, &expected] {
        let mode = fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
    // Opening again finds it.
    assert!(
        Files::open(&grant(true, false), &settings)
            .unwrap()
            .is_some()
    );
}

#[test]
fn callers_never_see_each_others_folders() {
    let scratch = Scratch::new("callers");
    let open = |id: &str| {
        let mut settings = scratch.settings();
        settings.sub_workspace = Some(id.to_owned());
        Files::open(&grant(true, true), &settings)
    };
    let one = open("one").unwrap().unwrap();
    call(&one, "writeText", json!(["secret.txt", "mine"])).unwrap();
    let two = open("two").unwrap().unwrap();
    let theirs = scratch.workspace().join("one/secret.txt");
    for path in ["../one/secret.txt", theirs.to_str().unwrap()] {
        let fault = call(&two, "readText", json!([path])).unwrap_err();
        assert_eq!(fault.reason, "path-escapes-base");
    }
    for id in ["", ".", ".."] {
        assert!(matches!(open(id), Err(FilesError::Id { .. })), "{id}");
    }
    // A link under the name of a caller to come.
    symlink("one", scratch.workspace().join("three")).unwrap();
    assert!(matches!(open("three"), Err(FilesError::Open { .. })));
}

/// Attack: a nested repository whose settings name hooks outside of itself, in the operator's
/// folder. Nothing above the hooks tells of them.
#[test]
fn what_a_nested_repository_names_is_not_for_tools() {
    let scratch = Scratch::new("nested");
    let own = scratch.path.join("own");
    for folder in ["vendor/lib/.git", "tools/hooks", "src", "old/hooks"] {
        fs::create_dir_all(own.join(folder)).unwrap();
    }
    let config = "[core]\n\thooksPath = ../../tools/hooks\n\tfsmonitor = ../../old/hooks/watch\n";
    fs::write(own.join("vendor/lib/.git/config"), config).unwrap();
    for file in ["tools/hooks/pre-commit", "old/hooks/watch", "src/x"] {
        fs::write(own.join(file), "before").unwrap();
    }
    let before = tree(&own);
    let grant = FileGrant {
        base_path: Some(own.display().to_string()),
        ..grant(true, true)
    };
    let files = Files::open(&grant, &scratch.settings()).unwrap().unwrap();
    for (function, arguments) in [
        ("writeText", json!(["tools/hooks/pre-commit", "x"])),
        ("writeText", json!(["tools/hooks/new", "x"])),
        ("editText", json!(["tools/hooks/pre-commit", "before", "x"])),
        ("delete", json!(["old/hooks/watch"])),
        ("copy", json!(["src/x", "old/hooks/watch"])),
        ("move", json!(["src/x", "tools/hooks/x"])),
        ("move", json!(["old", "older"])),
        ("deleteDir", json!(["old"])),
    ] {
        let refused = call(&files, function, arguments.clone()).unwrap_err();
        assert_eq!(refused.reason, "path-protected", "{function} {arguments}");
        assert_eq!(tree(&own), before, "{function} {arguments}");
    }
    call(&files, "writeText", json!(["src/x", "after"])).unwrap();
}

#[test]
fn folders_that_cannot_be_opened_are_errors() {
    let scratch = Scratch::new("errors");
    let open = |base: &str| {
        let base_path = Some(base.to_owned());
        let grant = FileGrant {
            base_path,
            ..grant(true, true)
        };
        Files::open(&grant, &scratch.settings()).unwrap_err()
    };
    assert!(matches!(
        open("relative/folder"),
        FilesError::Relative { .. }
    ));
    assert!(matches!(open("~"), FilesError::Relative { .. }));
    let missing = scratch.path.join("missing").display().to_string();
    assert!(matches!(open(&missing), FilesError::Open { .. }));
    let file = scratch
        .path
        .join("outside/canary.txt")
        .display()
        .to_string();
    let error = open(&file);
    assert_eq!(
        error.to_string(),
        format!("could not open the folder `{file}`")
    );
    assert!(!Path::new(&missing).exists());
}

#[test]
fn operators_may_spell_a_folder_their_way() {
    let scratch = Scratch::new("spelling");
    symlink("ws", scratch.path.join("alias")).unwrap();
    fs::write(scratch.path.join("ws/a.txt"), "a").unwrap();
    let mut settings = scratch.settings();
    settings.workspace = scratch.path.join("alias");
    let files = Files::open(&grant(true, true), &settings).unwrap().unwrap();
    for name in ["alias/a.txt", "ws/a.txt"] {
        let path = scratch.path.join(name);
        assert_eq!(
            call(&files, "readText", json!([path])).unwrap().value,
            json!("a")
        );
    }
    let workspace = call(&files, "workspace", json!([])).unwrap().value;
    assert_eq!(workspace, json!(scratch.path.join("ws")));
}

#[test]
fn every_call_leaves_an_event() {
    let scratch = Scratch::new("events");
    let files = scratch.files();
    let workspace = scratch.workspace();
    call(
        &files,
        "writeText",
        json!([workspace.join("a.txt"), "hello"]),
    )
    .unwrap();
    call(&files, "copy", json!(["a.txt", "b\u{202e}.txt"])).unwrap();
    call(&files, "readText", json!(["../outside/canary.txt"])).unwrap_err();
    call(&files, "format", json!(["x"])).unwrap_err();
    let event = |function: &str, path: Option<&str>, bytes| FileEvent {
        function: function.to_owned(),
        path: path.map(str::to_owned),
        target: None,
        bytes,
        refused: None,
    };
    let refused = |kind, reason| Some(FileRefusal { kind, reason });
    let expected = [
        event("writeText", Some("a.txt"), 5),
        FileEvent {
            target: Some("b\u{202e}.txt".to_owned()),
            ..event("copy", Some("a.txt"), 5)
        },
        FileEvent {
            refused: refused(FaultKind::Security, "path-escapes-base"),
            ..event("readText", Some("../outside/canary.txt"), 0)
        },
        FileEvent {
            refused: refused(FaultKind::InvalidInput, "unknown-function"),
            ..event("format", None, 0)
        },
    ];
    assert_eq!(files.take_events().kept, expected);
    assert_eq!(files.take_events().kept, []);
    for _ in 0..=limit::EVENTS_MAX {
        call(&files, "workspace", json!([])).unwrap();
    }
    let events = files.take_events();
    assert_eq!(
        (events.kept.len(), events.dropped_count),
        (limit::EVENTS_MAX, 1)
    );
}

#[test]
fn a_call_that_is_over_reads_and_walks_nothing() {
    let scratch = Scratch::new("deadline");
    fs::write(scratch.workspace().join("a.txt"), "a").unwrap();
    let mut settings = scratch.settings();
    settings.deadline = Instant::now();
    let files = Files::open(&grant(true, true), &settings).unwrap().unwrap();
    let calls = [
        ("readText", json!(["a.txt"])),
        ("list", json!([])),
        ("find", json!([])),
        ("searchInFiles", json!([".", "*", "a"])),
        ("writeText", json!(["a.txt", "b"])),
        ("delete", json!(["a.txt"])),
    ];
    for (function, arguments) in calls {
        let fault = call(&files, function, arguments).unwrap_err();
        assert_eq!(fault.reason, "timeout", "{function}");
    }
    assert_eq!(
        fs::read_to_string(scratch.workspace().join("a.txt")).unwrap(),
        "a"
    );
}

#[test]
fn too_many_entries_are_refused_and_left_alone() {
    let scratch = Scratch::new("entries");
    let folder = scratch.workspace().join("many");
    fs::create_dir(&folder).unwrap();
    for index in 0..limit::DELETE_ENTRIES_MAX {
        fs::write(folder.join(index.to_string()), "").unwrap();
    }
    let files = scratch.files();
    let list = call(&files, "list", json!(["many"])).unwrap().value;
    assert_eq!(list.as_array().unwrap().len(), limit::LIST_ENTRIES_MAX);
    let fault = call(&files, "deleteDir", json!(["many"])).unwrap_err();
    assert_eq!(fault.reason, "too-many-entries");
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        limit::DELETE_ENTRIES_MAX
    );
    fs::write(folder.join("one more"), "").unwrap();
    for function in ["list", "find"] {
        let fault = call(&files, function, json!(["many"])).unwrap_err();
        assert_eq!(fault.reason, "too-many-entries", "{function}");
    }
}

#[test]
fn trees_that_are_too_deep_are_refused_and_left_alone() {
    let scratch = Scratch::new("deep");
    let mut folder = scratch.workspace().join("deep");
    for _ in 0..limit::WALK_DEPTH_MAX + 1 {
        folder.push("d");
    }
    fs::create_dir_all(&folder).unwrap();
    let files = scratch.files();
    for (function, arguments) in [
        ("find", json!([])),
        ("searchInFiles", json!([".", "*", "x"])),
        ("deleteDir", json!(["deep"])),
    ] {
        let fault = call(&files, function, arguments).unwrap_err();
        assert_eq!(fault.reason, "tree-too-deep", "{function}");
    }
    assert!(folder.is_dir());
    let shallow = call(&files, "find", json!([".", "*", {"maxDepth": 3}]))
        .unwrap()
        .value;
    assert_eq!(shallow, json!(["deep", "deep/d", "deep/d/d"]));
}

#[test]
fn new_files_keep_the_mode_of_the_old_but_never_its_special_bits() {
    let scratch = Scratch::new("mode");
    let path = scratch.workspace().join("tool.sh");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6750)).unwrap();
    call(&scratch.files(), "writeText", json!(["tool.sh", "new"])).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
}

#[test]
fn calls_at_the_same_time_lose_nothing() {
    let scratch = Scratch::new("together");
    // Two handles, each shared by two threads.
    let handles = [scratch.files(), scratch.files()];
    std::thread::scope(|scope| {
        for (name, files) in ["a", "b", "c", "d"].iter().zip(handles.iter().cycle()) {
            scope.spawn(move || {
                for _ in 0..25 {
                    call(files, "appendText", json!(["log.txt", format!("{name}\n")])).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(scratch.workspace().join("log.txt")).unwrap();
    assert_eq!(text.lines().count(), 100);
    assert_eq!(text.matches('c').count(), 25);
}

/// Without a bound, one tool could fill the disk for everybody.
#[test]
fn a_full_workspace_takes_no_more() {
    let scratch = Scratch::new("quota");
    let mut settings = scratch.settings();
    settings.workspace_bytes_max = 10_000;
    let files = Files::open(&grant(true, true), &settings).unwrap().unwrap();
    let write = |name: &str, bytes: usize| {
        let arguments = json!([name, "x".repeat(bytes)]);
        call(&files, "writeText", arguments)
    };
    write("a.txt", 6_000).unwrap();
    let fault = write("b.txt", 6_000).unwrap_err();
    assert_eq!(fault.reason, "workspace-full");
    for (function, arguments) in [
        ("appendText", json!(["a.txt", "x".repeat(6_000)])),
        ("copy", json!(["a.txt", "c.txt"])),
        ("editText", json!(["a.txt", "x", "y".repeat(2), true])),
    ] {
        let fault = call(&files, function, arguments).unwrap_err();
        assert_eq!(fault.reason, "workspace-full", "{function}");
    }
    // Overwriting needs no more room than the file has, and removing makes some.
    write("a.txt", 100).unwrap_or_else(|fault| panic!("{fault:?}"));
    write("b.txt", 6_000).unwrap();
}
