//! Which tools are exposed, for people: what other settings of exposure would come to, and
//! putting them in force. The file keeps everything that does not change, comments
//! included; the command line and the Studio change it here.

use std::collections::BTreeSet;
use std::path::Path;

use model::config::Config;
use model::govern::exposure::{Exposure, Selection};
use model::govern::person::Actor;
use store::settings::CONFIG_FILE;
use toml_edit::{Array, DocumentMut, Item, Table, Value, value};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::policy_admin::ApplyFault;
use crate::snapshot::Snapshot;

/// What the audit says about such a change.
const REASON: &str = "which tools are exposed";

/// What other settings of exposure would come to.
#[derive(Debug)]
pub struct ExposurePreview {
    /// The text of the file then.
    pub text: String,
    /// The tools then.
    pub then: Snapshot,
    /// Tools that are exposed then and are not now.
    pub added: Vec<String>,
    /// Tools that are exposed now and are not then.
    pub removed: Vec<String>,
}

impl Engine {
    /// The names of the tools that are exposed.
    #[must_use]
    pub fn exposed_names(&self) -> Vec<String> {
        exposed(&self.registry().current()).into_iter().collect()
    }

    /// What other settings of exposure would come to. Nothing is written.
    pub fn preview_exposure(&self, exposure: &Exposure) -> Result<ExposurePreview, EngineError> {
        let now = self.registry().current();
        self.check_preset(exposure)?;
        let text = with_exposure(&now.settings.text, exposure)?;
        let settings = self.candidate(Path::new(CONFIG_FILE), Some(&text))?;
        self.registry().check_names(&settings)?;
        let then = self.registry().under(&settings)?;
        let (before, after) = (exposed(&now), exposed(&then));
        Ok(ExposurePreview {
            text,
            then,
            added: after.difference(&before).cloned().collect(),
            removed: before.difference(&after).cloned().collect(),
        })
    }

    /// Puts other settings of exposure in force. `seen` stands for the file that was
    /// looked at.
    pub fn apply_exposure(
        &self,
        exposure: &Exposure,
        seen: &str,
        actor: Actor<'_>,
    ) -> Result<(), ApplyFault> {
        self.check_preset(exposure)?;
        let text = with_exposure(&self.registry().current().settings.text, exposure)?;
        self.apply_settings(&text, seen, (actor, REASON))
    }

    fn check_preset(&self, exposure: &Exposure) -> Result<(), EngineError> {
        match &exposure.preset {
            Some(preset) => self.catalog().preset(preset).map(|_| ()),
            None => Ok(()),
        }
    }
}

fn exposed(now: &Snapshot) -> BTreeSet<String> {
    let tools = now.tools();
    let tools = tools.filter(|tool| now.exposed(&tool.usable.document, tool.source).is_yes());
    tools
        .map(|tool| tool.usable.document.name.clone())
        .collect()
}

/// The settings with other exposure. Only what differs is written.
fn with_exposure(text: &str, after: &Exposure) -> Result<String, EngineError> {
    let before = parse_config(text)?.exposure;
    let mut document: DocumentMut = text
        .parse()
        .map_err(|_| unfit(format!("`{CONFIG_FILE}` cannot be changed: it is not TOML")))?;
    if before == *after {
        return Ok(text.to_owned());
    }
    // What stands in a file without a setting would come after the first one.
    let head = match document.as_table().is_empty() {
        true => std::mem::take(&mut document).to_string(),
        false => String::new(),
    };
    let exposure = table(document.as_table_mut(), "exposure")?;
    if before.preset != after.preset {
        let preset = after.preset.as_deref().unwrap_or("none");
        put(exposure, "preset", preset.into());
    }
    if before.auto != after.auto {
        put(exposure, "auto", after.auto.into());
    }
    for (key, was, is) in [
        ("include", &before.include, &after.include),
        ("exclude", &before.exclude, &after.exclude),
    ] {
        if was != is {
            select(table(exposure, key)?, was, is)?;
        }
        if exposure.get(key).is_some_and(is_hollow) {
            exposure.remove(key);
        }
    }
    let changed = format!("{head}{document}");
    parse_config(&changed)
        .map_err(|fault| unfit(format!("the change would break `{CONFIG_FILE}`: {fault}")))?;
    Ok(changed)
}

