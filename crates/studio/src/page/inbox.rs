//! Questions for people: what waits, one question with everything that belongs to it, and
//! the answer. What counts as an answer is the engine's to say.

use engine::approve::{
    AnswerFault, ApprovalDecision, ApprovalScope, ApprovalVerdict, Channel, Inbox, Listed, Listing,
};
use engine::inquiry::{Inquiry, Standing};
use engine::json_change;
use engine::waiting_script::AskingScript;
use model::document::digest;
use model::govern::approval::{ShownChanges, read_arguments};
use model::text;
use model::word::Word as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Nothing;
use super::tool::{ParamView, params};
use super::view::{ChangeView, FindingView, GateView, NodeView, RiskView, changes, gates, lines};
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::request::{Asked, note};
use crate::studio::Studio;

/// A question in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionRow {
    id: String,
    state: &'static str,
    tool: String,
    caller: String,
    kind: &'static str,
    risk: RiskView,
    sentence: String,
    asked_at_ms: i64,
    expires_at_ms: i64,
    call_id: String,
    answered: Option<AnswerView>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AnswerView {
    by: String,
    channel: String,
    at_ms: i64,
    scope: Option<&'static str>,
    note: Option<String>,
    uses: u64,
    used_by_call: Option<String>,
    changed: Option<Vec<ChangeView>>,
}

/// A list of questions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QuestionList {
    items: Vec<QuestionRow>,
    waiting: usize,
    next: Option<String>,
    total: usize,
}

/// One question.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionView {
    #[serde(flatten)]
    row: QuestionRow,
    prompt: String,
    why: String,
    rule: Option<String>,
    may_answer: String,
    arguments_text: String,
    arguments: Option<Value>,
    arguments_tree: Option<NodeView>,
    patch: Vec<PatchPart>,
    masked: bool,
    touches: Vec<TouchView>,
    last_approved: Option<LastApproved>,
    scopes: Vec<ScopeView>,
    from: FromView,
    stale: Option<bool>,
    stale_why: Option<String>,
    can_answer: bool,
    cannot_why: Option<String>,
    can_change: bool,
    cannot_change_why: Option<String>,
    revision: String,
    inert_ms: u64,
    params: Vec<ParamView>,
    input_schema: Option<Value>,
}

