//! What is done beside calls is in the chain; without that nothing is granted.

use std::os::unix::fs::symlink;
use std::path::Path;

use engine::approve::{AnswerFault, ApprovalAnswer, ApprovalScope, Listing};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::document::digest;
use model::govern::approval::ApprovalState;
use model::record::audit::{Act, Notice, Status};
use serde_json::json;
use store::Filter;

use crate::world::{Home, NAMED, Says, World, document, error};

fn notices(world: &World) -> Vec<Notice> {
    let audit = world.engine.store().audit();
    let all = audit.notices(&Filter::default()).unwrap();
    let mut all: Vec<_> = all.into_iter().map(|entry| entry.notice).collect();
    all.reverse();
    all
}

fn words(world: &World) -> Vec<String> {
    let said = |notice: &Notice| {
        let about = notice.about.clone().unwrap_or_default();
        format!("{} {about} {}", notice.act.word(), notice.by)
    };
    notices(world).iter().map(said).collect()
}

/// From now on the disk of the audit confirms nothing.
fn fail(home: &Path) {
    store::testing::fail_syncs(&home.canonicalize().unwrap());
}

/// From now on the audit takes calls and no notices.
fn deafen(home: &Path) {
    store::testing::refuse_notices(&home.canonicalize().unwrap());
}

async fn asks() -> World {
    let home = Home::new();
    home.file("ringfence.toml", "[approvals]\nwait_seconds = 1\n");
    let world = World::with(home, |_| ());
    let mode = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world.published(&document("mail", "return 1", mode)).await;
    world
}

#[tokio::test]
async fn the_life_of_a_tool_is_written_down() {
    let world = World::with(Home::new(), |_| ());
    let tool = document("tool", "return 1", json!({}));
    world.published(&tool).await;
    // Published already: nothing new.
    world.engine.publish("tool", Origin::Cli).await.unwrap();
    world.engine.unpublish("tool").unwrap();
    world.engine.unpublish("tool").unwrap();
    world.engine.publish("tool", Origin::Mcp).await.unwrap();
    world.engine.import(&tool.to_string(), true).unwrap();
    world.engine.delete("tool").unwrap();
    let expected = [
        "tool.published tool owner",
        "tool.unpublished tool owner",
        "tool.published tool owner",
        "tool.unpublished tool owner",
        "tool.deleted tool owner",
    ];
    assert_eq!(words(&world), expected);
    assert_eq!(notices(&world)[2].through, "mcp");
    world.assert_whole();
}

#[tokio::test]
async fn without_its_notice_nothing_is_published() {
    let world = World::new();
    world
        .home
        .tool("tool", &document("tool", "return 1", json!({})));
    let usable = world.engine.tool("tool").unwrap().usable;
    world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
    fail(&world.home.path);
    assert!(world.engine.publish("tool", Origin::Cli).await.is_err());
    let tool = world.engine.tool("tool").unwrap();
    assert!(tool.not_published().is_some());
}

#[tokio::test]
async fn revocations_happen_even_when_they_cannot_be_recorded() {
    let world = World::new();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    fail(&world.home.path);
    assert!(world.engine.unpublish("tool").unwrap());
    assert!(world.engine.tool("tool").unwrap().not_published().is_some());
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("not recorded in the audit"), "{alarms}");
}

#[tokio::test]
async fn answers_say_who_gave_them_and_through_what() {
    let world = asks().await;
    let outcome = world.call("mail", json!({})).await;
    assert_eq!(error(&outcome).0, "approval.pending");
    let inbox = world.engine.approvals();
    let id = inbox.list(Listing::Pending).unwrap()[0].id.clone();
    let bob = Caller::named("bob");
    inbox
        .approve(&id, &bob, ApprovalScope::SameArguments, None)
        .unwrap();
    inbox.revoke(&id, &Caller::named("eve")).unwrap();
    let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "mail", json!({}));
    request.approver = Some(Says::new(ApprovalAnswer::Declined));
    let declined = world.made(request).await;
    assert_eq!(error(&declined).0, "approval.declined");

    let all = notices(&world);
    let [.., approved, revoked, refused] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(approved.act, Act::ApprovalAnswered);
    assert_eq!(approved.about.as_ref(), Some(&id));
    assert_eq!(
        (approved.by.as_str(), approved.through.as_str()),
        ("bob", "inbox")
    );
    assert_eq!(approved.details["decision"], "approved");
    assert_eq!(approved.details["scope"], "same-arguments");
    assert_eq!(approved.details["callId"], outcome.call_id);
    assert_eq!(
        (revoked.act, revoked.by.as_str()),
        (Act::ApprovalRevoked, "eve")
    );
    assert_eq!(refused.act, Act::ApprovalAnswered);
    assert_eq!(refused.by, "ann");
    assert_eq!(refused.details["decision"], "declined");
    world.assert_whole();
}

