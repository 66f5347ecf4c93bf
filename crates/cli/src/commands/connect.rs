//! `ringfence connect`: adds this server to the settings of an MCP client, after showing
//! the change. The rest of that file stays as it is, and a copy of the old file is kept
//! beside it.

/// The clients, their files and their spelling.
pub(crate) mod client;
mod diff;
/// The caller and the key of a client.
pub(crate) mod identity;
/// One entry in a file of JSON.
pub(crate) mod splice;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use model::policy::risk::Level;
use serde_json::{Value, json};
use store::Keys;

use crate::arguments::{ClientWord, ConnectArguments};
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};
use crate::settings;
use crate::wiring::{self, served};

use client::{Entry, Folders, Platform};
use identity::Identity;

/// The server's name in every client's settings.
pub(crate) const NAME: &str = "ringfence";
/// Settings of a client, in bytes.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

pub(crate) fn run(arguments: &ConnectArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&arguments.home)?;
    let config = settings::config(Some(&home))?;
    let named = arguments.url.as_deref().map(endpoint).transpose()?;
    // Only where an address is needed: taking an entry away must not fail for the lack of one.
    let url = || match &named {
        Some(url) => Ok(url.clone()),
        None => served::mcp_url(&home, &config.serve),
    };
    let Some(client) = arguments.client else {
        let url = url()?;
        match printer.format() {
            Format::Json => printer.json(&entries(&url)),
            Format::Human => printer.lines(&snippets(&url)),
        }
        return Ok(Exit::Done);
    };
    let folders = Folders {
        home: settings::variable("HOME").map(PathBuf::from),
        config: settings::variable("XDG_CONFIG_HOME").map(PathBuf::from),
    };
    let path = client::file(client, Platform::here(), &folders)
        .context("there is no home folder; set HOME")?;
    let is_http = arguments.http || arguments.url.is_some();
    if is_http && !client.takes_addresses() {
        bail!(
            "{} starts servers itself; leave `--http` out",
            client.shown()
        );
    }
    let path = resolved(&path, client)?;
    let old = read(&path)?;
    let held = identity::held(old.as_deref(), client.section());
    let change = Change {
        client,
        home: &home,
        path: &path,
        old: old.as_deref(),
        asks: !arguments.yes,
    };
    if arguments.remove {
        return change.removed(held.as_deref(), printer);
    }
    let name = arguments.name.as_deref();
    let own = Identity::of(&home, held.as_deref(), name, client.caller())?;
    let address = is_http.then(url).transpose()?;
    let entry = entry(arguments, client, &home, address.as_deref(), &own)?;
    let now = identity::answers_now(&config, &own.record.name);
    change.put(&own, &entry, (arguments.answers, now), printer)
}

/// A change of a client's settings.
struct Change<'a> {
    client: ClientWord,
    home: &'a Path,
    path: &'a Path,
    old: Option<&'a str>,
    asks: bool,
}

