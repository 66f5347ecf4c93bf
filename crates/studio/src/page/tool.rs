//! Tools: the list, one tool with its document, checking a text as it is typed, saving,
//! testing, publishing, and which tools are exposed.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use engine::EngineError;
use engine::life::{self, ImportOptions, SaveFault};
use engine::registry::{Snapshot, Tool, ToolState};
use model::Environment;
use model::document::safety::Source;
use model::document::{ApprovalMode, Document};
use model::govern::consent::Variable;
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Nothing;
use super::view::{FindingView, RiskView, lines, refused};
use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::route::{CHANGE, Route, VIEW};
use crate::studio::Studio;

mod draft;
mod exposure;
mod trial;

/// The routes of tools.
#[expect(clippy::too_many_lines, reason = "a table")]
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
            draft::template,
        ),
        Route::get(
            "/api/v1/tools/export",
            VIEW,
            "Documents as one text",
            &["name"],
            draft::export,
        ),
        Route::send(
            Method::POST,
            "/api/v1/tools/check",
            VIEW,
            "Checks a document as it is typed; nothing runs",
            draft::check,
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
            trial::test,
        ),
        Route::send_later(
            Method::POST,
            "/api/v1/tools/{name}/publish",
            CHANGE,
            "Publishes a tool that passes its own test",
            trial::publish,
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
            draft::difference,
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

/// Whether callers are offered a tool: it is published, has what it needs, and is exposed.
pub(crate) fn is_exposed(now: &Snapshot, tool: &Tool, environment: &Environment) -> bool {
    let (_, missing) = tool.lifecycle(environment);
    let is_active = tool.state == ToolState::Published && missing.is_empty();
    is_active && now.exposed(&tool.usable.document, tool.source).is_yes()
}

fn row(studio: &Studio, now: &Snapshot, tool: &Tool) -> ApiResult<ToolRow> {
    let engine = studio.engine();
    let environment = engine.environment().unwrap_or_default();
    let (state, missing) = tool.lifecycle(&environment);
    let document = &tool.usable.document;
    let facts = &tool.usable.facts;
    let exposed = now.exposed(document, tool.source);
    let state = serde_json::to_value(state).unwrap_or_default();
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
        exposed: is_exposed(now, tool, &environment),
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
        description: lines(&param.description),
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
