//! `ringfence servers add`: writes a `[[server]]` section and lists the server's
//! definitions. Nothing is accepted by adding.

use anyhow::{Context as _, bail};
use engine::Engine;
use upstream::name::ServerName;

use super::{look, review::ReviewSheet};
use crate::arguments::{EraWord, NetworkWord, ServersAdd};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};
use engine::server_launch::ServerLaunch;
use engine::server_settings::{self as edit, WrittenServer};
use store::SettingsEdit;

pub(super) fn run(
    engine: &Engine,
    add: &ServersAdd,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let written = written(add)?;
    let launch = ServerLaunch {
        command: written.command.clone(),
        url: written.url.clone(),
        values: written.values.clone(),
    };
    refuse_secrets(&launch, printer)?;
    let known = engine.registry().current();
    if known.servers().servers().contains_key(&add.name) {
        bail!(
            "there is a server `{0}` already; remove it with `ringfence servers remove {0}`, or choose another name",
            add.name
        );
    }
    let settings = SettingsEdit::begin(engine.home())?;
    let changed = edit::with(&settings.read()?, &[written])?;
    // The notice first: nothing is added that the audit does not know of.
    engine.servers().note_added(&add.name, &launch.shown())?;
    settings.write(&changed)?;
    printer.note(&format!("added `{}`; nothing of it is accepted", add.name));
    if let Err(fault) = look(engine, &add.name, printer) {
        printer.error(&fault);
        printer.note(&format!(
            "it stays in the settings; try again with `ringfence servers review {}`",
            add.name
        ));
        if printer.format() == Format::Json {
            printer.json(&serde_json::json!({ "server": add.name, "listed": false }));
        }
        return Ok(Exit::No);
    }
    let review = engine.servers().review(&add.name)?;
    ReviewSheet::new(review).show(printer);
    if printer.format() == Format::Human {
        printer.note(&format!(
            "accept it with `ringfence servers accept {}`",
            add.name
        ));
    }
    Ok(Exit::Done)
}

fn written(add: &ServersAdd) -> anyhow::Result<WrittenServer> {
    if let Err(fault) = ServerName::parse(&add.name) {
        match &fault.suggestion {
            Some(name) => bail!("{fault}; `{name}` would do"),
            None => bail!("{fault}"),
        }
    }
    let paths = |paths: &[std::path::PathBuf]| {
        let each = paths.iter().map(|path| {
            let absolute = std::path::absolute(path)?;
            let text = absolute.to_str().map(str::to_owned);
            text.with_context(|| format!("`{}` is not text", path.display()))
        });
        each.collect::<anyhow::Result<Vec<_>>>()
    };
    let values = if add.url.is_some() {
        &add.header
    } else {
        &add.env
    };
    Ok(WrittenServer {
        name: add.name.clone(),
        command: add.command.clone(),
        url: add.url.clone(),
        values: values.iter().cloned().collect(),
        read: paths(&add.read)?,
        write: paths(&add.write)?,
        network: add.network.map(|network| match network {
            NetworkWord::None => "none",
            NetworkWord::Open => "open",
        }),
        hosts: add.host.clone(),
        era: add.era.map(|era| match era {
            EraWord::Auto => "auto",
            EraWord::Legacy => "legacy",
            EraWord::Modern => "modern",
        }),
        private: add.private,
    })
}

/// A secret in the settings would be shown, copied and committed.
fn refuse_secrets(launch: &ServerLaunch, printer: &mut Printer) -> anyhow::Result<()> {
    if let Some(name) = launch.plain_secrets().into_iter().next() {
        let key = engine::client_import::placeholder_name(&name);
        bail!(
            "the value of `{name}` looks like a secret; put `{key}=…` into secrets.env and write `{name}=${{{key}}}`"
        );
    }
    for finding in launch.findings() {
        printer.note(&format!(
            "warning: {}",
            engine::server_launch::finding_line(&finding)
        ));
    }
    Ok(())
}
