//! The answer to the sender of a script: a status and what belongs to it. Secrets were masked by the calls they belong to; here values are cut to size
//! and messages lose what tells about the machine.

use guard::sanitise;
use guard::{IssueCode, Map, Prepared, Report as GuardReport, Severity};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::text;
use sandbox::job::{Breach, ConsoleLevel, Ended, GuestLine, RunReport, Thrown};
use serde_json::{Map as Object, Value, json};

use super::calls::ScriptCall;
use super::clock::Spent;
use super::host::ScriptHost;
use super::limit::ScriptLimits;
use super::{unawaited, words};
use crate::limit;
use crate::run::RunResult;

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ok,
    Syntax,
    IllegalAccess,
    Runtime,
    Tool,
    Timeout,
}

impl End {
    /// The word in the answer.
    fn word(self) -> &'static str {
        match self {
            End::Ok => "ok",
            End::Syntax => "syntax_error",
            End::IllegalAccess => "illegal_access",
            End::Runtime => "runtime_error",
            End::Tool => "tool_error",
            End::Timeout => "timeout",
        }
    }

    /// How the audit tells it apart. What the guard refuses did not run.
    fn status(self) -> (Status, Option<Reason>) {
        match self {
            End::Ok => (Status::Done, None),
            End::Syntax => (Status::Refused, Some(Reason::ScriptSyntax)),
            End::IllegalAccess => (Status::Refused, Some(Reason::ScriptIllegalAccess)),
            End::Runtime => (Status::Failed, Some(Reason::ScriptRuntime)),
            End::Tool => (Status::Failed, Some(Reason::ScriptTool)),
            End::Timeout => (Status::Failed, Some(Reason::ScriptTimeout)),
        }
    }
}

/// The guard refused it.
pub(crate) fn refused(report: &GuardReport, script: &str) -> RunResult {
    let is_error = |issue: &&guard::Issue| issue.severity == Severity::Error;
    let mut errors = report.issues.iter().filter(is_error);
    // First, because other findings in a text that does not parse are accidents.
    let parse = report
        .issues
        .iter()
        .find(|issue| issue.code == IssueCode::ParseError);
    let Some(issue) = parse.or_else(|| errors.next()) else {
        let error = json!({"message": "the script cannot be used"});
        return ended(End::IllegalAccess, error, None);
    };
    let end = match issue.code {
        IssueCode::ParseError => End::Syntax,
        // The guard has one code for a script that is empty and for one that is too long.
        IssueCode::ScanInputTooLarge if script.trim().is_empty() => End::Syntax,
        _ => End::IllegalAccess,
    };
    let issues: Vec<_> = report.issues.iter().map(issue_json).collect();
    let mut error = json!({
        "message": message(&issue.message),
        "location": {"line": issue.line, "column": issue.column},
        "issues": issues,
    });
    if end == End::IllegalAccess {
        let kind = match issue.code {
            IssueCode::UnknownGlobal => "DisallowedGlobal",
            IssueCode::DisallowedIdentifier
            | IssueCode::NoEval
            | IssueCode::NoGlobalAccess
            | IssueCode::NoConstructorAccess => "IllegalBuiltinAccess",
            _ => "RuleViolation",
        };
        put(&mut error, "kind", json!(kind));
        put(&mut error, "code", json!(issue.code.word()));
    }
    let place = place_of(issue.line, issue.column);
    // The answer has its location already. Only the record still needs the place.
    let mut ran = ended(end, error, None);
    if let Some(error) = &mut ran.error {
        error.place = place;
    }
    ran
}

/// One finding of the guard, as `script check` shows it too.
pub(crate) fn issue_json(issue: &guard::Issue) -> Value {
    json!({
        "code": issue.code.word(),
        "message": message(&issue.message),
        "line": issue.line,
        "column": issue.column,
        "severity": issue.severity,
    })
}

/// A budget of time is spent.
pub(crate) fn spent(spent: Spent, limits: &ScriptLimits) -> RunResult {
    let words = match spent {
        Spent::Script => format!("the script used up its {} ms", limits.script_ms_max),
        Spent::Tools => format!(
            "the tools the script called used up their {} ms",
            limits.tools_ms_max
        ),
    };
    ended(End::Timeout, json!({"message": words}), None)
}

/// It called too many tools.
pub(crate) fn too_many_calls(limits: &ScriptLimits) -> RunResult {
    let most = limits.tool_calls_max;
    let words = format!("the script called more than {most} tools");
    let error = json!({"source": "script", "message": words, "code": "TOOL_CALL_LIMIT"});
    ended(End::Runtime, error, None)
}

