//! A tool, a prompt or a resource of an MCP server, as its owner accepted it.

use std::sync::Arc;

use model::config::ServerConfig;
use upstream::definition::{Definition, ToolDefinition};

mod schema;

pub(crate) use schema::ServerSchemas;

/// A tool of a server, as its owner accepted it.
#[derive(Debug)]
pub struct ServerTool {
    /// The server, as the settings have it.
    pub server: Arc<ServerConfig>,
    /// Restarts its owner asked for; a connection from before counts no more.
    pub(crate) restarts: i64,
    /// The digest of the text that was accepted.
    pub pin: String,
    /// What is shown of it. A prompt or a resource is put as a tool here.
    pub definition: ToolDefinition,
    /// The same as its server offers it.
    pub item: Definition,
    /// Its schemas, ready to check with.
    pub(crate) schemas: ServerSchemas,
}

impl ServerTool {
    /// Whether it is a tool, which lists of tools show.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        match &self.item {
            Definition::Tool(_) => true,
            Definition::Prompt(_) | Definition::ResourceTemplate(_) | Definition::Resource(_) => {
                false
            }
        }
    }
}

/// Two are the same if the same text of the same server is accepted.
impl PartialEq for ServerTool {
    fn eq(&self, other: &ServerTool) -> bool {
        self.pin == other.pin
            && self.item.key() == other.item.key()
            && self.server == other.server
            && self.restarts == other.restarts
    }
}

impl Eq for ServerTool {}
