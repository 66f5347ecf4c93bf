//! Lints for a set of rules: rules that never match, that a stronger one always
//! overrules, that contradict each other, or that can only deny because they read an
//! argument that never exists.
//!
//! Everything said here is certain, but for the count of arguments where their length
//! may be meant; what else only might be odd is not said.

use crate::document::{Document, NetworkMode};
use crate::govern::access::Access;
use crate::govern::access::quota::{Costs, RateLimit};
use crate::govern::pattern::{NamePattern, first};
use crate::nearest::nearest;
use crate::network::host_pattern::HostPattern;
use crate::policy::EffectivePolicy;

use super::{Condition, Effect, Rule, Rules};

/// One lint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule.
    pub rule: String,
    /// The kind of a lint.
    pub kind: LintKind,
    /// In a sentence.
    pub message: String,
    /// Its file and line, where they are not those of the rule.
    pub place: Option<String>,
}

/// The kind of a lint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LintKind {
    /// No call can match it.
    NeverMatches,
    /// A stronger or equal rule matches whatever it matches.
    Shadowed,
    /// Another rule matches the same calls and decides otherwise.
    Contradicts,
    /// It reads an argument that none of its tools takes, so it denies or never
    /// applies.
    Undecidable,
    /// It counts the arguments; their length may have been meant.
    Counts,
    /// A name in it does not exist.
    Unknown,
    /// A setting names a folder that tools cannot have; the rule is the setting.
    Folder,
    /// Its tools are those of an MCP server, and held or blocked now.
    Away,
}

/// The tools that settings can name.
#[derive(Clone, Copy, Debug, Default)]
pub struct LintTools<'a> {
    /// Those that calls find. Without any, what depends on tools is not looked at.
    pub there: &'a [&'a Document],
    /// Those that no call finds now and that may come back without a change of the settings:
    /// held or blocked at their servers. What they take and reach is not known.
    pub away: &'a [AwayTool<'a>],
}

/// A tool that no call finds now.
#[derive(Clone, Copy, Debug)]
pub struct AwayTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its category.
    pub category: &'a str,
}

impl LintTools<'_> {
    /// Whether a rule is about a tool that is away.
    fn name_away(&self, rule: &Rule) -> bool {
        let mut away = self.away.iter();
        away.any(|tool| names(rule, tool.name, tool.category))
    }
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
            LintKind::Counts => "counts-arguments",
            LintKind::Unknown => "unknown-name",
            LintKind::Folder => "folder",
            LintKind::Away => "away",
        }
    }

    /// Whether the rule cannot do what its author meant. A redundant rule does no harm.
    #[must_use]
    pub fn is_error(self) -> bool {
        match self {
            LintKind::NeverMatches
            | LintKind::Contradicts
            | LintKind::Undecidable
            | LintKind::Folder
            | LintKind::Unknown => true,
            // Somebody else's server must not decide whether the settings can be changed.
            LintKind::Shadowed | LintKind::Counts | LintKind::Away => false,
        }
    }
}

/// Prices of unknown tools, and prices that exceed a day's units, as `costs.PATTERN`.
#[must_use]
pub fn costs(costs: &Costs, limits: &[RateLimit], tools: LintTools<'_>) -> Vec<LintFinding> {
    let there = tools.there.iter().map(|tool| tool.name.as_str());
    let names: Vec<_> = there
        .chain(tools.away.iter().map(|tool| tool.name))
        .collect();
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
            place: None,
        })
    };
    costs.list.iter().filter_map(odd).collect()
}

/// Hosts of rules and callers that no tool can reach. They are named as they are set:
/// a rule by its id, a list of hosts as `callers.NAME.hosts`.
#[must_use]
pub fn hosts(
    rules: &Rules,
    access: &Access,
    policies: &[(&Document, &EffectivePolicy)],
    tools: LintTools<'_>,
) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    if policies.is_empty() {
        return findings;
    }
    let with_hosts = rules.list.iter().filter(|rule| !rule.hosts.is_empty());
    for rule in with_hosts.filter(|rule| !tools.name_away(rule)) {
        let named = |(tool, _): &&(&Document, &EffectivePolicy)| is_named(rule, tool);
        let policies = policies.iter().filter(named).map(|(_, policy)| *policy);
        let unreached = unreached(&rule.hosts, policies);
        let kind = match unreached.len() == rule.hosts.len() {
            true => LintKind::NeverMatches,
            false => LintKind::Unknown,
        };
        let odd = unreached
            .iter()
            .map(|host| finding(rule, kind, format!("none of its tools can reach `{host}`")));
        findings.extend(odd);
    }
    if !tools.away.is_empty() {
        return findings;
    }
    let everyone = ("access.hosts".to_owned(), &access.everyone);
    let groups = access.groups.iter();
    let groups = groups.map(|(name, group)| (format!("groups.{name}.hosts"), &group.lists));
    let callers = access.callers.iter();
    let callers = callers.map(|(name, lists)| (format!("callers.{name}.hosts"), lists));
    for (key, lists) in std::iter::once(everyone).chain(groups).chain(callers) {
        let hosts = lists.hosts.as_deref().unwrap_or_default();
        let all = policies.iter().map(|(_, policy)| *policy);
        let odd = unreached(hosts, all).into_iter().map(|host| LintFinding {
            rule: key.clone(),
            kind: LintKind::Unknown,
            message: format!("no tool can reach `{host}`"),
            place: None,
        });
        findings.extend(odd);
    }
    findings
}

