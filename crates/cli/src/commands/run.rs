//! `ringfence run`: makes one call through every gate.

use anyhow::{anyhow, bail};
use engine::call::{CallRequest, CallTarget, Progress};
use model::caller::{Caller, Origin};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::{CallError, Outcome};
use model::text;
use serde_json::Value;

use crate::arguments::RunArguments;
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{self, Format, Printer, Style};
use crate::wiring::consent;
use crate::wiring::{self, Subject};

pub(crate) fn run(arguments: &RunArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let raw_arguments = read_arguments(arguments.args.as_deref())?;
    let engine = wiring::engine_for_one_call(&arguments.common)?;
    let mut request = CallRequest::new(
        Caller::owner(),
        Origin::Cli,
        &arguments.target,
        raw_arguments,
    );
    if let Subject::File(path) = Subject::of(&engine, &arguments.target) {
        let usable = wiring::one_document(&engine, &path, arguments.tool.as_deref())?;
        let place = consent::place(&path, &usable)?;
        consent::settle(&engine, &usable, Some(&place), arguments.yes)?;
        request.trial.place = Some(place);
        request.target = CallTarget::Document(usable);
    } else if arguments.tool.is_some() {
        bail!("`--tool` names a document of a file; give the file");
    }
    request.progress = Some(Progress::new(printer::note));
    let runtime = wiring::runtime()?;
    let outcome = runtime.block_on(async {
        request.cancel = wiring::interruptible()?;
        anyhow::Ok(engine.call(request).await)
    });
    // A question that was answered elsewhere may still wait for a key here.
    console::settle();
    // A thread that reads the terminal may still wait for a key. The process
    // must not wait for it.
    runtime.shutdown_background();
    let outcome = outcome?;
    let outcome = outcome.get();
    match printer.format() {
        Format::Json => printer.json(&outcome.to_json()),
        Format::Human => show(outcome, printer),
    }
    Ok(match outcome.status {
        Status::Done => Exit::Done,
        Status::Cancelled => Exit::Interrupted,
        Status::Refused | Status::Failed | Status::Crashed => Exit::No,
    })
}

fn read_arguments(text: Option<&str>) -> anyhow::Result<Value> {
    let Some(text) = text else {
        return Ok(Value::Null);
    };
    // By our own parser: a key that is given twice would be read differently by rules and
    // by the tool.
    let (node, repeated) = model::document::json::parse(text)
        .map_err(|fault| anyhow!("`--args` is not JSON: {}", fault.message))?;
    match repeated.first() {
        Some(fault) => bail!("`--args`: {}", fault.message),
        None => Ok(node.to_value()),
    }
}

fn show(outcome: &Outcome, printer: &mut Printer) {
    for line in &outcome.console {
        printer.note(&format!("[{}] {}", line.level, text::one_line(&line.text)));
    }
    match (&outcome.error, &outcome.value) {
        (Some(error), _) => show_error(outcome.status, error, printer),
        (None, Some(Value::String(text))) => {
            text.lines()
                .for_each(|line| printer.line(&text::one_line(line)));
        }
        (None, value) => {
            // Control characters inside strings are escaped by JSON itself; the
            // invisible ones are not.
            let value = value.as_ref().unwrap_or(&Value::Null);
            format!("{value:#}")
                .lines()
                .for_each(|line| printer.line(&text::one_line(line)));
        }
    }
}

fn show_error(status: Status, error: &CallError, printer: &mut Printer) {
    let place = match error.place {
        Some((line, column)) => format!(" (line {line}, column {column} of the code)"),
        None => String::new(),
    };
    let head = format!("{}[{}]", status.word(), error.reason.code());
    let head = printer.styled(Style::Bad, &head);
    let message = text::one_line(&error.message);
    printer.note(&format!("{head}: {message}{place}"));
    if matches!(
        error.reason,
        Reason::SandboxLayerMissing | Reason::SandboxStart
    ) {
        printer.note("hint: `ringfence doctor` says which layer is missing, and what to do");
    }
}
