//! The tools that come with the binary. Their names are reserved and each must
//! have the digest it was shipped with, or it is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use model::assessment::{self, Sound};
use model::document::{self, Item};
use model::environment::Environment;
use model::json::Lines;
use model::nearest::nearest;
use model::policy::Baseline;
use model::safety::Source;
use serde::Deserialize;

use crate::EngineError;
use crate::registry::{Standing, Tool};

mod embedded {
    //! Written by the build script.
    include!(concat!(env!("OUT_DIR"), "/catalog.rs"));
}

/// The bundled tools and their presets.
#[derive(Debug)]
pub struct Catalog {
    items: Vec<(&'static str, Item)>,
    digests: BTreeMap<&'static str, &'static str>,
    presets: BTreeMap<String, Preset>,
    /// Judged on this ground before; the ground hardly ever changes.
    judged: Mutex<Option<(Baseline, Vec<Tool>)>>,
}

/// A named choice of bundled tools.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What it is for.
    pub description: String,
    /// The tools; `*` is all of them.
    pub tools: Vec<String>,
}

impl Catalog {
    /// The tools that came with this binary.
    pub fn bundled() -> Result<Catalog, EngineError> {
        Catalog::read(embedded::DOCUMENTS, embedded::PRESETS, embedded::DIGESTS)
    }

    fn read(
        documents: &[&'static str],
        presets: &str,
        digests: &'static str,
    ) -> Result<Catalog, EngineError> {
        let broken = |why: String| EngineError::Catalog(why);
        let presets = toml::from_str(presets).map_err(|fault| broken(fault.to_string()))?;
        let line = |line: &'static str| line.split_once(' ');
        let mut items = Vec::with_capacity(documents.len());
        for text in documents {
            for item in document::parse(text).items {
                items.push((*text, item));
            }
        }
        Ok(Catalog {
            items,
            digests: digests.lines().filter_map(line).collect(),
            presets,
            judged: Mutex::new(None),
        })
    }

    /// The tools on this ground. One whose digest is not the shipped one is left
    /// out: somebody changed it.
    pub(crate) fn tools(&self, ground: &Baseline) -> Vec<Tool> {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, tools)) = judged.as_ref()
            && known == ground
        {
            return tools.clone();
        }
        let tools: Vec<_> = self
            .items
            .iter()
            .filter_map(|(text, item)| self.judge(text, item, ground))
            .collect();
        *judged = Some((ground.clone(), tools.clone()));
        tools
    }

    fn judge(&self, text: &str, item: &Item, ground: &Baseline) -> Option<Tool> {
        let lines = Lines::new(text);
        let none = Environment::empty();
        let assessed = assessment::assess(item.clone(), &lines, ground, &none, Source::Builtin);
        let sound: Sound = assessed.sound?;
        let shipped = self.digests.get(sound.document.name.as_str())?;
        (sound.judged.digest.to_string() == *shipped).then(|| Tool {
            sound: Arc::new(sound),
            source: Source::Builtin,
            file: None,
            findings: assessed.findings,
            standing: Standing::Published,
        })
    }

    /// The names a preset holds.
    pub(crate) fn preset(&self, name: &str) -> Result<Vec<String>, EngineError> {
        let Some(preset) = self.presets.get(name) else {
            let known = self.presets.keys().map(String::as_str);
            return Err(EngineError::Preset {
                name: name.to_owned(),
                nearest: nearest(name, known).map(str::to_owned),
            });
        };
        if preset.tools.iter().any(|tool| tool == "*") {
            return Ok(self.digests.keys().map(|name| (*name).to_owned()).collect());
        }
        Ok(preset.tools.clone())
    }

    /// Every preset, by name.
    #[must_use]
    pub fn presets(&self) -> &BTreeMap<String, Preset> {
        &self.presets
    }

    /// The names nobody else may take.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.digests.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"name":"one","code":"return 1","codeType":"Javascript"}"#;

    fn catalog(digests: &'static str) -> Catalog {
        let presets = "[starter]\ndescription = \"a\"\ntools = [\"one\"]\n[everything]\ndescription = \"b\"\ntools = [\"*\"]\n";
        Catalog::read(&[TEXT], presets, digests).expect("a catalog")
    }

    #[test]
    fn a_tool_with_another_digest_is_not_there() {
        let ground = Baseline::closed();
        let item = document::parse(TEXT).items.pop().expect("an item");
        let document = item.document.expect("a document");
        let digest = model::digest::of_document(&document).expect("a digest");
        let line: &'static str = Box::leak(format!("one {digest}\n").into_boxed_str());
        assert_eq!(catalog(line).tools(&ground).len(), 1);
        let flipped = line.replace(&digest.hex(), &"0".repeat(64));
        let flipped: &'static str = Box::leak(flipped.into_boxed_str());
        assert_eq!(catalog(flipped).tools(&ground).len(), 0);
        assert_eq!(catalog("").tools(&ground).len(), 0);
    }

    #[test]
    fn presets_are_known_by_name() {
        let catalog = catalog("one x\ntwo y\n");
        assert_eq!(catalog.preset("starter").expect("known"), ["one"]);
        assert_eq!(catalog.preset("everything").expect("known"), ["one", "two"]);
        let fault = catalog.preset("startr").expect_err("unknown");
        assert!(
            fault.to_string().contains("did you mean `starter`?"),
            "{fault}"
        );
    }
}
