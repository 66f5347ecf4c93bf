//! What is odd about a set of rules: rules that never match, that a stronger one
//! always overrules, that contradict each other, or that can only deny because
//! what they look at is never there.
//!
//! Everything said here is certain; what only might be odd is not said.

use crate::access::quota::{Costs, Limit};
use crate::document::Document;
use crate::nearest::nearest;
use crate::pattern::{NamePattern, first};

use super::{Effect, Rule, Rules};

/// One odd thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule.
    pub rule: String,
    /// What kind of odd.
    pub kind: LintKind,
    /// In a sentence.
    pub message: String,
}

/// What kind of odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LintKind {
    /// No call can match it.
    NeverMatches,
    /// A stronger or equal rule matches whatever it matches.
    Shadowed,
    /// Another rule is about the same calls and says something else.
    Contradicts,
    /// It looks at an argument that none of its tools takes, so it denies or is
    /// about no call.
    Undecidable,
    /// Something it names is not there, beside other things that are.
    Unknown,
    /// A setting names a folder that tools cannot have; the rule is the setting.
    Folder,
}

impl LintKind {
    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LintKind::NeverMatches => "never-matches",
            LintKind::Shadowed => "shadowed",
            LintKind::Contradicts => "contradicts",
            LintKind::Undecidable => "undecidable",
            LintKind::Unknown => "unknown-name",
            LintKind::Folder => "folder",
        }
    }

    /// Whether the rule cannot do what somebody meant by it. A rule that another
    /// one makes needless, or that names what may yet come, does no harm.
    #[must_use]
    pub fn is_error(self) -> bool {
        match self {
            LintKind::NeverMatches
            | LintKind::Contradicts
            | LintKind::Undecidable
            | LintKind::Folder => true,
            LintKind::Shadowed | LintKind::Unknown => false,
        }
    }
}

/// Names that rules use and nobody has. `callers` are those the settings and the
/// keys know; what `lint` finds is not said again.
#[must_use]
pub fn unknown(rules: &Rules, tools: &[&Document], callers: &[&str]) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for rule in &rules.list {
        if never(rule, tools).is_some() {
            continue;
        }
        let tool_names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let strange = strangers(&rule.tools, &tool_names);
        let messages = strange.map(|name| missing("tool", &name, &tool_names));
        findings.extend(messages.map(|message| finding(rule, LintKind::Unknown, message)));
        let strange = strangers(&rule.callers, callers);
        let messages = strange.map(|name| missing("caller", &name, callers));
        findings.extend(messages.map(|message| finding(rule, LintKind::Unknown, message)));
        let categories = tools.iter().filter_map(|tool| tool.category.as_deref());
        let categories: Vec<_> = categories.map(str::to_lowercase).collect();
        let known: Vec<_> = categories.iter().map(String::as_str).collect();
        let named = rule.categories.iter();
        let strange = named.filter(|name| !categories.contains(name));
        let messages = strange.map(|name| missing("category", name, &known));
        findings.extend(messages.map(|message| finding(rule, LintKind::Unknown, message)));
    }
    findings
}

/// Costs that nothing has, and costs that no day can pay. They are named as they
/// are set: `costs.PATTERN`.
#[must_use]
pub fn costs(costs: &Costs, limits: &[Limit], tools: &[&Document]) -> Vec<LintFinding> {
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let odd = |(pattern, units): &(NamePattern, u64)| {
        let mut fitting = names.iter().filter(|name| pattern.matches(name)).peekable();
        let (kind, message) = match fitting.peek() {
            None if names.is_empty() => return None,
            // Another tool may be meant, and costs one.
            None => {
                let message = missing("tool", &pattern.to_string(), &names);
                (LintKind::NeverMatches, message)
            }
            Some(_) => (LintKind::Contradicts, beyond(limits, fitting, *units)?),
        };
        Some(LintFinding {
            rule: format!("costs.{pattern}"),
            kind,
            message,
        })
    };
    costs.list.iter().filter_map(odd).collect()
}

/// A limit on one of the tools whose day has fewer units than one call costs.
fn beyond<'a>(
    limits: &[Limit],
    mut tools: impl Iterator<Item = &'a &'a str>,
    units: u64,
) -> Option<String> {
    let short = |limit: &&Limit| limit.units_per_day.is_some_and(|most| most < units);
    let short: Vec<_> = limits.iter().filter(short).collect();
    tools.find_map(|tool| {
        let holds = |limit: &&&Limit| limit.tools.is_empty() || first(&limit.tools, tool).is_some();
        let limit = short.iter().find(holds)?;
        let id = &limit.id;
        Some(format!(
            "a call of `{tool}` costs {units} units, more than the limit `{id}` has in a day"
        ))
    })
}

/// Patterns that none of the names fit.
fn strangers<'a>(
    patterns: &'a [NamePattern],
    names: &'a [&str],
) -> impl Iterator<Item = String> + 'a {
    let fits = |pattern: &&NamePattern| {
        let pattern = std::slice::from_ref(*pattern);
        names.iter().any(|name| first(pattern, name).is_some())
    };
    let strange = patterns.iter().filter(move |pattern| !fits(pattern));
    strange.map(ToString::to_string)
}

