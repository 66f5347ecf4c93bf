//! One call: the document judged as `ringfence run` judges it, its code in a
//! sandbox, its powers in the world of the case.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::powers::Powers;
use model::config::Config;
use model::document::json::Lines;
use model::document::safety::Source;
use model::policy::assessment::{self, UsableDocument};
use model::policy::grant::Grant;
use model::record::mask::Masker;
use model::{Environment, document, document::params, document::placeholder};
use sandbox::job::{Ended, Job, JobLimits};
use sandbox::pool::{FinishedRun, Pool};
use serde_json::{Map, Value, json};

use crate::lab::Seen;
use crate::world::{CANARY, World, strings};

/// What one case came to.
pub(crate) struct Called {
    /// As `expect.txt` has it.
    pub(crate) shown: String,
    /// The rows it shows.
    pub(crate) rows: Vec<String>,
    /// Attempts that the result lists, and how many of them ended in a reason.
    pub(crate) tried: usize,
    pub(crate) refused: usize,
}

/// Runs one case.
pub(crate) async fn called(pool: &Pool, case: &Path) -> Called {
    let world = World::new(case).await;
    let usable = judged(case, &world);
    let environment = environment(&world);
    let (job, powers) = prepared(&usable, &world, &environment);
    let run = pool.run("case", job, &powers).await.unwrap();
    world.check_wire(case);
    let (events, dropped) = powers.take_events();
    assert_eq!(dropped, 0, "{}", case.display());
    let result = match &run.report.ended {
        Ended::Value(text) => serde_json::from_str(text).unwrap(),
        _ => Value::Null,
    };
    let shown = shown(&world, &run, &result, &events);
    let mut rows = strings(&world.table, "rows");
    rows.extend(
        result
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys().cloned()),
    );
    let attempts = result.as_object().into_iter().flatten();
    let attempts: Vec<_> = attempts.map(|(_, said)| said).collect();
    Called {
        shown,
        rows,
        tried: attempts.len(),
        refused: attempts.iter().filter(|said| is_refusal(said)).count(),
    }
}