/// A part of the changes of files that a question is about.
#[derive(Debug, Serialize, JsonSchema)]
struct PatchPart {
    name: &'static str,
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TouchView {
    kind: &'static str,
    words: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LastApproved {
    id: String,
    at_ms: Option<i64>,
    by: Option<String>,
    arguments_text: String,
    diff: Vec<ChangeView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ScopeView {
    scope: &'static str,
    words: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FromView {
    caller: String,
    door: Option<&'static str>,
    session: bool,
    parent: Option<ParentView>,
    script: Option<ScriptView>,
}

/// The script that makes the call.
#[derive(Debug, Serialize, JsonSchema)]
struct ScriptView {
    lines: Vec<ScriptLine>,
    words: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ScriptLine {
    number: usize,
    text: String,
    waits: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ParentView {
    call_id: String,
    tool: String,
}

/// The questions of a home, the oldest first; with those that are over, the newest first.
pub(crate) fn list(studio: &Studio, asked: &Asked) -> ApiResult<QuestionList> {
    let inbox = studio.engine().approvals();
    let (listing, is_all) = match asked.word("state")? {
        None | Some("live") => (Listing::Live, false),
        Some("all") => (Listing::All, true),
        Some(_) => return Err(ApiError::request("`state` is `live` or `all`")),
    };
    let mut found = inbox
        .list(listing)
        .map_err(|fault| failed(studio, fault.into()))?;
    let waiting = inbox
        .pending_ids()
        .map_err(|fault| failed(studio, fault.into()))?;
    if is_all {
        found.reverse();
    }
    let total = found.len();
    let start = match asked.number("cursor")? {
        None => 0,
        Some(start) => usize::try_from(start).unwrap_or(usize::MAX),
    };
    // Those that wait are all shown: a question that is not seen is not answered.
    let size = if is_all { asked.limit()? } else { total.max(1) };
    let end = start.saturating_add(size).min(total);
    let shown = found.get(start.min(end)..end).unwrap_or_default();
    Ok(QuestionList {
        items: shown.iter().map(row).collect(),
        waiting: waiting.len(),
        next: (end < total).then(|| end.to_string()),
        total,
    })
}

pub(crate) fn row(listed: &Listed) -> QuestionRow {
    let level = listed.risk.level;
    let is_trust = listed.tool.is_empty() || listed.prompt.is_empty();
    // Names come from documents and callers; on one line they cannot forge a second row.
    let (caller, tool) = (text::one_line(&listed.caller), text::one_line(&listed.tool));
    QuestionRow {
        id: listed.id.clone(),
        state: listed.state.word(),
        kind: if is_trust { "trust" } else { "call" },
        risk: RiskView {
            level: level.badge(),
            label: level.label(),
            reasons: listed
                .risk
                .reasons
                .iter()
                .map(|words| text::one_line(words))
                .collect(),
        },
        sentence: format!("{caller} wants to run {tool}"),
        tool,
        caller,
        asked_at_ms: listed.asked_at_ms,
        expires_at_ms: listed.expires_at_ms,
        call_id: listed.call_id.clone(),
        answered: answered(listed),
    }
}

fn answered(listed: &Listed) -> Option<AnswerView> {
    let changed = listed.changed.as_ref().map(|changed| {
        let was = read_arguments(&listed.arguments);
        let is: Option<Value> = serde_json::from_str(changed).ok();
        match (was, is) {
            (Some(was), Some(is)) => changes(&json_change::between(&was, &is)),
            (_, _) => Vec::new(),
        }
    });
    Some(AnswerView {
        by: text::one_line(listed.answered_by.as_deref()?),
        channel: listed.channel.clone().unwrap_or_default(),
        at_ms: listed.answered_at_ms?,
        scope: listed.scope.map(ApprovalScope::word),
        note: listed.note.as_deref().map(text::one_line),
        uses: listed.uses,
        used_by_call: listed.used_by_call.clone(),
        changed,
    })
}

/// One question.
pub(crate) fn question(studio: &Studio, id: &str) -> ApiResult<QuestionView> {
    let inquiry = studio.engine().inquiry(id);
    let inquiry = inquiry.map_err(|fault| failed(studio, fault))?;
    Ok(view(&inquiry))
}

fn patch(changes: &ShownChanges) -> Vec<PatchPart> {
    let parts = changes.parts().into_iter();
    let text = |(name, lines): (&'static str, &[String])| PatchPart {
        name,
        text: lines.join("\n"),
    };
    parts.map(text).collect()
}

/// Why the arguments cannot be changed, although the question can be answered.
fn why_not_changed(inquiry: &Inquiry) -> Option<&'static str> {
    if inquiry.is_masked {
        return Some("a secret in the arguments is not shown");
    }
    if inquiry.is_trust {
        return Some("it is about trust");
    }
    if inquiry.changes.is_some() {
        return Some("a yes counts for these changes and no others");
    }
    let is_cut = inquiry.arguments.is_none();
    is_cut.then_some("the arguments are not kept whole")
}

fn view(inquiry: &Inquiry) -> QuestionView {
    let listed = &inquiry.listed;
    let is_pending = listed.state.word() == "pending";
    let (stale, stale_why) = match &inquiry.standing {
        Standing::AsAsked => (Some(false), None),
        Standing::Stale(why) => (Some(true), Some(text::one_line(why))),
        Standing::Unknown => (None, None),
    };
    let cannot_why = match (is_pending, &stale_why) {
        (false, _) => Some(format!("it is {}", listed.state.word())),
        (true, Some(why)) => Some(format!("it is stale: {why}")),
        (true, None) => None,
    };
    let cannot_change_why = match &cannot_why {
        Some(why) => Some(why.clone()),
        None => why_not_changed(inquiry).map(str::to_owned),
    };
    let tool = inquiry.tool.as_deref();
    let mut row = row(listed);
    if inquiry.is_trust {
        row.kind = "trust";
        row.sentence = text::one_line(&listed.prompt);
    }
    QuestionView {
        prompt: lines(&listed.prompt),
        why: text::one_line(&listed.why),
        rule: inquiry.rule.as_deref().map(text::one_line),
        may_answer: text::one_line(&listed.may_answer),
        arguments_text: text::json_line(&listed.arguments),
        arguments: inquiry.arguments.clone(),
        arguments_tree: inquiry.arguments.as_ref().map(NodeView::of),
        patch: inquiry.changes.as_ref().map(patch).unwrap_or_default(),
        masked: inquiry.is_masked,
        touches: touches(inquiry),
        last_approved: inquiry.last.as_ref().map(|(last, differs)| LastApproved {
            id: last.id.clone(),
            at_ms: last.answered_at_ms,
            by: last.answered_by.as_deref().map(text::one_line),
            arguments_text: text::json_line(&last.arguments),
            diff: changes(differs),
        }),
        scopes: scopes(listed),
        from: FromView {
            caller: text::one_line(&listed.caller),
            door: inquiry.origin.map(model::caller::Origin::word),
            session: inquiry.has_session,
            parent: inquiry.parent.as_ref().map(|(call_id, tool)| ParentView {
                call_id: call_id.clone(),
                tool: tool.clone(),
            }),
            script: inquiry.script.as_ref().map(script),
        },
        stale,
        stale_why,
        can_answer: cannot_why.is_none(),
        cannot_why,
        can_change: cannot_change_why.is_none(),
        cannot_change_why,
        revision: revision(inquiry),
        inert_ms: limit::INERT_MS,
        params: tool
            .map(|tool| params(&tool.usable.document))
            .unwrap_or_default(),
        input_schema: tool.map(|tool| tool.body.input_schema(&tool.usable.document)),
        row,
    }
}

fn script(script: &AskingScript) -> ScriptView {
    let lines = script.lines.iter().zip(1..);
    ScriptView {
        words: script.words(),
        lines: lines
            .map(|(line, number)| ScriptLine {
                number,
                text: text::one_line(line),
                waits: script.waits.contains(&number),
            })
            .collect(),
    }
}

fn touches(inquiry: &Inquiry) -> Vec<TouchView> {
    let view = |touch: &engine::inquiry::Touch| TouchView {
        kind: touch.kind,
        words: text::one_line(&touch.words),
    };
    inquiry.touches.iter().map(view).collect()
}

fn scopes(listed: &Listed) -> Vec<ScopeView> {
    let view = |scope: &ApprovalScope| ScopeView {
        scope: scope.word(),
        words: scope.meaning(),
    };
    listed.scopes.iter().map(view).collect()
}

/// Stands for everything the person saw: an answer to something else is not taken.
fn revision(inquiry: &Inquiry) -> String {
    // Everything that the person judged by. The binding covers tool, policy and arguments.
    let listed = &inquiry.listed;
    let stale = matches!(inquiry.standing, Standing::Stale(_));
    let seen = json!([
        listed.id,
        listed.binding,
        listed.state.word(),
        listed.risk.level,
        stale
    ]);
    digest::of_value(&seen).unwrap_or_default()
}

/// What a person answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    revision: String,
    answer: VerdictWord,
    #[serde(default)]
    scope: Option<ScopeWord>,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VerdictWord {
    Approve,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ScopeWord {
    Once,
    SameArguments,
    Session,
    UntilChanged,
}

impl ScopeWord {
    fn scope(self) -> ApprovalScope {
        match self {
            ScopeWord::Once => ApprovalScope::Once,
            ScopeWord::SameArguments => ApprovalScope::SameArguments,
            ScopeWord::Session => ApprovalScope::Session,
            ScopeWord::UntilChanged => ApprovalScope::UntilChanged,
        }
    }
}

/// Answers a question that is still what the person saw.
pub(crate) fn answer(studio: &Studio, asked: &Asked, given: AnswerBody) -> ApiResult<QuestionView> {
    let id = asked.part("id");
    let person = asked.person()?;
    let before = studio.engine().inquiry(id);
    let before = before.map_err(|fault| failed(studio, fault))?;
    // Before anything else: a late answer must not count for another question.
    if revision(&before) != given.revision {
        let now = view(&before);
        let message = match &now.row.answered {
            Some(answer) => format!("it was answered already by {}", answer.by),
            None => "it changed since it was shown".to_owned(),
        };
        return Err(ApiError::conflict(message, &now));
    }
    let (id, engine) = (before.listed.id.as_str(), studio.engine());
    let note = note(given.note.as_deref())?;
    let is_approval = given.answer == VerdictWord::Approve;
    // Only an approval: to deny something stale is always safe.
    if let (true, Standing::Stale(why)) = (is_approval, &before.standing) {
        let message = format!("it is stale: {}", text::one_line(why));
        return Err(ApiError::conflict(message, &view(&before)));
    }
    let scope = given.scope.map(ScopeWord::scope);
    let done = match (&given.arguments, given.answer) {
        (Some(_), VerdictWord::Deny) => {
            return Err(ApiError::invalid(
                "arguments are changed by an approval only",
            ));
        }
        (Some(_), VerdictWord::Approve)
            // Other arguments were never seen before, so the answer is for this one call.
            if scope.is_some_and(|scope| scope != ApprovalScope::Once) =>
        {
            return Err(ApiError::invalid("changed arguments are approved once"));
        }
        (Some(arguments), VerdictWord::Approve) => {
            engine.approve_changed(id, person, Channel::Studio, arguments, note.as_deref())
        }
        (None, verdict) => {
            let decision = ApprovalDecision {
                answer: match verdict {
                    VerdictWord::Approve => ApprovalVerdict::Approve,
                    VerdictWord::Deny => ApprovalVerdict::Deny,
                },
                scope,
                note,
            };
            let inbox = inbox(studio);
            let allowed = match is_approval {
                // Whether this person may say yes. Saying no needs no more than the
                // role of the route.
                true => engine.check_person(id, person),
                false => Ok(()),
            };
            allowed.and_then(|()| inbox.decide(id, &person.answerer(), &decision))
        }
    };
    done.map_err(|fault| refused(studio, id, fault))?;
    question(studio, id)
}

fn inbox(studio: &Studio) -> Inbox<'_> {
    studio.engine().approvals().through(Channel::Studio)
}

/// Arguments as a person changes them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeBody {
    arguments: Value,
}

/// What a call with changed arguments would be.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewView {
    ok: bool,
    refused: Option<String>,
    risk: Option<RiskView>,
    gates: Vec<GateView>,
    diff: Vec<ChangeView>,
    arguments_tree: NodeView,
    findings: Vec<FindingView>,
}

pub(crate) fn preview(studio: &Studio, asked: &Asked, given: ChangeBody) -> ApiResult<PreviewView> {
    let previewed = studio
        .engine()
        .preview_change(asked.part("id"), &given.arguments);
    let previewed = previewed.map_err(|fault| failed(studio, fault))?;
    let refused = previewed.refused.as_deref().map(text::one_line);
    let finding = |why: &String| FindingView::in_code("argument", "error", why, (0, 0));
    Ok(PreviewView {
        ok: refused.is_none(),
        findings: refused.iter().map(finding).collect(),
        refused,
        risk: previewed.risk.as_ref().map(RiskView::of),
        gates: gates(&previewed.gates),
        diff: changes(&previewed.changes),
        arguments_tree: NodeView::of(&given.arguments),
    })
}

pub(crate) fn revoke(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<QuestionView> {
    let id = asked.part("id");
    let revoked = inbox(studio).revoke(id, &asked.person()?.answerer());
    revoked.map_err(|fault| refused(studio, id, fault))?;
    question(studio, id)
}

/// An answer that did not count. Where something newer is there, it comes along.
fn refused(studio: &Studio, id: &str, fault: AnswerFault) -> ApiError {
    match fault {
        AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged => match question(studio, id) {
            Ok(now) => ApiError::conflict(fault.to_string(), &now),
            Err(error) => error,
        },
        other => failed(studio, other),
    }
}

fn failed(studio: &Studio, fault: AnswerFault) -> ApiError {
    match &fault {
        AnswerFault::Unknown | AnswerFault::NotYours | AnswerFault::Several(_) => {
            // All three alike: a person who may not see a question learns nothing of it.
            ApiError::unknown("there is no such question")
        }
        AnswerFault::TooWide { .. } | AnswerFault::Refused(_) | AnswerFault::Masked => {
            let why = text::one_line(&fault.to_string());
            let finding = FindingView::in_code("argument", "error", &why, (0, 0));
            ApiError::invalid(why).with_details(json!({ "findings": [finding] }))
        }
        AnswerFault::Separate | AnswerFault::NotByClient | AnswerFault::NotByCommand => {
            ApiError::refused(fault.to_string())
        }
        AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged => ApiError::conflict(fault.to_string(), &Value::Null),
        AnswerFault::Store(_) => studio.alarm("the inbox cannot be read or written", &fault),
    }
}
