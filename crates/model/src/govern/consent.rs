//! The access a tool needs, and the part that its owner granted.
//!
//! A document that is tried for the first time may come from anywhere. Whatever it
//! does beyond computing and reading is a *need*; each is granted by the owner, for
//! one tool, once. A document that needs no more than was granted asks nothing again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::document::environment::Environment;
use crate::document::lifecycle;
use crate::document::{Document, NetworkMode};
use crate::policy::EffectivePolicy;
use crate::policy::risk::{Level, Risk};
use crate::text::elided;

/// Characters of one need shown to a person.
const SHOWN_CHARS_MAX: usize = 300;

/// One kind of access a tool needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// One host, or the hosts of one pattern.
    Host(String),
    /// Any public host.
    PublicHosts,
    /// Any host, private networks included.
    AnyHost,
    /// The value of a variable.
    Variable(String),
    /// The files of a folder outside its workspace.
    Folder(String),
    /// Changing files.
    Write,
    /// Destroying data that cannot be restored.
    Destroy,
    /// A badge of L4 or more.
    Risk(Level),
}

impl Need {
    /// The text the store keeps.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Need::Host(host) => format!("host {host}"),
            Need::PublicHosts => "network public".to_owned(),
            Need::AnyHost => "network any".to_owned(),
            Need::Variable(name) => format!("variable {name}"),
            Need::Folder(path) => format!("folder {path}"),
            Need::Write => "write".to_owned(),
            Need::Destroy => "destroy".to_owned(),
            Need::Risk(level) => format!("risk {}", level.badge()),
        }
    }

    /// The need in words, after "it would".
    #[must_use]
    pub fn words(&self) -> String {
        let shown = |text: &str| elided(text, SHOWN_CHARS_MAX);
        match self {
            Need::Host(host) => format!("reach {}", shown(host)),
            Need::PublicHosts => "reach any public host".to_owned(),
            Need::AnyHost => "reach any host, private networks included".to_owned(),
            Need::Variable(name) => format!("get the value of the variable {}", shown(name)),
            Need::Folder(path) => format!("see the files of `{}`", shown(path)),
            Need::Write => "write files".to_owned(),
            Need::Destroy => "destroy data that cannot be restored".to_owned(),
            Need::Risk(level) => format!("run with risk {} {}", level.badge(), level.label()),
        }
    }

    /// The wider need that covers it.
    fn covered_by(&self) -> Option<Need> {
        match self {
            // A listed host may be a private one, so "any public host" does not cover it.
            Need::Host(_) | Need::PublicHosts => Some(Need::AnyHost),
            Need::Risk(Level::L4) => Some(Need::Risk(Level::L5)),
            Need::AnyHost
            | Need::Variable(_)
            | Need::Folder(_)
            | Need::Write
            | Need::Destroy
            | Need::Risk(_) => None,
        }
    }
}

/// All needs of a document under a policy, in order, once each.
#[must_use]
pub fn needs(document: &Document, policy: &EffectivePolicy, risk: &Risk) -> Vec<Need> {
    let mut needs = BTreeSet::new();
    match policy.network {
        NetworkMode::Blocked => {}
        NetworkMode::Allowlist => {
            for host in &policy.hosts {
                needs.insert(match host.is_any() {
                    // A host list with `*` reaches what `strict` does: public hosts only.
                    true => Need::PublicHosts,
                    false => Need::Host(host.to_string()),
                });
            }
        }
        NetworkMode::Strict => {
            needs.insert(Need::PublicHosts);
        }
        NetworkMode::Open => {
            needs.insert(Need::AnyHost);
        }
    }
    let names = lifecycle::requirements(document);
    needs.extend(names.map(|name| Need::Variable(name.to_owned())));
    if policy.file_read || policy.file_write {
        needs.extend(policy.fs_base_path.clone().map(Need::Folder));
    }
    if policy.file_write {
        needs.insert(Need::Write);
    }
    if policy.destructive {
        needs.insert(Need::Destroy);
    }
    if risk.level >= Level::L4 {
        needs.insert(Need::Risk(risk.level));
    }
    needs.into_iter().collect()
}

/// The owner's grants to one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Everything it was shipped with: the document is ours, word for word.
    Ours,
    /// These, by their [`Need::word`].
    Only(Arc<BTreeSet<String>>),
}

impl Granted {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Granted {
        Granted::Only(Arc::default())
    }

    /// Whether a need is granted.
    #[must_use]
    pub fn has(&self, need: &Need) -> bool {
        match self {
            Granted::Ours => true,
            Granted::Only(words) => {
                let covered = need.covered_by();
                words.contains(&need.word())
                    || covered.is_some_and(|wider| words.contains(&wider.word()))
            }
        }
    }

    /// The needs that are not granted.
    #[must_use]
    pub fn lacks(&self, needs: Vec<Need>) -> Vec<Need> {
        needs.into_iter().filter(|need| !self.has(need)).collect()
    }

    /// Whether the tool may have the value of a variable.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.has(&Need::Variable(name.to_owned()))
    }

    /// The variables of a document, and whether each is set and granted.
    #[must_use]
    pub fn variables(&self, document: &Document, environment: &Environment) -> Vec<Variable> {
        let mut variables: Vec<Variable> = Vec::new();
        for name in lifecycle::requirements(document) {
            if variables.iter().all(|known| known.name != name) {
                variables.push(Variable {
                    name: name.to_owned(),
                    set: environment.get(name).is_some(),
                    granted: self.has_variable(name),
                });
            }
        }
        variables
    }

    /// The variables a document names that are not granted, in order, once each.
    #[must_use]
    pub fn ungranted(&self, document: &Document) -> Vec<String> {
        let all = self.variables(document, &Environment::empty()).into_iter();
        let ungranted = all.filter(|variable| !variable.granted);
        ungranted.map(|variable| variable.name).collect()
    }

    /// The part of an environment that a tool with this document may see.
    #[must_use]
    pub fn visible(&self, document: &Document, environment: &Environment) -> Environment {
        let names = lifecycle::requirements(document).filter(|name| self.has_variable(name));
        let values = names.filter_map(|name| environment.get(name).map(|value| (name, value)));
        values.collect()
    }
}

/// A variable a document names. Never its value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether it has a value now.
    pub set: bool,
    /// Whether the owner granted it to the tool.
    pub granted: bool,
}

impl Variable {
    /// Such as `FORECAST_API_KEY (set, not granted)`.
    #[must_use]
    pub fn words(&self) -> String {
        let set = if self.set { "set" } else { "not set" };
        let granted = if self.granted {
            "granted"
        } else {
            "not granted"
        };
        format!("{} ({set}, {granted})", self.name)
    }
}

#[cfg(test)]
mod tests;
