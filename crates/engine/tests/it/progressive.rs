//! Listing in short, loading cards and resources, through the one path of a call.

use engine::call::CallRequest;
use find::progressive::tokens_of;
use model::caller::{Caller, Origin};
use model::limits::{LIST_TOKENS_MAX, LOADED_TOKENS_MAX};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::world::{Home, World, document, error};

const SETTINGS: &str = "[exposure]\npreset = \"none\"\n[progressive]\nenabled = true\n";

fn world(more: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", &format!("{SETTINGS}{more}"));
    World::with(home, |_| ())
}

/// A tool whose card takes about so many tokens.
fn sized(name: &str, tokens: usize) -> Value {
    let description = format!("Is long. {}", "word ".repeat(tokens * 4 / 5));
    document(name, "return 1", json!({"description": description}))
}

async fn call_as(world: &World, caller: &str, tool: &str, arguments: Value) -> Outcome {
    let caller = Caller::named(caller);
    world
        .made(CallRequest::new(caller, Origin::Mcp, tool, arguments))
        .await
}

async fn load(world: &World, caller: &str, tool: &str) -> Value {
    let outcome = call_as(world, caller, "load_tool", json!({"name": tool})).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    outcome.value.unwrap()
}

async fn list(world: &World, caller: &str, arguments: Value) -> Value {
    let outcome = call_as(world, caller, "list_tools", arguments).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    outcome.value.unwrap()
}

fn names(value: &Value, key: &str) -> Vec<String> {
    let items = value.as_array().unwrap().iter();
    items
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}

fn listed(world: &World, caller: &str) -> Vec<String> {
    let listed = world.engine.listed(&Caller::named(caller));
    let name = |tool: &engine::callable::CallableTool| tool.usable.document.name.clone();
    listed.iter().map(name).collect()
}

/// All pages of the list, one after the other.
fn paged(world: &World, caller: &str, most: usize) -> Vec<String> {
    let caller = Caller::named(caller);
    let mut names: Vec<String> = Vec::new();
    loop {
        let after = names.last().cloned().unwrap_or_default();
        let page = world.engine.listed_page(&caller, &after, most);
        assert!(page.tools.len() <= most);
        let name = |tool: &engine::callable::CallableTool| tool.usable.document.name.clone();
        names.extend(page.tools.iter().map(name));
        if !page.has_more {
            return names;
        }
        assert_eq!(page.tools.len(), most, "only the last page is short");
    }
}

/// Pages of any size make up the whole list, in short and in full.
#[tokio::test]
async fn the_pages_of_a_list_make_up_the_whole() {
    let bob = "[callers.bob]\ndeny = [\"list_tools\", \"gone\"]\n";
    let world = world(&format!("[expected]\ntools = [\"gone\"]\n{bob}"));
    let pinned = json!({"x-ringfence-codecall": {"visibleInListTools": true}});
    for name in ["apple", "pinned", "zebra"] {
        let tool = document(name, "return 1", pinned.clone());
        world.published(&tool).await;
    }
    for name in ["gone", "ship"] {
        world
            .published(&document(name, "return 2", json!({})))
            .await;
    }
    for caller in ["ann", "bob"] {
        let whole = listed(&world, caller);
        assert!(whole.len() > 4, "{whole:?}");
        assert!(!whole.iter().any(|name| name == "gone"), "{whole:?}");
        for most in 1..=whole.len() + 1 {
            assert_eq!(
                paged(&world, caller, most),
                whole,
                "{caller}, {most} a page"
            );
        }
        // After the last one comes nothing, and after a name that is gone what follows it.
        let last = world.engine.listed_page(&Caller::named(caller), "zzz", 9);
        assert!(last.tools.is_empty() && !last.has_more);
        let after = world
            .engine
            .listed_page(&Caller::named(caller), "pinnee", 1);
        assert_eq!(
            after.tools[0].usable.document.name,
            if caller == "bob" { "ship" } else { "zebra" }
        );
    }
}

#[tokio::test]
async fn it_is_off_unless_switched_on() {
    let world = World::new();
    for (tool, arguments) in [
        ("list_tools", json!({})),
        ("load_tool", json!({"name": "x"})),
        ("load_tool_resource", json!({"name": "x", "resource": "y"})),
    ] {
        let outcome = world.call(tool, arguments.clone()).await;
        let told = format!("there is no tool `{tool}`");
        assert_eq!(error(&outcome), ("tool.unknown", told.as_str()));
        let outcome = world.own_call(tool, arguments).await;
        let (_, message) = error(&outcome);
        let why = "progressive listing is off (`progressive.enabled`)";
        assert!(message.contains(why), "{message}");
    }
    // The names are taken all the same.
    world
        .home
        .tool("mine", &document("load_tool", "return 1", json!({})));
    let now = world.engine.registry().current();
    let aside = now.set_aside.first().unwrap();
    let words = "`load_tool` is the name of a progressive listing tool; choose another";
    assert_eq!(aside.findings[0].message, words);
}

