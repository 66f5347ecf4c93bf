//! `ringfence expose`: which tools are exposed. It edits `[exposure]` in ringfence.toml
//! and leaves the rest of the file as it is, comments included.

use anyhow::Context as _;
use engine::life::revision;
use engine::policy_admin::ApplyFault;
use engine::registry::CONFIG_FILE;
use engine::{Engine, EngineError};
use model::govern::exposure::Exposure;
use model::govern::person::Actor;
use serde_json::json;

use crate::arguments::Expose;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};
use crate::wiring;

pub(crate) fn run(arguments: &Expose, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    if changes_something(arguments) {
        // Unknown names are typing errors.
        for name in &arguments.names {
            engine.tool(name)?;
        }
        let now = engine.registry().current();
        let wanted = change(&now.config.exposure, arguments);
        let seen = revision(&now.settings.text);
        // A file that would not load is not saved, and the audit says who changed it.
        match engine.apply_exposure(&wanted, &seen, Actor::OWNER_AT_TERMINAL) {
            Err(ApplyFault::Engine(fault @ EngineError::Preset { .. })) => return Err(fault.into()),
            applied => applied.with_context(|| format!("`{CONFIG_FILE}` was not changed"))?,
        }
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

/// The settings as the arguments want them.
fn change(now: &Exposure, arguments: &Expose) -> Exposure {
    let mut wanted = now.clone();
    if let Some(preset) = &arguments.preset {
        wanted.preset = Some(preset.clone()).filter(|preset| preset != "none");
    }
    wanted.auto = arguments.auto.unwrap_or(wanted.auto);
    let (into, out_of) = match arguments.exclude {
        true => (&mut wanted.exclude, &mut wanted.include),
        false => (&mut wanted.include, &mut wanted.exclude),
    };
    let sets = [
        (&mut into.names, &mut out_of.names, &arguments.names),
        (&mut into.tags, &mut out_of.tags, &arguments.tag),
        (
            &mut into.categories,
            &mut out_of.categories,
            &arguments.category,
        ),
    ];
    for (into, out_of, words) in sets {
        for word in words {
            let other = |known: &String| !known.eq_ignore_ascii_case(word);
            into.retain(other);
            out_of.retain(other);
            if !arguments.forget {
                into.insert(word.clone());
            }
        }
    }
    wanted
}

fn show(engine: &Engine, printer: &mut Printer) {
    let now = engine.registry().current();
    let exposure = &now.config.exposure;
    let offered = engine.exposed_names();
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
        let exposure = |text| Config::parse(text).expect("loads").exposure;
        assert_eq!(
            change(&exposure(text), &arguments(words)),
            exposure(expected)
        );
    }

    #[test]
    fn excluding_takes_out_of_the_included() {
        check(
            "[exposure.include]\nnames = [\"UUID\", \"hash\"]\n",
            &["--exclude", "uuid"],
            "[exposure.include]\nnames = [\"hash\"]\n[exposure.exclude]\nnames = [\"uuid\"]\n",
        );
        check(
            "[exposure.include]\nnames = [\"uuid\"]\n",
            &["--forget", "uuid"],
            "",
        );
    }

    #[test]
    fn none_is_no_preset_and_kinds_are_apart() {
        check(
            "",
            &["--preset", "none", "--auto", "false"],
            "[exposure]\npreset = \"none\"\nauto = false\n",
        );
        check(
            "[exposure.exclude]\ntags = [\"web\"]\n",
            &["uuid", "--category", "FILE", "--tag", "WEB"],
            "[exposure.include]\nnames = [\"uuid\"]\ntags = [\"WEB\"]\ncategories = [\"FILE\"]\n",
        );
    }
}
