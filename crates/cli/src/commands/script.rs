//! `ringfence script`: code mode from a terminal.

use std::path::Path;

use anyhow::{anyhow, bail};
use engine::call::{CallRequest, Progress};
use engine::native::Native;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use model::text;
use serde_json::{Map, Value, json};

use crate::arguments::{Script, ScriptCheck, ScriptCommand, ScriptRun};
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{self, Format, Printer, Style};
use crate::source::{self, SourceText};
use crate::wiring;

pub(crate) fn run(script: &Script, printer: &mut Printer) -> anyhow::Result<Exit> {
    match &script.command {
        ScriptCommand::Check(arguments) => check(arguments, printer),
        ScriptCommand::Run(arguments) => execute(arguments, printer),
    }
}

fn check(arguments: &ScriptCheck, printer: &mut Printer) -> anyhow::Result<Exit> {
    let script = read(&arguments.file)?;
    let engine = wiring::engine_at(&arguments.home)?;
    let report = engine.check_script(&script, arguments.preset.map(|word| word.preset()));
    let is_valid = report.get("valid") == Some(&Value::Bool(true));
    match printer.format() {
        Format::Json => printer.json(&report),
        Format::Human => {
            show_issues(&report, &script, printer);
            if is_valid {
                let shown = arguments.file.display().to_string();
                printer.line(&format!("{}  can run", text::one_line(&shown)));
            }
        }
    }
    Ok(if is_valid { Exit::Done } else { Exit::No })
}

fn execute(arguments: &ScriptRun, printer: &mut Printer) -> anyhow::Result<Exit> {
    let script = read(&arguments.file)?;
    let mut given = Map::from_iter([("script".to_owned(), Value::from(script.as_str()))]);
    if let Some(context) = &arguments.context {
        given.insert("context".to_owned(), context_of(context)?);
    }
    if !arguments.allow.is_empty() {
        given.insert("allowedTools".to_owned(), json!(arguments.allow));
    }
    let engine = wiring::engine(&arguments.common)?;
    let name = Native::Execute.name();
    let mut request = CallRequest::new(Caller::owner(), Origin::Cli, name, Value::Object(given));
    request.preset = arguments.preset.map(|word| word.preset());
    // Progress for a waiting person; the script's logs hold the same lines.
    if printer::is_watched() {
        request.progress = Some(Progress::new(printer::note));
    }
    let runtime = wiring::runtime()?;
    let outcome = runtime.block_on(async {
        request.cancel = wiring::interruptible()?;
        anyhow::Ok(engine.call(request).await)
    });
    console::settle();
    runtime.shutdown_background();
    let outcome = outcome?;
    let outcome = outcome.get();
    match (printer.format(), &outcome.value) {
        (Format::Json, Some(answer)) => printer.json(answer),
        (Format::Json, None) => printer.json(&outcome.to_json()),
        (Format::Human, Some(answer)) => show(answer, &script, printer),
        (Format::Human, None) => show_refusal(outcome, printer),
    }
    Ok(match outcome.status {
        Status::Done => Exit::Done,
        Status::Cancelled => Exit::Interrupted,
        Status::Refused | Status::Failed | Status::Crashed => Exit::No,
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    match source::documents(path)? {
        SourceText::Text(text) => Ok(text),
        SourceText::Unusable(message) => bail!("`{}`: {message}", path.display()),
    }
}

fn context_of(text: &str) -> anyhow::Result<Value> {
    let (node, repeated) = model::document::json::parse(text)
        .map_err(|fault| anyhow!("`--context` is not JSON: {}", fault.message))?;
    if let Some(fault) = repeated.first() {
        bail!("`--context`: {}", fault.message);
    }
    let value = node.to_value();
    if !value.is_object() {
        bail!("`--context` is not a JSON object");
    }
    Ok(value)
}

/// Prints the result of a script to standard output, its logs and warnings to standard
/// error.
fn show(answer: &Value, script: &str, printer: &mut Printer) {
    for (key, head) in [("logs", ""), ("warnings", "warning: ")] {
        for line in lines(answer, key) {
            printer.note(&format!("{head}{}", text::one_line(line)));
        }
    }
    let Some(error) = answer.get("error") else {
        return show_value(answer.get("result").unwrap_or(&Value::Null), printer);
    };
    if error.get("issues").is_some() {
        return show_issues(error, script, printer);
    }
    let word = |value: &Value, key: &str| {
        let found = value.get(key).and_then(Value::as_str);
        text::one_line(found.unwrap_or(""))
    };
    let code = match word(error, "code") {
        none if none.is_empty() => String::new(),
        code => format!("[{code}]"),
    };
    let head = format!("{}{code}", word(answer, "status"));
    let head = printer.styled(Style::Bad, &head);
    let tool = match word(error, "toolName") {
        none if none.is_empty() => String::new(),
        tool => format!(" {tool}:"),
    };
    printer.note(&format!("{head}:{tool} {}", word(error, "message")));
    if let Some(location) = error.get("location") {
        show_place(location, script, printer);
    }
}

fn show_value(value: &Value, printer: &mut Printer) {
    let text = match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    text.lines()
        .for_each(|line| printer.line(&text::one_line(line)));
}

fn show_issues(report: &Value, script: &str, printer: &mut Printer) {
    let issues = report.get("issues").and_then(Value::as_array);
    for issue in issues.into_iter().flatten() {
        let word = |key: &str| issue.get(key).and_then(Value::as_str).unwrap_or("");
        let style = match word("severity") {
            "error" => Style::Bad,
            _ => Style::Caution,
        };
        let head = printer.styled(style, &format!("{}[{}]", word("severity"), word("code")));
        printer.note(&format!("{head}: {}", text::one_line(word("message"))));
        show_place(issue, script, printer);
    }
}

/// The author's own line, with a caret under the place.
fn show_place(place: &Value, script: &str, printer: &mut Printer) {
    let number = |key: &str| {
        let found = place.get(key).and_then(Value::as_u64).unwrap_or(0);
        usize::try_from(found).unwrap_or(0)
    };
    let (line, column) = (number("line"), number("column"));
    let Some(source) = script.lines().nth(line.saturating_sub(1)) else {
        return;
    };
    let source = text::elided(source, SHOWN_CHARS_MAX);
    printer.note(&format!("  --> {line}:{column}"));
    printer.note(&format!("   | {}", text::one_line(&source)));
    if column <= SHOWN_CHARS_MAX {
        printer.note(&format!("   | {}^", " ".repeat(column.saturating_sub(1))));
    }
}

fn show_refusal(outcome: &Outcome, printer: &mut Printer) {
    let Some(error) = &outcome.error else {
        return;
    };
    let head = format!("{}[{}]", outcome.status.word(), error.reason.code());
    let head = printer.styled(Style::Bad, &head);
    printer.note(&format!("{head}: {}", text::one_line(&error.message)));
}

fn lines<'a>(answer: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    let found = answer.get(key).and_then(Value::as_array);
    found.into_iter().flatten().filter_map(Value::as_str)
}

/// Characters of a line that are shown.
const SHOWN_CHARS_MAX: usize = 96;
