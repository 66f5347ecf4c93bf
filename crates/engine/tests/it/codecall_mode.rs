//! Modes and metadata of code mode, enforced where a call is made.

use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::world::{Home, World, document, error};

/// A tool for each thing a document can say.
const TOOLS: [(&str, &str); 5] = [
    ("silent", "{}"),
    ("enabled", r#"{"enabledInCodeCall": true}"#),
    ("disabled", r#"{"enabledInCodeCall": false}"#),
    ("visible", r#"{"visibleInListTools": true}"#),
    ("invisible", r#"{"visibleInListTools": false}"#),
];

fn settings(mode: &str) -> String {
    format!("[exposure]\npreset = \"none\"\n[codecall]\nmode = \"{mode}\"\n")
}

async fn world() -> World {
    let home = Home::new();
    home.file("ringfence.toml", &settings("metadata_driven"));
    let world = World::with(home, |_| ());
    for (name, metadata) in TOOLS {
        let metadata: Value = serde_json::from_str(metadata).unwrap();
        let more = json!({"x-ringfence-codecall": metadata});
        world.published(&document(name, "return 1", more)).await;
    }
    world
}

/// The tools that answer a call through a door, which must be those it lists.
async fn reached(world: &World, origin: Origin) -> Vec<&'static str> {
    let ann = Caller::named("ann");
    let mut reached = Vec::new();
    for (name, _) in TOOLS {
        let request = CallRequest::new(ann.clone(), origin, name, json!({}));
        let outcome = world.made(request).await;
        if outcome.status == Status::Done {
            reached.push(name);
        } else {
            let told = format!("there is no tool `{name}`");
            assert_eq!(error(&outcome), ("tool.unknown", told.as_str()));
        }
    }
    let offered = world.engine.callable_tools(&ann, origin);
    let listed = offered.iter().filter(|tool| tool.body.native().is_none());
    let mut listed: Vec<_> = listed
        .map(|tool| tool.usable.document.name.clone())
        .collect();
    listed.sort_by_key(|name| TOOLS.iter().position(|(known, _)| known == name));
    assert_eq!(listed, reached, "{origin:?}");
    reached
}

async fn searched(world: &World) -> Vec<String> {
    let arguments = json!({"queries": ["for a test"], "minRelevanceScore": 0});
    let outcome = world.call("codecall_search", arguments).await;
    let value = outcome.value.unwrap();
    let tools = value["tools"].as_array().unwrap();
    assert_eq!(value["totalAvailableTools"], tools.len());
    let mut names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    names.sort_by_key(|name| TOOLS.iter().position(|(known, _)| known == name));
    names.into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_mode_holds_at_the_call_and_in_the_lists() {
    let world = world().await;
    let but_disabled = ["silent", "enabled", "visible", "invisible"];
    let but_invisible = ["silent", "enabled", "disabled", "visible"];
    let rows: [(&str, &[&str], &[&str]); 3] = [
        ("codecall_only", &["visible"], &but_disabled),
        ("codecall_opt_in", &but_invisible, &["enabled"]),
        ("metadata_driven", &but_invisible, &but_disabled),
    ];
    for (mode, listed, scripts) in rows {
        world.home.file("ringfence.toml", &settings(mode));
        assert_eq!(reached(&world, Origin::Mcp).await, listed, "{mode}");
        assert_eq!(reached(&world, Origin::Script).await, scripts, "{mode}");
        assert_eq!(searched(&world).await, scripts, "{mode}");
        // People at the machine call what they like.
        assert_eq!(reached(&world, Origin::Cli).await.len(), TOOLS.len());
        let natives = world
            .engine
            .callable_tools(&Caller::named("ann"), Origin::Mcp);
        assert_eq!(
            natives
                .iter()
                .filter(|tool| tool.body.native().is_some())
                .count(),
            4
        );
        for (name, _) in TOOLS {
            let asked = json!({"tool": name, "input": {}});
            let outcome = world.call("codecall_invoke", asked).await;
            let expected = scripts.contains(&name);
            assert_eq!(outcome.status == Status::Done, expected, "{mode} {name}");
        }
    }
    world.home.file("ringfence.toml", &settings("off"));
    assert_eq!(reached(&world, Origin::Mcp).await.len(), TOOLS.len());
    let outcome = world
        .call("codecall_search", json!({"queries": ["test"]}))
        .await;
    assert_eq!(error(&outcome).0, "tool.unknown");
}

#[tokio::test]
async fn the_owner_is_told_why() {
    let world = world().await;
    world
        .home
        .file("ringfence.toml", &settings("codecall_only"));
    let rows = [
        (
            Origin::Mcp,
            "silent",
            "not listed under `codecall.mode = \"codecall_only\"`",
        ),
        (Origin::Script, "disabled", "not enabled for scripts"),
        (
            Origin::Script,
            "codecall_search",
            "scripts cannot call code mode",
        ),
    ];
    for (origin, name, words) in rows {
        let request = CallRequest::new(Caller::owner(), origin, name, json!({}));
        let outcome = world.made(request).await;
        let (code, message) = error(&outcome);
        assert_eq!(code, "tool.not_exposed");
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn blocked_names_are_out_of_reach_for_scripts() {
    let world = world().await;
    let text = settings("metadata_driven") + "blocked = [\"vis*\"]\n";
    world.home.file("ringfence.toml", &text);
    assert_eq!(
        reached(&world, Origin::Script).await,
        ["silent", "enabled", "invisible"]
    );
    assert_eq!(searched(&world).await, ["silent", "enabled", "invisible"]);
    assert_eq!(reached(&world, Origin::Mcp).await.len(), 4);
    world
        .home
        .file("ringfence.toml", &settings("metadata_driven"));
    world
        .published(&document("__own", "return 1", json!({})))
        .await;
    let request = CallRequest::new(Caller::named("ann"), Origin::Script, "__own", json!({}));
    assert_eq!(error(&world.made(request).await).0, "tool.unknown");
}
