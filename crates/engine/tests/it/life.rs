//! The life of a tool: draft, proven, published, edited, taken back, deleted.

use std::sync::Arc;

use model::caller::Origin;
use model::document::lifecycle::LifecycleState;
use model::document::safety::Source;
use model::record::audit::{Closing, Opening, Status};
use serde_json::{Value, json};
use store::Filter;

use crate::world::{Home, World, document, error};

fn state(world: &World, name: &str) -> LifecycleState {
    let environment = world.engine.environment().unwrap();
    world.engine.tool(name).unwrap().lifecycle(&environment).0
}

fn text(world: &World, file: &str) -> Value {
    let text = std::fs::read_to_string(world.home.path.join("tools").join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn new_passes_its_own_test_and_can_be_called() {
    let world = World::new();
    let path = world.engine.create("hello").unwrap();
    assert!(path.ends_with("tools/hello.json"));
    assert_eq!(state(&world, "hello"), LifecycleState::Draft);
    assert_eq!(
        error(&world.own_call("hello", json!({"who": "x"})).await).0,
        "tool.draft"
    );
    assert!(world.engine.publish("hello", Origin::Cli).await.unwrap().ok);
    assert_eq!(state(&world, "hello"), LifecycleState::Active);
    assert_eq!(text(&world, "hello.json")["draft"], json!(false));
    let outcome = world.call("hello", json!({"who": "Bo"})).await;
    assert_eq!(
        outcome.value,
        Some(json!({"greeting": "Hello, Bo!", "length": 10}))
    );
    let again = world.engine.create("hello").unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");
}

/// Whoever edits the file makes it a draft again, from the next call on; setting
/// the old text back makes it what it was.
#[tokio::test]
async fn an_edit_raises_the_draft_flag() {
    let world = World::new();
    let one = document("tool", "return 1", json!({}));
    world.published(&one).await;
    let published = text(&world, "tool.json");
    world.home.tool(
        "tool",
        &document("tool", "return 2", json!({"draft": false})),
    );
    assert_eq!(state(&world, "tool"), LifecycleState::Draft);
    assert_eq!(
        error(&world.call("tool", json!({})).await).0,
        "tool.unknown"
    );
    world.home.tool("tool", &published);
    assert_eq!(world.call("tool", json!({})).await.value, Some(json!(1)));
    // Its own word makes it a draft even so.
    let mut marked = published.clone();
    marked["draft"] = json!(true);
    world.home.tool("tool", &marked);
    assert_eq!(state(&world, "tool"), LifecycleState::Draft);
}

#[tokio::test]
async fn a_document_that_says_it_is_published_is_not() {
    let world = World::new();
    world
        .home
        .tool("sly", &document("sly", "return 1", json!({"draft": false})));
    assert_eq!(state(&world, "sly"), LifecycleState::Draft);
    assert_eq!(error(&world.call("sly", json!({})).await).0, "tool.unknown");
}

#[tokio::test]
async fn a_failed_test_keeps_it_a_draft() {
    let world = World::new();
    world.home.tool(
        "bad",
        &document("bad", "throw new Error('broken')", json!({})),
    );
    let passed = world.engine.publish("bad", Origin::Cli).await.unwrap();
    assert!(!passed.ok);
    assert_eq!(passed.error.unwrap().message, "Error: broken");
    assert_eq!(state(&world, "bad"), LifecycleState::TestFailed);
    // Without a test value there is nothing to run it with.
    world.home.tool(
        "blind",
        &document(
            "blind",
            "return 1",
            json!({
                "params": [{"name": "a", "type": "INTEGER", "required": true}],
            }),
        ),
    );
    let fault = world.engine.tool("blind").unwrap_err().to_string();
    assert!(fault.contains("`a` has no `testValue`"), "{fault}");
    // Mended, it passes.
    world
        .home
        .tool("bad", &document("bad", "return 'fine'", json!({})));
    assert!(world.engine.publish("bad", Origin::Cli).await.unwrap().ok);
    assert_eq!(state(&world, "bad"), LifecycleState::Active);
}

/// Another process tests a tool, and nothing but where the tool stands is new; then a
/// file changes as well, and both are seen.
#[tokio::test]
async fn a_pass_recorded_by_another_process_is_seen() {
    let world = World::new();
    let throws = document("throws", "throw new Error('broken')", json!({}));
    world.home.tool("throws", &throws);
    let edited = document("edited", "return 1", json!({}));
    world.published(&edited).await;
    let before = world.engine.registry().current();
    assert_eq!(state(&world, "throws"), LifecycleState::Draft);
    let beside = world.beside(|_| ());
    let tested = async |name: &str| {
        let tool = beside.tool(name).unwrap();
        let passed = beside.local_pass(&tool.usable, Origin::Cli).await;
        passed.unwrap().ok
    };
    assert!(!tested("throws").await);
    let after = world.engine.registry().current();
    assert!(!Arc::ptr_eq(&before, &after));
    assert_eq!(state(&world, "throws"), LifecycleState::TestFailed);
    assert_eq!(state(&world, "edited"), LifecycleState::Active);
    assert_eq!(world.call("edited", json!({})).await.value, Some(json!(1)));
    // Nothing is new, and nothing is taken again.
    assert!(Arc::ptr_eq(&after, &world.engine.registry().current()));
    let two = document("edited", "return 2", json!({}));
    world.home.tool("edited", &two);
    assert!(tested("edited").await);
    assert_eq!(state(&world, "edited"), LifecycleState::Draft);
    assert_eq!(state(&world, "throws"), LifecycleState::TestFailed);
    assert!(beside.publish("edited", Origin::Cli).await.unwrap().ok);
    assert_eq!(world.call("edited", json!({})).await.value, Some(json!(2)));
    assert!(beside.unpublish("edited").unwrap());
    let refused = world.call("edited", json!({})).await;
    assert_eq!(error(&refused).0, "tool.unknown");
}

/// A missing variable says nothing about the tool; it is only not there yet.
#[tokio::test]
async fn missing_requirements_are_no_failure() {
    let world = World::new();
    world.home.tool(
        "keyed",
        &document(
            "keyed",
            "return key.length",
            json!({"staticVariables": [{"key": "${KEY}"}]}),
        ),
    );
    let passed = world.engine.publish("keyed", Origin::Cli).await.unwrap();
    assert_eq!(passed.error.unwrap().code, "requirement.missing");
    assert_eq!(state(&world, "keyed"), LifecycleState::Draft);
    world.home.file("secrets.env", "KEY=12345678\n");
    set_private(&world.home);
    world.agree("keyed");
    assert!(world.engine.publish("keyed", Origin::Cli).await.unwrap().ok);
    assert_eq!(state(&world, "keyed"), LifecycleState::Active);
    world.home.file("secrets.env", "");
    let environment = world.engine.environment().unwrap();
    let (state, missing) = world.engine.tool("keyed").unwrap().lifecycle(&environment);
    assert_eq!(
        (state, missing),
        (LifecycleState::MissingRequirements, vec!["KEY".to_owned()])
    );
}

fn set_private(home: &Home) {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(home.path.join("secrets.env"), permissions).unwrap();
}

#[tokio::test]
async fn unpublish_and_delete() {
    let world = World::new();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    assert!(world.engine.unpublish("tool").unwrap());
    assert_eq!(state(&world, "tool"), LifecycleState::Draft);
    assert_eq!(text(&world, "tool.json")["draft"], json!(true));
    assert!(!world.engine.unpublish("tool").unwrap());
    assert!(world.engine.publish("tool", Origin::Cli).await.unwrap().ok);
    let trash = world.engine.delete("tool").unwrap();
    assert!(trash.exists() && trash.starts_with(world.home.path.join("trash")));
    assert_eq!(
        error(&world.own_call("tool", json!({})).await).0,
        "tool.unknown"
    );
    // The same text, put back by hand, is a draft: it was taken back.
    std::fs::copy(trash, world.home.path.join("tools/tool.json")).unwrap();
    assert_eq!(state(&world, "tool"), LifecycleState::Draft);
}

#[tokio::test]
async fn import_is_always_a_draft_and_assessed_again() {
    let world = World::new();
    let lying = document(
        "sly",
        "return 1",
        json!({
            "draft": false,
            "sandboxOverrides": {"networkMode": "open"},
            "toolSafety": {"version": "1.0", "capabilities": {"network": {"mode": "blocked", "hosts": []}, "fileRead": false, "fileWrite": false}},
            "x-vendor": {"kept": true},
        }),
    );
    let broken = json!({"name": "broken", "code": 5});
    let both = Value::Array(vec![lying.clone(), broken, lying.clone()]).to_string();
    let imported = world.engine.import(&both, false).unwrap();
    let seen: Vec<_> = imported
        .iter()
        .map(|one| (one.name.as_deref(), one.ok))
        .collect();
    assert_eq!(
        seen,
        [
            (Some("sly"), true),
            (Some("broken"), false),
            (Some("sly"), false)
        ]
    );
    let saved = text(&world, "sly.json");
    assert_eq!(saved["draft"], json!(true));
    assert_eq!(
        saved["toolSafety"]["capabilities"]["network"]["mode"],
        json!("open")
    );
    assert_eq!(saved["x-vendor"], json!({"kept": true}));
    assert_eq!(state(&world, "sly"), LifecycleState::Draft);
    let again = world.engine.import(&lying.to_string(), false).unwrap();
    assert!(again[0].why.as_deref().unwrap().contains("already"));
    assert!(world.engine.import(&lying.to_string(), true).unwrap()[0].ok);
    let exported = world.engine.export(&["sly".to_owned()]).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&exported).unwrap()["name"],
        json!("sly")
    );
}

