//! Callers: what holds for each, what it earned, what it used, pausing it; and its key.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use engine::callers::KnownCaller;
use engine::key_admin::KeyFault;
use engine::{AuditEntry, Filter};
use model::caller::Caller;
use model::govern::access::quota::{RateLimit, UsedLimit};
use model::govern::approval::authority;
use model::govern::key::{KeyRecord, Role};
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{RuleView, rules};
use super::{DoneView, Nothing};
use crate::error::{ApiError, ApiResult};
use crate::request::{Asked, STUDIO, note};
use crate::route::{CHANGE, Route, VIEW};
use crate::studio::Studio;

/// Calls that are counted for the list.
const RECENT_CALLS_MAX: usize = 2_000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/callers",
            VIEW,
            "Every caller that is known",
            &[],
            list,
        ),
        Route::get(
            "/api/v1/callers/{name}",
            VIEW,
            "One caller: what holds for it, what it earned and used",
            &[],
            |studio, asked| show(studio, asked.part("name")),
        ),
        Route::send(
            Method::POST,
            "/api/v1/callers/{name}/pause",
            CHANGE,
            "Holds every call of a caller",
            pause,
        ),
        Route::send(
            Method::POST,
            "/api/v1/callers/{name}/resume",
            CHANGE,
            "Lets the calls of a caller go on",
            resume,
        ),
        Route::send(
            Method::POST,
            "/api/v1/callers/{name}/feedback",
            CHANGE,
            "Keeps what a person says about the work of a caller",
            feedback,
        ),
        Route::get(
            "/api/v1/keys",
            VIEW,
            "The keys of callers, never their text",
            &[],
            keys,
        ),
        Route::send(
            Method::POST,
            "/api/v1/keys",
            CHANGE,
            "Makes a key, shown once",
            make_key,
        ),
        Route::send(
            Method::DELETE,
            "/api/v1/keys/{name}",
            CHANGE,
            "Takes a key back",
            revoke_key,
        ),
        Route::send(
            Method::POST,
            "/api/v1/keys/{name}/rotate",
            CHANGE,
            "Puts another key in its place, shown once",
            rotate_key,
        ),
    ]
}

/// A caller in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallerSummary {
    name: String,
    paused: bool,
    paused_at_ms: Option<i64>,
    paused_by: Option<String>,
    paused_why: Option<String>,
    denied_in_a_row: u32,
    denied_in_all: u32,
    level: Option<&'static str>,
    earned: Option<String>,
    key: Option<KeyView>,
    last_seen_at_ms: Option<i64>,
    calls: usize,
}

/// A key without its text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyView {
    name: String,
    id: String,
    role: &'static str,
    created_ms: i64,
    expires_ms: Option<i64>,
    expired: bool,
}

