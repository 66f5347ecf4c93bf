//! `ringfence expose`: which tools are exposed. It edits `[exposure]` in ringfence.toml
//! and leaves the rest of the file as it is, comments included.

use anyhow::{Context as _, bail};
use engine::Engine;
use engine::life::revision;
use engine::registry::CONFIG_FILE;
use model::govern::person::Actor;
use model::nearest::nearest;
use serde_json::json;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::arguments::Expose;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};
use crate::wiring;

pub(crate) fn run(arguments: &Expose, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    if changes_something(arguments) {
        check(arguments, &engine)?;
        let text = engine.registry().current().settings.text.clone();
        let changed = change(&text, arguments)?;
        // A file that would not load is not saved, and the audit says who changed it.
        let who = (Actor::OWNER_AT_TERMINAL, "which tools are exposed");
        let applied = engine.apply_settings(&changed, &revision(&text), who);
        applied.with_context(|| format!("`{CONFIG_FILE}` was not changed"))?;
    }
    show(&engine, printer);
    Ok(Exit::Done)
}

fn changes_something(arguments: &Expose) -> bool {
    !arguments.names.is_empty()
        || !arguments.tag.is_empty()
        || !arguments.category.is_empty()
        || arguments.preset.is_some()
        || arguments.auto.is_some()
}

/// Refuses unknown names, which are typing errors.
fn check(arguments: &Expose, engine: &Engine) -> anyhow::Result<()> {
    for name in &arguments.names {
        engine.tool(name)?;
    }
    let presets = engine.catalog().presets();
    match &arguments.preset {
        Some(preset) if preset != "none" && !presets.contains_key(preset) => {
            let known = presets.keys().map(String::as_str);
            let hint = nearest(preset, known).map(|name| format!("; did you mean `{name}`?"));
            bail!("there is no preset `{preset}`{}", hint.unwrap_or_default())
        }
        _ => Ok(()),
    }
}

fn change(text: &str, arguments: &Expose) -> anyhow::Result<String> {
    let mut document: DocumentMut = text
        .parse()
        .with_context(|| format!("`{CONFIG_FILE}` cannot be changed"))?;
    let exposure = table(document.as_table_mut(), "exposure")?;
    if let Some(preset) = &arguments.preset {
        exposure["preset"] = value(preset);
    }
    if let Some(auto) = arguments.auto {
        exposure["auto"] = value(auto);
    }
    let (into, out_of) = if arguments.exclude {
        ("exclude", "include")
    } else {
        ("include", "exclude")
    };
    let sets = [
        ("names", &arguments.names),
        ("tags", &arguments.tag),
        ("categories", &arguments.category),
    ];
    for (key, words) in sets {
        for word in words {
            let other = table(exposure, out_of)?;
            remove(other, key, word);
            let set = table(exposure, into)?;
            remove(set, key, word);
            if !arguments.forget {
                add(set, key, word)?;
            }
        }
    }
    for key in ["include", "exclude"] {
        if exposure.get(key).is_some_and(is_hollow) {
            exposure.remove(key);
        }
    }
    Ok(document.to_string())
}

pub(crate) fn table<'a>(parent: &'a mut Table, key: &str) -> anyhow::Result<&'a mut Table> {
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
        .with_context(|| format!("`{key}` in `{CONFIG_FILE}` is not a table"))
}

fn is_hollow(item: &Item) -> bool {
    let Some(table) = item.as_table() else {
        return false;
    };
    table
        .iter()
        .all(|(_, item)| item.as_array().is_some_and(Array::is_empty))
}

fn remove(table: &mut Table, key: &str, word: &str) {
    if let Some(words) = table.get_mut(key).and_then(Item::as_array_mut) {
        words.retain(|known| {
            !known
                .as_str()
                .is_some_and(|known| known.eq_ignore_ascii_case(word))
        });
    }
}

