//! The clients: where their settings are, and how an entry is spelt in each.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::ClientWord;
use crate::settings::KEY;

/// What the system's folders are like.
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
    /// The part of its settings that names servers.
    pub(crate) fn section(self) -> &'static str {
        match self {
            ClientWord::ClaudeDesktop | ClientWord::ClaudeCode | ClientWord::Cursor => "mcpServers",
            ClientWord::VsCode => "servers",
        }
    }

    /// Whether its settings can name a running server.
    pub(crate) fn takes_addresses(self) -> bool {
        match self {
            ClientWord::ClaudeDesktop => false,
            ClientWord::ClaudeCode | ClientWord::Cursor | ClientWord::VsCode => true,
        }
    }

    /// What rules and the audit call it, unless its owner says otherwise.
    pub(crate) fn caller(self) -> &'static str {
        match self {
            ClientWord::ClaudeDesktop => "claude-desktop",
            ClientWord::ClaudeCode => "claude-code",
            ClientWord::Cursor => "cursor",
            ClientWord::VsCode => "vscode",
        }
    }

    pub(crate) fn shown(self) -> &'static str {
        match self {
            ClientWord::ClaudeDesktop => "Claude Desktop",
            ClientWord::ClaudeCode => "Claude Code",
            ClientWord::Cursor => "Cursor",
            ClientWord::VsCode => "VS Code",
        }
    }

    pub(crate) fn shown_file(self) -> &'static str {
        match self {
            ClientWord::ClaudeDesktop => "claude_desktop_config.json",
            ClientWord::ClaudeCode => "~/.claude.json",
            ClientWord::Cursor => "~/.cursor/mcp.json",
            ClientWord::VsCode => "mcp.json of your profile (`MCP: Open User Configuration`)",
        }
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
    let mut value = match entry {
        Entry::Program { program, home, key } => {
            let mut arguments = vec!["stdio".to_owned()];
            if let Some(home) = home {
                arguments.extend(["--home".to_owned(), text(home)?]);
            }
            let variables = json!({ KEY: key });
            json!({ "command": text(program)?, "args": arguments, "env": variables })
        }
        Entry::Address { url, key } => json!({
            "url": url,
            "headers": { "Authorization": format!("Bearer {key}") },
        }),
    };
    let kind = match entry {
        Entry::Program { .. } => "stdio",
        Entry::Address { .. } => "http",
    };
    let says_kind = matches!(client, ClientWord::ClaudeCode | ClientWord::VsCode);
    if let (true, Some(members)) = (says_kind, value.as_object_mut()) {
        members.shift_insert(0, "type".to_owned(), kind.into());
    }
    Ok(value)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("`{}` cannot be written in JSON", path.display()))
}