fn missing(what: &str, name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let near = near.map(|near| format!("; did you mean `{near}`?"));
    format!("there is no {what} `{name}`{}", near.unwrap_or_default())
}

/// Reads a set of rules. `tools` are those there are; without any, what depends on
/// them is not looked at.
#[must_use]
pub fn lint(rules: &Rules, tools: &[&Document]) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for rule in &rules.list {
        if let Some(message) = never(rule, tools) {
            findings.push(finding(rule, LintKind::NeverMatches, message));
            continue;
        }
        if let Some(message) = undecidable(rule, tools) {
            findings.push(finding(rule, LintKind::Undecidable, message));
        }
        let others = rules.list.iter().filter(|other| other.id != rule.id);
        if let Some((kind, message)) = others.filter_map(|other| overruled(rule, other)).next() {
            findings.push(finding(rule, kind, message));
        }
    }
    findings.sort_by(|one, two| one.rule.cmp(&two.rule));
    findings
}

fn finding(rule: &Rule, kind: LintKind, message: String) -> LintFinding {
    LintFinding {
        rule: rule.id.clone(),
        kind,
        message,
    }
}

fn never(rule: &Rule, tools: &[&Document]) -> Option<String> {
    if rule.when.as_ref().and_then(|when| when.constant()) == Some(false) {
        return Some("its condition is never true".to_owned());
    }
    if tools.is_empty() {
        return None;
    }
    let named = || tools.iter().filter(|tool| is_named(rule, tool));
    if !rule.tools.is_empty()
        && tools
            .iter()
            .all(|tool| first(&rule.tools, &tool.name).is_none())
    {
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let near = rule.tools.first().map(ToString::to_string);
        let near = near.and_then(|name| nearest(&name, names.iter().copied()));
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        let near = near.unwrap_or_default();
        return Some(format!("there is no tool of such a name{near}"));
    }
    (named().next().is_none()).then(|| "there is no tool of such a name and category".to_owned())
}

fn is_named(rule: &Rule, tool: &Document) -> bool {
    let category = tool.category.as_deref().unwrap_or("").to_lowercase();
    (rule.tools.is_empty() || first(&rule.tools, &tool.name).is_some())
        && (rule.categories.is_empty() || rule.categories.contains(&category))
}

fn undecidable(rule: &Rule, tools: &[&Document]) -> Option<String> {
    let when = rule.when.as_ref()?;
    let named: Vec<_> = tools.iter().filter(|tool| is_named(rule, tool)).collect();
    let takes = |name: &str| {
        let mut tools = named.iter();
        tools.any(|tool| tool.params.iter().any(|param| param.name == name))
    };
    if named.is_empty() {
        return None;
    }
    let strange = when.arguments().into_iter().find(|name| !takes(name))?;
    Some(format!(
        "it looks at `{strange}`, an argument that none of its tools takes"
    ))
}

/// Whether another rule decides every call this one is about.
fn overruled(rule: &Rule, other: &Rule) -> Option<(LintKind, String)> {
    if other.effect < rule.effect || !covers(other, rule) {
        return None;
    }
    let id = &other.id;
    let both = covers(rule, other);
    if other.effect == rule.effect {
        // Of two that say the same about the same, the second is odd.
        let odd = !both || other.id < rule.id;
        return odd.then(|| {
            (
                LintKind::Shadowed,
                format!("`{id}` says the same about more calls"),
            )
        });
    }
    Some(if both {
        (
            LintKind::Contradicts,
            format!("`{id}` says something stronger about the same calls"),
        )
    } else {
        (
            LintKind::Shadowed,
            format!("`{id}` says something stronger about every call it is about"),
        )
    })
}

/// Whether one rule is about every call another is about.
fn covers(wide: &Rule, tight: &Rule) -> bool {
    let names = |wide: &[NamePattern], tight: &[NamePattern]| {
        let covered = |name: &NamePattern| first(wide, &name.to_string()).is_some();
        !tight.is_empty() && tight.iter().all(covered)
    };
    let members = |wide: &[String], tight: &[String]| tight.iter().all(|name| wide.contains(name));
    let tools = wide.tools.is_empty() || names(&wide.tools, &tight.tools);
    let categories = wide.categories.is_empty()
        || !tight.categories.is_empty() && members(&wide.categories, &tight.categories);
    let everybody = |rule: &Rule| rule.callers.is_empty() && rule.groups.is_empty();
    let callers = everybody(wide)
        || !everybody(tight)
            && (tight.callers.is_empty() || names(&wide.callers, &tight.callers))
            && members(&wide.groups, &tight.groups);
    let actions = match (&wide.actions, &tight.actions) {
        (None, _) => true,
        (Some(_), None) => false,
        // A rule that allows is about fewer calls than one that denies the same
        // actions, so it cannot cover it.
        (Some(_), Some(_)) if wide.effect == Effect::Allow && tight.effect != Effect::Allow => {
            false
        }
        (Some(wide), Some(tight)) => tight.is_subset(wide),
    };
    let risk = match (wide.risk, tight.risk) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(tight)) => wide.from <= tight.from && tight.to <= wide.to,
    };
    let when = match (&wide.when, &tight.when) {
        (None, _) => true,
        (Some(wide), tight) => tight.as_ref() == Some(wide) || wide.constant() == Some(true),
    };
    tools && categories && callers && actions && risk && when
}
