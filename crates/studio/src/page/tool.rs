//! Tools: the list, one tool with its document, checking a text as it is typed, saving,
//! testing, publishing, and which tools are exposed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::http::Method;
use engine::EngineError;
use engine::life::{self, ImportOptions, SaveFault};
use engine::publish::Passed;
use engine::registry::{Snapshot, Tool, ToolState};
use model::caller::Origin;
use model::document::finding::any_error;
use model::document::params::input_schema;
use model::document::safety::Source;
use model::document::{ApprovalMode, Document};
use model::govern::consent::{Need, Variable};
use model::policy::assessment::{Assessment, UsableDocument};
use model::policy::risk::{Level, Risk};
use model::record::outcome::Outcome;
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Nothing;
use super::view::{
    CallErrorView, ChangeView, ConsoleView, FindingView, RiskView, changes, console, refused,
};
use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::route::{CHANGE, Route, VIEW};
use crate::studio::Studio;

mod exposure;

/// The routes of tools.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/tools",
            VIEW,
            "The tools, with risk, state, source and exposure",
            &[
                "search", "state", "source", "level", "category", "tag", "exposed",
            ],
            list,
        ),
        Route::get(
            "/api/v1/tools/template",
            VIEW,
            "A document to start from, which passes its own test",
            &["name"],
            template,
        ),
        Route::get(
            "/api/v1/tools/export",
            VIEW,
            "Documents as one text",
            &["name"],
            export,
        ),
        Route::send(
            Method::POST,
            "/api/v1/tools/check",
            VIEW,
            "Checks a document as it is typed; nothing runs",
            check,
        ),
        Route::send(
            Method::POST,
            "/api/v1/tools/import",
            CHANGE,
            "Takes documents in as drafts",
            import,
        ),
        Route::get(
            "/api/v1/tools/{name}",
            VIEW,
            "One tool with its document",
            &[],
            |studio, asked| show(studio, asked.part("name")),
        ),
        Route::send(
            Method::DELETE,
            "/api/v1/tools/{name}",
            CHANGE,
            "Moves a tool to the trash",
            delete,
        ),
        Route::send(
            Method::PUT,
            "/api/v1/tools/{name}/document",
            CHANGE,
            "Saves the text of a document",
            save,
        ),
        Route::send_later(
            Method::POST,
            "/api/v1/tools/{name}/test",
            CHANGE,
            "Runs a document with its test values, or with other arguments",
            test,
        ),
        Route::send_later(
            Method::POST,
            "/api/v1/tools/{name}/publish",
            CHANGE,
            "Publishes a tool that passes its own test",
            publish,
        ),
        Route::send(
            Method::POST,
            "/api/v1/tools/{name}/unpublish",
            CHANGE,
            "Makes a tool a draft again",
            unpublish,
        ),
        Route::get(
            "/api/v1/tools/{name}/diff",
            VIEW,
            "What differs from what is published",
            &[],
            difference,
        ),
        Route::send(
            Method::POST,
            "/api/v1/tools/{name}/copy",
            CHANGE,
            "Copies a tool under another name",
            copy,
        ),
        Route::send(
            Method::POST,
            "/api/v1/tools/{name}/variables",
            CHANGE,
            "Grants a variable to a tool, or takes it back",
            grant,
        ),
        Route::get(
            "/api/v1/exposure",
            VIEW,
            "Which tools are exposed, and why",
            &[],
            exposure::show,
        ),
        Route::send(
            Method::POST,
            "/api/v1/exposure/preview",
            VIEW,
            "What other settings of exposure would change",
            exposure::preview,
        ),
        Route::send(
            Method::PUT,
            "/api/v1/exposure",
            CHANGE,
            "Sets which tools are exposed",
            exposure::apply,
        ),
    ]
}