fn key_view(record: &KeyRecord) -> KeyView {
    KeyView {
        name: record.name.clone(),
        id: record.id.clone(),
        role: record.role.word(),
        created_ms: record.created_ms,
        expires_ms: record.expires_ms,
        expired: record.is_expired(engine::now_ms()),
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallerList {
    items: Vec<CallerSummary>,
}

/// What is known of callers, together.
struct Book {
    known: BTreeMap<String, KnownCaller>,
    keys: BTreeMap<String, KeyRecord>,
    seen: BTreeMap<String, (i64, usize)>,
}

impl Book {
    fn read(studio: &Studio) -> ApiResult<Book> {
        let engine = studio.engine();
        let known = engine.callers().list();
        let known = known.map_err(|fault| studio.alarm("callers cannot be read", &fault))?;
        let keys = engine.keys().and_then(|keys| keys.all());
        let keys = keys.map_err(|fault| studio.alarm("keys cannot be read", &fault))?;
        let filter = Filter {
            limit: Some(RECENT_CALLS_MAX),
            ..Filter::default()
        };
        let recent = engine.store().audit().list(&filter);
        let recent = recent.map_err(|fault| studio.alarm("the audit cannot be read", &fault))?;
        let mut seen: BTreeMap<String, (i64, usize)> = BTreeMap::new();
        for AuditEntry { opening, .. } in &recent {
            let row = seen
                .entry(opening.caller.clone())
                .or_insert((opening.at_ms, 0));
            row.0 = row.0.max(opening.at_ms);
            row.1 += 1;
        }
        let by_name = |record: KeyRecord| (record.name.clone(), record);
        Ok(Book {
            known: known
                .into_iter()
                .map(|one| (one.name.clone(), one))
                .collect(),
            keys: keys.into_iter().map(by_name).collect(),
            seen,
        })
    }

    fn names(&self) -> BTreeSet<String> {
        let known = self.known.keys().chain(self.keys.keys());
        known.chain(self.seen.keys()).cloned().collect()
    }

    fn row(&self, studio: &Studio, name: &str) -> CallerSummary {
        let known = self.known.get(name);
        let seen = self.seen.get(name);
        let now = studio.engine().registry().current();
        // As the gates would see it, so that the page cannot show more than holds.
        let rights = now.config.access.rights(&caller(name), None);
        CallerSummary {
            name: text::one_line(name),
            paused: known.is_some_and(|known| known.paused),
            paused_at_ms: known.and_then(|known| known.paused_at_ms),
            paused_by: known.and_then(|known| known.paused_by.clone()),
            paused_why: known.and_then(|known| known.paused_why.clone()),
            denied_in_a_row: known.map_or(0, |known| known.denied_in_a_row),
            denied_in_all: known.map_or(0, |known| known.denied_in_all),
            level: rights.level.map(model::word::Word::word),
            earned: known.and_then(|known| known.earned.map(str::to_owned)),
            key: self.keys.get(name).map(key_view),
            last_seen_at_ms: seen.map(|(at_ms, _)| *at_ms),
            calls: seen.map_or(0, |(_, calls)| *calls),
        }
    }
}

fn caller(name: &str) -> Caller {
    match Caller::owner() {
        owner if owner.name == name => owner,
        _ => Caller::named(name),
    }
}

/// How many callers there are, as the list has them.
pub(crate) fn count(studio: &Studio) -> ApiResult<usize> {
    Ok(Book::read(studio)?.names().len())
}

fn list(studio: &Studio, _: &Asked) -> ApiResult<CallerList> {
    let book = Book::read(studio)?;
    let names = book.names();
    Ok(CallerList {
        items: names.iter().map(|name| book.row(studio, name)).collect(),
    })
}

/// One caller.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallerView {
    #[serde(flatten)]
    row: CallerSummary,
    standing: Vec<String>,
    trust: Option<TrustView>,
    limits: Vec<LimitView>,
    rules: Vec<RuleView>,
    answers: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TrustView {
    strategy: &'static str,
    covered: bool,
    tracks: Vec<TrackView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TrackView {
    category: Option<String>,
    level: &'static str,
    since_ms: i64,
    question: Option<String>,
    lines: Vec<String>,
}

/// A limit, and how much of it is used now.
#[derive(Debug, Serialize, JsonSchema)]
struct LimitView {
    name: String,
    words: String,
    kinds: Vec<LimitKind>,
}

/// One bound of a limit.
#[derive(Debug, Serialize, JsonSchema)]
struct LimitKind {
    what: &'static str,
    used: u64,
    most: u64,
}

fn limit_view((limit, used): &(RateLimit, UsedLimit)) -> LimitView {
    let kinds = [
        (
            "calls in the last minute",
            used.in_minute,
            limit.calls_per_minute,
        ),
        ("calls at one time", used.running, limit.concurrent),
        (
            "units today, by universal time",
            used.units,
            limit.units_per_day,
        ),
    ];
    let kinds = kinds.into_iter().filter_map(|(what, used, most)| {
        let most = most?;
        Some(LimitKind { what, used, most })
    });
    LimitView {
        name: text::one_line(&limit.id),
        words: text::one_line(&limit.words()),
        kinds: kinds.collect(),
    }
}

fn show(studio: &Studio, name: &str) -> ApiResult<CallerView> {
    let engine = studio.engine();
    let book = Book::read(studio)?;
    if !book.names().contains(name) {
        return Err(ApiError::unknown("there is no record of such a caller"));
    }
    let caller = caller(name);
    let now = engine.registry().current();
    let rights = now.config.access.rights(&caller, None);
    let trust = engine.trust().show(name);
    let trust = trust.map_err(|fault| studio.alarm("trust cannot be read", &fault))?;
    let limits = engine.limits_used(name, &rights.groups);
    let limits = limits.map_err(|fault| studio.alarm("limits cannot be read", &fault))?;
    let concerns = |rule: &model::govern::rules::Rule| rule.concerns(name, &rights.groups);
    Ok(CallerView {
        row: book.row(studio, name),
        standing: standing(&rights),
        trust: trust.map(|report| TrustView {
            strategy: report.strategy,
            covered: report.covered,
            tracks: report
                .tracks
                .into_iter()
                .map(|track| TrackView {
                    category: track.category.as_deref().map(text::one_line),
                    level: track.level,
                    since_ms: track.since_ms,
                    question: track.question,
                    lines: track
                        .lines
                        .iter()
                        .map(|line| text::one_line(line))
                        .collect(),
                })
                .collect(),
        }),
        limits: limits.iter().map(limit_view).collect(),
        rules: rules(&now.settings, &concerns),
        answers: authority::client_up_to(name, &now.config.approvals).map(model::Level::badge),
    })
}

/// What the settings say about a caller, line by line.
fn standing(rights: &model::govern::access::CallerRights) -> Vec<String> {
    let word = |level: &Option<model::govern::access::AccessLevel>| {
        level.map_or("none", model::word::Word::word)
    };
    let list = |words: &[String]| match words.is_empty() {
        true => "none".to_owned(),
        false => text::one_line(&words.join(", ")),
    };
    let mut said = vec![
        format!("level {}", word(&rights.level)),
        format!("autonomy {}", model::word::Word::word(rights.autonomy)),
        format!("groups: {}", list(&rights.groups)),
    ];
    if rights.earned.is_some() {
        said.push(format!(
            "given {}, earned {}",
            word(&rights.given),
            word(&rights.earned)
        ));
    }
    said.push(match &rights.categories {
        None => "categories: all".to_owned(),
        Some(categories) => format!("categories: {}", list(categories)),
    });
    for hosts in &rights.hosts {
        let names: Vec<_> = hosts.hosts.iter().map(ToString::to_string).collect();
        said.push(format!("hosts, by {}: {}", hosts.by, list(&names)));
    }
    said
}

/// What a person says about the work of a caller.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedbackBody {
    /// From 0, bad, to 10, good.
    score: u8,
    /// Of which category of tools; all if it is missing.
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    note: Option<String>,
}

fn feedback(studio: &Studio, asked: &Asked, given: FeedbackBody) -> ApiResult<CallerView> {
    let name = asked.part("name");
    if given.score > 10 {
        return Err(ApiError::invalid("a score is a number from 0 to 10"));
    }
    // Before it is kept: is there such a caller?
    // Otherwise a mistyped name would become a caller with nothing but an opinion about it.
    show(studio, name)?;
    let category = note(given.category.as_deref())?;
    let said = note(given.note.as_deref())?;
    let by = asked.person()?.answerer();
    let trust = studio.engine().trust();
    let kept = trust.feedback(name, &by, given.score, category.as_deref(), said.as_deref());
    match kept.map_err(|fault| studio.alarm("the feedback could not be kept", &fault))? {
        true => show(studio, name),
        false => Err(ApiError::invalid(
            "there are too many callers; no room for another",
        )),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseBody {
    #[serde(default)]
    note: Option<String>,
}

fn pause(studio: &Studio, asked: &Asked, given: PauseBody) -> ApiResult<CallerView> {
    let name = asked.part("name");
    let why = note(given.note.as_deref())?;
    let callers = studio.engine().callers().through(STUDIO);
    let paused = callers.pause(name, &asked.person()?.answerer(), why.as_deref());
    match paused.map_err(|fault| studio.alarm("the caller was not paused", &fault))? {
        Some(_) => show(studio, name),
        None => Err(ApiError::invalid(
            "there are too many callers; no room for another",
        )),
    }
}

fn resume(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<CallerView> {
    let name = asked.part("name");
    let callers = studio.engine().callers().through(STUDIO);
    let resumed = callers.resume(name, &asked.person()?.answerer());
    resumed.map_err(|fault| studio.alarm("the caller was not resumed", &fault))?;
    show(studio, name)
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeyList {
    items: Vec<KeyView>,
}

fn keys(studio: &Studio, _: &Asked) -> ApiResult<KeyList> {
    let keys = studio.engine().keys().and_then(|keys| keys.all());
    let keys = keys.map_err(|fault| studio.alarm("keys cannot be read", &fault))?;
    Ok(KeyList {
        items: keys.iter().map(key_view).collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyBody {
    name: String,
    role: RoleWord,
    #[serde(default)]
    days: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RoleWord {
    Agent,
    Operator,
}

/// A key with its text, the only time it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NewKey {
    #[serde(flatten)]
    row: KeyView,
    key: String,
}

fn make_key(studio: &Studio, asked: &Asked, given: KeyBody) -> ApiResult<NewKey> {
    let role = match given.role {
        RoleWord::Agent => Role::Agent,
        RoleWord::Operator => Role::Operator,
    };
    let made = studio
        .engine()
        .make_key(&given.name, role, given.days, asked.actor()?);
    let (record, secret) = made.map_err(|fault| key_fault(studio, &fault))?;
    Ok(NewKey {
        row: key_view(&record),
        // The only time it leaves the server. The store has a digest alone.
        key: secret.reveal().to_owned(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateBody {
    #[serde(default)]
    days: Option<u32>,
}

fn rotate_key(studio: &Studio, asked: &Asked, given: RotateBody) -> ApiResult<NewKey> {
    let made = studio
        .engine()
        .rotate_key(asked.part("name"), given.days, asked.actor()?);
    let (record, secret) = made.map_err(|fault| key_fault(studio, &fault))?;
    Ok(NewKey {
        row: key_view(&record),
        key: secret.reveal().to_owned(),
    })
}

fn revoke_key(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<DoneView> {
    let revoked = studio
        .engine()
        .revoke_key(asked.part("name"), asked.actor()?);
    revoked.map_err(|fault| key_fault(studio, &fault))?;
    Ok(DoneView::OK)
}

fn key_fault(studio: &Studio, fault: &KeyFault) -> ApiError {
    match fault {
        KeyFault::Unknown { .. } | KeyFault::JustRevoked(_) => ApiError::unknown(fault.to_string()),
        KeyFault::Name(_) | KeyFault::Taken(_) | KeyFault::Full | KeyFault::IdTaken => {
            ApiError::invalid(fault.to_string())
        }
        KeyFault::Random | KeyFault::Unrecorded(_) | KeyFault::Store(_) => {
            studio.alarm("the key was not changed", fault)
        }
    }
}
