//! Settings, rules and documents that nodes share: what one node writes is written on the
//! others, the tables of a node stay its own, and no version is lost.

use std::fs;
use std::path::Path;

use store::shared::{self, CopyTarget};
use store::{SettingsEdit, Store, StoreError, SyncedFiles};

use crate::lab::{SharedHome, open, until, write_settings as write_own_settings};
use crate::scratch::Home;

const RULE: &str = "[[rule]]\nid = \"no\"\neffect = \"deny\"\n";

fn sync(store: &Store) -> SyncedFiles {
    store.shared_files().unwrap().sync().unwrap()
}

fn put(home: &Path, file: &str, text: &str) {
    let path = home.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text(home: &Path, file: &str) -> Option<String> {
    fs::read_to_string(home.join(file)).ok()
}

/// Adds to the settings of a home, after its own tables.
fn add(home: &Path, more: &str) -> String {
    let all = format!("{}\n{more}", text(home, "ringfence.toml").unwrap());
    put(home, "ringfence.toml", &all);
    all
}

/// The texts in the trash.
fn trash(home: &Path) -> Vec<String> {
    let entries = fs::read_dir(home.join("trash")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn what_one_node_writes_is_written_on_the_others() {
    let shared = SharedHome::new("files");
    let (a, b) = (shared.path.clone(), shared.node("files-b"));
    add(
        &a,
        "[serve]\nlisten = \"127.0.0.1:1\"\n[approvals]\nwait_seconds = 77\n",
    );
    put(&a, "rules/more.toml", RULE);
    put(&a, "tools/hello.json", "{\"name\": \"hello\"}");
    let (on_a, on_b) = (open(&a), open(&b));
    let sent = sync(&on_a).sent;
    assert_eq!(
        sent,
        ["ringfence.toml", "rules/more.toml", "tools/hello.json"]
    );
    let received = sync(&on_b);
    assert_eq!(received.received, sent);
    assert!(
        received.overtaken.is_empty() && received.sent.is_empty(),
        "{received:?}"
    );
    let settings = text(&b, "ringfence.toml").unwrap();
    assert!(settings.contains("wait_seconds = 77"), "{settings}");
    assert!(settings.contains("[store]"), "{settings}");
    assert!(!settings.contains("listen"), "{settings}");
    assert_eq!(text(&b, "rules/more.toml").unwrap(), RULE);
    // Nothing more to do, on either.
    for store in [&on_a, &on_b] {
        let quiet = sync(store);
        assert!(
            quiet.sent.is_empty() && quiet.received.is_empty(),
            "{quiet:?}"
        );
    }
    // Back: changed, added and deleted on B.
    put(&b, "tools/hello.json", "{\"name\": \"hello\", \"v\": 2}");
    put(&b, "tools/other.json", "{}");
    fs::remove_file(b.join("rules/more.toml")).unwrap();
    assert_eq!(sync(&on_b).sent.len(), 3);
    assert_eq!(sync(&on_a).received.len(), 3);
    assert_eq!(text(&a, "tools/other.json").unwrap(), "{}");
    assert!(text(&a, "tools/hello.json").unwrap().contains("\"v\": 2"));
    assert_eq!(text(&a, "rules/more.toml"), None);
    // Whoever made it, and what was deleted is not lost.
    let by = shared.ask("SELECT updated_by FROM shared_files WHERE path = 'tools/other.json'");
    assert!(!by.is_empty());
    assert!(trash(&a).contains(&RULE.to_owned()));
}

/// The revision is known at once to the one who writes and to a strict node, and within a
/// second to the others.
#[test]
fn a_revision_reaches_every_node() {
    let shared = SharedHome::new("revision");
    let lazy = shared.node_with("revision-lazy", "");
    let strict = shared.node("revision-strict");
    let (on_a, on_lazy, on_strict) = (open(&shared.path), open(&lazy), open(&strict));
    for store in [&on_a, &on_lazy, &on_strict] {
        sync(store);
    }
    put(&shared.path, "tools/new.json", "{}");
    let revision = sync(&on_a).revision;
    assert_eq!(on_a.shared_files().unwrap().known_revision(), revision);
    assert_eq!(
        on_strict.shared_files().unwrap().revision().unwrap(),
        revision
    );
    let lazily = on_lazy.shared_files().unwrap();
    let began = std::time::Instant::now();
    until("the other node knows", || {
        lazily.known_revision() == revision
    });
    assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
}

#[test]
fn of_two_versions_the_shared_one_counts_and_the_other_is_kept() {
    let shared = SharedHome::new("overtaken");
    let b = shared.node("overtaken-b");
    put(&shared.path, "tools/a.json", "1");
    let (on_a, on_b) = (open(&shared.path), open(&b));
    sync(&on_a);
    sync(&on_b);
    put(&shared.path, "tools/a.json", "of A");
    put(&b, "tools/a.json", "of B");
    sync(&on_a);
    let overtaken = sync(&on_b);
    assert_eq!(overtaken.overtaken, ["tools/a.json"]);
    assert_eq!(text(&b, "tools/a.json").unwrap(), "of A");
    assert_eq!(trash(&b), ["of B"]);
    // The same for settings: a person at B who was second is told so.
    add(&shared.path, "[approvals]\nwait_seconds = 1\n");
    sync(&on_a);
    let mine = format!(
        "{}[approvals]\nwait_seconds = 2\n",
        text(&b, "ringfence.toml").unwrap()
    );
    let late = SettingsEdit::begin(&b).unwrap().write(&mine);
    assert!(
        matches!(late, Err(StoreError::Overtaken { .. })),
        "{late:?}"
    );
    assert!(
        text(&b, "ringfence.toml")
            .unwrap()
            .contains("wait_seconds = 1")
    );
    // Control: with the newest in hand it works, and A has it.
    let newest = text(&b, "ringfence.toml").unwrap();
    let newer = newest.replace("wait_seconds = 1", "wait_seconds = 2");
    SettingsEdit::begin(&b).unwrap().write(&newer).unwrap();
    sync(&on_a);
    assert!(
        text(&shared.path, "ringfence.toml")
            .unwrap()
            .contains("wait_seconds = 2")
    );
}

/// Attack: a home with rules and tools of its own joins; the cluster must not take them.
#[test]
fn a_node_that_joins_changes_nothing_for_the_others() {
    let shared = SharedHome::new("joins");
    put(&shared.path, "rules/more.toml", RULE);
    let on_a = open(&shared.path);
    let revision = sync(&on_a).revision;
    let b = shared.node("joins-b");
    add(&b, "[approvals]\nwait_seconds = 9\n");
    put(
        &b,
        "rules/mine.toml",
        "[[rule]]\nid = \"yes\"\neffect = \"allow\"\n",
    );
    put(&b, "tools/mine.json", "{}");
    let joined = sync(&open(&b));
    assert_eq!(joined.revision, revision);
    assert!(joined.sent.is_empty(), "{joined:?}");
    assert_eq!(text(&b, "rules/mine.toml"), None);
    assert_eq!(text(&b, "rules/more.toml").unwrap(), RULE);
    assert!(!text(&b, "ringfence.toml").unwrap().contains("wait_seconds"));
    assert_eq!(trash(&b).len(), 3, "{joined:?}");
    // A home that forgot where it was joins again, and so does one of another database.
    fs::write(b.join("shared.state"), "{").unwrap();
    put(&b, "tools/late.json", "{}");
    let again = sync(&open(&b));
    assert!(again.sent.is_empty(), "{again:?}");
    let other = SharedHome::new("joins-other");
    put(&other.path, "tools/there.json", "{}");
    sync(&open(&other.path));
    write_own_settings(&b, &other.url(), "");
    let moved = sync(&open(&b));
    assert!(moved.sent.is_empty(), "{moved:?}");
    assert_eq!(text(&b, "rules/more.toml"), None);
    assert_eq!(text(&b, "tools/there.json").unwrap(), "{}");
}

/// Two rules and two tools of the first of two nodes.
fn with_two_of_each(name: &str) -> (SharedHome, Store) {
    let shared = SharedHome::new(name);
    for name in ["one", "two"] {
        let rule = RULE.replace("\"no\"", &format!("\"{name}\""));
        put(&shared.path, &format!("rules/{name}.toml"), &rule);
    }
    for file in ["tools/one.json", "tools/two.json"] {
        put(&shared.path, file, "{}");
    }
    let store = open(&shared.path);
    assert_eq!(sync(&store).sent.len(), 5);
    (shared, store)
}

fn left(shared: &SharedHome) -> String {
    shared.ask("SELECT count(*) FROM shared_files WHERE text IS NOT NULL")
}

/// A lost mount, a restore of a part, a slip: what vanished together was not deleted.
#[test]
fn what_vanishes_together_is_restored() {
    let (shared, store) = with_two_of_each("vanished");
    let home = shared.path.as_path();
    let empty = |folder: &str| {
        for entry in fs::read_dir(home.join(folder)).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    };
    let again = |folder: &str| {
        fs::rename(home.join(folder), home.join("away")).unwrap();
        fs::create_dir(home.join(folder)).unwrap();
        fs::remove_dir_all(home.join("away")).unwrap();
    };
    let damages: [(&str, &dyn Fn(), usize); 5] = [
        (
            "folder",
            &|| fs::remove_dir_all(home.join("rules")).unwrap(),
            2,
        ),
        ("emptied", &|| empty("rules"), 2),
        ("another folder", &|| again("tools"), 2),
        (
            "a part of another folder",
            &|| {
                again("tools");
                put(home, "tools/one.json", "{}");
            },
            1,
        ),
        (
            "both",
            &|| {
                fs::remove_dir_all(home.join("rules")).unwrap();
                empty("tools");
            },
            4,
        ),
    ];
    for (what, damage, count) in damages {
        damage();
        let synced = sync(&store);
        assert_eq!(synced.restored.len(), count, "{what}: {synced:?}");
        assert!(synced.sent.is_empty(), "{what}: {synced:?}");
        assert_eq!(left(&shared), "5", "{what}");
        for file in [
            "rules/one.toml",
            "rules/two.toml",
            "tools/one.json",
            "tools/two.json",
        ] {
            assert!(home.join(file).exists(), "{what}: {file}");
        }
    }
    // Control: one at a time, down to the last.
    for file in [
        "rules/one.toml",
        "rules/two.toml",
        "tools/one.json",
        "tools/two.json",
    ] {
        fs::remove_file(home.join(file)).unwrap();
        let synced = sync(&store);
        assert_eq!(
            (synced.sent, synced.restored),
            (vec![file.to_owned()], vec![])
        );
    }
    assert_eq!(left(&shared), "1");
    // Even the only one, if its folder went with it.
    put(home, "rules/one.toml", RULE);
    sync(&store);
    fs::remove_dir_all(home.join("rules")).unwrap();
    assert_eq!(sync(&store).restored, ["rules/one.toml"]);
}

/// A command that only lists sends nothing, and takes what others have.
#[test]
fn a_home_that_follows_sends_nothing() {
    let (shared, store) = with_two_of_each("follows");
    let b = shared.node("follows-b");
    let on_b = open(&b);
    sync(&on_b);
    fs::remove_file(shared.path.join("rules/one.toml")).unwrap();
    put(&b, "tools/three.json", "{}");
    let files = store.shared_files().unwrap();
    assert_eq!(files.follow().unwrap().sent, [""; 0]);
    assert_eq!(left(&shared), "5");
    assert_eq!(sync(&on_b).sent, ["tools/three.json"]);
    assert_eq!(files.follow().unwrap().received, ["tools/three.json"]);
    // What was not sent then is sent by the next that sends.
    assert_eq!(sync(&store).sent, ["rules/one.toml"]);
}

/// Attack, or a backup in the wrong place: a copy of a home speaks for no one.
#[test]
fn a_copy_of_a_home_joins_as_a_new_node() {
    let (shared, store) = with_two_of_each("copied");
    drop(store);
    let copy = Home::new("files-copied");
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .arg(format!("{}/.", shared.path.display()))
        .arg(&copy.path)
        .status();
    assert!(copied.unwrap().success());
    fs::remove_file(copy.path.join("tools/one.json")).unwrap();
    add(&copy.path, "[approvals]\nwait_seconds = 1\n");
    put(&copy.path, "rules/mine.toml", RULE);
    let on_copy = open(&copy.path);
    let joined = sync(&on_copy);
    let original = shared.path.canonicalize().unwrap().display().to_string();
    assert_eq!(joined.copied_from, Some(original));
    assert!(joined.sent.is_empty(), "{joined:?}");
    assert_eq!(left(&shared), "5");
    assert!(copy.path.join("tools/one.json").exists());
    assert!(!copy.path.join("rules/mine.toml").exists());
    assert_eq!(trash(&copy.path).len(), 2);
    // From now on it is a node like any other.
    fs::remove_file(copy.path.join("tools/one.json")).unwrap();
    let next = sync(&on_copy);
    assert_eq!(
        (next.sent, next.copied_from),
        (vec!["tools/one.json".to_owned()], None)
    );
    // Control: a home that was moved is the same.
    let (shared, store) = with_two_of_each("moved");
    drop(store);
    let place = Home::new("files-moved");
    let moved = place.path.join("moved");
    fs::create_dir_all(&place.path).unwrap();
    fs::rename(&shared.path, &moved).unwrap();
    fs::remove_file(moved.join("tools/one.json")).unwrap();
    let synced = sync(&open(&moved));
    assert_eq!(
        (synced.sent, synced.copied_from),
        (vec!["tools/one.json".to_owned()], None)
    );
}

/// Settings that no node could use stay where they are, with all rules; tools go on.
#[test]
fn unfit_settings_are_not_sent() {
    let shared = SharedHome::new("unfit");
    let on_a = open(&shared.path);
    sync(&on_a);
    put(
        &shared.path,
        "rules/bad.toml",
        "[[rule]]\nid = \"x\"\neffect = \"perhaps\"\n",
    );
    put(&shared.path, "rules/good.toml", RULE);
    put(&shared.path, "tools/a.json", "{}");
    let held = sync(&on_a);
    assert_eq!(held.sent, ["tools/a.json"]);
    assert!(held.unfit.is_some());
    fs::remove_file(shared.path.join("rules/bad.toml")).unwrap();
    let sent = sync(&on_a);
    assert_eq!(
        (sent.sent, sent.unfit),
        (vec!["rules/good.toml".to_owned()], None)
    );
}

/// Attack: a row that names a file outside of what is shared.
#[test]
fn no_row_leads_out_of_the_shared_folders() {
    let shared = SharedHome::new("paths");
    let on_a = open(&shared.path);
    sync(&on_a);
    for path in [
        "secrets.env",
        "../a.json",
        "tools/../a.json",
        "tools/.a.json",
        "tools/a/b.json",
        "/etc/a.json",
        "rules/x.sh",
        "audit/a.json",
        "tools/",
        "shared.state",
    ] {
        shared.sql(&format!(
            "UPDATE files_version SET version = version + 1;
             INSERT INTO shared_files SELECT '{path}', 'x', version, 'evil', 1 FROM files_version"
        ));
        let refused = on_a.shared_files().unwrap().sync();
        assert!(
            matches!(refused, Err(StoreError::Unknown { .. })),
            "{path} {refused:?}"
        );
        shared.sql(&format!("DELETE FROM shared_files WHERE path = '{path}'"));
    }
    // Control: the same hand may write what is shared.
    shared.sql(
        "UPDATE files_version SET version = version + 1;
         INSERT INTO shared_files SELECT 'tools/a.json', 'x', version, 'me', 1 FROM files_version",
    );
    sync(&on_a);
    assert_eq!(text(&shared.path, "tools/a.json").unwrap(), "x");
}

/// Many nodes write at the same time: every file arrives everywhere.
#[test]
fn no_concurrent_change_is_lost() {
    let shared = SharedHome::new("many");
    let homes: Vec<_> = (0..4).map(|n| shared.node(&format!("many-{n}"))).collect();
    let stores: Vec<_> = homes.iter().map(|home| open(home)).collect();
    for store in &stores {
        sync(store);
    }
    std::thread::scope(|scope| {
        for (number, (home, store)) in homes.iter().zip(&stores).enumerate() {
            scope.spawn(move || {
                for round in 0..10 {
                    put(home, &format!("tools/t{number}_{round}.json"), "{}");
                    sync(store);
                }
            });
        }
    });
    for (home, store) in homes.iter().zip(&stores) {
        sync(store);
        let found = fs::read_dir(home.join("tools")).unwrap().count();
        assert_eq!(found, 40);
    }
}

#[test]
fn a_copy_carries_the_files_both_ways() {
    let home = Home::new("files-copy");
    let shared = SharedHome::new("files-copy");
    write_own_settings(&home.path, &shared.url(), "");
    let whole = add(&home.path, "[approvals]\nwait_seconds = 5\n");
    put(&home.path, "rules/more.toml", RULE);
    put(&home.path, "tools/a.json", "{\"ü\": 1}");
    let copied = shared::copy(&home.path, CopyTarget::Shared)
        .unwrap()
        .unwrap();
    let files = |copied: &[shared::CopiedTable]| {
        let files = copied.iter().find(|table| table.name == "shared_files");
        files.unwrap().rows
    };
    assert_eq!(files(&copied), 3);
    assert_eq!(text(&home.path, "ringfence.toml").unwrap(), whole);
    // Into a home that has nothing but the address.
    let back = Home::new("files-copy-back");
    write_own_settings(&back.path, &shared.url(), "");
    let copied = shared::copy(&back.path, CopyTarget::Home).unwrap().unwrap();
    assert_eq!(files(&copied), 3);
    assert_eq!(text(&back.path, "rules/more.toml").unwrap(), RULE);
    assert_eq!(text(&back.path, "tools/a.json").unwrap(), "{\"ü\": 1}");
    assert!(
        text(&back.path, "ringfence.toml")
            .unwrap()
            .contains("wait_seconds = 5")
    );
    // Never into a database that has files.
    let third = Home::new("files-copy-third");
    write_own_settings(&third.path, &shared.url(), "");
    let refused = shared::copy(&third.path, CopyTarget::Shared);
    assert!(
        matches!(refused, Err(StoreError::Address { .. })),
        "{refused:?}"
    );
}
