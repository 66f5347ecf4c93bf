//! The arguments of `ringfence servers`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Common, HomeArguments};

/// Other people's MCP servers. A new server is held, and so is whatever it changes later:
/// clients see only the tools that you accepted.
#[derive(Debug, Args)]
pub(crate) struct ServersArguments {
    #[command(subcommand)]
    pub(crate) command: ServersCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List the servers, and what is accepted or held
    List(ServersList),
    /// Show one server: its settings and its tools
    Show(ServerNamed),
    /// Add a server to the settings, start it and show its tools
    Add(Box<ServersAdd>),
    /// Remove a server and its accepted definitions
    Remove(ServerNamed),
    /// Start a server and show what changed since it was accepted
    Review(ServerNamed),
    /// Accept the tools of a server, all or some
    Accept(ServersAccept),
    /// Block a server or one of its tools until it is accepted again
    Block(ServersBlock),
    /// Restart a server in every process, and forget its failures
    Restart(ServerNamed),
    /// Sign in to a server at an address, in a browser
    Login(ServersLogin),
    /// Print the standard error of a server
    Logs(ServerNamed),
    /// Compare what servers offer with a lock file, or write that file
    Verify(ServersVerify),
}

#[derive(Debug, Args)]
pub(crate) struct ServersList {
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ServerNamed {
    /// The server
    #[arg(value_name = "SERVER")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ServersLogin {
    /// The server
    #[arg(value_name = "SERVER")]
    pub(crate) name: String,
    /// For which caller, where each has a connection of its own
    #[arg(long, value_name = "CALLER", default_value = "owner")]
    pub(crate) caller: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A server is a command, after `--`, or an address. No shell reads the command.
#[derive(Debug, Args)]
#[command(
    after_help = "Secrets stay out of the settings: put NAME=value into secrets.env and write ${NAME}.\n\nExit: 0 added and listed, 1 added but it could not be listed, 2 not added."
)]
pub(crate) struct ServersAdd {
    /// Its name: small letters, digits and `-`; its tools are NAME__TOOL
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The address of a server that is running
    #[arg(
        value_name = "URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub(crate) url: Option<String>,
    /// The program that is the server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// A variable of the program, such as `TOKEN=${TOKEN}`
    #[arg(long, value_name = "NAME=TEXT", value_parser = pair, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,
    /// A header of every request, such as `Authorization=Bearer ${TOKEN}`
    #[arg(long, value_name = "NAME=TEXT", value_parser = pair, conflicts_with = "command")]
    pub(crate) header: Vec<(String, String)>,
    /// A file or folder the program may read
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) read: Vec<PathBuf>,
    /// A file or folder the program may read and write
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) write: Vec<PathBuf>,
    /// Network access of the program; `none` is the default
    #[arg(long, value_name = "REACH", conflicts_with = "url")]
    pub(crate) network: Option<NetworkWord>,
    /// A host the program may connect to, and nothing else, such as `api.example.com`
    #[arg(long, value_name = "HOST", conflicts_with_all = ["url", "network"])]
    pub(crate) host: Vec<String>,
    /// The protocol it speaks; `auto` asks it
    #[arg(long, value_name = "ERA")]
    pub(crate) era: Option<EraWord>,
    /// The address is on a private network
    #[arg(long, conflicts_with = "command")]
    pub(crate) private: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The network access of a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkWord {
    None,
    Open,
}

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EraWord {
    Auto,
    Legacy,
    Modern,
}

/// Shows the server's definitions and asks. Exactly the shown text is accepted.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 accepted, 1 not accepted, 2 could not be done.")]
pub(crate) struct ServersAccept {
    /// The server
    #[arg(value_name = "SERVER")]
    pub(crate) name: String,
    /// Only these of its tools, by the server's own names
    #[arg(value_name = "ITEM")]
    pub(crate) tools: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ServersBlock {
    /// The server
    #[arg(value_name = "SERVER")]
    pub(crate) name: String,
    /// Only this of its tools, by the server's own name
    #[arg(value_name = "ITEM")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// For CI: every server of the settings is started and compared with the lock.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit: 0 everything is as in the lock, 1 something differs, 2 a server or the lock cannot be read."
)]
pub(crate) struct ServersVerify {
    /// The lock file
    #[arg(long, value_name = "FILE", default_value = "ringfence.lock")]
    pub(crate) lock: PathBuf,
    /// Write the accepted digests to that file instead
    #[arg(long)]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl ServersArguments {
    pub(crate) fn common(&self) -> &Common {
        match &self.command {
            ServersCommand::List(list) => &list.common,
            ServersCommand::Show(named)
            | ServersCommand::Remove(named)
            | ServersCommand::Review(named)
            | ServersCommand::Restart(named)
            | ServersCommand::Logs(named) => &named.common,
            ServersCommand::Add(add) => &add.common,
            ServersCommand::Accept(accept) => &accept.common,
            ServersCommand::Block(block) => &block.common,
            ServersCommand::Login(login) => &login.common,
            ServersCommand::Verify(verify) => &verify.common,
        }
    }

    pub(crate) fn home(&self) -> &HomeArguments {
        &self.common().home
    }
}

/// `NAME=TEXT`.
fn pair(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("write it as NAME=TEXT".to_owned()),
    }
}
