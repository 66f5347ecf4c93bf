//! The clients: where their settings are, and how an entry is spelt in each.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use engine::client_entry::McpClient;
use serde_json::{Value, json};

use super::ClientWord;
use crate::settings::KEY;

/// The operating system, for its folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    Linux,
    Mac,
}

impl Platform {
    pub(crate) fn here() -> Platform {
        if cfg!(target_os = "macos") {
            Platform::Mac
        } else {
            Platform::Linux
        }
    }
}

/// Where a person's things are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folders {
    pub(crate) home: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
}

/// How a client gets to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    /// It starts the program and speaks to it over standard input and output.
    Program {
        program: &'a Path,
        home: Option<&'a Path>,
        key: &'a str,
    },
    /// It speaks to a running server.
    Address { url: &'a str, key: &'a str },
}

impl ClientWord {
    /// The client itself.
    pub(crate) fn client(self) -> McpClient {
        match self {
            ClientWord::ClaudeDesktop => McpClient::ClaudeDesktop,
            ClientWord::ClaudeCode => McpClient::ClaudeCode,
            ClientWord::Cursor => McpClient::Cursor,
            ClientWord::VsCode => McpClient::VsCode,
        }
    }

    /// The part of its settings that names servers.
    pub(crate) fn section(self) -> &'static str {
        self.client().section()
    }

    /// Whether its settings can name a running server.
    pub(crate) fn takes_addresses(self) -> bool {
        self.client().takes_addresses()
    }

    /// What rules and the audit call it, unless its owner says otherwise.
    pub(crate) fn caller(self) -> &'static str {
        self.client().caller()
    }

    pub(crate) fn shown(self) -> &'static str {
        self.client().shown()
    }

    pub(crate) fn shown_file(self) -> &'static str {
        self.client().shown_file()
    }
}

/// The file of a client's settings.
pub(crate) fn file(client: ClientWord, platform: Platform, folders: &Folders) -> Option<PathBuf> {
    let home = folders.home.as_ref().filter(|home| home.is_absolute())?;
    let config = match platform {
        Platform::Mac => home.join("Library/Application Support"),
        Platform::Linux => {
            let config = folders.config.clone().filter(|config| config.is_absolute());
            config.unwrap_or_else(|| home.join(".config"))
        }
    };
    Some(match client {
        ClientWord::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
        ClientWord::ClaudeCode => home.join(".claude.json"),
        ClientWord::Cursor => home.join(".cursor/mcp.json"),
        ClientWord::VsCode => config.join("Code/User/mcp.json"),
    })
}

/// The entry as this client spells it.
pub(crate) fn entry(client: ClientWord, entry: &Entry<'_>) -> anyhow::Result<Value> {
    match entry {
        Entry::Program { program, home, key } => {
            let mut arguments = vec!["stdio".to_owned()];
            if let Some(home) = home {
                arguments.extend(["--home".to_owned(), text(home)?]);
            }
            let variables = json!({ KEY: key });
            let value = json!({ "command": text(program)?, "args": arguments, "env": variables });
            Ok(client.client().with_kind(value, "stdio"))
        }
        Entry::Address { url, key } => Ok(client.client().address_entry(url, key)),
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("`{}` cannot be written in JSON", path.display()))
}