#[tokio::test]
async fn the_list_is_short_and_every_tool_is_called_by_name() {
    let world = world("[codecall]\nmode = \"off\"\n[callers.bob]\ndeny = [\"list_tools\"]\n");
    let pinned = json!({"x-ringfence-codecall": {"visibleInListTools": true}});
    world
        .published(&document("pinned", "return 1", pinned))
        .await;
    let more = json!({"category": "Mail", "description": "Sends a parcel. To anybody."});
    world.published(&document("ship", "return 2", more)).await;
    let ours = ["list_tools", "load_tool", "load_tool_resource", "pinned"];
    assert_eq!(listed(&world, "ann"), ours);
    // Who cannot ask for the list has it in full.
    let all = ["load_tool", "load_tool_resource", "pinned", "ship"];
    assert_eq!(listed(&world, "bob"), all);

    let page = list(&world, "ann", json!({})).await;
    assert_eq!(names(&page["tools"], "name"), ["pinned", "ship"]);
    let ship = &page["tools"][1];
    assert_eq!(
        (&ship["line"], &ship["category"]),
        (&json!("Sends a parcel"), &json!("Mail"))
    );
    assert_eq!((&page["total"], page.get("nextCursor")), (&json!(2), None));
    for (category, expected) in [("mail", 1), ("FILE", 0)] {
        let page = list(&world, "ann", json!({"category": category})).await;
        assert_eq!(page["total"], expected, "{category}");
    }

    let loaded = load(&world, "ann", "ship").await;
    assert_eq!(loaded["tokens"], ship["tokens"]);
    assert_eq!(loaded["tokens"], tokens_of(&loaded["tool"]).unwrap());
    assert_eq!((&loaded["cost"], &ship["cost"]), (&json!(1), &Value::Null));
    assert_eq!(loaded["tool"]["description"], "Sends a parcel. To anybody.");
    let modes = names(&loaded["tool"]["failureModes"], "code");
    assert_eq!(modes, ["tool.threw", "sandbox.wall"]);
    // What a call costs is what the limits count.
    let settings = std::fs::read_to_string(world.home.path.join("ringfence.toml")).unwrap();
    world.home.file(
        "ringfence.toml",
        &format!("{settings}\n[costs]\n\"sh*\" = 12\n"),
    );
    let page = list(&world, "ann", json!({})).await;
    assert_eq!(page["tools"][1]["cost"], 12);
    assert_eq!(page["tools"][0].get("cost"), None);
    assert_eq!(load(&world, "ann", "ship").await["cost"], 12);
    // Loaded or not, it can be called.
    for name in ["ship", "pinned"] {
        assert_eq!(world.call(name, json!({})).await.status, Status::Done);
    }
    world.assert_whole();
}

#[tokio::test]
async fn tools_a_caller_may_not_call_are_not_found() {
    let world = world("[callers.bob]\ndeny = [\"secret\"]\n[expected]\ntools = [\"secret\"]\n");
    let guide = json!([{"name": "guide", "mimeType": "text/plain", "text": "hush"}]);
    let more = json!({"x-ringfence-resources": guide});
    world.published(&document("secret", "return 1", more)).await;
    world
        .home
        .tool("draft", &document("draft", "return 1", json!({})));
    assert_eq!(list(&world, "ann", json!({})).await["total"], 1);
    let page = list(&world, "bob", json!({})).await;
    assert_eq!((&page["total"], &page["tools"]), (&json!(0), &json!([])));
    for name in ["secret", "nothing", "draft", "load_tool", "codecall_search"] {
        for (tool, arguments) in [
            ("load_tool", json!({"name": name})),
            (
                "load_tool_resource",
                json!({"name": name, "resource": "guide"}),
            ),
        ] {
            let outcome = call_as(&world, "bob", tool, arguments).await;
            let told = format!("there is no tool `{name}`");
            assert_eq!(error(&outcome), ("tool.not_exposed", told.as_str()));
        }
    }
    // Its owner is told why.
    let outcome = world.own_call("load_tool", json!({"name": "draft"})).await;
    let (code, message) = error(&outcome);
    assert_eq!(code, "tool.not_exposed");
    assert!(message.contains("publish it"), "{message}");
    assert_eq!(load(&world, "ann", "secret").await["unloaded"], json!([]));
}

