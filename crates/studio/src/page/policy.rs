//! The rules: shown with what is wrong with them, others rehearsed on recorded calls, and
//! another text of the operator's file put in force after its difference was seen.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use axum::http::Method;
use engine::Filter;
use engine::life::revision;
use engine::policy_admin::{self, ApplyFault, PlacedFinding};
use engine::registry::CONFIG_FILE;
use engine::settings::Settings;
use model::govern::rules::Rule;
use model::text;
use model::word::Word as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::view::{DiffLine, diff, lines, refused};
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::request::{Asked, note};
use crate::route::{CHANGE, Route, VIEW};
use crate::studio::Studio;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/policy",
            VIEW,
            "The rules in force and what is wrong with them",
            &[],
            show,
        ),
        Route::send(
            Method::PUT,
            "/api/v1/policy",
            CHANGE,
            "Puts another text of the settings in force",
            apply,
        ),
        Route::send(
            Method::POST,
            "/api/v1/policy/lint",
            VIEW,
            "What is wrong with a text of the settings",
            lint,
        ),
        Route::send(
            Method::POST,
            "/api/v1/policy/rehearse",
            VIEW,
            "What a text of the settings would have decided about recorded calls",
            rehearse,
        ),
        Route::send(
            Method::POST,
            "/api/v1/policy/preview",
            VIEW,
            "How a text differs from the settings in force",
            preview,
        ),
    ]
}

/// The rules in force.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyView {
    file: String,
    text: String,
    revision: String,
    rules: Vec<RuleView>,
    ask_from: &'static str,
    shadow: Option<String>,
    findings: Vec<LintView>,
    files: Vec<RuleFileView>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RuleView {
    id: String,
    effect: &'static str,
    words: String,
    source: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LintView {
    rule: String,
    kind: &'static str,
    severity: &'static str,
    message: String,
    source: String,
    line: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RuleFileView {
    name: String,
    text: String,
}

/// The rules of some settings, the strongest first.
pub(crate) fn rules(settings: &Settings, concerns: &dyn Fn(&Rule) -> bool) -> Vec<RuleView> {
    let places = policy_admin::places(settings, CONFIG_FILE);
    let mut rules: Vec<_> = settings
        .config
        .rules
        .list
        .iter()
        .filter(|rule| concerns(rule))
        .collect();
    rules.sort_by(|one, two| two.effect.cmp(&one.effect).then(one.id.cmp(&two.id)));
    let view = |rule: &&Rule| RuleView {
        id: text::one_line(&rule.id),
        effect: rule.effect.word(),
        words: text::one_line(&rule.words()),
        source: places.get(&rule.id).cloned().unwrap_or_default(),
    };
    rules.iter().map(view).collect()
}

fn findings(found: &[PlacedFinding]) -> Vec<LintView> {
    let view = |placed: &PlacedFinding| {
        let finding = &placed.finding;
        let line = placed
            .place
            .rsplit_once(':')
            .and_then(|(_, line)| line.parse().ok());
        LintView {
            rule: text::one_line(&finding.rule),
            kind: finding.kind.word(),
            severity: if finding.kind.is_error() {
                "error"
            } else {
                "warning"
            },
            message: text::one_line(&finding.message),
            source: text::one_line(&placed.place),
            line,
        }
    };
    found.iter().map(view).collect()
}

fn show(studio: &Studio, _: &Asked) -> ApiResult<PolicyView> {
    let engine = studio.engine();
    let now = engine.registry().current();
    let found = engine.lint_placed(&now.settings, CONFIG_FILE);
    let found = found.map_err(|fault| refused(studio, &fault))?;
    let files = now.settings.rules.iter().map(|file| RuleFileView {
        name: text::one_line(&file.name),
        text: file.text.clone(),
    });
    Ok(PolicyView {
        file: CONFIG_FILE.to_owned(),
        revision: revision(&now.settings.text),
        rules: rules(&now.settings, &|_| true),
        ask_from: now.config.rules.ask_from.badge(),
        shadow: now.config.shadow.as_ref().map(|file| text::one_line(file)),
        findings: findings(&found),
        files: files.collect(),
        text: now.settings.text.clone(),
    })
}

/// A text of the whole file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextBody {
    text: String,
}

/// What is wrong with a text.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LintList {
    ok: bool,
    findings: Vec<LintView>,
    rules: Vec<RuleView>,
}

