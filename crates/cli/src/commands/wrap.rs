//! `ringfence wrap`: moves the MCP servers of a client behind Ringfence.
//!
//! The client's file is changed last, in one step. Everything before that only adds:
//! secrets that nothing uses yet, servers that are held, a record, a copy. So whatever
//! ends the command in between, the client still has its servers, and the command can be
//! repeated.

/// Files that are replaced whole.
pub(crate) mod file;
/// What was done, for `unwrap`.
mod record;
/// Which file is meant.
pub(crate) mod target;
/// `ringfence unwrap`.
pub(crate) mod undo;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use engine::registry::CONFIG_FILE;
use engine::{Engine, SECRETS_FILE};
use host::secrets::Secrets;
use model::caller;
use model::config::Config;
use model::document::digest;
use model::govern::approval::authority::CONNECTED_DEFAULT;
use model::policy::risk::Level;
use model::text::{count, elided, one_line};
use model::word::Word as _;
use serde_json::{Value, json};
use upstream::pin::PinDecision;

use crate::arguments::WrapArguments;
use crate::commands::connect::client::{self, Entry};
use crate::commands::connect::identity::{self, Identity};
use crate::commands::connect::{NAME, splice};
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::sheet;
use crate::settings;
use crate::wiring;
use engine::server_launch::{finding_line, finding_value};
use engine::server_settings as edit;
use engine::server_sheet::decision;

use engine::client_import::{ClientEntry, ImportContext, ImportPlan, ImportedServer};
use engine::secret_line;
use record::WrapRecord;
use store::{Keys, SettingsEdit};
use target::{ClientFile, ClientText};

/// The suffix of the copy of a client's file.
const BACKUP: &str = ".ringfence-backup";
/// Copies of one file that are kept.
const BACKUPS_MAX: usize = 100;
/// The name of a client that was not named.
const CALLER: &str = "client";

pub(crate) fn run(arguments: &WrapArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let Some(word) = &arguments.target else {
        bail!("{}", which());
    };
    let home = wiring::absolute_home(&arguments.home)?;
    let file = ClientFile::find(word)?;
    let Some(read) = file.read()? else {
        bail!("there is no `{}`", file.path.display());
    };
    let before = WrapRecord::of(&home, &file.path)?;
    let is_wrapped = read.entries.iter().any(ClientEntry::is_ours);
    // Both: a record alone is left by a run that was interrupted, and can be repeated.
    if before.is_some() && is_wrapped {
        bail!(
            "`{0}` is wrapped already; `ringfence unwrap {0}` puts it back",
            file.path.display()
        );
    }
    let engine = wiring::engine_at(&arguments.home)?;
    let own_secrets = Secrets::open(home.join(SECRETS_FILE)).read()?;
    let config = settings::config(Some(&home))?;
    let plan = ImportPlan::new(
        &read.entries,
        &ImportContext {
            config: &config,
            secrets: &own_secrets,
            environment: &settings::environment(),
        },
    );
    let answers = ClientAnswers::of((&home, &config), (&file, &read), arguments)?;
    let shown = Wrapped {
        path: &file.path,
        plan: &plan,
        decisions: decisions(&engine, &plan),
        answers: answers.level,
        caller: None,
        backup: None,
    };
    if let Some(exit) = refrain(&shown, arguments, printer)? {
        return Ok(finish(&shown, exit, printer));
    }
    let wrapping = Wrapping {
        home: &home,
        file: &file,
        read: &read,
        plan: &plan,
        answers,
        arguments,
    };
    let done = wrapping.apply(&engine, before.as_ref());
    let (caller, backup) = done.with_context(|| {
        format!(
            "`{}` is not changed; the command can be repeated",
            file.path.display()
        )
    })?;
    let wrapped = Wrapped {
        caller: Some(caller),
        backup: Some(backup),
        ..shown
    };
    Ok(finish(&wrapped, Exit::Done, printer))
}

/// Shows what would change, and asks. An exit if nothing is to be changed.
fn refrain(
    shown: &Wrapped<'_>,
    arguments: &WrapArguments,
    printer: &mut Printer,
) -> anyhow::Result<Option<Exit>> {
    if printer.format() == Format::Human {
        show(shown, printer);
    }
    if shown.plan.imported.is_empty() {
        printer.note("there is no server to wrap; nothing was changed");
        return Ok(Some(Exit::No));
    }
    if arguments.dry_run {
        printer.note("nothing was changed");
        return Ok(Some(Exit::Done));
    }
    printer.emit();
    if !arguments.yes && !agreed("wrap", shown.path)? {
        printer.note("nothing was changed");
        return Ok(Some(Exit::No));
    }
    Ok(None)
}

