//! `ringfence audit`: lists, shows, verifies and exports the audit.

mod evidence;
mod nodes;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use model::caller::Caller;
use model::record::audit::chain::Head;
use model::record::audit::walk::{Broken, Verified};
use model::record::audit::{Act, Notice, Status};
use model::record::witness::HeadConflict;
use model::text::{elided, one_line};
use serde_json::json;
use store::gauge::log_read;
use store::{
    Audit, AuditEntry, AuditItem, ExportScope, Filter, FoundEntry, KeptConflict, LocalAudit,
    NoticeEntry, Retention, Rows, Store, StoreSettings, VerifiedExport,
};

use crate::arguments::{
    AuditAcknowledge, AuditCommand, AuditExport, AuditList, AuditPrune, AuditShow, AuditTail,
    AuditVerify, ExportFormat, KindWord, StatusWord, Which,
};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::progress::Bar;
use crate::wiring;

/// How often `tail` looks.
const TAIL_EVERY: Duration = Duration::from_millis(200);
/// Entries `tail` takes at a time.
const TAIL_ENTRIES_MAX: usize = 500;

pub(crate) fn run(
    arguments: &crate::arguments::AuditArguments,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    // An export is verified without a home.
    if let AuditCommand::Verify(verify) = &arguments.command
        && let Some(exit) = evidence::run_elsewhere(verify, printer)?
    {
        return Ok(exit);
    }
    let home = wiring::absolute_home(arguments.home())?;
    let settings = StoreSettings::standard();
    // The log is in the home: it can be read while a store that nodes share does not answer.
    let local = || LocalAudit::open(&home, settings);
    match &arguments.command {
        AuditCommand::List(list) if list.nodes => {
            let filter = list_filter(list)?;
            nodes::run_list(&home, &filter, printer)
        }
        AuditCommand::List(list) => run_list(local()?.audit(), list, printer),
        AuditCommand::Show(show) => run_show(local()?.audit(), show, printer),
        AuditCommand::Verify(verify) => run_verify(local()?.audit(), verify, printer),
        AuditCommand::Export(export) => run_export(local()?.audit(), export, printer),
        AuditCommand::Tail(tail) => run_tail(local()?.audit(), tail, printer),
        AuditCommand::Prune(prune) => run_prune(local()?.audit(), prune, printer),
        AuditCommand::Key(_) => evidence::run_key(local()?.audit(), printer),
        AuditCommand::Checkpoint(_) => evidence::run_checkpoint(local()?.audit(), printer),
        AuditCommand::Prove(prove) => evidence::run_prove(local()?.audit(), prove, printer),
        // What this home saw of other logs is in the store, with the nodes that share it.
        AuditCommand::Acknowledge(acknowledge) => {
            let store = Store::open(&home, settings)?;
            run_acknowledge(&store, acknowledge, printer)
        }
        AuditCommand::Witness(witness) => {
            let store = Store::open(&home, settings)?;
            evidence::run_witness(&store, &home, witness, printer)
        }
    }
}

fn filter(which: &Which, kind: KindWord) -> anyhow::Result<Filter> {
    let status = which.status.map(|word| match word {
        StatusWord::Done => Status::Done,
        StatusWord::Refused => Status::Refused,
        StatusWord::Failed => Status::Failed,
        StatusWord::Cancelled => Status::Cancelled,
        StatusWord::Crashed => Status::Crashed,
    });
    Ok(Filter {
        rows: match kind {
            KindWord::Call => Rows::Calls,
            KindWord::Notice => Rows::Notices,
            KindWord::All => Rows::All,
        },
        differs: which.differs,
        tool: which.tool.clone(),
        caller: which.caller.clone(),
        status,
        since_ms: which.since.as_deref().map(moment).transpose()?,
        ..Filter::default()
    })
}

/// A time: a length before now (`90s`, `15m`, `2h`, `7d`), or a date (`2026-01-31`).
pub(crate) fn moment(text: &str) -> anyhow::Result<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now_ms = i64::try_from(now.as_millis())?;
    model::time::moment(text, now_ms).with_context(|| {
        format!("`{text}` is not a time; write a length such as `2h` or `7d`, or a date such as `2026-01-31`")
    })
}