/// A tool in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolRow {
    name: String,
    title: String,
    description: String,
    tool_id: String,
    digest: String,
    state: Value,
    state_why: Option<String>,
    missing: Vec<String>,
    not_granted: Vec<String>,
    risk: RiskView,
    source: &'static str,
    server: Option<String>,
    exposed: bool,
    exposure: String,
    category: Option<String>,
    tags: Vec<String>,
    approval: &'static str,
    file: Option<String>,
    last_pass: Option<PassView>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PassView {
    ok: bool,
    at_ms: i64,
    elapsed_ms: u64,
    error: Option<String>,
}

/// The tools that fit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolList {
    items: Vec<ToolRow>,
    aside: Vec<AsideView>,
    exposed: usize,
    total: usize,
    categories: BTreeSet<String>,
    tags: BTreeSet<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AsideView {
    file: String,
    name: Option<String>,
    findings: Vec<FindingView>,
}

fn list(studio: &Studio, asked: &Asked) -> ApiResult<ToolList> {
    let now = studio.engine().registry().current();
    let mut list = ToolList {
        items: Vec::new(),
        aside: Vec::new(),
        exposed: 0,
        total: 0,
        categories: BTreeSet::new(),
        tags: BTreeSet::new(),
    };
    for tool in now.tools() {
        let row = row(studio, &now, tool)?;
        list.total += 1;
        list.exposed += usize::from(row.exposed);
        list.categories.extend(row.category.clone());
        list.tags.extend(row.tags.iter().cloned());
        if is_wanted(asked, &row)? {
            list.items.push(row);
        }
    }
    let aside = now.set_aside.iter().map(|aside| AsideView {
        file: text::one_line(&aside.file),
        name: aside.name.as_deref().map(text::one_line),
        findings: FindingView::all(&aside.findings),
    });
    list.aside.extend(aside);
    Ok(list)
}

fn is_wanted(asked: &Asked, row: &ToolRow) -> ApiResult<bool> {
    let same =
        |wanted: Option<&str>, word: &str| wanted.is_none_or(|it| it.eq_ignore_ascii_case(word));
    let search = asked.word("search")?.map(str::to_lowercase);
    let is_found = search.is_none_or(|search| {
        let tags = row.tags.join(" ");
        let words = format!("{} {} {tags}", row.name, row.description).to_lowercase();
        search.split_whitespace().all(|word| words.contains(word))
    });
    let tag = asked.word("tag")?;
    Ok(is_found
        && same(asked.word("state")?, row.state.as_str().unwrap_or(""))
        && same(asked.word("source")?, row.source)
        && same(asked.word("level")?, row.risk.level)
        && same(
            asked.word("category")?,
            row.category.as_deref().unwrap_or(""),
        )
        && tag.is_none_or(|tag| row.tags.iter().any(|it| it.eq_ignore_ascii_case(tag)))
        && asked
            .flag("exposed")?
            .is_none_or(|wanted| wanted == row.exposed))
}

fn row(studio: &Studio, now: &Snapshot, tool: &Tool) -> ApiResult<ToolRow> {
    let engine = studio.engine();
    let environment = engine.environment().unwrap_or_default();
    let (state, missing) = tool.lifecycle(&environment);
    let document = &tool.usable.document;
    let facts = &tool.usable.facts;
    let exposed = now.exposed(document, tool.source);
    let state = serde_json::to_value(state).unwrap_or_default();
    let is_active = tool.state == ToolState::Published && missing.is_empty();
    let pass = engine
        .store()
        .publications()
        .pass(&facts.digest.to_string());
    let pass = pass.map_err(|fault| studio.alarm("the tools cannot be read", &fault))?;
    let description = text::one_line(document.description.lines().next().unwrap_or(""));
    Ok(ToolRow {
        name: text::one_line(&document.name),
        title: text::one_line(&document.name),
        description: text::elided(&description, 300),
        tool_id: facts.tool_id.clone(),
        digest: facts.digest.to_string(),
        state,
        state_why: tool.not_published().map(|why| text::one_line(&why)),
        missing,
        not_granted: tool.ungranted(),
        risk: RiskView::of(&facts.risk),
        source: match tool.source {
            Source::Builtin => "bundled",
            Source::User => "own",
            Source::Server => "server",
        },
        server: tool
            .body
            .server()
            .map(|server| text::one_line(&server.server.name)),
        exposed: is_active && exposed.is_yes(),
        exposure: exposed.why().to_owned(),
        category: document.category.as_deref().map(text::one_line),
        tags: document
            .tags
            .iter()
            .map(|tag| text::one_line(tag))
            .collect(),
        approval: approval_word(document.approval()),
        file: tool.file.as_ref().map(|stem| format!("{stem}.json")),
        last_pass: pass.map(|pass| PassView {
            ok: pass.ok,
            at_ms: pass.at_ms,
            elapsed_ms: pass.elapsed_ms,
            error: pass.error.map(|error| text::one_line(&error.message)),
        }),
    })
}

