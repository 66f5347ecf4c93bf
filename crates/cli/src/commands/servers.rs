//! `ringfence servers`: other people's MCP servers, for their owner. Adding one, accepting
//! what it offers and widening what it reaches happens here and nowhere else.

/// Adds a server.
mod add;
/// Current definitions of a server against the accepted ones.
mod review;
/// The lock file.
mod verify;

use std::collections::BTreeSet;

use anyhow::bail;
use engine::Engine;
use engine::server_admin::{ServerAdminError, ServerLook};
use engine::server_settings as edit;
use engine::server_sheet::{decision, is_reworded, state_word, state_words};
use model::config::{ServerConfig, ServerTransport};
use model::nearest::nearest;
use model::network::host_pattern::HostPattern;
use model::text::{count, elided, one_line};
use model::word::Word as _;
use serde_json::{Value, json};
use upstream::definition::ItemKey;
use upstream::pin::ServedState;

use crate::arguments::{
    ServersAccept, ServersArguments, ServersBlock, ServersCommand, ServersLogin,
};
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{self, Format, Printer, Style};
use crate::output::sheet;
use crate::wiring;

use engine::server_launch::{ServerLaunch, finding_line, finding_value};
use review::ReviewSheet;
use store::SettingsEdit;

pub(crate) fn run(arguments: &ServersArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(arguments.common())?;
    match &arguments.command {
        ServersCommand::List(_) => Ok(run_list(&engine, printer)),
        ServersCommand::Show(named) => run_show(&engine, &named.name, printer),
        ServersCommand::Add(add) => add::run(&engine, add, printer),
        ServersCommand::Remove(named) => run_remove(&engine, &named.name, printer),
        ServersCommand::Review(named) => run_review(&engine, &named.name, printer),
        ServersCommand::Accept(accept) => run_accept(&engine, accept, printer),
        ServersCommand::Block(block) => run_block(&engine, block, printer),
        ServersCommand::Restart(named) => {
            engine.servers().restart(&named.name)?;
            say(printer, &named.name, "restarted");
            Ok(Exit::Done)
        }
        ServersCommand::Login(login) => run_login(&engine, login, printer),
        ServersCommand::Logs(named) => run_logs(&engine, &named.name, printer),
        ServersCommand::Verify(verify) => verify::run(&engine, verify, printer),
    }
}

/// Starts a server and stores its definitions. The last lines of one that fails go to
/// standard error.
pub(crate) fn look(
    engine: &Engine,
    name: &str,
    printer: &mut Printer,
) -> anyhow::Result<ServerLook> {
    printer::progress(&format!("starting {name} …"));
    let runtime = wiring::runtime()?;
    let looked = runtime.block_on(engine.servers().look(name));
    printer::clear_progress();
    if let Err(ServerAdminError::Fault { log, .. }) = &looked {
        for line in log {
            printer.note(&format!("| {}", one_line(line)));
        }
    }
    Ok(looked?)
}

/// Has a person sign in. The address of the page goes to standard error: it is for a
/// person, and a script that reads our output has none.
fn run_login(engine: &Engine, login: &ServersLogin, printer: &mut Printer) -> anyhow::Result<Exit> {
    let runtime = wiring::runtime()?;
    let show = |page: &str| {
        // A line of its own: it is copied whole.
        printer.note("open this page to sign in:");
        printer.note(page);
    };
    let servers = engine.servers();
    let signed = runtime.block_on(servers.login(&login.name, &login.caller, show))?;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "server": login.name,
            "done": "signed in",
            "issuer": signed.issuer,
            "renewable": signed.is_renewable,
        })),
        Format::Human => printer.line(&format!(
            "{}  signed in at {}",
            login.name,
            one_line(&signed.issuer)
        )),
    }
    Ok(Exit::Done)
}

fn say(printer: &mut Printer, name: &str, done: &str) {
    match printer.format() {
        Format::Json => printer.json(&json!({ "server": name, "done": done })),
        Format::Human => printer.line(&format!("{name}  {done}")),
    }
}

