//! The bundled catalog as a whole: every document is sound and bears its own name,
//! identities and badges are the ones written down, presets name what exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use model::document::json::Lines;
use model::document::safety::Source;
use model::document::{self, ApprovalMode, NetworkMode};
use model::policy::Baseline;
use model::policy::assessment::{self, UsableDocument};
use model::{Environment, document::placeholder};

/// The categories of the specification that the catalog fills.
const CATEGORIES: &[&str] = &[
    "ai",
    "crypto",
    "data",
    "datetime",
    "encoding",
    "file",
    "math",
    "messaging",
    "productivity",
    "security",
    "text",
    "web",
];

/// One document of the catalog.
#[derive(Debug)]
pub(crate) struct Bundled {
    /// The folder it is in.
    pub(crate) folder: String,
    /// The name of its file, without the ending.
    pub(crate) stem: String,
    pub(crate) usable: UsableDocument,
    /// What `check` would say, and the whole text.
    pub(crate) findings: Vec<String>,
    pub(crate) text: String,
}

impl Bundled {
    pub(crate) fn is_offline(&self) -> bool {
        self.usable.facts.policy.network == NetworkMode::Blocked
    }

    pub(crate) fn badge(&self) -> &'static str {
        self.usable.facts.risk.level.badge()
    }

    pub(crate) fn asks(&self) -> bool {
        self.usable.document.approval() == ApprovalMode::Required
    }

    /// The variables it needs, sorted.
    pub(crate) fn keys(&self) -> BTreeSet<String> {
        let variables = self.usable.document.static_variables.iter();
        variables
            .flat_map(|variable| placeholder::names(&variable.template))
            .map(str::to_owned)
            .collect()
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether the run writes what it would otherwise compare.
pub(crate) fn is_updating() -> bool {
    std::env::var_os("UPDATE_CASES").is_some()
}

/// Compares a file of the tree to what it should hold, or writes it.
#[track_caller]
pub(crate) fn compare(path: &str, expected: &str) {
    let file = root().join(path);
    if is_updating() {
        fs::write(&file, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let wrong = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(
        found == expected,
        "`{path}` is not up to date; UPDATE_CASES=1 writes it; first difference: {wrong:?}"
    );
}

/// All documents, sorted by name.
pub(crate) fn documents() -> Vec<Bundled> {
    let mut all = Vec::new();
    for folder in CATEGORIES {
        let files = fs::read_dir(root().join("catalog").join(folder)).unwrap();
        for file in files {
            all.push(read(folder, &file.unwrap().path()));
        }
    }
    all.sort_by(|a, b| a.stem.cmp(&b.stem));
    all
}

fn read(folder: &str, path: &Path) -> Bundled {
    let text = fs::read_to_string(path).unwrap();
    let mut items = document::parse(&text).items;
    assert_eq!(items.len(), 1, "{}", path.display());
    let assessed = assessment::assess(
        items.remove(0),
        &Lines::new(&text),
        &Baseline::closed(),
        &Environment::empty(),
        Source::Builtin,
    );
    let findings = assessed
        .findings
        .iter()
        .map(|finding| finding.message.clone());
    let findings: Vec<String> = findings.collect();
    let usable = assessed.usable;
    Bundled {
        folder: folder.to_owned(),
        stem: path.file_stem().unwrap().to_str().unwrap().to_owned(),
        usable: usable.unwrap_or_else(|| panic!("{}: {findings:?}", path.display())),
        findings,
        text,
    }
}

#[test]
fn every_document_is_sound_and_bears_its_own_name() {
    let all = documents();
    assert!(all.len() >= 66, "only {} tools", all.len());
    let mut names = BTreeSet::new();
    for tool in &all {
        let document = &tool.usable.document;
        let name = &document.name;
        assert_eq!(tool.findings, Vec::<String>::new(), "{name}");
        assert_eq!(*name, tool.stem);
        assert!(names.insert(name.clone()), "{name} twice");
        assert_eq!(
            document.category.as_deref(),
            Some(&*tool.folder.to_uppercase())
        );
        let camel = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(camel, "{name} is not camelCase");
        assert!(
            tool.text.ends_with("}\n"),
            "{name} ends without a line break"
        );
    }
}

/// A model chooses by what it reads: every tool says what comes back, every param
/// what it is and how a real one looks.
#[test]
fn every_tool_explains_itself() {
    for tool in documents() {
        let document = &tool.usable.document;
        let name = &document.name;
        let description = &document.description;
        assert!(description.len() >= 80, "{name}: {description}");
        assert!(description.contains("Returns "), "{name} hides its answer");
        for key in tool.keys() {
            assert!(description.contains(&key), "{name} does not name {key}");
        }
        for param in &document.params {
            assert!(param.description.len() >= 8, "{name}.{}", param.name);
            let sample = param.test_value.as_deref().unwrap_or("");
            assert!(
                !sample.trim().is_empty(),
                "{name}.{} shows none",
                param.name
            );
        }
        let lines = document.code.lines();
        let longest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= 120, "{name}: a line of {longest} columns");
    }
}

/// What writes or sends asks a person, what only reads does not write.
#[test]
fn every_posture_is_the_least() {
    for tool in documents() {
        let (document, policy) = (&tool.usable.document, &tool.usable.facts.policy);
        let name = &document.name;
        let code = &document.code;
        let uses = |word: &str| code.contains(word);
        let is_networked = !tool.is_offline();
        assert_eq!(is_networked, uses("fetch("), "{name}");
        assert_eq!(
            policy.file_read || policy.file_write,
            uses("safety.fs."),
            "{name}"
        );
        if policy.file_write {
            assert!(tool.asks(), "{name} writes without asking");
        }
        if uses("\"POST\"") {
            assert!(tool.asks(), "{name} sends without asking");
        }
        assert_ne!(policy.network, NetworkMode::Open, "{name}");
        let is_any = policy
            .hosts
            .iter()
            .any(|host| host.to_string().contains('*'));
        assert!(!is_any, "{name} lists a pattern");
        assert!(!uses("eval("), "{name}");
        assert!(!uses("Function("), "{name}");
    }
}

#[test]
fn digests_match_the_golden_file() {
    let mut text = String::new();
    for tool in documents() {
        text.push_str(&format!("{} {}\n", tool.stem, tool.usable.facts.digest));
    }
    compare("catalog/DIGESTS", &text);
}

/// What the badge should be, from the words of the document alone.
fn expected_badge(tool: &Bundled) -> &'static str {
    let says = |word: &str| tool.text.contains(word);
    if says("\"destructive\": true") {
        "L5"
    } else if says("\"fileWrite\": true") {
        "L4"
    } else if says("\"sandboxOverrides\"") {
        "L3"
    } else {
        "L0"
    }
}

#[test]
fn risk_levels_match_the_golden_file() {
    let mut text = String::new();
    for tool in documents() {
        assert_eq!(tool.badge(), expected_badge(&tool), "{}", tool.stem);
        let asks = if tool.asks() { "asks" } else { "free" };
        text.push_str(&format!("{} {} {asks}\n", tool.stem, tool.badge()));
    }
    compare("catalog/RISKS", &text);
}

/// The presets, by name: what each is for and what is in it.
pub(crate) fn presets() -> BTreeMap<String, (String, Vec<String>)> {
    let text = fs::read_to_string(root().join("catalog/presets.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let preset = |(name, value): (String, toml::Value)| {
        let description = value["description"].as_str().unwrap().to_owned();
        let tools = value["tools"].as_array().unwrap().iter();
        let tools = tools.map(|tool| tool.as_str().unwrap().to_owned());
        (name, (description, tools.collect()))
    };
    table.into_iter().map(preset).collect()
}

#[test]
fn presets_name_what_exists() {
    let all = documents();
    let names: BTreeSet<_> = all.iter().map(|tool| tool.stem.clone()).collect();
    let presets = presets();
    let known: Vec<_> = presets.keys().map(String::as_str).collect();
    assert_eq!(known, ["developer", "everything", "files", "starter"]);
    for (preset, (description, tools)) in &presets {
        assert!(
            !description.is_empty() && !description.contains('\n'),
            "{preset}"
        );
        let listed: BTreeSet<_> = tools.iter().cloned().collect();
        assert_eq!(listed.len(), tools.len(), "{preset} names a tool twice");
        let unknown: Vec<_> = listed.difference(&names).collect();
        assert!(unknown.is_empty(), "{preset}: {unknown:?}");
    }
    let everything: BTreeSet<_> = presets["everything"].1.iter().cloned().collect();
    assert_eq!(everything, names);
    let starter = &presets["starter"].1;
    assert!((10..=15).contains(&starter.len()));
    for tool in all.iter().filter(|tool| starter.contains(&tool.stem)) {
        assert_eq!(tool.badge(), "L0", "{} is in `starter`", tool.stem);
    }
}