fn approval_word(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Disabled => "DISABLED",
        ApprovalMode::Required => "REQUIRED",
        ApprovalMode::AutoApprove => "AUTO_APPROVE",
    }
}

/// An argument that a tool takes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParamView {
    name: String,
    description: String,
    #[serde(rename = "type")]
    kind: Value,
    required: bool,
    test_value: Option<String>,
}

pub(crate) fn params(document: &Document) -> Vec<ParamView> {
    let view = |param: &model::document::Param| ParamView {
        name: text::one_line(&param.name),
        description: super::view::lines(&param.description),
        kind: serde_json::to_value(param.kind).unwrap_or_default(),
        required: param.required,
        test_value: param.test_value.clone(),
    };
    document.params.iter().map(view).collect()
}

/// One tool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolView {
    #[serde(flatten)]
    row: ToolRow,
    document: Option<String>,
    revision: Option<String>,
    input_schema: Value,
    output_schema: Option<Value>,
    tool_safety: Value,
    human_in_the_loop: Value,
    params: Vec<ParamView>,
    variables: Vec<VariableView>,
    published: Option<PublishedView>,
    findings: Vec<FindingView>,
    seen: SeenView,
    own: bool,
    can_edit: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct VariableView {
    name: String,
    set: bool,
    granted: bool,
    words: String,
}

fn variables(found: &[Variable]) -> Vec<VariableView> {
    let view = |variable: &Variable| VariableView {
        name: text::one_line(&variable.name),
        set: variable.set,
        granted: variable.granted,
        words: text::one_line(&variable.words()),
    };
    found.iter().map(view).collect()
}

#[derive(Debug, Serialize, JsonSchema)]
struct PublishedView {
    digest: String,
    document: Option<String>,
    same: bool,
}

/// What a model sees of a tool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SeenView {
    name: String,
    description: String,
    input_schema: Value,
}

pub(crate) fn show(studio: &Studio, name: &str) -> ApiResult<ToolView> {
    let engine = studio.engine();
    let tool = engine.tool(name).map_err(|fault| refused(studio, &fault))?;
    let now = engine.registry().current();
    let row = row(studio, &now, &tool)?;
    let document = &tool.usable.document;
    let file = engine
        .file_text(&tool)
        .map_err(|fault| refused(studio, &fault))?;
    let kept = engine.store().publications().text(name);
    let kept = kept.map_err(|fault| studio.alarm("the tools cannot be read", &fault))?;
    let environment = engine.environment().unwrap_or_default();
    let own = tool.source == Source::User;
    let input_schema = tool.body.input_schema(document);
    Ok(ToolView {
        published: published(&tool, kept),
        document: Some(file.clone().unwrap_or_else(|| document.to_text())),
        revision: file.as_deref().map(life::revision),
        output_schema: tool.body.output_schema(),
        tool_safety: serde_json::to_value(tool.usable.safety()).unwrap_or_default(),
        human_in_the_loop: serde_json::to_value(&document.human_in_the_loop).unwrap_or_default(),
        params: params(document),
        variables: variables(&tool.granted.variables(document, &environment)),
        findings: FindingView::all(&tool.findings),
        seen: SeenView {
            name: document.name.clone(),
            description: document.description.clone(),
            input_schema: input_schema.clone(),
        },
        input_schema,
        own,
        can_edit: own && tool.file.is_some(),
        row,
    })
}

