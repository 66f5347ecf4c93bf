//! The guard's own cases through the whole path: honest scripts run and mean what
//! they say, attacks are refused before anything runs.

#[expect(dead_code, reason = "the guard's own tests use more of it")]
#[path = "../../../guard/tests/it/case.rs"]
mod case;

use std::fs;

use engine::call::CallRequest;
use guard::PresetLevel;
use model::caller::{Caller, Origin};
use model::config::ScriptPreset;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use self::case::{Case, cases, folder};
use crate::world::{Home, World, document};

fn preset(level: PresetLevel) -> ScriptPreset {
    match level {
        PresetLevel::Strict => ScriptPreset::LockedDown,
        PresetLevel::Secure => ScriptPreset::Secure,
        PresetLevel::Standard => ScriptPreset::Balanced,
        PresetLevel::Permissive => ScriptPreset::Experimental,
    }
}

/// The owner's call, under the preset of the case.
async fn run(world: &World, case: &Case) -> Outcome {
    let arguments = json!({"script": case.source, "context": {"tenantId": "acme"}});
    let name = "codecall_execute";
    let mut request = CallRequest::new(Caller::owner(), Origin::Cli, name, arguments);
    request.preset = Some(preset(case.level));
    world.made(request).await
}

/// The tools of `world.js` as documents: each has the whole table and one entry.
async fn tools(world: &World) {
    let table = fs::read_to_string(folder("guard/world.js")).unwrap();
    let param = |name: &str, kind: &str, test: &str| json!({"name": name, "type": kind, "required": false, "testValue": test});
    let each = [
        (
            "users:list",
            vec![param("limit", "INTEGER", "2")],
            "{ limit }",
        ),
        ("users:get", vec![param("id", "INTEGER", "1")], "{ id }"),
        (
            "orders:list",
            vec![param("userId", "INTEGER", "1")],
            "{ userId }",
        ),
        (
            "text:echo",
            vec![param("limit", "INTEGER", "1")],
            "{ limit }",
        ),
        (
            "math:add",
            vec![param("a", "NUMBER", "1"), param("b", "NUMBER", "1")],
            "{ a, b }",
        ),
        ("files:read", vec![param("path", "STRING", "p")], "{ path }"),
        (
            "page:next",
            vec![param("cursor", "INTEGER", "0")],
            "{ cursor }",
        ),
    ];
    for (name, params, arguments) in each {
        let code = format!("const table = {table}\nreturn table['{name}']({arguments});");
        let document = document(name, &code, json!({"params": params}));
        publish(world, &document).await;
    }
    let code = "if (pass) return 1; throw new Error('broken on purpose');";
    let params = json!({"params": [param("pass", "BOOLEAN", "true")]});
    publish(world, &document("always:fails", code, params)).await;
}

async fn publish(world: &World, document: &Value) {
    let name = document["name"].as_str().unwrap();
    world.home.tool(&name.replace(':', "-"), document);
    let passed = world.engine.publish(name, Origin::Cli).await.unwrap();
    assert!(passed.ok, "{passed:?}");
}

fn world() -> World {
    World::with(Home::new(), |settings| settings.single = false)
}

#[tokio::test]
async fn honest_scripts_run() {
    let world = world();
    tools(&world).await;
    let mut wrong = Vec::new();
    let all = cases("guard");
    assert!(all.len() >= 150, "only {} scripts", all.len());
    for case in &all {
        let outcome = run(&world, case).await;
        let answer = outcome.value.clone().unwrap_or_default();
        let expected = case.expected.as_deref();
        let expected = expected.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let is_right = answer["status"] == "ok"
            && expected.is_none_or(|expected| same(&answer["result"], &expected));
        if !is_right {
            wrong.push(format!(
                "{} {}: {answer} {:?}",
                case.place, case.title, outcome.error
            ));
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
}

/// JSON knows one kind of number.
fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one
                    .iter()
                    .all(|(key, value)| two.get(key).is_some_and(|other| same(value, other)))
        }
        (one, two) => one == two,
    }
}

#[tokio::test]
async fn attacks_are_refused_before_anything_runs() {
    let world = world();
    let all = cases("attack/guard");
    assert!(all.len() >= 500, "only {} scripts", all.len());
    let mut through = Vec::new();
    for case in &all {
        let outcome = run(&world, case).await;
        if outcome.status != Status::Refused {
            through.push(format!("{} {}: {outcome:?}", case.place, case.title));
        }
    }
    let count = through.len();
    assert!(through.is_empty(), "{count} ran:\n{}", through.join("\n"));
}

#[tokio::test]
async fn unparsable_scripts_are_syntax_errors() {
    let world = world();
    let mut wrong = Vec::new();
    for case in cases("early") {
        let outcome = run(&world, &case).await;
        let status = outcome.value.as_ref().map(|answer| &answer["status"]);
        if outcome.status != Status::Refused || status != Some(&json!("syntax_error")) {
            wrong.push(format!("{} {}: {outcome:?}", case.place, case.title));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Honest scripts with pieces of others put into them: most are refused, and what the
/// guard lets pass the sandbox compiles.
#[tokio::test]
async fn what_passes_the_guard_compiles_in_the_sandbox() {
    let world = world();
    let honest = cases("guard");
    let mut pieces = cases("guard");
    pieces.extend(cases("early"));
    let mut seed: usize = 7;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below.max(1)
    };
    let (mut compiled, mut wrong) = (0, Vec::new());
    for _ in 0..600 {
        let case = &honest[next(honest.len())];
        let mut text: Vec<char> = case.source.chars().collect();
        let other: Vec<char> = pieces[next(pieces.len())].source.chars().collect();
        let at = next(text.len());
        let from = next(other.len());
        let to = (from + next(40)).min(other.len());
        text.splice(at..at, other[from..to].iter().copied());
        let source: String = text.into_iter().collect();
        // Errors of that name a script can make by itself.
        if source.contains("JSON.parse") || source.contains("SyntaxError") {
            continue;
        }
        let changed = Case {
            source,
            place: case.place.clone(),
            title: case.title.clone(),
            level: case.level,
            expected: None,
        };
        let outcome = run(&world, &changed).await;
        let answer = outcome.value.unwrap_or_default();
        compiled += usize::from(outcome.status != Status::Refused);
        if answer["error"]["name"] == "SyntaxError" {
            wrong.push(format!("{:?}: {answer}", changed.source));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compiled >= 50, "only {compiled} passed");
}