/// Hosts that none of the policies reaches.
fn unreached<'a>(
    hosts: &'a [HostPattern],
    policies: impl Iterator<Item = &'a EffectivePolicy> + Clone,
) -> Vec<&'a HostPattern> {
    let reaches = |host: &HostPattern, policy: &EffectivePolicy| match policy.network {
        NetworkMode::Blocked => false,
        NetworkMode::Strict | NetworkMode::Open => true,
        NetworkMode::Allowlist => policy.hosts.iter().any(|it| it.overlaps(host)),
    };
    let missing = |host: &&HostPattern| !policies.clone().any(|policy| reaches(host, policy));
    hosts.iter().filter(missing).collect()
}

/// A limit on one of the tools whose day has fewer units than one call costs.
fn beyond<'a>(
    limits: &[RateLimit],
    mut tools: impl Iterator<Item = &'a &'a str>,
    units: u64,
) -> Option<String> {
    let short = |limit: &&RateLimit| limit.units_per_day.is_some_and(|most| most < units);
    let short: Vec<_> = limits.iter().filter(short).collect();
    tools.find_map(|tool| {
        let holds =
            |limit: &&&RateLimit| limit.tools.is_empty() || first(&limit.tools, tool).is_some();
        let limit = short.iter().find(holds)?;
        let id = &limit.id;
        Some(format!(
            "a call of `{tool}` costs {units} units, more than the limit `{id}` has in a day"
        ))
    })
}

fn missing(what: &str, name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let near = near.map(|near| format!("; did you mean `{near}`?"));
    format!("there is no {what} `{name}`{}", near.unwrap_or_default())
}

/// Reads a set of rules. `takes` says whether a tool can take an argument of a name.
#[must_use]
pub fn lint(
    rules: &Rules,
    tools: LintTools<'_>,
    takes: impl Fn(&Document, &str) -> bool,
) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for rule in &rules.list {
        if let Some((kind, message)) = never(rule, tools) {
            findings.push(finding(rule, kind, message));
            continue;
        }
        if let Some(message) = undecidable(rule, tools, &takes) {
            findings.push(finding(rule, LintKind::Undecidable, message));
        }
        if rule.when.as_ref().is_some_and(Condition::counts_arguments) {
            let message =
                "`size(args)` is the number of arguments; their length is `jsonSize(args)`";
            findings.push(finding(rule, LintKind::Counts, message.to_owned()));
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
        place: None,
    }
}

fn never(rule: &Rule, tools: LintTools<'_>) -> Option<(LintKind, String)> {
    let never = |message: String| Some((LintKind::NeverMatches, message));
    if rule.when.as_ref().and_then(|when| when.constant()) == Some(false) {
        return never("its condition is never true".to_owned());
    }
    let there = tools.there;
    if there.is_empty() || there.iter().any(|tool| is_named(rule, tool)) {
        return None;
    }
    if tools.name_away(rule) {
        let message =
            "its tools are held or blocked at their MCP server, so it matches no call now";
        return Some((LintKind::Away, message.to_owned()));
    }
    let is_name = |tool: &&Document| first(&rule.tools, &tool.name).is_some();
    if rule.tools.is_empty() || there.iter().any(is_name) {
        return never("there is no tool of such a name and category".to_owned());
    }
    let known: Vec<_> = there.iter().map(|tool| tool.name.as_str()).collect();
    let near = rule.tools.first().map(ToString::to_string);
    let near = near.and_then(|name| nearest(&name, known.iter().copied()));
    let near = near.map(|near| format!("; did you mean `{near}`?"));
    let near = near.unwrap_or_default();
    never(format!("there is no tool of such a name{near}"))
}

fn is_named(rule: &Rule, tool: &Document) -> bool {
    names(rule, &tool.name, tool.category.as_deref().unwrap_or(""))
}

fn names(rule: &Rule, tool: &str, category: &str) -> bool {
    (rule.tools.is_empty() || first(&rule.tools, tool).is_some())
        && (rule.categories.is_empty() || rule.categories.contains(&category.to_lowercase()))
}

fn undecidable(
    rule: &Rule,
    tools: LintTools<'_>,
    takes: impl Fn(&Document, &str) -> bool,
) -> Option<String> {
    let when = rule.when.as_ref()?;
    let there = tools.there.iter();
    let named: Vec<_> = there.filter(|tool| is_named(rule, tool)).collect();
    let takes = |name: &str| named.iter().any(|tool| takes(tool, name));
    if named.is_empty() || tools.name_away(rule) {
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
        // Of two equal rules, the second is reported.
        let odd = !both || other.id < rule.id;
        return odd.then(|| {
            (
                LintKind::Shadowed,
                format!("`{id}` decides the same for more calls"),
            )
        });
    }
    Some(if both {
        (
            LintKind::Contradicts,
            format!("`{id}` is stronger for the same calls"),
        )
    } else {
        (
            LintKind::Shadowed,
            format!("`{id}` is stronger for every call that it matches"),
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
    let is_for_all = |rule: &Rule| rule.callers.is_empty() && rule.groups.is_empty();
    let callers = is_for_all(wide)
        || !is_for_all(tight)
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
    // Hosts make a rule that denies weaker, and one that allows tighter; only rules
    // of one effect can be compared by them.
    let covered = |host: &HostPattern| wide.hosts.iter().any(|it| it.covers(host));
    let hosts = wide.hosts.is_empty()
        || wide.effect == tight.effect
            && !tight.hosts.is_empty()
            && tight.hosts.iter().all(covered);
    tools && categories && callers && actions && risk && when && hosts
}
