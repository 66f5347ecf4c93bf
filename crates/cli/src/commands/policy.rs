//! `ringfence policy`: shows the rules in force, checks them, and replays recorded calls
//! under other rules.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use engine::policy_admin::places;
use engine::registry::{CONFIG_FILE, Snapshot};
use engine::replay::{Change, Replayed};
use engine::settings::{Candidate, Settings};
use engine::{Engine, EngineError};
use model::caller::Caller;
use model::govern::rules::Rule;
use model::govern::rules::lint::LintFinding;
use model::nearest::nearest;
use model::text::{count, one_line};
use model::word::Word as _;
use serde_json::{Value, json};
use store::Filter;

use crate::arguments::{Policy, PolicyCommand, PolicyLint, PolicyShow, PolicyTest};
use crate::commands::audit::moment;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::source;
use crate::wiring;

mod stands;

use stands::Stands;

/// Call ids named for each group of changes.
const GROUP_IDS_MAX: usize = 3;

pub(crate) fn run(arguments: &Policy, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(arguments.home())?;
    match &arguments.command {
        PolicyCommand::Show(show) => run_show(&engine, show, printer),
        PolicyCommand::Lint(lint) => run_lint(&engine, lint, printer),
        PolicyCommand::Test(test) => run_test(&engine, test, printer),
    }
}

fn run_show(engine: &Engine, show: &PolicyShow, printer: &mut Printer) -> anyhow::Result<Exit> {
    let caller = show.caller.as_deref().map(|name| match Caller::owner() {
        owner if owner.name == name => owner,
        _ => Caller::named(name),
    });
    let now = match &caller {
        None => engine.registry().current(),
        Some(caller) => {
            let now = engine.current_for(caller);
            now.context("the caller's trust level is unknown")?
        }
    };
    let stands = caller
        .as_ref()
        .map(|caller| Stands::of(&now.config, caller));
    let concerns = |rule: &&Rule| match &stands {
        Some(stands) => rule.concerns(stands.caller, &stands.rights.groups),
        None => true,
    };
    let mut rules: Vec<_> = now.config.rules.list.iter().filter(concerns).collect();
    keep_named(&mut rules, &show.rules)?;
    // The order in a file has no meaning; the strongest rule decides.
    rules.sort_by(|one, two| two.effect.cmp(&one.effect).then(one.id.cmp(&two.id)));
    let places = places(&now.settings, CONFIG_FILE);
    let at = |rule: &Rule| places.get(&rule.id).cloned().unwrap_or_default();
    let ask_from = now.config.rules.ask_from.badge();
    if printer.format() == Format::Json {
        let rules = rules.iter().map(|rule| {
            json!({
                "id": rule.id, "effect": rule.effect.word(), "words": rule.words(),
                "source": at(rule),
            })
        });
        printer.json(&json!({
            "rules": rules.collect::<Vec<_>>(),
            "askFrom": ask_from,
            "standing": stands.as_ref().map(Stands::to_json),
            "shadow": now.config.shadow,
        }));
        return Ok(Exit::Done);
    }
    if let Some(stands) = &stands {
        stands.show(printer);
    }
    for rule in rules {
        let id = printer.styled(Style::Bold, &rule.id);
        let source = printer.styled(Style::Dim, &format!("# {}", at(rule)));
        printer.line(&format!("{id}  {}  {source}", one_line(&rule.words())));
    }
    printer.line(&format!(
        "where no rule matches, tools that leave approval to the rules need it from {ask_from} up"
    ));
    show_candidate(&now.settings, printer);
    Ok(Exit::Done)
}

/// Keeps the rules that were named; one that is not there is an error.
fn keep_named(rules: &mut Vec<&Rule>, named: &[String]) -> anyhow::Result<()> {
    for name in named {
        if !rules.iter().any(|rule| rule.id == *name) {
            let known = rules.iter().map(|rule| rule.id.as_str());
            let hint = nearest(name, known).map(|id| format!("; did you mean `{id}`?"));
            bail!(
                "there is no rule `{}`{}",
                one_line(name),
                hint.unwrap_or_default()
            );
        }
    }
    if !named.is_empty() {
        rules.retain(|rule| named.contains(&rule.id));
    }
    Ok(())
}

fn show_candidate(settings: &Settings, printer: &mut Printer) {
    match &settings.shadow {
        None => {}
        Some(Candidate::Good { file, .. }) => printer.line(&format!(
            "`{}` is evaluated alongside them and decides nothing",
            one_line(file)
        )),
        Some(Candidate::Broken { file, .. }) => {
            printer.line(&format!(
                "`{}` cannot be evaluated alongside them",
                one_line(file)
            ));
        }
    }
}

fn run_lint(engine: &Engine, lint: &PolicyLint, printer: &mut Printer) -> anyhow::Result<Exit> {
    let now = engine.registry().current();
    let settings = match &lint.file {
        None => Arc::clone(&now.settings),
        Some(path) => match candidate(&now, path)? {
            Ok(settings) => settings,
            Err(fault) => return Ok(unreadable(&fault, printer)),
        },
    };
    let findings = engine.lint(&settings)?;
    let rules = &settings.config.rules;
    let has_errors = findings.iter().any(|finding| finding.kind.is_error());
    let file = match &lint.file {
        None => CONFIG_FILE.to_owned(),
        Some(path) => path.display().to_string(),
    };
    let places = places(&settings, &file);
    show_findings(&findings, &places, rules.list.len(), printer);
    Ok(if has_errors { Exit::No } else { Exit::Done })
}

