//! What a careless or hostile caller sends: for every offline tool, each param in
//! turn takes values nobody meant. The tool answers, or says in one sentence what is
//! wrong; it never stumbles and never runs into a bound.

use model::document::ParamType;
use serde_json::{Value, json};

use crate::catalog::{Bundled, documents};
use crate::catalog_call::{CatalogRunner, Outcome, Surroundings};
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

/// A sentence, not a copy of what was sent.
const MESSAGE_BYTES_MAX: usize = 400;

fn values(kind: ParamType) -> Vec<Value> {
    let long = "x".repeat(10_000);
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
            json!("a, b; c. ".repeat(1_000)),
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

async fn stumbles(runner: &CatalogRunner, tool: &Bundled) -> Vec<String> {
    let params = &tool.usable.document.params;
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
                runner.call(&tool.usable, &arguments, &around).await
            else {
                continue;
            };
            let is_plain = ["tool.threw", "argument.missing", "argument.type"].contains(&code)
                && !message.contains('\n')
                && message.len() <= MESSAGE_BYTES_MAX
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
    let runner = CatalogRunner::start(environment(&all));
    let mut found = Vec::new();
    for tool in all.iter().filter(|tool| tool.is_offline()) {
        found.extend(stumbles(&runner, tool).await);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A long text or list is answered, or refused by the tool itself, before a bound of
/// the call has to.
#[tokio::test]
async fn large_arguments_are_answered_or_refused() {
    let all = documents();
    let runner = CatalogRunner::start(environment(&all));
    let mut found = Vec::new();
    for tool in all.iter().filter(|tool| tool.is_offline()) {
        for (name, value) in large(tool) {
            let scratch = Scratch::new(&format!("large-{}", tool.stem));
            let around = Surroundings {
                workspace: scratch.path(),
                lab: None,
            };
            let mut arguments = test_arguments(tool);
            arguments[&name] = value;
            let outcome = runner.call(&tool.usable, &arguments, &around).await;
            if let Outcome::Failed { code, message } = outcome
                && code != "tool.threw"
            {
                found.push(format!("{}.{name}: {code} {message}", tool.stem));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Much, in the first param that takes text or a list: the one the tool works on.
fn large(tool: &Bundled) -> Vec<(String, Value)> {
    let params = tool.usable.document.params.iter();
    let mut params =
        params.filter(|param| matches!(param.kind, ParamType::String | ParamType::Array));
    let Some(param) = params.next() else {
        return Vec::new();
    };
    let values = if param.kind == ParamType::String {
        let words = "word 12 é, <b>&amp;</b>\n".repeat(5_000);
        vec![json!(words), json!("x".repeat(150_000))]
    } else {
        let rows = vec![json!({"name": "a", "age": 1}); 5_000];
        vec![json!(rows), json!(Vec::from_iter(0..20_000))]
    };
    let name = |value| (param.name.clone(), value);
    values.into_iter().map(name).collect()
}
