//! The spine: the one path of a call, and the life of a tool.
//!
//! An [`Engine`] is opened on a home folder. Doors hand it [`call::CallRequest`]s and
//! translate what comes back; the command line also creates, tests and publishes tools
//! with it.
//!
//! The modules stand in layers; imports point up this list. Two exceptions: `request` holds the
//! snapshot and the script of its call, and `servers` takes the settings of `powers`.

// What everything else speaks of.

/// What the claims of a token say.
pub mod claim;
/// Why the engine could not do something.
mod error;
/// The keys of an issuer.
pub mod issuer;
/// What differs between two JSON values.
pub mod json_change;
/// Tokens of an issuer, read without believing them.
pub mod jwt;
/// Every bound of the engine.
pub mod limit;
/// The built-in tools, as documents.
pub mod native;
/// What a person is asked, who asks them, and what comes back.
mod question;
/// The gates of a call, and what a gate says.
mod refusal;
/// What a door asks for.
mod request;
/// A tool of an MCP server, as its owner accepted it.
mod server_tool;
/// What the engine is given from outside: clock, alarm, observer, variables.
mod services;
/// One tool of the registry, and what runs when it is called.
mod tool;
/// The toolbox tools, as documents: commands, git, databases, requests.
pub mod toolbox;

// What there is.

/// Who is paused, and how often each caller was denied.
pub mod callers;
/// The tools that come with the binary.
pub mod catalog;
/// Notices: what is done beside calls, in the same chain.
mod notice;
/// Which tools there are, right now.
pub mod registry;
/// The tools of other people's MCP servers.
pub mod servers;
/// The operator's settings as they are written.
pub mod settings;
/// Everything a call depends on, at one moment.
mod snapshot;
/// What callers earn, and when that is computed.
pub mod trust;

// The parts of a call.

/// Asking a person.
pub mod approve;
/// Changes that programs made beside an operator's folder.
mod changes;
/// The operator's connections, as one call finds them.
mod connections;
/// The engine itself.
mod engine;
/// Ids of calls and seeds of scripts.
mod entropy;
/// The gates that need no person and start nothing.
mod gates;
/// What a call holds until it is over.
mod hold;
/// One program in the jail.
mod jailed;
/// The background jobs that run in this process.
mod jobs;
/// What a call may use of the world.
pub mod powers;
/// Limits on calls.
mod quota;
/// What one call leaves behind.
mod record;
/// What an operator's instruments learn of each call.
pub mod report;
/// One run in the sandbox.
mod run;
/// A workspace for one Local Pass.
mod scratch;
/// Which tools a caller finds by words.
mod search_index;
/// Where the powers of a call reach.
mod stage;
/// Keeps the audit within its bounds.
pub mod upkeep;

// What is done with it.

/// The bodies that are not a document's own code.
mod bodies;
/// Step 9: what runs.
mod body;
/// The one path of a call.
pub mod call;
/// Which tools a caller is told about.
pub mod callable;
/// Everything there is to say about documents.
pub mod checkup;
/// MCP clients and the entries in their settings.
pub mod client_entry;
/// The servers of a client's settings, and what importing them would do.
pub mod client_import;
/// What the owner agrees to for a tool.
pub mod consent;
/// What every gate says about a call that is not made.
pub mod explain;
/// Which tools are exposed, for people.
pub mod exposure_admin;
/// Whether this machine and a home are sound.
pub mod health;
/// One question with everything a person needs to answer it.
pub mod inquiry;
/// The keys of callers, for the owner.
pub mod key_admin;
/// The life of a document as a file.
pub mod life;
/// How busy an engine is.
pub mod load;
/// Several calls together.
pub mod many;
/// People at the Studio: signing in and out.
pub mod people;
/// Signing in at the Studio with an issuer's account.
pub mod person_login;
/// The operator's rules, for people.
pub mod policy_admin;
/// The Local Pass, and what it earns.
pub mod publish;
/// Past calls decided again under other rules.
pub mod replay;
/// Code mode: one script that calls many tools.
mod script;
/// The file of secrets, written for its owner.
pub mod secret_admin;
/// Lines of the file of secrets.
pub mod secret_line;
/// What the owner does with MCP servers.
pub mod server_admin;
/// Importing servers from a client's settings.
pub mod server_import;
/// How a server is started or reached.
pub mod server_launch;
/// Changes of the settings about servers.
pub mod server_settings;
/// A review of a server, item by item.
pub mod server_sheet;
/// A trial of a server that is not in the settings.
pub mod server_trial;
/// A script one of whose calls asks a person.
pub mod waiting_script;
/// This home as a witness of other logs.
mod witness;
/// What the body of a built-in tool works with.
mod work;

pub use engine::{Engine, EngineSettings, SECRETS_FILE};
pub use error::EngineError;
pub use refusal::Gate;
pub use sandbox::memory;
pub use sandbox::pool::WorkerProgram;
pub use services::{Alarm, Clock, Observer, RunStart, Stopwatch};
pub use settings::protected;
pub use store::clock::now_ms;
pub use store::{
    AuditEntry, AuditItem, Filter, FoundEntry, NoticeEntry, Removed, Rows, StoreError,
};

/// What the `main` of a program that embeds the engine begins with, before any thread
/// exists: a sandbox worker, and what stands around a child process, are that program,
/// started again. If this is one of them, its exit code; otherwise nothing has happened.
pub fn worker_main() -> Option<std::process::ExitCode> {
    let arguments = std::env::args_os().skip(1);
    sandbox::worker_main()
        .or_else(jail::jail_main)
        .or_else(|| host::sql::role::sqlite_main(arguments))
}
