//! `ringfence unwrap`: the client's file as it was, byte for byte.

use std::path::Path;

use anyhow::{Context as _, bail};
use model::document::digest;
use model::text::{count, one_line};
use serde_json::{Value, json};
use store::Keys;

use super::record::WrapRecord;
use super::target::ClientFile;
use super::{agreed, file};
use crate::arguments::UnwrapArguments;
use crate::commands::connect::{self, NAME, identity, splice};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};
use crate::wiring;

/// Differences that are shown.
const DIFFERENCES_MAX: usize = 20;
/// How deep a difference is looked for.
const DEPTH_MAX: usize = 4;

pub(crate) fn run(arguments: &UnwrapArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&arguments.home)?;
    let record = find(&home, arguments.target.as_deref())?;
    let shown = record.file.display();
    let backup = connect::read(&record.backup)?;
    // A copy that was changed since is not what `unwrap` promises to restore.
    let backup = backup.filter(|text| digest::of_text(text) == record.old_digest);
    let Some(backup) = backup else {
        bail!(
            "`{}` is not the file that was kept, so `{shown}` stays as it is",
            record.backup.display()
        );
    };
    let current = connect::read(&record.file)?;
    let now = current.as_deref().map(digest::of_text);
    let is_changed = ![&record.new_digest, &record.old_digest]
        .into_iter()
        .any(|known| now.as_ref() == Some(known));
    if is_changed {
        printer.note(&format!("`{shown}` changed since it was wrapped:"));
        for line in differences(&record, &backup, current.as_deref()) {
            printer.note(&format!("  {}", one_line(&line)));
        }
        if !arguments.force {
            printer.note("restoring it loses that; use `--force`, or change the file by hand");
            return Ok(Exit::No);
        }
    }
    if !arguments.yes && !agreed("restore", &record.file)? {
        printer.note("nothing was changed");
        return Ok(Exit::No);
    }
    // The file first: if this ends in between, the client has its servers again, and the
    // command can be repeated.
    if now.as_ref() != Some(&record.old_digest) {
        file::replace(&record.file, backup.as_bytes(), record.mode)?;
    }
    // After the file: until then the client still needs its key.
    revoke(&home, &record)?;
    record.forget(&home)?;
    // Last of all, so that a run that ends early can be repeated.
    file::remove(&record.backup)?;
    say(&record, printer);
    Ok(Exit::Done)
}

fn say(record: &WrapRecord, printer: &mut Printer) {
    let shown = record.file.display();
    if printer.format() == Format::Json {
        printer.json(&json!({
            "file": shown.to_string(),
            "restored": true,
            "servers": record.servers,
            "secrets": record.secrets,
        }));
        return;
    }
    printer.line(&format!("{shown}  as it was; restart the client"));
    if let Some(caller) = &record.caller {
        printer.note(&format!("revoked the key of `{caller}`"));
    }
    if !record.servers.is_empty() {
        printer.note(&format!(
            "{} in the settings of Ringfence: {}; `ringfence servers remove` takes one out",
            stay(record.servers.len(), "server"),
            record.servers.join(", ")
        ));
    }
    if !record.secrets.is_empty() {
        printer.note(&format!(
            "{} in secrets.env: {}",
            stay(record.secrets.len(), "secret"),
            record.secrets.join(", ")
        ));
    }
}

fn stay(number: usize, noun: &str) -> String {
    let verb = if number == 1 { "stays" } else { "stay" };
    format!("{} {verb}", count(number, noun))
}

fn find(home: &Path, target: Option<&str>) -> anyhow::Result<WrapRecord> {
    if let Some(word) = target {
        let file = ClientFile::find(word)?;
        let record = WrapRecord::of(home, &file.path)?;
        return record.with_context(|| format!("`{}` is not wrapped", file.path.display()));
    }
    let mut all = WrapRecord::all(home)?;
    match (all.len(), all.pop()) {
        (1, Some(record)) => Ok(record),
        (_, None) => bail!("nothing is wrapped"),
        (_, Some(last)) => {
            all.push(last);
            let files: Vec<_> = all
                .iter()
                .map(|record| record.file.display().to_string())
                .collect();
            bail!("name one of the wrapped files: {}", files.join(", "))
        }
    }
}

/// Revokes the key that was created for the client.
pub(super) fn revoke(home: &Path, record: &WrapRecord) -> anyhow::Result<()> {
    let Some(caller) = &record.caller else {
        return Ok(());
    };
    let known = Keys::open(home)?.all()?;
    match known.iter().find(|known| known.name == *caller) {
        Some(known) => identity::revoke(home, known),
        None => Ok(()),
    }
}

/// What differs from the file that `wrap` wrote, by place. Values are not shown: they may
/// be the secrets of other servers.
fn differences(record: &WrapRecord, backup: &str, current: Option<&str>) -> Vec<String> {
    let Some(current) = current else {
        return vec!["it is gone".to_owned()];
    };
    let (Ok(mut expected), Ok(mut found)) = (splice::value(backup), splice::value(current)) else {
        return vec!["it is not plain JSON any more".to_owned()];
    };
    for (value, names) in [(&mut expected, record.taken.as_slice()), (&mut found, &[])] {
        let section = value
            .get_mut(&record.section)
            .and_then(Value::as_object_mut);
        let Some(section) = section else {
            continue;
        };
        for name in names.iter().map(String::as_str).chain([NAME]) {
            section.shift_remove(name);
        }
    }
    let mut lines = Vec::new();
    compare("", &expected, &found, 0, &mut lines);
    if lines.is_empty() {
        // The entry of ours, or white space.
        lines.push(format!("{}.{NAME}, or how it is written", record.section));
    }
    lines
}

fn compare(path: &str, old: &Value, new: &Value, depth: usize, lines: &mut Vec<String>) {
    if old == new || lines.len() >= DIFFERENCES_MAX {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        lines.push(format!("{path}: changed"));
        return;
    };
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in added.take(DIFFERENCES_MAX) {
        lines.push(format!("{}: added", below(key)));
    }
    for (key, old) in old {
        match new.get(key) {
            None => lines.push(format!("{}: removed", below(key))),
            Some(new) if depth < DEPTH_MAX => compare(&below(key), old, new, depth + 1, lines),
            Some(new) if old == new => {}
            Some(_) => lines.push(format!("{}: changed", below(key))),
        }
    }
    lines.truncate(DIFFERENCES_MAX);
}
