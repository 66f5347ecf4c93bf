//! `ringfence approvals`: the inbox at a terminal.

use std::collections::HashSet;
use std::time::Duration;

use engine::Engine;
use engine::approve::{AnswerFault, ApprovalScope, Channel, Inbox, Listed, Listing};
use engine::waiting_script::AskingScript;
use model::caller::Caller;
use model::govern::approval::{ApprovalState, ShownChanges};
use model::text::{count, elided, one_line};
use model::word::Word as _;

use crate::arguments::{
    ApprovalsApprove, ApprovalsArguments, ApprovalsCommand, ApprovalsList, ApprovalsShow,
    ApprovalsWatch, ScopeWord,
};
use crate::output::console::{self, Typed, Wanted};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::sheet::Sheet;
use crate::wiring;
use crate::wiring::approver::{QuestionWords, ScopeKeys, scope_of, short};

/// How often `watch` looks.
const WATCH_EVERY: Duration = Duration::from_millis(200);
/// Lines of a script that are shown before and after one that waits.
const SCRIPT_LINES_AROUND: usize = 5;
/// Characters of the arguments in a list.
const LISTED_CHARS_MAX: usize = 80;

pub(crate) fn run(arguments: &ApprovalsArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(arguments.home())?;
    let inbox = engine.approvals();
    let owner = Caller::owner();
    let answered = match &arguments.command {
        ApprovalsCommand::List(list) => return run_list(inbox, list, printer),
        ApprovalsCommand::Show(show) => return run_show(&engine, show, printer),
        ApprovalsCommand::Watch(watch) => return run_watch(&engine, watch, printer),
        ApprovalsCommand::Approve(given) => return run_approve(inbox, given, printer),
        ApprovalsCommand::Deny(given) => inbox.deny(&given.id, &owner, given.note.as_deref()),
        ApprovalsCommand::Revoke(given) => inbox.revoke(&given.id, &owner),
    };
    match answered {
        Ok(row) => {
            show_one(&row, printer)?;
            Ok(Exit::Done)
        }
        Err(fault) => refused(fault, printer),
    }
}

/// Shows a question at the terminal and takes the approval that is typed there. Any
/// other answer changes nothing.
///
/// Attack: an agent with a shell runs this command with the id of its own question. It
/// has no terminal, or the person in front of it sees the question.
fn run_approve(
    inbox: Inbox<'_>,
    given: &ApprovalsApprove,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let row = inbox.find(&given.id)?;
    if row.state != ApprovalState::Pending {
        return refused(AnswerFault::Answered(row.state), printer);
    }
    let wanted = given.scope.map(ScopeWord::scope);
    if let Some(scope) = wanted.filter(|scope| !row.scopes.contains(scope)) {
        let (level, scopes) = (row.risk.level, row.scopes);
        return refused(
            AnswerFault::TooWide {
                level,
                scope,
                scopes,
            },
            printer,
        );
    }
    let (channel, scope) = if given.automation {
        (Channel::Automation, wanted.unwrap_or(ApprovalScope::Once))
    } else {
        let scopes = wanted.map_or_else(|| row.scopes.clone(), |scope| vec![scope]);
        let (sheet, keys) = sheet_of(&row, &scopes, "leave it as it is");
        let typed = match console::ask(&sheet, &Wanted::default()) {
            Typed::Key(key) => scope_of(&keys, &key),
            Typed::Otherwise | Typed::Ended | Typed::Withdrawn => None,
            Typed::Nowhere => {
                let word = printer.styled(Style::Bad, "refused");
                printer.note(&format!(
                    "{word}: an approval is typed at a terminal, and this command has none; the question stays open"
                ));
                return Ok(Exit::No);
            }
        };
        match typed {
            Some(scope) => (Channel::Terminal, scope),
            None => return Ok(Exit::No),
        }
    };
    let (owner, note) = (Caller::owner(), given.note.as_deref());
    match inbox.through(channel).approve(&row.id, &owner, scope, note) {
        Ok(row) => {
            show_one(&row, printer)?;
            Ok(Exit::Done)
        }
        Err(fault) => refused(fault, printer),
    }
}

