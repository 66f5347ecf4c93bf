//! The commands of `ringfence audit` that are about signed heads and proofs.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use host::fetch::TlsTrust;
use model::record::audit::proof::LogProof;
use model::record::note::{NoteKey, SignedNote};
use model::record::ocsf::OcsfEvents;
use model::text::one_line;
use serde::Serialize;
use serde_json::json;
use store::gauge::log_read;
use store::{Audit, Expectation, Filter, FoundEntry, Store, is_signature_sound, verify_export};

use super::{nodes, read_head, show_export, shown_time};
use crate::arguments::{AuditProve, AuditVerify, AuditWitness};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::progress::Bar;
use crate::wiring::witness::PinnedWitness;
use crate::wiring::{self, outbound};

/// What `verify` is told to hold the log against.
pub(super) fn expectation(verify: &AuditVerify) -> anyhow::Result<Expectation> {
    Ok(Expectation {
        head: verify.head.as_deref().map(read_head).transpose()?,
        key: only_key(verify)?,
        checkpoints: checkpoints(verify)?,
    })
}

/// The heads that were kept elsewhere.
pub(super) fn checkpoints(verify: &AuditVerify) -> anyhow::Result<Vec<SignedNote>> {
    let mut checkpoints = Vec::new();
    for path in &verify.against.checkpoint {
        checkpoints.extend(read_notes(path)?);
    }
    Ok(checkpoints)
}

/// Verifies an export or proofs, if that is asked for.
pub(super) fn run_elsewhere(
    verify: &AuditVerify,
    printer: &mut Printer,
) -> anyhow::Result<Option<Exit>> {
    if !verify.against.nodes.is_empty() {
        return nodes::run(verify, printer).map(Some);
    }
    if verify.against.shipped {
        return nodes::run_shipped(verify, printer).map(Some);
    }
    if let Some(path) = &verify.against.file {
        let verified = verify_export(path, &expectation(verify)?)?;
        return Ok(Some(show_export(&verified, printer)));
    }
    let Some(path) = &verify.against.proof else {
        return Ok(None);
    };
    let key = only_key(verify)?.context("name a key")?;
    check_proofs(path, &key, printer).map(Some)
}

fn check_proofs(path: &Path, key: &NoteKey, printer: &mut Printer) -> anyhow::Result<Exit> {
    let text = read(path)?;
    let mut exit = Exit::Done;
    let mut results = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let proof: LogProof = serde_json::from_str(line)
            .with_context(|| format!("line {number} of `{}` is not a proof", path.display()))?;
        let about = match &proof {
            LogProof::Inclusion(proof) => format!("record {}", proof.record.sequence),
            LogProof::Growth(_) => "growth".to_owned(),
        };
        let checked = proof.check(key, &is_signature_sound);
        let (word, style, what) = match &checked {
            Ok(head) => {
                let what = format!("signed in a log of {} records", head.size);
                ("proved", Style::Good, what)
            }
            Err(fault) => {
                exit = Exit::No;
                ("broken", Style::Bad, one_line(&fault.to_string()))
            }
        };
        match printer.format() {
            Format::Json => results.push(json!({
                "about": about,
                "ok": checked.is_ok(),
                "what": what,
            })),
            Format::Human => {
                let word = printer.styled(style, word);
                printer.line(&format!("{word}  {about}: {what}"));
            }
        }
    }
    if printer.format() == Format::Json {
        printer.json(&json!({"ok": exit == Exit::Done, "proofs": results}));
    }
    Ok(exit)
}

/// Prints the public key, signing a first head if there is none.
pub(super) fn run_key(audit: &Audit, printer: &mut Printer) -> anyhow::Result<Exit> {
    if audit.public_key()?.is_none() {
        audit.sign()?;
    }
    let key = audit.public_key()?.context("this home has no key")?;
    match printer.format() {
        Format::Json => printer.json(&json!({"key": key.to_string()})),
        Format::Human => printer.line(&key.to_string()),
    }
    Ok(Exit::Done)
}

/// Prints the newest signed head.
pub(super) fn run_checkpoint(audit: &Audit, printer: &mut Printer) -> anyhow::Result<Exit> {
    audit.sign()?;
    let note = audit.signed_head()?.to_string();
    match printer.format() {
        Format::Json => printer.json(&json!({"checkpoint": note})),
        Format::Human => note.lines().for_each(|line| printer.line(line)),
    }
    Ok(Exit::Done)
}

/// Prints proofs, one per line.
pub(super) fn run_prove(
    audit: &Audit,
    prove: &AuditProve,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    audit.sign()?;
    let mut proofs = Vec::new();
    match (&prove.id, &prove.since) {
        (Some(id), _) => {
            let proved = audit.prove(&sequences(audit, id)?)?;
            proofs.extend(proved.into_iter().map(LogProof::Inclusion));
        }
        (None, Some(path)) => {
            for note in read_notes(path)? {
                proofs.push(LogProof::Growth(audit.prove_growth(&note)?));
            }
        }
        (None, None) => bail!("name a call, or a signed head with `--since`"),
    }
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(&proofs)?),
        Format::Human => proofs.iter().for_each(|proof| printer.json_record(proof)),
    }
    Ok(Exit::Done)
}