/// A broken file, and two files with one name, take nothing else down.
#[tokio::test]
async fn broken_files_are_set_aside() {
    let world = World::new();
    world
        .published(&document("good", "return 1", json!({})))
        .await;
    world.home.file("tools/broken.json", "{ not json");
    world.home.file("tools/binary.json", "\u{0}\u{1}");
    world.home.file("tools/list.json", "[]");
    world
        .home
        .tool("a", &document("twin", "return 1", json!({})));
    world
        .home
        .tool("b", &document("twin", "return 2", json!({})));
    let now = world.engine.registry().current();
    let aside: Vec<_> = now
        .set_aside
        .iter()
        .map(|aside| aside.file.as_str())
        .collect();
    assert_eq!(
        aside,
        [
            "a.json",
            "b.json",
            "binary.json",
            "broken.json",
            "list.json"
        ]
    );
    let twin = &now.set_aside[0].findings[0].message;
    assert_eq!(twin, "the name `twin` is claimed by a.json and b.json");
    assert!(now.tool("twin").is_none());
    assert_eq!(world.call("good", json!({})).await.status, Status::Done);
    let fault = world.engine.tool("twin").unwrap_err().to_string();
    assert!(fault.contains("claimed by a.json and b.json"), "{fault}");
    // One of them goes, the other is there.
    std::fs::remove_file(world.home.path.join("tools/b.json")).unwrap();
    assert_eq!(state(&world, "twin"), LifecycleState::Draft);
}