/// A question that cannot be answered this way exits with 1; an unknown one with 2.
fn refused(fault: AnswerFault, printer: &mut Printer) -> anyhow::Result<Exit> {
    match fault {
        AnswerFault::Unknown
        | AnswerFault::NotYours
        | AnswerFault::Several(_)
        | AnswerFault::Store(_) => Err(fault.into()),
        AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::TooWide { .. }
        | AnswerFault::Refused(_)
        | AnswerFault::Masked
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged
        | AnswerFault::NotByClient
        | AnswerFault::NotByCommand
        | AnswerFault::Separate => {
            let word = printer.styled(Style::Bad, "refused");
            printer.note(&format!("{word}: {fault}"));
            Ok(Exit::No)
        }
    }
}

fn run_list(inbox: Inbox<'_>, list: &ApprovalsList, printer: &mut Printer) -> anyhow::Result<Exit> {
    let listing = if list.all {
        Listing::All
    } else {
        Listing::Live
    };
    let listed = inbox.list(listing)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(&listed)?),
        Format::Human => listed.iter().for_each(|row| show_line(row, printer)),
    }
    Ok(Exit::Done)
}

fn run_show(engine: &Engine, show: &ApprovalsShow, printer: &mut Printer) -> anyhow::Result<Exit> {
    let row = engine.approvals().find(&show.id)?;
    let script = engine.script_of(&row);
    match printer.format() {
        Format::Json => {
            let mut shown = serde_json::to_value(&row)?;
            if let (Some(shown), Some(script)) = (shown.as_object_mut(), &script) {
                shown.insert("script".to_owned(), serde_json::to_value(script)?);
            }
            printer.json(&shown);
        }
        Format::Human => {
            show_whole(&row, printer);
            if let Some(script) = &script {
                show_script(script, printer);
            }
        }
    }
    Ok(Exit::Done)
}

/// The lines of a script around those that wait; how many are left out is said.
fn show_script(script: &AskingScript, printer: &mut Printer) {
    let name = printer.styled(Style::Dim, &format!("  {:<14}", "script"));
    printer.line(&format!("{name}{}", script.words()));
    let is_near = |number: usize| {
        let near = |waits: &usize| waits.abs_diff(number) <= SCRIPT_LINES_AROUND;
        script.waits.is_empty() || script.waits.iter().any(near)
    };
    let mut left_out = 0;
    for (line, number) in script.lines.iter().zip(1_usize..) {
        if !is_near(number) {
            left_out += 1;
            continue;
        }
        show_left_out(&mut left_out, printer);
        let waits = script.waits.contains(&number);
        let mark = if waits { '>' } else { ' ' };
        let shown = format!("  {mark} {number:>4}  {}", one_line(line));
        let style = if waits { Style::Caution } else { Style::Dim };
        printer.line(&printer.styled(style, &shown));
    }
    show_left_out(&mut left_out, printer);
}

fn show_left_out(left_out: &mut usize, printer: &mut Printer) {
    if *left_out > 0 {
        let words = format!("         {} not shown", count(*left_out, "line"));
        printer.line(&printer.styled(Style::Dim, &words));
    }
    *left_out = 0;
}

fn show_one(row: &Listed, printer: &mut Printer) -> anyhow::Result<()> {
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(row)?),
        Format::Human => show_line(row, printer),
    }
    Ok(())
}

fn show_line(row: &Listed, printer: &mut Printer) {
    let style = match row.state {
        ApprovalState::Pending => Style::Caution,
        ApprovalState::Approved | ApprovalState::Used => Style::Good,
        ApprovalState::Declined
        | ApprovalState::Dismissed
        | ApprovalState::Malformed
        | ApprovalState::Revoked
        | ApprovalState::Expired => Style::Bad,
    };
    let scope = row.scope.map(|scope| format!(" ({})", scope.word()));
    let line = format!(
        "{}  {}{}  {}  {}  {}  {}",
        short(&row.id),
        printer.styled(style, row.state.word()),
        scope.unwrap_or_default(),
        row.risk.level.badge(),
        one_line(&row.tool),
        one_line(&row.caller),
        elided(&row.arguments, LISTED_CHARS_MAX),
    );
    printer.line(&line);
}

