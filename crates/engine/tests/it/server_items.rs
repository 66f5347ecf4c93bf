//! Prompts and resources of MCP servers on the path of a call: off until switched on, held
//! until accepted, ruled, masked and recorded like tools; and definitions that differ from
//! caller to caller.

use std::path::PathBuf;

use engine::call::CallRequest;
use engine::servers::item;
use model::caller::{Caller, Origin};
use model::reason::Reason;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::world::{Home, World};

fn program() -> PathBuf {
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_engine-test-worker"));
    let folder = worker.parent().expect("a folder");
    folder.join("bridge-test-server")
}

fn section(words: &[&str], more: &str) -> String {
    let program = program().display().to_string();
    let words: Vec<_> = std::iter::once(program.as_str())
        .chain(words.iter().copied())
        .collect();
    format!(
        "\n[[server]]\nname = \"test\"\nera = \"legacy\"\ncommand = {}\n{more}\n",
        json!(words)
    )
}

async fn accepted(more: &str, rest: &str) -> World {
    let home = Home::new();
    home.file(
        "ringfence.toml",
        &format!("{rest}{}", section(&["good"], more)),
    );
    let world = World::with(home, |settings| settings.single = false);
    accept(&world).await;
    world
}

async fn accept(world: &World) {
    let servers = world.engine.servers();
    servers.look("test").await.expect("a list");
    let digest = servers.review("test").expect("a review").digest;
    servers.accept("test", &digest, None).expect("accepted");
}

fn reason(outcome: &Outcome) -> Option<Reason> {
    outcome.error.as_ref().map(|error| error.reason)
}

fn reader(world: &World, uri: &str) -> Option<String> {
    let now = world.engine.registry().current();
    now.servers().reader_of("test", uri).map(str::to_owned)
}

#[tokio::test]
async fn prompts_and_resources_are_off_until_their_owner_switches_them_on() {
    let world = accepted("", "").await;
    let greet = json!({"who": "Ann"});
    let off = world.call("test__prompt.greet", greet.clone()).await;
    assert_eq!(reason(&off), Some(Reason::ToolUnknown));
    assert_eq!(reader(&world, "test://page"), None);
    // Switched on, they are new to their owner, and held.
    let more = "prompts = true\nresources = true";
    world.home.file("ringfence.toml", &section(&["good"], more));
    world.engine.servers().look("test").await.expect("a list");
    let held = world.call("test__prompt.greet", greet.clone()).await;
    assert_eq!(reason(&held), Some(Reason::ToolUnknown));
    assert!(world.engine.server_items(&Caller::named("ann")).is_empty());
    accept(&world).await;
    let got = world.call("test__prompt.greet", greet.clone()).await;
    let value = got.value.clone().expect("a prompt");
    assert_eq!(value["messages"][0]["content"]["text"], "Greet Ann.[31m");
    let offered = world.engine.server_items(&Caller::named("ann"));
    assert_eq!(offered.len(), 4, "a prompt, two resources, a template");
    // In no list of tools.
    let tools = world
        .engine
        .callable_tools(&Caller::named("ann"), Origin::Mcp);
    assert!(
        tools
            .iter()
            .all(|tool| !tool.usable.document.name.contains('.'))
    );
    // And off again, without a word to the server.
    world.home.file("ringfence.toml", &section(&["good"], ""));
    let off = world.call("test__prompt.greet", greet).await;
    assert_eq!(reason(&off), Some(Reason::ToolUnknown));
    world.assert_whole();
}