/// An answer that no person can have given is not dropped in silence. One warning and one
/// notice for each question, however often its client answers it.
#[tokio::test]
async fn an_answer_faster_than_a_person_is_told_once() {
    let world = asks().await;
    let client = Says::new(ApprovalAnswer::NotRendered);
    let call = |arguments: serde_json::Value| {
        let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "mail", arguments);
        request.approver = Some(client.clone());
        world.made(request)
    };
    let unread = || {
        let all = notices(&world).into_iter();
        let unread = all.filter(|notice| notice.act == Act::ApprovalUnread);
        unread.collect::<Vec<_>>()
    };
    let warnings = || {
        let alarms = world.alarms.lock().unwrap();
        let told = alarms
            .iter()
            .filter(|it| it.contains("faster than a person reads"));
        told.count()
    };
    let outcome = call(json!({})).await;
    assert_eq!(error(&outcome).0, "approval.pending");
    assert_eq!((unread().len(), warnings()), (1, 1));
    let [notice] = unread().try_into().expect("one notice");
    assert_eq!(
        (notice.by.as_str(), notice.through.as_str()),
        ("ann", "elicitation")
    );
    assert_eq!(notice.details["tool"], "mail");
    assert_eq!(notice.details["callId"], outcome.call_id);
    let waiting = world.engine.approvals().list(Listing::Pending).unwrap();
    assert_eq!(notice.about.as_ref(), waiting.first().map(|row| &row.id));
    for _ in 0..2 {
        assert_eq!(error(&call(json!({})).await).0, "approval.pending");
    }
    assert_eq!((unread().len(), warnings()), (1, 1), "of the same question");
    assert_eq!(
        world
            .engine
            .approvals()
            .list(Listing::Pending)
            .unwrap()
            .len(),
        1
    );
    world.assert_whole();
}

#[tokio::test]
async fn without_its_notice_an_approval_does_not_count() {
    let world = asks().await;
    world.call("mail", json!({})).await;
    let inbox = world.engine.approvals();
    let id = inbox.list(Listing::Pending).unwrap()[0].id.clone();
    fail(&world.home.path);
    let given = inbox.approve(&id, &Caller::owner(), ApprovalScope::Once, None);
    assert!(matches!(given, Err(AnswerFault::Store(_))), "{given:?}");
    assert_eq!(inbox.find(&id).unwrap().state, ApprovalState::Pending);
    // A no needs no record to be a no.
    let denied = inbox.deny(&id, &Caller::owner(), None).unwrap();
    assert_eq!(denied.state, ApprovalState::Declined);
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("not recorded in the audit"), "{alarms}");
}

#[tokio::test]
async fn settings_that_change_or_are_refused_are_written_down() {
    let world = World::with(Home::new(), |_| ());
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    let good = "[exposure]\nauto = true\n";
    world.home.file("ringfence.toml", good);
    world.call("tool", json!({})).await;
    // Written again with the same text: nothing new.
    world.home.file("ringfence.toml", good);
    world.call("tool", json!({})).await;
    for _ in 0..2 {
        world
            .home
            .file("ringfence.toml", "[exposure]\naut = true\n");
        world.call("tool", json!({})).await;
    }
    world.home.file("ringfence.toml", good);
    world.call("tool", json!({})).await;
    let expected = [
        "tool.published tool owner",
        "settings.changed ringfence.toml server",
        "settings.refused ringfence.toml server",
    ];
    assert_eq!(words(&world), expected);
    let all = notices(&world);
    assert_eq!(
        all[1].details["digest"],
        digest::of_text(&format!("{good}{NAMED}"))
    );
    assert!(
        all[2]
            .message
            .contains("ringfence.toml:2:1: there is no setting `aut` here; did you mean `auto`?"),
        "{}",
        all[2].message
    );
    world.assert_whole();
}

/// What changed while nobody ran is told by whoever opens the home next, once.
#[tokio::test]
async fn settings_that_changed_meanwhile_are_written_down() {
    let home = Home::new();
    let path = home.path.clone();
    let open = || {
        let alarms = std::sync::Arc::default();
        let settings = crate::world::settings(&path, &alarms);
        engine::Engine::open(settings).unwrap()
    };
    let count = |engine: &engine::Engine| {
        let all = engine.store().audit().notices(&Filter::default());
        all.unwrap().len()
    };
    assert_eq!(count(&open()), 0);
    home.file("ringfence.toml", "[exposure]\nauto = true\n");
    assert_eq!(count(&open()), 1);
    assert_eq!(count(&open()), 1);
    std::fs::create_dir(path.join("rules")).unwrap();
    home.file("rules/a.toml", "[[rule]]\nid = 'a'\neffect = 'deny'\n");
    assert_eq!(count(&open()), 2);
    std::fs::remove_file(path.join("ringfence.toml")).unwrap();
    std::fs::remove_file(path.join("rules/a.toml")).unwrap();
    assert_eq!(count(&open()), 4);
    assert_eq!(count(&open()), 4);
}

