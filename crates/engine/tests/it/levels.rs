//! `cases/rules/levels.toml` once more, through every gate and into the sandbox:
//! each capability at each level, as a caller meets it.

use std::path::Path;

use engine::approve::ApprovalAnswer;
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::govern::access::AccessLevel;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use model::word::Word as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{Home, Says, World, error};

#[derive(Deserialize)]
struct Matrix {
    row: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    can: String,
    tool: String,
    args: Option<String>,
    has: String,
    may: String,
}

/// A call by somebody who is asked nothing.
async fn call(world: &World, caller: &str, tool: &str, arguments: &Value) -> Outcome {
    let caller = Caller::named(caller);
    let mut request = CallRequest::new(caller, Origin::Mcp, tool, arguments.clone());
    request.approver = Some(Says::new(ApprovalAnswer::Dismissed));
    world.made(request).await
}

fn enforced(world: &World, outcome: &Outcome) -> String {
    let closing = world.entry(outcome).closing.unwrap();
    closing.tool.unwrap().tool_safety.to_string()
}

/// What became of a call, in the words of the table.
fn word(world: &World, outcome: &Outcome, whole: &str) -> &'static str {
    if outcome.status == Status::Done {
        return match enforced(world, outcome) == whole {
            true => "yes",
            false => "less",
        };
    }
    match error(outcome).0 {
        "approval.dismissed" => "ask",
        // What a level empties is not there at all.
        "level.denied" | "tool.unknown" => "no",
        other => panic!("{other}: {outcome:?}"),
    }
}

#[tokio::test]
async fn each_level_does_what_its_table_says_in_a_call() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/rules/levels.toml");
    let matrix: Matrix = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let world = World::with(Home::new(), |_| ());
    let outside = Home::new();
    let (proved, other): (Vec<_>, Vec<_>) = matrix
        .row
        .iter()
        .partition(|row| !row.tool.contains("\"shared/"));
    // A Local Pass has an empty workspace, where these folders are not.
    assert_eq!(other.len(), 2, "told by the pure test alone");
    assert!(proved.len() >= 20);
    for (number, row) in proved.iter().enumerate() {
        let text = row
            .tool
            .replace("/srv/data", &outside.path.display().to_string());
        let mut tool: Value = serde_json::from_str(&text).unwrap();
        tool["description"] = json!("For a test.");
        tool["code"] = json!("return 1");
        let name = tool["name"].as_str().unwrap().to_owned();
        world.home.file("ringfence.toml", "");
        world.published(&tool).await;
        let arguments = row.args.as_deref().unwrap_or("{}");
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let bob = call(&world, "bob", &name, &arguments).await;
        assert_eq!(bob.status, Status::Done, "{}: {bob:?}", row.can);
        let whole = enforced(&world, &bob);
        let (mut has, mut may) = (Vec::new(), Vec::new());
        for level in AccessLevel::ALL {
            // Each a caller of its own, for whoever is denied thrice is paused.
            let ann = format!("ann-{}-{number}", level.word());
            let settings = format!(
                "[callers.{ann}]\nanswers = \"L5\"\nlevel = \"{}\"\n",
                level.word()
            );
            world.home.file("ringfence.toml", &settings);
            let met = call(&world, &ann, &name, &arguments).await;
            let is_there =
                met.error.as_ref().map(|error| error.reason.code()) != Some("tool.unknown");
            has.push(if is_there { "yes" } else { "no" });
            world
                .home
                .file("ringfence.toml", &format!("{settings}allow = [\"*\"]\n"));
            let met = call(&world, &ann, &name, &arguments).await;
            may.push(word(&world, &met, &whole));
        }
        let seen = (has.join(" "), may.join(" "));
        assert_eq!(seen, (row.has.clone(), row.may.clone()), "{}", row.can);
        world.engine.delete(&name).unwrap();
    }
    world.assert_whole();
}
