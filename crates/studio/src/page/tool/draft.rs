//! A document before it is saved or published: a template, the check of a text as it is typed,
//! and what differs from what is published.

use std::sync::Arc;

use engine::checkup::Checkup;
use engine::registry::Tool;
use model::document::finding::any_error;
use model::document::params::input_schema;
use model::document::{ApprovalMode, Document};
use model::govern::consent::Need;
use model::policy::risk::{Level, Risk};
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ParamView, SeenView, VariableView, approval_word, params, variables};
use crate::error::{ApiError, ApiResult};
use crate::page::view::{ChangeView, DiffLine, FindingView, RiskView, changes, diff, refused};
use crate::request::Asked;
use crate::studio::Studio;

/// A text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentText {
    document: String,
    name: Option<String>,
    file_name: Option<String>,
}

pub(super) fn template(studio: &Studio, asked: &Asked) -> ApiResult<DocumentText> {
    let engine = studio.engine();
    let now = engine.registry().current();
    let free = |base: &str| {
        let mut names =
            std::iter::once(base.to_owned()).chain((2..1_000).map(|at| format!("{base}{at}")));
        names.find(|name| now.tool(name).is_none())
    };
    let name = match asked.word("name")? {
        Some(name) => name.to_owned(),
        None => free("hello").unwrap_or_else(|| "hello".to_owned()),
    };
    Ok(DocumentText {
        document: engine.template(&name),
        file_name: None,
        name: Some(name),
    })
}

pub(super) fn export(studio: &Studio, asked: &Asked) -> ApiResult<DocumentText> {
    let names = asked.query.get("name").cloned().unwrap_or_default();
    if names.is_empty() {
        return Err(ApiError::request("name at least one tool"));
    }
    let document = studio.engine().export(&names);
    let document = document.map_err(|fault| refused(studio, &fault))?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let file_name = match names.as_slice() {
        [one] if one.chars().all(is_plain) => format!("{one}.json"),
        _ => "tools.json".to_owned(),
    };
    Ok(DocumentText {
        document,
        name: None,
        file_name: Some(file_name),
    })
}

/// A document as it is typed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckBody {
    document: String,
    #[serde(default)]
    name: Option<String>,
}

/// Everything there is to say about it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckView {
    ok: bool,
    name: Option<String>,
    tool_id: Option<String>,
    digest: Option<String>,
    state: Option<Value>,
    risk: Option<RiskView>,
    before: Option<RiskView>,
    widens: Vec<String>,
    findings: Vec<FindingView>,
    params: Vec<ParamView>,
    input_schema: Option<Value>,
    variables: Vec<VariableView>,
    name_taken: bool,
    tool_safety: Option<Value>,
    approval: Option<&'static str>,
    approval_suggested: Option<&'static str>,
    oversight: Option<OversightView>,
    seen: Option<SeenView>,
    needs: Vec<NeedView>,
}

