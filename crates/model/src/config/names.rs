//! The names a file of settings refers to: tools, callers, categories, tags and the
//! preset. An unknown name is an error with its place: a typing error on a deny list
//! would allow what the list was written to deny.
//!
//! Which names there are is not known here: the code that reads the file passes them in.
//! `[callers.NAME]` makes a name known; what is to come is named in `[expected]`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Config, ConfigFault, Faults, codecall};
use crate::document::json::Lines;
use crate::govern::pattern::{NamePattern, first};
use crate::limits;
use crate::nearest::{nearest, nearest_pattern};
use crate::text::elided;

/// The kind of thing that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameKind {
    /// A tool.
    Tool,
    /// A caller.
    Caller,
    /// A category of tools.
    Category,
    /// A tag of tools.
    Tag,
    /// A preset of bundled tools.
    Preset,
}

impl NameKind {
    /// All of them.
    pub const ALL: [NameKind; 5] = [
        NameKind::Tool,
        NameKind::Caller,
        NameKind::Category,
        NameKind::Tag,
        NameKind::Preset,
    ];

    fn word(self) -> &'static str {
        match self {
            NameKind::Tool => "tool",
            NameKind::Caller => "caller",
            NameKind::Category => "category",
            NameKind::Tag => "tag",
            NameKind::Preset => "preset",
        }
    }

    /// The list in `[expected]` for this kind; presets have none.
    pub(super) fn expected(self) -> Option<&'static str> {
        match self {
            NameKind::Tool => Some("expected.tools"),
            NameKind::Caller => Some("expected.callers"),
            NameKind::Category => Some("expected.categories"),
            NameKind::Tag => Some("expected.tags"),
            NameKind::Preset => None,
        }
    }
}

/// Names that do not exist yet and may be used all the same.
///
/// Defaults: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedNames {
    /// By kind.
    pub names: BTreeMap<NameKind, Vec<NamePattern>>,
}

/// The names there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownNames {
    /// By kind. A kind that is missing here is not checked.
    pub names: BTreeMap<NameKind, Vec<String>>,
}

/// A name in a file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameUse {
    /// Its kind.
    pub kind: NameKind,
    /// Its setting, such as `callers.ann.deny`; `rule.ID` and `limit.ID` for rules and
    /// limits.
    pub setting: String,
    /// The name, or a pattern for names.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExpectedFile {
    tools: Vec<Spanned<String>>,
    callers: Vec<Spanned<String>>,
    categories: Vec<Spanned<String>>,
    tags: Vec<Spanned<String>>,
}

impl Faults<'_> {
    pub(super) fn read_expected(&mut self, file: &ExpectedFile) -> ExpectedNames {
        let lists = [
            (NameKind::Tool, &file.tools),
            (NameKind::Caller, &file.callers),
            (NameKind::Category, &file.categories),
            (NameKind::Tag, &file.tags),
        ];
        let mut expected = ExpectedNames::default();
        for (kind, words) in lists {
            for word in words.iter().filter(|word| is_any(word.get_ref())) {
                let message = "an expected name without a letter would match everything";
                self.say(word, message.to_owned(), None);
            }
            if let Some(word) = words.get(limits::EXPECTED_NAMES_MAX) {
                let most = limits::EXPECTED_NAMES_MAX;
                self.say(word, format!("more than {most} names are expected"), None);
            }
            if !words.is_empty() {
                expected.names.insert(kind, self.patterns(words));
            }
        }
        expected
    }
}

/// The kinds of names a file uses, so that only those are looked up.
#[must_use]
pub fn kinds_in(text: &str) -> BTreeSet<NameKind> {
    names_in(text).into_iter().map(|used| used.kind).collect()
}

impl Config {
    /// The names in a file of these settings that nothing has, each with its place.
    #[must_use]
    pub fn unknown_names(&self, text: &str, known: &KnownNames) -> Vec<(NameUse, ConfigFault)> {
        let stranger = |used: NameUse| {
            // A kind that was not looked up cannot be judged.
            let names = known.names.get(&used.kind)?;
            (!self.knows(&used, names)).then(|| {
                let fault = fault(&used, names);
                (used, fault)
            })
        };
        names_in(text).into_iter().filter_map(stranger).collect()
    }