/// `2026-01-31 09:05:07` of a moment, UTC.
fn shown_time(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map_or_else(
        |_| "-".to_owned(),
        |moment| moment.strftime("%F %T").to_string(),
    )
}

fn list_filter(list: &AuditList) -> anyhow::Result<Filter> {
    Ok(Filter {
        limit: Some(list.limit),
        ..filter(&list.which, list.kind)?
    })
}

fn run_list(audit: &Audit, list: &AuditList, printer: &mut Printer) -> anyhow::Result<Exit> {
    let items = audit.items(&list_filter(list)?)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(&items)?),
        Format::Human => items.iter().for_each(|item| show_item(None, item, printer)),
    }
    Ok(Exit::Done)
}

/// One line for a call or notice; in a list of several nodes with the node's name.
fn show_item(node: Option<&str>, item: &AuditItem, printer: &mut Printer) {
    if let Some(node) = node {
        printer.line(node);
    }
    match item {
        AuditItem::Call(entry) => show_line(entry, printer),
        AuditItem::Notice(notice) => show_notice(notice, printer),
    }
}

fn show_notice(entry: &NoticeEntry, printer: &mut Printer) {
    let notice = &entry.notice;
    let line = format!(
        "{}  {}  {}  {}  {}  {}  {}",
        shown_time(notice.at_ms),
        notice.id,
        printer.styled(Style::Bold, notice.act.word()),
        one_line(notice.about.as_deref().unwrap_or("-")),
        one_line(&notice.by),
        one_line(&notice.through),
        elided(&one_line(&notice.message), 200),
    );
    printer.line(&line);
}

fn show_line(entry: &AuditEntry, printer: &mut Printer) {
    let opening = &entry.opening;
    let closing = entry.closing.as_ref();
    let (word, style) = match closing.map(|closing| closing.status) {
        None => ("open", Style::Caution),
        Some(status @ Status::Done) => (status.word(), Style::Good),
        Some(status @ (Status::Cancelled | Status::Crashed)) => (status.word(), Style::Caution),
        Some(status @ (Status::Refused | Status::Failed)) => (status.word(), Style::Bad),
    };
    let risk = closing.and_then(|closing| closing.tool.as_ref());
    let risk = risk.map_or("--", |tool| tool.risk.as_str());
    let error = closing.and_then(|closing| closing.error.as_ref());
    let error = error.map(|error| format!("{}: {}", error.code, one_line(&error.message)));
    let error = elided(&error.unwrap_or_default(), 100);
    let time = closing.and_then(|closing| closing.timing);
    let time = time.map_or_else(String::new, |timing| format!("{} µs", timing.total_us));
    let line = format!(
        "{}  {}  {}  {risk}  {}  {}  {}  {time}  {error}",
        shown_time(opening.at_ms),
        opening.call_id,
        printer.styled(style, word),
        one_line(&opening.tool),
        one_line(&opening.caller),
        opening.origin.word(),
    );
    printer.line(&line);
}

fn run_show(audit: &Audit, show: &AuditShow, printer: &mut Printer) -> anyhow::Result<Exit> {
    match audit.find(&show.id)? {
        FoundEntry::None => bail!("no call has the id `{}`", one_line(&show.id)),
        FoundEntry::Several(ids) => bail!("several calls have this prefix: {}", ids.join(", ")),
        FoundEntry::Notice(entry) => {
            let value = serde_json::to_value(&entry)?;
            match printer.format() {
                Format::Json => printer.json(&value),
                Format::Human => {
                    show_notice(&entry, printer);
                    let text = format!("{value:#}");
                    text.lines().for_each(|line| printer.line(&one_line(line)));
                }
            }
            Ok(Exit::Done)
        }
        FoundEntry::One(entry) => {
            // Both formats show the whole entry, because the user asked for this one.
            let value = serde_json::to_value(&entry)?;
            match printer.format() {
                Format::Json => printer.json(&value),
                Format::Human => {
                    show_line(&entry, printer);
                    let text = format!("{value:#}");
                    text.lines().for_each(|line| printer.line(&one_line(line)));
                }
            }
            Ok(Exit::Done)
        }
    }
}

fn run_verify(audit: &Audit, verify: &AuditVerify, printer: &mut Printer) -> anyhow::Result<Exit> {
    let expected = evidence::expectation(verify)?;
    let bar = Bar::measured("verify the audit", log_read, printer.format());
    let verified = audit.verify_against(&expected)?;
    drop(bar);
    Ok(show_verified(&verified, printer))
}

