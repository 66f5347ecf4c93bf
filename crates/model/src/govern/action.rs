//! Action types for rules: `code:write`, `deploy:production`. A closed list, plus the
//! operator's own.
//!
//! The actions of a tool follow from its policy. Its author may declare more, never
//! fewer. A name that is not on the list is not trusted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::document::Document;
use crate::document::json::JsonKind;
use crate::limits;
use crate::nearest::nearest;
use crate::policy::EffectivePolicy;
use crate::text::elided;

/// An action type, `category:action`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action(Cow<'static, str>);

crate::words! {
    /// How bad an action can be. Later is worse.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ActionRisk {
        /// Nothing to worry about.
        Low = "low",
        /// Can be undone.
        Medium = "medium",
        /// Hard to undo, or leaves the organisation.
        High = "high",
        /// Cannot be undone.
        Critical = "critical",
    }
}

/// The 41 built-in actions.
pub const TAXONOMY: [(&str, ActionRisk); 41] = [
    ("code:read", ActionRisk::Low),
    ("code:write", ActionRisk::Medium),
    ("code:create", ActionRisk::Medium),
    ("code:delete", ActionRisk::High),
    ("code:refactor", ActionRisk::Medium),
    ("test:write", ActionRisk::Low),
    ("test:run", ActionRisk::Low),
    ("docs:write", ActionRisk::Low),
    ("vcs:read", ActionRisk::Low),
    ("vcs:commit", ActionRisk::Medium),
    ("vcs:push", ActionRisk::High),
    ("vcs:branch", ActionRisk::Low),
    ("deploy:staging", ActionRisk::High),
    ("deploy:production", ActionRisk::Critical),
    ("comms:internal", ActionRisk::Low),
    ("comms:external", ActionRisk::High),
    ("budget:spend", ActionRisk::Medium),
    ("budget:exceed", ActionRisk::High),
    ("org:hire", ActionRisk::Medium),
    ("org:fire", ActionRisk::Critical),
    ("org:promote", ActionRisk::Medium),
    ("db:query", ActionRisk::Low),
    ("db:mutate", ActionRisk::High),
    ("db:admin", ActionRisk::Critical),
    ("arch:decide", ActionRisk::Medium),
    ("tool:create", ActionRisk::High),
    ("memory:read", ActionRisk::Low),
    ("knowledge:ingest", ActionRisk::Medium),
    ("knowledge:reindex", ActionRisk::Low),
    ("browser:navigate", ActionRisk::Low),
    ("browser:screenshot", ActionRisk::Low),
    ("browser:diff", ActionRisk::Low),
    ("browser:accessibility_scan", ActionRisk::Low),
    ("browser:spec", ActionRisk::Low),
    ("external_data:request", ActionRisk::High),
    ("desktop:launch", ActionRisk::Medium),
    ("desktop:click", ActionRisk::Low),
    ("desktop:type", ActionRisk::Low),
    ("desktop:key", ActionRisk::Low),
    ("desktop:screenshot", ActionRisk::Low),
    ("desktop:scroll", ActionRisk::Low),
];

/// Aliases for several actions.
pub const ALIASES: [(&str, &[&str]); 7] = [
    ("deployment", &["deploy:staging", "deploy:production"]),
    ("database_read", &["db:query"]),
    ("database_write", &["db:mutate", "db:admin"]),
    ("file_read", &["code:read"]),
    (
        "file_write",
        &["code:write", "code:create", "code:delete", "code:refactor"],
    ),
    ("network", &["comms:external", "external_data:request"]),
    ("git_push", &["vcs:push"]),
];

/// Actions that change nothing, here or elsewhere. Network requests are not among them:
/// a request may change something on the other side.
const READS: [&str; 9] = [
    "code:read",
    "vcs:read",
    "db:query",
    "memory:read",
    "browser:screenshot",
    "browser:diff",
    "browser:accessibility_scan",
    "browser:spec",
    "desktop:screenshot",
];

/// The field of a document in which its author declares actions.
pub const DECLARED_FIELD: &str = "x-ringfence-actions";

/// The use of a list of actions. A category on a list that restricts covers registered
/// actions too; on a list that grants it covers only the built-in ones, so that
/// registering an action never grants it by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListUse {
    /// A list of allowed actions.
    Grant,
    /// A list of actions that are asked about or denied.
    Restrict,
}

/// A word that is no action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ActionFault {
    /// What is wrong.
    pub message: String,
    /// The nearest known word.
    pub nearest: Option<String>,
}

