//! Moving decisions between a home and a shared store: nothing is lost, nothing is mixed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use model::govern::access::AccessLevel;
use model::govern::approval::{ApprovalScope, ApprovalState};
use model::govern::key::{self, KeyRecord, Role};
use model::govern::person::PersonRole;
use model::govern::trust::{Feedback, Track, TrustState};
use store::approvals::{GivenAnswer, Listing, WaitingPlace};
use store::callers::{FeedbackRow, Paused};
use store::shared::{self, CopyTarget};
use store::{
    Approval, Keys, LocalAudit, NewJob, Pass, PersonSession, ScriptJournal, Store, StoreError,
    StoreSettings,
};

use crate::lab::{SharedHome, open, write_settings};
use crate::scratch::Home;

/// Something in every table.
fn fill(home: &Path) {
    let store = open(home);
    let publications = store.publications();
    let pass = Pass {
        digest: "d1".to_owned(),
        name: "hello".to_owned(),
        ok: true,
        at_ms: 5,
        error: None,
        elapsed_ms: 7,
    };
    publications.record_pass(&pass).unwrap();
    publications.publish("hello", "d1", 6).unwrap();
    publications
        .keep_text("hello", "d1", "{\"a\": \"ü\"}")
        .unwrap();
    publications
        .grant(("hello", ""), &["host".to_owned()], "cli", 7)
        .unwrap();
    publications.save_seen("server", "seen", 8).unwrap();
    let track = Track {
        level: AccessLevel::Elevated,
        since_ms: 1,
        verified_ms: 1,
    };
    let state = TrustState {
        all: track,
        categories: Default::default(),
    };
    store.callers().keep_trust("Ann", None, &state, 9).unwrap();
    let pause = Paused {
        at_ms: 1,
        by: "owner".to_owned(),
        why: Some("too much".to_owned()),
    };
    store
        .callers()
        .change("Ann", 9, |row| row.paused = Some(pause))
        .unwrap();
    for score in [3, 9] {
        let said = FeedbackRow {
            feedback: Feedback {
                at_ms: 4,
                score,
                category: None,
            },
            note: None,
            by: "owner".to_owned(),
        };
        store.callers().add_feedback("Ann", &said).unwrap();
    }
    fill_the_rest(&store);
    drop(store);
    fill_keys(home);
}

fn fill_the_rest(store: &Store) {
    store.approvals().ask(&question(), 1_000).unwrap();
    let yes = GivenAnswer {
        scope: Some(ApprovalScope::Once),
        at_ms: 1_001,
        by: "owner".to_owned(),
        channel: "inbox".to_owned(),
        own_client: false,
        note: Some("fine".to_owned()),
        changed: None,
    };
    let state = ApprovalState::Approved;
    assert!(
        store
            .approvals()
            .answer("a", state, &yes, Some(9_000))
            .unwrap()
    );
    let journal = ScriptJournal {
        key: "k".to_owned(),
        caller: "ann".to_owned(),
        kept_at_ms: 1_000,
        expires_at_ms: 9_000,
        journal: "journal".to_owned(),
    };
    store.scripts().keep(&journal, None).unwrap();
    let taken = store.scripts().take("k", 1_000).unwrap().unwrap();
    store.scripts().add(taken.id, "step", 9_000).unwrap();
    store
        .waiting_scripts()
        .keep(("script", "call"), "await ask()", 1_000)
        .unwrap();
    let job = NewJob {
        id: "j".to_owned(),
        caller: "ann".to_owned(),
        call_id: "call".to_owned(),
        command: "make".to_owned(),
        started_at_ms: 1,
    };
    let started = store.jobs().start(&job, 5).unwrap();
    assert!(started.found);
    let key = [("few".to_owned(), "ann".to_owned())];
    store.usage().change(&key, 0, |_| ()).unwrap();
    store.people().add_code(&[5; 32], 1, 9_000).unwrap();
    let session = PersonSession {
        digest: [6; 32],
        id: "s".to_owned(),
        person: "ann".to_owned(),
        role: PersonRole::Owner,
        address: "here".to_owned(),
        browser: "b".to_owned(),
        started_ms: 1,
        seen_ms: 1,
        expires_ms: 9_000,
    };
    store.people().begin(&session, 1).unwrap();
}