#[tokio::test]
async fn settings_that_cannot_be_written_down_are_not_in_force() {
    let home = Home::new();
    let deny = "[callers.ann]\ndeny = ['tool']\n[expected]\ntools = ['tool']\n";
    home.file("ringfence.toml", deny);
    let world = World::with(home, |_| ());
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    fail(&world.home.path);
    world.home.file("ringfence.toml", "");
    let caller = Caller::named("ann");
    let tool = world.engine.tool("tool").unwrap();
    let access = &world.engine.registry().current().config.access;
    assert!(access.check(&caller, &tool.usable.document).is_err());
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("could not be recorded"), "{alarms}");
}

/// Settings that are found at the start and cannot be written down are not in force
/// either: nothing runs, nothing is listed, until they are.
#[tokio::test]
async fn settings_of_the_start_that_cannot_be_written_down_let_nothing_run() {
    let world = World::new();
    let tool = document("tool", "return 1", json!({}));
    world.published(&tool).await;
    world
        .home
        .file("ringfence.toml", "[callers.ann]\ndeny = ['tool']\n");
    let World { engine, home, .. } = world;
    drop(engine);
    deafen(&home.path);
    let world = World::with(home, |_| ());
    let ann = Caller::named("ann");
    let bob = Caller::named("bob");
    let refused = "the settings in force could not be recorded; no call runs until they are";
    for caller in [&ann, &bob, &Caller::owner()] {
        let request = CallRequest::new(caller.clone(), Origin::Cli, "tool", json!({}));
        let told = world.engine.explain(&request).told.unwrap();
        assert_eq!(
            (told.reason.code(), told.message.as_str()),
            ("audit.unavailable", refused)
        );
        assert!(world.engine.callable_tools(caller, Origin::Mcp).is_empty());
        let outcome = world.made(request).await;
        assert_eq!(outcome.status, Status::Refused, "{outcome:?}");
        assert_eq!(error(&outcome), ("audit.unavailable", refused));
    }
    // Not even for the owner's own document, or its proof.
    let usable = {
        let other = World::new();
        other.published(&tool).await;
        other.engine.tool("tool").unwrap().usable
    };
    let mut request = CallRequest::new(Caller::owner(), Origin::Cli, "tool", json!({}));
    request.target = engine::call::CallTarget::Document(std::sync::Arc::clone(&usable));
    assert_eq!(error(&world.made(request).await).1, refused);
    let passed = world.engine.local_pass(&usable, Origin::Cli).await;
    assert!(!passed.is_ok_and(|passed| passed.ok));
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("the settings could not be recorded in the audit"),
        "{alarms}"
    );
    assert!(
        alarms.contains("no settings are in force, so no call runs"),
        "{alarms}"
    );
    // The disk is well again: the next call finds them written down and in force.
    store::testing::mend(&world.home.path.canonicalize().unwrap());
    assert_eq!(
        error(&world.call("tool", json!({})).await).0,
        "tool.unknown"
    );
    assert_eq!(world.own_call("tool", json!({})).await.status, Status::Done);
    let last = notices(&world).pop().unwrap();
    let text = std::fs::read_to_string(world.home.path.join("ringfence.toml")).unwrap();
    assert_eq!(last.act, Act::SettingsChanged);
    assert_eq!(last.details["digest"], digest::of_text(&text));
}

/// A change that could not be written down and was taken back: the audit ends with
/// what is in force, not with what never was.
#[tokio::test]
async fn settings_that_were_reverted_are_recorded_again() {
    let deny = "[callers.ann]\ndeny = ['tool']\n[expected]\ntools = ['tool']\n";
    let home = Home::new();
    home.file("ringfence.toml", deny);
    let world = World::with(home, |_| ());
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    deafen(&world.home.path);
    world.home.file("ringfence.toml", "");
    assert_eq!(
        error(&world.call("tool", json!({})).await).0,
        "tool.unknown"
    );
    world.home.file("ringfence.toml", deny);
    world.engine.registry().current();
    store::testing::mend(&world.home.path.canonicalize().unwrap());
    assert_eq!(
        error(&world.call("tool", json!({})).await).0,
        "tool.unknown"
    );
    let all = notices(&world);
    let changes = all.iter().filter(|it| it.act == Act::SettingsChanged);
    // Said at the start, and again: what was tried may be there, unconfirmed.
    let digests: Vec<_> = changes.map(|it| it.details["digest"].clone()).collect();
    assert_eq!(digests, [digest::of_text(deny), digest::of_text(deny)]);
}