fn add(table: &mut Table, key: &str, word: &str) -> anyhow::Result<()> {
    let item = table.entry(key).or_insert_with(|| value(Array::new()));
    let words = item
        .as_array_mut()
        .with_context(|| format!("`{key}` in `{CONFIG_FILE}` is not a list"))?;
    words.push(word);
    Ok(())
}

fn show(engine: &Engine, printer: &mut Printer) {
    let now = engine.registry().current();
    let exposure = &now.config.exposure;
    let offered: Vec<_> = now
        .tools()
        .filter(|tool| now.exposed(&tool.usable.document, tool.source).is_yes())
        .map(|tool| tool.usable.document.name.as_str())
        .collect();
    if printer.format() == Format::Json {
        let set = |selection: &model::govern::exposure::Selection| {
            json!({
                "names": selection.names,
                "tags": selection.tags,
                "categories": selection.categories,
            })
        };
        printer.json(&json!({
            "preset": exposure.preset,
            "auto": exposure.auto,
            "include": set(&exposure.include),
            "exclude": set(&exposure.exclude),
            "tools": offered,
        }));
        return;
    }
    let preset = exposure.preset.as_deref().unwrap_or("none");
    printer.line(&format!("preset   {preset}"));
    printer.line(&format!(
        "own      {}",
        if exposure.auto {
            "by themselves"
        } else {
            "when included"
        }
    ));
    for (word, selection) in [
        ("include", &exposure.include),
        ("exclude", &exposure.exclude),
    ] {
        let names = selection.names.iter().cloned();
        let tags = selection.tags.iter().map(|tag| format!("tag {tag}"));
        let categories = selection.categories.iter();
        let categories = categories.map(|category| format!("category {category}"));
        let all: Vec<_> = names.chain(tags).chain(categories).collect();
        if !all.is_empty() {
            printer.line(&format!("{word}  {}", all.join(", ")));
        }
    }
    printer.line(&format!("tools    {}", offered.join(", ")));
    for (name, preset) in engine.catalog().presets() {
        printer.note(&format!("preset {name}: {}", preset.description));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::Config;

    fn arguments(words: &[&str]) -> Expose {
        use clap::Parser as _;
        let all = ["ringfence", "expose"].iter().chain(words);
        let parsed = crate::arguments::CommandLine::try_parse_from(all).expect("arguments");
        match parsed.command {
            Some(crate::arguments::Command::Expose(expose)) => expose,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check(text: &str, words: &[&str], expected: &str) {
        let changed = change(text, &arguments(words)).expect("a change");
        assert_eq!(changed, expected);
        Config::parse(&changed).expect("loads");
    }

    #[test]
    fn comments_and_the_rest_stay() {
        check(
            "# mine\n[baseline]\nnetwork = \"strict\" # yes\n",
            &["uuid", "--category", "FILE"],
            "# mine\n[baseline]\nnetwork = \"strict\" # yes\n\n[exposure.include]\nnames = [\"uuid\"]\ncategories = [\"FILE\"]\n",
        );
    }

    #[test]
    fn excluding_takes_out_of_the_included() {
        let text = "[exposure]\nauto = false\n\n[exposure.include]\nnames = [\"UUID\", \"hash\"]\n";
        check(
            text,
            &["--exclude", "uuid"],
            "[exposure]\nauto = false\n\n[exposure.include]\nnames = [ \"hash\"]\n\n[exposure.exclude]\nnames = [\"uuid\"]\n",
        );
        check(
            "[exposure.include]\nnames = [\"uuid\"]\n",
            &["--forget", "uuid"],
            "",
        );
        check(
            "",
            &["--preset", "none", "--auto", "false"],
            "[exposure]\npreset = \"none\"\nauto = false\n",
        );
    }

    #[test]
    fn inline_tables_are_understood() {
        check(
            "exposure = { preset = \"none\" }\n",
            &["uuid"],
            "[exposure]\npreset = \"none\"\n\n[exposure.include]\nnames = [\"uuid\"]\n",
        );
    }
}
