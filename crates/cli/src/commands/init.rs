//! `ringfence init`: four questions, and a file of settings with comments. It writes
//! nothing before all of them are answered, and never over settings that are there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use model::policy::risk::Level;
use model::text;
use serde_json::json;
use store::settings::CONFIG_FILE;

use crate::arguments::{ClientWord, ConnectArguments, HomeArguments, InitArguments};
use crate::commands::connect;
use crate::output::console::{self, Typed, Wanted};
use crate::output::exit::Exit;
use crate::output::hint::HomeUnwritable;
use crate::output::printer::{Format, Printer};
use crate::output::sheet::Sheet;
use crate::wiring;

/// The risk up to which an interactive client may answer, where one does.
const CLIENT_ANSWERS: Level = Level::L4;

/// How often one question is asked.
const ASKED_MAX: usize = 10;

/// How a folder meets the home that holds it.
const LIES_IN: &str = "lies in";

/// The answers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    client: Option<ClientWord>,
    preset: String,
    /// Absolute; the home's own folder if none.
    folder: Option<PathBuf>,
    client_answers: bool,
}

/// The presets; the first is the default.
const PRESETS: &[(&str, &str)] = &[
    ("starter", "a dozen that only compute: text, dates, numbers"),
    (
        "developer",
        "for code and data: JSON, CSV, diffs, hashes, search",
    ),
    ("files", "read and write files of one folder"),
    ("everything", "all bundled tools; risky ones need approval"),
    ("none", "only your own tools"),
];

const CLIENTS: &[(ClientWord, &str)] = &[
    (ClientWord::ClaudeDesktop, "Claude Desktop"),
    (ClientWord::ClaudeCode, "Claude Code"),
    (ClientWord::Cursor, "Cursor"),
    (ClientWord::VsCode, "Visual Studio Code"),
];

pub(crate) fn run(arguments: &InitArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&arguments.home)?;
    let path = home.join(CONFIG_FILE);
    // Never over settings that are there: they may hold rules.
    if path.exists() {
        bail!(
            "there are settings already: {}; edit them, or remove the file to start over",
            path.display()
        );
    }
    let Some(chosen) = choose(arguments, &home)? else {
        printer.note("nothing was written");
        return Ok(Exit::No);
    };
    write(&home, &path, &settings(&chosen))?;
    // The engine reads the file as it will at every start. If it refuses, the file is removed.
    if let Err(fault) = try_out(&chosen, &arguments.home) {
        // Removed, because a file that the engine refuses would stop every later command.
        let _ = fs::remove_file(&path);
        // The engine may have made its store before it refused.
        return Err(fault.context("no settings were written"));
    }
    if let Some(client) = chosen.client {
        // The settings are complete without a client, so they stay.
        let connected = connect::run(&connect(client, &chosen, arguments), printer);
        let why = match connected {
            Ok(Exit::Done) => None,
            Ok(_) => Some("it was left as it is".to_owned()),
            Err(fault) => Some(text::one_line(&format!("{fault:#}"))),
        };
        if let Some(why) = why {
            printer.note(&format!(
                "the client is not connected: {why}; `ringfence connect` does it later"
            ));
        }
    }
    match printer.format() {
        Format::Json => printer.json(&json!({
            "written": path.display().to_string(),
            "preset": chosen.preset,
            "folder": chosen.folder,
        })),
        Format::Human => {
            printer.line(&format!(
                "wrote {}",
                text::one_line(&path.display().to_string())
            ));
            printer.line("");
            printer.lines(NEXT);
        }
    }
    Ok(Exit::Done)
}

/// Whether the settings can be used, and tools could work in their folder.
fn try_out(chosen: &Chosen, home: &HomeArguments) -> anyhow::Result<()> {
    let engine = wiring::engine_at(home)?;
    if let Some(folder) = &chosen.folder {
        engine.protected().allows(folder)?;
    }
    Ok(())
}

const NEXT: &str = "\
Next:
  ringfence serve               serve tools over HTTP; clients that use stdio start it themselves
  ringfence run countWords --args '{\"text\":\"one two\"}'
  ringfence approvals watch     answer approval questions as they come";