fn fill_keys(home: &Path) {
    let keys = Keys::open(home).unwrap();
    for (number, name) in [(1, "ada"), (2, "eve")] {
        let id = key::id([number; key::ID_BYTES]);
        let record = KeyRecord {
            digest: key::key(&id, [number; key::SECRET_BYTES]).digest(),
            id,
            name: name.to_owned(),
            role: Role::Agent,
            created_ms: 5,
            expires_ms: None,
        };
        keys.add(&record).unwrap();
    }
    assert!(keys.revoke("eve").unwrap());
}

fn question() -> Approval {
    Approval {
        id: "a".to_owned(),
        state: ApprovalState::Pending,
        place: WaitingPlace::Inbox,
        asked_at_ms: 1_000,
        expires_at_ms: 9_000,
        binding: "b".to_owned(),
        tool_binding: "t".to_owned(),
        session: None,
        call_id: "call".to_owned(),
        tool: "tool".to_owned(),
        caller: "ann".to_owned(),
        caller_is_owner: true,
        level: model::policy::risk::Level::L3,
        reasons: vec!["files".to_owned()],
        why: "rule".to_owned(),
        prompt: "May it?".to_owned(),
        arguments: "{}".to_owned(),
        answer: None,
        used_by_call: None,
        used_at_ms: None,
        uses: 0,
    }
}

/// All that the store can say, without what belongs to a process.
fn told(home: &Path) -> String {
    let store: Store = open(home);
    let keys = Keys::open(home).unwrap();
    let publications = store.publications();
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        publications.all().unwrap(),
        publications.text("hello").unwrap(),
        store.callers().all().unwrap(),
        store.callers().feedback("ann").unwrap(),
        store.approvals().list(Listing::All, 1_000).unwrap(),
        store.people().all().unwrap(),
        store.jobs().of("ann", 77).unwrap().found,
        store.waiting_scripts().find("call").unwrap(),
        keys.all().unwrap(),
        keys.former(&key::key(&key::id([2; key::ID_BYTES]), [2; key::SECRET_BYTES]).digest()),
    )
}

#[test]
fn a_home_moves_into_a_shared_store_and_back() {
    let shared = SharedHome::new("copy");
    let home = Home::new("copy-from");
    fill(&home.path);
    let before = told(&home.path);
    // A home whose settings name no shared store has nowhere to copy to.
    assert_eq!(shared::copy(&home.path, CopyTarget::Shared).unwrap(), None);
    write_settings(&home.path, &shared.url(), "");
    let copied = shared::copy(&home.path, CopyTarget::Shared)
        .unwrap()
        .unwrap();
    let empty: Vec<_> = copied.iter().filter(|table| table.rows == 0).collect();
    let names: Vec<_> = empty.iter().map(|table| table.name).collect();
    assert_eq!(names, ["witnessed"], "every table has a row in this test");
    assert_eq!(told(&home.path), before);
    // Journals go on, under the same number, and new ones come after it.
    let store = open(&home.path);
    let taken = store.scripts().take("k", 1_000).unwrap().unwrap();
    assert_eq!(taken.steps, ["step"]);
    drop(store);
    // Twice is refused: the shared store is not empty.
    let again = shared::copy(&home.path, CopyTarget::Shared).unwrap_err();
    assert!(again.to_string().contains("not empty"), "{again}");
    // Back, into the home of another node.
    let back = Home::new("copy-back");
    write_settings(&back.path, &shared.url(), "");
    let returned = shared::copy(&back.path, CopyTarget::Home).unwrap().unwrap();
    assert_eq!(returned, copied);
    std::fs::remove_file(back.path.join("ringfence.toml")).unwrap();
    assert_eq!(told(&back.path), before);
}

/// The machine that began has its old decisions: they are replaced, and its audit is not.
#[test]
fn the_home_that_began_takes_everything_back() {
    let shared = SharedHome::new("copy-again");
    let home = Home::new("copy-began");
    fill(&home.path);
    write_settings(&home.path, &shared.url(), "");
    // A command in between makes the tables and sends the files of this home.
    put_rule(&home.path);
    open(&home.path).shared_files().unwrap().sync().unwrap();
    shared::copy(&home.path, CopyTarget::Shared)
        .unwrap()
        .unwrap();
    // Something is decided in the shared store.
    let store = open(&home.path);
    store
        .callers()
        .change("Ann", 10, |row| row.paused = None)
        .unwrap();
    drop(store);
    assert!(Keys::open(&home.path).unwrap().revoke("ada").unwrap());
    let before = told(&home.path);
    let head = || open(&home.path).audit().head().unwrap();
    let head_before = head();
    let refused = shared::copy(&home.path, CopyTarget::Home).unwrap_err();
    assert!(refused.to_string().contains("--replace"), "{refused}");
    shared::copy(&home.path, CopyTarget::HomeReplaced)
        .unwrap()
        .unwrap();
    std::fs::remove_file(home.path.join("ringfence.toml")).unwrap();
    assert_eq!(told(&home.path), before);
    assert_eq!(head(), head_before);
}