    fn knows(&self, used: &NameUse, names: &[String]) -> bool {
        let expected = self.expected.names.get(&used.kind);
        let expected = expected.map(Vec::as_slice).unwrap_or_default();
        if first(expected, &used.name).is_some() || is_conventional(used) {
            return true;
        }
        if !takes_patterns(used) {
            let mut names = names.iter();
            return names.any(|name| name.eq_ignore_ascii_case(&used.name));
        }
        // `*` means all there will be, so it is right where there is nothing yet.
        if is_any(&used.name) {
            return true;
        }
        // Invalid patterns were refused when the file was read.
        let Ok(pattern) = NamePattern::parse(&used.name) else {
            return true;
        };
        let declared = self.access.callers.keys().chain(self.access.terms.keys());
        let is_declared = used.kind == NameKind::Caller
            && (declared.into_iter().any(|name| pattern.matches(name)) || self.may_issue(used));
        is_declared || names.iter().any(|name| pattern.matches(name))
    }

    /// The subjects of an issuer are not known here.
    fn may_issue(&self, used: &NameUse) -> bool {
        self.oauth.is_some() && used.name.to_lowercase().starts_with("oauth:")
    }
}

fn is_any(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c == '*')
}

/// The default patterns that block scripts, whether or not a tool has such a name.
fn is_conventional(used: &NameUse) -> bool {
    used.setting == "codecall.blocked" && codecall::BLOCKED.contains(&used.name.as_str())
}

/// Callers and tools are named by patterns, but for those of `[exposure]`.
fn takes_patterns(used: &NameUse) -> bool {
    match used.kind {
        NameKind::Tool => !used.setting.starts_with("exposure."),
        NameKind::Caller => true,
        NameKind::Category | NameKind::Tag | NameKind::Preset => false,
    }
}

fn fault(used: &NameUse, names: &[String]) -> ConfigFault {
    let (kind, name) = (used.kind.word(), elided(&used.name, 60));
    let is_pattern = used.name.contains('*');
    let message = match (is_pattern, takes_patterns(used)) {
        (true, true) => format!("no {kind} fits `{name}`"),
        (true, false) => format!("there is no {kind} `{name}`, and patterns are not accepted here"),
        (false, _) => format!("there is no {kind} `{name}`"),
    };
    let known = || names.iter().map(String::as_str);
    let near = match is_pattern && takes_patterns(used) {
        true => nearest_pattern(&used.name, known()),
        false => nearest(&used.name, known()).map(str::to_owned),
    };
    let near = near.map(|near| format!("did you mean `{near}`?"));
    let later = used
        .kind
        .expected()
        .map(|list| format!("a {kind} that is to come is named in `{list}`"));
    let all = || format!("known: {}", names.join(", "));
    let fixes: Vec<_> = match used.kind {
        NameKind::Preset => near.or_else(|| Some(all())).into_iter().collect(),
        NameKind::Tool | NameKind::Caller | NameKind::Category | NameKind::Tag => {
            near.into_iter().chain(later).collect()
        }
    };
    ConfigFault {
        line: used.line,
        column: used.column,
        message,
        fix: Some(fixes.join(" ")),
    }
}

/// Every name in a text, in its order. A text that does not parse has none.
#[must_use]
pub fn names_in(text: &str) -> Vec<NameUse> {
    let mut reader = NameReader {
        lines: Lines::new(text),
        found: Vec::new(),
    };
    if let Ok(table) = DeTable::parse(text) {
        reader.file(table.get_ref());
    }
    reader.found.sort_by_key(|used| (used.line, used.column));
    reader.found
}

struct NameReader<'a> {
    lines: Lines<'a>,
    found: Vec<NameUse>,
}

