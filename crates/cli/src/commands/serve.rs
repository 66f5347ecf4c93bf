//! `ringfence serve`: the MCP door over HTTP, behind authentication.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use engine::report::Reporter;
use engine::{Alarm, Engine};
use host::fetch::TlsTrust;
use mcp::auth::listen::warnings;
use mcp::auth::local::{LocalToken, TOKEN_FILE};
use mcp::auth::{Auth, AuthMode};
use mcp::http::HttpBounds;
use mcp::metrics::Metrics;
use mcp::restart::{self, StartupSettings};
use mcp::{Door, http};
use model::config::{CodePrinting, Config, LogFormat};
use model::govern::key::Secret;
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice};
use serde_json::json;
use store::serving::{self as served, ServedAddress, ServedLock};
use studio::{Studio, StudioSettings};
use tokio::net::{TcpListener, lookup_host};
use tokio::task::JoinHandle;

mod port_holder;

use port_holder::PortHolder;

use crate::arguments::{LogWord, Serve};
use crate::commands::connect;
use crate::output::exit::Exit;
use crate::output::printer::{self, Format, Printer, Style, is_output_watched};
use crate::wiring;
use crate::wiring::auth;
use crate::wiring::log::JsonLog;
use crate::wiring::peers;
use crate::wiring::ship;
use crate::wiring::telemetry::Traces;
use crate::wiring::waiting;
use crate::wiring::witness;

/// Said when a home was given a shared store and its decisions stayed behind: every key is then
/// wrong and nothing is published, without a word of why.
const LEFT_BEHIND: &str = "this home has keys, approvals or publications and its shared store has \
                           none; if they are to hold, stop the server, run `ringfence store copy \
                           --to postgres` and start it again";

pub(crate) fn run(serve: &Serve, printer: &mut Printer) -> anyhow::Result<Exit> {
    // A server runs for weeks: freed memory must go back to the system.
    engine::memory::settle();
    let runtime = wiring::server_runtime()?;
    runtime.block_on(serving(serve, printer))
}

async fn serving(serve: &Serve, printer: &mut Printer) -> anyhow::Result<Exit> {
    if let Some(missing) = studio::missing() {
        bail!(missing);
    }
    let shutdown = wiring::ending()?;
    let metrics = Metrics::new();
    let (engine, alarm, instruments) = engine(serve, &metrics, printer.format())?;
    // A store that does not answer is reported where it is used.
    if let Ok(true) = store::shared::is_left_behind(engine.home()) {
        alarm.raise(LEFT_BEHIND);
    }
    let config = engine.registry().current().config.clone();
    let listen = serve.listen.as_ref().unwrap_or(&config.serve.listen);
    let mode = match serve.no_auth {
        true => AuthMode::Off,
        false => AuthMode::On,
    };
    let address = address(listen).await?;
    // Before the port is bound: an address that may not be served must not be
    // open for a moment.
    mcp::auth::may_listen(address, mode).map_err(|problem| anyhow::anyhow!(problem))?;
    let listener = listener(listen, address).await?;
    // Asked again: port 0 became a real one.
    let address = listener.local_addr()?;
    let (auth, token) = auth::open(engine.home(), &config, address, mode)?;
    // Before the token can be used, see `note_token`.
    if token.is_new {
        note_token(&engine)?;
    }
    let door = Door::open(Arc::new(engine))?;
    // Started now, so that a machine without a sandbox layer fails here and not at the
    // first call.
    door.engine().pool().await?;
    let url = format!("{}{}", auth.base_url(), http::PATH);
    let warnings = warnings(address, mode);
    let auth = Arc::new(auth);
    let studio = Studio::new(
        Arc::clone(door.engine()),
        StudioSettings {
            addresses: auth.addresses().clone(),
            version: env!("CARGO_PKG_VERSION"),
            mcp_url: url.clone(),
            end: shutdown.soft.clone(),
        },
    );
    let page = StudioGreeting {
        url: format!("{}/", auth.base_url()),
        code: match prints_code(serve, config.studio.print_code) {
            true => Some(door.engine().people().make_code()?),
            false => None,
        },
    };
    // Held until the server has ended.
    let _told = tell(door.engine().home(), address, &auth, &alarm)?;
    greet(&url, mode, &token, &warnings, &page, printer);
    let bounds = HttpBounds {
        // Authentication checks the Host header against all our names.
        loopback_only: false,
        ..HttpBounds::of(&config.serve)
    };
    let guard = http::guarded(auth, &door, metrics, &bounds, Some(studio.router()));
    let mut tasks = evidence_tasks(door.engine(), &config, &alarm);
    let started = StartupSettings::with(config, serve.listen.is_some());
    tasks.push(tokio::spawn(restart::watch(
        Arc::clone(door.engine()),
        started,
        alarm,
    )));
    let waiting = waiting::report(door.engine(), instruments.notes());
    let served = http::serve(door, listener, bounds, guard, shutdown).await;
    waiting.abort();
    tasks.iter().for_each(JoinHandle::abort);
    // The last spans are sent by a thread that needs the runtime meanwhile.
    let _ = tokio::task::spawn_blocking(move || instruments.end()).await;
    served?;
    Ok(Exit::Done)
}

