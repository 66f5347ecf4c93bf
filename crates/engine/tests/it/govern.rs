//! What levels, trust and explain say is what happens.

use model::caller::{Caller, Origin};
use model::govern::rules::Effect;
use model::record::audit::Status;
use serde_json::{Value, json};

use engine::call::CallRequest;

use crate::world::{Home, World, document, error};

/// A tool that reaches out, of a category that every level has.
fn sender() -> Value {
    let overrides = json!({"networkMode": "allowlist", "hostsAllow": ["a.example"]});
    let more = json!({"category": "TEXT", "sandboxOverrides": overrides});
    document("sender", "return typeof fetch", more)
}

fn names(world: &World, caller: &Caller) -> Vec<String> {
    let offered = world.engine.callable_tools(caller, Origin::Mcp).into_iter();
    let own = offered.filter(|tool| tool.source == model::document::safety::Source::User);
    own.map(|tool| tool.usable.document.name.clone()).collect()
}

fn asked(caller: &Caller, tool: &str, arguments: Value) -> CallRequest {
    CallRequest::new(caller.clone(), Origin::Mcp, tool, arguments)
}

/// A level that leaves a tool nothing of what it is made for does not list it, does
/// not run it and does not charge for it; the operator is told why.
#[tokio::test]
async fn a_tool_emptied_by_the_access_level_is_not_found() {
    let world = World::new();
    world.published(&sender()).await;
    world
        .published(&document("plain", "return 1", json!({"category": "TEXT"})))
        .await;
    let ann = Caller::named("ann");
    assert_eq!(names(&world, &ann), ["plain", "sender"]);
    let given = "[callers.ann]\nlevel = 'sandboxed'\n";
    let earned = "[trust]\nstrategy = 'milestone'\ninitial_level = 'sandboxed'\n";
    let limit = "[[limit]]\nid = 'one'\nunits_per_day = 1\n";
    for settings in [given, earned] {
        world
            .home
            .file("ringfence.toml", &format!("{settings}{limit}"));
        assert_eq!(names(&world, &ann), ["plain"], "{settings}");
        let outcome = world.call("sender", json!({})).await;
        assert_eq!(
            error(&outcome),
            ("tool.unknown", "there is no tool `sender`")
        );
        let explained = world.engine.explain(&asked(&ann, "sender", json!({})));
        assert_eq!(explained.effect, Effect::Deny);
        let gate = explained.closing.gates.last().unwrap();
        assert_eq!(
            (&*gate.gate, gate.reason.as_deref()),
            ("access", Some("level.denied"))
        );
        let note = gate.note.as_deref().unwrap();
        assert!(
            note.contains("level sandboxed leaves it no network"),
            "{note}"
        );
    }
    // Nothing was charged: the one unit of the day is still there.
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
}

/// What a tool only inherits from the operator's baseline it may do without.
#[tokio::test]
async fn a_level_takes_what_the_baseline_gives() {
    let home = Home::new();
    let settings = "[baseline]\nnetwork = 'allowlist'\nhosts = ['a.example']\n[callers.ann]\nlevel = 'sandboxed'\n";
    home.file("ringfence.toml", settings);
    let world = World::with(home, |_| ());
    let plain = document("plain", "return typeof fetch", json!({"category": "TEXT"}));
    world.published(&plain).await;
    let outcome = world.call("plain", json!({})).await;
    assert_eq!(outcome.value, Some(json!("undefined")), "{outcome:?}");
}

/// Everybody's level does not keep the owner from proving and publishing a tool; lists
/// do.
#[tokio::test]
async fn a_level_for_all_callers_does_not_stop_the_owner_publishing() {
    let home = Home::new();
    home.file("ringfence.toml", "[access]\nlevel = 'custom'\n");
    let world = World::with(home, |_| ());
    world.published(&sender()).await;
    assert_eq!(
        error(&world.call("sender", json!({})).await).0,
        "tool.unknown"
    );
    world.home.file(
        "ringfence.toml",
        "[access]\nlevel = 'custom'\ndeny = ['sender']\n",
    );
    let usable = world.engine.tool("sender").unwrap().usable;
    let passed = world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
    assert_eq!(passed.error.unwrap().code, "access.denied");
}