/// How far the client itself may answer questions about its calls. An answer in the client
/// is the client's word that a person gave it, so its owner is shown how far that goes.
#[derive(Clone, Copy, Debug)]
struct ClientAnswers {
    /// Nothing: never, for so the settings are.
    level: Option<Level>,
    /// Whether it is written into the settings.
    is_set: bool,
}

impl ClientAnswers {
    /// As for a client that is connected: what was said, else what the settings say, else
    /// the default. One that was connected before keeps what its owner said.
    fn of(
        (home, config): (&Path, &Config),
        (file, read): (&ClientFile, &ClientText),
        arguments: &WrapArguments,
    ) -> anyhow::Result<ClientAnswers> {
        let held = identity::held(Some(&read.text), read.section);
        let known = identity::holder(&Keys::open(home)?, held.as_deref())?;
        let said = arguments.name.as_deref();
        let known = known.map(|known| known.record.name);
        let known = known.filter(|known| said.is_none_or(|name| caller::is_same(name, known)));
        let name = known.as_deref().or(said);
        let name = name.unwrap_or_else(|| usual_name(file));
        let is_set = known.is_none() || arguments.answers.is_some();
        let now = identity::answers_now(config, name);
        let usual = is_set.then_some(CONNECTED_DEFAULT);
        Ok(ClientAnswers {
            level: arguments.answers.or(now).or(usual),
            is_set,
        })
    }
}

/// The caller that a client becomes without another name.
fn usual_name(file: &ClientFile) -> &'static str {
    file.client.map_or(CALLER, |client| client.caller())
}

/// What the owner said already of the servers that are there, in the order of the plan.
fn decisions(engine: &Engine, plan: &ImportPlan) -> Vec<&'static str> {
    let now = engine.registry().current();
    let servers = now.servers().servers();
    let decided = plan.imported.iter().map(|one| {
        let view = servers.get(&one.written.name).filter(|_| one.is_known);
        view.map_or(PinDecision::Held.word(), decision)
    });
    decided.collect()
}

/// Which clients could be wrapped here.
fn which() -> String {
    let found = ClientFile::known();
    let named = found.iter().filter_map(|file| {
        let client = file.client?;
        let read = file.read().ok()??;
        let servers = read.entries.iter().filter(|entry| !entry.is_ours()).count();
        (servers > 0).then(|| format!("{} ({})", client.caller(), count(servers, "server")))
    });
    let named: Vec<_> = named.collect();
    match named.is_empty() {
        true => "name a client or a file; no client here has servers to wrap".to_owned(),
        false => format!("name a client or a file; here is {}", named.join(", ")),
    }
}

/// Asks about a client's file.
fn agreed(verb: &str, path: &Path) -> anyhow::Result<bool> {
    let about = sheet::name(&path.display().to_string());
    let head = format!("{verb} {about}?");
    let here = console::is_here().then(|| console::agreed(&head, &[], &about));
    match here.flatten() {
        Some(agreed) => Ok(agreed),
        None => bail!("there is no terminal to ask at; use `--yes`"),
    }
}

/// The change, once the person agreed.
struct Wrapping<'a> {
    home: &'a Path,
    file: &'a ClientFile,
    read: &'a ClientText,
    plan: &'a ImportPlan,
    answers: ClientAnswers,
    arguments: &'a WrapArguments,
}