/// The names of bundled tools are taken; a copy of one is that one.
#[tokio::test]
async fn bundled_names_are_reserved() {
    let world = World::new();
    let taken = world.engine.create("queryJson").unwrap_err().to_string();
    assert!(taken.contains("the name of a bundled tool"), "{taken}");
    let mine = document("queryJson", "return 'mine'", json!({})).to_string();
    let imported = world.engine.import(&mine, true).unwrap();
    assert!(imported[0].why.as_deref().unwrap().contains("bundled"));
    world.home.file("tools/queryJson.json", &mine);
    let now = world.engine.registry().current();
    assert_eq!(now.set_aside[0].file, "queryJson.json");
    assert_eq!(now.tool("queryJson").unwrap().source, Source::Builtin);
    let copy = world.engine.export(&["queryJson".to_owned()]).unwrap();
    world.home.file("tools/queryJson.json", &copy);
    assert!(world.engine.registry().current().set_aside.is_empty());
    for change in [
        world.engine.delete("queryJson").unwrap_err(),
        world.engine.unpublish("queryJson").unwrap_err(),
    ] {
        assert!(change.to_string().contains("is a bundled tool"), "{change}");
    }
}

/// Settings in force at the next call; broken ones leave the last good in force
/// and say so.
#[tokio::test]
async fn settings_are_read_again() {
    let world = World::new();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    world
        .home
        .file("ringfence.toml", "[exposure]\nauto = false\n");
    assert_eq!(
        error(&world.own_call("tool", json!({})).await).0,
        "tool.not_exposed"
    );
    world
        .home
        .file("ringfence.toml", "[exposure]\naut = true\n");
    assert_eq!(
        error(&world.own_call("tool", json!({})).await).0,
        "tool.not_exposed"
    );
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("the last good ones stay") && alarms.contains("did you mean `auto`?"),
        "{alarms}"
    );
    world
        .home
        .file("ringfence.toml", "[exposure.include]\nnames = [\"tool\"]\n");
    assert_eq!(world.own_call("tool", json!({})).await.status, Status::Done);
}

#[tokio::test]
async fn a_file_is_judged_once_on_one_ground() {
    let world = World::new();
    world
        .home
        .tool("one", &document("one", "return 1", json!({})));
    world
        .home
        .tool("two", &document("two", "return 2", json!({})));
    let judged = |name: &str| Arc::clone(&world.engine.tool(name).unwrap().usable);
    let (one, two) = (judged("one"), judged("two"));
    world
        .home
        .tool("two", &document("two", "return 22", json!({})));
    assert!(Arc::ptr_eq(&one, &judged("one")));
    assert!(!Arc::ptr_eq(&two, &judged("two")));
    // Another baseline may mean another policy, for the same text.
    world
        .home
        .file("ringfence.toml", "[baseline]\nfile_read = true\n");
    assert!(!one.facts.policy.file_read);
    assert!(judged("one").facts.policy.file_read);
}