fn show_verified(verified: &Verified, printer: &mut Printer) -> Exit {
    match (printer.format(), &verified.broken) {
        (Format::Json, _) => printer.json(&verified_json(verified)),
        (Format::Human, None) => show_whole(verified, printer),
        (Format::Human, Some(broken)) => show_broken(verified, broken, printer),
    }
    exit_of(verified)
}

/// The same for an export, with which records it has and when it was made.
fn show_export(export: &VerifiedExport, printer: &mut Printer) -> Exit {
    let verified = &export.verified;
    if printer.format() == Format::Json {
        let mut value = verified_json(verified);
        if let Some(object) = value.as_object_mut() {
            let whole = export.scope == ExportScope::Whole;
            object.insert("whole".to_owned(), whole.into());
            object.insert("exportedAtMs".to_owned(), export.sealed_ms.into());
        }
        printer.json(&value);
        return exit_of(verified);
    }
    match (&verified.broken, export.scope) {
        (Some(broken), _) => show_broken(verified, broken, printer),
        (None, ExportScope::Whole) => show_whole(verified, printer),
        (None, ExportScope::Filtered { of }) => {
            let word = printer.styled(Style::Caution, "filtered");
            let records = verified.records;
            printer.line(&format!("{word}  records: {records} of a log of {of}"));
        }
    }
    if let Some(at_ms) = export.sealed_ms {
        printer.line(&format!("exported  {} UTC", shown_time(at_ms)));
    }
    exit_of(verified)
}

fn exit_of(verified: &Verified) -> Exit {
    match verified.broken {
        None => Exit::Done,
        Some(_) => Exit::No,
    }
}

/// The last record that was in order.
fn head_of(verified: &Verified) -> String {
    format!("{}:{}", verified.head.sequence, verified.head.hash.hex())
}

fn verified_json(verified: &Verified) -> serde_json::Value {
    json!({
        "ok": verified.broken.is_none(),
        "records": verified.records,
        "entries": verified.entries,
        "open": verified.open,
        "checkpoints": verified.checkpoints,
        "notices": verified.notices,
        "anchors": verified.anchors,
        "cuts": verified.cuts,
        "signed": verified.signed,
        "head": head_of(verified),
        "broken": verified.broken,
    })
}

fn show_whole(verified: &Verified, printer: &mut Printer) {
    let word = printer.styled(Style::Good, "whole");
    printer.line(&format!(
        "{word}  records: {}, entries: {}, open: {}, notices: {}, signed: {}",
        verified.records, verified.entries, verified.open, verified.notices, verified.signed
    ));
    printer.line(&format!("head  {}", head_of(verified)));
}

fn show_broken(verified: &Verified, broken: &Broken, printer: &mut Printer) {
    let word = printer.styled(Style::Bad, "broken");
    let call = broken.call_id.as_deref();
    let call = call.map_or_else(String::new, |call| format!(" ({})", one_line(call)));
    let what = one_line(&broken.what);
    printer.line(&format!("{word}  record {}{call}: {what}", broken.sequence));
    if verified.cuts > 0 {
        printer.line(
            "hint: `ringfence audit list --kind notice` shows when it was noticed; \
             once you know why, record it: `ringfence audit acknowledge ID --note TEXT`",
        );
    }
}

fn read_head(text: &str) -> anyhow::Result<Head> {
    let read = || {
        let (sequence, hash) = text.split_once(':')?;
        Some(Head {
            sequence: sequence.parse().ok()?,
            hash: hash.parse().ok()?,
        })
    };
    read().with_context(|| format!("`{}` is not a head; write SEQUENCE:HASH", one_line(text)))
}

fn run_export(audit: &Audit, export: &AuditExport, printer: &mut Printer) -> anyhow::Result<Exit> {
    let filter = filter(&export.which, export.kind)?;
    match export.format {
        ExportFormat::Records => {}
        ExportFormat::Proofs => return evidence::export_proofs(audit, &filter, printer),
        ExportFormat::Ocsf => return evidence::export_ocsf(audit, &filter, printer),
    }
    // `--json` promises one JSON value, so an array; otherwise one line per record.
    let is_array = printer.format() == Format::Json;
    if is_array {
        printer.json_text("[");
    }
    let mut written = 0;
    let bar = Bar::measured("export the audit", log_read, printer.format());
    audit.export(&filter, &mut |record| {
        if is_array && written > 0 {
            printer.json_text(",");
        }
        written += 1_u64;
        printer.json_record(record);
        printer.emit_much()
    })?;
    drop(bar);
    if is_array {
        printer.json_text("]");
    }
    Ok(Exit::Done)
}