/// Every action there is: the built-in ones and the operator's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    custom: BTreeMap<Action, ActionRisk>,
}

impl Action {
    /// `category:action`.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.0
    }

    /// The part before the colon.
    #[must_use]
    pub fn category(&self) -> &str {
        self.0.split(':').next().unwrap_or("")
    }

    /// Whether it changes nothing. An action that is not built in counts as a change.
    #[must_use]
    pub fn is_read(&self) -> bool {
        READS.contains(&self.word())
    }

    /// One of the built-in ones.
    #[must_use]
    pub fn built_in(word: &str) -> Option<Action> {
        let found = TAXONOMY.iter().find(|(known, _)| *known == word);
        found.map(|(known, _)| Action(Cow::Borrowed(known)))
    }
}

impl Actions {
    /// Adds an action of the operator's own.
    pub fn register(&mut self, word: &str, risk: ActionRisk) -> Result<(), ActionFault> {
        let shown = elided(word, 60);
        let refuse = |message: String| {
            Err(ActionFault {
                message,
                nearest: None,
            })
        };
        let part = |part: &str| {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            !part.is_empty() && part.chars().all(fits)
        };
        let well = word.split_once(':');
        if !well.is_some_and(|(category, action)| part(category) && part(action)) {
            return refuse(format!(
                "`{shown}` is not an action; write two words in lower case with a colon, such as `payments:transfer`"
            ));
        }
        if Action::built_in(word).is_some() {
            return refuse(format!("`{shown}` is there already"));
        }
        if self.custom.len() == limits::ACTIONS_CUSTOM_MAX {
            return refuse(format!(
                "there are more than {} actions",
                limits::ACTIONS_CUSTOM_MAX
            ));
        }
        self.custom
            .insert(Action(Cow::Owned(word.to_owned())), risk);
        Ok(())
    }

    /// The actions the operator registered, with their risks.
    pub fn custom(&self) -> impl Iterator<Item = (&Action, ActionRisk)> {
        self.custom.iter().map(|(action, risk)| (action, *risk))
    }

    /// Whether an action is on the list.
    #[must_use]
    pub fn knows(&self, action: &Action) -> bool {
        self.custom.contains_key(action) || Action::built_in(action.word()).is_some()
    }

    /// How bad an action can be. An unknown action counts as the worst.
    #[must_use]
    pub fn risk(&self, action: &Action) -> ActionRisk {
        let built_in = TAXONOMY.iter().find(|(word, _)| *word == action.word());
        let custom = || self.custom.get(action).copied();
        built_in
            .map(|(_, risk)| *risk)
            .or_else(custom)
            .unwrap_or(ActionRisk::Critical)
    }

    /// The actions that a word means: itself, those of a category (`code`, `code:`), or
    /// those of an alias.
    pub fn expand(&self, word: &str, list: ListUse) -> Result<BTreeSet<Action>, ActionFault> {
        let folded = word.trim().to_lowercase();
        let one = Action(Cow::Owned(folded.clone()));
        if let Some(found) = Action::built_in(&folded) {
            return Ok(BTreeSet::from([found]));
        }
        if self.custom.contains_key(&one) {
            return Ok(BTreeSet::from([one]));
        }
        if let Some((_, many)) = ALIASES.iter().find(|(alias, _)| *alias == folded) {
            return Ok(many
                .iter()
                .filter_map(|word| Action::built_in(word))
                .collect());
        }
        let category = folded.strip_suffix(':').unwrap_or(&folded);
        let built_in = TAXONOMY
            .iter()
            .filter_map(|(word, _)| Action::built_in(word));
        let custom = match list {
            // A category in a grant must not cover actions that are registered later.
            ListUse::Grant => None,
            ListUse::Restrict => Some(self.custom.keys().cloned()),
        };
        let all = built_in.chain(custom.into_iter().flatten());
        let members: BTreeSet<_> = all.filter(|action| action.category() == category).collect();
        if members.is_empty() {
            return Err(self.unknown(word, category, list));
        }
        Ok(members)
    }

