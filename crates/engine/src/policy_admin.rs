//! The operator's rules, for people: where each stands, what is wrong with them, what others
//! would have decided, and putting another text of the settings in force.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use model::config::{Config, SettingSource};
use model::document::Document;
use model::govern::person::Actor;
use model::govern::rules::lint::{self, LintFinding, LintKind, LintTools};
use model::record::audit::{Act, Notice};
use serde_json::Value;
use store::{Filter, SettingsEdit, StoreError};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::life::revision;
use crate::registry::{CONFIG_FILE, Stranger};
use crate::replay::{Change, Replayed};
use crate::settings::{Settings, folder_faults};
use crate::tool::ToolBody;

/// A finding, and where the setting it is about stands.
#[derive(Clone, Debug)]
pub struct PlacedFinding {
    /// What is wrong.
    pub finding: LintFinding,
    /// `ringfence.toml:12`; empty if that is not known.
    pub place: String,
}

/// Why another text of the settings is not put in force.
#[derive(Debug, thiserror::Error)]
pub enum ApplyFault {
    /// The file changed since the text was read.
    #[error("the settings changed since")]
    Changed,
    /// It would not load, or a rule in it cannot work.
    #[error("{0}")]
    Unfit(String),
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Changed decisions with everything in common.
#[derive(Clone, Debug)]
pub struct ChangeGroup {
    /// Whether they allow less, as much or more than the rules in force.
    pub than_live: Ordering,
    /// One of them.
    pub example: Change,
    /// The ids of the calls, the newest first.
    pub calls: Vec<String>,
}

impl Engine {
    /// The settings that would hold if a text were in force; those in force without one.
    pub fn candidate(&self, file: &Path, text: Option<&str>) -> Result<Arc<Settings>, EngineError> {
        let now = self.registry().current();
        match text {
            None => Ok(Arc::clone(&now.settings)),
            Some(text) => now.settings.candidate(file, text).map(Arc::new),
        }
    }

    /// What is wrong with some settings: errors first.
    pub fn lint(&self, settings: &Settings) -> Result<Vec<LintFinding>, EngineError> {
        let now = self.registry().current();
        let there: Vec<&Document> = now.tools().map(|tool| &tool.usable.document).collect();
        let away: Vec<_> = now.servers().away().collect();
        let tools = LintTools {
            there: &there,
            away: &away,
        };
        let rules = &settings.config.rules;
        let takes = |document: &Document, argument: &str| match now
            .tool(&document.name)
            .map(|tool| &tool.body)
        {
            None | Some(ToolBody::Code) => {
                document.params.iter().any(|param| param.name == argument)
            }
            Some(body) => may_take(&body.input_schema(document), argument),
        };
        let mut findings = lint::lint(rules, tools, takes);
        let Config { costs, limits, .. } = &settings.config;
        findings.extend(lint::costs(costs, limits, tools));
        let policies: Vec<_> = now
            .tools()
            .map(|tool| (&tool.usable.document, &tool.usable.facts.policy))
            .collect();
        let access = &settings.config.access;
        findings.extend(lint::hosts(rules, access, &policies, tools));
        let unknown_names = self.registry().unknown_names(settings)?;
        let unknown_names = unknown_names.iter().filter_map(|it| strange(it, &findings));
        findings.extend(unknown_names.collect::<Vec<_>>());
        let folders = folder_faults(self.home(), &settings.config).into_iter();
        findings.extend(folders.map(|fault| LintFinding {
            rule: fault.setting,
            kind: LintKind::Folder,
            message: fault.why,
            place: None,
        }));
        findings.sort_by(|one, two| {
            let errors = two.kind.is_error().cmp(&one.kind.is_error());
            errors.then_with(|| one.rule.cmp(&two.rule))
        });
        Ok(findings)
    }

    /// The same with the place of each.
    pub fn lint_placed(
        &self,
        settings: &Settings,
        file: &str,
    ) -> Result<Vec<PlacedFinding>, EngineError> {
        let places = places(settings, file);
        let placed = self
            .lint(settings)?
            .into_iter()
            .map(|finding| PlacedFinding {
                place: match &finding.place {
                    Some(place) => place.clone(),
                    None => places.get(&finding.rule).cloned().unwrap_or_default(),
                },
                finding,
            });
        Ok(placed.collect())
    }

    /// Decides recorded calls again, as a candidate would.
    pub fn rehearse(
        &self,
        settings: &Arc<Settings>,
        filter: &Filter,
    ) -> Result<Replayed, EngineError> {
        self.registry().check_names(settings)?;
        let snapshot = self.registry().under(settings)?;
        Ok(self.replay(&snapshot, filter)?)
    }