fn run_list(engine: &Engine, printer: &mut Printer) -> Exit {
    let now = engine.registry().current();
    let mut values = Vec::new();
    for (name, view) in now.servers().servers() {
        let items = view.served.iter().flat_map(|served| &served.items);
        let number = |word: &str| {
            let all = items.clone();
            all.filter(|item| state_word(&item.state) == word).count()
        };
        let (callable, held, blocked) = (number("callable"), number("held"), number("blocked"));
        let reworded = items.clone().filter(|item| is_reworded(&item.state));
        let reworded = reworded.count();
        let launch = ServerLaunch::of(&view.config).shown();
        if printer.format() == Format::Json {
            values.push(json!({
                "server": name,
                "decision": decision(view),
                "callable": callable,
                "reworded": reworded,
                "held": held,
                "blocked": blocked,
                "listed": !view.record.seen.is_empty(),
                "launch": launch,
                "network": network_word(&view.config),
                "hosts": hosts(&view.config),
                "fault": view.served.as_ref().err(),
            }));
            continue;
        }
        let shown = printer.styled(Style::Bold, name);
        let tools = match (&view.served, view.record.seen.is_empty()) {
            (Err(why), _) => one_line(why),
            (Ok(_), true) => "never listed".to_owned(),
            (Ok(_), false) => {
                let reworded = match reworded {
                    0 => String::new(),
                    reworded => format!(" ({reworded} reworded)"),
                };
                let blocked = match blocked {
                    0 => String::new(),
                    blocked => format!(", {blocked} blocked"),
                };
                format!("{callable} callable{reworded}, {held} held{blocked}")
            }
        };
        let reach = match network_word(&view.config) {
            Some("hosts") => format!("  reaches {}", hosts(&view.config).join(", ")),
            Some("open") => "  reaches anything".to_owned(),
            _ => String::new(),
        };
        let decided = decision(view);
        printer.line(&format!("{shown}  {decided}  {tools}  {launch}{reach}"));
    }
    match printer.format() {
        Format::Json => printer.json(&Value::Array(values)),
        Format::Human if now.servers().servers().is_empty() => {
            printer.note("there is no server; add one with `ringfence servers add`");
        }
        Format::Human => {}
    }
    Exit::Done
}

/// What the process of a server may connect to, in a word; a server at an address has none.
fn network_word(config: &ServerConfig) -> Option<&'static str> {
    match &config.transport {
        ServerTransport::Command(command) => Some(command.network.word()),
        ServerTransport::Url(_) => None,
    }
}

/// The hosts that the process of a server may connect to.
fn hosts(config: &ServerConfig) -> Vec<String> {
    match &config.transport {
        ServerTransport::Command(command) => {
            let hosts = command.network.hosts().iter();
            hosts.map(HostPattern::shown).collect()
        }
        ServerTransport::Url(_) => Vec::new(),
    }
}

/// What the settings say about a server, a word and its value to a line.
fn settings(config: &ServerConfig) -> Vec<(&'static str, String)> {
    let launch = ServerLaunch::of(config);
    let names = |names: Vec<&String>| {
        let names: Vec<_> = names.into_iter().map(|name| one_line(name)).collect();
        names.join(", ")
    };
    let mut lines = vec![("reached by", launch.shown())];
    match &config.transport {
        ServerTransport::Command(command) => {
            lines.push(("variables", names(command.environment.keys().collect())));
            lines.push(("reads", names(command.read.iter().collect())));
            lines.push(("writes", names(command.write.iter().collect())));
            lines.push(("network", command.network.word().to_owned()));
            lines.push(("hosts", hosts(config).join(", ")));
            lines.push(("sandbox", command.sandbox.word().to_owned()));
        }
        ServerTransport::Url(url) => {
            lines.push(("headers", names(url.headers.keys().collect())));
            let is_private = if url.private { "yes" } else { "no" };
            lines.push(("private", is_private.to_owned()));
            if let Some(oauth) = &url.oauth {
                let client = oauth
                    .client_id
                    .as_deref()
                    .unwrap_or("registered at the sign-in");
                let scopes = oauth.scopes.join(" ");
                lines.push(("sign-in", oauth.grant.word().to_owned()));
                lines.push(("client", one_line(client)));
                lines.push(("scopes", one_line(&scopes)));
            }
        }
    }
    let secrets: Vec<_> = config.secrets().into_iter().collect();
    lines.push(("secrets", secrets.join(", ")));
    lines.push(("era", config.era.word().to_owned()));
    lines.push(("sharing", config.sharing.word().to_owned()));
    let offers = [("prompts", config.prompts), ("resources", config.resources)];
    let offers = offers.into_iter().filter(|(_, is_on)| *is_on);
    let offers: Vec<_> = offers.map(|(word, _)| word).collect();
    lines.push(("offers", offers.join(", ")));
    lines.retain(|(_, text)| !text.is_empty());
    lines
}

