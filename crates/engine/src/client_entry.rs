//! MCP clients, and what is written into the settings of each so that it connects here. What
//! `connect` prints and the Studio shows.

use model::word::Word as _;
use serde_json::{Value, json};

/// The name of the entry.
pub const ENTRY: &str = "ringfence";

model::words! {
    /// A client whose settings are known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum McpClient {
        /// Claude Desktop, which starts servers itself.
        ClaudeDesktop = "claude-desktop",
        /// Claude Code.
        ClaudeCode = "claude-code",
        /// Cursor.
        Cursor = "cursor",
        /// Visual Studio Code.
        VsCode = "vscode",
    }
}

impl McpClient {
    /// The part of its settings that names servers.
    #[must_use]
    pub fn section(self) -> &'static str {
        match self {
            McpClient::ClaudeDesktop | McpClient::ClaudeCode | McpClient::Cursor => "mcpServers",
            McpClient::VsCode => "servers",
        }
    }

    /// Whether its settings can name a running server.
    #[must_use]
    pub fn takes_addresses(self) -> bool {
        match self {
            McpClient::ClaudeDesktop => false,
            McpClient::ClaudeCode | McpClient::Cursor | McpClient::VsCode => true,
        }
    }

    /// What rules and the audit call it, unless its owner says otherwise.
    #[must_use]
    pub fn caller(self) -> &'static str {
        self.word()
    }

    /// Its name for people.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            McpClient::ClaudeDesktop => "Claude Desktop",
            McpClient::ClaudeCode => "Claude Code",
            McpClient::Cursor => "Cursor",
            McpClient::VsCode => "VS Code",
        }
    }

    /// The file of its settings, for people.
    #[must_use]
    pub fn shown_file(self) -> &'static str {
        match self {
            McpClient::ClaudeDesktop => "claude_desktop_config.json",
            McpClient::ClaudeCode => "~/.claude.json",
            McpClient::Cursor => "~/.cursor/mcp.json",
            McpClient::VsCode => "mcp.json of your profile (`MCP: Open User Configuration`)",
        }
    }

    /// Stands where its key goes, which is not shown.
    #[must_use]
    pub fn placeholder(self) -> String {
        format!("<what `{ENTRY} keys add {}` prints>", self.caller())
    }

    /// The entry for a running server, as this client spells it.
    #[must_use]
    pub fn address_entry(self, url: &str, key: &str) -> Value {
        let value = json!({
            "url": url,
            "headers": { "Authorization": format!("Bearer {key}") },
        });
        self.with_kind(value, "http")
    }

    /// Some clients want to be told how they reach a server.
    #[must_use]
    pub fn with_kind(self, mut entry: Value, kind: &str) -> Value {
        let says_kind = matches!(self, McpClient::ClaudeCode | McpClient::VsCode);
        if let (true, Some(members)) = (says_kind, entry.as_object_mut()) {
            members.shift_insert(0, "type".to_owned(), kind.into());
        }
        entry
    }

    /// What a person pastes to connect to a running server: a command, or an entry of the
    /// settings; nothing for one that starts servers itself.
    #[must_use]
    pub fn snippet(self, url: &str) -> Option<String> {
        match self {
            McpClient::ClaudeDesktop => None,
            McpClient::ClaudeCode => Some(format!(
                "claude mcp add --transport http {ENTRY} {url} --header \"Authorization: Bearer $({ENTRY} keys add {})\"",
                self.caller()
            )),
            McpClient::Cursor | McpClient::VsCode => {
                let entry = self.address_entry(url, &self.placeholder());
                let whole = json!({ self.section(): { ENTRY: entry } });
                Some(format!("{whole:#}"))
            }
        }
    }
}
