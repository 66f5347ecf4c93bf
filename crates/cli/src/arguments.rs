//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};

mod approvals;
mod audit;
mod callers;
/// Completions for shells.
pub(crate) mod complete;
mod connect;
/// Examples of every command.
mod example;
/// Help, grouped by task.
mod help;
mod init;
mod keys;
/// The manual pages.
pub(crate) mod manual;
mod policy;
mod script;
mod secrets;
mod servers;
/// The scripts that shells load to complete words.
mod shell;
mod store;
mod trust;
mod wrap;

pub(crate) use self::store::{StoreArguments, StoreCommand, StoreCopy};
pub(crate) use approvals::{
    ApprovalsApprove, ApprovalsArguments, ApprovalsCommand, ApprovalsList, ApprovalsShow,
    ApprovalsWatch, ScopeWord,
};
pub(crate) use audit::{
    AuditAgainst, AuditCheckpoint, AuditKey, AuditProve, AuditWitness, ExportFormat, TopArguments,
};
pub(crate) use callers::{CallersArguments, CallersCommand, Pause};
pub(crate) use complete::CompleteArguments;
pub(crate) use connect::{ClientWord, ConnectArguments};
pub(crate) use init::InitArguments;
pub(crate) use keys::{KeysAdd, KeysArguments, KeysCommand, RoleWord};
pub(crate) use script::{Script, ScriptCheck, ScriptCommand, ScriptRun};
pub(crate) use secrets::{SecretsArguments, SecretsCommand, SecretsGrant, SecretsList};
pub(crate) use servers::{
    EraWord, NetworkWord, ServersAccept, ServersAdd, ServersArguments, ServersBlock,
    ServersCommand, ServersLogin, ServersVerify,
};
pub(crate) use shell::script as completions;
pub(crate) use trust::{FeedbackArguments, TrustArguments, TrustCommand};
pub(crate) use wrap::{ScanArguments, UnwrapArguments, WrapArguments};

pub(crate) use policy::{
    DoorWord, Explain, Policy, PolicyCommand, PolicyLint, PolicyShow, PolicyTest,
};

/// Runs AI-agent tools in a sandbox, under your policy, with an audit log.
#[derive(Debug, Parser)]
#[command(
    name = "ringfence",
    version,
    max_term_width = 80,
    disable_help_subcommand = true
)]
pub(crate) struct CommandLine {
    /// The command; without one, an overview.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Validate tool documents: state, risk, reasons, findings
    Check(Check),
    /// Run tools with their own test values (the Local Pass)
    Test(Test),
    /// Call one tool once, through every gate
    Run(RunArguments),
    /// Check a script that calls tools, or run it
    Script(Script),
    /// Serve the exposed tools to MCP clients, over HTTP
    Serve(Serve),
    /// Serve the exposed tools to the MCP client that starts it
    Stdio(Stdio),
    /// Open the Studio of a running server, with a code to sign in
    Studio(StudioArguments),
    /// Create a tool to start from, which passes its own test
    New(New),
    /// List tools: state, risk level, whether they are exposed
    List(List),
    /// Show one tool: what the model sees and what is enforced
    Show(Named),
    /// Import documents as drafts
    Import(ImportArguments),
    /// Export documents: one as an object, several as an array
    Export(Export),
    /// Publish tools that passed their own test
    Publish(Publish),
    /// Turn published tools back into drafts
    Unpublish(Many),
    /// Move tools to the trash folder
    Delete(Many),
    /// Show and change which variables a tool may read
    Secrets(SecretsArguments),
    /// Show and change which tools are exposed
    Expose(Expose),
    /// Answer calls that wait for a person's approval
    Approvals(ApprovalsArguments),
    /// Read the audit and verify it
    Audit(AuditArguments),
    /// Watch calls per second, slow tools, refusals and questions
    Top(TopArguments),
    /// Explain why a call was or would be allowed, held or refused
    Explain(Explain),
    /// Show, check and replay rules
    Policy(Policy),
    /// Create, list and revoke the keys of callers
    Keys(KeysArguments),
    /// Show, migrate and copy the store that nodes share
    Store(StoreArguments),
    /// List, pause and resume callers
    Callers(CallersArguments),
    /// Explain a caller's trust level, and rate its work
    Trust(TrustArguments),
    /// Add the server to the settings of an MCP client
    Connect(ConnectArguments),
    /// Add, review and accept other people's MCP servers
    Servers(ServersArguments),
    /// Move the MCP servers of a client behind Ringfence
    Wrap(WrapArguments),
    /// Put a client's settings back as they were before `wrap`
    Unwrap(UnwrapArguments),
    /// Look for risks in the MCP servers of clients
    Scan(ScanArguments),
    /// Show every setting and where it comes from
    Config(HomeArguments),
    /// Set up: four questions, then a commented configuration file
    Init(InitArguments),
    /// See sandbox, policy, approvals and audit at work in one minute
    Demo(Words),
    /// Check that every sandbox layer is active
    Doctor(HomeArguments),
    /// Print the script that completes commands and names in a shell
    Completions(Completions),
    /// Print a manual page, or write all of them
    Man(ManArguments),
    /// Print completions of the last word; shell scripts call it
    #[command(hide = true)]
    Complete(CompleteArguments),
}

