//! `ringfence list` and `ringfence show`: the tools and their state.

use std::sync::Arc;

use engine::Engine;
use engine::registry::{SetAside, Snapshot, Tool, ToolBody, ToolState};
use model::document::environment::Environment;
use model::document::finding::{Finding, any_error};
use model::document::lifecycle::LifecycleState;
use model::document::params;
use model::document::safety::Source;
use model::policy::risk::Level;
use model::text::{elided, one_line, shell_argument, shell_word};
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::arguments::{List, Named, StateWord};
use crate::output::badge;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

/// Columns a name may take in the table.
const NAME_COLUMNS_MAX: usize = 40;

pub(crate) fn run(arguments: &List, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    let environment = engine.environment()?;
    let now = engine.registry().current();
    // The process ends after this; freeing a thousand documents would only cost time.
    std::mem::forget(Arc::clone(&now));
    let wanted = |tool: &&Tool| is_wanted(arguments, &now, tool, &environment);
    let tools: Vec<_> = now.tools().filter(wanted).collect();
    if printer.format() == Format::Json {
        let mut entries = Vec::with_capacity(tools.len());
        for tool in tools {
            entries.push(Listed::Tool(entry(&now, tool, &environment)));
        }
        if is_unfiltered(arguments) {
            let aside = |aside| Listed::Aside(aside_entry(aside));
            entries.extend(now.set_aside.iter().map(aside));
        }
        printer.json(&entries);
        return Ok(Exit::Done);
    }
    let width = |tool: &&Tool| tool.usable.document.name.width().min(NAME_COLUMNS_MAX);
    let columns = tools.iter().map(width).max().unwrap_or(0);
    for tool in &tools {
        show_line(&now, tool, &environment, columns, printer);
    }
    if is_unfiltered(arguments) {
        for aside in &now.set_aside {
            show_aside(aside, printer);
        }
    }
    if tools.is_empty() && now.set_aside.is_empty() {
        printer.note("no tools; `ringfence new NAME` creates one to start from");
    }
    Ok(Exit::Done)
}

fn is_unfiltered(arguments: &List) -> bool {
    arguments.state.is_none()
        && arguments.category.is_none()
        && arguments.tag.is_none()
        && !arguments.exposed
}

fn is_wanted(arguments: &List, now: &Snapshot, tool: &Tool, environment: &Environment) -> bool {
    let document = &tool.usable.document;
    let state = arguments.state.map(|word| match word {
        StateWord::Active => LifecycleState::Active,
        StateWord::Draft => LifecycleState::Draft,
        StateWord::MissingRequirements => LifecycleState::MissingRequirements,
        StateWord::TestFailed => LifecycleState::TestFailed,
    });
    let same = |wanted: &String, word: &str| wanted.eq_ignore_ascii_case(word);
    let category = document.category.as_deref().unwrap_or("");
    (!arguments.own || tool.source == Source::User)
        && arguments
            .category
            .as_ref()
            .is_none_or(|wanted| same(wanted, category))
        && arguments
            .tag
            .as_ref()
            .is_none_or(|wanted| document.tags.iter().any(|tag| same(wanted, tag)))
        && state.is_none_or(|state| tool.lifecycle(environment).0 == state)
        && (!arguments.exposed || is_offered(now, tool, environment))
}

/// Whether a caller sees it: published, complete and exposed.
fn is_offered(now: &Snapshot, tool: &Tool, environment: &Environment) -> bool {
    tool.lifecycle(environment).0 == LifecycleState::Active
        && now.exposed(&tool.usable.document, tool.source).is_yes()
}

fn source_word(source: Source) -> &'static str {
    match source {
        Source::Builtin => "bundled",
        Source::User => "own",
        Source::Server => "server",
    }
}

/// A tool as `list --json` shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: &'a str,
    tool_id: &'a str,
    digest: String,
    state: LifecycleState,
    missing: Vec<String>,
    not_granted: Vec<String>,
    risk: Badge<'a>,
    exposed: bool,
    exposure: String,
    source: &'static str,
    file: Option<String>,
    category: Option<&'a str>,
    tags: &'a [String],
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct Badge<'a> {
    level: Level,
    reasons: Vec<&'a str>,
}

/// A file that is not a tool.
#[derive(Serialize)]
struct Aside<'a> {
    name: Option<&'a str>,
    file: &'a str,
    state: Option<LifecycleState>,
    exposed: bool,
    source: &'static str,
    findings: &'a [Finding],
}

/// What `list --json` shows.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed<'a> {
    Tool(Entry<'a>),
    Aside(Aside<'a>),
}

fn entry<'a>(now: &'a Snapshot, tool: &'a Tool, environment: &Environment) -> Entry<'a> {
    let (state, missing) = tool.lifecycle(environment);
    let document = &tool.usable.document;
    let judged = &tool.usable.facts;
    let exposed = now.exposed(document, tool.source);
    let signals = judged.risk.signals.iter();
    Entry {
        name: &document.name,
        tool_id: &judged.tool_id,
        digest: judged.digest.to_string(),
        state,
        missing,
        not_granted: tool.ungranted(),
        risk: Badge {
            level: judged.risk.level,
            reasons: signals.map(|signal| signal.words.as_str()).collect(),
        },
        exposed: state == LifecycleState::Active && exposed.is_yes(),
        exposure: exposed.why().to_owned(),
        source: source_word(tool.source),
        file: tool.file.as_ref().map(|stem| format!("{stem}.json")),
        category: document.category.as_deref(),
        tags: &document.tags,
        findings: &tool.findings,
    }
}

fn aside_entry(aside: &SetAside) -> Aside<'_> {
    Aside {
        name: aside.name.as_deref(),
        file: &aside.file,
        state: None,
        exposed: false,
        source: "own",
        findings: &aside.findings,
    }
}