#[tokio::test]
async fn a_read_is_ruled_checked_and_recorded_like_a_call() {
    let rules = "[[rule]]\nid = \"no-seven\"\ntools = [\"test__template.*\"]\nwhen = 'args.uri == \"test://item/7\"'\neffect = \"deny\"\n\n[[rule]]\nid = \"ask-eight\"\ntools = [\"test__template.*\"]\nwhen = 'args.uri == \"test://item/8\"'\neffect = \"ask\"\n\n[expected]\ntools = [\"test__*\"]\n";
    let world = accepted("resources = true", rules).await;
    let read = async |uri: &str| {
        let name = reader(&world, uri).expect("a reader");
        world.call(&name, json!({"uri": uri})).await
    };
    let item = read("test://item/6").await;
    let value = item.value.clone().expect("an item");
    assert_eq!(value["contents"][0]["text"], "item 6");
    assert_eq!(
        reason(&read("test://item/7").await),
        Some(Reason::RuleDenied)
    );
    assert_eq!(
        reason(&read("test://item/8").await),
        Some(Reason::ApprovalPending)
    );
    assert!(
        reader(&world, "test://item/a/b").is_none(),
        "a variable is one segment"
    );
    // Attack: a resource that is accepted does not read another one.
    let page = reader(&world, "test://page").expect("a reader");
    let other = world.call(&page, json!({"uri": "test://token"})).await;
    assert_eq!(reason(&other), Some(Reason::ArgumentSchema));
    // Attack: a caller that is denied the resource cannot tell it from one that is not there.
    let low = CallRequest::new(
        Caller::named("ann"),
        Origin::Mcp,
        "test__resource.none",
        json!({}),
    );
    assert_eq!(reason(&world.made(low).await), Some(Reason::ToolUnknown));
    world.assert_whole();
}

#[tokio::test]
async fn a_secret_is_masked_in_what_a_resource_holds() {
    let home = Home::new();
    let more = "resources = true\nenv = { TOKEN = \"${SERVER_TOKEN}\" }";
    home.file("ringfence.toml", &section(&["good"], more));
    home.file("secrets.env", "SERVER_TOKEN=a-long-secret-value\n");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(home.path.join("secrets.env"), private).expect("private");
    let world = World::with(home, |_| ());
    accept(&world).await;
    let name = reader(&world, "test://token").expect("a reader");
    let read = world.call(&name, json!({"uri": "test://token"})).await;
    let text = read
        .value
        .as_ref()
        .map(|value| value["contents"][0]["text"].clone());
    assert_eq!(text, Some(json!("***")), "{read:?}");
}

/// A link leads somewhere only if its owner offers the server's resources.
#[tokio::test]
async fn links_in_results_are_those_that_can_be_read_here() {
    for (more, link) in [
        ("", "test://b"),
        ("resources = true", "ringfence://test/test://b"),
    ] {
        let world = accepted(more, "").await;
        let picture = world.call("test__picture", json!({})).await;
        let content = picture.relayed.expect("what the server gave").content;
        assert_eq!(content[4]["uri"], link, "{content:?}");
    }
}

#[test]
fn names_of_clients_lead_to_names_of_calls() {
    assert_eq!(item::prompt_target("test__greet"), "test__prompt.greet");
    assert_eq!(item::prompt_name("test__prompt.greet"), "test__greet");
}

/// Attack: a server that shows each caller another definition. What one caller accepted
/// is not what another one gets.
#[tokio::test]
async fn a_definition_that_differs_by_caller_is_held_for_that_caller() {
    let folder = Home::new();
    let file = folder.path.join("list.json");
    let listed = |required: &[&str]| {
        let properties = json!({"words": {"type": "string"}, "to": {"type": "string"}});
        let tools = json!([{
            "name": "echo", "description": "Gives the words back.",
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        }]);
        std::fs::write(&file, tools.to_string()).expect("a list");
    };
    listed(&["words"]);
    let path = file.display().to_string();
    let more = format!(
        "sharing = \"per-caller\"\nread = [{}]",
        json!(folder.path.display().to_string())
    );
    let home = Home::new();
    home.file(
        "ringfence.toml",
        &section(&["good", "--tools", &path], &more),
    );
    let world = World::with(home, |settings| settings.single = false);
    accept(&world).await;
    let as_caller = async |name: &str| {
        let arguments: Value = json!({"words": "x"});
        let request = CallRequest::new(Caller::named(name), Origin::Mcp, "test__echo", arguments);
        world.made(request).await
    };
    let ann = as_caller("ann").await;
    assert!(ann.error.is_none(), "the control: {ann:?}");
    // The connection of the next caller is shown a list that asks for more.
    listed(&["words", "to"]);
    let bob = as_caller("bob").await;
    assert_eq!(reason(&bob), Some(Reason::ServerChanged), "{bob:?}");
}

