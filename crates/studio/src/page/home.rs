//! What needs attention, what happens now, what to try first; and whether this machine is
//! sound.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::health::{Health, HealthCheck};
use engine::{AuditEntry, AuditItem, Filter};
use model::document::safety::Source;
use model::record::audit::Status;
use model::text;
use model::time::MINUTE_MS;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::audit::{self, AuditRow};
use super::tool::is_exposed;
use super::{caller, server};
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::request::Asked;
use crate::studio::Studio;

/// Minutes of the picture of now.
const MINUTES: i64 = 60;
/// Calls that are looked at for tools that fail.
const RECENT_MAX: usize = 500;
/// Of the last calls of a tool, how many are looked at, and how many failed make it a
/// failing one.
const FAILING: (usize, usize) = (5, 3);

/// The first page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HomeView {
    attention: Vec<AttentionView>,
    steps: Vec<StepView>,
    per_minute: Vec<MinuteView>,
    recent: Vec<AuditRow>,
    counts: CountsView,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AttentionView {
    kind: &'static str,
    severity: &'static str,
    message: String,
    link: String,
    count: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepView {
    id: &'static str,
    title: &'static str,
    done: bool,
    link: &'static str,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MinuteView {
    at_ms: i64,
    calls: u64,
    refused: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CountsView {
    waiting: usize,
    tools: usize,
    exposed: usize,
    servers: usize,
    servers_held: usize,
    callers: usize,
}

pub(crate) async fn home(studio: Studio, _: Asked) -> ApiResult<HomeView> {
    let health = examine(&studio, false).await;
    let made = tokio::task::spawn_blocking(move || made(&studio, &health.1)).await;
    made.unwrap_or_else(|_| Err(ApiError::unavailable("the server could not do that")))
}

fn made(studio: &Studio, health: &Health) -> ApiResult<HomeView> {
    let engine = studio.engine();
    let filter = Filter {
        limit: Some(RECENT_MAX),
        ..Filter::default()
    };
    let failed = |fault: engine::StoreError| studio.alarm("the audit cannot be read", &fault);
    let calls = engine.store().audit().list(&filter).map_err(failed)?;
    let waiting = engine.approvals().pending_ids().map_err(failed)?.len();
    let callers = caller::count(studio)?;
    let now = engine.registry().current();
    let servers: Vec<_> = now
        .servers()
        .servers()
        .iter()
        .map(|(name, view)| server::row(name, view))
        .collect();
    let environment = engine.environment().unwrap_or_default();
    let exposed = now
        .tools()
        .filter(|tool| is_exposed(&now, tool, &environment));
    let has_own = now.tools().any(|tool| tool.source == Source::User);
    let counts = CountsView {
        waiting,
        tools: now.tools().count(),
        exposed: exposed.count(),
        servers: servers.len(),
        servers_held: servers.iter().filter(|row| row.held() > 0).count(),
        callers,
    };
    let mut attention = Vec::new();
    if waiting > 0 {
        attention.push(AttentionView {
            kind: "question",
            severity: "ask",
            message: format!("{} for an answer", waits(waiting)),
            link: "/inbox".to_owned(),
            count: waiting,
        });
    }
    attention.extend(servers.iter().filter_map(server_attention));
    attention.extend(failing(&calls));
    attention.extend(unsound(health));
    let is_connected = calls
        .iter()
        .any(|entry| entry.opening.origin == model::caller::Origin::Mcp);
    let steps = [
        ("connect", "Connect a client", is_connected, "/connect"),
        ("call", "Call a tool", !calls.is_empty(), "/inspector"),
        ("write", "Write a tool", has_own, "/tools/new"),
    ];
    let recent = calls.iter().take(10).cloned();
    let recent = recent.map(|entry| audit::row(&AuditItem::Call(Box::new(entry))));
    Ok(HomeView {
        attention,
        steps: steps
            .into_iter()
            .map(|(id, title, done, link)| StepView {
                id,
                title,
                done,
                link,
            })
            .collect(),
        per_minute: per_minute(&calls),
        recent: recent.collect(),
        counts,
    })
}

fn waits(count: usize) -> String {
    match count {
        1 => "1 call waits".to_owned(),
        count => format!("{count} calls wait"),
    }
}

fn server_attention(row: &server::ServerRow) -> Option<AttentionView> {
    let (severity, message) = match (row.fault(), row.held()) {
        (Some(why), _) => ("error", format!("{} is stopped: {why}", row.name())),
        (None, 0) => return None,
        (None, held) => (
            "warn",
            format!(
                "{}: {} held until you review it",
                row.name(),
                text::count(held, "tool")
            ),
        ),
    };
    Some(AttentionView {
        kind: "server",
        severity,
        message,
        link: format!("/servers/{}", row.name()),
        count: row.held().max(1),
    })
}

/// Tools of which most of the last calls failed.
fn failing(calls: &[AuditEntry]) -> Vec<AttentionView> {
    let (looked_at, failed_min) = FAILING;
    let mut last: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for entry in calls {
        let Some(closing) = &entry.closing else {
            continue;
        };
        let seen = last.entry(entry.opening.tool.as_str()).or_default();
        if seen.len() < looked_at && closing.tool.is_some() {
            seen.push(matches!(closing.status, Status::Failed | Status::Crashed));
        }
    }
    let failing = last.into_iter().filter_map(|(tool, seen)| {
        let failed = seen.iter().filter(|failed| **failed).count();
        let tool = text::one_line(tool);
        (failed >= failed_min).then(|| AttentionView {
            kind: "tool",
            severity: "warn",
            message: format!("{tool} failed in {failed} of its last {} calls", seen.len()),
            link: format!("/audit?tool={}&status=failed", escaped(&tool)),
            count: failed,
        })
    });
    failing.collect()
}

/// Text as a part of an address.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                escaped.push(char::from(byte));
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

fn unsound(health: &Health) -> Vec<AttentionView> {
    let checks = health.checks();
    let wrong = checks
        .iter()
        .filter(|check| !check.is_up && check.is_required);
    let view = |check: &HealthCheck| AttentionView {
        kind: "health",
        severity: "error",
        message: format!(
            "{}: {}",
            text::one_line(&check.name),
            text::one_line(check.reason.as_deref().unwrap_or(&check.says))
        ),
        link: "/health".to_owned(),
        count: 1,
    };
    wrong.map(view).collect()
}

fn per_minute(calls: &[AuditEntry]) -> Vec<MinuteView> {
    let now_ms = engine::now_ms();
    let last = now_ms - now_ms.rem_euclid(MINUTE_MS);
    let mut minutes: BTreeMap<i64, MinuteView> = BTreeMap::new();
    for back in 0..MINUTES {
        let at_ms = last - back * MINUTE_MS;
        let empty = MinuteView {
            at_ms,
            ..MinuteView::default()
        };
        minutes.insert(at_ms, empty);
    }
    for entry in calls {
        let at_ms = entry.opening.at_ms;
        if let Some(minute) = minutes.get_mut(&(at_ms - at_ms.rem_euclid(MINUTE_MS))) {
            minute.calls += 1;
            let status = entry.closing.as_ref().map(|closing| closing.status);
            minute.refused += u64::from(status == Some(Status::Refused));
        }
    }
    minutes.into_values().collect()
}

/// The examination of this machine: a recent one, or another.
async fn examine(studio: &Studio, is_fresh: bool) -> (Instant, Arc<Health>) {
    let mut kept = studio.inner.health.lock().await;
    let lasts = Duration::from_secs(limit::HEALTH_SECONDS_MAX);
    if let Some((at, health)) = kept
        .as_ref()
        .filter(|(at, _)| !is_fresh && at.elapsed() < lasts)
    {
        return (*at, Arc::clone(health));
    }
    let health = Arc::new(studio.engine().health().await);
    let examined = (Instant::now(), health);
    *kept = Some((examined.0, Arc::clone(&examined.1)));
    examined
}

/// Whether this machine is sound.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HealthView {
    ok: bool,
    checks: Vec<CheckRow>,
    landlock_abi: Option<i64>,
    first_result_ms: Option<f64>,
    checked_at_ms: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CheckRow {
    group: &'static str,
    name: String,
    ok: bool,
    required: bool,
    says: String,
    reason: Option<String>,
    fix: Option<String>,
}

pub(crate) async fn health(studio: Studio, asked: Asked) -> ApiResult<HealthView> {
    let (at, health) = examine(&studio, asked.flag("fresh")?.unwrap_or(false)).await;
    let ago = i64::try_from(at.elapsed().as_millis()).unwrap_or(0);
    let row = |check: &HealthCheck| CheckRow {
        group: check.group,
        name: text::one_line(&check.name),
        ok: check.is_up,
        required: check.is_required,
        says: text::one_line(&check.says),
        reason: check.reason.as_deref().map(text::one_line),
        fix: check.fix.as_deref().map(text::one_line),
    };
    Ok(HealthView {
        ok: health.is_sound(),
        checks: health.checks().iter().map(row).collect(),
        landlock_abi: serde_json::to_value(health.walls.landlock_abi)
            .ok()
            .and_then(|abi| abi.as_i64()),
        first_result_ms: health.probe.as_ref().ok().copied(),
        checked_at_ms: engine::now_ms() - ago,
    })
}