fn show_line(
    now: &Snapshot,
    tool: &Tool,
    environment: &Environment,
    columns: usize,
    printer: &mut Printer,
) {
    let document = &tool.usable.document;
    let (state, missing) = tool.lifecycle(environment);
    let name = elided(&document.name, NAME_COLUMNS_MAX);
    let gap = " ".repeat(columns.saturating_sub(name.width()));
    let name = printer.styled(Style::Bold, &name);
    let badge = badge::level(printer, tool.usable.facts.risk.level);
    let exposed = now.exposed(document, tool.source);
    let offer = if is_offered(now, tool, environment) {
        "exposed"
    } else {
        "-"
    };
    let mut notes = Vec::new();
    if !missing.is_empty() {
        notes.push(format!("not set: {}", missing.join(", ")));
    }
    let ungranted = tool.ungranted();
    if !ungranted.is_empty() {
        notes.push(format!("not granted: {}", ungranted.join(", ")));
    }
    if let ToolState::TestFailed(why) = &tool.state {
        notes.push(elided(&one_line(why), 80));
    }
    if state == LifecycleState::Active && !exposed.is_yes() {
        notes.push(exposed.why().to_owned());
    }
    let notes = printer.styled(Style::Dim, &notes.join("; "));
    let category = document.category.as_deref().unwrap_or("-");
    let category = elided(category, 14);
    let state = badge::state(printer, state);
    printer.line(&format!(
        "{name}{gap}  {badge}  {state}  {offer}  {category}  {} {notes}",
        source_word(tool.source)
    ));
}

fn show_aside(aside: &SetAside, printer: &mut Printer) {
    let errors = aside.findings.iter();
    let first = errors
        .filter(|finding| any_error(std::slice::from_ref(*finding)))
        .map(|finding| one_line(&finding.message))
        .next()
        .unwrap_or_default();
    let head = printer.styled(Style::Bad, "set aside");
    printer.line(&format!("{head}  {}: {first}", one_line(&aside.file)));
}

/// Runs `show`.
pub(crate) fn show(arguments: &Named, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    let tool = engine.tool(&arguments.name)?;
    let environment = engine.environment()?;
    let now = engine.registry().current();
    if printer.format() == Format::Json {
        printer.json(&whole(&engine, &now, &tool, &environment)?);
        return Ok(Exit::Done);
    }
    let document = &tool.usable.document;
    show_line(&now, &tool, &environment, 0, printer);
    for signal in &tool.usable.facts.risk.signals {
        printer.line(&format!("  {}  {}", signal.level.badge(), signal.words));
    }
    for line in document.description.lines() {
        printer.line(&format!("  {}", one_line(line)));
    }
    let schema = tool.body.input_schema(document);
    for param in &document.params {
        let kind = format!("{:?}", param.kind).to_lowercase();
        let need = if param.required { "" } else { ", optional" };
        let about = elided(&one_line(&param.description), 100);
        let name = one_line(&param.name);
        let choices = choices(&schema, &param.name);
        printer.line(&format!("  {name}: {kind}{need}  {about}{choices}"));
    }
    let variables = tool.granted.variables(document, &environment);
    for variable in &variables {
        printer.line(&format!("  variable  {}", variable.words()));
    }
    if !tool.ungranted().is_empty() {
        let names = tool.ungranted();
        let names: Vec<_> = names.iter().map(|name| shell_word(name)).collect();
        let name = shell_argument(&document.name);
        let grant = format!("ringfence secrets grant {name} {}", names.join(" "));
        printer.line(&format!("  fix       {grant}"));
    }
    printer.line(&format!("  approval  {:?}", document.approval()).to_lowercase());
    printer.line(&format!("  digest    {}", tool.usable.facts.digest));
    let exposed = now.exposed(document, tool.source);
    printer.line(&format!("  exposure  {}", exposed.why()));
    if let Some(stem) = &tool.file {
        let path = engine.registry().folder().path(stem);
        printer.line(&format!("  file      {}", path.display()));
    }
    Ok(Exit::Done)
}

/// The values a param takes, where its schema lists them.
fn choices(schema: &Value, param: &str) -> String {
    let property = schema.get("properties").and_then(|all| all.get(param));
    let values = property.and_then(|one| one.get("enum"));
    let Some(values) = values.and_then(Value::as_array) else {
        return String::new();
    };
    let words = values.iter().map(|value| match value {
        Value::String(word) => one_line(word),
        other => other.to_string(),
    });
    let words: Vec<_> = words.collect();
    format!(": {}", elided(&words.join(", "), 200))
}

/// Everything about one tool.
fn whole(
    engine: &Engine,
    now: &Snapshot,
    tool: &Tool,
    environment: &Environment,
) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(entry(now, tool, environment))?;
    let document = &tool.usable.document;
    let digest = tool.usable.facts.digest.to_string();
    let pass = engine.store().publications().pass(&digest)?;
    let more = json!({
        "description": document.description,
        "inputSchema": match &tool.body {
            ToolBody::Code => params::input_schema(&document.params),
            body => body.input_schema(document),
        },
        "toolSafety": tool.usable.safety(),
        "humanInTheLoop": document.human_in_the_loop,
        "variables": tool.granted.variables(document, environment),
        "lastPass": pass.map(|pass| json!({
            "ok": pass.ok, "atMs": pass.at_ms, "elapsedMs": pass.elapsed_ms, "error": pass.error,
        })),
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    Ok(value)
}
