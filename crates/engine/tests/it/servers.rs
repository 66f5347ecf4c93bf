//! Tools of MCP servers on the path of a call: held until accepted, checked by their
//! schemas, ruled, masked, recorded, and stopped when they change.

use std::path::PathBuf;

use engine::life::revision;
use engine::policy_admin::ApplyFault;
use engine::server_admin::ServerAdminError;
use model::caller::{Caller, Origin};
use model::govern::person::Actor;
use model::reason::Reason;
use model::record::audit::{Act, Status};
use model::record::outcome::Outcome;
use serde_json::json;
use store::Filter;
use upstream::pin::ServedState;

use crate::script;
use crate::world::{Home, World};

/// The server of these tests, built beside their worker.
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

fn world(words: &[&str], more: &str, rest: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", &format!("{rest}{}", section(words, more)));
    World::with(home, |settings| settings.single = false)
}

/// A world whose server is listed and accepted.
async fn accepted(words: &[&str], more: &str, rest: &str) -> World {
    let world = world(words, more, rest);
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

#[tokio::test]
async fn nothing_of_a_server_is_there_until_its_owner_accepts_it() {
    let world = world(&["good"], "", "");
    let servers = world.engine.servers();
    assert!(matches!(
        servers.review("test"),
        Err(ServerAdminError::NeverSeen(_))
    ));
    let unseen = world.call("test__echo", json!({"words": "x"})).await;
    assert_eq!(reason(&unseen), Some(Reason::ToolUnknown));
    servers.look("test").await.expect("a list");
    let held = world.call("test__echo", json!({"words": "x"})).await;
    assert_eq!(
        reason(&held),
        Some(Reason::ToolUnknown),
        "held is not there"
    );
    assert!(
        world
            .engine
            .callable_tools(&Caller::named("ann"), Origin::Mcp)
            .iter()
            .all(|tool| !tool.usable.document.name.starts_with("test__"))
    );
    let review = servers.review("test").expect("a review");
    let wrong = servers.accept("test", "another digest", None);
    assert!(matches!(wrong, Err(ServerAdminError::Changed(_))));
    assert_eq!(
        servers
            .accept("test", &review.digest, None)
            .expect("accepted"),
        10
    );
    let called = world.call("test__echo", json!({"words": "hello"})).await;
    assert_eq!(called.value, Some(json!("hello")), "{called:?}");
    assert_eq!(called.status, Status::Done);
    let relayed = called.relayed.expect("what the server gave");
    assert_eq!(relayed.content, [json!({"type": "text", "text": "hello"})]);
}

#[tokio::test]
async fn the_full_schema_is_checked_before_the_call_and_the_result_after() {
    let world = accepted(&["good"], "", "").await;
    let misfit = world.call("test__echo", json!({"words": 1})).await;
    assert_eq!(reason(&misfit), Some(Reason::ArgumentSchema));
    let unknown = world
        .call("test__echo", json!({"words": "x", "more": 1}))
        .await;
    assert_eq!(reason(&unknown), Some(Reason::ArgumentSchema));
    let sum = world.call("test__add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.value, Some(json!({"sum": 3.0})));
    assert!(sum.console.is_empty(), "{:?}", sum.console);
}

#[tokio::test]
async fn a_tool_that_fails_and_a_server_that_refuses_have_their_reasons() {
    let world = accepted(&["good"], "", "").await;
    let failed = world.call("test__fail", json!({})).await;
    assert_eq!(reason(&failed), Some(Reason::ServerFailed));
    assert!(failed.relayed.is_some(), "its own words are passed on");
    let refused = world.call("test__refuse", json!({})).await;
    assert_eq!(reason(&refused), Some(Reason::ServerRefused));
    let died = world.call("test__die", json!({})).await;
    assert_eq!(reason(&died), Some(Reason::ServerUnavailable));
    let gates = world.gates(&died);
    assert_eq!(
        gates.last().map(String::as_str),
        Some("powers pass"),
        "{gates:?}"
    );
    world.assert_whole();
}

#[tokio::test]
async fn rules_and_levels_hold_for_tools_of_servers() {
    let rules = "[[rule]]\nid = \"no-secrets\"\ntools = [\"test__echo\"]\nwhen = 'args.words == \"secret\"'\neffect = \"deny\"\n\n[[rule]]\nid = \"ask\"\ntools = [\"test__echo\"]\nwhen = 'args.words == \"ask\"'\neffect = \"ask\"\n\n[expected]\ntools = [\"test__*\"]\n\n[callers.low]\nlevel = \"sandboxed\"\n\n[callers.ann]\nanswers = \"L5\"\n";
    let world = accepted(&["good"], "network = \"open\"", rules).await;
    let denied = world.call("test__echo", json!({"words": "secret"})).await;
    assert_eq!(reason(&denied), Some(Reason::RuleDenied));
    let asked = world.call("test__echo", json!({"words": "ask"})).await;
    assert_eq!(reason(&asked), Some(Reason::ApprovalPending));
    let low = engine::call::CallRequest::new(
        Caller::named("low"),
        Origin::Mcp,
        "test__echo",
        json!({"words": "x"}),
    );
    let low = world.made(low).await;
    assert_eq!(
        reason(&low),
        Some(Reason::ToolUnknown),
        "a level below hides it"
    );
}

#[tokio::test]
async fn a_secret_of_a_server_is_masked_in_what_it_says() {
    let home = Home::new();
    let more = "env = { TOKEN = \"${SERVER_TOKEN}\" }";
    home.file("ringfence.toml", &section(&["good"], more));
    home.file("secrets.env", "SERVER_TOKEN=a-long-secret-value\n");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(home.path.join("secrets.env"), private).expect("private");
    let world = World::with(home, |_| ());
    accept(&world).await;
    let said = world.call("test__variable", json!({"name": "TOKEN"})).await;
    assert_eq!(
        said.value,
        Some(json!("***")),
        "the server has it, the caller does not"
    );
    let relayed = said.relayed.expect("relayed");
    assert!(
        !format!("{relayed:?}").contains("a-long-secret"),
        "{relayed:?}"
    );
    std::fs::write(world.home.path.join("secrets.env"), "").expect("emptied");
    let missing = world.call("test__variable", json!({"name": "TOKEN"})).await;
    assert_eq!(reason(&missing), Some(Reason::ToolUnknown));
}

#[tokio::test]
async fn a_script_calls_a_tool_of_a_server_like_any_other() {
    let world = accepted(&["good"], "", "").await;
    let ran = script::run(
        &world,
        "const r = await callTool('test__add', {a: 2, b: 3}); return r.sum;",
    )
    .await;
    assert_eq!(
        ran.value.as_ref().map(|value| &value["result"]),
        Some(&json!(5)),
        "{ran:?}"
    );
    let ran = script::run(&world, "return (await test.add({a: 2, b: 4})).sum;").await;
    assert_eq!(
        ran.value.as_ref().map(|value| &value["result"]),
        Some(&json!(6)),
        "{ran:?}"
    );
}

#[tokio::test]
async fn other_words_are_not_shown_and_a_tool_that_asks_for_more_is_held() {
    let folder = Home::new();
    let file = folder.path.join("list.json");
    let listed = |description: &str, required: &[&str]| {
        let properties = json!({"words": {"type": "string"}, "to": {"type": "string"}});
        let tools = json!([{
            "name": "echo", "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        }]);
        std::fs::write(&file, tools.to_string()).expect("a list");
    };
    listed("The first words.", &["words"]);
    let more = format!("read = [{}]", json!(folder.path.display().to_string()));
    let path = file.display().to_string();
    let world = accepted(&["good", "--tools", &path], &more, "").await;
    let words = |world: &World| {
        let tool = world.engine.tool("test__echo").map(|tool| tool.usable);
        tool.map(|usable| usable.document.description.clone()).ok()
    };
    assert_eq!(words(&world).as_deref(), Some("The first words."));
    // Other words: the accepted ones stay, and the owner is told.
    listed("Other words.", &["words"]);
    world.engine.servers().restart("test").expect("restarted");
    world.engine.servers().look("test").await.expect("a list");
    assert_eq!(words(&world).as_deref(), Some("The first words."));
    let review = world.engine.servers().review("test").expect("a review");
    assert_eq!(review.served.changes.len(), 1);
    assert!(
        world
            .call("test__echo", json!({"words": "x"}))
            .await
            .error
            .is_none()
    );
    assert_eq!(
        listed_notices(&world).pop().as_deref(),
        Some("the server `test` offers 1 tool, not as before: `echo` (wording)")
    );
    // It asks for one more: held, in the very call that finds out.
    listed("The first words.", &["words", "to"]);
    world.engine.servers().restart("test").expect("restarted");
    let changed = world.call("test__echo", json!({"words": "x"})).await;
    assert_eq!(reason(&changed), Some(Reason::ServerChanged), "{changed:?}");
    let review = world.engine.servers().review("test").expect("a review");
    let state = &review.served.items[0].state;
    assert!(matches!(state, ServedState::Held(_)), "{state:?}");
    let held = world.call("test__echo", json!({"words": "x"})).await;
    assert_eq!(reason(&held), Some(Reason::ToolUnknown));
    // Back to what was accepted: it releases itself.
    listed("The first words.", &["words"]);
    world.engine.servers().restart("test").expect("restarted");
    world.engine.servers().look("test").await.expect("a list");
    let back = world.call("test__echo", json!({"words": "x"})).await;
    assert!(back.error.is_none(), "{back:?}");
    let told = listed_notices(&world);
    let told: Vec<_> = told.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(
        told,
        [
            "the server `test` offers 1 tool, not as before, but as accepted",
            "the server `test` offers 1 tool, not as before: `echo` (wider)",
        ]
    );
}

/// What the audit was told of lists, the newest last.
fn listed_notices(world: &World) -> Vec<String> {
    let audit = world.engine.store().audit();
    let all = audit.notices(&Filter::default()).expect("notices");
    let listed = all.into_iter().map(|entry| entry.notice);
    let listed = listed.filter(|notice| notice.act == Act::ServerListed);
    let mut said: Vec<_> = listed.map(|notice| notice.message).collect();
    said.reverse();
    said
}

#[tokio::test]
async fn another_command_is_another_server() {
    let world = accepted(&["good"], "", "").await;
    assert!(
        world
            .call("test__echo", json!({"words": "x"}))
            .await
            .error
            .is_none()
    );
    world
        .home
        .file("ringfence.toml", &section(&["good", "--other"], ""));
    let held = world.call("test__echo", json!({"words": "x"})).await;
    assert_eq!(reason(&held), Some(Reason::ToolUnknown), "{held:?}");
}

#[tokio::test]
async fn a_blocked_tool_is_gone_and_an_unreadable_pin_stops_the_server() {
    let world = accepted(&["good"], "", "").await;
    world
        .engine
        .servers()
        .block("test", Some("echo"))
        .expect("blocked");
    let blocked = world.call("test__echo", json!({"words": "x"})).await;
    assert_eq!(reason(&blocked), Some(Reason::ToolUnknown));
    assert!(
        world
            .call("test__add", json!({"a": 1, "b": 1}))
            .await
            .error
            .is_none()
    );
    let store = world.engine.store().publications();
    let record = store.all().expect("records").servers["test"].clone();
    assert!(
        store
            .save_pins("test", &record, "{ not a record")
            .expect("saved")
    );
    let stopped = world.call("test__add", json!({"a": 1, "b": 1})).await;
    assert_eq!(reason(&stopped), Some(Reason::ToolUnknown));
    let review = world.engine.servers().review("test");
    assert!(
        matches!(review, Err(ServerAdminError::Record { .. })),
        "{review:?}"
    );
}

/// The hints of a tool as clients get them, in the order of the protocol.
fn hints(world: &World, tool: &str) -> (bool, bool, Option<bool>, bool) {
    let offered = world
        .engine
        .callable_tools(&Caller::named("ann"), Origin::Mcp);
    let found = offered
        .iter()
        .find(|offered| offered.usable.document.name == tool);
    let hints = found.expect("the tool").hints();
    (
        hints.read_only,
        hints.destructive,
        hints.idempotent,
        hints.open_world,
    )
}

/// A client may run without asking what is read-only, and again what is idempotent. No policy
/// sees what a server's process keeps, so its own claim is needed as well.
#[tokio::test]
async fn hints_admit_to_what_the_server_does_and_to_what_the_policy_lets_it() {
    let folder = Home::new();
    let file = folder.path.join("list.json");
    let tool = |name: &str, annotations: serde_json::Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
    let tools = json!([
        tool(
            "reads",
            json!({"readOnlyHint": true, "idempotentHint": true})
        ),
        tool("looks", json!({"readOnlyHint": true})),
        tool(
            "keeps",
            json!({"readOnlyHint": false, "idempotentHint": false})
        ),
        tool(
            "adds",
            json!({"destructiveHint": false, "idempotentHint": true})
        ),
        tool("silent", json!({})),
    ]);
    std::fs::write(&file, tools.to_string()).expect("a list");
    let path = file.display().to_string();
    let read = format!("read = [{}]", json!(folder.path.display().to_string()));
    let world = accepted(&["good", "--tools", &path], &read, "").await;
    let of = |tool: &str| hints(&world, &format!("test__{tool}"));
    assert_eq!(of("reads"), (true, false, Some(true), false));
    assert_eq!(of("looks"), (true, false, None, false));
    assert_eq!(of("keeps"), (false, true, None, false));
    assert_eq!(of("adds"), (false, false, Some(true), false));
    assert_eq!(of("silent"), (false, true, None, false));
    // Where it reaches the network, no claim makes it safer.
    let open = format!("{read}\nnetwork = \"open\"");
    let world = accepted(&["good", "--tools", &path], &open, "").await;
    for tool in ["reads", "looks", "keeps", "adds", "silent"] {
        let hints = hints(&world, &format!("test__{tool}"));
        assert_eq!(hints, (false, true, None, true), "{tool}");
    }
}

/// Attack: a server that changes a tool, just when its owner wants to change the settings.
#[tokio::test]
async fn a_rule_about_a_tool_that_is_held_or_blocked_locks_no_settings() {
    let rules = "[[rule]]\nid = \"ask\"\ntools = [\"test__echo\"]\nwhen = 'args.words == \"x\"'\neffect = \"ask\"\n\n[[rule]]\nid = \"kind\"\ncategories = [\"mcp\"]\neffect = \"ask\"\n\n[[rule]]\nid = \"tag\"\nwhen = '\"test\" in tool.tags'\neffect = \"ask\"\n\n[costs]\ntest__echo = 2\n";
    let world = accepted(&["good"], "", "").await;
    let engine = &world.engine;
    let change = |more: &str| {
        let seen = store::settings::read(engine.home()).expect("read");
        let seen = seen.expect("settings");
        let who = Actor {
            by: "owner",
            through: "cli",
        };
        let text = format!("{more}{seen}");
        engine.apply_settings(&text, &revision(&seen), (who, "a test"))
    };
    let errors = || {
        let now = engine.registry().current();
        let found = engine.lint(&now.settings).expect("findings");
        let errors = found.into_iter().filter(|finding| finding.kind.is_error());
        errors.map(|finding| finding.message).collect::<Vec<_>>()
    };
    change(rules).expect("applied");
    assert_eq!(errors(), Vec::<String>::new(), "the control");
    engine
        .servers()
        .block("test", Some("echo"))
        .expect("blocked");
    assert_eq!(errors(), Vec::<String>::new());
    change("# One.\n").expect("applied");
    engine.servers().block("test", None).expect("blocked");
    assert_eq!(errors(), Vec::<String>::new());
    change("# Two.\n").expect("applied");
    // A slip is still found.
    let slip = "[[rule]]\nid = \"slip\"\ntools = [\"test__ecko\"]\neffect = \"deny\"\n\n";
    assert!(matches!(change(slip), Err(ApplyFault::Unfit(_))));
}

/// What the owner is shown before accepting is what a call is rated after it.
#[tokio::test]
async fn a_review_shows_the_risk_that_a_tool_gets() {
    let home = Home::new();
    let more = "network = \"open\"\nenv = { TOKEN = \"${SERVER_TOKEN}\" }";
    home.file("ringfence.toml", &section(&["good"], more));
    home.file("secrets.env", "SERVER_TOKEN=a-long-secret-value\n");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(home.path.join("secrets.env"), private).expect("private");
    let world = World::with(home, |_| ());
    accept(&world).await;
    let review = world.engine.servers().review("test").expect("a review");
    let key = upstream::definition::ItemKey::tool("echo");
    let shown = review.risk(&review.seen.items[&key].definition);
    let tool = world.engine.tool("test__echo").expect("a tool");
    assert_eq!(shown, tool.usable.facts.risk);
    let words: Vec<_> = shown.signals.iter().map(|it| it.words.as_str()).collect();
    assert!(
        words.iter().any(|it| it.contains("SERVER_TOKEN")),
        "{words:?}"
    );
}

/// As long as the stamp is the same, nobody makes the lists again; whatever changes them
/// changes it.
#[tokio::test]
async fn the_stamp_of_a_list_changes_with_what_it_is_made_from() {
    let home = Home::new();
    let more = "env = { TOKEN = \"${SERVER_TOKEN}\" }";
    home.file("ringfence.toml", &section(&["good"], more));
    home.file("secrets.env", "SERVER_TOKEN=a-long-secret-value\n");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(home.path.join("secrets.env"), private).expect("private");
    let world = World::with(home, |_| ());
    accept(&world).await;
    let engine = &world.engine;
    let ann = Caller::named("ann");
    let stamp = || engine.list_stamp(&ann);
    let seen = stamp();
    assert!(seen == stamp(), "nothing changed");
    engine
        .servers()
        .block("test", Some("echo"))
        .expect("blocked");
    let blocked = stamp();
    assert!(seen != blocked && blocked == stamp());
    let secrets = world.home.path.join("secrets.env");
    std::fs::write(&secrets, "SERVER_TOKEN=another-long-value\n").expect("written");
    let changed = stamp();
    assert!(changed == stamp(), "another value is one change at most");
    std::fs::write(&secrets, "").expect("emptied");
    assert!(changed != stamp(), "a variable is not set any more");
    let unset = stamp();
    let text = section(&["good"], more);
    world
        .home
        .file("ringfence.toml", &format!("# Mine.\n{text}"));
    assert!(unset != stamp());
}

/// A description in a schema is read by people as that of its tool.
#[tokio::test]
async fn texts_in_schemas_are_visible_and_values_stay() {
    let folder = Home::new();
    let file = folder.path.join("list.json");
    let schema = |words: &str| {
        json!({
            "type": "object", "title": words,
            "properties": {
                "description": {"type": "string", "description": words},
                "default": {"type": "string", "title": words, "default": "a\u{1b}"},
            },
        })
    };
    let tools = json!([{"name": "look", "inputSchema": schema("a\u{1b}[2J\nb")}]);
    std::fs::write(&file, tools.to_string()).expect("a list");
    let path = file.display().to_string();
    let read = format!("read = [{}]", json!(folder.path.display().to_string()));
    let world = world(&["good", "--tools", &path], &read, "");
    let servers = world.engine.servers();
    servers.look("test").await.expect("a list");
    let digest = servers.review("test").expect("a review").digest;
    // By name, because of what is found in it.
    let named = ["look".to_owned()].into();
    servers
        .accept("test", &digest, Some(&named))
        .expect("accepted");
    let tool = world.engine.tool("test__look").expect("a tool");
    let shown = tool.body.input_schema(&tool.usable.document);
    assert_eq!(shown, schema("a\\u{1b}[2J\nb"));
}