/// Asks for the answers that no flag gave. `None` if the person stopped.
fn choose(arguments: &InitArguments, home: &Path) -> anyhow::Result<Option<Chosen>> {
    let asks = !arguments.yes;
    if asks && !console::is_here() {
        bail!("there is no terminal to ask at; add `--yes` to use the flags and the defaults");
    }
    let folder = match &arguments.folder {
        Some(folder) => Some(usable(folder, home)?),
        None => None,
    };
    if let Some(preset) = &arguments.preset
        && !PRESETS.iter().any(|(known, _)| known == preset)
    {
        let known: Vec<_> = PRESETS.iter().map(|(known, _)| *known).collect();
        bail!(
            "there is no preset `{}`; known: {}",
            text::one_line(preset),
            known.join(", ")
        );
    }
    let mut chosen = Chosen {
        client: arguments.client,
        preset: arguments
            .preset
            .clone()
            .unwrap_or_else(|| PRESETS_FIRST.to_owned()),
        folder,
        client_answers: arguments.client_answers,
    };
    if asks && !ask(arguments, home, &mut chosen)? {
        return Ok(None);
    }
    Ok(Some(chosen))
}

/// The four questions, those that flags answer left out. Returns whether the
/// person went to the end.
fn ask(arguments: &InitArguments, home: &Path, chosen: &mut Chosen) -> anyhow::Result<bool> {
    if arguments.client.is_none() {
        let mut words: Vec<_> = CLIENTS.iter().map(|(_, words)| *words).collect();
        words.push("another one, or none yet");
        let Some(number) = pick("Which client do you use?", &words, "the client") else {
            return Ok(false);
        };
        chosen.client = CLIENTS.get(number).map(|(client, _)| *client);
    }
    if arguments.preset.is_none() {
        let words = PRESETS
            .iter()
            .map(|(name, words)| format!("{name}: {words}"));
        let words: Vec<_> = words.collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let Some(number) = pick("Which bundled tools may callers use?", &words, "the tools") else {
            return Ok(false);
        };
        if let Some((name, _)) = PRESETS.get(number) {
            chosen.preset = (*name).to_owned();
        }
    }
    if arguments.folder.is_none() {
        let Some(folder) = ask_folder(home)? else {
            return Ok(false);
        };
        chosen.folder = folder;
    }
    if chosen.client.is_some() && !arguments.client_answers {
        let words = [
            "you, at a terminal: `ringfence approvals watch`",
            "you, in that client, up to risk L4",
        ];
        let question = "Where do you approve calls that need approval?";
        let Some(number) = pick(question, &words, "who approves") else {
            return Ok(false);
        };
        chosen.client_answers = number == 1;
    }
    Ok(true)
}

/// Asks for the folder of tools; the inner value is none for one of the home's own. A folder
/// that would show the home is not offered: the engine would refuse it after the last question.
fn ask_folder(home: &Path) -> anyhow::Result<Option<Option<PathBuf>>> {
    let here = std::env::current_dir().context("this folder is gone")?;
    let shown = text::one_line(&here.display().to_string());
    let this = format!("this folder: {shown}");
    let mut words = vec!["a new folder in the home"];
    let meets = meeting(&here, home);
    let question = match meets {
        None => {
            words.push(&this);
            "Which folder may tools read and write?".to_owned()
        }
        Some(how) => format!(
            "Which folder may tools read and write? (not {shown}, which {how} the home; \
             `--folder DIR` names another)"
        ),
    };
    let number = pick(&question, &words, "the folder");
    Ok(number.map(|number| (number == 1).then_some(here)))
}

/// The first preset.
const PRESETS_FIRST: &str = "starter";

/// One of several. Asks again for any other word: a slip must not choose. Nothing if nothing
/// more can be typed.
fn pick(head: &str, words: &[&str], about: &str) -> Option<usize> {
    let choices = words.iter().enumerate();
    let choices = choices.map(|(number, words)| ((number + 1).to_string(), (*words).to_owned()));
    let sheet = Sheet {
        head: head.to_owned(),
        parts: Vec::new(),
        about: about.to_owned(),
        choices: choices.collect(),
        otherwise: "ask again".to_owned(),
    };
    for _ in 0..ASKED_MAX {
        match console::ask(&sheet, &Wanted::default()) {
            Typed::Key(key) => return key.parse::<usize>().ok()?.checked_sub(1),
            Typed::Otherwise => {}
            Typed::Ended | Typed::Withdrawn | Typed::Nowhere => return None,
        }
    }
    None
}

