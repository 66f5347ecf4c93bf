//! Shipping: the records of this log are copied to a Postgres that all nodes share, in
//! batches, so that lists and filters work across nodes and a lost node loses little.
//!
//! The log on the disk stays the truth. A record is copied after it is on the disk, and
//! may be removed here only after the database acknowledged it.

/// The tables of records and heads in Postgres.
pub(crate) mod database;
/// Reading what was shipped.
mod list;

use std::sync::Arc;
use std::time::Instant;

use model::record::audit::chain::Head;
use model::record::note::TreeHead;

pub use database::ShipDatabase;
pub use list::{NodeItem, ShippedLog};

use crate::audit::shipped::ShipStatus;
use crate::error::StoreError;
use crate::limit;
use crate::store::Store;

/// Copies the records of one log.
#[derive(Debug)]
pub struct Shipper {
    store: Store,
    database: Arc<ShipDatabase>,
    /// The last record the database acknowledged; asked for before the first batch.
    shipped: Option<u64>,
    /// When nothing was waiting, last.
    whole_at: Instant,
}

impl Shipper {
    /// A shipper for the log of a store. From now on, nothing is removed that was not
    /// acknowledged.
    pub fn new(store: &Store, database: Arc<ShipDatabase>) -> Result<Shipper, StoreError> {
        store.audit().begin_shipping()?;
        Ok(Shipper {
            store: store.clone(),
            database,
            shipped: None,
            whole_at: Instant::now(),
        })
    }

    /// Copies one batch. Returns whether more waits.
    pub async fn step(&mut self) -> Result<bool, StoreError> {
        let done = self.try_step().await;
        if done.is_err() {
            // The database says again how far it is.
            self.shipped = None;
        }
        let shipped = self.shipped;
        let waiting = match &done {
            Ok(waiting) => *waiting,
            Err(_) => self.store.audit().shipping().waiting.max(1),
        };
        if waiting == 0 {
            self.whole_at = Instant::now();
        }
        let lag = self.whole_at.elapsed().as_millis();
        let before = self.store.audit().shipping().shipped;
        self.store.audit().note_shipping(ShipStatus {
            shipped: shipped.unwrap_or(before),
            waiting,
            lag_ms: match waiting {
                0 => 0,
                _ => u64::try_from(lag).unwrap_or(u64::MAX),
            },
            fault: done.as_ref().err().map(ToString::to_string),
        });
        done.map(|waiting| waiting > 0)
    }

    /// Copies one batch. Returns how many records wait behind it.
    async fn try_step(&mut self) -> Result<u64, StoreError> {
        let store = self.store.clone();
        let key = run(move || store.audit().public_key()).await?;
        // A log without a key has no name yet; the first head makes one.
        // The name of the log is that of its key, and rows without it could
        // not be told apart.
        let Some(key) = key else {
            return Ok(0);
        };
        let node = key.name().to_owned();
        let from = match self.shipped {
            Some(shipped) => shipped,
            None => self.resume(&node).await?,
        };
        let store = self.store.clone();
        let batch = run(move || store.audit().unshipped(from)).await?;
        let Some(last) = batch.records.last().map(|record| record.sequence) else {
            self.shipped = Some(from);
            return Ok(batch.waiting);
        };
        self.database.ship(&node, &batch.records).await?;
        // Before it is written down here: asking again for what is there costs little, and
        // missing it would not.
        self.shipped = Some(last);
        let store = self.store.clone();
        run(move || store.audit().acknowledge_shipped(last)).await?;
        Ok(batch.waiting)
    }

    /// Asks the database how far it is, and whether that is this log.
    async fn resume(&self, node: &str) -> Result<u64, StoreError> {
        let there: Option<Head> = self.database.last(node).await?;
        let Some(there) = there else {
            return Ok(0);
        };
        let store = self.store.clone();
        // By hash: a database that holds other records under our name is
        // evidence, not a start.
        let own = run(move || store.audit().head_of(there.sequence)).await?;
        match own {
            Some(own) if own != there => Err(contradiction(format!(
                "record {} in the database is not the one of this log: one of them was changed",
                there.sequence
            ))),
            Some(_) => Ok(there.sequence),
            None => {
                let store = self.store.clone();
                let end = run(move || store.audit().head()).await?;
                match end.sequence < there.sequence {
                    true => Err(contradiction(format!(
                        "the log ends with record {}, but record {} was shipped: its end was cut \
                         off",
                        end.sequence, there.sequence
                    ))),
                    // Removed here after it was acknowledged.
                    false => Ok(there.sequence),
                }
            }
        }
    }
}

/// Holds a head of this log that was published before against the one that follows it.
pub(crate) fn check_published(
    there: &TreeHead,
    head: &TreeHead,
    place: &str,
) -> Result<(), StoreError> {
    let (size, known) = (head.size, there.size);
    // A fork that the owner acknowledged is signed as one, and may be shorter.
    if known > size && head.fork.is_none() {
        return Err(contradiction(format!(
            "`{place}` holds a head of this log over {known} records, but the log has {size}: it \
             was rolled back, or another one signs with its key"
        )));
    }
    if known == size && there.root != head.root {
        return Err(contradiction(format!(
            "`{place}` holds another head of this log over {size} records: it was forked, or \
             another one signs with its key"
        )));
    }
    Ok(())
}

fn contradiction(what: String) -> StoreError {
    StoreError::Unsigned { what }
}

async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::Closed)?
}

/// How long a batch may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(limit::SHIP_MS_MAX);
