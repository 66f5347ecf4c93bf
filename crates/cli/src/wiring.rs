//! From arguments and variables to an engine, and to the subject of a command.

/// The person at this process's terminal, who answers questions.
pub(crate) mod approver;
/// Who may use the server, and as which caller.
pub(crate) mod auth;
/// Asks whether a tool may be tested with the access it needs.
pub(crate) mod consent;
/// The log of a server as JSON.
pub(crate) mod log;
/// A client for an address of the operator.
pub(crate) mod outbound;
/// Nodes that vouch for each other's audit.
pub(crate) mod peers;
/// Whether there is a home.
pub(crate) mod present;
/// Where the server of a home is.
pub(crate) mod served;
/// Copies records to a database that nodes share.
pub(crate) mod ship;
/// Exports traces to a collector.
pub(crate) mod telemetry;
/// Reports calls that wait for approval.
pub(crate) mod waiting;
/// Shows heads of the log to a witness.
pub(crate) mod witness;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use engine::{Alarm, Engine, EngineSettings};
use mcp::Shutdown;
use model::Environment;
use model::document::finding::any_error;
use model::policy::assessment::{Assessment, UsableDocument};
use store::gauge::log_read;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::arguments::{Common, HomeArguments};
use crate::output::console;
use crate::output::printer::{self, Format};
use crate::output::progress::Bar;
use crate::settings;
use crate::source::{self, SourceText};
use crate::wiring::approver::Terminal;

/// The engine of a command that needs variables.
pub(crate) fn engine(common: &Common) -> anyhow::Result<Engine> {
    let environment = settings::environment_with(common.env_file.as_deref())?;
    open(&common.home, environment, false)
}

/// The engine of a command that makes one call.
pub(crate) fn engine_for_one_call(common: &Common) -> anyhow::Result<Engine> {
    let environment = settings::environment_with(common.env_file.as_deref())?;
    open(&common.home, environment, true)
}

/// The engine of a server: no person sits at its terminal.
pub(crate) fn engine_that_serves(
    home: Option<&Path>,
    env_file: Option<&Path>,
) -> anyhow::Result<Engine> {
    Ok(Engine::open(serving_settings(home, env_file)?)?)
}

/// The engine of a Studio that runs by itself: a person sits at its terminal, and what they
/// change by hand in the meantime goes to other nodes.
pub(crate) fn engine_of_pages(home: &HomeArguments) -> anyhow::Result<Engine> {
    let mut settings = command_settings(home, settings::environment())?;
    settings.follows = false;
    open_shown(settings, format_of(home))
}

/// The settings of such an engine.
pub(crate) fn serving_settings(
    home: Option<&Path>,
    env_file: Option<&Path>,
) -> anyhow::Result<EngineSettings> {
    let environment = settings::environment_with(env_file)?;
    let home = settings::home(home).context("there is no home folder; set RINGFENCE_HOME")?;
    let home = std::path::absolute(home)?;
    let mut settings = EngineSettings::new(home, environment, alarm());
    settings.credentials = settings::credentials();
    Ok(settings)
}

/// The engine of a command that needs no variables.
pub(crate) fn engine_at(home: &HomeArguments) -> anyhow::Result<Engine> {
    open(home, settings::environment(), false)
}

fn open(home: &HomeArguments, environment: Environment, single: bool) -> anyhow::Result<Engine> {
    let mut settings = command_settings(home, environment)?;
    settings.single = single;
    open_shown(settings, format_of(home))
}

fn format_of(home: &HomeArguments) -> Format {
    match home.json {
        true => Format::Json,
        false => Format::Human,
    }
}

fn command_settings(
    home: &HomeArguments,
    environment: Environment,
) -> anyhow::Result<EngineSettings> {
    let home = absolute_home(home)?;
    let mut settings = EngineSettings::new(home, environment, alarm());
    settings.credentials = settings::credentials();
    settings.follows = true;
    // Only a person at a terminal can be asked. A pipe that answers would be a program.
    if console::is_here() {
        settings.approver = Some(Arc::new(Terminal));
    }
    Ok(settings)
}

