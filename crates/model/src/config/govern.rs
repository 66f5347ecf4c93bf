//! Settings of governance: rules, limits, action types, groups, and the terms of
//! callers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

use super::trust::TrustFile;
use super::{Config, ConfigFault, Faults, from_toml};
use crate::caller::folded;
use crate::govern::access::quota::{Costs, RateLimit};
use crate::govern::access::{ConstraintChanges, Group, Lists, Terms, TrustScope};
use crate::govern::action::{Action, ActionRisk, Actions, ListUse};
use crate::govern::pattern::NamePattern;
use crate::govern::rules::{Condition, Effect, RiskRange, Rule};
use crate::limits;
use crate::nearest::nearest;
use crate::policy::risk::Level;
use crate::text::elided;

/// Everything about governance, as written.
#[derive(Debug, Default)]
pub(super) struct GovernFile {
    pub(super) rules: Vec<Spanned<RuleFile>>,
    pub(super) limits: Vec<Spanned<LimitFile>>,
    pub(super) costs: BTreeMap<Spanned<String>, Spanned<i64>>,
    pub(super) actions: BTreeMap<Spanned<String>, Spanned<String>>,
    pub(super) access: CallerFile,
    pub(super) callers: BTreeMap<Spanned<String>, CallerFile>,
    pub(super) groups: BTreeMap<Spanned<String>, CallerFile>,
    pub(super) trust: Option<Spanned<TrustFile>>,
}

/// Settings of the rules as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RulesSection {
    shadow: Option<Spanned<String>>,
}

