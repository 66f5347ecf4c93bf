//! A Postgres that several homes share. Decisions are there; evidence stays in each home.
//!
//! The rest of the store is synchronous, so a thread of its own drives the connections, and
//! whoever asks waits, never longer than a bound. While the database does not answer, every
//! question fails at once; the watch tries again and opens the way when it answers.

/// Where it is, and who we are there.
pub(crate) mod address;
/// Waiting for an answer, with a bound.
pub(crate) mod park;
/// A bounded number of sessions.
pub(crate) mod pool;
/// What the tables look like, and which version of that is there.
pub(crate) mod schema;
/// One connection and its prepared statements.
pub(crate) mod session;
/// Encryption of connections.
mod tls;
/// What other nodes changed, and which processes are alive.
pub(crate) mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use model::sync::lock;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::home::process;
use crate::postgres::address::Address;
use crate::postgres::pool::SessionPool;
use crate::postgres::watch::{News, Watch};

/// The clusters that this process has open, by home: its parts share connections.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Cluster>>> = Mutex::new(BTreeMap::new());

/// A Postgres that several homes share.
#[derive(Debug)]
pub(crate) struct Cluster {
    pool: Arc<SessionPool>,
    news: Arc<News>,
    /// Dropped to end the thread that drives the connections.
    _driver: oneshot::Sender<()>,
}

impl Cluster {
    /// The cluster a home belongs to, if its settings name one. Its schema is brought up to
    /// date.
    pub(crate) fn of(home: &Path) -> Result<Option<Arc<Cluster>>, StoreError> {
        let address = Address::of(home)?;
        let shown = address.as_ref().map(Address::shown);
        // Before a table is made or a row is read in the wrong place.
        process::check_store(home, shown.as_deref())?;
        let Some(address) = address else {
            return Ok(None);
        };
        let home = home
            .canonicalize()
            .map_err(|error| StoreError::file("find", home, error))?;
        let mut open = lock(&OPEN);
        if let Some(cluster) = open.get(&home).and_then(Weak::upgrade)
            && cluster.pool.address() == &address
        {
            return Ok(Some(cluster));
        }
        let cluster = Arc::new(Cluster::open(address)?);
        schema::prepare(&cluster.pool)?;
        // Only now: it reads tables that were not there before.
        let watch = Watch::new(&cluster.pool, &cluster.news);
        cluster.pool.runtime().spawn(watch.run());
        open.retain(|_, cluster| cluster.strong_count() > 0);
        open.insert(home, Arc::downgrade(&cluster));
        Ok(Some(cluster))
    }

    /// Connects, leaves the schema as it is, and watches nothing.
    pub(crate) fn open(address: Address) -> Result<Cluster, StoreError> {
        let (driver, runtime) = start_driver()?;
        let is_strict = address.is_strict();
        let pool = Arc::new(SessionPool::new(address, runtime));
        // Says at once why there is no way to the database.
        let reached = pool.with(|session| session.run_script("SELECT 1"));
        reached.map_err(StoreError::sql("open the shared store"))?;
        let news = Arc::new(News::new(is_strict));
        Ok(Cluster {
            pool,
            news,
            _driver: driver,
        })
    }

    pub(crate) fn pool(&self) -> &SessionPool {
        &self.pool
    }

    pub(crate) fn news(&self) -> &News {
        &self.news
    }
}

/// A thread that drives connections until the sender is dropped.
fn start_driver() -> Result<(oneshot::Sender<()>, Handle), StoreError> {
    let fail = |error| StoreError::file("start the connections of", "postgres", error);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(fail)?;
    let handle = runtime.handle().clone();
    let (driver, ended) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("store-postgres".to_owned());
    thread
        .spawn(move || {
            let _ = runtime.block_on(ended);
        })
        .map_err(fail)?;
    Ok((driver, handle))
}
