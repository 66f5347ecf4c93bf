//! Honest scripts pass, and what they are rewritten to means what they meant.

use std::fs;

use rquickjs::{CatchResultExt as _, Context, Promise, Runtime};
use serde_json::Value;

use crate::case::{Case, cases, folder};

/// A runtime of a few lines, for the tools of `world.js`.
const RUNTIME: &str = r#"
const __tools = WORLD;
const __safe_callTool = async (name, args = {}, options = {}) => {
  if (options.throwOnError === false) {
    try { return { success: true, data: await __safe_callTool(name, args) }; }
    catch (error) { return { success: false, error: { message: error.message } }; }
  }
  if (!(name in __tools)) throw new Error('no such tool: ' + name);
  return JSON.parse(JSON.stringify(__tools[name](args) ?? null));
};
const __safe_getTool = (name) => (name in __tools ? { name } : undefined);
const __safe_parallel = (items, fn) => Promise.all(items.map(fn));
const __safe_mcpLog = () => {}, __safe_mcpNotify = () => {};
const __safe_codecallContext = Object.freeze({ tenantId: 'acme' });
const __safe_console = { log() {}, warn() {}, error() {}, info() {}, debug() {} };
"#;

fn prelude() -> String {
    let world = fs::read_to_string(folder("guard/world.js")).unwrap();
    // Comments end at their line, and a prelude has none.
    let world: String = world
        .lines()
        .filter(|line| !line.starts_with("//"))
        .collect();
    let runtime: String = RUNTIME.lines().collect::<Vec<_>>().join(" ");
    runtime.replace("WORLD", &world) + &guard::runtime::prelude(5_000)
}

/// Runs the body of an async function; its result as JSON, or its error.
fn run(body: &str) -> Result<Value, String> {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|context| {
        let script = format!(
            "(async () => {{ const value = await (async () => {{ {body} }})(); return JSON.stringify(value ?? null); }})()"
        );
        let promise: Promise<'_> = context.eval(script).catch(&context).map_err(|error| error.to_string())?;
        let text: String = promise.finish().catch(&context).map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&text).unwrap())
    })
}

/// The script as its author wrote it, with the runtime's names given.
fn run_as_written(case: &Case, prelude: &str) -> Result<Value, String> {
    // Without the guard's return of the last expression such scripts end in nothing.
    let names = guard::runtime::RUNTIME_FUNCTIONS.iter();
    let given: String = names
        .map(|name| format!("const {name} = __safe_{name};"))
        .collect();
    run(&format!(
        "{prelude} {given} return await (async () => {{ {}\n }})();",
        case.source
    ))
}

#[test]
fn every_honest_script_passes() {
    let cases = cases("guard");
    assert!(cases.len() >= 150, "only {} scripts", cases.len());
    let mut refused = Vec::new();
    for case in &cases {
        let report = guard::check(&case.source, &case.preset());
        if !report.valid {
            refused.push(format!(
                "{} {}: {:?}",
                case.place, case.title, report.issues
            ));
        }
    }
    assert!(
        refused.is_empty(),
        "{} of {}:\n{}",
        refused.len(),
        cases.len(),
        refused.join("\n")
    );
}

#[test]
fn every_honest_script_runs_and_means_the_same() {
    let prelude = prelude();
    let mut wrong = Vec::new();
    for case in cases("guard") {
        let prepared = guard::prepare(&case.source, &case.preset()).unwrap();
        assert_eq!(
            guard::prepare(&case.source, &case.preset()).unwrap(),
            prepared,
            "twice is once"
        );
        let prepared = prepared.with_prelude(&prelude).unwrap();
        let guarded = run(&prepared.code);
        let expected = case
            .expected
            .as_deref()
            .map(|text| serde_json::from_str::<Value>(text).unwrap());
        let is_right = match (&guarded, &expected) {
            (Ok(value), Some(expected)) => value == expected,
            (Ok(_), None) => true,
            (Err(_), _) => false,
        };
        if !is_right {
            wrong.push(format!("{} {}: {guarded:?}", case.place, case.title));
        }
        if case.source.contains("return") {
            let written = run_as_written(&case, &prelude);
            if written != guarded {
                wrong.push(format!(
                    "{} {}: {written:?} became {guarded:?}",
                    case.place, case.title
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[track_caller]
fn throws(source: &str, expected: &str) {
    let preset = guard::Preset::agent_script(guard::PresetLevel::Permissive);
    let prepared = guard::prepare(source, &preset)
        .unwrap()
        .with_prelude(&prelude())
        .unwrap();
    let error = run(&prepared.code).expect_err(source);
    assert!(error.contains(expected), "{source}: {error}");
}

#[test]
fn one_budget_for_all_loops() {
    throws("for (let i = 0; i < 1e9; i++) {}", "more than 5000 times");
    // Nesting and starting again do not multiply it.
    throws(
        "for (let i = 0; i < 80; i++) for (let j = 0; j < 80; j++);",
        "more than 5000 times",
    );
    throws(
        "const f = () => { for (let i = 0; i < 100; i++); }; for (let i = 0; i < 60; i++) f();",
        "more than 5000 times",
    );
    // Catching it does not give it back.
    throws(
        "for (let i = 0; i < 1e9; i++) { try { for (let j = 0; j < 1e9; j++); } catch {} }",
        "more than 5000 times",
    );
}

#[test]
fn keys_only_known_at_run_time_are_guarded() {
    for key in [
        "Object.keys({ constructor: 1 })[0]",
        "['con', 'structor'].map((s) => s).join('')",
        "(await callTool('text:echo', { k: 'constructor' })).k",
        "(await callTool('text:echo', { k: 'cons' })).k + 'tructor'",
        "[...'rotcurtsnoc'].reduce((a, c) => c + a, '')",
        "JSON.parse('[\"__proto__\"]')[0]",
    ] {
        throws(
            &format!("const key = {key}; return [][key];"),
            "is not allowed",
        );
        throws(
            &format!("const key = {key}; const o = {{}}; o[key] = 1;"),
            "is not allowed",
        );
        throws(
            &format!("const key = {key}; return {{ [key]: 1 }};"),
            "is not allowed",
        );
    }
    // Text is made of a key once: what is looked at is what is used.
    throws(
        "let n = 0; const key = { toString: () => (n++ === 0 ? 'constructor' : 'a') }; return [][key];",
        "is not allowed",
    );
}

#[test]
fn an_error_leads_to_the_author_line() {
    let preset = guard::Preset::agent_script(guard::PresetLevel::Permissive);
    let source = "const o = {};\nfor (const k of ['a']) o[k] = 1;\n  missing.call(o[o.a]);\nconst missing = null;";
    let prepared = guard::prepare(source, &preset).unwrap();
    let line = prepared
        .code
        .lines()
        .position(|line| line.contains("missing.call"))
        .unwrap()
        + 1;
    let column = prepared
        .code
        .lines()
        .nth(line - 1)
        .unwrap()
        .find("missing")
        .unwrap()
        + 1;
    assert_eq!(prepared.map.author(line, column), (3, 3));
}
