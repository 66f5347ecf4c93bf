//! `ringfence keys`: the keys of callers. A key is shown once, when it is created; only
//! its digest is stored.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use mcp::auth::local::random;
use model::govern::approval::authority;
use model::govern::key::{self, KeyRecord, Role, Secret};
use model::nearest::nearest;
use model::record::audit::{Act, Notice};
use model::time::DAY_MS;
use serde_json::{Value, json};
use store::clock::now_ms;
use store::keys::Added;
use store::{Keys, Store, StoreError, StoreSettings};

use crate::arguments::{KeysAdd, KeysArguments, KeysCommand, KeysRotate, RoleWord};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::settings;
use crate::wiring;

pub(crate) fn run(arguments: &KeysArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(arguments.home())?;
    let keys = Keys::open(&home)?;
    // The store opens without the settings: a key can be revoked even if they are
    // broken.
    let store = || Store::open(&home, StoreSettings::standard());
    match &arguments.command {
        KeysCommand::Add(add) => {
            let added = run_add(&keys, &store()?, add, printer);
            added.inspect(|_| say_answers(&home, add, printer))
        }
        KeysCommand::List(_) => run_list(&keys, printer),
        KeysCommand::Revoke(name) => run_revoke(&keys, store, &name.name, printer),
        KeysCommand::Rotate(rotate) => run_rotate(&keys, &store()?, rotate, printer),
    }
}

/// The audit notice about a key.
pub(crate) fn notice(act: Act, record: &KeyRecord, message: &str) -> Notice {
    let notice = Notice::new(act, "owner", "cli", message).about(&record.name);
    let notice = notice
        .detail("id", &record.id)
        .detail("role", record.role.word());
    match record.expires_ms {
        Some(expires_ms) => notice.detail("expires", &shown_day(expires_ms)),
        None => notice,
    }
}

fn run_add(
    keys: &Keys,
    store: &Store,
    add: &KeysAdd,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    if let Err(sentence) = key::check_name(&add.name) {
        bail!("{sentence}");
    }
    let mut all = keys.all()?.into_iter();
    if all.any(|record| record.name.eq_ignore_ascii_case(&add.name)) {
        return Err(taken(&add.name));
    }
    let role = match add.role {
        RoleWord::Agent => Role::Agent,
        RoleWord::Operator => Role::Operator,
    };
    let (record, secret) = mint(&add.name, role, add.expires)?;
    keep(keys, store, &record)?;
    show_once(&record, &secret, printer);
    Ok(Exit::Done)
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

/// A key that is not stored yet.
pub(crate) fn mint(
    name: &str,
    role: Role,
    days: Option<u32>,
) -> anyhow::Result<(KeyRecord, Secret)> {
    let id = key::id(random()?);
    let secret = key::key(&id, random()?);
    let now_ms = now_ms();
    let record = KeyRecord {
        id,
        name: name.to_owned(),
        role,
        digest: secret.digest(),
        created_ms: now_ms,
        expires_ms: days.map(|days| after(now_ms, days)),
    };
    Ok((record, secret))
}

/// Stores a key, after the audit has a notice about it.
pub(crate) fn keep(keys: &Keys, store: &Store, record: &KeyRecord) -> anyhow::Result<()> {
    let made = notice(Act::KeyMade, record, "a key was made");
    let written = store.audit().notice(made.clone());
    written.context("no key was created: it could not be recorded in the audit")?;
    let why = match keys.add(record) {
        Ok(Added::Yes) => return Ok(()),
        // Ids have forty random bits, so this practically never happens.
        Ok(Added::IdTaken) => anyhow!("the id of the key is taken; try again"),
        Ok(Added::NameTaken) => taken(&record.name),
        Ok(Added::TooMany) => anyhow!("there are too many keys; revoke some"),
        Err(fault) => fault.into(),
    };
    store.audit().notice(made.undone(&why.to_string()))?;
    Err(why)
}

fn taken(name: &str) -> anyhow::Error {
    anyhow!("`{name}` has a key already; `ringfence keys rotate {name}` replaces it")
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

fn run_revoke(
    keys: &Keys,
    store: impl FnOnce() -> Result<Store, StoreError>,
    name: &str,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let record = find(keys, name)?;
    keys.revoke(&record.name)?;
    let taken = notice(Act::KeyRevoked, &record, "a key was taken back");
    let written = store().and_then(|store| store.audit().notice(taken));
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

fn run_rotate(
    keys: &Keys,
    store: &Store,
    rotate: &KeysRotate,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let mut record = find(keys, &rotate.name)?;
    let secret = key::key(&record.id, random()?);
    let now_ms = now_ms();
    let lasted = |expires_ms: i64| expires_ms.saturating_sub(record.created_ms);
    record.expires_ms = match rotate.expires {
        Some(days) => Some(after(now_ms, days)),
        None => record
            .expires_ms
            .map(|expires_ms| now_ms.saturating_add(lasted(expires_ms))),
    };
    record.created_ms = now_ms;
    record.digest = secret.digest();
    let made = notice(
        Act::KeyReplaced,
        &record,
        "a key was put in the place of another",
    );
    let written = store.audit().notice(made.clone());
    written.context("no key was created: it could not be recorded in the audit")?;
    let digest = &record.digest;
    if !keys.replace(&record.name, digest, now_ms, record.expires_ms)? {
        store
            .audit()
            .notice(made.undone("the key was revoked just now"))?;
        bail!("`{}` was revoked just now", record.name);
    }
    show_once(&record, &secret, printer);
    Ok(Exit::Done)
}

fn find(keys: &Keys, name: &str) -> anyhow::Result<KeyRecord> {
    let records = keys.all()?;
    let found = records
        .iter()
        .find(|record| record.name.eq_ignore_ascii_case(name));
    found.cloned().with_context(|| {
        let known = records.iter().map(|record| record.name.as_str());
        let hint = nearest(name, known).map(|name| format!("; did you mean `{name}`?"));
        let shown = model::text::elided(name, key::NAME_CHARS_MAX);
        format!("there is no key of `{shown}`{}", hint.unwrap_or_default())
    })
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

fn after(now_ms: i64, days: u32) -> i64 {
    now_ms.saturating_add(i64::from(days).saturating_mul(DAY_MS))
}

/// `2026-01-31` of a moment, UTC.
fn shown_day(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map_or_else(
        |_| "-".to_owned(),
        |moment| moment.strftime("%F").to_string(),
    )
}