/// A file of rules and nothing else.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RulesFile {
    rule: Vec<Spanned<RuleFile>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RuleFile {
    id: Option<Spanned<String>>,
    tools: Option<Spanned<Vec<Spanned<String>>>>,
    actions: Option<Spanned<Vec<Spanned<String>>>>,
    categories: Option<Spanned<Vec<Spanned<String>>>>,
    callers: Option<Spanned<Vec<Spanned<String>>>>,
    risk: Option<Spanned<String>>,
    hosts: Option<Spanned<Vec<Spanned<String>>>>,
    when: Option<Spanned<String>>,
    effect: Option<Spanned<String>>,
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitFile {
    id: Option<Spanned<String>>,
    callers: Option<Spanned<Vec<Spanned<String>>>>,
    tools: Option<Spanned<Vec<Spanned<String>>>>,
    calls_per_minute: Option<Spanned<u64>>,
    concurrent: Option<Spanned<u64>>,
    units_per_day: Option<Spanned<u64>>,
}

/// All callers, a group or one caller.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CallerFile {
    members: Option<Spanned<Vec<Spanned<String>>>>,
    allow: Option<Vec<Spanned<String>>>,
    deny: Vec<Spanned<String>>,
    hosts: Option<Vec<Spanned<String>>>,
    level: Option<Spanned<String>>,
    categories: Option<Vec<String>>,
    autonomy: Option<Spanned<String>>,
    answers: Option<Spanned<String>>,
    constraints: ConstraintsFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConstraintsFile {
    files: Option<Spanned<String>>,
    code: Option<Spanned<String>>,
    network: Option<Spanned<String>>,
    git: Option<Spanned<String>>,
    terminal: Option<Spanned<String>>,
    commands: Option<BTreeSet<String>>,
    requires_approval: Option<Vec<Spanned<String>>>,
}

impl Config {
    /// The settings as they would be with a file in force. A file of rules alone
    /// replaces all rules; any other file is a whole configuration.
    pub fn candidate(&self, text: &str) -> Result<Config, Vec<ConfigFault>> {
        if !Config::is_only_rules(text) {
            return Config::parse(text);
        }
        let mut config = self.clone();
        // Before the new ones are read: their ids may be the same.
        config.rules.list.clear();
        config.rules.list = config.parse_rules(text)?;
        Ok(config)
    }

    /// Whether a file holds rules and nothing else.
    #[must_use]
    pub fn is_only_rules(text: &str) -> bool {
        DeTable::parse(text).is_ok_and(|table| {
            let mut names = table.get_ref().keys();
            names.all(|name| name.get_ref() == "rule")
        })
    }

    /// Reads a file of rules, such as `rules/payments.toml`. Actions and groups are
    /// those of this configuration; ids may repeat its own.
    pub fn parse_rules(&self, text: &str) -> Result<Vec<Rule>, Vec<ConfigFault>> {
        if text.len() > limits::CONFIG_BYTES_MAX {
            return Err(vec![super::too_long()]);
        }
        let file: RulesFile =
            toml::from_str(text).map_err(|error| vec![from_toml(text, &error)])?;
        let mut faults = Faults {
            text,
            faults: Vec::new(),
        };
        let groups: Vec<_> = self.access.groups.keys().map(String::as_str).collect();
        let taken = self.rules.list.iter().map(|rule| rule.id.clone());
        let rules = faults.rules(file.rule, &self.rules.actions, &groups, taken.collect());
        if faults.faults.is_empty() {
            Ok(rules)
        } else {
            Err(faults.faults)
        }
    }

    /// Adds rules of another file. Two rules of one id are a fault.
    pub fn add_rules(&mut self, more: Vec<Rule>) -> Result<(), ConfigFault> {
        let mut ids: BTreeSet<_> = self.rules.list.iter().map(|rule| rule.id.clone()).collect();
        let twice = more.iter().find(|rule| !ids.insert(rule.id.clone()));
        let message = match twice {
            Some(rule) => format!("there are two rules `{}`", elided(&rule.id, 60)),
            None if ids.len() > limits::RULES_MAX => {
                format!("there are more than {} rules", limits::RULES_MAX)
            }
            None => {
                self.rules.list.extend(more);
                return Ok(());
            }
        };
        Err(ConfigFault {
            line: 0,
            column: 0,
            message,
            fix: None,
        })
    }

    pub(super) fn govern(&mut self, file: GovernFile, faults: &mut Faults<'_>) {
        // Actions and groups first, because rules, limits and trust name them.
        let actions = faults.actions(&file.actions);
        let groups: Vec<String> = file
            .groups
            .keys()
            .map(|name| name.get_ref().to_lowercase())
            .collect();
        let group_names: Vec<_> = groups.iter().map(String::as_str).collect();
        if let Some(trust) = file.trust {
            self.trust = faults.trust(trust.into_inner(), &group_names);
        }
        self.rules.list = faults.rules(file.rules, &actions, &group_names, BTreeSet::new());
        self.limits = faults.limits(file.limits, &group_names);
        self.costs = faults.costs(file.costs);
        let access = &mut self.access;
        access.trust_scope = TrustScope {
            callers: self.trust.callers.clone(),
            groups: self.trust.groups.clone(),
        };
        faults.no_members(&file.access);
        faults.no_answers(&file.access);
        (access.everyone, access.everyone_terms) = faults.caller(file.access, &actions);
        for (written, caller) in file.callers {
            let name = folded(written.get_ref());
            // Two spellings of one caller: the second would take the place of the first,
            // and with it of what the first denies.
            if access.callers.contains_key(&name) {
                faults.said_twice("callers", &written);
                continue;
            }
            faults.no_members(&caller);
            if let Some(level) = faults.read_word::<Level>("answers", caller.answers.as_ref()) {
                self.approvals.answers.insert(name.clone(), level);
            }
            let (lists, terms) = faults.caller(caller, &actions);
            if terms != Terms::default() {
                access.terms.insert(name.clone(), terms);
            }
            access.callers.insert(name, lists);
        }
        for (written, mut group) in file.groups {
            let name = written.get_ref().to_lowercase();
            if access.groups.contains_key(&name) {
                faults.said_twice("groups", &written);
                continue;
            }
            faults.no_answers(&group);
            let members = group.members.take().map(Spanned::into_inner);
            let members = faults.patterns(&members.unwrap_or_default());
            let (lists, terms) = faults.caller(group, &actions);
            let group = Group {
                members,
                lists,
                terms,
            };
            access.groups.insert(name, group);
        }
        self.rules.actions = actions;
    }
}

impl Faults<'_> {
    /// A section whose name another has already, in other letters.
    fn said_twice(&mut self, section: &str, written: &Spanned<String>) {
        let name = elided(written.get_ref(), 60);
        let message = format!("`[{section}.{name}]` is there twice, in upper and lower case");
        let fix = Some("put both into one section".to_owned());
        self.say(written, message, fix);
    }

    /// The candidate's file. One that is in force already would never differ.
    pub(super) fn shadow(&mut self, section: RulesSection) -> Option<String> {
        let shadow = section.shadow?;
        let path = shadow.get_ref().trim_start_matches("./");
        if path.is_empty() || path == "ringfence.toml" || path.starts_with("rules/") {
            let message = "`shadow` must name a file that is not in force already".to_owned();
            let fix = Some("write `shadow = \"candidate.toml\"`".to_owned());
            self.say(&shadow, message, fix);
        }
        Some(shadow.into_inner())
    }

    fn actions(&mut self, file: &BTreeMap<Spanned<String>, Spanned<String>>) -> Actions {
        let mut actions = Actions::default();
        for (name, risk) in file {
            let Some(risk) = self.read_word::<ActionRisk>(name.get_ref(), Some(risk)) else {
                continue;
            };
            if let Err(fault) = actions.register(name.get_ref(), risk) {
                self.say(name, fault.message, None);
            }
        }
        actions
    }

    fn rules(
        &mut self,
        files: Vec<Spanned<RuleFile>>,
        actions: &Actions,
        groups: &[&str],
        mut ids: BTreeSet<String>,
    ) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (index, file) in files.into_iter().enumerate() {
            if index == limits::RULES_MAX {
                let message = format!("there are more than {} rules", limits::RULES_MAX);
                self.say(&file, message, None);
                break;
            }
            let place = file.span();
            if let Some(rule) = self.rule(file, actions, groups) {
                if !ids.insert(rule.id.clone()) {
                    let message = format!("there are two rules `{}`", elided(&rule.id, 60));
                    self.say_at(place.start, message, None);
                }
                rules.push(rule);
            }
        }
        rules
    }

    fn rule(
        &mut self,
        file: Spanned<RuleFile>,
        actions: &Actions,
        groups: &[&str],
    ) -> Option<Rule> {
        let id = self.id("rule", file.get_ref().id.as_ref(), &file);
        if file.get_ref().effect.is_none() {
            let fix = Some("add `effect = \"deny\"`, `\"ask\"` or `\"allow\"`".to_owned());
            self.say(&file, "a rule needs an `effect`".to_owned(), fix);
        }
        let file = file.into_inner();
        let effect = self.read_word::<Effect>("effect", file.effect.as_ref());
        let callers = self.names("callers", file.callers);
        let (callers, in_groups) = self.callers(&callers, groups);
        let list = match effect {
            Some(Effect::Allow) => ListUse::Grant,
            Some(Effect::Ask | Effect::Deny) | None => ListUse::Restrict,
        };
        let is_named = file.actions.is_some();
        let actions_named = self.names("actions", file.actions);
        let expanded = self.expand_actions(&actions_named, actions, list);
        let tools = self.names("tools", file.tools);
        let categories = self.names("categories", file.categories);
        let categories = categories.iter().map(|word| word.get_ref().to_lowercase());
        let hosts = self.names("hosts", file.hosts);
        // Missing fields end it only here: all others were read, so that all faults are
        // told together.
        let rule = Rule {
            id: id?,
            tools: self.patterns(&tools),
            actions: is_named.then_some(expanded),
            categories: categories.collect(),
            callers,
            groups: in_groups,
            risk: self.risk(file.risk.as_ref()),
            hosts: self.hosts(&hosts),
            when: self.condition(file.when.as_ref()),
            effect: effect?,
            reason: file.reason.map(|reason| elided(&reason, 400)),
        };
        Some(rule)
    }

    /// The names on a list. An empty list is an error: read as "all" it would make a
    /// rule as wide as possible.
    pub(super) fn names(
        &mut self,
        what: &str,
        list: Option<Spanned<Vec<Spanned<String>>>>,
    ) -> Vec<Spanned<String>> {
        let Some(list) = list else {
            return Vec::new();
        };
        if list.get_ref().is_empty() {
            let fix = Some("leave it out for all, or name one".to_owned());
            self.say(&list, format!("`{what}` is empty"), fix);
        }
        if list.get_ref().len() > limits::RULE_LIST_MAX {
            let most = limits::RULE_LIST_MAX;
            self.say(&list, format!("`{what}` has more than {most} names"), None);
        }
        list.into_inner()
    }

    fn id<T>(
        &mut self,
        what: &str,
        id: Option<&Spanned<String>>,
        place: &Spanned<T>,
    ) -> Option<String> {
        let Some(id) = id else {
            let message = format!("a {what} needs an `id`");
            self.say(place, message, Some("add `id = \"…\"`".to_owned()));
            return None;
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let text = id.get_ref();
        if text.is_empty() || text.len() > 100 || !text.chars().all(fits) {
            let shown = elided(text, 60);
            let message = format!(
                "`{shown}` is not a valid id; use up to 100 letters, digits, `-`, `_` and `.`"
            );
            self.say(id, message, None);
            return None;
        }
        Some(text.clone())
    }

    /// Names and, with an `@`, groups that exist.
    pub(super) fn callers(
        &mut self,
        words: &[Spanned<String>],
        groups: &[&str],
    ) -> (Vec<NamePattern>, Vec<String>) {
        let mut names = Vec::new();
        let mut found = Vec::new();
        for word in words {
            let Some(group) = word.get_ref().strip_prefix('@') else {
                names.extend(self.patterns(std::slice::from_ref(word)));
                continue;
            };
            let folded = group.to_lowercase();
            if groups.contains(&folded.as_str()) {
                found.push(folded);
                continue;
            }
            let near = nearest(group, groups.iter().copied());
            let fix = near.map(|name| format!("did you mean `@{name}`?"));
            self.say(
                word,
                format!("there is no group `{}`", elided(group, 60)),
                fix,
            );
        }
        (names, found)
    }

    fn expand_actions(
        &mut self,
        words: &[Spanned<String>],
        actions: &Actions,
        list: ListUse,
    ) -> BTreeSet<Action> {
        let mut all = BTreeSet::new();
        for word in words {
            match actions.expand(word.get_ref(), list) {
                Ok(more) => all.extend(more),
                Err(fault) => {
                    let fix = fault.nearest.map(|name| format!("did you mean `{name}`?"));
                    self.say(word, fault.message, fix);
                }
            }
        }
        all
    }

    fn risk(&mut self, word: Option<&Spanned<String>>) -> Option<RiskRange> {
        let word = word?;
        let range = RiskRange::parse(word.get_ref());
        if range.is_none() {
            let shown = elided(word.get_ref(), 40);
            let message = format!("`risk` is `{shown}`; write `L3`, `L3+` or `L1-L3`");
            self.say(word, message, None);
        }
        range
    }

    fn condition(&mut self, text: Option<&Spanned<String>>) -> Option<Condition> {
        let text = text?;
        match Condition::parse(text.get_ref()) {
            Ok(condition) => Some(condition),
            Err(fault) => {
                let place = self.inside(text, fault.at);
                self.say_at(place, format!("in `when`: {}", fault.message), fault.fix);
                None
            }
        }
    }

    /// A place inside a text of the file; its start when it is written with
    /// escapes, where places do not agree.
    fn inside(&self, text: &Spanned<String>, at: usize) -> usize {
        let span = text.span();
        let written = self.text.get(span.clone()).unwrap_or("");
        let quotes = written.len().saturating_sub(text.get_ref().len());
        let head = quotes / 2;
        let plain = written.get(head..written.len().saturating_sub(quotes - head));
        if plain == Some(text.get_ref().as_str()) {
            return span.start + head + at;
        }
        span.start
    }

    fn limits(&mut self, files: Vec<Spanned<LimitFile>>, groups: &[&str]) -> Vec<RateLimit> {
        let mut ids = BTreeSet::new();
        let mut all = Vec::new();
        for (index, file) in files.into_iter().enumerate() {
            if index == limits::CALL_LIMITS_MAX {
                let message = format!("there are more than {} limits", limits::CALL_LIMITS_MAX);
                self.say(&file, message, None);
                break;
            }
            let id = self.id("limit", file.get_ref().id.as_ref(), &file);
            let place = file.span().start;
            let file = file.into_inner();
            let most = 1..=limits::CALL_LIMIT_MAX;
            let callers = self.names("callers", file.callers);
            let (callers, in_groups) = self.callers(&callers, groups);
            let tools = self.names("tools", file.tools);
            let limit = RateLimit {
                // That it is missing was told above.
                id: id.unwrap_or_default(),
                callers,
                groups: in_groups,
                tools: self.patterns(&tools),
                calls_per_minute: self.read_number(
                    "calls_per_minute",
                    file.calls_per_minute,
                    most.clone(),
                ),
                concurrent: self.read_number("concurrent", file.concurrent, most.clone()),
                units_per_day: self.read_number("units_per_day", file.units_per_day, most),
            };
            if limit.is_empty() {
                let message = "a limit limits nothing".to_owned();
                let fix = "add `calls_per_minute`, `concurrent` or `units_per_day`".to_owned();
                self.say_at(place, message, Some(fix));
            }
            if !limit.id.is_empty() && !ids.insert(limit.id.clone()) {
                let message = format!("there are two limits `{}`", elided(&limit.id, 60));
                self.say_at(place, message, None);
            }
            all.push(limit);
        }
        all
    }

    /// The prices of calls. `policy lint` reports unknown tools: documents come and go
    /// while settings stay.
    fn costs(&mut self, file: BTreeMap<Spanned<String>, Spanned<i64>>) -> Costs {
        if file.len() > limits::CALL_COSTS_MAX
            && let Some(name) = file.keys().nth(limits::CALL_COSTS_MAX)
        {
            let message = format!("there are more than {} costs", limits::CALL_COSTS_MAX);
            self.say(name, message, None);
        }
        let mut costs = Costs::default();
        for (name, units) in file.into_iter().take(limits::CALL_COSTS_MAX) {
            let most = limits::CALL_COST_UNITS_MAX;
            let fits = u64::try_from(*units.get_ref()).ok();
            let fits = fits.filter(|units| *units <= most);
            if fits.is_none() {
                let (shown, number) = (elided(name.get_ref(), 60), units.get_ref());
                let message = format!(
                    "a call of `{shown}` costs {number}; it must be between 0, which is free, and {most}"
                );
                self.say(&units, message, None);
            }
            let pattern = self.patterns(std::slice::from_ref(&name)).pop();
            costs.list.extend(pattern.zip(fits));
        }
        costs
    }

    fn no_members(&mut self, file: &CallerFile) {
        if let Some(members) = &file.members {
            let fix = Some("write a `[groups.NAME]`".to_owned());
            self.say(members, "only groups have members".to_owned(), fix);
        }
    }

    /// Attack: a group may have `*` for a member. Whether a client may answer is set
    /// for one caller at a time.
    fn no_answers(&mut self, file: &CallerFile) {
        if let Some(answers) = &file.answers {
            let fix = Some("write it in a `[callers.NAME]`".to_owned());
            let message = "only one caller's client can be let answer, not several".to_owned();
            self.say(answers, message, fix);
        }
    }

    fn caller(&mut self, file: CallerFile, actions: &Actions) -> (Lists, Terms) {
        let lists = Lists {
            allow: file.allow.map(|words| self.patterns(&words)),
            deny: self.patterns(&file.deny),
            hosts: file.hosts.map(|hosts| self.hosts(&hosts)),
        };
        let given = file.constraints;
        let asked = given.requires_approval;
        let constraints = ConstraintChanges {
            files: self.read_word("files", given.files.as_ref()),
            code: self.read_word("code", given.code.as_ref()),
            network: self.read_word("network", given.network.as_ref()),
            git: self.read_word("git", given.git.as_ref()),
            terminal: self.read_word("terminal", given.terminal.as_ref()),
            commands: given.commands,
            requires_approval: asked
                .map(|words| self.expand_actions(&words, actions, ListUse::Restrict)),
        };
        let capitals = |words: Vec<String>| words.iter().map(|word| word.to_uppercase()).collect();
        let terms = Terms {
            level: self.read_word("level", file.level.as_ref()),
            categories: file.categories.map(capitals),
            constraints,
            autonomy: self.read_word("autonomy", file.autonomy.as_ref()),
        };
        (lists, terms)
    }
}
