//! One module for each command, or for a few that belong together.

/// `ringfence approvals`: answers questions about calls.
pub(crate) mod approvals;
/// `ringfence audit`: lists, verifies and exports the audit.
pub(crate) mod audit;
/// `ringfence callers`: pauses and resumes callers.
pub(crate) mod callers;
/// `ringfence check`: validates documents.
pub(crate) mod check;
/// `ringfence complete`: completions for shells.
pub(crate) mod complete;
/// `ringfence config`: shows the settings in force.
pub(crate) mod config;
/// `ringfence connect`: adds the server to a client's settings.
pub(crate) mod connect;
/// `ringfence demo`: shows sandbox, policy and audit at work.
pub(crate) mod demo;
/// `ringfence doctor`: checks that everything works here.
pub(crate) mod doctor;
/// `ringfence explain`: why a call was allowed or refused.
pub(crate) mod explain;
/// `ringfence expose`: which tools clients see.
pub(crate) mod expose;
/// `ringfence init`: asks four questions and writes the settings.
pub(crate) mod init;
/// `ringfence keys`: keys of callers.
pub(crate) mod keys;
/// `ringfence list` and `show`: the tools.
pub(crate) mod list;
/// `ringfence man`: the manual pages.
pub(crate) mod man;
/// `ringfence` alone: an overview.
pub(crate) mod overview;
/// `ringfence policy`: shows, checks and replays rules.
pub(crate) mod policy;
/// `ringfence run`: calls one tool.
pub(crate) mod run;
/// `ringfence scan`: looks for risks in clients' servers.
pub(crate) mod scan;
/// `ringfence script`: checks or runs a script.
pub(crate) mod script;
/// `ringfence secrets`: which variables a tool may have.
pub(crate) mod secrets;
/// `ringfence serve`: MCP over HTTP.
pub(crate) mod serve;
/// `ringfence servers`: other people's MCP servers.
pub(crate) mod servers;
/// `ringfence stdio`: MCP over standard input and output.
pub(crate) mod stdio;
/// `ringfence store`: where decisions are kept.
pub(crate) mod store;
/// `ringfence studio`: a code for the page for people.
pub(crate) mod studio;
/// `ringfence test`: runs tools with their test values.
pub(crate) mod test;
/// `ringfence new`, `import`, `export`, `publish`, `unpublish` and `delete`.
pub(crate) mod tool;
/// `ringfence top`: the activity of a home.
pub(crate) mod top;
/// `ringfence trust`: trust levels of callers.
pub(crate) mod trust;
/// `ringfence wrap` and `unwrap`: a client's servers behind Ringfence, and back.
pub(crate) mod wrap;
