//! The native tools of the enabled categories on one baseline, read when first asked for.

use std::sync::{Arc, OnceLock};

use model::config::{ToolboxCategory, ToolboxConfig};
use model::document;
use model::document::environment::Environment;
use model::document::json::Lines;
use model::document::safety::Source;
use model::govern::consent::Granted;
use model::policy::{Baseline, assessment};

use crate::tool::{Tool, ToolBody, ToolState};
use crate::toolbox::{JailStanding, ToolboxTool, document_text};

/// The toolbox tools that exist, and the jail around what they start.
#[derive(Clone, Debug)]
pub(crate) struct Toolbox {
    baseline: Baseline,
    config: ToolboxConfig,
    tools: OnceLock<Vec<Tool>>,
}

impl Toolbox {
    pub(crate) fn on(baseline: &Baseline, config: &ToolboxConfig) -> Toolbox {
        Toolbox {
            baseline: baseline.clone(),
            config: config.clone(),
            tools: OnceLock::new(),
        }
    }

    /// Nothing is enabled.
    pub(crate) fn none(baseline: &Baseline) -> Toolbox {
        Toolbox::on(baseline, &ToolboxConfig::standard())
    }

    /// The enabled category that a name belongs to: no other tool has it then.
    pub(crate) fn category(&self, name: &str) -> Option<ToolboxCategory> {
        let mut categories = ToolboxTool::named(name)?.categories().iter();
        categories
            .find(|category| self.config.has(**category))
            .copied()
    }

    /// The names of what exists.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for tool in ToolboxTool::ALL {
            names.extend(self.category(tool.name()).map(|_| tool.name()));
        }
        names
    }

    pub(crate) fn all(&self) -> &[Tool] {
        self.tools.get_or_init(|| {
            let all = ToolboxTool::ALL.into_iter();
            let all = all.filter(|tool| self.category(tool.name()).is_some());
            all.filter_map(|tool| assess(tool, &self.baseline, &self.config))
                .collect()
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        let tool = ToolboxTool::named(name)?;
        self.all()
            .iter()
            .find(|known| known.body == ToolBody::Toolbox(tool))
    }
}

fn assess(tool: ToolboxTool, baseline: &Baseline, config: &ToolboxConfig) -> Option<Tool> {
    let text = document_text(tool, config);
    let item = document::parse(&text).items.pop()?;
    let none = Environment::empty();
    let assessed = assessment::assess(item, &Lines::new(&text), baseline, &none, Source::Builtin);
    let mut usable = assessed.usable?;
    let standing = JailStanding::of_machine();
    tool.raise(standing, config.jail, &mut usable.facts.risk);
    usable.facts.jail = tool.reach().read.then(|| standing.record());
    Some(Tool {
        usable: Arc::new(usable),
        source: Source::Builtin,
        body: ToolBody::Toolbox(tool),
        file: None,
        findings: assessed.findings,
        state: ToolState::Published,
        granted: Granted::Ours,
    })
}

#[cfg(test)]
mod tests {
    use model::document::NetworkMode;
    use model::document::finding::any_error;
    use model::document::params;
    use model::network::host_pattern::HostPattern;
    use model::policy::risk::Level;
    use model::word::Word as _;

    use super::*;

    fn everything() -> ToolboxConfig {
        let mut config = ToolboxConfig::standard();
        config.enabled = ToolboxCategory::ALL.iter().copied().collect();
        config
    }

    fn level(config: &ToolboxConfig, name: &str) -> Level {
        let toolbox = Toolbox::on(&Baseline::closed(), config);
        let tool = toolbox.get(name).expect(name);
        let mut risk = tool.usable.facts.risk.clone();
        // The machine's own fence aside.
        risk.signals
            .retain(|signal| !signal.words.starts_with("jail:"));
        risk.signals
            .first()
            .map_or(Level::L0, |signal| signal.level)
    }

    #[test]
    fn nothing_exists_until_its_category_is_enabled() {
        let mut config = ToolboxConfig::standard();
        assert_eq!(Toolbox::on(&Baseline::closed(), &config).all().len(), 0);
        config.enabled.insert(ToolboxCategory::Code);
        let toolbox = Toolbox::on(&Baseline::closed(), &config);
        let names: Vec<_> = toolbox
            .all()
            .iter()
            .map(|tool| tool.usable.document.name.clone())
            .collect();
        assert_eq!(names, ["runCode", "applyChanges"]);
        assert!(toolbox.get("shell").is_none());
    }

    #[test]
    fn every_definition_is_a_document_without_errors() {
        let toolbox = Toolbox::on(&Baseline::closed(), &everything());
        assert_eq!(toolbox.all().len(), ToolboxTool::ALL.len());
        for tool in toolbox.all() {
            let document = &tool.usable.document;
            assert!(!any_error(&tool.findings), "{:?}", tool.findings);
            let arguments = params::test_arguments(&document.params).expect("test values");
            let given = serde_json::Value::Object(arguments.into_values());
            // Blank examples of numbers and flags stay absent, so what is left fits.
            assert!(
                tool.body.check_arguments(document, &given).is_ok(),
                "{} {given}",
                document.name
            );
        }
    }

    #[test]
    fn the_risk_follows_from_what_a_tool_reaches() {
        let mut config = everything();
        assert_eq!(level(&config, "shell"), Level::L4);
        assert_eq!(level(&config, "gitStatus"), Level::L3);
        assert_eq!(level(&config, "gitCommit"), Level::L4);
        assert_eq!(level(&config, "jobStatus"), Level::L0);
        // In a folder of the operator's a command changes nothing there.
        config.folder = Some("/srv/project".to_owned());
        assert_eq!(level(&config, "shell"), Level::L3);
        assert_eq!(level(&config, "applyChanges"), Level::L4);
        config.hosts = vec![HostPattern::parse("*").expect("a host")];
        assert_eq!(level(&config, "shell"), Level::L4);
        assert_eq!(level(&config, "gitStatus"), Level::L3);
    }

    #[test]
    fn the_ground_of_other_tools_widens_no_native_tool() {
        let mut baseline = Baseline::closed();
        baseline.network = NetworkMode::Open;
        baseline.file_write = true;
        baseline.fs_base_path = Some("/".to_owned());
        let toolbox = Toolbox::on(&baseline, &everything());
        for tool in toolbox.all() {
            let policy = &tool.usable.facts.policy;
            assert!(!policy.reaches_out(), "{}", tool.usable.document.name);
            let reach = match &tool.body {
                ToolBody::Toolbox(tool) => tool.reach(),
                _ => panic!("a native tool"),
            };
            assert_eq!(
                policy.file_write,
                reach.write != crate::toolbox::FolderChanges::None
            );
        }
    }
}