fn show_findings(
    findings: &[LintFinding],
    places: &BTreeMap<String, String>,
    rules: usize,
    printer: &mut Printer,
) {
    let at = |finding: &LintFinding| match &finding.place {
        Some(place) => place.clone(),
        None => places.get(&finding.rule).cloned().unwrap_or_default(),
    };
    let severity = |finding: &LintFinding| match finding.kind.is_error() {
        true => "error",
        false => "warning",
    };
    if printer.format() == Format::Json {
        let shown = findings.iter().map(|finding| {
            json!({
                "rule": finding.rule, "kind": finding.kind.word(), "severity": severity(finding),
                "message": finding.message, "source": at(finding),
            })
        });
        printer.json(&Value::Array(shown.collect()));
        return;
    }
    for finding in findings {
        let style = match finding.kind.is_error() {
            true => Style::Bad,
            false => Style::Caution,
        };
        printer.line(&format!(
            "{}  {}[{}] `{}`: {}",
            at(finding),
            printer.styled(style, severity(finding)),
            finding.kind.word(),
            finding.rule,
            one_line(&finding.message)
        ));
    }
    if findings.is_empty() {
        let rules = count(rules, "rule");
        printer.line(&format!("{rules}, no findings"));
    }
}

/// A file that cannot be read as rules is a finding too.
fn unreadable(fault: &EngineError, printer: &mut Printer) -> Exit {
    let text = fault.to_string();
    if printer.format() == Format::Json {
        let shown = text.lines().map(|line| {
            json!({
                "rule": null, "kind": "unreadable", "severity": "error", "message": line,
                "source": null,
            })
        });
        printer.json(&Value::Array(shown.collect()));
        return Exit::No;
    }
    for line in text.lines() {
        let word = printer.styled(Style::Bad, "error");
        printer.line(&format!("{word}[unreadable] {}", one_line(line)));
    }
    Exit::No
}

/// The settings as they would be with a file in force.
fn candidate(now: &Snapshot, path: &Path) -> anyhow::Result<Result<Arc<Settings>, EngineError>> {
    let text = source::small_text(path).context("could not read the rules")?;
    Ok(now.settings.candidate(path, &text).map(Arc::new))
}

fn run_test(engine: &Engine, test: &PolicyTest, printer: &mut Printer) -> anyhow::Result<Exit> {
    let now = engine.registry().current();
    let settings = candidate(&now, &test.file)??;
    engine.registry().check_names(&settings)?;
    let snapshot = engine.registry().under(&settings)?;
    let filter = Filter {
        tool: test.tool.clone(),
        caller: test.caller.clone(),
        since_ms: test.since.as_deref().map(moment).transpose()?,
        ..Filter::default()
    };
    let replayed = engine.replay(&snapshot, &filter)?;
    // Calls that the rules in force allow too are no change.
    let looser = replayed
        .changes
        .iter()
        .filter(|it| it.loosens_live())
        .count();
    match printer.format() {
        Format::Json => printer.json(&replayed_json(&replayed, looser)),
        Format::Human => show_replayed(&replayed, looser, printer),
    }
    Ok(if looser > 0 { Exit::No } else { Exit::Done })
}

/// Changes with everything in common.
fn groups(changes: &[Change]) -> BTreeMap<String, Vec<&Change>> {
    let mut groups: BTreeMap<String, Vec<&Change>> = BTreeMap::new();
    for change in changes {
        let by = |rule: &Option<String>| match rule {
            Some(rule) => format!("rule {rule}"),
            None => "no rule".to_owned(),
        };
        // Changes that allow more come first.
        let word = match change.after.cmp(&change.live) {
            Ordering::Less => "looser",
            Ordering::Equal => "as now",
            Ordering::Greater => "tighter",
        };
        let group = format!(
            "{word}  {} ({}), now {} → {} ({})  {}  by {}",
            change.before.word(),
            by(&change.before_rule),
            change.live.word(),
            change.after.word(),
            by(&change.after_rule),
            one_line(&change.tool),
            one_line(&change.caller),
        );
        groups.entry(group).or_default().push(change);
    }
    groups
}

fn show_replayed(replayed: &Replayed, looser: usize, printer: &mut Printer) {
    for (group, changes) in groups(&replayed.changes) {
        printer.line(&format!("{group}  {}", count(changes.len(), "call")));
        if let Some(first) = changes.first() {
            printer.line(&format!("    {}", one_line(&first.reason)));
        }
        let ids: Vec<_> = changes
            .iter()
            .take(GROUP_IDS_MAX)
            .map(|change| change.call_id.as_str())
            .collect();
        let more = changes.len().saturating_sub(ids.len());
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        printer.line(&format!("    {}{more}", ids.join(", ")));
    }
    printer.line(&format!(
        "{} of {} calls decided again, {} differ, {looser} looser than the rules in force",
        replayed.decided,
        replayed.calls,
        replayed.changes.len()
    ));
    for (missing, calls) in &replayed.missing {
        printer.line(&format!(
            "{calls} could not be decided again: {}",
            missing.words()
        ));
    }
}

fn replayed_json(replayed: &Replayed, looser: usize) -> Value {
    let changes = replayed.changes.iter().map(|change| {
        json!({
            "callId": change.call_id, "tool": change.tool, "caller": change.caller,
            "before": change.before.word(), "beforeRule": change.before_rule,
            "live": change.live.word(),
            "after": change.after.word(), "afterRule": change.after_rule,
            "reason": change.reason, "loosens": change.loosens_live(),
        })
    });
    let groups = groups(&replayed.changes).into_iter();
    let groups: BTreeMap<_, _> = groups.map(|(group, of)| (group, of.len())).collect();
    json!({
        "calls": replayed.calls,
        "decided": replayed.decided,
        "looser": looser,
        "changes": changes.collect::<Vec<_>>(),
        "groups": groups,
        "notDecided": replayed.missing,
    })
}