impl Change<'_> {
    /// Adds the entry, with its key and the risk up to which the client answers.
    fn put(
        &self,
        own: &Identity,
        entry: &Value,
        (said, now): (Option<Level>, Option<Level>),
        printer: &mut Printer,
    ) -> anyhow::Result<Exit> {
        let client = self.client;
        let new = splice::put(self.old, client.section(), NAME, Some(entry));
        let new = new.with_context(|| self.by_hand(Some((own, entry))))?;
        if let Some(new) = &new {
            self.show(new, printer);
            if self.asks && !agreed(client)? {
                printer.note("nothing was changed");
                return Ok(Exit::No);
            }
        }
        let is_new = new.is_some();
        let answers = identity::answers(said, now, client.shown(), self.asks && is_new)?;
        // The key is stored before the client gets it: a key in its file must never be
        // one that the server refuses.
        own.keep(self.home)?;
        let text = new.as_deref().or(self.old).unwrap_or_default();
        let written = write(self.path, self.old.filter(|_| is_new), text, is_new);
        let is_mended = written.inspect_err(|_| own.undo(self.home))?;
        // Last: if writing failed, the client must not be allowed to answer.
        let is_said = (is_new || said.is_some())
            && identity::set_answers(self.home, &own.record.name, Some(answers))?;
        let told = Told {
            caller: Some(&own.record.name),
            answers: (is_new || said.is_some()).then_some(answers).or(now),
            is_written: is_new,
            is_changed: is_new || is_said,
            is_mended,
        };
        Ok(self.told(&told, printer))
    }

    /// Removes the entry and revokes its key.
    fn removed(&self, held: Option<&str>, printer: &mut Printer) -> anyhow::Result<Exit> {
        let new = splice::put(self.old, self.client.section(), NAME, None);
        let new = new.with_context(|| self.by_hand(None))?;
        let mut told = Told::default();
        let Some(new) = new else {
            return Ok(self.told(&told, printer));
        };
        self.show(&new, printer);
        if self.asks && !agreed(self.client)? {
            printer.note("nothing was changed");
            return Ok(Exit::No);
        }
        // The key first: a copy of it in some other file must be worthless.
        // By the key in the file, not by the client's name: another program
        // may have that name.
        let own = identity::holder(&Keys::open(self.home)?, held)?;
        if let Some(own) = &own {
            identity::revoke(self.home, &own.record)?;
            told.caller = Some(&own.record.name);
        }
        told.is_mended = write(self.path, self.old, &new, true)?;
        told.is_changed = true;
        told.is_written = true;
        Ok(self.told(&told, printer))
    }

    fn show(&self, new: &str, printer: &mut Printer) {
        let shown = diff::lines(self.old.unwrap_or_default(), new);
        let section = self.client.section();
        printer.note(&format!("{}, in `{section}`:", self.path.display()));
        printer.notes(&shown);
    }

    fn told(&self, told: &Told<'_>, printer: &mut Printer) -> Exit {
        let file = self.path.display();
        let client = self.client.shown();
        if printer.format() == Format::Json {
            printer.json(&json!({
                "client": client,
                "file": file.to_string(),
                "changed": told.is_changed,
                "caller": told.caller,
                "answers": told.answers.map(Level::badge),
            }));
            return Exit::Done;
        }
        match told.is_written {
            true => printer.line(&format!("{file}  changed; restart {client}")),
            false => printer.line(&format!("{file}  up to date")),
        }
        if told.is_mended {
            printer.note("other users could read that file, which holds a key; now only you can");
        }
        match (told.caller, told.answers) {
            (Some(name), Some(Level::L0)) => printer.note(&format!(
                "it calls as `{name}`, and answers no questions itself"
            )),
            (Some(name), Some(most)) => printer.note(&format!(
                "it calls as `{name}`, and questions up to {} may be answered in it",
                most.badge()
            )),
            (Some(name), None) if told.is_changed => {
                printer.note(&format!("revoked the key of `{name}`"));
            }
            (Some(_) | None, None) | (None, Some(_)) => {}
        }
        Exit::Done
    }

    /// Instructions for a file that is not edited automatically.
    fn by_hand(&self, entry: Option<(&Identity, &Value)>) -> String {
        let file = self.path.display();
        let section = self.client.section();
        match entry {
            None => format!("`{file}` stays as it is; take `{NAME}` out of `{section}` by hand"),
            Some((own, entry)) => {
                let name = &own.record.name;
                let entry = diff::hidden(&entry.to_string());
                format!(
                    "`{file}` stays as it is; add to `{section}` by hand, with the key that \
                     `ringfence keys add {name}` prints: \"{NAME}\": {entry}"
                )
            }
        }
    }
}

/// The result of a change.
#[derive(Debug, Default)]
struct Told<'a> {
    caller: Option<&'a str>,
    answers: Option<Level>,
    /// Whether the client's file changed.
    is_written: bool,
    /// Whether that file or our own settings changed.
    is_changed: bool,
    is_mended: bool,
}

/// What to write.
fn entry(
    arguments: &ConnectArguments,
    client: ClientWord,
    home: &Path,
    address: Option<&str>,
    own: &Identity,
) -> anyhow::Result<Value> {
    let key = own.secret.as_str();
    if let Some(url) = address {
        return client::entry(client, &Entry::Address { url, key });
    }
    let program = std::env::current_exe().context("cannot find the program file of `ringfence`")?;
    let is_usual = settings::home_source(arguments.home.home.as_deref()) == "default";
    let entry = Entry::Program {
        program: &program,
        home: (!is_usual).then_some(home),
        key,
    };
    client::entry(client, &entry)
}

/// An address as typed, with the endpoint's path.
fn endpoint(url: &str) -> anyhow::Result<String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let is_odd =
        |letter: char| letter.is_whitespace() || letter.is_control() || "\"'@#?".contains(letter);
    let rest =
        rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(is_odd));
    let Some(rest) = rest else {
        let shown = model::text::elided(url, 80);
        bail!(
            "`{shown}` is not the address of a server; write `http://HOST:PORT`, or with `https`"
        );
    };
    Ok(match rest.trim_end_matches('/').contains('/') {
        true => url.to_owned(),
        false => format!("{}/mcp", url.trim_end_matches('/')),
    })
}

