//! Calls a person makes to see what happens: through the one path of a call, with the door
//! `studio`; explaining one that is not made; and code mode's scratchpad.

use std::time::Duration;

use axum::http::Method;
use engine::call::CallRequest;
use engine::native::Native;
use model::caller::{Caller, Origin};
use model::config::ScriptPreset;
use model::record::outcome::Outcome;
use model::sync::lock;
use model::text;
use model::word::Word as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::audit::{AuditRow, children_of};
use super::view::{CallErrorView, ConsoleView, GateView, console, gates};
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::request::Asked;
use crate::route::{CHANGE, Route, VIEW};
use crate::studio::Studio;

mod globals;
mod message;

use message::{EraMessages, eras};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/inspector/globals",
            VIEW,
            "The globals that code has, for completion",
            &[],
            globals::globals,
        ),
        Route::send_later(
            Method::POST,
            "/api/v1/inspector/call",
            CHANGE,
            "Calls a tool through every gate",
            call,
        ),
        Route::send(
            Method::POST,
            "/api/v1/inspector/cancel",
            CHANGE,
            "Cancels such a call",
            cancel,
        ),
        Route::send(
            Method::POST,
            "/api/v1/inspector/explain",
            VIEW,
            "What every gate says about a call that is not made",
            explain,
        ),
        Route::send(
            Method::POST,
            "/api/v1/inspector/script/check",
            VIEW,
            "What the guard says about a script; nothing runs",
            check_script,
        ),
        Route::send_later(
            Method::POST,
            "/api/v1/inspector/script/run",
            CHANGE,
            "Runs a script",
            run_script,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallBody {
    tool: String,
    arguments: Value,
    /// The page's own name for the call, to cancel it by.
    #[serde(default)]
    id: Option<String>,
}

/// What a call came to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallView {
    call_id: String,
    status: &'static str,
    result: Option<Value>,
    result_text: Option<String>,
    result_bytes: usize,
    content: Vec<Value>,
    structured: Option<Value>,
    error: Option<CallErrorView>,
    notes: Vec<String>,
    console: Vec<ConsoleView>,
    elapsed_ms: f64,
    /// The messages of the protocol for the same call, the newest era first.
    eras: Vec<EraMessages>,
}

/// A call that is under way can be cancelled by its name until this is dropped.
struct UnderWay {
    studio: Studio,
    id: Option<String>,
    cancel: CancellationToken,
}

