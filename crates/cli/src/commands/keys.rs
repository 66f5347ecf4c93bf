//! `ringfence keys`: the keys of callers. A key is shown once, when it is created; only
//! its digest is stored.

use std::path::Path;

use engine::key_admin::KeyAdmin;
use model::govern::approval::authority;
use model::govern::key::{KeyRecord, Role, Secret};
use model::govern::person::Actor;
use serde_json::{Value, json};
use store::clock::now_ms;
use store::{Keys, Store, StoreSettings};

use crate::arguments::{KeysAdd, KeysArguments, KeysCommand, RoleWord};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::settings;
use crate::wiring;

pub(crate) fn run(arguments: &KeysArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(arguments.home())?;
    with_admin(&home, |admin| match &arguments.command {
        KeysCommand::Add(add) => {
            let role = match add.role {
                RoleWord::Agent => Role::Agent,
                RoleWord::Operator => Role::Operator,
            };
            let (record, secret) = admin.make(&add.name, role, add.expires)?;
            show_once(&record, &secret, printer);
            say_answers(&home, add, printer);
            Ok(Exit::Done)
        }
        KeysCommand::List(_) => run_list(&Keys::open(&home)?, printer),
        KeysCommand::Revoke(name) => run_revoke(&admin, &name.name, printer),
        KeysCommand::Rotate(rotate) => {
            let (record, secret) = admin.rotate(&rotate.name, rotate.expires)?;
            show_once(&record, &secret, printer);
            Ok(Exit::Done)
        }
    })
}

/// The keys of a home, changed by its owner. The store opens without the settings: a key can
/// be revoked even if they are broken.
pub(crate) fn with_admin<T>(home: &Path, work: impl FnOnce(KeyAdmin<'_>) -> T) -> T {
    let write = |notice| {
        let store = Store::open(home, StoreSettings::standard())?;
        store.audit().notice(notice).map(drop)
    };
    work(KeyAdmin {
        home,
        write: &write,
        actor: Actor::OWNER_AT_TERMINAL,
        now_ms: now_ms(),
    })
}

/// Warns that the settings let this caller's client answer questions.
fn say_answers(home: &Path, add: &KeysAdd, printer: &mut Printer) {
    // Broken settings do not prevent creating a key.
    let Ok(config) = settings::config(Some(home)) else {
        return;
    };
    if let Some(most) = authority::client_up_to(&add.name, &config.approvals) {
        let most = most.badge();
        printer.note(&format!(
            "the settings let its client answer questions about its own calls up to {most}"
        ));
    }
}

fn run_list(keys: &Keys, printer: &mut Printer) -> anyhow::Result<Exit> {
    let records = keys.all()?;
    let now_ms = now_ms();
    if printer.format() == Format::Json {
        let entries = records.iter().map(|record| entry(record, now_ms));
        printer.json(&Value::Array(entries.collect()));
        return Ok(Exit::Done);
    }
    let columns = records.iter().map(|record| record.name.len()).max();
    for record in &records {
        let until = match record.expires_ms {
            None => "for good".to_owned(),
            Some(_) if record.is_expired(now_ms) => printer.styled(Style::Caution, "expired"),
            Some(expires_ms) => format!("until {}", shown_day(expires_ms)),
        };
        printer.line(&format!(
            "{:columns$}  {:8}  rf_{}  made {}  {until}",
            record.name,
            record.role.word(),
            record.id,
            shown_day(record.created_ms),
            columns = columns.unwrap_or(0),
        ));
    }
    if records.is_empty() {
        printer.note("no keys; `ringfence keys add NAME` creates one");
    }
    Ok(Exit::Done)
}

fn run_revoke(admin: &KeyAdmin<'_>, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let (record, written) = admin.revoke(name)?;
    if let Err(fault) = written {
        printer.note(&format!(
            "warning: the key was revoked, but this is not in the audit: {fault}"
        ));
    }
    match printer.format() {
        Format::Json => printer.json(&json!({"name": record.name, "revoked": true})),
        Format::Human => printer.line(&format!("{}  revoked", record.name)),
    }
    Ok(Exit::Done)
}

/// Shows a key, the only time it is shown.
fn show_once(record: &KeyRecord, secret: &Secret, printer: &mut Printer) {
    if printer.format() == Format::Json {
        let mut entry = entry(record, record.created_ms);
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("key".to_owned(), secret.reveal().into());
        }
        printer.json(&entry);
        return;
    }
    printer.line(secret.reveal());
    let what = match record.role {
        Role::Agent => "calls tools at /mcp",
        Role::Operator => "answers questions at /api/v1",
    };
    printer.note(&format!(
        "the key of `{}`, which {what}; it is shown this once",
        record.name
    ));
}

fn entry(record: &KeyRecord, now_ms: i64) -> Value {
    json!({
        "name": record.name,
        "role": record.role.word(),
        "id": record.id,
        "createdMs": record.created_ms,
        "expiresMs": record.expires_ms,
        "expired": record.is_expired(now_ms),
    })
}

/// `2026-01-31` of a moment, UTC.
fn shown_day(at_ms: i64) -> String {
    model::time::date(at_ms).unwrap_or_else(|| "-".to_owned())
}
