//! Shows the newest head of the log to a witness, and keeps its cosignature beside the
//! log. A witness that saw more than this log has means that the log was rolled back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use engine::{Alarm, Engine};
use host::fetch::{Fetch, TlsTrust};
use model::record::note::{NoteKey, NoteSignature, SignedNote};
use model::text::{elided, one_line};
use store::{Audit, is_signature_sound};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::wiring::outbound;

/// How often a server shows its head.
const EVERY: Duration = Duration::from_secs(60);
/// How often a witness is asked in a row when its answers change.
const ASKS_MAX: usize = 6;
/// Where a witness takes heads.
const ADD: &str = "add-checkpoint";

/// The answer of a witness.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cosigned {
    /// The records it cosigned.
    pub(crate) size: u64,
    /// Who it is.
    pub(crate) witness: String,
}

/// The only key whose cosignature counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedWitness<'a> {
    /// The key.
    pub(crate) key: &'a NoteKey,
    /// What names it, for the operator: a flag or a setting.
    pub(crate) named_by: &'static str,
}

impl<'a> PinnedWitness<'a> {
    /// The witness that `audit.witness_key` names.
    pub(crate) fn of_settings(key: &'a NoteKey) -> PinnedWitness<'a> {
        let named_by = "`audit.witness_key`";
        PinnedWitness { key, named_by }
    }
}

/// Shows the newest head to a witness, and keeps the cosignature beside the log.
pub(crate) async fn show(
    audit: &Audit,
    fetch: &Fetch,
    address: &str,
    pinned: Option<PinnedWitness<'_>>,
) -> anyhow::Result<Cosigned> {
    let old = on_disk(|| audit.witnessed_size())?;
    let (cosigned, note) = ask(audit, fetch, address, pinned, old).await?;
    on_disk(|| audit.keep_cosigned(&note))?;
    Ok(cosigned)
}

/// Asks a witness for a cosignature; `old` is how many records it is thought to have seen.
pub(super) async fn ask(
    audit: &Audit,
    fetch: &Fetch,
    address: &str,
    pinned: Option<PinnedWitness<'_>>,
    mut old: u64,
) -> anyhow::Result<(Cosigned, SignedNote)> {
    let url = format!("{address}/{ADD}");
    let mut is_overtaken = false;
    // The witness knows best what it saw. It may learn more between two questions: nodes of
    // one cluster share what they saw, and each is asked on its own.
    for _ in 0..ASKS_MAX {
        let request = on_disk(|| audit.witness_request(old))?;
        let size = request.note.head()?.size;
        let (status, answer) = outbound::post(fetch, &url, request.to_string()).await?;
        match status {
            200 => {
                let lines = answer.lines().map(str::parse);
                let signatures: Vec<NoteSignature> = lines
                    .collect::<Result<_, _>>()
                    .context("the answer of the witness is not a cosignature")?;
                let first = signatures
                    .first()
                    .context("the witness sent no cosignature")?;
                let witness = first.name.clone();
                let mut note = request.note;
                signatures.into_iter().for_each(|it| note.add(it));
                // Before anything is kept: a cosignature by another key
                // proves nothing here.
                if let Some(pinned) = pinned
                    && !pinned.key.has_signed(&note, &is_signature_sound)
                {
                    bail!(
                        "the cosignature is not by `{}`, the witness that {} names",
                        one_line(pinned.key.name()),
                        pinned.named_by
                    );
                }
                return Ok((Cosigned { size, witness }, note));
            }
            409 => {
                let seen = answer.trim().parse::<u64>();
                let seen = seen.context("the witness answered with no size")?;
                // Another task or process of this home may have shown a newer head meanwhile,
                // which is then beside the log.
                if seen > size && !is_overtaken {
                    is_overtaken = true;
                } else if seen > size {
                    bail!(
                        "the witness saw {seen} records, this log has {size}: the log was rolled \
                         back, or another one signs with its key"
                    );
                }
                old = seen;
            }
            status => {
                let answer = elided(&one_line(answer.trim()), 200);
                bail!("the witness answers {status}: {answer}");
            }
        }
    }
    bail!("the witness answers each time that it saw another number of records")
}

/// Does work that waits for the disk. Other tasks of a server's thread go on elsewhere
/// meanwhile; a command has none.
fn on_disk<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Shows the head of a server from time to time, while it runs. Each reason for a failure
/// is reported once.
pub(crate) async fn run(engine: Arc<Engine>, trust: TlsTrust, alarm: Alarm) {
    let mut told: Option<String> = None;
    loop {
        let config = engine.registry().current().config.clone();
        if let Some(address) = &config.audit.witness {
            let shown = match outbound::client("audit.witness", address, &trust) {
                Ok(fetch) => {
                    let key = config.audit.witness_key.as_ref();
                    let pinned = key.map(PinnedWitness::of_settings);
                    show(engine.store().audit(), &fetch, address, pinned).await
                }
                Err(error) => Err(error),
            };
            let fault = shown.err().map(|error| format!("{error:#}"));
            if let Some(fault) = fault.as_ref().filter(|fault| told.as_ref() != Some(fault)) {
                alarm.raise(&format!("the audit was not witnessed: {fault}"));
            }
            told = fault;
        }
        tokio::time::sleep(EVERY).await;
    }
}