fn run_show(engine: &Engine, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let now = engine.registry().current();
    let Some(view) = now.servers().servers().get(name) else {
        return Err(unknown(engine, name));
    };
    let lines = settings(&view.config);
    let findings = ServerLaunch::of(&view.config).findings();
    let items = view.served.iter().flat_map(|served| &served.items);
    let here = |key: &ItemKey| view.name_of(key).map(str::to_owned);
    if printer.format() == Format::Json {
        let settings: serde_json::Map<_, _> = lines
            .into_iter()
            .map(|(word, text)| (word.to_owned(), Value::from(text)))
            .collect();
        printer.json(&json!({
            "server": name,
            "decision": decision(view),
            "settings": settings,
            "findings": findings.iter().map(finding_value).collect::<Vec<_>>(),
            "fault": view.served.as_ref().err(),
            "tools": items.map(|item| json!({
                "name": item.key.name,
                "as": here(&item.key),
                "state": state_word(&item.state),
            })).collect::<Vec<_>>(),
        }));
        return Ok(Exit::Done);
    }
    let shown = printer.styled(Style::Bold, name);
    printer.line(&format!("{shown}  {}", decision(view)));
    for (word, text) in lines {
        printer.line(&format!("  {word:<10}  {text}"));
    }
    for finding in &findings {
        printer.line(&format!("  warn  {}", finding_line(finding)));
    }
    if let Err(why) = &view.served {
        printer.line(&format!("  stopped: {}", one_line(why)));
    }
    for item in items {
        let name = match (&item.state, here(&item.key)) {
            (ServedState::Callable { .. }, Some(name)) => name,
            _ => elided(&item.key.name, 80),
        };
        let name = printer.styled(Style::Bold, &name);
        printer.line(&format!("  {name}  {}", state_words(&item.state)));
    }
    Ok(Exit::Done)
}

fn unknown(engine: &Engine, name: &str) -> anyhow::Error {
    let now = engine.registry().current();
    let known = now.servers().servers().keys().map(String::as_str);
    ServerAdminError::NoSuchServer {
        name: one_line(name),
        nearest: nearest(name, known).map(str::to_owned),
    }
    .into()
}

fn run_remove(engine: &Engine, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let settings = SettingsEdit::begin(engine.home())?;
    let Some(changed) = edit::without(&settings.read()?, name)? else {
        drop(settings);
        return Err(unknown(engine, name));
    };
    // The accepted definitions are removed first: if this ends in between, the server is held, and the
    // command can be repeated.
    engine.servers().forget(name)?;
    settings.write(&changed)?;
    say(printer, name, "removed");
    Ok(Exit::Done)
}

fn run_review(engine: &Engine, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    look(engine, name, printer)?;
    let review = engine.servers().review(name)?;
    let sheet = ReviewSheet::new(review);
    sheet.show(printer);
    if printer.format() == Format::Human {
        match sheet.is_settled() {
            true => printer.note("it offers what was accepted"),
            false => printer.note(&format!(
                "accept it with `ringfence servers accept {name}`, or block it"
            )),
        }
    }
    Ok(Exit::Done)
}

