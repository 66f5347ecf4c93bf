//! The audit: calls and notices by filter, one of them with everything recorded about it,
//! its children, its records as they stand in the log, and the proof that the chain is whole.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use engine::{AuditEntry, AuditItem, Engine, Filter, FoundEntry, Rows};
use futures_util::stream;
use model::caller::Origin;
use model::record::audit::chain::{Head, Record};
use model::record::audit::{Closing, Status};
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::view::{GateView, gates};
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::request::Asked;
use crate::studio::Studio;

/// What a list of the audit can be asked for.
pub(crate) const FILTERS: &[&str] = &[
    "tool", "caller", "status", "origin", "kind", "since", "until", "reason", "differs", "cursor",
    "limit",
];
/// The same for an export.
pub(crate) const EXPORT_FILTERS: &[&str] = &[
    "tool", "caller", "status", "origin", "kind", "since", "until", "differs", "format",
];
/// Pages that are read to find calls of one reason, which no index knows.
const REASON_PAGES_MAX: usize = 20;

/// One line of the audit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum AuditRow {
    /// A call.
    Call(CallRow),
    /// Something done beside calls.
    Notice(NoticeRow),
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallRow {
    id: String,
    parent_id: Option<String>,
    at_ms: i64,
    ended_at_ms: Option<i64>,
    tool: String,
    caller: String,
    origin: &'static str,
    status: &'static str,
    risk: Option<String>,
    code: Option<String>,
    message: Option<String>,
    elapsed_us: Option<u64>,
    sequence: u64,
    differs: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NoticeRow {
    id: String,
    at_ms: i64,
    act: &'static str,
    by: String,
    through: String,
    about: Option<String>,
    message: String,
    details: BTreeMap<String, String>,
    sequence: u64,
}

pub(crate) fn row(item: &AuditItem) -> AuditRow {
    match item {
        AuditItem::Call(entry) => AuditRow::Call(call_row(entry)),
        AuditItem::Notice(entry) => {
            let notice = &entry.notice;
            let details = notice.details.iter();
            let details =
                details.map(|(name, value)| (text::one_line(name), text::one_line(value)));
            AuditRow::Notice(NoticeRow {
                id: notice.id.clone(),
                at_ms: notice.at_ms,
                act: notice.act.word(),
                by: text::one_line(&notice.by),
                through: text::one_line(&notice.through),
                about: notice.about.as_deref().map(text::one_line),
                message: text::one_line(&notice.message),
                details: details.collect(),
                sequence: entry.sequence,
            })
        }
    }
}

pub(crate) fn call_row(entry: &AuditEntry) -> CallRow {
    let (opening, closing) = (&entry.opening, entry.closing.as_ref());
    let error = closing.and_then(|closing| closing.error.as_ref());
    CallRow {
        id: opening.call_id.clone(),
        parent_id: opening.parent_id.clone(),
        at_ms: opening.at_ms,
        ended_at_ms: closing.map(|closing| closing.at_ms),
        tool: text::one_line(&opening.tool),
        caller: text::one_line(&opening.caller),
        origin: opening.origin.word(),
        status: closing.map_or("open", |closing| closing.status.word()),
        risk: closing.and_then(|closing| closing.tool.as_ref().map(|tool| tool.risk.clone())),
        code: error.map(|error| error.code.clone()),
        message: error.map(|error| text::one_line(&error.message)),
        elapsed_us: closing.and_then(|closing| closing.timing.map(|timing| timing.total_us)),
        sequence: entry.sequence,
        differs: closing.is_some_and(|closing| closing.shadow.is_some()),
    }
}

/// A page of the audit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    items: Vec<AuditRow>,
    next: Option<String>,
    filter: BTreeMap<String, String>,
    empty: Option<String>,
}

pub(crate) fn list(studio: &Studio, asked: &Asked) -> ApiResult<AuditPage> {
    let engine = studio.engine();
    let limit = asked.limit()?;
    let mut filter = Filter {
        limit: Some(limit),
        before: asked.number("cursor")?,
        ..filter(asked)?
    };
    let reason = asked.word("reason")?;
    if reason.is_some() {
        filter.rows = Rows::Calls;
    }
    let said = said(asked)?;
    let (mut items, mut next) = (Vec::new(), None);
    for _ in 0..REASON_PAGES_MAX {
        let page = engine.store().audit().items(&filter);
        let page = page.map_err(|fault| studio.alarm("the audit cannot be read", &fault))?;
        let is_last = page.len() < limit;
        next = page.last().map(AuditItem::sequence).filter(|_| !is_last);
        let fits = |item: &&AuditItem| reason.is_none_or(|reason| has_reason(item, reason));
        items.extend(page.iter().filter(fits).map(row));
        filter.before = next;
        if next.is_none() || reason.is_none() || items.len() >= limit {
            break;
        }
    }
    let empty = match items.is_empty() && filter.before.is_none() {
        true => Some(why_empty(engine, asked, &said)?),
        false => None,
    };
    Ok(AuditPage {
        items,
        next: next.map(|sequence| sequence.to_string()),
        filter: said,
        empty,
    })
}