/// A slip in the address leads to a database that nobody keeps decisions in.
#[test]
fn an_empty_store_replaces_nothing() {
    let shared = SharedHome::new("copy-empty");
    let home = Home::new("copy-kept");
    fill(&home.path);
    let before = told(&home.path);
    write_settings(&home.path, &shared.url(), "");
    let refused = shared::copy(&home.path, CopyTarget::HomeReplaced).unwrap_err();
    let words = refused.to_string();
    assert!(words.contains("has no decisions"), "{refused}");
    assert!(words.contains("`url` under `[store]`"), "{refused}");
    std::fs::remove_file(home.path.join("ringfence.toml")).unwrap();
    assert_eq!(told(&home.path), before);
}

fn put_rule(home: &Path) {
    std::fs::create_dir_all(home.join("rules")).unwrap();
    let rule = "[[rule]]\nid = \"no\"\neffect = \"deny\"\n";
    std::fs::write(home.join("rules/no.toml"), rule).unwrap();
}

/// A server keeps its store until it ends. A command that used another one would decide
/// where the server never looks.
#[test]
fn no_command_uses_another_store_than_a_living_process() {
    let shared = SharedHome::new("copy-other");
    let home = Home::new("copy-gap");
    let settings = home.path.join("ringfence.toml");
    let refused = |home: &Path| {
        let opened = Store::open(home, StoreSettings::standard()).map(drop);
        let keys = Keys::open(home).map(drop);
        for fault in [opened.unwrap_err(), keys.unwrap_err()] {
            assert!(matches!(fault, StoreError::OtherStore { .. }), "{fault}");
            assert!(
                fault.to_string().contains("stop `ringfence serve`"),
                "{fault}"
            );
        }
    };
    let serving = open(&home.path);
    write_settings(&home.path, &shared.url(), "");
    refused(&home.path);
    let tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'schema_version'";
    assert_eq!(shared.ask(tables), "0", "nothing was made there");
    drop(serving);
    // And the other way round.
    let serving = open(&home.path);
    std::fs::remove_file(&settings).unwrap();
    refused(&home.path);
    write_settings(&home.path, &shared.url(), "strict = true\n");
    drop(open(&home.path));
    drop(serving);
    // Of another process its lock file tells.
    std::fs::remove_file(&settings).unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_store-test-child"))
        .args(["hold", home.path.to_str().unwrap(), "call"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    write_settings(&home.path, &shared.url(), "");
    refused(&home.path);
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
    drop(open(&home.path));
}

/// The audit of a home is in the home, whatever `[store]` says.
#[test]
fn who_only_reads_the_audit_uses_no_store() {
    let shared = SharedHome::new("copy-reading");
    let home = Home::new("copy-read");
    let settings = home.path.join("ringfence.toml");
    // It neither hinders anyone nor is hindered.
    let reading = LocalAudit::open(&home.path, StoreSettings::standard()).unwrap();
    write_settings(&home.path, &shared.url(), "");
    let serving = open(&home.path);
    std::fs::remove_file(&settings).unwrap();
    LocalAudit::open(&home.path, StoreSettings::standard()).unwrap();
    write_settings(
        &home.path,
        "postgres://a@127.0.0.1/x",
        "ca_file = \"/nowhere\"\n",
    );
    LocalAudit::open(&home.path, StoreSettings::standard()).unwrap();
    drop((reading, serving));
}

#[test]
fn what_is_in_use_is_not_copied() {
    let shared = SharedHome::new("copy-used");
    let home = Home::new("copy-busy");
    let serving = home.store();
    write_settings(&home.path, &shared.url(), "");
    let refused = shared::copy(&home.path, CopyTarget::Shared).unwrap_err();
    assert!(
        refused.to_string().contains("stop `ringfence serve`"),
        "{refused}"
    );
    drop(serving);
    shared::copy(&home.path, CopyTarget::Shared)
        .unwrap()
        .unwrap();
    let serving = shared.store();
    let refused = shared::copy(&home.path, CopyTarget::Home).unwrap_err();
    assert!(
        refused.to_string().contains("stop `ringfence serve`"),
        "{refused}"
    );
    drop(serving);
}
