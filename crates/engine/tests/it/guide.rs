//! Every fenced example of the pages about scripts and tool code, run as its page
//! says. An example without a test here fails the count.

use std::fs;

use model::config::Config;
use model::outcome::Outcome;
use serde_json::{Value, json};

use crate::script::answer;
use crate::world::{Home, World, document};

/// One fenced block: its language and its text.
#[derive(Debug, PartialEq)]
struct Block {
    language: String,
    text: String,
}

fn file(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    fs::read_to_string(format!("{root}/{path}")).unwrap()
}

/// The fenced blocks of a page of the guide.
fn blocks(page: &str) -> Vec<Block> {
    let text = file(&format!("docs/guide/{page}.md"));
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(language) if !is_open => {
                is_open = true;
                blocks.push(Block {
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            Some(_) => is_open = false,
            None if is_open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!is_open, "{page} leaves a block open");
    blocks
}

fn languages(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|block| block.language.as_str()).collect()
}

/// A home as it is after its first start.
fn world(toml: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", toml);
    World::with(home, |settings| settings.single = false)
}

async fn execute(world: &World, arguments: Value) -> Outcome {
    world.own_call("codecall_execute", arguments).await
}

#[tokio::test]
async fn code_mode_runs_as_it_stands() {
    let blocks = blocks("code-mode");
    assert_eq!(languages(&blocks), ["js", "sh", "json"]);
    let words = &blocks[0].text;
    // The commands of the second block run in this case of the command line.
    assert_eq!(*words, file("cases/cli/script-of-the-guide/words.js"));
    let steps = file("cases/cli/script-of-the-guide/steps.sh");
    for command in blocks[1].text.lines() {
        let command = command.split('#').next().unwrap().trim();
        assert!(steps.lines().any(|step| step == command), "{command}");
    }
    let fresh = world("");
    let arguments = json!({"script": words, "context": {"text": "one two three"}});
    let outcome = execute(&fresh, arguments).await;
    assert_eq!(
        answer(&outcome)["result"],
        json!({"words": 3, "half": 1.5}),
        "{outcome:?}"
    );

    let limit = json!({"name": "limit", "type": "INTEGER", "required": true, "testValue": "1"});
    let code = "return Array.from({ length: limit }, (_, n) => ({ active: n % 2 === 0 }));";
    let users = document("users.list", code, json!({"params": [limit]}));
    fresh.published(&users).await;
    let arguments: Value = serde_json::from_str(&blocks[2].text).unwrap();
    let outcome = execute(&fresh, arguments).await;
    assert_eq!(answer(&outcome)["result"], 50, "{outcome:?}");
    // The page says the same call has another spelling.
    let script = "return (await users.list({ limit: 100 })).length;";
    let outcome = execute(&fresh, json!({"script": script})).await;
    assert_eq!(answer(&outcome)["result"], 100, "{outcome:?}");
}

#[tokio::test]
async fn the_language_runs_as_it_stands() {
    let blocks = blocks("script-language");
    assert_eq!(languages(&blocks), ["js"]);
    let world = world("");
    let param =
        |name: &str| json!({"name": name, "type": "INTEGER", "required": true, "testValue": "1"});
    let users =
        "return [{ id: 1, active: true }, { id: 2, active: false }, { id: 3, active: true }];";
    world
        .published(&document(
            "users:list",
            users,
            json!({"params": [param("limit")]}),
        ))
        .await;
    let orders = "return [{ total: userId }, { total: 10 }];";
    world
        .published(&document(
            "orders:list",
            orders,
            json!({"params": [param("userId")]}),
        ))
        .await;
    let outcome = execute(&world, json!({"script": blocks[0].text})).await;
    assert_eq!(
        answer(&outcome)["result"],
        json!({"active": 2, "total": 24}),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn finding_tools_works_as_it_stands() {
    let blocks = blocks("finding-tools");
    assert_eq!(languages(&blocks), ["json", "toml", "json", "toml", "json"]);
    let fresh = world("");
    let queries: Value = serde_json::from_str(&blocks[0].text).unwrap();
    let found = fresh.own_call("codecall_search", queries).await;
    let names: Vec<_> = answer(&found)["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"countWords"), "{names:?}");

    // Settings that are understood and in force.
    for toml in [&blocks[1].text, &blocks[3].text] {
        assert!(Config::parse(toml).is_ok(), "{toml}");
    }
    let narrow = world(&blocks[1].text);
    let refused = narrow
        .call(
            "codecall_invoke",
            json!({"tool": "countWords", "input": {"text": "a"}}),
        )
        .await;
    assert!(refused.error.is_some(), "`invoke` lists other tools");
    let little = world(&blocks[3].text);
    let listed = little.own_call("list_tools", json!({})).await;
    assert!(listed.error.is_none(), "{listed:?}");

    // Fields of a document, each in a document of its own.
    for field in [&blocks[2].text, &blocks[4].text] {
        let text = format!("{{{field}}}");
        let more: Value = serde_json::from_str(&text).unwrap();
        let mut orders = document("orders", "return { orders: [], total: 0 }", more);
        orders["params"] = json!([{"name": "limit", "type": "INTEGER", "required": false}]);
        fresh.published(&orders).await;
    }
}

#[test]
fn tool_code_has_no_example_without_a_test() {
    assert_eq!(blocks("tool-code"), []);
}