/// It ran to its end, whatever that was.
pub(crate) fn ran(
    report: RunReport,
    console: &[GuestLine],
    host: &ScriptHost<'_>,
    prepared: &Prepared,
    limits: &ScriptLimits,
) -> RunResult {
    let stopped_at = report
        .stopped_at
        .and_then(|at| Some((author(at.line, at.column, &prepared.map)?, at.in_regex)));
    let rejected = unawaited::rejected(&report.rejections, host, |thrown| {
        author(thrown.line, thrown.column, &prepared.map)
    });
    let mut ran = match report.ended {
        Ended::Value(text) => match serde_json::from_str(&text) {
            Ok(value) => value_of(value, limits),
            Err(_) => broken("the result is not JSON"),
        },
        Ended::Undefined => value_of(Value::Null, limits),
        Ended::Threw(thrown) => threw(thrown, host, &prepared.map, limits),
        Ended::Breached(Breach::Cpu | Breach::Wall) => out_of_time(limits, stopped_at),
        Ended::Breached(breach) => {
            let code = breach.reason().code();
            let words = breached(breach, limits, stopped_at);
            let error = json!({"source": "script", "message": words, "code": code});
            ended(End::Runtime, error, stopped_at.map(|(place, _)| place))
        }
        Ended::Cancelled => broken("the script was stopped"),
        // What broke may tell about the machine, so the sender is not told.
        Ended::Broken(_) => broken("the sandbox broke"),
    };
    ran.usage = Some(report.usage);
    let ran = with_warnings(ran, noted(&report.notes));
    with_logs(warn(ran, rejected), console)
}

/// What the sandbox has to say about the result. What is too deep for it was too deep for
/// the preset, which has said so already.
fn noted(notes: &str) -> Vec<String> {
    let told = |line: &&str| !line.ends_with("is nested too deep and was left out");
    notes.lines().filter(told).map(str::to_owned).collect()
}

/// The same with what its sender should know of a script that ended well.
pub(crate) fn with_warnings(ran: RunResult, more: Vec<String>) -> RunResult {
    match ran.status {
        Status::Done => warn(ran, more),
        _ => ran,
    }
}

/// The same with what its sender should know however it ended.
pub(crate) fn warn(mut ran: RunResult, more: Vec<String>) -> RunResult {
    let answer = ran.value.as_mut().and_then(Value::as_object_mut);
    if let (false, Some(answer)) = (more.is_empty(), answer) {
        let warnings = answer.entry("warnings").or_insert_with(|| json!([]));
        if let Value::Array(warnings) = warnings {
            warnings.extend(more.iter().map(|line| json!(message(line))));
        }
    }
    ran
}

/// The same with what the script had said until then.
pub(crate) fn with_logs(mut ran: RunResult, console: &[GuestLine]) -> RunResult {
    let logs: Vec<_> = console.iter().map(log).collect();
    if let (false, Some(answer)) = (logs.is_empty(), &mut ran.value) {
        put(answer, "logs", Value::from(logs));
    }
    ran
}

fn value_of(value: Value, limits: &ScriptLimits) -> RunResult {
    let sanitised = sanitise::value(value, &limits.sanitise());
    let mut answer = json!({"status": End::Ok.word(), "result": sanitised.value});
    if !sanitised.warnings.is_empty() {
        put(&mut answer, "warnings", Value::from(sanitised.warnings));
    }
    RunResult {
        status: Status::Done,
        value: Some(answer),
        relayed: None,
        error: None,
        console: Vec::new(),
        usage: None,
    }
}

/// A script's line and column are the author's own.
fn threw(thrown: Thrown, host: &ScriptHost<'_>, map: &Map, limits: &ScriptLimits) -> RunResult {
    let place = author(thrown.line, thrown.column, map);
    if let Some(made) = unawaited::failed_call(&thrown, host) {
        return tool_failed(&made, place, limits);
    }
    let mut error = json!({"source": "script", "message": message(&words::plain(&thrown.message))});
    put(&mut error, "name", json!(text::elided(&thrown.name, 100)));
    if let Some(code) = code_of(&thrown, limits) {
        put(&mut error, "code", json!(code));
    }
    ended(End::Runtime, error, place)
}

/// Its time is spent.
fn out_of_time(limits: &ScriptLimits, stopped_at: Option<((u32, u32), bool)>) -> RunResult {
    let Some((place, in_regex)) = stopped_at else {
        return spent(Spent::Script, limits);
    };
    let (line, column) = place;
    let at = match in_regex {
        true => "in the regular expression at",
        false => "and was last seen at",
    };
    let most = limits.script_ms_max;
    let words = format!("the script used up its {most} ms, {at} line {line}, column {column}");
    ended(End::Timeout, json!({"message": words}), Some(place))
}