fn show_whole(row: &Listed, printer: &mut Printer) {
    show_line(row, printer);
    let level = row.risk.level;
    let scopes: Vec<_> = row.scopes.iter().map(|scope| scope.word()).collect();
    let changes = ShownChanges::read(&row.tool, &row.arguments);
    let arguments = changes.as_ref().map(|changes| &changes.arguments);
    let mut lines = vec![
        ("id", row.id.clone()),
        ("question", row.prompt.clone()),
        ("arguments", arguments.unwrap_or(&row.arguments).clone()),
        ("risk", format!("{} {}", level.badge(), level.label())),
    ];
    lines.extend(row.risk.reasons.iter().map(|words| ("", words.clone())));
    if !row.why.is_empty() {
        lines.push(("asked because", row.why.clone()));
    }
    lines.push(("may answer", row.may_answer.clone()));
    lines.push(("asked", shown_time(row.asked_at_ms)));
    lines.push(("until", shown_time(row.expires_at_ms)));
    lines.push(("can count for", scopes.join(", ")));
    if let (Some(by), Some(at_ms)) = (&row.answered_by, row.answered_at_ms) {
        let via = row.channel.as_deref().unwrap_or("-");
        lines.push((
            "answered",
            format!("{} by {by} via {via}", shown_time(at_ms)),
        ));
    }
    if let Some(note) = &row.note {
        lines.push(("note", note.clone()));
    }
    lines.push(("used", format!("{} times", row.uses)));
    lines.push(("call", row.call_id.clone()));
    lines.push(("binding", row.binding.clone()));
    for (name, words) in lines {
        let name = printer.styled(Style::Dim, &format!("  {name:<14}"));
        printer.line(&format!("{name}{}", one_line(&words)));
    }
    for (name, lines) in changes.iter().flat_map(ShownChanges::parts) {
        printer.line(&printer.styled(Style::Dim, &format!("  {name}")));
        for line in lines {
            printer.line(&format!("  | {}", one_line(line)));
        }
    }
}

/// `2026-01-31 09:05:07` of a moment, UTC.
pub(crate) fn shown_time(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map_or_else(
        |_| "-".to_owned(),
        |moment| moment.strftime("%F %T").to_string(),
    )
}

/// Shows waiting questions and new ones until interrupted. At a terminal it asks about
/// each.
fn run_watch(
    engine: &Engine,
    watch: &ApprovalsWatch,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let asks = console::is_here() && printer.format() == Format::Human;
    let mut seen = HashSet::new();
    let mut left = watch.count.unwrap_or(usize::MAX);
    while left > 0 {
        let pending = engine.approvals().list(Listing::Pending)?;
        let still: HashSet<_> = pending.iter().map(|row| row.id.clone()).collect();
        // Answered questions are dropped, so that a long watch stays small.
        seen.retain(|id| still.contains(id));
        let new = pending.iter().filter(|row| seen.insert(row.id.clone()));
        for row in new.take(left).collect::<Vec<_>>() {
            left -= 1;
            match printer.format() {
                Format::Json => printer.json_record(row),
                Format::Human if asks => {
                    printer.emit();
                    if !asked(engine, row, printer)? {
                        return Ok(Exit::Done);
                    }
                }
                Format::Human => show_line(row, printer),
            }
        }
        printer.emit();
        if left > 0 {
            std::thread::sleep(WATCH_EVERY);
        }
    }
    Ok(Exit::Done)
}

/// Asks about one question. Returns whether a person is still at the terminal.
fn asked(engine: &Engine, row: &Listed, printer: &mut Printer) -> anyhow::Result<bool> {
    let wanted = Wanted::default();
    let (sheet, keys) = sheet_of(row, &row.scopes, "no");
    let inbox = engine.approvals().through(Channel::Watch);
    let owner = Caller::owner();
    let given = match console::ask(&sheet, &wanted) {
        Typed::Key(key) => match scope_of(&keys, &key) {
            Some(scope) => inbox.approve(&row.id, &owner, scope, None),
            None => inbox.deny(&row.id, &owner, None),
        },
        Typed::Otherwise => inbox.deny(&row.id, &owner, None),
        Typed::Ended | Typed::Withdrawn | Typed::Nowhere => return Ok(false),
    };
    match given {
        Ok(row) => show_line(&row, printer),
        Err(fault) => {
            refused(fault, printer)?;
        }
    }
    Ok(true)
}

/// A question of the inbox as a sheet, and what its keys mean.
fn sheet_of(row: &Listed, scopes: &[ApprovalScope], otherwise: &str) -> (Sheet, ScopeKeys) {
    let words = QuestionWords {
        id: Some(&row.id),
        level: row.risk.level,
        caller: &row.caller,
        tool: &row.tool,
        prompt: &row.prompt,
        arguments: &row.arguments,
        reasons: row.risk.reasons.join("; "),
        why: &row.why,
    };
    words.sheet(scopes, otherwise)
}