fn run_tail(audit: &Audit, tail: &AuditTail, printer: &mut Printer) -> anyhow::Result<Exit> {
    let mut from = audit.head()?.sequence;
    let mut left = tail.count.unwrap_or(usize::MAX);
    while left > 0 {
        let items = audit.after(from, TAIL_ENTRIES_MAX.min(left))?;
        for item in &items {
            from = item.last_sequence();
            match printer.format() {
                Format::Json => printer.json_record(item),
                Format::Human => show_item(None, item, printer),
            }
        }
        left = left.saturating_sub(items.len());
        // A reader that is gone ends it, as it ends any other output.
        if let Err(error) = printer.emit_all() {
            return match error.kind() {
                std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
                _ => Err(error).context("could not write the output"),
            };
        }
        if items.is_empty() {
            std::thread::sleep(TAIL_EVERY);
        }
    }
    Ok(Exit::Done)
}

fn run_prune(audit: &Audit, prune: &AuditPrune, printer: &mut Printer) -> anyhow::Result<Exit> {
    let rule = Retention {
        older_than_ms: prune.before.as_deref().map(moment).transpose()?,
        bytes_max: prune.bytes,
    };
    let removed = audit.retain(&rule)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(removed)?),
        Format::Human => printer.line(&format!("removed {} entries", removed.entries)),
    }
    Ok(Exit::Done)
}

/// Acknowledges a cut: from here on `verify` accepts that records are missing before
/// that notice. Or a contradiction of another log: its next head is taken as the first,
/// unless an old head was only shown again.
/// Both notices stay in the chain.
fn run_acknowledge(
    store: &Store,
    acknowledge: &AuditAcknowledge,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let audit = store.audit();
    let id = one_line(&acknowledge.id);
    let known = match audit.find(&acknowledge.id)? {
        FoundEntry::Notice(entry) => entry.notice,
        FoundEntry::One(_) => bail!("`{id}` is a call, not a notice"),
        FoundEntry::None => bail!("no notice has the id `{id}`"),
        FoundEntry::Several(ids) => bail!("several ids have this prefix: {}", ids.join(", ")),
    };
    let acknowledges = |act| Notice::new(act, &Caller::owner().name, "cli", &acknowledge.note);
    match (known.act, &known.about) {
        (Act::AuditCut, _) => {
            audit.notice(acknowledges(Act::AuditCutAcknowledged).about(&known.id))?;
        }
        (Act::AuditContradicted, Some(log)) => {
            let is_forked =
                |it: &KeptConflict| it.origin == *log && it.conflict == HeadConflict::Forked;
            if acknowledge.replayed && audit.conflicts()?.iter().any(is_forked) {
                bail!("`--replayed` is about old heads, and this log was forked");
            }
            // On the disk before anything is forgotten.
            let notice = acknowledges(Act::AuditContradictionAcknowledged).about(&known.id);
            audit.notice(notice.detail("log", log))?;
            // Attack: heads are public. Who shows an old one must not make the witness forget
            // the newer one.
            if !acknowledge.replayed {
                store.witnessed().forget(log)?;
            }
            audit.forget_conflicts(log)?;
        }
        (_, _) => bail!("`{id}` is not an `audit.cut` or `audit.contradicted` notice"),
    }
    match printer.format() {
        Format::Json => printer.json(&json!({"ok": true, "acknowledged": known.id})),
        Format::Human => printer.line(&format!("acknowledged: {}", one_line(&known.message))),
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_printed() {
        for text in ["1970-01-01", "2000-02-29", "2026-11-15", "2100-03-01"] {
            let at_ms = moment(text).expect("a date");
            assert_eq!(shown_time(at_ms), format!("{text} 00:00:00"));
        }
        assert_eq!(shown_time(1_785_597_907_123), "2026-08-01 15:25:07");
        assert!(moment("yesterday").is_err());
    }
}