fn has_reason(item: &AuditItem, reason: &str) -> bool {
    match item {
        AuditItem::Call(entry) => {
            let error = entry
                .closing
                .as_ref()
                .and_then(|closing| closing.error.as_ref());
            error.is_some_and(|error| error.code == reason)
        }
        AuditItem::Notice(_) => false,
    }
}

/// What was asked for, as it was understood.
fn said(asked: &Asked) -> ApiResult<BTreeMap<String, String>> {
    let mut said = BTreeMap::new();
    for name in FILTERS {
        if matches!(*name, "cursor" | "limit") {
            continue;
        }
        if let Some(word) = asked.word(name)? {
            said.insert((*name).to_owned(), text::one_line(word));
        }
    }
    Ok(said)
}

/// Names the part of a filter that leaves nothing: without it there would be something.
fn why_empty(engine: &Engine, asked: &Asked, said: &BTreeMap<String, String>) -> ApiResult<String> {
    if said.is_empty() {
        return Ok("nothing was recorded yet".to_owned());
    }
    for name in said.keys() {
        let mut wider = asked.clone();
        wider.query.remove(name);
        let wider = Filter {
            limit: Some(1),
            ..filter(&wider)?
        };
        let found = engine.store().audit().items(&wider).unwrap_or_default();
        if !found.is_empty() {
            let value = said.get(name).map_or("", String::as_str);
            return Ok(format!(
                "nothing fits; without `{name}={value}` there is something"
            ));
        }
    }
    Ok("nothing fits, also with any one of the filters left out".to_owned())
}

fn filter(asked: &Asked) -> ApiResult<Filter> {
    let odd = |name: &str, known: &str| ApiError::request(format!("`{name}` is one of {known}"));
    let status = match asked.word("status")? {
        None => None,
        Some(word) => {
            let found = Status::ALL.into_iter().find(|status| status.word() == word);
            let known = "done, refused, failed, cancelled, crashed";
            Some(found.ok_or_else(|| odd("status", known))?)
        }
    };
    let origin = match asked.word("origin")? {
        None => None,
        Some(word) => {
            let found = Origin::ALL.into_iter().find(|origin| origin.word() == word);
            Some(found.ok_or_else(|| odd("origin", "cli, mcp, script, studio"))?)
        }
    };
    let rows = match asked.word("kind")? {
        None if status.is_some() || origin.is_some() => Rows::Calls,
        None | Some("all") => Rows::All,
        Some("call") => Rows::Calls,
        Some("notice") => Rows::Notices,
        Some(_) => return Err(odd("kind", "call, notice, all")),
    };
    let owned =
        |name: &str| -> ApiResult<Option<String>> { Ok(asked.word(name)?.map(str::to_owned)) };
    Ok(Filter {
        rows,
        tool: owned("tool")?,
        caller: owned("caller")?,
        status,
        origin,
        differs: asked.flag("differs")?.unwrap_or(false),
        since_ms: moment(asked, "since")?,
        until_ms: moment(asked, "until")?,
        ..Filter::default()
    })
}

/// A moment: milliseconds since 1970, or as people write it.
pub(crate) fn moment(asked: &Asked, name: &str) -> ApiResult<Option<i64>> {
    let Some(word) = asked.word(name)? else {
        return Ok(None);
    };
    let is_number = word.len() > 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    let read = match is_number {
        true => word.parse().ok(),
        false => model::time::moment(word, engine::now_ms()),
    };
    let odd = || {
        ApiError::request(format!(
            "`{name}` is a length such as `2h`, a date or milliseconds"
        ))
    };
    read.map(Some).ok_or_else(odd)
}