fn candidate(studio: &Studio, text: &str) -> Result<Arc<Settings>, Vec<LintView>> {
    let read = studio
        .engine()
        .candidate(Path::new(CONFIG_FILE), Some(text));
    read.map_err(|fault| {
        let words = fault.to_string();
        let view = |line: &str| LintView {
            rule: String::new(),
            kind: "unreadable",
            severity: "error",
            message: text::one_line(line),
            source: String::new(),
            line: line_of(line),
        };
        words.lines().map(view).collect()
    })
}

/// `ringfence.toml:12:3: …` has its line after the name.
fn line_of(words: &str) -> Option<usize> {
    let mut parts = words.split(':').skip(1);
    parts.find_map(|part| part.trim().parse().ok())
}

fn lint(studio: &Studio, _: &Asked, given: TextBody) -> ApiResult<LintList> {
    let settings = match candidate(studio, &given.text) {
        Ok(settings) => settings,
        Err(findings) => {
            return Ok(LintList {
                ok: false,
                findings,
                rules: Vec::new(),
            });
        }
    };
    let found = studio.engine().lint_placed(&settings, CONFIG_FILE);
    let found = found.map_err(|fault| refused(studio, &fault))?;
    Ok(LintList {
        ok: !found.iter().any(|placed| placed.finding.kind.is_error()),
        findings: findings(&found),
        rules: rules(&settings, &|_| true),
    })
}

/// A candidate, and which calls it is held against.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RehearseBody {
    text: String,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    caller: Option<String>,
}

/// What would have been decided.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rehearsal {
    calls: u64,
    decided: u64,
    changed: usize,
    tightened: usize,
    loosened: usize,
    summary: String,
    groups: Vec<GroupView>,
    missing: Vec<MissingView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GroupView {
    kind: &'static str,
    before: &'static str,
    live: &'static str,
    after: &'static str,
    before_rule: Option<String>,
    after_rule: Option<String>,
    tool: String,
    caller: String,
    count: usize,
    reason: String,
    calls: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MissingView {
    why: &'static str,
    count: u64,
}

fn rehearse(studio: &Studio, _: &Asked, given: RehearseBody) -> ApiResult<Rehearsal> {
    let since_ms = match given.since.as_deref().filter(|since| !since.is_empty()) {
        None => None,
        Some(since) => {
            let odd = || ApiError::request("`since` is a length such as `7d`, or a date");
            Some(model::time::moment(since, engine::now_ms()).ok_or_else(odd)?)
        }
    };
    let settings = candidate(studio, &given.text).map_err(|findings| {
        let details = serde_json::json!({ "findings": findings });
        ApiError::invalid("the text cannot be read as settings").with_details(details)
    })?;
    let filter = Filter {
        tool: given.tool.filter(|word| !word.is_empty()),
        caller: given.caller.filter(|word| !word.is_empty()),
        since_ms,
        ..Filter::default()
    };
    let replayed = studio.engine().rehearse(&settings, &filter);
    let replayed = replayed.map_err(|fault| refused(studio, &fault))?;
    let groups = policy_admin::groups(&replayed.changes);
    let count = |than: Ordering| {
        let of = groups.iter().filter(|group| group.than_live == than);
        of.map(|group| group.calls.len()).sum::<usize>()
    };
    let (loosened, tightened) = (count(Ordering::Less), count(Ordering::Greater));
    let changed = loosened + tightened;
    let missing = replayed.missing.iter().map(|(missing, count)| MissingView {
        why: missing.words(),
        count: *count,
    });
    Ok(Rehearsal {
        calls: replayed.calls,
        decided: replayed.decided,
        changed,
        tightened,
        loosened,
        summary: format!(
            "would change {changed} of {} recorded calls: {tightened} tightened, {loosened} loosened",
            replayed.decided
        ),
        missing: missing.collect(),
        groups: groups.iter().map(group).collect(),
    })
}

fn group(group: &policy_admin::ChangeGroup) -> GroupView {
    let one = &group.example;
    GroupView {
        kind: match group.than_live {
            Ordering::Less => "loosened",
            Ordering::Greater => "tightened",
            Ordering::Equal => "same-as-now",
        },
        before: one.before.word(),
        live: one.live.word(),
        after: one.after.word(),
        before_rule: one.before_rule.as_deref().map(text::one_line),
        after_rule: one.after_rule.as_deref().map(text::one_line),
        tool: text::one_line(&one.tool),
        caller: text::one_line(&one.caller),
        count: group.calls.len(),
        reason: text::one_line(&one.reason),
        calls: group
            .calls
            .iter()
            .take(limit::GROUP_CALLS_MAX)
            .cloned()
            .collect(),
    }
}

/// How a text differs from the settings in force.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyPreview {
    ok: bool,
    diff: Vec<DiffLine>,
    widens: Vec<String>,
    findings: Vec<LintView>,
}