#[tokio::test]
async fn the_oldest_is_unloaded_for_each_caller_alone() {
    let world = world("");
    for name in ["a", "b", "c", "d"] {
        world.published(&sized(name, 4_000)).await;
    }
    world.published(&sized("huge", 12_900)).await;
    let wide = json!({"description": "é".repeat(32_000)});
    world.published(&document("wide", "return 1", wide)).await;
    for name in ["a", "b", "c", "a"] {
        assert_eq!(
            load(&world, "ann", name).await["unloaded"],
            json!([]),
            "{name}"
        );
    }
    let loaded = load(&world, "ann", "d").await;
    assert_eq!(names(&loaded["unloaded"], "tool"), ["b"]);
    let all = loaded["loadedTokens"].as_u64().unwrap();
    assert!((12_000..=15_000).contains(&all), "{all}");
    // Another caller has a budget of their own.
    assert_eq!(load(&world, "bob", "b").await["unloaded"], json!([]));

    let outcome = call_as(&world, "ann", "load_tool", json!({"name": "wide"})).await;
    let (code, message) = error(&outcome);
    assert_eq!(code, "disclosure.too_large");
    let words = "and all that is loaded together may take 15000";
    assert!(
        message.starts_with("`wide` was not loaded: it takes 16"),
        "{message}"
    );
    assert!(message.ends_with(words), "{message}");
    // It cost nobody anything, and the tool can be called.
    let again = load(&world, "ann", "d").await;
    assert_eq!(again["loadedTokens"], all);
    assert_eq!(world.call("wide", json!({})).await.status, Status::Done);
    let loaded = load(&world, "ann", "huge").await;
    assert_eq!(names(&loaded["unloaded"], "tool"), ["c", "a", "d"]);
    assert!(loaded["loadedTokens"].as_u64().unwrap() <= LOADED_TOKENS_MAX as u64);
}

#[tokio::test]
async fn resources_count_like_cards() {
    let world = world("");
    let text = "line\n".repeat(8_000);
    let more = json!({"x-ringfence-resources": [
        {"name": "guide", "mimeType": "text/markdown", "text": text},
        {"name": "sample", "mimeType": "application/json", "text": "{}"},
    ]});
    world.published(&document("ship", "return 1", more)).await;
    world.published(&sized("a", 4_000)).await;
    let card = load(&world, "ann", "ship").await;
    let shipped = &card["tool"]["resources"];
    assert_eq!(names(shipped, "name"), ["guide", "sample"]);
    load(&world, "ann", "a").await;
    let arguments = json!({"name": "ship", "resource": "guide"});
    let outcome = call_as(&world, "ann", "load_tool_resource", arguments).await;
    let guide = outcome.value.unwrap();
    assert_eq!(guide["resource"]["text"], text.trim_end());
    assert_eq!(guide["tokens"], shipped[0]["tokens"]);
    let gone = json!([
        {"tool": "ship", "tokens": card["tokens"]},
        {"tool": "a", "tokens": guide["unloaded"][1]["tokens"]},
    ]);
    assert_eq!(guide["unloaded"], gone);
    let arguments = json!({"name": "ship", "resource": "giude"});
    let outcome = call_as(&world, "ann", "load_tool_resource", arguments).await;
    let told = ("disclosure.resource", "`ship` has no resource `giude`");
    assert_eq!(error(&outcome), told);
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let world = world("");
    let most = 90;
    for number in 0..most {
        let description = format!("Does the {number}th thing, {}.", "and more ".repeat(12));
        let more = json!({"description": description});
        let tool = document(&format!("tool{number:03}"), "return 1", more);
        world.published(&tool).await;
    }
    let mut seen = Vec::new();
    let mut pages = 0;
    let mut arguments = json!({});
    loop {
        let page = list(&world, "ann", arguments).await;
        assert!(tokens_of(&page).unwrap() <= LIST_TOKENS_MAX);
        assert_eq!(page["total"], most);
        seen.extend(names(&page["tools"], "name"));
        pages += 1;
        match page.get("nextCursor") {
            Some(cursor) => arguments = json!({"cursor": cursor}),
            None => break,
        }
    }
    let expected: Vec<_> = (0..most).map(|number| format!("tool{number:03}")).collect();
    assert_eq!((seen, pages > 1), (expected, true));
    let arguments = json!({"cursor": "x".repeat(257)});
    let outcome = call_as(&world, "ann", "list_tools", arguments).await;
    assert_eq!(
        error(&outcome),
        (
            "argument.type",
            "the cursor is not valid; use `nextCursor` of the page before"
        )
    );
}

#[tokio::test]
async fn scripts_do_not_disclose() {
    let world = world("");
    for name in ["list_tools", "load_tool", " Load_Tool_Resource"] {
        let script = format!(
            "return (await callTool('{name}', {{}}, {{ throwOnError: false }})).error.code;"
        );
        let outcome = world
            .call("codecall_execute", json!({"script": script}))
            .await;
        assert_eq!(outcome.value.unwrap()["result"], "SELF_REFERENCE", "{name}");
        let asked = json!({"tool": name, "input": {}});
        let outcome = world.call("codecall_invoke", asked).await;
        assert_eq!(error(&outcome).0, "tool.not_exposed", "{name}");
    }
    let ann = Caller::named("ann");
    let request = CallRequest::new(ann, Origin::Script, "list_tools", json!({}));
    assert_eq!(error(&world.made(request).await).0, "tool.unknown");
}
