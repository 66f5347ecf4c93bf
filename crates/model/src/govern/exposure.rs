//! Which tools are exposed: a preset, inclusions and exclusions. Exclusion always wins.

use std::collections::BTreeSet;

/// The operator's settings of exposure.
///
/// Defaults ([`Exposure::standard`]): the preset `starter`, own tools exposed as soon
/// as they are published, nothing included or excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// The preset of bundled tools; none if absent.
    pub preset: Option<String>,
    /// Whether one's own published tools are exposed without being included.
    pub auto: bool,
    /// Also exposed.
    pub include: Selection,
    /// Never exposed.
    pub exclude: Selection,
}

/// Tools by name, tag and category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names.
    pub names: BTreeSet<String>,
    /// Tags; one that fits is enough.
    pub tags: BTreeSet<String>,
    /// Categories.
    pub categories: BTreeSet<String>,
}

/// The input of exposure.
#[derive(Clone, Copy, Debug)]
pub struct ExposureInput<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// Its tags.
    pub tags: &'a [String],
    /// Its category.
    pub category: Option<&'a str>,
    /// Whether it came with the binary.
    pub bundled: bool,
    /// Whether the preset in force lists it.
    pub in_preset: bool,
    /// The enabled feature it belongs to.
    pub part: Option<&'a str>,
}

/// Whether a tool is exposed, and the one thing that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExposureVerdict {
    /// It is.
    Yes(String),
    /// It is not.
    No(String),
}

impl ExposureVerdict {
    /// Whether it is.
    #[must_use]
    pub fn is_yes(&self) -> bool {
        matches!(self, ExposureVerdict::Yes(_))
    }

    /// What decided.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            ExposureVerdict::Yes(why) | ExposureVerdict::No(why) => why,
        }
    }
}

/// Characters of a tool's name that MCP clients accept.
const CLIENT_NAME_CHARS_MAX: usize = 128;

/// Whether MCP clients accept a name: 1 to 128 letters, digits, `_`, `-` or `.`.
#[must_use]
pub fn is_client_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=CLIENT_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(legal)
}

impl Exposure {
    /// The defaults.
    #[must_use]
    pub fn standard() -> Exposure {
        Exposure {
            preset: Some("starter".to_owned()),
            auto: true,
            include: Selection::default(),
            exclude: Selection::default(),
        }
    }

    /// Whether a tool is exposed.
    #[must_use]
    pub fn of(&self, tool: &ExposureInput<'_>) -> ExposureVerdict {
        // First, so that no inclusion brings back what was excluded.
        if let Some(why) = self.exclude.hit(tool) {
            return ExposureVerdict::No(format!("excluded by {why}"));
        }
        if let Some(why) = self.include.hit(tool) {
            return ExposureVerdict::Yes(format!("included by {why}"));
        }
        if let Some(part) = tool.part {
            return ExposureVerdict::Yes(format!("{part} is on"));
        }
        if tool.in_preset {
            let preset = self.preset.as_deref().unwrap_or("");
            return ExposureVerdict::Yes(format!("in preset {preset}"));
        }
        match (tool.bundled, self.auto) {
            (false, true) => ExposureVerdict::Yes("own tool".to_owned()),
            (false, false) => {
                ExposureVerdict::No("own tools are not exposed automatically".to_owned())
            }
            (true, _) => ExposureVerdict::No("not in the preset".to_owned()),
        }
    }
}

impl Selection {
    /// Whether nothing is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.tags.is_empty() && self.categories.is_empty()
    }

    fn hit(&self, tool: &ExposureInput<'_>) -> Option<String> {
        let same = |set: &BTreeSet<String>, word: &str| {
            set.iter().any(|known| known.eq_ignore_ascii_case(word))
        };
        if same(&self.names, tool.name) {
            return Some("name".to_owned());
        }
        if let Some(tag) = tool.tags.iter().find(|tag| same(&self.tags, tag)) {
            return Some(format!("tag {tag}"));
        }
        let category = tool
            .category
            .filter(|category| same(&self.categories, category));
        category.map(|category| format!("category {category}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(names: &[&str], tags: &[&str], categories: &[&str]) -> Selection {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Selection {
            names: set(names),
            tags: set(tags),
            categories: set(categories),
        }
    }

    #[track_caller]
    fn check(exposure: &Exposure, bundled: bool, in_preset: bool, expected: &ExposureVerdict) {
        let tool = ExposureInput {
            name: "readFile",
            tags: &["disk".to_owned()],
            category: Some("FILE"),
            bundled,
            in_preset,
            part: None,
        };
        assert_eq!(&exposure.of(&tool), expected);
    }

    fn yes(why: &str) -> ExposureVerdict {
        ExposureVerdict::Yes(why.to_owned())
    }

    fn no(why: &str) -> ExposureVerdict {
        ExposureVerdict::No(why.to_owned())
    }

    #[test]
    fn clients_take_plain_names_only() {
        assert!(is_client_name("read_file-v1.2"));
        assert!(is_client_name(&"a".repeat(128)));
        for name in ["", "read file", "größe", "a/b", &"a".repeat(129)] {
            assert!(!is_client_name(name), "{name}");
        }
    }

    #[test]
    fn by_default_the_preset_and_own_tools() {
        let exposure = Exposure::standard();
        check(&exposure, true, true, &yes("in preset starter"));
        check(&exposure, true, false, &no("not in the preset"));
        check(&exposure, false, false, &yes("own tool"));
        let manual = Exposure {
            auto: false,
            ..Exposure::standard()
        };
        let expected = no("own tools are not exposed automatically");
        check(&manual, false, false, &expected);
    }

    #[test]
    fn exclusion_wins_over_everything() {
        let every = [
            (selection(&["READFILE"], &[], &[]), "name"),
            (selection(&[], &["disk"], &[]), "tag disk"),
            (selection(&[], &[], &["file"]), "category FILE"),
        ];
        for (set, why) in &every {
            let included = Exposure {
                include: set.clone(),
                preset: None,
                ..Exposure::standard()
            };
            check(&included, true, false, &yes(&format!("included by {why}")));
            let excluded = Exposure {
                include: set.clone(),
                exclude: set.clone(),
                ..Exposure::standard()
            };
            check(&excluded, false, true, &no(&format!("excluded by {why}")));
        }
    }
}