fn preview(studio: &Studio, asked: &Asked, given: TextBody) -> ApiResult<PolicyPreview> {
    let now = studio.engine().registry().current();
    let shown = diff(&now.settings.text, &given.text);
    let widens = match candidate(studio, &given.text) {
        Ok(settings) => widened(&now.settings, &settings),
        Err(_) => Vec::new(),
    };
    let linted = lint(studio, asked, given)?;
    Ok(PolicyPreview {
        ok: linted.ok,
        diff: shown,
        widens,
        findings: linted.findings,
    })
}

/// Rules that hold back and are gone or weaker. What else a text widens is in its
/// difference and in the rehearsal.
fn widened(now: &Settings, then: &Settings) -> Vec<String> {
    let after = &then.config.rules.list;
    let weaker = now.config.rules.list.iter().filter_map(|rule| {
        let id = text::one_line(&rule.id);
        match after.iter().find(|other| other.id == rule.id) {
            None => Some(format!(
                "the rule `{id}` is removed: {}",
                text::one_line(&rule.words())
            )),
            Some(other) if other.effect < rule.effect => Some(format!(
                "the rule `{id}` weakens from {} to {}",
                rule.effect.word(),
                other.effect.word()
            )),
            Some(_) => None,
        }
    });
    weaker.collect()
}

/// A text that is to be put in force, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyBody {
    text: String,
    revision: String,
    reason: String,
    confirm: bool,
}

fn apply(studio: &Studio, asked: &Asked, given: ApplyBody) -> ApiResult<PolicyView> {
    if !given.confirm {
        return Err(ApiError::invalid("the change was not confirmed"));
    }
    let reason = note(Some(&given.reason))?;
    let reason = reason.ok_or_else(|| ApiError::invalid("say why, for the audit"))?;
    let who = (asked.actor()?, reason.as_str());
    match studio
        .engine()
        .apply_settings(&given.text, &given.revision, who)
    {
        Ok(()) => show(studio, asked),
        Err(ApplyFault::Changed) => {
            let message = "the settings changed since they were read";
            Err(ApiError::conflict(message, &show(studio, asked)?))
        }
        Err(fault) => Err(applied(studio, &fault)),
    }
}

/// Why a text was not put in force.
pub(crate) fn applied(studio: &Studio, fault: &ApplyFault) -> ApiError {
    match fault {
        ApplyFault::Unfit(why) => ApiError::invalid(lines(why)),
        ApplyFault::Changed => ApiError::conflict(fault.to_string(), &()),
        ApplyFault::Engine(fault) => refused(studio, fault),
    }
}