fn published(tool: &Tool, kept: Option<(String, String)>) -> Option<PublishedView> {
    let digest = tool.usable.facts.digest.to_string();
    match (kept, tool.state == ToolState::Published) {
        (Some((of, text)), _) => Some(PublishedView {
            same: of == digest,
            digest: of,
            document: Some(text),
        }),
        (None, true) => Some(PublishedView {
            digest,
            document: None,
            same: true,
        }),
        (None, false) => None,
    }
}

/// A text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentText {
    document: String,
    name: Option<String>,
    file_name: Option<String>,
}

fn template(studio: &Studio, asked: &Asked) -> ApiResult<DocumentText> {
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

fn export(studio: &Studio, asked: &Asked) -> ApiResult<DocumentText> {
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

fn need(need: &Need) -> NeedView {
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

fn check(studio: &Studio, _: &Asked, given: CheckBody) -> ApiResult<CheckView> {
    let engine = studio.engine();
    let mut judged = engine.judge(&given.document);
    let is_many = judged.len() > 1;
    let (assessed, usable) = match judged.pop() {
        Some(one) if !is_many => one,
        _ => return Err(ApiError::invalid("the text must be one document")),
    };
    let saved = given
        .name
        .as_deref()
        .and_then(|name| engine.tool(name).ok());
    Ok(checked(studio, &assessed, usable.as_ref(), saved.as_ref()))
}

fn checked(
    studio: &Studio,
    assessed: &Assessment,
    usable: Option<&Arc<UsableDocument>>,
    saved: Option<&Tool>,
) -> CheckView {
    let engine = studio.engine();
    let before = saved.map(|tool| &tool.usable.facts.risk);
    let document = usable.map(|usable| &usable.document);
    let risk = usable.map(|usable| &usable.facts.risk);
    let environment = engine.environment().unwrap_or_default();
    let name = assessed.name.clone();
    let granted = name.as_deref().map(|name| engine.granted_in(name, None));
    let found = match (&granted, document) {
        (Some(granted), Some(document)) => granted.variables(document, &environment),
        (_, _) => Vec::new(),
    };
    let digest = usable.map(|usable| usable.facts.digest.to_string());
    let is_taken = |name: &str| {
        engine
            .catalog()
            .is_taken(name, digest.as_deref().unwrap_or(""))
    };
    let input_schema = document.map(|document| input_schema(&document.params));
    CheckView {
        ok: usable.is_some() && !any_error(&assessed.findings),
        name_taken: name.as_deref().is_some_and(is_taken),
        name: name.as_deref().map(text::one_line),
        tool_id: usable.map(|usable| usable.facts.tool_id.clone()),
        state: usable.and_then(|usable| serde_json::to_value(usable.facts.state).ok()),
        risk: risk.map(RiskView::of),
        before: before.map(RiskView::of),
        widens: risk.map(|risk| widened(before, risk)).unwrap_or_default(),
        findings: FindingView::all(&assessed.findings),
        params: document.map(params).unwrap_or_default(),
        variables: variables(&found),
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

/// A text to save, and what stands for the one that was edited.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveBody {
    document: String,
    #[serde(default)]
    revision: Option<String>,
}

fn save(studio: &Studio, asked: &Asked, given: SaveBody) -> ApiResult<ToolView> {
    let name = asked.part("name");
    let saved = studio
        .engine()
        .save(name, &given.document, given.revision.as_deref());
    match saved {
        Ok(()) => show(studio, name),
        Err(SaveFault::Unfit { why, findings }) => {
            let findings = FindingView::all(&findings);
            let details = serde_json::json!({ "findings": findings });
            Err(ApiError::invalid(why).with_details(details))
        }
        Err(SaveFault::Changed(_)) => {
            let message = "the file changed since it was read";
            Err(ApiError::conflict(message, &show(studio, name).ok()))
        }
        Err(SaveFault::Engine(EngineError::Exists(_))) => {
            let message = format!("there is a tool `{}` already", text::one_line(name));
            Err(ApiError::conflict(message, &show(studio, name).ok()))
        }
        Err(SaveFault::Engine(fault)) => Err(refused(studio, &fault)),
    }
}

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

async fn test(studio: Studio, asked: Asked, given: TestBody) -> ApiResult<TestView> {
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

async fn publish(studio: Studio, asked: Asked, given: PublishBody) -> ApiResult<PublishView> {
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

fn unpublish(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<ToolView> {
    let name = asked.part("name");
    let done = studio.engine().unpublish_by(name, asked.actor()?);
    done.map_err(|fault| refused(studio, &fault))?;
    show(studio, name)
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeletedView {
    ok: bool,
    trash: String,
}

fn delete(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<DeletedView> {
    let trash = studio
        .engine()
        .delete_by(asked.part("name"), asked.actor()?);
    let trash = trash.map_err(|fault| refused(studio, &fault))?;
    Ok(DeletedView {
        ok: true,
        trash: trash.display().to_string(),
    })
}

/// What differs from what is published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DifferenceView {
    published: Option<String>,
    draft: String,
    changes: Vec<ChangeView>,
    lines: Vec<super::view::DiffLine>,
    risk: RiskChange,
    same: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RiskChange {
    before: Option<RiskView>,
    after: RiskView,
}

fn difference(studio: &Studio, asked: &Asked) -> ApiResult<DifferenceView> {
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
        lines: super::view::diff(published.as_deref().unwrap_or(""), &draft),
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopyBody {
    name: String,
}

fn copy(studio: &Studio, asked: &Asked, given: CopyBody) -> ApiResult<ToolView> {
    let engine = studio.engine();
    let from = asked.part("name");
    let text = engine.export(&[from.to_owned()]);
    let text = text.map_err(|fault| refused(studio, &fault))?;
    let how = ImportOptions {
        renames: BTreeMap::from([(from.to_owned(), given.name.clone())]),
        ..ImportOptions::default()
    };
    let imported = engine.import_by(&text, &how, asked.actor()?);
    let imported = imported.map_err(|fault| refused(studio, &fault))?;
    match imported.first().and_then(|one| one.why.as_deref()) {
        Some(why) => Err(ApiError::invalid(text::one_line(why))),
        None => show(studio, &given.name),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportBody {
    document: String,
    #[serde(default)]
    replace: bool,
    #[serde(default)]
    prefix: Option<String>,
    #[serde(default)]
    renames: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportView {
    items: Vec<ImportedView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ImportedView {
    name: Option<String>,
    was: Option<String>,
    ok: bool,
    why: Option<String>,
    findings: Vec<FindingView>,
    variables: Vec<VariableView>,
}

fn import(studio: &Studio, asked: &Asked, given: ImportBody) -> ApiResult<ImportView> {
    let how = ImportOptions {
        replace: given.replace,
        prefix: given.prefix,
        renames: given.renames,
    };
    let imported = studio
        .engine()
        .import_by(&given.document, &how, asked.actor()?);
    let imported = imported.map_err(|fault| refused(studio, &fault))?;
    let view = |one: &life::Imported| ImportedView {
        name: one.name.as_deref().map(text::one_line),
        was: one.was.as_deref().map(text::one_line),
        ok: one.ok,
        why: one.why.as_deref().map(text::one_line),
        findings: FindingView::all(&one.findings),
        variables: variables(&one.variables),
    };
    Ok(ImportView {
        items: imported.iter().map(view).collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantBody {
    name: String,
    grant: bool,
}

fn grant(studio: &Studio, asked: &Asked, given: GrantBody) -> ApiResult<ToolView> {
    let (tool, actor) = (asked.part("name"), asked.actor()?);
    let engine = studio.engine();
    let done = match given.grant {
        true => {
            let how = engine::consent::Consent::Page;
            engine.grant_variable_by(tool, &given.name, how, actor)
        }
        false => engine.revoke_variable_by(tool, &given.name, actor),
    };
    done.map_err(|fault| refused(studio, &fault))?;
    show(studio, tool)
}