/// Shows the newest head to a witness, or what this home knows as one.
pub(super) fn run_witness(
    store: &Store,
    home: &Path,
    witness: &AuditWitness,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    if witness.list {
        return list_witnessed(store, printer);
    }
    if witness.key {
        let key = store.witnessed().key()?.to_string();
        match printer.format() {
            Format::Json => printer.json(&json!({"key": key})),
            Format::Human => printer.line(&key),
        }
        return Ok(Exit::Done);
    }
    let config = engine::registry::read_config(home)?.0;
    let address = witness.url.as_ref().or(config.audit.witness.as_ref());
    let address = address.context("name a witness, or set `audit.witness`")?;
    let address = address.trim_end_matches('/');
    let trust = TlsTrust::system(config.network.ca_file.map(|path| home.join(path)));
    let fetch = outbound::client("URL", address, &trust)?;
    store.audit().sign()?;
    let given = witness.witness_key.as_deref().map(read_key).transpose()?;
    let pinned = match (&given, &config.audit.witness_key) {
        (Some(key), _) => Some(PinnedWitness {
            key,
            named_by: "`--witness-key`",
        }),
        (None, Some(key)) => Some(PinnedWitness::of_settings(key)),
        (None, None) => None,
    };
    let shown = wiring::witness::show(store.audit(), &fetch, address, pinned);
    let cosigned = wiring::runtime()?.block_on(shown)?;
    let (size, by) = (cosigned.size, one_line(&cosigned.witness));
    match printer.format() {
        Format::Json => printer.json(&json!({"ok": true, "size": size, "witness": by})),
        Format::Human => printer.line(&format!("cosigned  {size} records, by {by}")),
    }
    Ok(Exit::Done)
}

fn list_witnessed(store: &Store, printer: &mut Printer) -> anyhow::Result<Exit> {
    let heads = store.witnessed().list()?;
    match printer.format() {
        Format::Json => {
            let heads = heads.iter().map(|head| {
                json!({
                    "log": head.origin,
                    "size": head.size,
                    "seenAtMs": head.seen_at.saturating_mul(1_000),
                    "checkpoint": head.note,
                })
            });
            printer.json(&heads.collect::<serde_json::Value>());
        }
        Format::Human => {
            for head in heads {
                let seen_ms = i64::try_from(head.seen_at.saturating_mul(1_000)).unwrap_or(0);
                printer.line(&format!(
                    "{}  {}  {} records",
                    shown_time(seen_ms),
                    one_line(&head.origin),
                    head.size
                ));
            }
        }
    }
    Ok(Exit::Done)
}

/// The records of a call or notice.
fn sequences(audit: &Audit, id: &str) -> anyhow::Result<Vec<u64>> {
    Ok(match audit.find(id)? {
        FoundEntry::None => bail!("no call has the id `{}`", one_line(id)),
        FoundEntry::Several(ids) => bail!("several calls have this prefix: {}", ids.join(", ")),
        FoundEntry::Notice(notice) => vec![notice.sequence],
        FoundEntry::One(entry) => {
            let closed = entry.closed_sequence;
            std::iter::once(entry.sequence).chain(closed).collect()
        }
    })
}

/// Exports records with everything that it takes to check them.
pub(super) fn export_proofs(
    audit: &Audit,
    filter: &Filter,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    audit.sign()?;
    let mut lines = Lines::begin(printer);
    audit.export_proved(filter, &mut |line| lines.write(&line.json()))?;
    lines.end();
    Ok(Exit::Done)
}

/// Exports events for systems that collect them.
pub(super) fn export_ocsf(
    audit: &Audit,
    filter: &Filter,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let mut events = OcsfEvents::new(env!("CARGO_PKG_VERSION"));
    let mut lines = Lines::begin(printer);
    audit.export(filter, &mut |record| match events.step(record) {
        Some(event) => lines.write(&event),
        None => Ok(()),
    })?;
    lines.end();
    Ok(Exit::Done)
}

/// Values, one per line; with `--json`, which promises one value, in an array.
struct Lines<'a> {
    printer: &'a mut Printer,
    written: u64,
    _bar: Bar,
}

impl<'a> Lines<'a> {
    fn begin(printer: &'a mut Printer) -> Lines<'a> {
        let _bar = Bar::measured("export the audit", log_read, printer.format());
        if printer.format() == Format::Json {
            printer.json_text("[");
        }
        Lines {
            printer,
            written: 0,
            _bar,
        }
    }

    fn write(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        if self.printer.format() == Format::Json && self.written > 0 {
            self.printer.json_text(",");
        }
        self.written += 1;
        self.printer.json_record(value);
        self.printer.emit_much()
    }

    fn end(self) {
        if self.printer.format() == Format::Json {
            self.printer.json_text("]");
        }
    }
}

/// The key of the one log that is verified.
fn only_key(verify: &AuditVerify) -> anyhow::Result<Option<NoteKey>> {
    match verify.against.key.as_slice() {
        [] => Ok(None),
        [key] => read_key(key).map(Some),
        _ => bail!("several keys are for several nodes; name those with `--nodes`"),
    }
}

pub(super) fn read_key(text: &str) -> anyhow::Result<NoteKey> {
    text.trim().parse().map_err(anyhow::Error::new)
}

/// The signed heads of a file: one, or a history of them.
fn read_notes(path: &Path) -> anyhow::Result<Vec<SignedNote>> {
    let text = read(path)?;
    let about = || format!("`{}` is not a signed head", path.display());
    if let Ok(note) = text.parse() {
        return Ok(vec![note]);
    }
    let notes = store::read_heads(path).with_context(about)?;
    match notes.is_empty() {
        true => bail!(about()),
        false => Ok(notes),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