impl Wrapping<'_> {
    /// Gives the name of the caller and the copy of the file.
    fn apply(
        &self,
        engine: &Engine,
        before: Option<&WrapRecord>,
    ) -> anyhow::Result<(String, PathBuf)> {
        // A key from a run that was interrupted is in no client's file.
        if let Some(before) = before {
            undo::revoke(self.home, before)?;
        }
        self.keep_secrets()?;
        self.add_servers(engine)?;
        let own = self.identity()?;
        let new = self.new_text(&own)?;
        let backup = self.backup_path()?;
        let record = WrapRecord {
            version: WrapRecord::version(),
            file: self.file.path.clone(),
            backup: backup.clone(),
            mode: self.read.mode,
            section: self.read.section.to_owned(),
            taken: self.each(|one| one.from.clone()),
            servers: self.each(|one| one.written.name.clone()),
            secrets: {
                let moved = self.plan.imported.iter().flat_map(|one| &one.moved);
                moved.map(|(_, secret)| secret.clone()).collect()
            },
            old_digest: digest::of_text(&self.read.text),
            new_digest: digest::of_text(&new),
            caller: own.is_new.then(|| own.record.name.clone()),
        };
        // Before the client's file changes: `unwrap` must find the record whatever
        // happens next.
        record.keep(self.home)?;
        // It holds whatever the file held, so only its owner may read it.
        file::replace(&backup, self.read.text.as_bytes(), 0o600)?;
        own.keep(self.home)?;
        // The new file holds a key.
        // Never wider than the file was, and never readable by others.
        let mode = self.read.mode & 0o700;
        let written = file::replace(&self.file.path, new.as_bytes(), mode);
        if let Err(error) = written
            && !self.holds(&new)
        {
            own.undo(self.home);
            return Err(error);
        }
        // Last: if writing failed, the client must not be allowed to answer.
        if self.answers.is_set {
            identity::set_answers(self.home, &own.record.name, self.answers.level)?;
        }
        Ok((own.record.name, backup))
    }

    /// Whether the client's file has this text. Its folder may fail to reach the disk after
    /// the file got its name: then the client has its key, which has to stay.
    fn holds(&self, text: &str) -> bool {
        let read = crate::commands::connect::read(&self.file.path);
        read.is_ok_and(|read| read.as_deref() == Some(text))
    }

    fn each(&self, of: impl Fn(&ImportedServer) -> String) -> Vec<String> {
        self.plan.imported.iter().map(of).collect()
    }

    fn keep_secrets(&self) -> anyhow::Result<()> {
        if self.plan.secrets.is_empty() {
            return Ok(());
        }
        let path = self.home.join(SECRETS_FILE);
        // Its mode and its owner were checked when its values were read.
        let old = crate::commands::connect::read(&path)?.unwrap_or_default();
        let new = secret_line::with(&old, &self.plan.secrets);
        file::replace(&path, new.as_bytes(), 0o600)
    }

    fn add_servers(&self, engine: &Engine) -> anyhow::Result<()> {
        let new = self.plan.imported.iter().filter(|one| !one.is_known);
        let written: Vec<_> = new.clone().map(|one| one.written.clone()).collect();
        if written.is_empty() {
            return Ok(());
        }
        // Edited before the notices are written, so that settings that would not load
        // announce nothing.
        let settings = SettingsEdit::begin(self.home)?;
        let changed = edit::with(&settings.read()?, &written)?;
        for one in new {
            let shown = one.launch.shown();
            engine.servers().note_added(&one.written.name, &shown)?;
        }
        Ok(settings.write(&changed)?)
    }

    fn identity(&self) -> anyhow::Result<Identity> {
        let held = identity::held(Some(&self.read.text), self.read.section);
        let name = self.arguments.name.as_deref();
        Identity::of(self.home, held.as_deref(), name, usual_name(self.file))
    }

    /// The client's file with one entry in the place of those that move.
    fn new_text(&self, own: &Identity) -> anyhow::Result<String> {
        let program =
            std::env::current_exe().context("cannot find the program file of `ringfence`")?;
        let is_usual = settings::home_source(self.arguments.home.home.as_deref()) == "default";
        let entry = Entry::Program {
            program: &program,
            home: (!is_usual).then_some(self.home),
            key: &own.secret,
        };
        let entry = client::entry(self.read.spelling, &entry)?;
        let mut text = self.read.text.clone();
        let section = self.read.section;
        if let Some(new) = splice::put(Some(&text), section, NAME, Some(&entry))? {
            text = new;
        }
        for one in &self.plan.imported {
            if let Some(new) = splice::put(Some(&text), section, &one.from, None)? {
                text = new;
            }
        }
        Ok(text)
    }

    /// A name beside the file that is free, or has this very copy.
    fn backup_path(&self) -> anyhow::Result<PathBuf> {
        for number in 1..=BACKUPS_MAX {
            let end = match number {
                1 => BACKUP.to_owned(),
                number => format!("{BACKUP}.{number}"),
            };
            let path = file::beside(&self.file.path, &end);
            match path.symlink_metadata() {
                Err(_) => return Ok(path),
                Ok(about) if about.is_file() => {
                    let known = crate::commands::connect::read(&path)?;
                    if known.as_deref() == Some(&self.read.text) {
                        return Ok(path);
                    }
                }
                Ok(_) => {}
            }
        }
        bail!(
            "there are {BACKUPS_MAX} copies beside `{}`; remove some",
            self.file.path.display()
        )
    }
}

/// The result, or what it would be.
struct Wrapped<'a> {
    path: &'a Path,
    plan: &'a ImportPlan,
    /// What was decided of each server of the plan.
    decisions: Vec<&'static str>,
    /// How far the client itself answers.
    answers: Option<Level>,
    /// Nothing if nothing was changed.
    caller: Option<String>,
    backup: Option<PathBuf>,
}

impl Wrapped<'_> {
    fn servers(&self) -> impl Iterator<Item = (&ImportedServer, &'static str)> {
        self.plan
            .imported
            .iter()
            .zip(self.decisions.iter().copied())
    }

    /// Whether its own client answers a question at any risk.
    fn answers_itself(&self) -> Option<Level> {
        self.answers.filter(|level| *level > Level::L0)
    }
}

