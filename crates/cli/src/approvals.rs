//! `ringfence approvals`: the inbox at a terminal. And the person at the terminal
//! of `ringfence run`, who is asked in the same words.

use std::collections::HashSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::pin::Pin;
use std::time::{Duration, Instant};

use engine::Engine;
use engine::approve::{Answer, AnswerFault, Approver, Inbox, Listed, Listing, Question, Scope};
use model::approval::State;
use model::caller::Caller;
use model::document::Word as _;
use model::text::{elided, one_line};
use rustix::termios::QueueSelector;

use crate::arguments::{Approvals, ApprovalsCommand, ApprovalsList, ApprovalsShow, ApprovalsWatch};
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::wiring;

/// How often `watch` looks.
const WATCH_EVERY: Duration = Duration::from_millis(200);
/// An answer that comes faster was meant for something else.
const READING_MIN: Duration = Duration::from_millis(150);
/// Characters of the arguments in a list.
const LISTED_CHARS_MAX: usize = 80;
/// Characters of an id people need to type.
const SHORT_ID_CHARS: usize = 8;

/// Runs the command.
pub(crate) fn run(arguments: &Approvals, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(arguments.home())?;
    let inbox = engine.approvals();
    let owner = Caller::owner();
    let answered = match &arguments.command {
        ApprovalsCommand::List(list) => return run_list(inbox, list, printer),
        ApprovalsCommand::Show(show) => return run_show(inbox, show, printer),
        ApprovalsCommand::Watch(watch) => return run_watch(&engine, watch, printer),
        ApprovalsCommand::Approve(given) => inbox.approve(
            &given.id,
            &owner,
            given.scope.scope(),
            given.note.as_deref(),
        ),
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

/// What cannot be answered so is a no; what cannot be found could not be tried.
fn refused(fault: AnswerFault, printer: &mut Printer) -> anyhow::Result<Exit> {
    match fault {
        AnswerFault::Unknown
        | AnswerFault::NotYours
        | AnswerFault::Several(_)
        | AnswerFault::Store(_) => Err(fault.into()),
        AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::TooWide { .. }
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged
        | AnswerFault::NotByClient
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

fn run_show(inbox: Inbox<'_>, show: &ApprovalsShow, printer: &mut Printer) -> anyhow::Result<Exit> {
    let row = inbox.find(&show.id)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(&row)?),
        Format::Human => show_whole(&row, printer),
    }
    Ok(Exit::Done)
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
        State::Pending => Style::Caution,
        State::Approved | State::Used => Style::Good,
        State::Declined | State::Dismissed | State::Malformed | State::Revoked | State::Expired => {
            Style::Bad
        }
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
    let mut lines = vec![
        ("id", row.id.clone()),
        ("question", row.prompt.clone()),
        ("arguments", row.arguments.clone()),
        ("risk", format!("{} {}", level.badge(), level.label())),
    ];
    lines.extend(row.risk.reasons.iter().map(|words| ("", words.clone())));
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
}

/// The beginning of an id, enough to tell it from others.
fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_CHARS).collect()
}

/// `2026-01-31 09:05:07` of a moment, UTC.
pub(crate) fn shown_time(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map_or_else(
        |_| "-".to_owned(),
        |moment| moment.strftime("%F %T").to_string(),
    )
}

