//! Shipping: the records of this log are copied to a Postgres that all nodes share, in
//! batches, so that lists and filters work across nodes and a lost node loses little.
//!
//! The log on the disk stays the truth. A record is copied after it is on the disk, and
//! may be removed here only after the database acknowledged it.

/// The tables of records and heads in Postgres.
pub(crate) mod database;
/// How long records wait.
mod lag;
/// Reading what was shipped.
mod list;
/// Records as rows.
mod rows;

use std::sync::Arc;
use std::time::Instant;

use model::record::audit::chain::Head;
use model::record::note::TreeHead;
use tokio::task::JoinHandle;

pub use database::ShipDatabase;
pub use list::{NodeItem, ShippedLog};

use crate::audit::shipped::ShipStatus;
use crate::error::StoreError;
use crate::limit;
use crate::ship::lag::ShipLag;
use crate::ship::rows::ShippedRows;
use crate::store::Store;

/// Copies the records of one log.
#[derive(Debug)]
pub struct Shipper {
    store: Store,
    database: Arc<ShipDatabase>,
    /// The last record the database acknowledged; asked for before the first batch.
    shipped: Option<u64>,
    lag: ShipLag,
    /// The batch that is read while the database takes the one before.
    ahead: Option<JoinHandle<Result<ShipBatch, StoreError>>>,
}

/// Records behind the last one that was shipped.
#[derive(Debug)]
struct ShipBatch {
    node: String,
    /// The last of them; nothing if there are none.
    last: Option<u64>,
    rows: ShippedRows,
    /// Records behind them.
    waiting: u64,
    /// Where the log ended when they were read.
    end: u64,
    read_at: Instant,
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
            lag: ShipLag::new(),
            ahead: None,
        })
    }

    /// Copies one batch. Returns whether more waits.
    pub async fn step(&mut self) -> Result<bool, StoreError> {
        let done = self.try_step().await;
        if done.is_err() {
            // The database says again how far it is.
            self.shipped = None;
            self.ahead = None;
        }
        let shipped = self.shipped;
        let waiting = match &done {
            Ok(waiting) => *waiting,
            Err(_) => self.store.audit().shipping().waiting.max(1),
        };
        let lag = self.lag.oldest(Instant::now()).as_millis();
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
        let Some(batch) = self.next_batch().await? else {
            return Ok(0);
        };
        self.lag.look(batch.end, batch.read_at);
        let Some(last) = batch.last else {
            return Ok(batch.waiting);
        };
        // The database and this side work at the same time. There is one batch ahead at most.
        let ahead = (batch.waiting > 0).then(|| {
            let (store, node) = (self.store.clone(), batch.node);
            tokio::task::spawn_blocking(move || read(&store, node, last))
        });
        self.database.ship(batch.rows).await?;
        // Before it is written down here: asking again for what is there costs little, and
        // missing it would not.
        self.shipped = Some(last);
        // Only now: a step that is given up in between begins with this batch again.
        self.ahead = ahead;
        self.lag.ship(last);
        let store = self.store.clone();
        run(move || store.audit().acknowledge_shipped(last)).await?;
        Ok(batch.waiting)
    }

    /// The batch that was read ahead, or one that is read now. Nothing before the log has a
    /// name.
    async fn next_batch(&mut self) -> Result<Option<ShipBatch>, StoreError> {
        if let Some(ahead) = self.ahead.take() {
            let batch = ahead.await.map_err(|_| StoreError::Closed)??;
            return Ok(Some(batch));
        }
        let store = self.store.clone();
        let key = run(move || store.audit().public_key()).await?;
        // A log without a key has no name yet; the first head makes one.
        // The name of the log is that of its key, and rows without it could
        // not be told apart.
        let Some(key) = key else {
            return Ok(None);
        };
        let node = key.name().to_owned();
        let from = match self.shipped {
            Some(shipped) => shipped,
            None => self.resume(&node).await?,
        };
        self.shipped = Some(from);
        let store = self.store.clone();
        run(move || read(&store, node, from)).await.map(Some)
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

/// Reads the records behind one.
fn read(store: &Store, node: String, from: u64) -> Result<ShipBatch, StoreError> {
    let read_at = Instant::now();
    let found = store.audit().unshipped(from)?;
    let last = found.records.last().map(|record| record.sequence);
    Ok(ShipBatch {
        rows: ShippedRows::of(&node, &found.records),
        end: last.unwrap_or(from).saturating_add(found.waiting),
        waiting: found.waiting,
        node,
        last,
        read_at,
    })
}

fn contradiction(what: String) -> StoreError {
    StoreError::Contradicted { what }
}

async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::Closed)?
}

/// How long a batch may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(limit::SHIP_MS_MAX);
