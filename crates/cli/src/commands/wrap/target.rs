//! Which file is meant, and the servers in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum as _;
use engine::client_import::{self, ClientEntry};
use model::nearest::nearest;
use model::text::elided;
use serde_json::{Map, Value};

use crate::arguments::ClientWord;
use crate::commands::connect;
use crate::commands::connect::client::{self, Folders, Platform};
use crate::settings;

/// The settings of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientFile {
    /// The client, if it was named.
    pub(crate) client: Option<ClientWord>,
    /// The file itself, where the settings are a link.
    pub(crate) path: PathBuf,
}

/// What such a file says.
#[derive(Debug)]
pub(crate) struct ClientText {
    pub(crate) text: String,
    /// Its permissions.
    pub(crate) mode: u32,
    pub(crate) section: &'static str,
    /// How entries are spelt.
    pub(crate) spelling: ClientWord,
    pub(crate) entries: Vec<ClientEntry>,
}

impl ClientFile {
    /// The target a person named: a client, or a file.
    pub(crate) fn find(word: &str) -> anyhow::Result<ClientFile> {
        if let Ok(client) = ClientWord::from_str(word, true) {
            let path = client::file(client, Platform::here(), &folders())
                .context("there is no home folder; set HOME")?;
            let path = connect::resolved(&path, client)?;
            return Ok(ClientFile {
                client: Some(client),
                path,
            });
        }
        match Path::new(word).canonicalize() {
            Ok(path) => Ok(ClientFile { client: None, path }),
            Err(error) => {
                let clients = ClientWord::value_variants().iter();
                let known: Vec<&str> = clients.map(|client| client.caller()).collect();
                let hint = nearest(word, known.iter().copied());
                let hint = hint.map(|name| format!("; did you mean `{name}`?"));
                Err(error).context(format!(
                    "`{}` is no client and no file; clients are {}{}",
                    elided(word, 80),
                    known.join(", "),
                    hint.unwrap_or_default()
                ))
            }
        }
    }

    /// The settings of every client that has some here.
    pub(crate) fn known() -> Vec<ClientFile> {
        let clients = ClientWord::value_variants().iter().copied();
        let found = clients.filter_map(|client| {
            let path = client::file(client, Platform::here(), &folders())?;
            let path = path.canonicalize().ok()?;
            Some(ClientFile {
                client: Some(client),
                path,
            })
        });
        found.collect()
    }

    /// Reads it. Nothing if there is no such file.
    pub(crate) fn read(&self) -> anyhow::Result<Option<ClientText>> {
        let Some(text) = connect::read(&self.path)? else {
            return Ok(None);
        };
        let about = fs::metadata(&self.path)?;
        let shown = self.path.display();
        let root = client_import::read_value(&text);
        let root = root.map_err(|why| anyhow!(why).context(format!("cannot use `{shown}`")))?;
        let Value::Object(members) = root else {
            bail!("`{shown}` is not a JSON object");
        };
        let section = match self.client {
            Some(client) => client.section(),
            None => section(&members, &self.path)?,
        };
        let spelling = match (self.client, section) {
            (Some(client), _) => client,
            (None, "servers") => ClientWord::VsCode,
            (None, _) => ClientWord::Cursor,
        };
        let none = Map::new();
        let servers = match members.get(section) {
            None => &none,
            Some(Value::Object(servers)) => servers,
            Some(_) => bail!("`{section}` in `{shown}` is not an object"),
        };
        let entries = servers.iter();
        let entries = entries.map(|(name, entry)| ClientEntry::read(name, entry));
        Ok(Some(ClientText {
            mode: about.permissions().mode() & 0o777,
            section,
            spelling,
            entries: entries.collect(),
            text,
        }))
    }
}

fn section(members: &Map<String, Value>, path: &Path) -> anyhow::Result<&'static str> {
    let found = client_import::section_of(members);
    found.with_context(|| format!("`{}` has no `mcpServers` and no `servers`", path.display()))
}

fn folders() -> Folders {
    Folders {
        home: settings::variable("HOME").map(PathBuf::from),
        config: settings::variable("XDG_CONFIG_HOME").map(PathBuf::from),
    }
}