/// Exit code 0: every document can be used. 1: a finding is an error. 2: a file
/// could not be read.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 all usable, 1 a finding is an error, 2 a file could not be read.")]
pub(crate) struct Check {
    /// Files of one document or an array of them, `-` for standard input, or names
    #[arg(required = true, value_name = "FILE|TOOL")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Uses the real sandbox and policy. Publishing needs a passed test.
#[derive(Debug, Args)]
#[command(
    after_help = "A test works on a temporary copy of files. If a tool needs hosts, variables or writing, you are asked once, at a terminal.\n\nExit: 0 all passed, 1 one failed, 2 none failed but one could not be tried."
)]
pub(crate) struct Test {
    /// Names of tools or files of documents; every tool if none is given
    #[arg(value_name = "FILE|TOOL")]
    pub(crate) tools: Vec<String>,
    /// Do not try tools that need the network
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) trial: TrialWords,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A name must be a published tool. A file is run as it is.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 refused or failed, 2 could not be tried.")]
pub(crate) struct RunArguments {
    /// The name of a tool, or a file of one document, or of several with `--tool`
    #[arg(value_name = "FILE|TOOL")]
    pub(crate) target: String,
    /// The arguments, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Which document of an array
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Grant everything the document of a file needs; recorded
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Prints the address, then runs until it is stopped.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit: 0 stopped when asked to, 2 could not start: address, settings or store."
)]
pub(crate) struct Serve {
    /// Address and port, instead of `serve.listen`; port 0 is any free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Require no key from clients on this machine; loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Print a one-time code for the Studio, also where the output is no terminal
    #[arg(long)]
    pub(crate) print_code: bool,
    /// How warnings and calls are written to standard error, instead of `telemetry.logs`
    #[arg(long, value_name = "FORMAT")]
    pub(crate) logs: Option<LogWord>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// How a server writes its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogWord {
    /// Warnings, as sentences
    Text,
    /// Warnings and every call, as JSON, one object in a line
    Json,
}