/// A slip in the name of a preset is a slip in the settings: the last good ones
/// stay. When the tools cannot be read there are none, and what was denied stays
/// denied, also while the settings are broken.
#[tokio::test]
async fn unreadable_settings_or_tools_open_nothing() {
    let world = World::new();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    let usable = world.engine.tool("tool").unwrap().usable;
    world
        .home
        .file("ringfence.toml", "[exposure]\npreset = \"startr\"\n");
    assert_eq!(world.call("tool", json!({})).await.status, Status::Done);
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("did you mean `starter`?"), "{alarms}");

    world
        .home
        .file("ringfence.toml", "[access]\ndeny = [\"*\"]\n");
    assert_eq!(
        error(&world.own_call("tool", json!({})).await).0,
        "access.denied"
    );
    let tools = world.home.path.join("tools");
    let aside = world.home.path.join("moved");
    std::fs::rename(&tools, &aside).unwrap();
    assert_eq!(
        error(&world.call("tool", json!({})).await).0,
        "tool.unknown"
    );
    world.home.file("ringfence.toml", "[acces]\n");
    for _ in 0..2 {
        let passed = world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
        assert_eq!(passed.error.unwrap().code, "tool.unavailable");
    }
    std::fs::rename(&aside, &tools).unwrap();
    assert_eq!(
        error(&world.own_call("tool", json!({})).await).0,
        "access.denied"
    );
}

/// Old entries go when an engine is opened, and the chain stays whole.
#[tokio::test]
async fn old_entries_are_forgotten() {
    let old = Opening {
        call_id: "old".to_owned(),
        parent_id: None,
        at_ms: 1_000,
        origin: Origin::Cli,
        caller: "owner".to_owned(),
        tool: "tool".to_owned(),
        arguments_digest: String::new(),
    };
    // Only what is older than anything else can go, so it comes before any notice.
    let world = World::with(Home::new(), |_| ());
    let row = world.engine.store().audit().open(old).await.unwrap();
    let closing = Closing::bare(1_001, Status::Done, None);
    world
        .engine
        .store()
        .audit()
        .close(row, closing)
        .await
        .unwrap();
    world
        .published(&document("tool", "return 1", json!({})))
        .await;
    let ids = |world: &World| {
        let all = world
            .engine
            .store()
            .audit()
            .list(&Filter::default())
            .unwrap();
        all.iter()
            .filter(|entry| entry.opening.call_id == "old")
            .count()
    };
    assert_eq!(ids(&world), 1);
    let World { engine, home, .. } = world;
    drop(engine);
    home.file("ringfence.toml", "[audit]\nkeep_days = 1\n");
    let world = World::with(home, |_| ());
    assert_eq!(ids(&world), 0);
    assert_eq!(state(&world, "tool"), LifecycleState::Active);
    world.assert_whole();
}

/// The Local Pass has a workspace of its own: it can be repeated, and nothing of
/// it stays.
#[tokio::test]
async fn the_local_pass_changes_no_real_files() {
    let world = World::new();
    let code =
        "const had = safety.fs.exists('a.txt'); safety.fs.writeText('a.txt', 'x'); return had";
    world.home.tool(
        "files",
        &document(
            "files",
            code,
            json!({"sandboxOverrides": {"fileRead": true, "fileWrite": true}}),
        ),
    );
    let usable = world.engine.tool("files").unwrap().usable;
    world.agree("files");
    for _ in 0..2 {
        let passed = world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
        let outcome = passed.outcome.unwrap().into_inner();
        assert_eq!(outcome.value, Some(json!(false)), "{outcome:?}");
        let closing = world.entry(&outcome).closing.unwrap();
        assert!(!closing.events.is_empty());
    }
    assert!(!world.home.path.join("workspace/a.txt").exists());
    let left = std::fs::read_dir(world.home.path.join("scratch"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
    assert!(world.engine.publish("files", Origin::Cli).await.unwrap().ok);
    assert_eq!(
        world.own_call("files", json!({})).await.value,
        Some(json!(false))
    );
    assert_eq!(
        world.own_call("files", json!({})).await.value,
        Some(json!(true))
    );
    assert!(world.home.path.join("workspace/a.txt").exists());
}