/// `KIND reason` or `gone`, alone or first in a list; a list of only those.
fn is_refusal(said: &Value) -> bool {
    match said {
        Value::String(text) => ["SECURITY ", "INVALID_INPUT ", "HELPER_RUNTIME ", "gone"]
            .iter()
            .any(|word| text.starts_with(word)),
        Value::Array(all) => !all.is_empty() && all.iter().all(is_refusal),
        Value::Object(all) => !all.is_empty() && all.values().all(is_refusal),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn environment(world: &World) -> Environment {
    let secrets = world.table.get("secrets").and_then(toml::Value::as_table);
    let secrets = secrets.into_iter().flatten();
    let mut environment: Environment = secrets
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    if environment.get("CASE_TOKEN").is_none() {
        environment.set("CASE_TOKEN", "sesame-open-1234");
    }
    environment
}

fn judged(case: &Path, world: &World) -> UsableDocument {
    let text = match fs::read_to_string(case.join("tool.json")) {
        Ok(text) => text,
        Err(_) => written(case, world),
    };
    let lines = Lines::new(&text);
    let item = document::parse(&text).items.pop().unwrap();
    let baseline = Config::closed().effective_baseline().unwrap();
    let assessed = assessment::assess(item, &lines, &baseline, &environment(world), Source::User);
    let findings = assessed.findings;
    assessed
        .usable
        .unwrap_or_else(|| panic!("{}: {findings:#?}", case.display()))
}

/// A document around `code.js`.
fn written(case: &Path, world: &World) -> String {
    let names = arguments(world);
    let param = |name: &String| json!({"name": name, "type": "STRING", "required": false});
    let overrides = world.table.get("overrides").map(|table| json!(table));
    let code = fs::read_to_string(case.join("code.js")).unwrap();
    json!({
        "name": "case",
        "code": format!("{PREFACE}{code}"),
        "codeType": "Javascript",
        "params": names.keys().map(param).collect::<Vec<_>>(),
        "staticVariables": [{"token": "${CASE_TOKEN}"}],
        "sandboxOverrides": overrides,
    })
    .to_string()
    .replace("{home}", world.folder.to_str().unwrap())
}

/// What cases may use to say how something ended: `refusal(f)` is `KIND reason` of
/// what `f` throws, and `gave: …` if it does not.
const PREFACE: &str = "const refusal = async (attempt) => { try { const value = await attempt(); \
    return `gave: ${JSON.stringify(value)}`; } catch (error) { \
    return error.kind ? `${error.kind} ${error.reason}` : `${error.name}: ${error.message}`; } };\n";

fn arguments(world: &World) -> Map<String, Value> {
    match world.table.get("arguments") {
        Some(table) => json!(table).as_object().unwrap().clone(),
        None => Map::new(),
    }
}

fn prepared(usable: &UsableDocument, world: &World, environment: &Environment) -> (Job, Powers) {
    let document = &usable.document;
    let checked = params::check(&document.params, &Value::Object(arguments(world)));
    let mut globals = checked.unwrap().into_values();
    let mut secrets = Vec::new();
    for variable in &document.static_variables {
        let resolved = placeholder::resolve(&variable.template, environment).unwrap();
        globals.insert(variable.name.clone(), Value::String(resolved.text));
        secrets.extend(resolved.secrets);
    }
    let masker = Arc::new(Masker::new(secrets.iter().map(String::as_str)).unwrap());
    let limits = JobLimits::for_policy(&usable.facts.policy);
    let deadline = Instant::now() + Duration::from_secs(30);
    let grant = Grant::from_policy(&usable.facts.policy);
    let powers = Powers::from_grant(&grant, &world.settings, masker, deadline).unwrap();
    let declared = document.params.iter().map(|param| param.name.clone());
    let job = Job {
        body: document.code.clone(),
        globals: Value::Object(globals).to_string(),
        declared: declared.collect(),
        powers: powers.faces(),
        limits,
        seed: 7,
        // 2026-03-01T12:00:00Z, so that a case can say what time it is.
        now_ms: 1_772_366_400_000,
    };
    (job, powers)
}

fn shown(world: &World, run: &FinishedRun, result: &Value, events: &[Value]) -> String {
    let mut shown = match &run.report.ended {
        Ended::Value(_) => format!("{result:#}\n"),
        Ended::Threw(thrown) => format!("threw {}: {}\n", thrown.name, thrown.message),
        other => format!("{other:?}\n"),
    };
    for line in &run.console {
        shown.push_str(&format!("[{}] {}\n", line.level.word(), line.text));
    }
    let shows = |what: &str| strings(&world.table, "shows").iter().any(|own| own == what);
    if shows("asked") {
        section(&mut shown, "asked", requests(world));
    }
    if shows("looked up") {
        let asked = world.dns.asked.lock().unwrap().clone();
        let title = if asked.is_empty() {
            "looked up nothing"
        } else {
            "looked up"
        };
        shown.push_str(&format!("--- {title}\n"));
        counted(asked)
            .iter()
            .for_each(|name| shown.push_str(&format!("{name}\n")));
    }
    section(&mut shown, "called", counted(world.wire.called()));
    match shows("recorded") {
        true => section(&mut shown, "recorded", events.iter().map(whole)),
        false => section(&mut shown, "recorded", counted(events.iter().map(short))),
    }
    let shown = shown.replace(world.folder.to_str().unwrap(), "{home}");
    assert!(!shown.contains(CANARY), "{shown}");
    shown
}

fn section(shown: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let lines: Vec<_> = lines.into_iter().collect();
    if !lines.is_empty() {
        shown.push_str(&format!("--- {title}\n{}\n", lines.join("\n")));
    }
}

/// What reached the lab. The headers are those a tool can choose, or that tell
/// hosts apart.
fn requests(world: &World) -> Vec<String> {
    let told = |seen: &Seen| {
        let mut line = seen.line.clone();
        for (name, value) in &seen.headers {
            if !["accept", "accept-encoding", "user-agent"].contains(&name.as_str()) {
                line.push_str(&format!(" | {name}: {value}"));
            }
        }
        match String::from_utf8_lossy(&seen.body) {
            body if body.is_empty() => line,
            body => format!("{line} | {body}"),
        }
    };
    // A greeting in the wrong protocol is bytes that differ each time.
    let is_text = |seen: &&Seen| seen.line.contains(" HTTP/");
    let plain = world.plain.seen();
    let secure = world.secure.seen();
    let plain = plain.iter().filter(is_text).map(told);
    plain.chain(secure.iter().map(told)).collect()
}

/// Each line once, with how often it came when that is more than once.
fn counted<T: ToString>(lines: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for line in lines {
        let line = line.to_string();
        match counts.iter_mut().find(|(own, _)| *own == line) {
            Some((_, count)) => *count += 1,
            None => counts.push((line, 1)),
        }
    }
    let shown = |(line, count): (String, usize)| match count {
        1 => line,
        _ => format!("{line} x{count}"),
    };
    counts.into_iter().map(shown).collect()
}

/// An event without its times, which differ each time.
fn whole(event: &Value) -> String {
    let mut event = event.as_object().unwrap().clone();
    assert!(event.contains_key("kind"), "{event:?}");
    for time in ["durationMs", "atUs", "us"] {
        event.remove(time);
    }
    Value::Object(event).to_string()
}

/// What happened, to whom, and how it ended.
fn short(event: &Value) -> String {
    let event = event.as_object().unwrap();
    let word = |key: &str| match event.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        Some(other) => Some(other.to_string()),
    };
    let keys = [
        "kind",
        "method",
        "function",
        "operation",
        "host",
        "path",
        "target",
    ];
    let mut words: Vec<_> = keys.iter().filter_map(|key| word(key)).collect();
    // How far it got before it failed may depend on who was faster.
    words.extend(match word("refusal") {
        Some(reason) => Some(format!("refused: {reason}")),
        None => word("status"),
    });
    words.join(" ")
}
