//! What settings name is there, or they do not come into force; what goes later takes
//! nothing down.

use engine::{Engine, EngineError};
use model::caller::{Caller, Origin};
use model::govern::key::{KeyRecord, Role};
use serde_json::json;
use store::Keys;
use store::keys::Added;

use crate::world::{Home, World, document, error, settings};

const DENY: &str = "[access]\ndeny = ['reckless']\n";

fn refused(home: &Home) -> String {
    let alarms = std::sync::Arc::default();
    match Engine::open(settings(&home.path, &alarms)) {
        Err(EngineError::Settings(why)) => why.replace(&home.path.display().to_string(), "HOME"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
}

fn reckless() -> serde_json::Value {
    document(
        "reckless",
        "return 1",
        json!({"category": "DEMOLITION", "tags": ["loud"]}),
    )
}

#[test]
fn a_list_that_denies_nothing_does_not_open() {
    let home = Home::new();
    home.file("ringfence.toml", "[access]\ndeny = ['delte*']\n");
    assert_eq!(
        refused(&home),
        "HOME/ringfence.toml:2:9: no tool fits `delte*`; did you mean `delete*`? a tool that is to come is named in `expected.tools`"
    );
    home.file(
        "ringfence.toml",
        "[exposure]\npreset = 'startr'\ninclude.names = ['querryJson']\nexclude.categories = ['MESAGING']\n",
    );
    assert_eq!(
        refused(&home),
        "HOME/ringfence.toml:2:10: there is no preset `startr`; did you mean `starter`?"
    );
    home.file(
        "ringfence.toml",
        "[exposure]\ninclude.names = ['querryJson']\nexclude.categories = ['MESAGING']\n",
    );
    let why = refused(&home);
    assert!(
        why.contains(
            "ringfence.toml:2:18: there is no tool `querryJson`; did you mean `queryJson`?"
        ),
        "{why}"
    );
    assert!(
        why.contains(
            "ringfence.toml:3:23: there is no category `MESAGING`; did you mean `MESSAGING`?"
        ),
        "{why}"
    );
}

#[test]
fn files_of_rules_are_looked_up_too() {
    let home = Home::new();
    std::fs::create_dir(home.path.join("rules")).unwrap();
    home.file("ringfence.toml", "[access]\nlevel = 'standard'\n");
    let rule =
        "[[rule]]\nid = 'a'\ntools = ['countWord']\ncallers = ['resercher']\neffect = 'deny'\n";
    home.file("rules/a.toml", rule);
    let why = refused(&home);
    assert!(
        why.starts_with(
            "HOME/rules/a.toml:3:10: there is no tool `countWord`; did you mean `countWords`?"
        ),
        "{why}"
    );
    assert!(
        why.contains("HOME/rules/a.toml:4:12: there is no caller `resercher`"),
        "{why}"
    );
}

/// A running process keeps its last good settings, and says why.
#[tokio::test]
async fn broken_settings_leave_the_last_good_ones_in_force() {
    let world = World::new();
    world.published(&reckless()).await;
    world.home.file("ringfence.toml", DENY);
    assert_eq!(
        error(&world.call("reckless", json!({})).await).0,
        "tool.unknown"
    );
    world
        .home
        .file("ringfence.toml", "[access]\ndeny = ['wreckless']\n");
    assert_eq!(
        error(&world.call("reckless", json!({})).await).0,
        "tool.unknown"
    );
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("the last good ones stay"), "{alarms}");
    assert!(alarms.contains("did you mean `reckless`?"), "{alarms}");
}

/// A tool that goes, in a process that runs and before one that starts: the settings
/// stay as they were, and the operator is told once.
#[tokio::test]
async fn deleting_a_tool_leaves_the_settings_in_force() {
    let world = World::new();
    world.published(&reckless()).await;
    world.home.file("ringfence.toml", DENY);
    assert_eq!(
        error(&world.call("reckless", json!({})).await).0,
        "tool.unknown"
    );
    std::fs::remove_file(world.home.path.join("tools/reckless.json")).unwrap();
    for _ in 0..3 {
        let now = world.engine.registry().current();
        assert_eq!(now.config.access.everyone.deny.len(), 1);
    }
    let gone = |world: &World| {
        let alarms = world.alarms.lock().unwrap();
        let gone = alarms
            .iter()
            .filter(|it| it.contains("use names that no longer exist"));
        gone.count()
    };
    assert_eq!(gone(&world), 1);
    // Another process, other settings: these very ones were good, others are not.
    let world = world.again(|_| ());
    assert_eq!(gone(&world), 1);
    world.home.tool("reckless", &reckless());
    let caller = Caller::named("ann");
    let request = engine::call::CallRequest::new(caller, Origin::Mcp, "reckless", json!({}));
    assert_eq!(error(&world.made(request).await).0, "tool.unknown");
    std::fs::remove_file(world.home.path.join("tools/reckless.json")).unwrap();
    let World { engine, home, .. } = world;
    drop(engine);
    home.file("ringfence.toml", &format!("{DENY}\n# another\n"));
    assert!(refused(&home).contains("there is no tool `reckless`"));
}

/// What is to come is named, and a category or tag that a tool of one's own brings is
/// known while the tool is there.
#[tokio::test]
async fn what_comes_is_known() {
    let home = Home::new();
    home.file(
        "ringfence.toml",
        "[access]\ndeny = ['reckless']\n[expected]\ntools = ['reckless']\n",
    );
    let world = World::with(home, |_| ());
    let more = "[exposure]\nexclude.categories = ['demolition']\nexclude.tags = ['loud']\n";
    world.home.file("ringfence.toml", more);
    let excluded = |world: &World| {
        world
            .engine
            .registry()
            .current()
            .config
            .exposure
            .exclude
            .tags
            .len()
    };
    assert_eq!(excluded(&world), 0);
    world.home.tool("reckless", &reckless());
    assert_eq!(excluded(&world), 1);
    // A file that cannot be used still has its name.
    let mut broken = reckless();
    broken["codeType"] = json!("Python");
    world.home.tool("reckless", &broken);
    world.home.file("ringfence.toml", &format!("{DENY}# a\n"));
    assert_eq!(
        world
            .engine
            .registry()
            .current()
            .config
            .access
            .everyone
            .deny
            .len(),
        1
    );
}

/// Callers have a section, a key or an issuer; a key that comes makes refused settings
/// good without a touch.
#[tokio::test]
async fn a_key_makes_a_caller_known() {
    let world = World::new();
    let rule = "[[rule]]\nid = 'a'\ncallers = ['researcher', 'stdio', 'owner']\neffect = 'deny'\n";
    world.home.file("ringfence.toml", rule);
    let rules = |world: &World| world.engine.registry().current().config.rules.list.len();
    assert_eq!(rules(&world), 0);
    let record = KeyRecord {
        id: model::govern::key::id([7; model::govern::key::ID_BYTES]),
        name: "researcher".to_owned(),
        role: Role::Agent,
        digest: [1; 32],
        created_ms: 0,
        expires_ms: None,
    };
    let added = Keys::open(&world.home.path).unwrap().add(&record).unwrap();
    assert_eq!(added, Added::Yes);
    assert_eq!(rules(&world), 1);
}

/// A candidate is looked up as well, and what it lacks is said.
#[tokio::test]
async fn a_shadow_candidate_with_unknown_names_is_not_evaluated() {
    let home = Home::new();
    home.file("ringfence.toml", "[rules]\nshadow = 'next.toml'\n");
    home.file("next.toml", "[access]\ndeny = ['delte*']\n");
    let world = World::with(home, |_| ());
    assert!(world.engine.registry().current().shadow.is_none());
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("next.toml:2:9: no tool fits `delte*`"),
        "{alarms}"
    );
    world
        .home
        .file("next.toml", "[access]\ndeny = ['delete*']\n");
    assert!(world.engine.registry().current().shadow.is_some());
}