/// Explain asks the gate of powers too, and makes nothing.
#[tokio::test]
async fn explain_knows_what_the_powers_gate_says() {
    let world = World::new();
    let read = json!({"sandboxOverrides": {"fileRead": true}});
    world.published(&document("reader", "return 1", read)).await;
    let ann = Caller::named("ann");
    let workspace = world.home.path.join("workspace");
    let _ = std::fs::remove_dir_all(&workspace);
    let explained = world.engine.explain(&asked(&ann, "reader", json!({})));
    assert_eq!(explained.effect, Effect::Allow);
    let gate = explained.closing.gates.last().unwrap();
    assert_eq!((&*gate.gate, &*gate.verdict), ("powers", "pass"));
    assert!(!workspace.exists(), "explain made the workspace");
    // A folder that is not there, and one that others took away.
    let folder = std::env::temp_dir().join(format!("ringfence-gone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let settings = format!("[baseline]\nfs_base_path = '{}'\n", folder.display());
    world.home.file("ringfence.toml", &settings);
    assert_eq!(
        world
            .engine
            .explain(&asked(&ann, "reader", json!({})))
            .effect,
        Effect::Allow
    );
    std::fs::remove_dir_all(&folder).unwrap();
    let explained = world.engine.explain(&asked(&ann, "reader", json!({})));
    let made = world.call("reader", json!({})).await;
    assert_eq!(error(&made).0, "power.unavailable");
    assert_eq!(
        (explained.effect, explained.told),
        (Effect::Deny, made.error)
    );
}

/// Trust that names callers holds for them and leaves the others what they were given.
#[tokio::test]
async fn trust_holds_for_whom_it_names() {
    let home = Home::new();
    let settings = "[callers.bot-1]\n[callers.ann]\nlevel = 'standard'\n[groups.crew]\nmembers = ['ann']\n\
                    [trust]\nstrategy = 'milestone'\ncallers = ['bot-*']\n";
    home.file("ringfence.toml", settings);
    let world = World::with(home, |_| ());
    let level = |name: &str| {
        let caller = Caller::named(name);
        let now = world.engine.current_for(&caller).unwrap();
        let rights = now.config.access.rights(&caller, None);
        let word =
            |level: Option<model::govern::access::AccessLevel>| level.map(model::word::Word::word);
        (word(rights.given), word(rights.earned), word(rights.level))
    };
    assert_eq!(level("bot-1"), (None, Some("sandboxed"), Some("sandboxed")));
    assert_eq!(level("ann"), (Some("standard"), None, Some("standard")));
    assert_eq!(level("bob"), (None, None, None));
    world.home.file(
        "ringfence.toml",
        &settings.replace("['bot-*']", "['@crew']"),
    );
    assert_eq!(level("bot-1"), (None, None, None));
    assert_eq!(
        level("ann"),
        (Some("standard"), Some("sandboxed"), Some("sandboxed"))
    );
    let report = world.engine.trust().show("bot-1").unwrap().unwrap();
    assert!(!report.covered && report.tracks.is_empty());
}

/// Both spellings of the arguments of progressive listing, never both at once; rules, questions
/// and the record see one.
#[tokio::test]
async fn load_tool_takes_both_spellings() {
    let home = Home::new();
    let settings = "[progressive]\nenabled = true\n[[rule]]\nid = 'no'\ntools = ['load_tool']\n\
                    when = \"args.name == 'countWords'\"\neffect = 'deny'\n";
    home.file("ringfence.toml", settings);
    let world = World::with(home, |_| ());
    let shipped = json!({"x-ringfence-resources": [
        {"name": "guide", "mimeType": "text/markdown", "text": "# Parcels"}]});
    world
        .published(&document("parcel", "return 1", shipped))
        .await;
    for arguments in [json!({"name": "parcel"}), json!({"tool_name": "parcel"})] {
        let outcome = world.call("load_tool", arguments).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        let kept = world.entry(&outcome).closing.unwrap().arguments;
        assert_eq!(kept, Some(json!({"name": "parcel"})));
    }
    for arguments in [
        json!({"name": "parcel", "resource": "guide"}),
        json!({"tool_name": "parcel", "resource_id": "guide"}),
        json!({"name": "parcel", "resource_id": "guide"}),
    ] {
        let outcome = world.call("load_tool_resource", arguments).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    }
    let both = world
        .call(
            "load_tool",
            json!({"name": "parcel", "tool_name": "parcel"}),
        )
        .await;
    assert_eq!(
        error(&both),
        (
            "argument.unknown",
            "`tool_name` is another name for `name`; give only one"
        )
    );
    for arguments in [
        json!({"name": "countWords"}),
        json!({"tool_name": "countWords"}),
    ] {
        let outcome = world.call("load_tool", arguments).await;
        assert_eq!(error(&outcome).0, "rule.denied");
    }
    // No other tool takes them.
    let outcome = world
        .call("codecall_describe", json!({"tool_name": "parcel"}))
        .await;
    assert_eq!(error(&outcome).0, "argument.unknown");
}
