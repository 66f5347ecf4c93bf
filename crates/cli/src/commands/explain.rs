//! `ringfence explain`: every gate in order, for a recorded call or one that is not
//! made.

use anyhow::{Context as _, bail};
use engine::call::CallRequest;
use model::caller::Caller;
use model::record::audit::{Closing, GateRecord, Status};
use model::record::outcome::CallError;
use model::text::{one_line, shell_word};
use model::word::Word as _;
use serde_json::{Value, json};
use store::{AuditEntry, FoundEntry, Store, StoreSettings};

use crate::arguments::{DoorWord, Explain};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

mod step;

use step::Steps;

/// A call to explain, recorded or only supposed.
struct Shown<'a> {
    call_id: Option<&'a str>,
    tool: &'a str,
    caller: &'a str,
    door: &'static str,
    /// How it ended; nothing if it was not made.
    status: Option<Status>,
    verdict: &'static str,
    error: Option<Value>,
    closing: Option<&'a Closing>,
    /// What it did after its gates.
    steps: Steps,
}

pub(crate) fn run(explain: &Explain, printer: &mut Printer) -> anyhow::Result<Exit> {
    match (&explain.id, &explain.tool) {
        // A tool where the id of a call stands: easily done, and easily said.
        (Some(id), _) if explain.describes_a_call() => {
            let id = shell_word(id);
            bail!(
                "a recorded call has its own caller, arguments and door; a call that is not made is `--tool {id}`"
            )
        }
        (Some(id), _) => recorded(id, explain, printer),
        (None, Some(tool)) => imagined(tool, explain, printer),
        (None, None) => bail!("name a call, or a tool with `--tool TOOL`"),
    }
}

fn recorded(id: &str, explain: &Explain, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&explain.common.home)?;
    let store = Store::open(&home, StoreSettings::standard())?;
    let entry = match store.audit().find(id)? {
        FoundEntry::One(entry) => entry,
        FoundEntry::None => {
            let (id, word) = (one_line(id), shell_word(id));
            bail!("no call has the id `{id}`; a call that is not made is `--tool {word}`")
        }
        FoundEntry::Several(ids) => bail!("several calls have this prefix: {}", ids.join(", ")),
        FoundEntry::Notice(_) => {
            bail!("that is a notice; `ringfence audit show` shows it")
        }
    };
    let steps = Steps::of(&store, &entry)?;
    let AuditEntry {
        opening, closing, ..
    } = &*entry;
    let closing = closing.as_ref();
    let error = closing.and_then(|closing| closing.error.as_ref());
    let shown = Shown {
        call_id: Some(&opening.call_id),
        tool: &opening.tool,
        caller: &opening.caller,
        door: opening.origin.word(),
        status: closing.map(|closing| closing.status),
        verdict: verdict(closing),
        error: error.map(|error| json!({"code": error.code, "message": error.message})),
        closing,
        steps,
    };
    Ok(show(&shown, printer))
}

fn imagined(tool: &str, explain: &Explain, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&explain.common)?;
    let arguments = match &explain.args {
        None => json!({}),
        Some(text) => serde_json::from_str(text).context("`--args` is not JSON")?,
    };
    let caller = match (Caller::owner(), &explain.caller) {
        (owner, None) => owner,
        (owner, Some(name)) if owner.name == *name => owner,
        (_, Some(name)) => Caller::named(name),
    };
    let name = caller.name.clone();
    let door = explain.door.unwrap_or(DoorWord::Mcp).origin();
    let request = CallRequest::new(caller, door, tool, arguments);
    let explained = engine.explain(&request);
    let shown = Shown {
        call_id: None,
        tool,
        caller: &name,
        door: door.word(),
        status: None,
        verdict: explained.effect.word(),
        error: explained.told.as_ref().map(CallError::to_json),
        closing: Some(&explained.closing),
        steps: Steps::default(),
    };
    Ok(show(&shown, printer))
}