/// A tool of one's own may have the name of a toolbox tool until its category is enabled.
/// Then the document stands aside, and says what to do.
#[tokio::test]
async fn the_name_of_a_toolbox_tool_is_free_until_its_category_is_enabled() {
    let world = World::new();
    let own = document("readPage", "return 'own'", json!({}));
    world.published(&own).await;
    assert_eq!(
        world.call("readPage", json!({})).await.value,
        Some(json!("own"))
    );
    assert!(!world.engine.is_name_taken("readPage", ""));
    world
        .home
        .file("ringfence.toml", "[toolbox]\nenabled = [\"http\"]\n");
    let now = world.engine.registry().current();
    let tool = now.tool("readPage").expect("the native tool");
    assert_eq!(tool.source, model::document::safety::Source::Builtin);
    let aside = now
        .set_aside
        .iter()
        .find(|aside| aside.name.as_deref() == Some("readPage"));
    let said = &aside.expect("the document stands aside").findings[0].message;
    assert!(
        said.contains("`[toolbox]` enables `http`") && said.contains("toolbox.enabled"),
        "{said}"
    );
    assert!(world.engine.is_name_taken("readPage", ""));
    // Another category leaves the name alone, and the tool comes back as it was.
    world
        .home
        .file("ringfence.toml", "[toolbox]\nenabled = [\"git\"]\n");
    assert_eq!(
        world.call("readPage", json!({})).await.value,
        Some(json!("own"))
    );
}