/// The code of an error of the runtime. A script that throws the same words misleads
/// only its own sender.
fn code_of(thrown: &Thrown, limits: &ScriptLimits) -> Option<&'static str> {
    let said = thrown.message.as_str();
    match thrown.name.as_str() {
        "RangeError" if said == guard::runtime::iterations_spent(limits.iterations_max) => {
            Some(guard::runtime::ITERATION_LIMIT)
        }
        "TypeError" if guard::runtime::is_key_refused(said) => Some(guard::runtime::KEY_REFUSED),
        _ => None,
    }
}

/// What a script did too much of, and how much it may.
fn breached(
    breach: Breach,
    limits: &ScriptLimits,
    stopped_at: Option<((u32, u32), bool)>,
) -> String {
    match (breach, stopped_at) {
        (Breach::Work, Some(((line, column), true))) => format!(
            "the script did more than its {} units of work, in the regular expression at line {line}, column {column}; \
             make it simpler, or search with `includes` and `split`",
            limits.work_max
        ),
        (Breach::Work, Some(((line, column), false))) => format!(
            "the script did more than its {} units of work, at line {line}, column {column}; do less, or let a tool do it",
            limits.work_max
        ),
        (breach, _) => exceeded(breach, limits),
    }
}

fn exceeded(breach: Breach, limits: &ScriptLimits) -> String {
    match breach {
        Breach::Work => format!(
            "the script did more than its {} units of work; do less, or let a tool do it",
            limits.work_max
        ),
        Breach::Memory => format!(
            "the script used more than its {} MiB of memory; keep less at one time",
            limits.memory_bytes_max >> 20
        ),
        Breach::ConsoleLines => format!(
            "the script logged more than {} lines",
            limits.console_lines_max
        ),
        Breach::ConsoleBytes => format!(
            "the script logged more than {} KiB",
            limits.console_bytes_max >> 10
        ),
        Breach::Deadlock => String::from(
            "the script waits for something that cannot happen; await only tools and your own functions",
        ),
        other => other.to_string(),
    }
}

fn tool_failed(made: &ScriptCall, place: Option<(u32, u32)>, limits: &ScriptLimits) -> RunResult {
    let input = sanitise::value(made.input.clone(), &limits.sanitise());
    let mut error = json!({
        "source": "tool",
        "toolName": text::elided(&made.tool, 200),
        "toolInput": input.value,
    });
    if let Some(fault) = &made.fault {
        put(&mut error, "message", json!(message(&fault.message)));
        put(&mut error, "code", json!(fault.code));
        if let Some(details) = &fault.details {
            put(&mut error, "details", details.clone());
        }
    }
    ended(End::Tool, error, place)
}

fn broken(words: &str) -> RunResult {
    ended(
        End::Runtime,
        json!({"source": "script", "message": words}),
        None,
    )
}

/// The answer and what the audit says, from one error.
fn ended(end: End, mut error: Value, place: Option<(u32, u32)>) -> RunResult {
    if let Some((line, column)) = place {
        put(
            &mut error,
            "location",
            json!({"line": line, "column": column}),
        );
    }
    let words = error.get("message").and_then(Value::as_str).unwrap_or("");
    let (status, reason) = end.status();
    let told = reason.map(|reason| CallError {
        place,
        ..CallError::new(reason, words)
    });
    RunResult {
        status,
        value: Some(json!({"status": end.word(), "error": error})),
        relayed: None,
        error: told,
        console: Vec::new(),
        usage: None,
    }
}

fn author(line: u32, column: u32, map: &Map) -> Option<(u32, u32)> {
    if line == 0 {
        return None;
    }
    let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let (line, column) = (whole(line), whole(column));
    if map.is_prelude(line, column) {
        // Thrown by what was put before the script, not by the script.
        return None;
    }
    let (line, column) = map.author(line, column);
    place_of(line, column)
}

fn place_of(line: usize, column: usize) -> Option<(u32, u32)> {
    Some((u32::try_from(line).ok()?, u32::try_from(column).ok()?))
}

fn message(words: &str) -> String {
    text::elided(&sanitise::text(words), limit::SCRIPT_ERROR_CHARS_MAX)
}

/// A line of the logs. What `log` wrote stands as it is.
fn log(line: &GuestLine) -> String {
    match line.level {
        ConsoleLevel::Log => line.text.clone(),
        ConsoleLevel::Info | ConsoleLevel::Warn | ConsoleLevel::Error | ConsoleLevel::Debug => {
            format!("[{}] {}", line.level.word(), line.text)
        }
    }
}

fn put(object: &mut Value, key: &str, value: Value) {
    let members: Option<&mut Object<String, Value>> = object.as_object_mut();
    if let Some(members) = members {
        members.insert(key.to_owned(), value);
    }
}