/// Shows what waits and what comes, until interrupted. At a terminal each is
/// asked about.
fn run_watch(
    engine: &Engine,
    watch: &ApprovalsWatch,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let asks = is_terminal() && printer.format() == Format::Human;
    let mut seen = HashSet::new();
    let mut left = watch.count.unwrap_or(usize::MAX);
    while left > 0 {
        let pending = engine.approvals().list(Listing::Pending)?;
        let still: HashSet<_> = pending.iter().map(|row| row.id.clone()).collect();
        // What is over is forgotten, so that a long watch stays small.
        seen.retain(|id| still.contains(id));
        let new = pending.iter().filter(|row| seen.insert(row.id.clone()));
        for row in new.take(left).collect::<Vec<_>>() {
            left -= 1;
            match printer.format() {
                Format::Json => printer.line(&serde_json::to_string(row)?),
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

/// Asks about one question. The answer is whether there is still somebody there.
fn asked(engine: &Engine, row: &Listed, printer: &mut Printer) -> anyhow::Result<bool> {
    let level = row.risk.level;
    let words = format!(
        "{}  [risk {} {}] {} wants to run {}\n{}\narguments: {}\nrisk: {}",
        short(&row.id),
        level.badge(),
        level.label(),
        one_line(&row.caller),
        one_line(&row.tool),
        one_line(&row.prompt),
        one_line(&row.arguments),
        one_line(&row.risk.reasons.join("; ")),
    );
    let Some(answer) = typed(&words, &row.scopes, TypedAhead::Dropped) else {
        return Ok(false);
    };
    let inbox = engine.approvals();
    let owner = Caller::owner();
    let given = match answer {
        Answer::Approved(scope) => inbox.approve(&row.id, &owner, scope, None),
        _ => inbox.deny(&row.id, &owner, None),
    };
    match given {
        Ok(row) => show_line(&row, printer),
        Err(fault) => {
            refused(fault, printer)?;
        }
    }
    Ok(true)
}

/// Whether a person sits here.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether keys pressed before a question was shown can answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypedAhead {
    /// The question is about the command that was just typed here.
    Counts,
    /// Somebody else's call: nobody can have meant it.
    Dropped,
}

/// Shows a question and reads the answer; nothing when there is no more input.
fn typed(words: &str, scopes: &[Scope], ahead: TypedAhead) -> Option<Answer> {
    let keys: Vec<_> = scopes
        .iter()
        .copied()
        .map(|scope| (key(scope), scope))
        .collect();
    let mut choices: Vec<_> = keys
        .iter()
        .map(|(key, scope)| format!("{key} = yes, for {}", scope.meaning()))
        .collect();
    choices.push("anything else = no".to_owned());
    let choices = choices.join("; ");
    loop {
        let _ = writeln!(io::stderr(), "{words}");
        if ahead == TypedAhead::Dropped && drop_typed().ok()? {
            let _ = writeln!(
                io::stderr(),
                "what was typed before the question does not count"
            );
        }
        let _ = write!(io::stderr(), "[{choices}] ");
        let shown = Instant::now();
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        let line = line.trim();
        if ahead == TypedAhead::Dropped && shown.elapsed() < READING_MIN {
            let _ = writeln!(io::stderr(), "that was too fast to be meant; once more:");
            continue;
        }
        let line = if line == "yes" { "y" } else { line };
        let chosen = keys.iter().find(|(key, _)| line.eq_ignore_ascii_case(key));
        return Some(match chosen {
            Some((_, scope)) => Answer::Approved(*scope),
            None => Answer::Declined,
        });
    }
}

/// Forgets what the terminal holds and nobody has read. The answer is whether there
/// was anything. A clock alone cannot tell: on a busy machine an old key is read late.
fn drop_typed() -> io::Result<bool> {
    let input = io::stdin();
    let had_any = rustix::io::ioctl_fionread(&input)? > 0;
    rustix::termios::tcflush(&input, QueueSelector::IFlush)?;
    Ok(had_any)
}

fn key(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "y",
        Scope::SameArguments => "a",
        Scope::Session => "s",
        Scope::UntilChanged => "u",
    }
}

/// The person at the terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Approver for Terminal {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let (words, scopes) = (question.text(), question.scopes.clone());
        Box::pin(async move {
            let typed = move || typed(&words, &scopes, TypedAhead::Counts);
            match tokio::task::spawn_blocking(typed).await {
                Ok(Some(answer)) => answer,
                Ok(None) => Answer::Dismissed,
                Err(_) => Answer::Unavailable,
            }
        })
    }
}