impl NameReader<'_> {
    fn file(&mut self, file: &DeTable<'_>) {
        for (name, section) in file {
            match (name.get_ref().as_ref(), section.get_ref()) {
                ("access", DeValue::Table(table)) => self.terms("access", table),
                (kind @ ("callers" | "groups"), DeValue::Table(all)) => {
                    for (name, table) in tables(all) {
                        self.terms(&format!("{kind}.{name}"), table);
                    }
                }
                (kind @ ("rule" | "limit"), DeValue::Array(all)) => {
                    for item in all {
                        self.rule(kind, item);
                    }
                }
                ("costs", DeValue::Table(table)) => self.keys("costs", table, NameKind::Tool),
                ("codecall", DeValue::Table(table)) => {
                    for list in ["invoke", "blocked"] {
                        self.list("codecall", list, table, NameKind::Tool);
                    }
                }
                ("exposure", DeValue::Table(table)) => self.exposure(table),
                ("connections", DeValue::Table(all)) => {
                    for (name, table) in tables(all) {
                        let setting = format!("connections.{name}");
                        self.list(&setting, "callers", table, NameKind::Caller);
                    }
                }
                ("trust", DeValue::Table(table)) => self.trust(table),
                _ => {}
            }
        }
    }

    /// Lists and terms of all callers, a group or a caller.
    fn terms(&mut self, setting: &str, table: &DeTable<'_>) {
        self.list(setting, "allow", table, NameKind::Tool);
        self.list(setting, "deny", table, NameKind::Tool);
        self.list(setting, "members", table, NameKind::Caller);
        self.list(setting, "categories", table, NameKind::Category);
    }

    /// A rule or a limit.
    fn rule(&mut self, kind: &str, item: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = item.get_ref() else {
            return;
        };
        let id = table.get("id").and_then(|id| id.get_ref().as_str());
        let setting = format!("{kind}.{}", id.unwrap_or(""));
        let lists = [
            ("tools", NameKind::Tool),
            ("callers", NameKind::Caller),
            ("categories", NameKind::Category),
        ];
        for (list, kind) in lists {
            if let Some(list) = table.get(list) {
                self.items(&setting, list, kind);
            }
        }
    }

    fn exposure(&mut self, table: &DeTable<'_>) {
        if let Some(preset) = table.get("preset")
            && preset.get_ref().as_str() != Some("none")
        {
            self.one("exposure.preset", preset, NameKind::Preset);
        }
        for (choice, selection) in tables(table) {
            let setting = format!("exposure.{choice}");
            self.list(&setting, "names", selection, NameKind::Tool);
            self.list(&setting, "tags", selection, NameKind::Tag);
            self.list(&setting, "categories", selection, NameKind::Category);
        }
    }

    fn trust(&mut self, table: &DeTable<'_>) {
        self.list("trust", "callers", table, NameKind::Caller);
        for (section, inner) in tables(table) {
            if matches!(section, "categories" | "initial_levels") {
                self.keys(&format!("trust.{section}"), inner, NameKind::Category);
            }
        }
    }

    /// The names of a table's keys.
    fn keys(&mut self, setting: &str, table: &DeTable<'_>, kind: NameKind) {
        for key in table.keys() {
            self.record_use(setting, key.get_ref(), key.span().start, kind);
        }
    }

    fn list(&mut self, setting: &str, name: &str, table: &DeTable<'_>, kind: NameKind) {
        if let Some(list) = table.get(name) {
            self.items(&format!("{setting}.{name}"), list, kind);
        }
    }

    fn items(&mut self, setting: &str, list: &Spanned<DeValue<'_>>, kind: NameKind) {
        let DeValue::Array(items) = list.get_ref() else {
            return;
        };
        for item in items {
            self.one(setting, item, kind);
        }
    }

    fn one(&mut self, setting: &str, item: &Spanned<DeValue<'_>>, kind: NameKind) {
        if let Some(name) = item.get_ref().as_str() {
            self.record_use(setting, name, item.span().start, kind);
        }
    }

    fn record_use(&mut self, setting: &str, name: &str, at: usize, kind: NameKind) {
        // These settings contain groups, which are looked up when the file is read.
        if kind == NameKind::Caller && name.starts_with('@') {
            return;
        }
        let place = self.lines.position(at);
        self.found.push(NameUse {
            kind,
            setting: setting.to_owned(),
            name: name.to_owned(),
            line: place.line,
            column: place.column,
        });
    }
}

fn tables<'a, 'b>(
    table: &'a DeTable<'b>,
) -> impl Iterator<Item = (&'a str, &'a DeTable<'b>)> + use<'a, 'b> {
    table
        .iter()
        .filter_map(|(name, value)| match value.get_ref() {
            DeValue::Table(inner) => Some((name.get_ref().as_ref(), inner)),
            _ => None,
        })
}

#[cfg(test)]
mod tests;
