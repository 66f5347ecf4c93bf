//! Our own tools on one baseline, read when first asked for: those of the parts that
//! are on.

use std::sync::{Arc, OnceLock};

use model::config::Config;
use model::document;
use model::document::environment::Environment;
use model::document::json::Lines;
use model::document::safety::Source;
use model::govern::consent::Granted;
use model::policy::Baseline;
use model::policy::assessment;

use crate::native::Native;
use crate::tool::{Tool, ToolBody, ToolState};

/// Our own tools on one baseline.
#[derive(Clone, Debug)]
pub(crate) struct Natives {
    baseline: Baseline,
    on: Vec<Native>,
    tools: OnceLock<Vec<Tool>>,
}

impl Natives {
    pub(crate) fn on(baseline: &Baseline, config: &Config) -> Natives {
        let all = Native::ALL.into_iter();
        Natives {
            baseline: baseline.clone(),
            on: all
                .filter(|native| native.feature().is_on(config))
                .collect(),
            tools: OnceLock::new(),
        }
    }

    /// Nothing is on.
    pub(crate) fn none(baseline: &Baseline) -> Natives {
        Natives {
            baseline: baseline.clone(),
            on: Vec::new(),
            tools: OnceLock::new(),
        }
    }

    pub(crate) fn all(&self) -> &[Tool] {
        let judge = |native: &Native| assess(*native, &self.baseline);
        let all = || self.on.iter().filter_map(judge).collect();
        self.tools.get_or_init(all)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        let native = Native::named(name)?;
        self.all()
            .iter()
            .find(|tool| tool.body == ToolBody::Native(native))
    }
}

fn assess(native: Native, baseline: &Baseline) -> Option<Tool> {
    let text = native.document();
    let item = document::parse(text).items.pop()?;
    let none = Environment::empty();
    let assessed = assessment::assess(item, &Lines::new(text), baseline, &none, Source::Builtin);
    Some(Tool {
        usable: Arc::new(assessed.usable?),
        source: Source::Builtin,
        body: ToolBody::Native(native),
        file: None,
        findings: assessed.findings,
        state: ToolState::Published,
        granted: Granted::Ours,
    })
}

#[cfg(test)]
mod tests {
    use model::config::CodecallMode;
    use model::document::finding::any_error;
    use model::document::params;
    use model::policy::risk::Level;
    use serde_json::Value;

    use super::*;

    fn everything() -> Natives {
        let mut config = Config::closed();
        config.progressive.enabled = true;
        Natives::on(&Baseline::closed(), &config)
    }

    #[test]
    fn each_native_tool_has_the_least_posture() {
        let natives = everything();
        assert_eq!(natives.all().len(), Native::ALL.len());
        for tool in natives.all() {
            let document = &tool.usable.document;
            assert_eq!(Native::named(&document.name), tool.body.native());
            assert!(!any_error(&tool.findings), "{:?}", tool.findings);
            assert_eq!(tool.usable.facts.risk.level, Level::L0);
            assert!(params::test_arguments(&document.params).is_ok());
        }
        let mut config = Config::closed();
        let ours = |config: &Config| Natives::on(&Baseline::closed(), config).all().len();
        assert_eq!(ours(&config), 4);
        config.codecall.mode = CodecallMode::Off;
        assert_eq!(ours(&config), 0);
        config.progressive.enabled = true;
        assert_eq!(ours(&config), 3);
    }

    #[test]
    fn the_schema_names_what_the_params_name() {
        for tool in everything().all() {
            let schema = tool.body.input_schema(&tool.usable.document);
            let shown = params::input_schema(&tool.usable.document.params);
            let names = |schema: &Value| -> Vec<String> {
                let properties = schema["properties"].as_object().expect("properties");
                properties.keys().cloned().collect()
            };
            assert_eq!(names(&schema), names(&shown));
            assert_eq!(schema["required"], shown["required"]);
        }
    }
}