/// Sets a value; a comment behind the old one stays.
fn put(table: &mut Table, key: &str, mut new: Value) {
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(new));
}

/// Takes words out of lists and adds others, so that each list keeps its form.
fn select(lists: &mut Table, was: &Selection, is: &Selection) -> Result<(), EngineError> {
    for (key, was, is) in [
        ("names", &was.names, &is.names),
        ("tags", &was.tags, &is.tags),
        ("categories", &was.categories, &is.categories),
    ] {
        if was == is {
            continue;
        }
        let item = lists.entry(key).or_insert_with(|| value(Array::new()));
        let Some(words) = item.as_array_mut() else {
            return Err(unfit(format!("`{key}` in `{CONFIG_FILE}` is not a list")));
        };
        words.retain(|word| word.as_str().is_some_and(|word| is.contains(word)));
        for word in is.difference(was) {
            words.push(word);
        }
    }
    Ok(())
}

/// A table of the settings, made if it is absent; one that is written in one line becomes a
/// block.
pub fn table<'a>(parent: &'a mut Table, key: &str) -> Result<&'a mut Table, EngineError> {
    if let Some(inline) = parent.get(key).and_then(Item::as_inline_table) {
        let block = inline.clone().into_table();
        parent.remove(key);
        parent.insert(key, Item::Table(block));
    }
    let item = parent.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    item.as_table_mut()
        .ok_or_else(|| unfit(format!("`{key}` in `{CONFIG_FILE}` is not a table")))
}

fn is_hollow(item: &Item) -> bool {
    let lists = item.as_table();
    lists.is_some_and(|lists| {
        lists
            .iter()
            .all(|(_, item)| item.as_array().is_some_and(Array::is_empty))
    })
}

fn parse_config(text: &str) -> Result<Config, EngineError> {
    Config::parse(text).map_err(|faults| {
        let words: Vec<_> = faults.iter().map(ToString::to_string).collect();
        unfit(words.join("\n"))
    })
}

fn unfit(why: String) -> EngineError {
    EngineError::Settings(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, change: impl FnOnce(&mut Exposure), expected: &str) {
        let mut exposure = parse_config(text).expect("loads").exposure;
        change(&mut exposure);
        let changed = with_exposure(text, &exposure).expect("a change");
        assert_eq!(changed, expected);
        assert_eq!(parse_config(&changed).expect("loads").exposure, exposure);
    }

    fn insert(set: &mut BTreeSet<String>, word: &str) {
        set.insert(word.to_owned());
    }

    #[test]
    fn comments_and_the_rest_stay() {
        check(
            "# mine\n[baseline]\nnetwork = \"strict\" # yes\n",
            |exposure| {
                insert(&mut exposure.include.names, "uuid");
                insert(&mut exposure.include.categories, "FILE");
            },
            "# mine\n[baseline]\nnetwork = \"strict\" # yes\n\n[exposure.include]\nnames = [\"uuid\"]\ncategories = [\"FILE\"]\n",
        );
        check(
            "[exposure]\nauto = false # by hand\n\n[exposure.include]\nnames = [\n  \"a\",\n  \"b\",\n]\n",
            |exposure| {
                exposure.include.names.remove("b");
                exposure.auto = true;
            },
            "[exposure]\nauto = true # by hand\n\n[exposure.include]\nnames = [\n  \"a\",\n]\n",
        );
    }

    #[test]
    fn what_is_empty_goes_and_no_preset_is_said() {
        check(
            "[exposure.include]\nnames = [\"uuid\"]\n",
            |exposure| {
                exposure.include.names.clear();
            },
            "",
        );
        check(
            "",
            |exposure| {
                exposure.preset = None;
                exposure.auto = false;
            },
            "[exposure]\npreset = \"none\"\nauto = false\n",
        );
        check("# nothing\n", |_| {}, "# nothing\n");
        check(
            "# mine\n",
            |exposure| exposure.auto = false,
            "# mine\n[exposure]\nauto = false\n",
        );
    }

    #[test]
    fn inline_tables_are_understood() {
        check(
            "exposure = { preset = \"none\" }\n",
            |exposure| insert(&mut exposure.include.names, "uuid"),
            "[exposure]\npreset = \"none\"\n\n[exposure.include]\nnames = [\"uuid\"]\n",
        );
    }
}