/// One call with everything recorded about it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditView {
    #[serde(flatten)]
    row: AuditRow,
    gates: Vec<GateView>,
    decided: Option<usize>,
    arguments_text: Option<String>,
    arguments: Option<Value>,
    arguments_digest: Option<String>,
    result_digest: Option<String>,
    tool_facts: Option<Value>,
    risk_reasons: Vec<String>,
    events: Vec<EventView>,
    events_dropped: u64,
    timing: Option<TimingView>,
    shadow: Option<Value>,
    children: Vec<AuditRow>,
    parent: Option<AuditRow>,
    question: Option<String>,
    hash: String,
    explain: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EventView {
    kind: String,
    words: String,
    /// When it began, from the beginning of the run.
    at_us: Option<u64>,
    /// How long it took.
    us: Option<u64>,
    ok: bool,
    raw: Value,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TimingView {
    total_us: u64,
    run_us: u64,
    cpu_us: u64,
}

pub(crate) fn show(studio: &Studio, asked: &Asked) -> ApiResult<AuditView> {
    match found(studio, asked.part("id"))? {
        FoundEntry::One(entry) => Ok(call_view(studio.engine(), &entry)),
        FoundEntry::Notice(entry) => {
            let hash = entry.hash.clone();
            let message = text::one_line(&entry.notice.message);
            let row = row(&AuditItem::Notice(*entry));
            Ok(AuditView {
                explain: vec![message],
                hash,
                ..empty_view(row)
            })
        }
        FoundEntry::None | FoundEntry::Several(_) => Err(unknown()),
    }
}

fn unknown() -> ApiError {
    ApiError::unknown("no call or notice has that id")
}

fn found(studio: &Studio, id: &str) -> ApiResult<FoundEntry> {
    let found = studio.engine().store().audit().find(id);
    found.map_err(|fault| studio.alarm("the audit cannot be read", &fault))
}

fn empty_view(row: AuditRow) -> AuditView {
    AuditView {
        row,
        gates: Vec::new(),
        decided: None,
        arguments_text: None,
        arguments: None,
        arguments_digest: None,
        result_digest: None,
        tool_facts: None,
        risk_reasons: Vec::new(),
        events: Vec::new(),
        events_dropped: 0,
        timing: None,
        shadow: None,
        children: Vec::new(),
        parent: None,
        question: None,
        hash: String::new(),
        explain: Vec::new(),
    }
}

fn call_view(engine: &Engine, entry: &AuditEntry) -> AuditView {
    let shown = AuditRow::Call(call_row(entry));
    let mut view = empty_view(shown);
    view.hash.clone_from(&entry.hash);
    view.arguments_digest = Some(entry.opening.arguments_digest.clone());
    view.children = children(engine, entry);
    view.parent =
        entry
            .opening
            .parent_id
            .as_deref()
            .and_then(|id| match engine.store().audit().find(id) {
                Ok(FoundEntry::One(parent)) => Some(AuditRow::Call(call_row(&parent))),
                Ok(_) | Err(_) => None,
            });
    let Some(closing) = &entry.closing else {
        view.explain = vec!["it is still under way, or its process died".to_owned()];
        return view;
    };
    view.gates = gates(&closing.gates);
    view.decided = decided(closing);
    view.arguments_text = closing
        .arguments
        .as_ref()
        .map(|arguments| text::json_line(&arguments.to_string()));
    view.arguments.clone_from(&closing.arguments);
    view.result_digest.clone_from(&closing.result_digest);
    if let Some(tool) = &closing.tool {
        view.risk_reasons = tool
            .risk_reasons
            .iter()
            .map(|words| text::one_line(words))
            .collect();
        view.tool_facts = serde_json::to_value(tool).ok();
    }
    view.events = closing.events.iter().map(event).collect();
    view.events_dropped = closing.events_dropped;
    view.timing = closing.timing.map(|timing| TimingView {
        total_us: timing.total_us,
        run_us: timing.run_us,
        cpu_us: timing.cpu_us,
    });
    view.shadow = closing
        .shadow
        .as_ref()
        .and_then(|shadow| serde_json::to_value(shadow).ok());
    view.question = question_of(closing);
    view.explain = explained(entry, closing);
    view
}

/// The gate that decided: the one that stopped the call, or asked a person.
fn decided(closing: &Closing) -> Option<usize> {
    let at = |verdict: &str| {
        closing
            .gates
            .iter()
            .position(|gate| gate.verdict == verdict)
    };
    at("stop").or_else(|| at("ask"))
}

/// The id of the question a person was asked, as the approval's note has it.
fn question_of(closing: &Closing) -> Option<String> {
    let gate = closing.gates.iter().find(|gate| gate.gate == "approval")?;
    let (_, rest) = gate.note.as_deref()?.split_once("approval ")?;
    let id: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    (id.len() == 32).then_some(id)
}

/// The call in sentences.
fn explained(entry: &AuditEntry, closing: &Closing) -> Vec<String> {
    let opening = &entry.opening;
    let mut said = vec![format!(
        "{} asked for {} through {}",
        text::one_line(&opening.caller),
        text::one_line(&opening.tool),
        opening.origin.word(),
    )];
    if let Some(gate) = decided(closing).and_then(|at| closing.gates.get(at)) {
        let what = match gate.verdict.as_ref() {
            "stop" => "stopped it",
            _ => "wanted a person to be asked",
        };
        let note = gate.note.as_deref().map(text::one_line).unwrap_or_default();
        said.push(format!("the gate `{}` {what}: {note}", gate.gate));
    }
    said.push(match (&closing.error, closing.status) {
        (Some(error), _) => format!(
            "its caller was told: {} [{}]",
            text::one_line(&error.message),
            error.code
        ),
        (None, Status::Done) => "it ran and returned".to_owned(),
        (None, status) => format!("it was {}", status.word()),
    });
    said
}

fn event(raw: &Value) -> EventView {
    let word = |name: &str| raw.get(name).and_then(Value::as_str);
    let number = |name: &str| {
        raw.get(name)
            .and_then(Value::as_i64)
            .map(|number| number.to_string())
    };
    let parts = [
        "method",
        "operation",
        "function",
        "host",
        "path",
        "refusal",
        "code",
    ];
    let mut words: Vec<String> = parts
        .iter()
        .filter_map(|name| word(name))
        .map(text::one_line)
        .collect();
    words.extend(number("status"));
    EventView {
        kind: text::one_line(word("kind").unwrap_or("event")),
        words: words.join(" "),
        at_us: raw.get("atUs").and_then(Value::as_u64),
        us: raw.get("us").and_then(Value::as_u64),
        ok: word("refusal").is_none(),
        raw: raw.clone(),
    }
}

/// The calls that a script made: recorded between its two records.
fn children(engine: &Engine, entry: &AuditEntry) -> Vec<AuditRow> {
    let filter = Filter {
        rows: Rows::Calls,
        origin: Some(Origin::Script),
        after: Some(entry.sequence),
        before: entry.closed_sequence,
        limit: Some(limit::CHILDREN_MAX),
        ..Filter::default()
    };
    let found = engine.store().audit().list(&filter).unwrap_or_default();
    let id = entry.opening.call_id.as_str();
    let own = found
        .iter()
        .filter(|child| child.opening.parent_id.as_deref() == Some(id));
    let mut rows: Vec<_> = own.map(|child| AuditRow::Call(call_row(child))).collect();
    rows.reverse();
    rows
}

/// The calls of one script.
pub(crate) fn children_of(studio: &Studio, id: &str) -> Vec<AuditRow> {
    match found(studio, id) {
        Ok(FoundEntry::One(entry)) => children(studio.engine(), &entry),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Records as they stand in the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RawRecords {
    records: Vec<String>,
}

pub(crate) fn raw(studio: &Studio, asked: &Asked) -> ApiResult<RawRecords> {
    let (first, last) = match found(studio, asked.part("id"))? {
        FoundEntry::One(entry) => (
            entry.sequence,
            entry.closed_sequence.unwrap_or(entry.sequence),
        ),
        FoundEntry::Notice(entry) => (entry.sequence, entry.sequence),
        FoundEntry::None | FoundEntry::Several(_) => return Err(unknown()),
    };
    // The filter keeps the reading short: only what was opened there.
    let filter = Filter {
        after: Some(first.saturating_sub(1)),
        before: Some(first.saturating_add(1)),
        ..Filter::default()
    };
    let mut records = Vec::new();
    let mut keep = |record: &Record| {
        if record.sequence == first || record.sequence == last {
            records.push(text::json_line(&record.body));
        }
        Ok(())
    };
    let read = studio.engine().store().audit().export(&filter, &mut keep);
    read.map_err(|fault| studio.alarm("the audit cannot be read", &fault))?;
    Ok(RawRecords { records })
}

/// Against which head a chain is verified.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifyBody {
    #[serde(default)]
    head: Option<String>,
}

/// What a verification found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verification {
    ok: bool,
    records: u64,
    entries: u64,
    open: u64,
    checkpoints: u64,
    notices: u64,
    cuts: u64,
    head: String,
    broken: Option<BrokenView>,
    took_ms: u64,
    command: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BrokenView {
    sequence: u64,
    call_id: Option<String>,
    what: String,
}

pub(crate) fn verify(studio: &Studio, _: &Asked, given: VerifyBody) -> ApiResult<Verification> {
    let read = |word: &str| -> Option<Head> {
        let (sequence, hash) = word.split_once(':')?;
        Some(Head {
            sequence: sequence.parse().ok()?,
            hash: hash.parse().ok()?,
        })
    };
    let expected = match given.head.as_deref().filter(|word| !word.is_empty()) {
        None => None,
        Some(word) => {
            let odd = || ApiError::invalid("a head is written as SEQUENCE:HASH");
            Some(read(word).ok_or_else(odd)?)
        }
    };
    let began = Instant::now();
    let verified = studio.engine().store().audit().verify(expected.as_ref());
    let verified = verified.map_err(|fault| studio.alarm("the audit cannot be read", &fault))?;
    let head = format!("{}:{}", verified.head.sequence, verified.head.hash.hex());
    Ok(Verification {
        ok: verified.broken.is_none(),
        records: verified.records,
        entries: verified.entries,
        open: verified.open,
        checkpoints: verified.checkpoints,
        notices: verified.notices,
        cuts: verified.cuts,
        broken: verified.broken.map(|broken| BrokenView {
            sequence: broken.sequence,
            call_id: broken.call_id.as_deref().map(text::one_line),
            what: text::one_line(&broken.what),
        }),
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        command: format!("ringfence audit verify --head {head}"),
        head,
    })
}

/// Records as lines of JSON, as `ringfence audit export` writes them; or calls as a table.
pub(crate) async fn export(studio: Studio, asked: Asked) -> ApiResult<Response> {
    let filter = filter(&asked)?;
    let format = match asked.word("format")? {
        None | Some("jsonl") => ExportFormat::Lines,
        Some("csv") => ExportFormat::Table,
        Some(_) => return Err(ApiError::request("`format` is `jsonl` or `csv`")),
    };
    // The writer waits when the reader is slow, so a large audit is never in memory.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(16);
    tokio::task::spawn_blocking(move || write_export(&studio, &filter, format, &sender));
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let (kind, name) = match format {
        ExportFormat::Lines => (
            "application/x-ndjson",
            "attachment; filename=\"audit.jsonl\"",
        ),
        ExportFormat::Table => (
            "text/csv; charset=utf-8",
            "attachment; filename=\"audit.csv\"",
        ),
    };
    let into = response.headers_mut();
    into.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    into.insert(CONTENT_DISPOSITION, HeaderValue::from_static(name));
    Ok(response)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportFormat {
    Lines,
    Table,
}

fn write_export(
    studio: &Studio,
    filter: &Filter,
    format: ExportFormat,
    sender: &tokio::sync::mpsc::Sender<Bytes>,
) {
    let gone = || std::io::Error::other("the reader is gone");
    let send = |text: String| sender.blocking_send(text.into()).map_err(|_| gone());
    let audit = studio.engine().store().audit();
    if format == ExportFormat::Lines {
        let written = audit.export(filter, &mut |record| {
            let line = serde_json::to_string(record).map_err(std::io::Error::other)?;
            send(format!("{line}\n"))
        });
        if let Err(fault) = written {
            let _ = studio.alarm("the audit was not exported whole", &fault);
        }
        return;
    }
    let mut filter = Filter {
        limit: Some(limit::PAGE_ROWS_MAX),
        ..filter.clone()
    };
    let head = "time,id,tool,caller,origin,status,risk,code,elapsedUs\n".to_owned();
    let mut sent = send(head);
    while sent.is_ok() {
        let page = match audit.list(&filter) {
            Ok(page) => page,
            Err(fault) => {
                let _ = studio.alarm("the audit was not exported whole", &fault);
                return;
            }
        };
        let Some(last) = page.last() else {
            return;
        };
        filter.before = Some(last.sequence);
        sent = send(page.iter().map(table_line).collect());
    }
}

fn table_line(entry: &AuditEntry) -> String {
    let row = call_row(entry);
    let elapsed = row.elapsed_us.map(|us| us.to_string()).unwrap_or_default();
    let cells = [
        row.at_ms.to_string(),
        row.id,
        row.tool,
        row.caller,
        row.origin.to_owned(),
        row.status.to_owned(),
        row.risk.unwrap_or_default(),
        row.code.unwrap_or_default(),
        elapsed,
    ];
    let cells: Vec<_> = cells.iter().map(|cell| quoted(cell)).collect();
    format!("{}\n", cells.join(","))
}

/// Attack: a cell that a spreadsheet takes for a formula.
fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let lead = if is_formula { "'" } else { "" };
    format!("\"{lead}{}\"", cell.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula() {
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("plain"), "\"plain\"");
    }
}