fn run_accept(
    engine: &Engine,
    accept: &ServersAccept,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let name = &accept.name;
    look(engine, name, printer)?;
    let sheet = ReviewSheet::new(engine.servers().review(name)?);
    let tools: BTreeSet<String> = accept.tools.iter().cloned().collect();
    let tools = (!tools.is_empty()).then_some(tools);
    if printer.format() == Format::Human {
        sheet.show(printer);
        printer.emit();
    }
    if !accept.yes && !agreed(&sheet, name, tools.as_ref().map(BTreeSet::len))? {
        printer.note("nothing was accepted");
        return Ok(Exit::No);
    }
    let servers = engine.servers();
    let accepted = servers.accept(name, sheet.digest(), tools.as_ref())?;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "server": name, "accepted": accepted, "digest": sheet.digest(),
        })),
        Format::Human => printer.line(&format!("{name}  {} accepted", count(accepted, "tool"))),
    }
    Ok(Exit::Done)
}

fn agreed(sheet: &ReviewSheet, name: &str, tools: Option<usize>) -> anyhow::Result<bool> {
    let number = tools.unwrap_or_else(|| sheet.offered_count());
    let what = format!(
        "{} of the server {}",
        count(number, "tool"),
        sheet::name(name)
    );
    let head = match sheet.holding_count() {
        0 => format!("accept {what}, as shown above?"),
        holding => format!(
            "accept {what}, as shown above, with {} that would hold?",
            count(holding, "finding")
        ),
    };
    let here = console::is_here().then(|| console::agreed(&head, &[], &what));
    match here.flatten() {
        Some(agreed) => Ok(agreed),
        None => bail!("there is no terminal to ask at; use `--yes`"),
    }
}

fn run_block(engine: &Engine, block: &ServersBlock, printer: &mut Printer) -> anyhow::Result<Exit> {
    engine.servers().block(&block.name, block.tool.as_deref())?;
    match &block.tool {
        None => say(printer, &block.name, "blocked"),
        Some(tool) if printer.format() == Format::Json => printer.json(&json!({
            "server": block.name, "tool": tool, "done": "blocked",
        })),
        Some(tool) => printer.line(&format!("{}  {}  blocked", block.name, elided(tool, 80))),
    }
    Ok(Exit::Done)
}

/// Prints the standard error of a server's running processes, or of the last one.
/// Starts nothing.
fn run_logs(engine: &Engine, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let logs = engine.servers().logs(name)?;
    if printer.format() == Format::Json {
        printer.json(&json!({
            "server": name,
            "processes": logs.iter().map(|log| json!({
                "log": log.file, "running": log.is_running, "lines": log.lines,
            })).collect::<Vec<_>>(),
        }));
        return Ok(Exit::Done);
    }
    let running: Vec<_> = logs.iter().filter(|log| log.is_running).collect();
    let shown = match running.is_empty() {
        false => running,
        true => logs.last().into_iter().collect(),
    };
    for log in &shown {
        if shown.len() > 1 {
            printer.line(&format!("== {}", log.file));
        }
        for line in &log.lines {
            printer.line(line);
        }
    }
    let now = engine.registry().current();
    let view = now.servers().servers().get(name);
    let is_address =
        view.is_some_and(|view| matches!(view.config.transport, ServerTransport::Url(_)));
    match shown.first() {
        // A line of another process of that name, before the settings changed, is none of it.
        _ if is_address => printer.note(&format!(
            "{name} is reached at an address; only servers that run on this machine have a log"
        )),
        None => printer.note(&format!("{name} was not started yet")),
        Some(log) if log.is_running => {
            let processes = count(shown.len(), "connection");
            printer.note(&format!("{name} has {processes} open"));
        }
        Some(_) => printer.note(&format!("{name} does not run; these are its last lines")),
    }
    Ok(Exit::Done)
}
