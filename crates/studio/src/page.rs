//! The API, part by part. Each part asks the engine and puts what it says into the shape
//! that pages read; the words are the engine's.

/// The audit.
pub(crate) mod audit;
/// Callers, and their keys.
mod caller;
/// How clients connect.
mod connect;
/// What needs attention, and whether this machine is sound.
mod home;
/// Questions for people.
pub(crate) mod inbox;
/// Calls a person makes to see what happens.
mod inspector;
/// How many calls, how long, why refused.
mod numbers;
/// The rules, and what others would have decided.
mod policy;
/// Variables that are secrets.
mod secret;
/// Other people's MCP servers.
mod server;
/// Tools and their documents.
mod tool;
/// What several parts show.
mod view;

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::route::{ANSWER, CHANGE, Route, VIEW};

/// No more to say than that it was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoneView {
    pub(crate) ok: bool,
}

impl DoneView {
    pub(crate) const OK: DoneView = DoneView { ok: true };
}

/// A body that says nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Every route but those of sessions.
pub(crate) fn routes() -> Vec<Route> {
    let mut all = vec![Route::get(
        "/api/v1/reasons",
        VIEW,
        "Every reason code and what it means",
        &[],
        |_, _| Ok(view::reasons()),
    )];
    all.extend(home_routes());
    all.extend(inbox_routes());
    all.extend(tool::routes());
    all.extend(audit_routes());
    all.extend(inspector::routes());
    all.extend(policy::routes());
    all.extend(caller::routes());
    all.extend(server::routes());
    all.extend(other_routes());
    all
}

fn home_routes() -> Vec<Route> {
    vec![
        Route::get_later(
            "/api/v1/home",
            VIEW,
            "What needs attention, what happens now, what to try first",
            &[],
            home::home,
        ),
        Route::get_later(
            "/api/v1/health",
            VIEW,
            "Whether every layer of this machine is up",
            &["fresh"],
            home::health,
        ),
    ]
}

fn inbox_routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/inbox",
            VIEW,
            "The questions that wait, or all of them",
            &["state", "cursor", "limit"],
            inbox::list,
        ),
        Route::get(
            "/api/v1/inbox/{id}",
            VIEW,
            "One question with everything that belongs to it",
            &[],
            |studio, asked| inbox::question(studio, asked.part("id")),
        ),
        Route::send(
            Method::POST,
            "/api/v1/inbox/{id}/answer",
            ANSWER,
            "Answers a question",
            inbox::answer,
        ),
        Route::send(
            Method::POST,
            "/api/v1/inbox/{id}/preview",
            ANSWER,
            "What the call would be with other arguments",
            inbox::preview,
        ),
        Route::send(
            Method::POST,
            "/api/v1/inbox/{id}/revoke",
            ANSWER,
            "Takes an approval back",
            inbox::revoke,
        ),
    ]
}

fn audit_routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/audit",
            VIEW,
            "Calls and notices, the newest first",
            audit::FILTERS,
            audit::list,
        ),
        Route::get(
            "/api/v1/audit/{id}",
            VIEW,
            "One call or notice with everything recorded about it",
            &[],
            audit::show,
        ),
        Route::get(
            "/api/v1/audit/{id}/raw",
            VIEW,
            "Its records as they stand in the log",
            &[],
            audit::raw,
        ),
        Route::send(
            Method::POST,
            "/api/v1/audit/verify",
            VIEW,
            "Verifies the whole chain",
            audit::verify,
        ),
        Route::raw(
            Method::GET,
            "/api/v1/audit/export",
            VIEW,
            "Records as lines of JSON, or calls as a table",
            audit::EXPORT_FILTERS,
            audit::export,
        ),
    ]
}

fn other_routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/numbers",
            VIEW,
            "Counts and percentiles over time",
            &["since", "by"],
            numbers::numbers,
        ),
        Route::get(
            "/api/v1/secrets",
            VIEW,
            "The names of variables, where they are used, whether they are set",
            &[],
            secret::list,
        ),
        Route::send(
            Method::PUT,
            "/api/v1/secrets/{name}",
            CHANGE,
            "Sets a variable, whose value is never shown again",
            secret::set,
        ),
        Route::send(
            Method::DELETE,
            "/api/v1/secrets/{name}",
            CHANGE,
            "Removes a variable",
            secret::remove,
        ),
        Route::get(
            "/api/v1/connect",
            VIEW,
            "How each client connects",
            &[],
            connect::clients,
        ),
    ]
}