/// Tells other commands of this home where the server is.
fn tell(
    home: &Path,
    listen: SocketAddr,
    auth: &Auth,
    alarm: &Alarm,
) -> anyhow::Result<Option<ServedLock>> {
    let address = ServedAddress {
        listen,
        url: auth.base_url().to_owned(),
    };
    let told = served::tell(home, &address)?;
    if told.is_none() {
        alarm.raise(
            "too many servers of this home run: other commands do not know this one; \
             `ringfence studio --url URL` names it",
        );
    }
    Ok(told)
}

/// What carries evidence to others while the server runs: heads to peers and witnesses,
/// records to the shared database.
fn evidence_tasks(engine: &Arc<Engine>, config: &Config, alarm: &Alarm) -> Vec<JoinHandle<()>> {
    let ca_file = config.network.ca_file.as_ref();
    let trust = TlsTrust::system(ca_file.map(|path| engine.home().join(path)));
    let own = || (Arc::clone(engine), alarm.clone());
    let (vouching, shipping, witnessing) = (own(), own(), own());
    vec![
        tokio::spawn(peers::run(vouching.0, trust.clone(), vouching.1)),
        tokio::spawn(ship::run(shipping.0, shipping.1)),
        tokio::spawn(witness::run(witnessing.0, trust, witnessing.1)),
    ]
}

impl Instruments {
    /// Where sentences for the operator go that are no warnings.
    fn notes(&self) -> Alarm {
        match &self.log {
            Some(log) => log.alarm(),
            None => Alarm::new(printer::note),
        }
    }

    /// Sends and writes what waits.
    fn end(&self) {
        if let Some(traces) = &self.traces {
            traces.end();
        }
        if let Some(log) = &self.log {
            log.end();
        }
    }
}

/// Writes a notice about a new token. If that fails, the token is deleted.
fn note_token(engine: &Engine) -> anyhow::Result<()> {
    let message = "the token of this machine was created";
    let notice = Notice::new(Act::KeyMade, SERVER, "serve", message).about(TOKEN_FILE);
    let written = engine.notice(notice);
    if written.is_err() {
        // A token that the audit does not know of must not exist.
        let _ = std::fs::remove_file(engine.home().join(TOKEN_FILE));
    }
    written.context("no token was created: it could not be recorded in the audit")
}

/// What a server tells its operator beside metrics.
struct Instruments {
    traces: Option<Arc<Traces>>,
    log: Option<Arc<JsonLog>>,
}

/// The engine, with its metrics, traces and log.
fn engine(
    serve: &Serve,
    metrics: &Metrics,
    format: Format,
) -> anyhow::Result<(Engine, Alarm, Instruments)> {
    let common = &serve.common;
    let mut settings =
        wiring::serving_settings(common.home.home.as_deref(), common.env_file.as_deref())?;
    let config = engine::registry::read_config(&settings.home)?.0;
    settings.reporters.push(Arc::new(metrics.clone()));
    let log = match serve.logs {
        Some(LogWord::Json) => Some(JsonLog::start()),
        Some(LogWord::Text) => None,
        None => (config.telemetry.logs == LogFormat::Json).then(JsonLog::start),
    };
    // Before anything takes the alarm: its words go to the log.
    if let Some(log) = &log {
        settings.alarm = log.alarm();
        let log = Arc::clone(log);
        settings.reporters.push(log as Arc<dyn Reporter>);
    }
    let mut traces = None;
    if let Some(endpoint) = &config.telemetry.otlp_endpoint {
        let ca_file = config.network.ca_file.as_ref();
        let trust = TlsTrust::system(ca_file.map(|path| settings.home.join(path)));
        // The name of the log, which leads from a span to its audit. A home that never ran
        // has none yet.
        let key = store::public_key(&settings.home).ok().flatten();
        let instance = key.map(|key| key.name().to_owned());
        let alarm = settings.alarm.clone();
        let made = Arc::new(Traces::to(endpoint, &trust, instance, alarm)?);
        settings
            .reporters
            .push(Arc::clone(&made) as Arc<dyn Reporter>);
        traces = Some(made);
    }
    let alarm = settings.alarm.clone();
    let instruments = Instruments { traces, log };
    Ok((wiring::open_shown(settings, format)?, alarm, instruments))
}