const DENY: &str = "[[rule]]\nid = 'no'\ntools = ['tool']\neffect = 'deny'\n";

#[tokio::test]
async fn files_of_rules_are_in_force_at_the_next_call() {
    let world = World::new();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    std::fs::create_dir(world.home.path.join("rules")).unwrap();
    assert_eq!(world.call("tool", json!({})).await.status, Status::Done);
    world.home.file("rules/b.toml", DENY);
    let denied = world.call("tool", json!({})).await;
    assert_eq!(error(&denied).0, "rule.denied");
    assert!(error(&denied).1.contains("(rule `no`)"));
    let gates = world.entry(&denied).closing.unwrap().gates;
    assert_eq!(gates.last().unwrap().rule.as_deref(), Some("no"));

    // A slip leaves the last good set in force, all of it, and says where.
    world.home.file("rules/b.toml", "");
    world
        .home
        .file("rules/a.toml", "[[rule]]\nid = 'a'\neffect = 'dney'\n");
    assert_eq!(error(&world.call("tool", json!({})).await).0, "rule.denied");
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("rules/a.toml:3:10: `effect` is `dney`") && alarms.contains("`deny`"),
        "{alarms}"
    );
    // What is no file of rules is none.
    std::fs::remove_file(world.home.path.join("rules/a.toml")).unwrap();
    world.home.file("rules/notes.txt", "[[[");
    world.home.file("rules/.b.toml.swp", "[[[");
    assert_eq!(world.call("tool", json!({})).await.status, Status::Done);
    // One id in two files.
    world.home.file("rules/a.toml", DENY);
    world.home.file("rules/b.toml", &format!("\n{DENY}"));
    world.call("tool", json!({})).await;
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("rules/b.toml:2:1: there are two rules `no`"),
        "{alarms}"
    );
    world.assert_whole();
}

#[tokio::test]
async fn files_of_rules_are_bounded() {
    let world = World::new();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    std::fs::create_dir(world.home.path.join("rules")).unwrap();
    for number in 0..=model::limits::RULE_FILES_MAX {
        world.home.file(&format!("rules/{number}.toml"), "");
    }
    world.call("tool", json!({})).await;
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("there are more than 100 rule files"),
        "{alarms}"
    );
}

/// Editing what a link leads to is an edit, whatever is at its other end.
#[tokio::test]
async fn settings_behind_links_are_watched() {
    let home = Home::new();
    let elsewhere = home.path.join("elsewhere");
    std::fs::create_dir_all(home.path.join("rules")).unwrap();
    std::fs::create_dir_all(elsewhere.join("one")).unwrap();
    std::fs::create_dir_all(elsewhere.join("two")).unwrap();
    home.file("elsewhere/settings", "");
    home.file("elsewhere/one/rules", "");
    home.file("elsewhere/two/rules", DENY);
    symlink("one", elsewhere.join("now")).unwrap();
    symlink(elsewhere.join("settings"), home.path.join("ringfence.toml")).unwrap();
    symlink(elsewhere.join("now/rules"), home.path.join("rules/a.toml")).unwrap();
    let world = World::with(home, |_| ());
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    assert_eq!(world.call("tool", json!({})).await.status, Status::Done);
    world
        .home
        .file("elsewhere/settings", "[exposure]\nauto = false\n");
    assert_eq!(
        error(&world.call("tool", json!({})).await).0,
        "tool.unknown"
    );
    // As an editor writes: another file in its place.
    world.home.file("elsewhere/new", "");
    std::fs::rename(elsewhere.join("new"), elsewhere.join("settings")).unwrap();
    assert_eq!(world.call("tool", json!({})).await.status, Status::Done);
    // As an orchestrator does: a folder on the way is another one.
    symlink("two", elsewhere.join("next")).unwrap();
    std::fs::rename(elsewhere.join("next"), elsewhere.join("now")).unwrap();
    assert_eq!(error(&world.call("tool", json!({})).await).0, "rule.denied");
    // A link that leads nowhere is no empty file: the last good ones stay.
    std::fs::remove_file(elsewhere.join("two/rules")).unwrap();
    assert_eq!(error(&world.call("tool", json!({})).await).0, "rule.denied");
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("the last good ones stay"), "{alarms}");
}