/// What lowering the oversight of a tool means.
#[derive(Debug, Serialize, JsonSchema)]
struct OversightView {
    from: &'static str,
    to: &'static str,
    lowers: bool,
    words: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NeedView {
    kind: &'static str,
    word: String,
    words: String,
}

pub(super) fn need(need: &Need) -> NeedView {
    let kind = match need {
        Need::Host(_) | Need::PublicHosts | Need::AnyHost => "host",
        Need::Variable(_) => "variable",
        Need::Folder(_) => "folder",
        Need::Write => "file-write",
        Need::Destroy => "destructive",
        Need::Risk(_) => "risk",
    };
    NeedView {
        kind,
        word: text::one_line(&need.word()),
        words: text::one_line(&need.words()),
    }
}

pub(super) fn check(studio: &Studio, _: &Asked, given: CheckBody) -> ApiResult<CheckView> {
    let engine = studio.engine();
    let checkup = engine.check_draft(&given.document);
    let mut checkup = checkup.map_err(|fault| refused(studio, &fault))?.documents;
    let is_many = checkup.len() > 1;
    let checkup = match checkup.pop() {
        Some(one) if !is_many => one,
        _ => return Err(ApiError::invalid("the text must be one document")),
    };
    let saved = given
        .name
        .as_deref()
        .and_then(|name| engine.tool(name).ok());
    Ok(checked(studio, &checkup, saved.as_ref()))
}

fn checked(studio: &Studio, checkup: &Checkup, saved: Option<&Tool>) -> CheckView {
    let engine = studio.engine();
    let assessed = &checkup.assessed;
    let usable = assessed.usable.clone().map(Arc::new);
    let usable = usable.as_ref();
    let before = saved.map(|tool| &tool.usable.facts.risk);
    let document = usable.map(|usable| &usable.document);
    let risk = usable.map(|usable| &usable.facts.risk);
    let name = assessed.name.clone();
    let digest = usable.map(|usable| usable.facts.digest.to_string());
    let input_schema = document.map(|document| input_schema(&document.params));
    CheckView {
        ok: usable.is_some() && !any_error(&assessed.findings),
        name_taken: checkup.is_taken,
        name: name.as_deref().map(text::one_line),
        tool_id: usable.map(|usable| usable.facts.tool_id.clone()),
        state: usable.and_then(|usable| serde_json::to_value(usable.facts.state).ok()),
        risk: risk.map(RiskView::of),
        before: before.map(RiskView::of),
        widens: risk.map(|risk| widened(before, risk)).unwrap_or_default(),
        findings: FindingView::all(&assessed.findings),
        params: document.map(params).unwrap_or_default(),
        variables: variables(&checkup.variables),
        tool_safety: usable.and_then(|usable| serde_json::to_value(usable.safety()).ok()),
        approval: document.map(|document| approval_word(document.approval())),
        approval_suggested: risk.map(|risk| suggested(risk.level)),
        oversight: document.and_then(|document| oversight(saved, document)),
        seen: document.map(|document| SeenView {
            name: document.name.clone(),
            description: document.description.clone(),
            input_schema: input_schema.clone().unwrap_or_default(),
        }),
        input_schema,
        needs: usable
            .map(|usable| engine.wants(usable, None).needs.iter().map(need).collect())
            .unwrap_or_default(),
        digest,
    }
}

/// The reasons that the saved document does not have.
fn widened(before: Option<&Risk>, risk: &Risk) -> Vec<String> {
    let had = |words: &str| {
        before.is_some_and(|before| before.signals.iter().any(|signal| signal.words == words))
    };
    let new = risk
        .signals
        .iter()
        .filter(|signal| signal.level > Level::L0 && !had(&signal.words));
    new.map(|signal| text::one_line(&signal.words)).collect()
}

/// What a new tool of this risk asks: nothing where nothing can go wrong.
fn suggested(level: Level) -> &'static str {
    match level {
        Level::L0 => approval_word(ApprovalMode::Disabled),
        Level::L1 | Level::L2 | Level::L3 | Level::L4 | Level::L5 => {
            approval_word(ApprovalMode::Required)
        }
    }
}

fn oversight(saved: Option<&Tool>, document: &Document) -> Option<OversightView> {
    let rank = |mode: ApprovalMode| match mode {
        ApprovalMode::Required => 2,
        ApprovalMode::AutoApprove => 1,
        ApprovalMode::Disabled => 0,
    };
    let (from, to) = (saved?.usable.document.approval(), document.approval());
    if from == to {
        return None;
    }
    let words = match to {
        ApprovalMode::Required => "a person is asked before every call",
        ApprovalMode::AutoApprove => {
            "a person is asked only where the operator's rules say so; other calls run at once"
        }
        ApprovalMode::Disabled => {
            "no person is asked by this tool; only rules can still ask or deny"
        }
    };
    Some(OversightView {
        from: approval_word(from),
        to: approval_word(to),
        lowers: rank(to) < rank(from),
        words,
    })
}

/// What differs from what is published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DifferenceView {
    published: Option<String>,
    draft: String,
    changes: Vec<ChangeView>,
    lines: Vec<DiffLine>,
    risk: RiskChange,
    same: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RiskChange {
    before: Option<RiskView>,
    after: RiskView,
}

pub(super) fn difference(studio: &Studio, asked: &Asked) -> ApiResult<DifferenceView> {
    let name = asked.part("name");
    let engine = studio.engine();
    let tool = engine.tool(name).map_err(|fault| refused(studio, &fault))?;
    let kept = engine.store().publications().text(name);
    let kept = kept.map_err(|fault| studio.alarm("the tools cannot be read", &fault))?;
    // Both as the program writes them, so that only what means something differs.
    let draft = tool.usable.document.to_text();
    let before = kept.as_ref().and_then(|(_, text)| {
        let judged = engine.judge(text).pop();
        judged.and_then(|(_, usable)| usable)
    });
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let published = kept.map(|(_, text)| text);
    let differs = match &published {
        Some(published) => engine::json_change::between(&value(published), &value(&draft)),
        None => Vec::new(),
    };
    Ok(DifferenceView {
        lines: diff(published.as_deref().unwrap_or(""), &draft),
        same: published.is_some() && differs.is_empty(),
        changes: changes(&differs),
        risk: RiskChange {
            before: before.map(|usable| RiskView::of(&usable.facts.risk)),
            after: RiskView::of(&tool.usable.facts.risk),
        },
        published,
        draft,
    })
}