    fn unknown(&self, word: &str, category: &str, list: ListUse) -> ActionFault {
        let shown = elided(word, 60);
        let own = self
            .custom
            .keys()
            .any(|action| action.category() == category);
        if own && list == ListUse::Grant {
            return ActionFault {
                message: format!(
                    "`{shown}` would grant every action registered under it; name them one by one"
                ),
                nearest: None,
            };
        }
        let known = TAXONOMY.iter().map(|(word, _)| *word);
        let known = known.chain(ALIASES.iter().map(|(alias, _)| *alias));
        let categories = TAXONOMY
            .iter()
            .filter_map(|(word, _)| word.split(':').next());
        let known = known
            .chain(categories)
            .chain(self.custom.keys().map(Action::word));
        ActionFault {
            message: format!("there is no action `{shown}`"),
            nearest: nearest(word, known).map(str::to_owned),
        }
    }

    /// The actions of a call of a document: from its policy, from its category, and
    /// those its author declares. Sorted, and never empty.
    #[must_use]
    pub fn of(&self, document: &Document, policy: &EffectivePolicy) -> Vec<Action> {
        let mut words = derived(policy);
        let category = document.category.as_deref().unwrap_or("");
        words.extend(of_category(category, policy));
        let mut actions: Vec<Action> = words
            .into_iter()
            .map(|word| Action(Cow::Borrowed(word)))
            .collect();
        actions.extend(self.declared(document));
        actions.sort();
        actions.dedup();
        actions
    }

    /// The actions of one call. `stated` are those that the tool's body derives from
    /// this call; without it, they follow from document and policy. Sorted, and never
    /// empty: a body that states none does something unknown.
    #[must_use]
    pub fn of_call(
        &self,
        document: &Document,
        policy: &EffectivePolicy,
        stated: Option<&[Action]>,
    ) -> Vec<Action> {
        let Some(stated) = stated else {
            return self.of(document, policy);
        };
        let mut actions = stated.to_vec();
        if actions.is_empty() {
            // Invariant 8: an unknown action is asked about or denied by every rule on
            // actions.
            actions.push(Action(Cow::Borrowed("?")));
        }
        actions.extend(self.declared(document));
        actions.sort();
        actions.dedup();
        actions
    }

    /// The declared actions. An unknown word stays, and counts as the worst.
    fn declared(&self, document: &Document) -> Vec<Action> {
        let Some(node) = document.tree().get(DECLARED_FIELD) else {
            return Vec::new();
        };
        let JsonKind::Array(items) = &node.kind else {
            return vec![Action(Cow::Borrowed("?"))];
        };
        let read = |item: &crate::document::json::Node| match &item.kind {
            JsonKind::String(word) => match self.expand(word, ListUse::Restrict) {
                Ok(actions) => actions.into_iter().collect(),
                // Kept and not dropped: a mistyped declaration must not make the tool
                // look harmless.
                Err(_) => vec![Action(Cow::Owned(elided(word, 60)))],
            },
            JsonKind::Null
            | JsonKind::Bool(_)
            | JsonKind::Number(_)
            | JsonKind::Array(_)
            | JsonKind::Object(_) => {
                vec![Action(Cow::Borrowed("?"))]
            }
        };
        items
            .iter()
            .take(limits::ACTIONS_DECLARED_MAX)
            .flat_map(read)
            // What was not read could be anything.
            .chain(
                (items.len() > limits::ACTIONS_DECLARED_MAX).then_some(Action(Cow::Borrowed("?"))),
            )
            .collect()
    }
}

fn derived(policy: &EffectivePolicy) -> Vec<&'static str> {
    let mut words = vec!["code:read"];
    if policy.file_write {
        words.push("code:write");
    }
    let network = policy.reaches_out();
    if network {
        words.push("external_data:request");
    }
    // With the network it may destroy what lies elsewhere.
    match (policy.destructive, network) {
        (false, _) => {}
        (true, false) => words.push("code:delete"),
        (true, true) => words.extend(["code:delete", "db:mutate"]),
    }
    words
}

/// The actions of a category, whatever the policy.
fn of_category(category: &str, policy: &EffectivePolicy) -> Option<&'static str> {
    let word = match category.to_ascii_uppercase().as_str() {
        "MESSAGING" | "COMMUNICATION" if policy.reaches_out() => "comms:external",
        "MESSAGING" | "COMMUNICATION" => "comms:internal",
        "VERSION_CONTROL" | "VCS" | "GIT" => "vcs:commit",
        "TERMINAL" | "CODE_EXECUTION" => "code:write",
        "DATABASE" => "db:query",
        "DEPLOYMENT" => "deploy:staging",
        "MEMORY" => "memory:read",
        "BROWSER" => "browser:navigate",
        "DESKTOP" => "desktop:launch",
        _ => return None,
    };
    Some(word)
}

#[cfg(test)]
mod tests;