    /// Puts another text of the operator's file in force. `seen` stands for the text that
    /// was edited. What would not load, or has an error, is not written; the audit says who
    /// changed it and why, before it holds.
    pub fn apply_settings(
        &self,
        text: &str,
        seen: &str,
        (actor, reason): (Actor<'_>, &str),
    ) -> Result<(), ApplyFault> {
        let unfit = |fault: EngineError| match fault {
            EngineError::Settings(why) => ApplyFault::Unfit(why),
            other => ApplyFault::Unfit(other.to_string()),
        };
        // Read as the whole file, never as rules alone.
        Config::parse(text).map_err(|faults| {
            let words: Vec<_> = faults.iter().map(ToString::to_string).collect();
            ApplyFault::Unfit(words.join("\n"))
        })?;
        let settings = self
            .candidate(Path::new(CONFIG_FILE), Some(text))
            .map_err(unfit)?;
        self.registry().check_names(&settings).map_err(unfit)?;
        let findings = self.lint(&settings)?;
        if let Some(finding) = findings.iter().find(|finding| finding.kind.is_error()) {
            let why = format!("`{}`: {}", finding.rule, finding.message);
            return Err(ApplyFault::Unfit(why));
        }
        // From here on no other process changes them. Read again, as late as possible: an edit
        // on the disk must not be lost.
        let edit = SettingsEdit::begin(self.home()).map_err(EngineError::from)?;
        let found = edit.read().map_err(EngineError::from)?;
        if revision(&found) != seen {
            return Err(ApplyFault::Changed);
        }
        let message = format!("the settings were changed: {reason}");
        let notice = Notice::new(Act::SettingsChanged, actor.by, actor.through, &message);
        let notice = notice
            .about(CONFIG_FILE)
            .detail("revision", &revision(text));
        self.notice(notice).map_err(EngineError::from)?;
        match edit.write(text) {
            Ok(()) => Ok(()),
            Err(StoreError::Overtaken { .. }) => Err(ApplyFault::Changed),
            Err(fault) => Err(EngineError::from(fault).into()),
        }
    }
}

/// The place of each rule, by its id, and of each cost, in a file of this name.
#[must_use]
pub fn places(settings: &Settings, file: &str) -> BTreeMap<String, String> {
    let all = settings
        .config
        .settings(&settings.text, &settings.rule_texts());
    let named = all.into_iter().filter_map(|setting| {
        let place = match &setting.source {
            SettingSource::Default => "default".to_owned(),
            SettingSource::Line(line) => format!("{file}:{line}"),
            SettingSource::File(file, line) => format!("{file}:{line}"),
        };
        Some((named(&setting.key)?, place))
    });
    named.collect()
}

/// What `lint` calls a setting, if it says anything about it.
fn named(key: &str) -> Option<String> {
    let rule = key.strip_prefix("rule.");
    let is_list = key.starts_with("costs.") || key.ends_with(".hosts");
    rule.or(is_list.then_some(key)).map(str::to_owned)
}

/// An unknown name, unless its rule can have no effect anyway.
fn strange(stranger: &Stranger, findings: &[LintFinding]) -> Option<LintFinding> {
    let Stranger { file, used, fault } = stranger;
    let rule = used.setting.strip_prefix("rule.").unwrap_or(&used.setting);
    let rule = match rule {
        "costs" => format!("costs.{}", used.name),
        rule => rule.to_owned(),
    };
    let is_said =
        |finding: &LintFinding| finding.rule == rule && finding.kind == LintKind::NeverMatches;
    let fix = fault.fix.as_ref().map(|fix| format!("; {fix}"));
    (!findings.iter().any(is_said)).then(|| LintFinding {
        rule,
        kind: LintKind::Unknown,
        message: format!("{}{}", fault.message, fix.unwrap_or_default()),
        place: Some(format!("{file}:{}", fault.line)),
    })
}

/// Whether arguments that fit a schema can have a member of this name.
fn may_take(schema: &Value, name: &str) -> bool {
    let is_named = schema["properties"].get(name).is_some();
    // Anything else may allow more names than it lists, and a lint says what is certain.
    let is_closed = schema["additionalProperties"] == Value::Bool(false);
    let is_plain = schema.get("patternProperties").is_none();
    is_named || !(is_closed && is_plain)
}

/// Changed decisions in groups, those that allow more first.
#[must_use]
pub fn groups(changes: &[Change]) -> Vec<ChangeGroup> {
    let mut groups: Vec<ChangeGroup> = Vec::new();
    for change in changes {
        let same = |group: &&mut ChangeGroup| {
            let one = &group.example;
            (one.before, one.live, one.after) == (change.before, change.live, change.after)
                && (&one.before_rule, &one.after_rule) == (&change.before_rule, &change.after_rule)
                && (&one.tool, &one.caller) == (&change.tool, &change.caller)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.calls.push(change.call_id.clone()),
            None => groups.push(ChangeGroup {
                than_live: change.after.cmp(&change.live),
                example: change.clone(),
                calls: vec![change.call_id.clone()],
            }),
        }
    }
    groups.sort_by(|one, two| {
        let looser = one.than_live.cmp(&two.than_live);
        looser.then_with(|| two.calls.len().cmp(&one.calls.len()))
    });
    groups
}
