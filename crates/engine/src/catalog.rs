//! The tools that come with the binary. Their names are reserved and each must
//! have the digest it was shipped with, or it is not there.
//!
//! A command that calls one tool reads one document: each is read and judged when
//! it is first asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use model::document;
use model::document::environment::Environment;
use model::document::json::Lines;
use model::document::safety::Source;
use model::govern::consent::Granted;
use model::nearest::nearest;
use model::policy::Baseline;
use model::policy::assessment;
use serde::Deserialize;
use store::parallel;

use crate::error::EngineError;
use crate::native::Native;
use crate::tool::{Tool, ToolBody, ToolState};

mod natives;
mod toolbox;

pub(crate) use natives::Natives;
pub(crate) use toolbox::Toolbox;

mod embedded {
    //! Written by the build script.
    include!(concat!(env!("OUT_DIR"), "/catalog.rs"));
}

/// The bundled documents and their presets.
#[derive(Debug)]
pub struct Catalog {
    /// By name, which is also the name of the file.
    documents: BTreeMap<&'static str, &'static str>,
    digests: BTreeMap<&'static str, &'static str>,
    presets: BTreeMap<String, ToolPreset>,
}

/// The bundled tools on one baseline.
#[derive(Clone, Debug)]
pub(crate) struct Bundled {
    catalog: Arc<Catalog>,
    baseline: Baseline,
    tools: BTreeMap<&'static str, OnceLock<Option<Tool>>>,
}

/// A named choice of bundled tools.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPreset {
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
        documents: &[(&'static str, &'static str)],
        presets: &str,
        digests: &'static str,
    ) -> Result<Catalog, EngineError> {
        let broken = |why: String| EngineError::Catalog(why);
        let presets = toml::from_str(presets).map_err(|fault| broken(fault.to_string()))?;
        let line = |line: &'static str| line.split_once(' ');
        Ok(Catalog {
            documents: documents.iter().copied().collect(),
            digests: digests.lines().filter_map(line).collect(),
            presets,
        })
    }

    /// Nothing at all.
    pub(crate) fn empty() -> Catalog {
        Catalog {
            documents: BTreeMap::new(),
            digests: BTreeMap::new(),
            presets: BTreeMap::new(),
        }
    }

    /// The digest a name was shipped with.
    pub(crate) fn digest(&self, name: &str) -> Option<&'static str> {
        self.digests.get(name).copied()
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
    pub fn presets(&self) -> &BTreeMap<String, ToolPreset> {
        &self.presets
    }

    /// Whether a document takes the name of a bundled tool for something else.
    #[must_use]
    pub fn is_taken(&self, name: &str, digest: &str) -> bool {
        let shipped = self.digest(name);
        shipped.is_some_and(|shipped| shipped != digest) || Native::named(name).is_some()
    }

    /// The names that no other tool may have.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.digests.keys().copied().collect()
    }

    /// A tool on some baseline. One whose digest is not the shipped one was changed, and
    /// counts as absent.
    fn judge(&self, name: &str, baseline: &Baseline) -> Option<Tool> {
        let text = self.documents.get(name)?;
        let item = document::parse(text).items.pop()?;
        let lines = Lines::new(text);
        let none = Environment::empty();
        let assessed = assessment::assess(item, &lines, baseline, &none, Source::Builtin);
        let usable = assessed.usable?;
        let is_shipped = usable.document.name == name
            && self.digest(name) == Some(usable.facts.digest.to_string().as_str());
        is_shipped.then(|| Tool {
            usable: Arc::new(usable),
            source: Source::Builtin,
            body: ToolBody::Code,
            file: None,
            findings: assessed.findings,
            state: ToolState::Published,
            granted: Granted::Ours,
        })
    }
}

impl Bundled {
    /// The tools of a catalog on this baseline.
    pub(crate) fn new(catalog: &Arc<Catalog>, baseline: &Baseline) -> Bundled {
        let names = catalog.documents.keys();
        Bundled {
            tools: names.map(|name| (*name, OnceLock::new())).collect(),
            catalog: Arc::clone(catalog),
            baseline: baseline.clone(),
        }
    }

    /// A tool by its name.
    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        let judge = || self.catalog.judge(name, &self.baseline);
        self.tools.get(name)?.get_or_init(judge).as_ref()
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Tool> {
        // On all processors: a list needs every one of them.
        let unread = self.tools.iter().filter(|(_, tool)| tool.get().is_none());
        let unread: Vec<_> = unread.map(|(name, _)| *name).collect();
        // Whatever a thread leaves undone is done below.
        let _ = parallel::map(&unread, |name| {
            self.get(name);
        });
        self.tools.keys().filter_map(|name| self.get(name))
    }

    /// Their names, read or not.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"name":"one","code":"return 1","codeType":"Javascript"}"#;

    fn catalog(digests: &'static str) -> Catalog {
        let presets = "[starter]\ndescription = \"a\"\ntools = [\"one\"]\n[everything]\ndescription = \"b\"\ntools = [\"*\"]\n";
        Catalog::read(&[("one", TEXT)], presets, digests).expect("a catalog")
    }

    fn there(digests: &'static str) -> usize {
        let catalog = Arc::new(catalog(digests));
        Bundled::new(&catalog, &Baseline::closed()).all().count()
    }

    #[test]
    fn a_tool_with_another_digest_is_not_there() {
        let item = document::parse(TEXT).items.pop().expect("an item");
        let document = item.document.expect("a document");
        let digest = document::digest::of_document(&document).expect("a digest");
        let line: &'static str = Box::leak(format!("one {digest}\n").into_boxed_str());
        assert_eq!(there(line), 1);
        let flipped = line.replace(&digest.hex(), &"0".repeat(64));
        let flipped: &'static str = Box::leak(flipped.into_boxed_str());
        assert_eq!(there(flipped), 0);
        assert_eq!(there(""), 0);
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
