//! Which tools are exposed: the settings, the list they come to, and what others would
//! change. The file is changed as a diff of its text.

use std::collections::BTreeSet;

use engine::life::revision;
use engine::policy_admin::ApplyFault;
use engine::registry::Snapshot;
use model::govern::exposure::{Exposure, Selection};
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};
use crate::page::policy::applied;
use crate::page::view::{DiffLine, diff, refused};
use crate::request::Asked;
use crate::studio::Studio;

/// Which tools are exposed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExposureView {
    preset: Option<String>,
    presets: Vec<PresetView>,
    auto: bool,
    include: SelectionView,
    exclude: SelectionView,
    tools: Vec<ExposedTool>,
    exposed: usize,
    total: usize,
    revision: String,
    diff: Vec<DiffLine>,
    added: Vec<String>,
    removed: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PresetView {
    name: String,
    description: String,
}

/// Tools by name, tag and category.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SelectionView {
    #[serde(default)]
    names: BTreeSet<String>,
    #[serde(default)]
    tags: BTreeSet<String>,
    #[serde(default)]
    categories: BTreeSet<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ExposedTool {
    name: String,
    exposed: bool,
    why: String,
    level: &'static str,
    category: Option<String>,
    tags: Vec<String>,
}

/// Other settings of exposure.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExposureBody {
    #[serde(default)]
    preset: Option<String>,
    auto: bool,
    #[serde(default)]
    include: SelectionView,
    #[serde(default)]
    exclude: SelectionView,
    revision: String,
}

impl ExposureBody {
    fn exposure(&self) -> Exposure {
        let selection = |view: &SelectionView| Selection {
            names: view.names.clone(),
            tags: view.tags.clone(),
            categories: view.categories.clone(),
        };
        Exposure {
            preset: self.preset.clone().filter(|preset| preset != "none"),
            auto: self.auto,
            include: selection(&self.include),
            exclude: selection(&self.exclude),
        }
    }
}

pub(super) fn show(studio: &Studio, _: &Asked) -> ApiResult<ExposureView> {
    let now = studio.engine().registry().current();
    Ok(view(studio, &now))
}

fn view(studio: &Studio, now: &Snapshot) -> ExposureView {
    let exposure = &now.config.exposure;
    let selection = |selection: &Selection| SelectionView {
        names: selection.names.clone(),
        tags: selection.tags.clone(),
        categories: selection.categories.clone(),
    };
    let tools: Vec<_> = now
        .tools()
        .map(|tool| {
            let document = &tool.usable.document;
            let verdict = now.exposed(document, tool.source);
            ExposedTool {
                name: text::one_line(&document.name),
                exposed: verdict.is_yes(),
                why: verdict.why().to_owned(),
                level: tool.usable.facts.risk.level.badge(),
                category: document.category.as_deref().map(text::one_line),
                tags: document
                    .tags
                    .iter()
                    .map(|tag| text::one_line(tag))
                    .collect(),
            }
        })
        .collect();
    let presets = studio.engine().catalog().presets().iter();
    ExposureView {
        preset: exposure.preset.clone(),
        presets: presets
            .map(|(name, preset)| PresetView {
                name: name.clone(),
                description: preset.description.clone(),
            })
            .collect(),
        auto: exposure.auto,
        include: selection(&exposure.include),
        exclude: selection(&exposure.exclude),
        exposed: tools.iter().filter(|tool| tool.exposed).count(),
        total: tools.len(),
        tools,
        revision: revision(&now.settings.text),
        diff: Vec::new(),
        added: Vec::new(),
        removed: Vec::new(),
    }
}

pub(super) fn preview(studio: &Studio, _: &Asked, given: ExposureBody) -> ApiResult<ExposureView> {
    let engine = studio.engine();
    let now = engine.registry().current();
    let would = engine.preview_exposure(&given.exposure());
    let would = would.map_err(|fault| refused(studio, &fault))?;
    let shown = |names: &[String]| names.iter().map(|name| text::one_line(name)).collect();
    let mut after = view(studio, &would.then);
    after.added = shown(&would.added);
    after.removed = shown(&would.removed);
    after.diff = diff(&now.settings.text, &would.text);
    after.revision = revision(&now.settings.text);
    Ok(after)
}

pub(super) fn apply(
    studio: &Studio,
    asked: &Asked,
    given: ExposureBody,
) -> ApiResult<ExposureView> {
    let (wanted, actor) = (given.exposure(), asked.actor()?);
    match studio
        .engine()
        .apply_exposure(&wanted, &given.revision, actor)
    {
        Ok(()) => show(studio, asked),
        Err(ApplyFault::Changed) => {
            let message = "the settings changed since they were read";
            Err(ApiError::conflict(message, &show(studio, asked)?))
        }
        Err(fault) => Err(applied(studio, &fault)),
    }
}