/// A folder that was named and can be that of tools.
fn usable(folder: &Path, home: &Path) -> anyhow::Result<PathBuf> {
    let shown = text::one_line(&folder.display().to_string());
    let folder = existing(folder)?;
    match meeting(&folder, home) {
        // In the home there are folders for tools; the engine knows them.
        None | Some(LIES_IN) => Ok(folder),
        Some(how) => bail!(
            "`{shown}` {how} the home `{}`, which no tool may reach; name another folder",
            text::one_line(&home.display().to_string())
        ),
    }
}

/// How a folder meets the home, so that tools in the one would reach the other.
fn meeting(folder: &Path, home: &Path) -> Option<&'static str> {
    let (folder, home) = (resolved(folder), resolved(home));
    match (home.starts_with(&folder), folder.starts_with(&home)) {
        (true, true) => Some("is"),
        (true, false) => Some("holds"),
        (false, true) => Some(LIES_IN),
        (false, false) => None,
    }
}

/// A path without links, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    });
    there.unwrap_or_else(|| path.to_path_buf())
}

fn existing(folder: &Path) -> anyhow::Result<PathBuf> {
    let shown = text::one_line(&folder.display().to_string());
    let folder = std::path::absolute(folder)?;
    if !folder.is_dir() {
        bail!("`{shown}` is not a folder; make it first");
    }
    Ok(folder)
}

fn connect(client: ClientWord, chosen: &Chosen, arguments: &InitArguments) -> ConnectArguments {
    ConnectArguments {
        client: Some(client),
        http: false,
        url: None,
        answers: Some(match chosen.client_answers {
            true => CLIENT_ANSWERS,
            false => Level::L0,
        }),
        name: None,
        remove: false,
        yes: arguments.yes,
        home: arguments.home.clone(),
    }
}

/// The file. Comments say what the next person may want to change.
fn settings(chosen: &Chosen) -> String {
    let preset = toml_edit::value(chosen.preset.as_str());
    let workspace = match &chosen.folder {
        Some(folder) => toml_edit::value(folder.display().to_string()),
        None => toml_edit::value("workspace"),
    };
    format!(
        "\
# Settings of Ringfence. A change is in force at the next call. `ringfence config` shows
# every setting and where it comes from; `ringfence policy lint` checks this file.

[exposure]
# Which bundled tools callers can use: starter, developer, files, everything or none. Your own
# published tools are always exposed. `ringfence expose` changes it.
preset = {}

[files]
# The folder that tools read and write. They see nothing outside it. A relative path
# starts at the folder of this file.
workspace = {}

[approvals]
# Seconds a call waits for an approval. Then it is refused; the caller may repeat it.
wait_seconds = 45
# With true, a caller can never approve its own calls.
separate = false

# Rules allow, ask about or deny calls by tool, caller, risk or host. An example:
#
# [[rule]]
# id = \"no-deletes\"
# tools = [\"delete*\"]
# effect = \"deny\"
# reason = \"nothing is deleted here\"
",
        preset.to_string().trim(),
        workspace.to_string().trim(),
    )
}

/// Writes the file whole, readable by its owner alone, and only where none is.
fn write(home: &Path, path: &Path, text: &str) -> anyhow::Result<()> {
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true).mode(0o700);
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| HomeUnwritable { path, source }
    };
    folder.create(home).map_err(unwritable(home))?;
    let mut options = fs::OpenOptions::new();
    // `create_new`: settings that appeared since the first check are not overwritten.
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(unwritable(path))?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    if let Err(fault) = written {
        let _ = fs::remove_file(path);
        return Err(unwritable(path)(fault).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_makes_settings_that_are_understood() {
        for (preset, _) in PRESETS {
            for folder in [None, Some(PathBuf::from("/srv/\"quoted\" and [odd]"))] {
                let chosen = Chosen {
                    client: None,
                    preset: (*preset).to_owned(),
                    folder: folder.clone(),
                    client_answers: false,
                };
                let text = settings(&chosen);
                let config = model::config::Config::parse(&text).unwrap();
                let workspace = folder.map_or("workspace".to_owned(), |folder| {
                    folder.display().to_string()
                });
                assert_eq!(config.files.workspace, workspace);
            }
        }
        assert_eq!(PRESETS.first().map(|(name, _)| *name), Some(PRESETS_FIRST));
    }
}