/// The decision of the gates of a recorded call.
fn verdict(closing: Option<&Closing>) -> &'static str {
    let gates = closing.map_or(&[][..], |closing| &closing.gates);
    let said = |word: &str| gates.iter().any(|gate| gate.verdict == word);
    match (gates.is_empty(), said("stop"), said("ask")) {
        (true, _, _) => "none",
        (false, true, _) => "deny",
        (false, false, true) => "ask",
        (false, false, false) => "allow",
    }
}

fn show(shown: &Shown<'_>, printer: &mut Printer) -> Exit {
    let exit = if shown.verdict == "deny" {
        Exit::No
    } else {
        Exit::Done
    };
    let gates = shown.closing.map_or(&[][..], |closing| &closing.gates);
    let risk = shown.closing.and_then(|closing| closing.tool.as_ref());
    let risk = risk.map(|tool| tool.risk.as_str());
    let shadow = shown.closing.and_then(|closing| closing.shadow.as_ref());
    if printer.format() == Format::Json {
        printer.json(&json!({
            "callId": shown.call_id,
            "tool": shown.tool,
            "caller": shown.caller,
            "origin": shown.door,
            "status": shown.status.map(Status::word),
            "verdict": shown.verdict,
            "risk": risk,
            "error": shown.error,
            "gates": gates.iter().map(gate_json).collect::<Vec<_>>(),
            "shadow": shadow,
            "steps": shown.steps.json(),
        }));
        return exit;
    }
    let word = printer.styled(style(shown.verdict), shown.verdict);
    let ended = match (shown.call_id, shown.status) {
        (None, _) => "not made".to_owned(),
        (Some(id), Some(status)) => format!("{id}, {}", status.word()),
        (Some(id), None) => format!("{id}, under way"),
    };
    printer.line(&format!(
        "{word}  {}  by {} through {}  {}  ({ended})",
        one_line(shown.tool),
        one_line(shown.caller),
        shown.door,
        risk.unwrap_or("--"),
    ));
    gates.iter().for_each(|gate| show_gate(gate, printer));
    for (word, line) in shown.steps.lines() {
        let word = printer.styled(Style::Dim, &format!("  {word:<13}"));
        printer.line(&format!("{word} {line}"));
    }
    if let Some(shadow) = shadow {
        let rule = shadow
            .rule
            .as_ref()
            .map(|rule| format!(" by rule `{rule}`"));
        printer.line(&format!(
            "  {:<13} `{}` would {}{} where the live rules {}: {}",
            "candidate",
            one_line(&shadow.candidate),
            shadow.verdict,
            rule.unwrap_or_default(),
            shadow.live,
            one_line(&shadow.reason),
        ));
    }
    if let Some(error) = &shown.error {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or("");
        let name = printer.styled(Style::Dim, &format!("  {:<13}", "is told"));
        printer.line(&format!(
            "{name} {} [{}]",
            one_line(text("message")),
            text("code")
        ));
    }
    exit
}

fn style(verdict: &str) -> Style {
    match verdict {
        "allow" | "pass" => Style::Good,
        "deny" | "stop" => Style::Bad,
        _ => Style::Caution,
    }
}

fn gate_json(gate: &GateRecord) -> Value {
    json!({
        "gate": gate.gate, "verdict": gate.verdict, "reason": gate.reason,
        "rule": gate.rule, "note": gate.note,
    })
}

fn show_gate(gate: &GateRecord, printer: &mut Printer) {
    let verdict = printer.styled(style(&gate.verdict), &format!("{:<5}", gate.verdict));
    let reason = gate.reason.as_ref().map(|reason| format!("[{reason}] "));
    printer.line(&format!(
        "  {:<13} {verdict} {}{}",
        gate.gate,
        reason.unwrap_or_default(),
        one_line(gate.note.as_deref().unwrap_or(""))
    ));
}