/// Attack: the list of one caller is on record, the connection of another was shown another
/// list before that and is still open.
#[tokio::test]
async fn a_connection_is_held_to_the_list_it_was_shown_itself() {
    let folder = Home::new();
    let file = folder.path.join("list.json");
    let listed = |required: &[&str]| {
        let tools = json!([{
            "name": "echo",
            "inputSchema": {"type": "object", "required": required,
                "properties": {"words": {"type": "string"}, "to": {"type": "string"}}},
        }]);
        std::fs::write(&file, tools.to_string()).expect("a list");
    };
    listed(&["words"]);
    let more = format!("read = [{}]", json!(folder.path.display().to_string()));
    let home = Home::new();
    let path = file.display().to_string();
    let settings = section(&["good", "--tools", &path], &more);
    home.file("ringfence.toml", &settings);
    let world = World::with(home, |settings| settings.single = false);
    accept(&world).await;
    let echo = async |engine: &engine::Engine| {
        let arguments = json!({"words": "x"});
        let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "test__echo", arguments);
        let outcome = engine.call(request).await.into_inner();
        reason(&outcome)
    };
    assert_eq!(echo(&world.engine).await, None, "the control");
    // Another process of ours is shown more, which holds the tool everywhere.
    listed(&["words", "to"]);
    let other = world.beside(|settings| settings.single = false);
    assert_eq!(echo(&other).await, Some(Reason::ServerChanged));
    // A third one is shown what was accepted, which releases it.
    listed(&["words"]);
    let third = world.beside(|settings| settings.single = false);
    third.servers().look("test").await.expect("a list");
    assert_eq!(echo(&third).await, None);
    assert_eq!(echo(&world.engine).await, None);
    assert_eq!(echo(&other).await, Some(Reason::ServerChanged));
}

/// Where callers do not share, each has a process and a folder of its own.
#[tokio::test]
async fn callers_share_a_process_or_have_one_each() {
    for (sharing, is_shared) in [("shared", true), ("per-caller", false)] {
        let home = Home::new();
        let more = format!("sharing = \"{sharing}\"");
        home.file("ringfence.toml", &section(&["good"], &more));
        let world = World::with(home, |settings| settings.single = false);
        accept(&world).await;
        let folder_of = async |name: &str| {
            let arguments = json!({"name": "HOME"});
            let caller = Caller::named(name);
            let request = CallRequest::new(caller, Origin::Mcp, "test__variable", arguments);
            world.made(request).await.value.expect("a folder")
        };
        let (ann, bob) = (folder_of("ann").await, folder_of("bob").await);
        assert_eq!(ann == bob, is_shared, "{sharing}: {ann} {bob}");
        assert_eq!(folder_of("ann").await, ann, "{sharing}");
    }
}

/// Attack: everything is as accepted until the third call; then a tool of the second page
/// asks for more.
#[tokio::test]
async fn a_tool_of_the_second_page_that_grows_after_the_third_call_is_held() {
    let home = Home::new();
    home.file("ringfence.toml", &section(&["grows-on-second-page"], ""));
    let world = World::with(home, |settings| settings.single = false);
    accept(&world).await;
    for _ in 0..3 {
        let called = world.call("test__second", json!({})).await;
        assert_eq!(
            called.value,
            Some(json!("from the second page")),
            "{called:?}"
        );
    }
    // The server said that its list changed; that is looked at in a moment.
    let held = loop {
        let called = world.call("test__second", json!({})).await;
        match reason(&called) {
            None => tokio::task::yield_now().await,
            Some(reason) => break reason,
        }
    };
    let reasons = [Reason::ToolUnknown, Reason::ServerChanged];
    assert!(reasons.contains(&held), "{held:?}");
    let echo = world.call("test__echo", json!({"words": "x"})).await;
    assert!(echo.error.is_none(), "only that tool is held: {echo:?}");
}
