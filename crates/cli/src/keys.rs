//! `ringfence keys`: who may come to the doors, and with what. A key is shown once,
//! when it is made; only its digest is kept.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use mcp::gate::local::random;
use model::key::{self, KeyRecord, Role, Secret};
use model::nearest::nearest;
use serde_json::{Value, json};
use store::Keys;
use store::keys::Added;

use crate::arguments::Home;
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::wiring;

/// Days a key may be given.
const DAYS_MAX: u32 = 3_650;
/// Ids tried for one key; forty random bits are hardly ever taken twice.
const ID_ATTEMPTS_MAX: usize = 8;
const DAY_MS: i64 = 24 * 3600 * 1_000;

#[derive(Debug, Args)]
pub(crate) struct KeysArguments {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key for a caller and show it, once
    Add(Add),
    /// List keys: for whom, what for, until when
    List(Home),
    /// Take a key back, from the next request on
    Revoke(Name),
    /// Make another in the place of a key and show it, once
    Rotate(Rotate),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// What rules and the audit call the caller
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it is for: agents call tools, operators answer questions
    #[arg(long, value_name = "ROLE", default_value = "agent")]
    pub(crate) role: RoleWord,
    /// Days until it stops counting; never, if left out
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    pub(crate) expires: Option<u32>,
    #[command(flatten)]
    pub(crate) home: Home,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// The caller
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) home: Home,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// The caller
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Days until it stops counting; as many as before, if left out
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    pub(crate) expires: Option<u32>,
    #[command(flatten)]
    pub(crate) home: Home,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleWord {
    Agent,
    Operator,
}

impl KeysArguments {
    pub(crate) fn home(&self) -> &Home {
        match &self.command {
            KeysCommand::Add(add) => &add.home,
            KeysCommand::List(home) => home,
            KeysCommand::Revoke(name) => &name.home,
            KeysCommand::Rotate(rotate) => &rotate.home,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &KeysArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(arguments.home())?;
    let keys = Keys::open(&home)?;
    match &arguments.command {
        KeysCommand::Add(add) => run_add(&keys, add, printer),
        KeysCommand::List(_) => run_list(&keys, printer),
        KeysCommand::Revoke(name) => run_revoke(&keys, &name.name, printer),
        KeysCommand::Rotate(rotate) => run_rotate(&keys, rotate, printer),
    }
}

fn run_add(keys: &Keys, add: &Add, printer: &mut Printer) -> anyhow::Result<Exit> {
    if let Err(sentence) = key::check_name(&add.name) {
        bail!("{sentence}");
    }
    let now_ms = now_ms();
    for _ in 0..ID_ATTEMPTS_MAX {
        let id = key::id(random()?);
        let secret = key::key(&id, random()?);
        let record = KeyRecord {
            id,
            name: add.name.clone(),
            role: match add.role {
                RoleWord::Agent => Role::Agent,
                RoleWord::Operator => Role::Operator,
            },
            digest: secret.digest(),
            created_ms: now_ms,
            expires_ms: add.expires.map(|days| after(now_ms, days)),
        };
        match keys.add(&record)? {
            Added::Yes => {
                show_once(&record, &secret, printer);
                return Ok(Exit::Done);
            }
            Added::IdTaken => {}
            Added::NameTaken => bail!(
                "`{}` has a key already; `ringfence keys rotate {0}` makes another in its place",
                add.name
            ),
            Added::TooMany => bail!("there are too many keys; revoke some"),
        }
    }
    bail!("no free id was found for the key; try again")
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
        printer.note("no keys; `ringfence keys add NAME` makes one");
    }
    Ok(Exit::Done)
}

fn run_revoke(keys: &Keys, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let record = find(keys, name)?;
    keys.revoke(&record.name)?;
    match printer.format() {
        Format::Json => printer.json(&json!({"name": record.name, "revoked": true})),
        Format::Human => printer.line(&format!("{}  revoked", record.name)),
    }
    Ok(Exit::Done)
}

fn run_rotate(keys: &Keys, rotate: &Rotate, printer: &mut Printer) -> anyhow::Result<Exit> {
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
    let digest = &record.digest;
    if !keys.replace(&record.name, digest, now_ms, record.expires_ms)? {
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

/// The one time a key is seen.
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

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// `2026-01-31` of a moment, UTC.
fn shown_day(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map_or_else(
        |_| "-".to_owned(),
        |moment| moment.strftime("%F").to_string(),
    )
}