/// The same as a value: where to connect, and the entry of each client.
fn entries(url: &str) -> Value {
    let clients = [ClientWord::Cursor, ClientWord::VsCode].map(|client| {
        let key = placeholder(client);
        let address = Entry::Address { url, key: &key };
        json!({
            "client": client.shown(),
            "file": client.shown_file(),
            "section": client.section(),
            "entry": client::entry(client, &address).ok(),
        })
    });
    json!({ "url": url, "clients": clients })
}

/// The placeholder for a client's own key.
fn placeholder(client: ClientWord) -> String {
    format!("<what `{NAME} keys add {}` prints>", client.caller())
}

/// Entries to copy, for each client: each with a key of its own, which is not shown.
pub(crate) fn snippets(url: &str) -> String {
    let claude = ClientWord::ClaudeCode.caller();
    let mut text = format!(
        "connect a client, or let `{NAME} connect CLIENT` write it:\n\n\
         Claude Code\n  claude mcp add --transport http {NAME} {url} --header \"Authorization: Bearer $({NAME} keys add {claude})\"\n"
    );
    for client in [ClientWord::Cursor, ClientWord::VsCode] {
        let key = placeholder(client);
        let address = Entry::Address { url, key: &key };
        let Ok(entry) = client::entry(client, &address) else {
            continue;
        };
        let whole = json!({ client.section(): { NAME: entry } });
        let whole = format!("{whole:#}").replace('\n', "\n  ");
        text.push_str(&format!(
            "\n{}, in {}\n  {whole}\n",
            client.shown(),
            client.shown_file()
        ));
    }
    text.push_str(&format!(
        "\nClaude Desktop starts the server itself\n  {NAME} connect claude-desktop\n"
    ));
    text
}

/// The file itself where the settings are a link, so that the link stays one.
pub(crate) fn resolved(path: &Path, client: ClientWord) -> anyhow::Result<PathBuf> {
    if let Ok(file) = path.canonicalize() {
        return Ok(file);
    }
    let folder = path.parent().unwrap_or(path);
    if !folder.is_dir() {
        bail!(
            "`{}` does not exist; is {} installed? start it once",
            folder.display(),
            client.shown()
        );
    }
    Ok(path.to_path_buf())
}

pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(format!("cannot read `{}`", path.display())),
    };
    if !about.is_file() || about.len() > FILE_BYTES_MAX {
        bail!("`{}` is not a settings file", path.display());
    }
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(Some(text))
}

/// Keeps a copy of the old file, then replaces it atomically. Both hold a key, so both
/// become readable only by the owner. Returns whether they were not before.
fn write(path: &Path, old: Option<&str>, new: &str, is_changed: bool) -> anyhow::Result<bool> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let before = fs::metadata(path).map(|about| about.permissions().mode() & 0o777);
    let is_loose = before.as_ref().is_ok_and(|mode| mode & 0o077 != 0);
    let mode = before.map_or(0o600, |mode| mode & 0o700);
    let backup = beside(".bak");
    let narrow = |file: &Path| -> io::Result<()> {
        match fs::metadata(file) {
            Ok(about) if about.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(file, fs::Permissions::from_mode(0o600))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    };
    // An earlier copy may be readable by others too.
    narrow(&backup).with_context(|| format!("cannot protect `{}`", backup.display()))?;
    if !is_changed {
        narrow(path).with_context(|| format!("cannot protect `{}`", path.display()))?;
        return Ok(is_loose);
    }
    let put = |into: &Path, text: &str| -> io::Result<()> {
        let unfinished = beside(&format!(".{}.tmp", std::process::id()));
        let mut options = fs::OpenOptions::new();
        // `create_new`: a file or a link that waits under this name is not written through.
        let file = options.write(true).create_new(true).mode(0o600);
        let written = file.open(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            // Before it gets its name, so that it is never readable by others under it.
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.sync_all()
        });
        let named = written.and_then(|()| fs::rename(&unfinished, into));
        named.inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
    };
    if let Some(old) = old {
        put(&backup, old).with_context(|| format!("cannot write `{}`", backup.display()))?;
    }
    put(path, new).with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(is_loose)
}

fn agreed(client: ClientWord) -> anyhow::Result<bool> {
    let head = format!("write this into the settings of {}?", client.shown());
    let about = format!("the settings of {}", client.shown());
    let here = console::is_here().then(|| console::agreed(&head, &[], &about));
    match here.flatten() {
        Some(agreed) => Ok(agreed),
        None => bail!("there is no terminal to ask at; use `--yes`"),
    }
}

#[cfg(test)]
mod tests;
