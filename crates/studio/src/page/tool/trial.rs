//! Trying a document, and publishing one that passed: with the owner's consent to what it
//! reaches for, and only the document that was seen.

use std::sync::Arc;

use engine::publish::Passed;
use model::caller::Origin;
use model::govern::consent::Need;
use model::policy::assessment::UsableDocument;
use model::record::outcome::Outcome;
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::{NeedView, need};
use super::{ToolView, show};
use crate::error::{ApiError, ApiResult};
use crate::page::view::{CallErrorView, ConsoleView, FindingView, console, refused};
use crate::request::Asked;
use crate::studio::Studio;

/// How a document is tried.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestBody {
    #[serde(default)]
    document: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    consent: Option<ConsentWords>,
}

/// What the person agrees to: all of what was shown, word by word.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ConsentWords {
    /// Nothing, or everything that is needed now.
    All(bool),
    /// These.
    Words(Vec<String>),
}

/// What a try came to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestView {
    tried: bool,
    ok: bool,
    call_id: Option<String>,
    result: Option<Value>,
    result_text: Option<String>,
    error: Option<CallErrorView>,
    message: Option<String>,
    console: Vec<ConsoleView>,
    elapsed_ms: f64,
    budgets: Vec<BudgetView>,
    needs: Vec<NeedView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BudgetView {
    name: &'static str,
    used: u64,
    of: Option<u64>,
    unit: &'static str,
}

pub(super) async fn test(studio: Studio, asked: Asked, given: TestBody) -> ApiResult<TestView> {
    let name = asked.part("name").to_owned();
    let usable = match &given.document {
        None => {
            let tool = studio.engine().own_tool(&name);
            tool.map_err(|fault| refused(&studio, &fault))?.usable
        }
        Some(document) => {
            let mut judged = studio.engine().judge(document);
            let is_one = judged.len() == 1;
            let usable = judged.pop().filter(|_| is_one);
            let Some((assessed, usable)) = usable else {
                return Err(ApiError::invalid("the text must be one document"));
            };
            usable.ok_or_else(|| {
                let findings = FindingView::all(&assessed.findings);
                let details = serde_json::json!({ "findings": findings });
                ApiError::invalid("the document cannot be used as it stands").with_details(details)
            })?
        }
    };
    agree(&studio, &asked, &usable, given.consent.as_ref())?;
    match given.arguments {
        Some(arguments) => {
            let outcome = studio
                .engine()
                .trial_run(&usable, Origin::Studio, arguments)
                .await;
            Ok(tried(&usable, outcome.get(), true))
        }
        None => {
            let passed = studio.engine().local_pass(&usable, Origin::Studio).await;
            let passed = passed.map_err(|fault| refused(&studio, &fault))?;
            Ok(passed_view(&usable, &passed))
        }
    }
}

/// Grants what the person agreed to, if that is all that the document needs.
fn agree(
    studio: &Studio,
    asked: &Asked,
    usable: &Arc<UsableDocument>,
    consent: Option<&ConsentWords>,
) -> ApiResult<()> {
    let needs = studio.engine().wants(usable, None).needs;
    if needs.is_empty() {
        return Ok(());
    }
    let is_agreed = |need: &Need| match consent {
        None => false,
        Some(ConsentWords::All(all)) => *all,
        Some(ConsentWords::Words(words)) => {
            words.contains(&need.word()) || words.contains(&need.words())
        }
    };
    if !needs.iter().all(is_agreed) {
        let needs: Vec<_> = needs.iter().map(need).collect();
        return Err(ApiError::consent(&needs));
    }
    let granted = studio.engine().consent_by(usable, &needs, asked.actor()?);
    granted.map_err(|fault| refused(studio, &fault))
}

fn passed_view(usable: &UsableDocument, passed: &Passed) -> TestView {
    let mut view = match &passed.outcome {
        Some(outcome) => tried(usable, outcome.get(), passed.tried),
        None => TestView {
            tried: passed.tried,
            ok: passed.ok,
            call_id: None,
            result: None,
            result_text: None,
            error: None,
            message: None,
            console: Vec::new(),
            elapsed_ms: 0.0,
            budgets: Vec::new(),
            needs: Vec::new(),
        },
    };
    view.ok = passed.ok;
    view.message = passed
        .error
        .as_ref()
        .map(|error| text::one_line(&error.message));
    view
}

fn tried(usable: &UsableDocument, outcome: &Outcome, tried: bool) -> TestView {
    let policy = &usable.facts.policy;
    let mut budgets = Vec::new();
    if let Some(usage) = outcome.usage {
        let mut put = |name, used, of, unit| {
            budgets.push(BudgetView {
                name,
                used,
                of,
                unit,
            });
        };
        put("time", usage.wall_us / 1_000, Some(policy.timeout_ms), "ms");
        put("cpu", usage.cpu_us / 1_000, None, "ms");
        put("memory", usage.memory_bytes, None, "bytes");
        put(
            "statements",
            usage.work,
            Some(policy.statements_max),
            "statements",
        );
        put("hostCalls", u64::from(usage.host_calls), None, "calls");
    }
    let pretty = |value: &Value| serde_json::to_string_pretty(value).ok();
    TestView {
        tried,
        ok: outcome.error.is_none(),
        call_id: Some(outcome.call_id.clone()),
        result_text: outcome
            .value
            .as_ref()
            .and_then(pretty)
            .map(|json| text::json_line(&json)),
        result: outcome.value.clone(),
        error: outcome.error.as_ref().map(CallErrorView::of),
        message: None,
        console: console(&outcome.console),
        elapsed_ms: outcome.elapsed_ms(),
        budgets,
        needs: Vec::new(),
    }
}

/// What is published: exactly the document that was seen.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishBody {
    digest: String,
    #[serde(default)]
    consent: Option<ConsentWords>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PublishView {
    ok: bool,
    tool: ToolView,
    pass: Option<TestView>,
}

pub(super) async fn publish(
    studio: Studio,
    asked: Asked,
    given: PublishBody,
) -> ApiResult<PublishView> {
    let name = asked.part("name").to_owned();
    let tool = studio.engine().own_tool(&name);
    let tool = tool.map_err(|fault| refused(&studio, &fault))?;
    if tool.usable.facts.digest.to_string() != given.digest {
        let current = show(&studio, &name).ok();
        return Err(ApiError::conflict(
            "the document changed since it was seen",
            &current,
        ));
    }
    agree(&studio, &asked, &tool.usable, given.consent.as_ref())?;
    let passed = studio.engine().publish_by(&name, asked.actor()?).await;
    let passed = passed.map_err(|fault| refused(&studio, &fault))?;
    let pass = passed_view(&tool.usable, &passed);
    Ok(PublishView {
        ok: passed.ok,
        tool: show(&studio, &name)?,
        pass: Some(pass),
    })
}