fn finish(wrapped: &Wrapped<'_>, exit: Exit, printer: &mut Printer) -> Exit {
    let path = wrapped.path.display();
    if printer.format() == Format::Json {
        printer.json(&value(wrapped));
        return exit;
    }
    let (Some(caller), Some(backup)) = (&wrapped.caller, &wrapped.backup) else {
        return exit;
    };
    printer.line(&format!("{path}  wrapped; restart the client"));
    printer.note(&format!("the file as it was: {}", backup.display()));
    printer.note(&match wrapped.answers_itself() {
        None => format!("the client calls as `{caller}`, and answers no questions itself"),
        Some(most) => format!(
            "the client calls as `{caller}`, and questions up to {} may be answered in it",
            most.badge()
        ),
    });
    for (one, decided) in wrapped.servers() {
        let name = &one.written.name;
        for field in one.left_plain() {
            printer.note(&format!(
                "`{name}` has a secret in plain text in {CONFIG_FILE}: {field}"
            ));
        }
        let is_held = decided == PinDecision::Held.word();
        printer.note(&match is_held {
            true => format!("`{name}` is held until `ringfence servers accept {name}`"),
            false => format!("`{name}` is {decided} already"),
        });
    }
    exit
}

fn value(wrapped: &Wrapped<'_>) -> Value {
    let imported = wrapped.servers().map(|(one, decided)| {
        json!({
            "from": one.from,
            "server": one.written.name,
            "launch": one.launch.shown(),
            "decision": decided,
            "network": one.written.network.unwrap_or("none"),
            "private": one.written.private,
            "secrets": one.moved.iter().map(|(field, name)| {
                json!({ "field": field, "name": name })
            }).collect::<Vec<_>>(),
            "plain": one.left_plain(),
            "dropped": one.dropped,
            "findings": one.launch.findings().iter().map(finding_value).collect::<Vec<_>>(),
        })
    });
    let left = wrapped.plan.left.iter();
    let left = left.map(|(name, why)| json!({ "name": name, "why": why }));
    json!({
        "file": wrapped.path.display().to_string(),
        "wrapped": wrapped.caller.is_some(),
        "caller": wrapped.caller,
        "answers": wrapped.answers.map(Level::badge),
        "backup": wrapped.backup.as_ref().map(|path| path.display().to_string()),
        "imported": imported.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
    })
}

/// What would change, without a secret.
fn show(wrapped: &Wrapped<'_>, printer: &mut Printer) {
    printer.line(&wrapped.path.display().to_string());
    for (one, decided) in wrapped.servers() {
        let from = printer.styled(Style::Bold, &elided(&one.from, 60));
        let name = &one.written.name;
        let known = match one.is_known {
            true => format!(", there already and {decided}"),
            false => String::new(),
        };
        printer.line(&format!("  {from}  becomes the server `{name}`{known}"));
        show_server(one, printer);
    }
    for (name, why) in &wrapped.plan.left {
        let name = printer.styled(Style::Bold, &elided(name, 60));
        printer.line(&format!("  {name}  stays: {}", one_line(why)));
    }
    if wrapped.plan.imported.is_empty() {
        return;
    }
    printer.line(&match wrapped.answers_itself() {
        None => "  the client answers no questions about its calls itself; `--answers` lets it"
            .to_owned(),
        Some(most) => format!(
            "  the client itself may answer questions about its calls up to {}; `--answers L0` does not let it",
            most.badge()
        ),
    });
}

fn show_server(one: &ImportedServer, printer: &mut Printer) {
    printer.line(&format!("    {}", one.launch.shown()));
    match (&one.written.url, one.written.network) {
        (Some(_), _) if one.written.private => {
            printer.line("    it is on this machine, so the address may be a private one");
        }
        (Some(_), _) => {}
        (None, Some(_)) => {
            printer.line("    it may connect to anything, for it downloads what it runs");
        }
        (None, None) => printer.line("    it may connect to nothing"),
    }
    for folder in &one.written.read {
        let folder = one_line(folder);
        printer.line(&format!(
            "    it may read {folder}, and write only to its own folder"
        ));
    }
    for (field, secret) in &one.moved {
        let field = one_line(field);
        printer.line(&format!("    {field} moves to secrets.env as {secret}"));
    }
    if !one.dropped.is_empty() {
        printer.line(&format!("    left out: {}", one.dropped.join(", ")));
    }
    let is_moved = |finding: &upstream::finding::UpstreamFinding| {
        let mut fields = one.moved.iter();
        fields.any(|(field, _)| finding.field.ends_with(&format!(".{}", one_line(field))))
    };
    for finding in one.launch.findings().iter().filter(|one| !is_moved(one)) {
        printer.line(&format!("    warn  {}", finding_line(finding)));
    }
    for field in one.left_plain() {
        printer.line(&format!(
            "    the secret in {field} stays in plain text, in {CONFIG_FILE}; pass it in a variable or a header if the server takes one"
        ));
    }
}