/// Binds the address. A port in use is the most common failure, so the error says how
/// to choose another.
async fn listener(listen: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let cannot = |error: io::Error| {
        let fix = match error.kind() {
            io::ErrorKind::AddrInUse => {
                let holder = match port_holder::find(address.port()) {
                    Some(PortHolder { name, process }) => format!("`{name}`, process {process},"),
                    None => "another program".to_owned(),
                };
                format!(
                    "{holder} uses it: stop that process, or choose another port, such as \
                     `--listen 127.0.0.1:0` for any free one"
                )
            }
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need privileges: choose another with `--listen ADDR`".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address: choose another with `--listen ADDR`".to_owned()
            }
            _ => "choose another address with `--listen ADDR`".to_owned(),
        };
        anyhow::Error::new(error).context(format!("`{listen}` cannot be listened on; {fix}"))
    };
    TcpListener::bind(address).await.map_err(cannot)
}

async fn address(listen: &str) -> anyhow::Result<SocketAddr> {
    // The first address only, so that what is checked is what is bound.
    let mut found = lookup_host(listen)
        .await
        .with_context(|| format!("`{listen}` is not an address with a port"))?;
    found
        .next()
        .with_context(|| format!("`{listen}` is not an address"))
}

/// Whether a code is made and printed. What is no terminal is a journal, a file or another
/// program: it is kept, and others read it.
fn prints_code(serve: &Serve, setting: CodePrinting) -> bool {
    serve.print_code
        || match setting {
            CodePrinting::Always => true,
            CodePrinting::Terminal => is_output_watched(),
            CodePrinting::Never => false,
        }
}

/// What a person needs to open the Studio.
struct StudioGreeting {
    url: String,
    /// A one-time code, if it may be printed here.
    code: Option<Secret>,
}

/// Prints the address on the first line.
fn greet(
    url: &str,
    mode: AuthMode,
    token: &LocalToken,
    warnings: &[String],
    page: &StudioGreeting,
    printer: &mut Printer,
) {
    let token_path = &token.path;
    match printer.format() {
        Format::Json => {
            let ready = json!({
                "url": url,
                "auth": mode == AuthMode::On,
                "tokenFile": token_path.display().to_string(),
                "warnings": warnings,
                "studio": {
                    "url": page.url,
                    "code": page.code.as_ref().map(Secret::reveal),
                },
            });
            printer.json_record(&ready);
        }
        Format::Human => {
            let shown = printer.styled(Style::Bold, url);
            printer.line(&shown);
            printer.line("");
            for warning in warnings {
                printer.line(&format!("WARNING: {warning}"));
            }
            match mode {
                AuthMode::Off => {}
                // A service's output is a journal, which others read and which is kept.
                AuthMode::On if token.is_new && is_output_watched() => {
                    printer.line(&format!(
                        "Token, shown this once: {}",
                        token.secret.reveal()
                    ));
                    printer.line(&format!("It is kept in {}.", token_path.display()));
                }
                AuthMode::On => printer.line(&format!("Token: in {}", token_path.display())),
            }
            printer.line("");
            printer.line(&format!(
                "Studio: {}",
                printer.styled(Style::Bold, &page.url)
            ));
            let minutes = engine::limit::SIGN_IN_CODE_MINUTES;
            match &page.code {
                Some(code) => printer.line(&format!(
                    "Code: {} (once, within {minutes} minutes; `ringfence studio` prints another)",
                    code.reveal()
                )),
                None => printer.line("Code: `ringfence studio` prints one"),
            }
            printer.line("");
            printer.lines(&connect::snippets(url));
            printer.line("press Ctrl-C to stop");
        }
    }
    printer.emit();
}
