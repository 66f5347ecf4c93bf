//! The arguments of `ringfence secrets`.

use clap::{Args, Subcommand};

use super::{Common, HomeArguments};

/// A tool reads a variable only if it was granted. Bundled tools may read those that
/// their documents name.
#[derive(Debug, Args)]
pub(crate) struct SecretsArguments {
    #[command(subcommand)]
    pub(crate) command: SecretsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// List the variables tools use: whether each is set and granted
    List(SecretsList),
    /// Grant variables to a tool
    Grant(SecretsGrant),
    /// Revoke variables of a tool
    Revoke(SecretsGrant),
}

#[derive(Debug, Args)]
pub(crate) struct SecretsList {
    /// Only of this tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SecretsGrant {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// The variables
    #[arg(required = true, value_name = "VARIABLE")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl SecretsArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            SecretsCommand::List(list) => &list.common.home,
            SecretsCommand::Grant(grant) | SecretsCommand::Revoke(grant) => &grant.common.home,
        }
    }
}