/// Opens an engine. After an upgrade or a crash the index of the audit is rebuilt, and
/// that can take long.
pub(crate) fn open_shown(settings: EngineSettings, format: Format) -> anyhow::Result<Engine> {
    let _bar = Bar::measured("open the home", log_read, format);
    Ok(Engine::open(settings)?)
}

fn alarm() -> Alarm {
    Alarm::new(|sentence| printer::note(&format!("warning: {sentence}")))
}

/// The home folder, absolute.
pub(crate) fn absolute_home(home: &HomeArguments) -> anyhow::Result<PathBuf> {
    let home = settings::home(home.home.as_deref())
        .context("there is no home folder; set RINGFENCE_HOME")?;
    Ok(std::path::absolute(home)?)
}

/// A runtime for one command.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// A runtime for a server: one thread per processor.
pub(crate) fn server_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.enable_all().build()?)
}

/// Shuts down gracefully at the first SIGTERM or SIGINT, at once at the second.
pub(crate) fn ending() -> anyhow::Result<Shutdown> {
    let shutdown = Shutdown::default();
    let asked = shutdown.clone();
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        // In this order: the first signal lets calls finish, the second does
        // not wait for them.
        for token in [asked.soft, asked.hard] {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(shutdown)
}

/// Cancelled by Ctrl-C. The handler is installed now, not when the token is first
/// awaited.
pub(crate) fn interruptible() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let pressed = token.clone();
    // Installed before the call begins: an earlier Ctrl-C would kill the process instead
    // of cancelling the call.
    let mut interrupts = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        interrupts.recv().await;
        pressed.cancel();
    });
    Ok(token)
}

/// The subject of a command: a tool by name, or documents of a file.
pub(crate) enum Subject {
    /// A tool.
    Name(String),
    /// A file.
    File(PathBuf),
}

impl Subject {
    /// A word that looks like a path is a file; a bare word is a tool, unless only a file
    /// has that name.
    pub(crate) fn of(engine: &Engine, word: &str) -> Subject {
        let path = Path::new(word);
        let looks_like_a_path =
            word == "-" || word.contains('/') || path.extension().is_some_and(|end| end == "json");
        let is_tool = || engine.registry().current().tool(word).is_some();
        if looks_like_a_path || (path.is_file() && !is_tool()) {
            Subject::File(path.to_path_buf())
        } else {
            Subject::Name(word.to_owned())
        }
    }
}

/// The documents of a file, each usable or with its first problem.
pub(crate) fn documents(
    engine: &Engine,
    path: &Path,
) -> anyhow::Result<Vec<(Assessment, Option<Arc<UsableDocument>>)>> {
    let SourceText::Text(text) = source::documents(path)? else {
        bail!(
            "`{}` holds no tool document; run `ringfence check` on it",
            path.display()
        );
    };
    Ok(engine.judge(&text))
}

/// The one document of a file, or the one that was named.
pub(crate) fn one_document(
    engine: &Engine,
    path: &Path,
    name: Option<&str>,
) -> anyhow::Result<Arc<UsableDocument>> {
    let mut documents = documents(engine, path)?;
    if let Some(name) = name {
        documents.retain(|(document, _)| document.name.as_deref() == Some(name));
    }
    let count = documents.len();
    match (documents.pop(), count) {
        (Some((document, usable)), 1) => usable.ok_or_else(|| anyhow!("{}", unusable(&document))),
        (_, 0) => bail!("`{}` holds no such document", path.display()),
        (_, count) => bail!(
            "`{}` holds {count} documents; name one with `--tool`",
            path.display()
        ),
    }
}

/// Why a document cannot be used, in one sentence.
pub(crate) fn unusable(document: &Assessment) -> String {
    let mut errors = document
        .findings
        .iter()
        .filter(|finding| any_error(std::slice::from_ref(*finding)));
    let first = errors.next().map(|finding| finding.message.as_str());
    let first = first.unwrap_or("it has errors");
    format!("the document cannot be used: {first}; `ringfence check` says more")
}