/// Standard output carries nothing but the protocol. The client is the caller of the key in
/// `RINGFENCE_KEY`, which `ringfence connect` writes into its settings; without one it is `stdio`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit: 0 the client disconnected, or the command was stopped.\nThe protocol is JSON, one message per line, with `--json` or without."
)]
pub(crate) struct Stdio {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The code signs the owner in once. It is typed into the page, and never part of an address.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 a server answers there, 1 none does, 2 no code could be made.")]
pub(crate) struct StudioArguments {
    /// The address of the server, instead of the one that runs
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Do not open the browser
    #[arg(long)]
    pub(crate) no_open: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The tool's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only tools in this state, such as `active`
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<StateWord>,
    /// Only tools of this category
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Only tools with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Only exposed tools
    #[arg(long)]
    pub(crate) exposed: bool,
    /// Only your own tools
    #[arg(long)]
    pub(crate) own: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateWord {
    Active,
    Draft,
    MissingRequirements,
    TestFailed,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Many {
    /// The tools
    #[arg(required = true, value_name = "TOOL")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// How a tool is tried.
#[derive(Debug, Args)]
pub(crate) struct TrialWords {
    /// Grant everything the tools need, without asking; recorded
    #[arg(long)]
    pub(crate) yes: bool,
    /// A folder whose files the test starts with, as a copy
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 all published, 1 one stays a draft, 2 could not be done.")]
pub(crate) struct Publish {
    /// The tools
    #[arg(required = true, value_name = "TOOL")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) trial: TrialWords,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 all imported, 1 one was not, 2 a file could not be read.")]
pub(crate) struct ImportArguments {
    /// Files of one document or an array of them; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Replace tools with the same names
    #[arg(long)]
    pub(crate) replace: bool,
    /// Put this before each name
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Import one under another name, without the prefix; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = renaming)]
    pub(crate) rename: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The tools
    #[arg(required = true, value_name = "TOOL")]
    pub(crate) names: Vec<String>,
    /// A file to write, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

/// Without arguments it shows which tools are exposed. Exclusion always wins.
#[derive(Debug, Args)]
pub(crate) struct Expose {
    /// Tools to expose
    #[arg(value_name = "TOOL")]
    pub(crate) names: Vec<String>,
    /// Tools with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Tools of this category
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Vec<String>,
    /// The preset of bundled tools; `none` for none
    #[arg(long, value_name = "PRESET")]
    pub(crate) preset: Option<String>,
    /// Whether your published tools are exposed automatically
    #[arg(long, value_name = "BOOL")]
    pub(crate) auto: Option<bool>,
    /// Exclude them instead, even if something else includes them
    #[arg(long)]
    pub(crate) exclude: bool,
    /// Remove them from both lists
    #[arg(long, conflicts_with = "exclude")]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List calls and notices, newest first
    List(AuditList),
    /// Show one call or notice in full
    Show(AuditShow),
    /// Verify the chain and report the first record that is wrong
    Verify(AuditVerify),
    /// Export the records as JSON, enough to verify elsewhere
    Export(AuditExport),
    /// Follow calls as they end, and notices
    Tail(AuditTail),
    /// Remove old entries; the chain stays verifiable
    Prune(AuditPrune),
    /// Acknowledge that records are missing from the end, or that another log contradicts itself
    Acknowledge(AuditAcknowledge),
    /// Show the public key that signs heads of the log, for an auditor
    Key(AuditKey),
    /// Print the newest signed head, to be kept elsewhere
    Checkpoint(AuditCheckpoint),
    /// Prove that a call is in the signed log
    Prove(AuditProve),
    /// Show the newest signed head to a witness, which refuses a log that was rolled back
    Witness(AuditWitness),
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only calls by this caller
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// Only calls with this status
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<StatusWord>,
    /// Only calls after this: a length such as `2h` or `7d`, or a date
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls the shadow rules decide differently
    #[arg(long)]
    pub(crate) differs: bool,
}

/// The kind of entries in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindWord {
    /// Calls
    Call,
    /// Changes outside of calls: settings, keys, approvals, publications
    Notice,
    /// Both
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusWord {
    Done,
    Refused,
    Failed,
    Cancelled,
    Crashed,
}

#[derive(Debug, Args)]
pub(crate) struct AuditList {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Calls, notices or both
    #[arg(long, value_name = "KIND", default_value = "call")]
    pub(crate) kind: KindWord,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Of all nodes, from the database that records are shipped to
    #[arg(long)]
    pub(crate) nodes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditShow {
    /// The id of a call or notice, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 whole, 1 broken, 2 could not be read.")]
pub(crate) struct AuditVerify {
    /// A head noted earlier, as SEQUENCE:HASH; the chain must still hold it
    #[arg(long, value_name = "HEAD")]
    pub(crate) head: Option<String>,
    #[command(flatten)]
    pub(crate) against: AuditAgainst,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditAcknowledge {
    /// The id of the `audit.cut` or `audit.contradicted` notice, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why that is so
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: String,
    /// Somebody showed an old head again, and the log goes on: keep what was seen of it
    #[arg(long)]
    pub(crate) replayed: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "One record per line; with `--json` all of them in one array.")]
pub(crate) struct AuditExport {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Calls, notices or both
    #[arg(long, value_name = "KIND", default_value = "all")]
    pub(crate) kind: KindWord,
    /// Records, records with proofs, or events for a SIEM
    #[arg(long, value_name = "FORMAT", default_value = "records")]
    pub(crate) format: ExportFormat,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "With `--json` one value per line, as they come.")]
pub(crate) struct AuditTail {
    /// Stop after this many
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditPrune {
    /// Entries older than this: a length such as `90d`, or a date
    #[arg(long, value_name = "WHEN", required_unless_present = "bytes")]
    pub(crate) before: Option<String>,
    /// Entries beyond this many bytes, counted from the newest
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "bash reads that file where its package `bash-completion` is installed. For zsh make\nthe folder, and write `fpath+=~/.zfunc` before `compinit` into ~/.zshrc."
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
    #[command(flatten)]
    pub(crate) words: Words,
}

/// Without a command it prints the program's own page.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The command, such as `audit list`
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// A folder; every page is written there, one file for each command
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) words: Words,
}

/// What commands that print a text have in common.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// One JSON value on standard output, with the text in it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where everything is, and how to say it.
#[derive(Clone, Debug, Args)]
pub(crate) struct HomeArguments {
    /// Folder of ringfence.toml [env: RINGFENCE_HOME]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// One JSON value on standard output, nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// What commands that look at variables have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// More variables, as NAME=value lines
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

impl CommandLine {
    /// Reads the process's arguments.
    pub(crate) fn read() -> Result<CommandLine, clap::Error> {
        let command = help::command();
        let words = help::as_option(&command, std::env::args_os().collect());
        let mut matches = command.try_get_matches_from(words)?;
        CommandLine::from_arg_matches_mut(&mut matches)
    }

    /// How the command wants its output.
    pub(crate) fn format(&self) -> Format {
        let Some(command) = &self.command else {
            return Format::Human;
        };
        let home = match command {
            Command::Check(check) => &check.common.home,
            Command::Test(test) => &test.common.home,
            Command::Run(run) => &run.common.home,
            Command::Script(script) => script.home(),
            Command::Serve(serve) => &serve.common.home,
            Command::Studio(studio) => &studio.home,
            Command::New(new) => &new.home,
            Command::List(list) => &list.common.home,
            Command::Show(named) => &named.common.home,
            Command::Import(import) => &import.home,
            Command::Export(export) => &export.home,
            Command::Publish(publish) => &publish.common.home,
            Command::Unpublish(many) | Command::Delete(many) => &many.common.home,
            Command::Secrets(secrets) => secrets.home(),
            Command::Expose(expose) => &expose.home,
            Command::Approvals(approvals) => approvals.home(),
            Command::Audit(audit) => audit.home(),
            Command::Top(top) => &top.home,
            Command::Explain(explain) => &explain.common.home,
            Command::Policy(policy) => policy.home(),
            Command::Keys(keys) => keys.home(),
            Command::Store(store) => store.home(),
            Command::Callers(callers) => callers.home(),
            Command::Trust(trust) => trust.home(),
            Command::Connect(connect) => &connect.home,
            Command::Servers(servers) => servers.home(),
            Command::Wrap(wrap) => &wrap.home,
            Command::Unwrap(unwrap) => &unwrap.home,
            Command::Scan(scan) => &scan.home,
            Command::Config(home) | Command::Doctor(home) => home,
            Command::Stdio(stdio) => &stdio.common.home,
            Command::Completions(completions) => return format(completions.words.json),
            Command::Init(init) => &init.home,
            Command::Man(man) => return format(man.words.json),
            Command::Demo(words) => return format(words.json),
            Command::Complete(_) => return Format::Human,
        };
        format(home.json)
    }
}

fn format(is_json: bool) -> Format {
    if is_json { Format::Json } else { Format::Human }
}

impl AuditArguments {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            AuditCommand::List(list) => &list.home,
            AuditCommand::Show(show) => &show.home,
            AuditCommand::Verify(verify) => &verify.home,
            AuditCommand::Export(export) => &export.home,
            AuditCommand::Tail(tail) => &tail.home,
            AuditCommand::Prune(prune) => &prune.home,
            AuditCommand::Acknowledge(acknowledge) => &acknowledge.home,
            AuditCommand::Key(key) => &key.home,
            AuditCommand::Checkpoint(checkpoint) => &checkpoint.home,
            AuditCommand::Prove(prove) => &prove.home,
            AuditCommand::Witness(witness) => &witness.home,
        }
    }
}

/// `OLD=NEW`.
fn renaming(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => {
            Ok((old.to_owned(), new.to_owned()))
        }
        _ => Err("write it as OLD=NEW".to_owned()),
    }
}

/// Prints help, version or a usage error, and says how to exit. The error repeats what
/// was typed, and a shell types the names of files.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    let mut printer = Printer::for_terminal(Format::Human);
    let text = error.render().to_string();
    if error.use_stderr() {
        printer.notes(&text);
        Exit::CouldNot.into()
    } else {
        printer.lines(&text);
        printer.flush(Exit::Done).into()
    }
}
