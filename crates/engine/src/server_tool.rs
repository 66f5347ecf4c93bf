//! A tool of an MCP server, as its owner accepted it.

use std::sync::Arc;

use model::config::ServerConfig;
use upstream::definition::ToolDefinition;

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
    /// What is shown of it.
    pub definition: ToolDefinition,
    /// Its schemas, ready to check with.
    pub(crate) schemas: ServerSchemas,
}

/// Two are the same if the same text of the same server is accepted.
impl PartialEq for ServerTool {
    fn eq(&self, other: &ServerTool) -> bool {
        self.pin == other.pin
            && self.definition.name == other.definition.name
            && self.server == other.server
            && self.restarts == other.restarts
    }
}

impl Eq for ServerTool {}
