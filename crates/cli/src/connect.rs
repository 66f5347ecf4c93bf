//! `ringfence connect`: puts this server into the settings of an MCP client, after
//! showing what would change. Everything else in that file stays as it is, and the
//! file as it was is kept beside it.

mod client;
mod diff;
mod splice;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use mcp::gate::local;
use model::config::ServeConfig;
use serde_json::json;

use crate::arguments::Home;
use crate::exit::Exit;
use crate::printer::{Format, Printer};
use crate::{console, settings, wiring};

use client::{Entry, Folders, Platform};

/// What the server is called in every client's settings.
const NAME: &str = "ringfence";
/// Settings of a client, in bytes.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Without a client it prints entries to copy. With one it shows what would change
/// in that client's settings, asks, and writes it.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 not changed, 2 could not be done.")]
pub(crate) struct Connect {
    /// The client
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<ClientWord>,
    /// Let the client speak to a running server instead of starting its own
    #[arg(long, requires = "client")]
    pub(crate) http: bool,
    /// Take the entry out again
    #[arg(long, conflicts_with = "http", requires = "client")]
    pub(crate) remove: bool,
    /// Do not ask
    #[arg(long, short, requires = "client")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: Home,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientWord {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}

/// Runs the command.
pub(crate) fn run(arguments: &Connect, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&arguments.home)?;
    let serve = settings::config(Some(&home))?.serve;
    let Some(client) = arguments.client else {
        let (url, token) = (server_url(&serve), home.join(local::TOKEN_FILE));
        match printer.format() {
            Format::Json => printer.json(&entries(&url, &token)),
            Format::Human => printer.lines(&snippets(&url, &token)),
        }
        return Ok(Exit::Done);
    };
    let folders = Folders {
        home: settings::variable("HOME").map(PathBuf::from),
        config: settings::variable("XDG_CONFIG_HOME").map(PathBuf::from),
    };
    let path = client::file(client, Platform::here(), &folders)
        .context("there is no home folder; set HOME")?;
    let entry = entry(arguments, client, &home, &serve)?;
    let path = resolved(&path, client)?;
    let old = read(&path)?;
    let new = splice::put(old.as_deref(), client.section(), NAME, entry.as_ref());
    let new = new.with_context(|| by_hand(client, &path, entry.as_ref()))?;
    let Some(new) = new else {
        return Ok(told(printer, client, &path, false));
    };
    let shown = diff::lines(old.as_deref().unwrap_or_default(), &new);
    let section = client.section();
    printer.note(&format!("{}, in `{section}`:", path.display()));
    printer.notes(&shown);
    if !arguments.yes && !agreed(client)? {
        printer.note("nothing was changed");
        return Ok(Exit::No);
    }
    write(&path, old.as_deref(), &new)?;
    Ok(told(printer, client, &path, true))
}

/// What to write; nothing when it goes.
fn entry(
    arguments: &Connect,
    client: ClientWord,
    home: &Path,
    serve: &ServeConfig,
) -> anyhow::Result<Option<serde_json::Value>> {
    if arguments.remove {
        return Ok(None);
    }
    if !arguments.http {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let is_usual = settings::home_source(arguments.home.home.as_deref()) == "default";
        let entry = Entry::Program {
            program: &program,
            home: (!is_usual).then_some(home),
        };
        return Ok(Some(client::entry(client, &entry)?));
    }
    if !client.takes_addresses() {
        bail!(
            "{} starts servers itself; leave `--http` out",
            client.shown()
        );
    }
    let token = local::open(home)?.secret;
    let url = server_url(serve);
    let entry = Entry::Address {
        url: &url,
        token: token.reveal(),
    };
    Ok(Some(client::entry(client, &entry)?))
}

/// The address of the endpoint, as clients know it.
fn server_url(serve: &ServeConfig) -> String {
    match &serve.public_url {
        Some(url) => format!("{}/mcp", url.trim_end_matches('/')),
        None => format!("http://{}/mcp", serve.listen),
    }
}

/// The same as a value: where to connect, and the entry of each client.
fn entries(url: &str, token_path: &Path) -> serde_json::Value {
    let token = token_path.display().to_string();
    let placeholder = format!("<what is in {token}>");
    let clients = [ClientWord::Cursor, ClientWord::VsCode].map(|client| {
        let address = Entry::Address {
            url,
            token: &placeholder,
        };
        json!({
            "client": client.shown(),
            "file": client.shown_file(),
            "section": client.section(),
            "entry": client::entry(client, &address).ok(),
        })
    });
    json!({ "url": url, "tokenFile": token, "clients": clients })
}

/// Entries to copy, for each client. The token is named by its file, never shown.
pub(crate) fn snippets(url: &str, token_path: &Path) -> String {
    let token = token_path.display();
    let mut text = format!(
        "connect a client, or let `{NAME} connect CLIENT` write it:\n\n\
         Claude Code\n  claude mcp add --transport http {NAME} {url} --header \"Authorization: Bearer $(cat '{token}')\"\n"
    );
    for client in [ClientWord::Cursor, ClientWord::VsCode] {
        let placeholder = format!("<what is in {token}>");
        let address = Entry::Address {
            url,
            token: &placeholder,
        };
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
fn resolved(path: &Path, client: ClientWord) -> anyhow::Result<PathBuf> {
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

fn read(path: &Path) -> anyhow::Result<Option<String>> {
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

/// Keeps the old file beside, then puts the new one in its place, all at once.
fn write(path: &Path, old: Option<&str>, new: &str) -> anyhow::Result<()> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    // A new file may hold a token.
    let mode = fs::metadata(path).map_or(0o600, |about| about.permissions().mode() & 0o777);
    let put = |into: &Path, text: &str| -> io::Result<()> {
        let unfinished = beside(&format!(".{}.tmp", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600);
        let written = file.open(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.sync_all()
        });
        let named = written.and_then(|()| fs::rename(&unfinished, into));
        named.inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
    };
    if let Some(old) = old {
        let backup = beside(".bak");
        put(&backup, old).with_context(|| format!("cannot write `{}`", backup.display()))?;
    }
    put(path, new).with_context(|| format!("cannot write `{}`", path.display()))
}

fn agreed(client: ClientWord) -> anyhow::Result<bool> {
    let head = format!("write this into the settings of {}?", client.shown());
    let about = format!("the settings of {}", client.shown());
    let here = console::is_here().then(|| console::agreed(&head, &[], &about));
    match here.flatten() {
        Some(agreed) => Ok(agreed),
        None => bail!("nobody is here to ask; say `--yes`"),
    }
}

fn told(printer: &mut Printer, client: ClientWord, path: &Path, is_changed: bool) -> Exit {
    let file = path.display();
    match printer.format() {
        Format::Json => printer.json(&json!({
            "client": client.shown(),
            "file": file.to_string(),
            "changed": is_changed,
        })),
        Format::Human if is_changed => {
            printer.line(&format!("{file}  changed; restart {}", client.shown()));
        }
        Format::Human => printer.line(&format!("{file}  as it should be")),
    }
    Exit::Done
}

/// What to do where we will not touch the file.
fn by_hand(client: ClientWord, path: &Path, entry: Option<&serde_json::Value>) -> String {
    let file = path.display();
    let section = client.section();
    match entry {
        None => format!("`{file}` stays as it is; take `{NAME}` out of `{section}` by hand"),
        Some(entry) => {
            let entry = diff::hidden(&entry.to_string());
            format!("`{file}` stays as it is; add to `{section}` by hand: \"{NAME}\": {entry}")
        }
    }
}

#[cfg(test)]
mod tests;
