//! `ringfence servers verify`: the lock of a repository against what servers offer now.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use engine::Engine;
use serde_json::json;
use upstream::definition::ItemKey;
use upstream::limit::LOCK_BYTES_MAX;
use upstream::lock::ServerLock;
use upstream::pin::{PinDecision, PinnedServer, SeenServer, ServedState};

use super::look;
use crate::arguments::ServersVerify;
use crate::commands::wrap::file::replace;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};

pub(super) fn run(
    engine: &Engine,
    verify: &ServersVerify,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    match verify.write {
        true => write(engine, &verify.lock, printer),
        false => compare(engine, &verify.lock, printer),
    }
}

/// Writes the accepted digests of every server.
fn write(engine: &Engine, path: &Path, printer: &mut Printer) -> anyhow::Result<Exit> {
    let now = engine.registry().current();
    let mut lock = ServerLock::default();
    let mut count = 0;
    for (name, view) in now.servers().servers() {
        if view.record.pins.is_empty() {
            printer.note(&format!("`{name}` is not accepted, so it is left out"));
            continue;
        }
        let pinned = PinnedServer::from_json(&view.record.pins);
        let pinned = pinned.with_context(|| format!("the record of `{name}` cannot be read"))?;
        lock.add_accepted(name, &pinned);
        count += 1;
    }
    let text = lock.to_json()?;
    // It holds digests and no text, and a repository is for all to read.
    replace(path, text.as_bytes(), 0o644)?;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "lock": path.display().to_string(), "servers": count,
        })),
        Format::Human => printer.line(&format!(
            "wrote {}: {}",
            path.display(),
            model::text::count(count, "server")
        )),
    }
    Ok(Exit::Done)
}

/// Starts every server and compares.
fn compare(engine: &Engine, path: &Path, printer: &mut Printer) -> anyhow::Result<Exit> {
    let lock = ServerLock::from_json(&read(path)?)?;
    let names: Vec<String> = {
        let now = engine.registry().current();
        now.servers().servers().keys().cloned().collect()
    };
    let mut found = ServerLock::default();
    for name in &names {
        look(engine, name, printer)?;
        let review = engine.servers().review(name)?;
        let mut seen: SeenServer = review.seen;
        // Items that the settings or the owner exclude are offered to no client.
        let is_blocked = |key: &ItemKey| {
            let mut items = review.served.items.iter();
            items.any(|item| item.key == *key && item.state == ServedState::Blocked)
        };
        let is_whole = review.decision != PinDecision::Blocked;
        seen.items
            .retain(|key, _| review.config.offers(&key.name) && !(is_whole && is_blocked(key)));
        found.add_seen(name, &seen);
    }
    let differences = lock.verify(&found);
    match printer.format() {
        Format::Json => {
            let each = differences.iter().map(|one| {
                json!({
                    "server": one.server,
                    "item": one.item.as_ref().map(|key| &key.name),
                    "locked": one.locked,
                    "found": one.found,
                    "message": one.sentence(),
                })
            });
            printer.json(&json!({ "differences": each.collect::<Vec<_>>() }));
        }
        Format::Human => {
            for one in &differences {
                printer.line(&one.sentence());
            }
            if differences.is_empty() {
                let servers = model::text::count(names.len(), "server");
                printer.line(&format!("{servers} as in {}", path.display()));
            }
        }
    }
    Ok(match differences.is_empty() {
        true => Exit::Done,
        false => Exit::No,
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "there is no `{shown}`; write it with `ringfence servers verify --write --lock {shown}`"
        ),
        Err(error) => return Err(error).context(format!("cannot read `{shown}`")),
    };
    let mut text = String::new();
    let bytes_max = u64::try_from(LOCK_BYTES_MAX).unwrap_or(u64::MAX);
    // One byte more, so that the lock's own reader says that it is too long.
    let read = file
        .take(bytes_max.saturating_add(1))
        .read_to_string(&mut text);
    read.with_context(|| format!("cannot read `{shown}`"))?;
    Ok(text)
}