impl UnderWay {
    fn begin(studio: &Studio, id: Option<String>) -> ApiResult<UnderWay> {
        let cancel = CancellationToken::new();
        let mut calls = lock(&studio.inner.calls);
        if calls.len() >= limit::CALLS_MAX {
            return Err(ApiError::unavailable(
                "too many calls are under way from here",
            ));
        }
        // One without a name counts too.
        let name = id.unwrap_or_else(|| format!("unnamed {:p}", &cancel));
        if name.len() > 100 || calls.contains_key(&name) {
            return Err(ApiError::invalid(
                "the name of the call is taken or too long",
            ));
        }
        calls.insert(name.clone(), cancel.clone());
        drop(calls);
        Ok(UnderWay {
            studio: studio.clone(),
            id: Some(name),
            cancel,
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // A page that left cancels its call.
        self.cancel.cancel();
        if let Some(id) = self.id.take() {
            lock(&self.studio.inner.calls).remove(&id);
        }
    }
}

async fn call(studio: Studio, asked: Asked, given: CallBody) -> ApiResult<CallView> {
    let caller = asked.person()?.answerer();
    let under_way = UnderWay::begin(&studio, given.id)?;
    let request = request(caller, (&given.tool, given.arguments.clone()), &under_way);
    let outcome = studio.engine().call(request).await.into_inner();
    let version = studio.inner.settings.version;
    Ok(call_view((&given.tool, &given.arguments), outcome, version))
}

/// As the person who asks: the one with the one-time code is the owner, and others call by
/// their own name.
fn request(caller: Caller, (tool, arguments): (&str, Value), under_way: &UnderWay) -> CallRequest {
    let mut request = CallRequest::new(caller, Origin::Studio, tool, arguments);
    request.cancel = under_way.cancel.clone();
    request.deadline = Some(Duration::from_secs(limit::CALL_SECONDS_MAX));
    request
}

fn call_view((tool, arguments): (&str, &Value), outcome: Outcome, version: &str) -> CallView {
    let text_of = outcome.value.as_ref().map(|value| {
        let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
        text::json_line(&pretty)
    });
    let bytes = text_of.as_ref().map_or(0, String::len);
    let (content, structured) = match &outcome.relayed {
        Some(relayed) => (relayed.content.clone(), relayed.structured.clone()),
        None => {
            let words = match &outcome.error {
                Some(error) => format!("{} [{}]", error.message, error.reason.code()),
                None => outcome.text(),
            };
            (
                vec![json!({"type": "text", "text": words})],
                outcome.value.clone(),
            )
        }
    };
    CallView {
        // What is very long is shown once.
        eras: match bytes <= limit::RESULT_BYTES_MAX {
            true => eras(tool, arguments, &outcome, version),
            false => Vec::new(),
        },
        call_id: outcome.call_id.clone(),
        status: outcome.status.word(),
        // What is very long is there as text alone, once.
        result: outcome
            .value
            .clone()
            .filter(|_| bytes <= limit::RESULT_BYTES_MAX),
        result_text: text_of,
        result_bytes: bytes,
        content,
        structured,
        error: outcome.error.as_ref().map(CallErrorView::of),
        notes: outcome
            .notes
            .iter()
            .map(|note| text::one_line(note))
            .collect(),
        console: console(&outcome.console),
        elapsed_ms: outcome.elapsed_ms(),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CancelView {
    cancelled: bool,
}

fn cancel(studio: &Studio, _: &Asked, given: CancelBody) -> ApiResult<CancelView> {
    let calls = lock(&studio.inner.calls);
    let found = calls.get(&given.id);
    if let Some(token) = found {
        token.cancel();
    }
    Ok(CancelView {
        cancelled: found.is_some(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainBody {
    tool: String,
    arguments: Value,
    #[serde(default)]
    caller: Option<String>,
    #[serde(default)]
    door: Option<String>,
}

/// What would become of a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainView {
    effect: &'static str,
    told: Option<CallErrorView>,
    gates: Vec<GateView>,
    risk: Option<String>,
    shadow: Option<Value>,
    sentences: Vec<String>,
}

fn explain(studio: &Studio, _: &Asked, given: ExplainBody) -> ApiResult<ExplainView> {
    let caller = match given.caller.as_deref().filter(|name| !name.is_empty()) {
        None | Some("owner") => Caller::owner(),
        Some(name) => Caller::named(name),
    };
    let origin = match given.door.as_deref() {
        None => Origin::Mcp,
        Some(word) => {
            let found = Origin::ALL.into_iter().find(|origin| origin.word() == word);
            found.ok_or_else(|| ApiError::request("`door` is cli, mcp, script or studio"))?
        }
    };
    let request = CallRequest::new(caller, origin, &given.tool, given.arguments);
    let explained = studio.engine().explain(&request);
    let closing = &explained.closing;
    let sentences = closing.gates.iter().map(|gate| {
        let note = gate.note.as_deref().map(text::one_line).unwrap_or_default();
        format!("{}: {}: {note}", gate.gate, gate.verdict)
    });
    Ok(ExplainView {
        effect: explained.effect.word(),
        told: explained.told.as_ref().map(CallErrorView::of),
        gates: gates(&closing.gates),
        risk: closing.tool.as_ref().map(|tool| tool.risk.clone()),
        shadow: closing
            .shadow
            .as_ref()
            .and_then(|shadow| serde_json::to_value(shadow).ok()),
        sentences: sentences.collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptBody {
    code: String,
    #[serde(default)]
    preset: Option<String>,
}

impl ScriptBody {
    fn preset(&self) -> ApiResult<Option<ScriptPreset>> {
        let Some(word) = self.preset.as_deref().filter(|word| !word.is_empty()) else {
            return Ok(None);
        };
        let found = ScriptPreset::ALL
            .iter()
            .find(|preset| preset.word() == word);
        let odd = || ApiError::request("there is no such preset");
        Ok(Some(*found.ok_or_else(odd)?))
    }
}

/// What the guard says.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ScriptCheckView {
    valid: bool,
    preset: &'static str,
    presets: Vec<&'static str>,
    issues: Value,
}

fn check_script(studio: &Studio, _: &Asked, given: ScriptBody) -> ApiResult<ScriptCheckView> {
    let preset = given.preset()?;
    let now = studio.engine().registry().current();
    let mut report = studio.engine().check_script(&given.code, preset);
    Ok(ScriptCheckView {
        valid: report
            .get("valid")
            .and_then(Value::as_bool)
            .unwrap_or(false),
        preset: preset.unwrap_or(now.config.codecall.preset).word(),
        presets: ScriptPreset::ALL
            .iter()
            .map(|preset| preset.word())
            .collect(),
        issues: report
            .get_mut("issues")
            .map(Value::take)
            .unwrap_or_default(),
    })
}

/// What a script came to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScriptRunView {
    call_id: String,
    status: String,
    result: Option<Value>,
    error: Option<CallErrorView>,
    children: Vec<AuditRow>,
    elapsed_ms: f64,
}

async fn run_script(studio: Studio, asked: Asked, given: ScriptBody) -> ApiResult<ScriptRunView> {
    let caller = asked.person()?.answerer();
    let preset = given.preset()?;
    let under_way = UnderWay::begin(&studio, None)?;
    let arguments = Map::from_iter([("script".to_owned(), Value::from(given.code))]);
    let name = Native::Execute.name();
    let mut request = request(caller, (name, Value::Object(arguments)), &under_way);
    request.preset = preset;
    let outcome = studio.engine().call(request).await.into_inner();
    let id = outcome.call_id.clone();
    let of = studio.clone();
    let children = tokio::task::spawn_blocking(move || children_of(&of, &id)).await;
    let status = outcome.value.as_ref().and_then(|value| value.get("status"));
    let status = status
        .and_then(Value::as_str)
        .unwrap_or(outcome.status.word());
    Ok(ScriptRunView {
        status: status.to_owned(),
        error: outcome.error.as_ref().map(CallErrorView::of),
        children: children.unwrap_or_default(),
        elapsed_ms: outcome.elapsed_ms(),
        call_id: outcome.call_id,
        result: outcome.value,
    })
}
