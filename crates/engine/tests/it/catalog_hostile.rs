//! What a careless or hostile caller sends: for every offline tool, each param in
//! turn takes values nobody meant. The tool answers, or says in one sentence what is
//! wrong; it never stumbles and never runs into a bound.

use model::document::ParamType;
use serde_json::{Value, json};

use crate::bench_call::{Bench, Outcome, Surroundings};
use crate::catalog::{Bundled, documents};
use crate::catalog_golden::{Scratch, environment, test_arguments};

/// How a script says that its author did not think of something.
const STUMBLES: &[&str] = &[
    "TypeError",
    "ReferenceError",
    "RangeError",
    "SyntaxError",
    "InternalError",
    "undefined",
    "not a function",
];

fn values(kind: ParamType) -> Vec<Value> {
    let long = "x".repeat(50_000);
    match kind {
        ParamType::String => vec![
            json!(""),
            json!("   "),
            json!("\u{0}\u{202e}\u{feff}"),
            json!("é🎉ß\u{301}"),
            json!("[[[((({{{"),
            json!("-1"),
            json!("{}"),
            json!("null"),
            json!("$..*[?("),
            json!("a b\n\n# c\n- [ ] d"),
            json!("=1+1"),
            json!("constructor"),
            json!("__proto__"),
            json!("<p><p a='\">&amp"),
            json!("9".repeat(400)),
            json!(long),
            json!("a, b; c. ".repeat(5_000)),
        ],
        ParamType::Integer => vec![
            json!(0),
            json!(-1),
            json!(7),
            json!(9_007_199_254_740_991_i64),
        ],
        ParamType::Number => vec![json!(0), json!(-1), json!(3.5), json!(1e308), json!(5e-324)],
        ParamType::Boolean => vec![json!(true), json!(false)],
        ParamType::Array => vec![
            json!([]),
            json!([null]),
            json!([[]]),
            json!([{}]),
            json!(["a"]),
            json!(["é", ""]),
            json!([true, 1, "x"]),
            json!([[1, 2]]),
            json!([[1, 2], [1, 2]]),
            json!([{"a": {"b": [1]}}, {"__proto__": 1}]),
            json!([1e308, 1e308, -1e308]),
        ],
        ParamType::Object => vec![
            json!({}),
            json!({"a": null}),
            json!({"": {}}),
            json!({"days": "x"}),
            json!({"type": 7, "properties": 3}),
            json!({"__proto__": {"x": 1}}),
        ],
    }
}

async fn stumbles(bench: &Bench, tool: &Bundled) -> Vec<String> {
    let params = &tool.sound.document.params;
    let mut found = Vec::new();
    for param in params {
        for value in values(param.kind) {
            let scratch = Scratch::new(&format!("hostile-{}", tool.stem));
            let around = Surroundings {
                workspace: scratch.path(),
                lab: None,
            };
            let mut arguments = test_arguments(tool);
            arguments[&param.name] = value.clone();
            let Outcome::Failed { code, message } =
                bench.call(&tool.sound, &arguments, &around).await
            else {
                continue;
            };
            let is_plain = ["tool.threw", "argument.missing", "argument.type"].contains(&code)
                && !message.contains('\n')
                && !STUMBLES.iter().any(|word| message.contains(word));
            if !is_plain {
                let shown: String = value.to_string().chars().take(40).collect();
                found.push(format!(
                    "{}.{} = {shown}: {code} {message}",
                    tool.stem, param.name
                ));
            }
        }
    }
    found
}

#[tokio::test]
async fn no_argument_makes_a_tool_stumble() {
    let all = documents();
    let bench = Bench::start(environment(&all));
    let mut found = Vec::new();
    for tool in all.iter().filter(|tool| tool.is_offline()) {
        found.extend(stumbles(&bench, tool).await);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
