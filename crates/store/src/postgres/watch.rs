//! What other nodes changed, and which processes are alive. One connection listens, asks
//! once a second besides, and renews the leases of this process. While it fails, nothing
//! counts as known: every version is then read by the one who asks for it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use model::sync::lock;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Row};

use crate::clock;
use crate::error::{SqlError, StoreError, causes};
use crate::limit;
use crate::postgres::address::Address;
use crate::postgres::pool::SessionPool;

/// What changes by versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewsKind {
    Publications,
    Callers,
    Keys,
    Files,
}

const KINDS: usize = 4;

/// All versions and the database's clock in milliseconds, in one answer.
const READ_VERSIONS: &str = "SELECT (SELECT version FROM standing), \
    (SELECT version FROM callers_version), (SELECT version FROM keys_version), \
    (SELECT version FROM files_version), \
    CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

/// What is known of the shared database.
#[derive(Debug)]
pub(crate) struct News {
    is_strict: bool,
    versions: [AtomicU64; KINDS],
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// When the versions were last read.
    read_at: Option<Instant>,
    /// Our own processes, whose leases are renewed.
    own: Vec<Arc<str>>,
    /// Processes that had a lease when that was last asked, and when it was.
    living: BTreeSet<String>,
    living_at: Option<Instant>,
}

impl News {
    pub(super) fn new(is_strict: bool) -> News {
        News {
            is_strict,
            versions: std::array::from_fn(|_| AtomicU64::new(0)),
            known: Mutex::default(),
        }
    }

    /// A version that is at most a second old, or as new as this question if the settings
    /// say `strict`.
    pub(crate) fn version(&self, kind: NewsKind, pool: &SessionPool) -> Result<u64, StoreError> {
        let age_max = Duration::from_millis(limit::SHARED_NEWS_MS_MAX);
        let read_at = lock(&self.known).read_at;
        if self.is_strict || read_at.is_none_or(|at| at.elapsed() > age_max) {
            let asked = Instant::now();
            let rows = pool.with(|session| session.query(READ_VERSIONS, &[]));
            let rows = rows.map_err(StoreError::sql("read the versions of the shared store"))?;
            if let Some(row) = rows.first() {
                self.keep_versions(row, asked)
                    .map_err(SqlError::Postgres)
                    .map_err(StoreError::sql("read the versions of the shared store"))?;
            }
        }
        Ok(self.known(kind))
    }

    /// A version as it was last heard of.
    pub(crate) fn known(&self, kind: NewsKind) -> u64 {
        self.of(kind).load(Ordering::Acquire)
    }

    /// This process changed something; it holds here at once.
    pub(crate) fn raise(&self, kind: NewsKind, version: i64) {
        let version = u64::try_from(version).unwrap_or(0);
        self.of(kind).fetch_max(version, Ordering::AcqRel);
    }

    /// Whether a process had a lease within the last second. If not, it may have one.
    pub(crate) fn is_living(&self, process: &str) -> bool {
        let known = lock(&self.known);
        let age_max = Duration::from_millis(limit::SHARED_NEWS_MS_MAX);
        let is_fresh = known.living_at.is_some_and(|at| at.elapsed() <= age_max);
        !self.is_strict && is_fresh && known.living.contains(process)
    }

    fn keep_living(&self, living: BTreeSet<String>, asked: Instant) {
        let mut known = lock(&self.known);
        (known.living, known.living_at) = (living, Some(asked));
    }

    /// Nothing is known any more: the database does not answer.
    fn forget(&self) {
        let mut known = lock(&self.known);
        (known.read_at, known.living_at) = (None, None);
    }

    fn of(&self, kind: NewsKind) -> &AtomicU64 {
        let [publications, callers, keys, files] = &self.versions;
        match kind {
            NewsKind::Publications => publications,
            NewsKind::Callers => callers,
            NewsKind::Keys => keys,
            NewsKind::Files => files,
        }
    }

    fn keep_versions(&self, row: &Row, asked: Instant) -> Result<(), tokio_postgres::Error> {
        self.raise(NewsKind::Publications, row.try_get(0)?);
        self.raise(NewsKind::Callers, row.try_get(1)?);
        self.raise(NewsKind::Keys, row.try_get(2)?);
        self.raise(NewsKind::Files, row.try_get(3)?);
        clock::follow(row.try_get(4)?, asked.elapsed());
        let mut known = lock(&self.known);
        known.read_at = known.read_at.max(Some(asked));
        Ok(())
    }

    /// Takes part: from now on this process has a lease.
    pub(crate) fn join(&self, process: &Arc<str>, pool: &SessionPool) -> Result<(), StoreError> {
        let joined = pool.with(|session| session.execute(RENEW, &[&&**process, &lease_seconds()]));
        joined.map_err(StoreError::sql("join the cluster"))?;
        lock(&self.known).own.push(Arc::clone(process));
        Ok(())
    }

    /// Takes part no more. If that cannot be written, the lease expires.
    pub(crate) fn leave(&self, process: &str, pool: &SessionPool) {
        lock(&self.known).own.retain(|own| **own != *process);
        let _ = pool.with(|session| {
            let sql = "DELETE FROM processes WHERE id = ?1";
            session.execute(sql, &[&process])
        });
    }
}

/// Makes or renews a lease by the database's clock. Those that ended long ago are forgotten
/// by the watch.
const RENEW: &str = "INSERT INTO processes (id, expires) \
    VALUES (?1, clock_timestamp() + ?2 * interval '1 second') \
    ON CONFLICT (id) DO UPDATE SET expires = clock_timestamp() + ?2 * interval '1 second'";

/// Renews a lease that is there.
const RENEW_ONLY: &str = "UPDATE processes \
    SET expires = clock_timestamp() + $2 * interval '1 second' WHERE id = $1";

/// The processes that take part.
const READ_LIVING: &str = "SELECT id FROM processes WHERE expires > clock_timestamp() LIMIT $1";

fn most_processes() -> i64 {
    i64::try_from(limit::PROCESSES_MAX).unwrap_or(i64::MAX)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a lease has few seconds; Postgres multiplies intervals by floats"
)]
fn lease_seconds() -> f64 {
    limit::SHARED_LEASE_S as f64
}

/// Wakes the watch: when the database says something, and when the connection ends.
struct Heard(Arc<Notify>);

impl Drop for Heard {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Keeps the news.
#[derive(Debug)]
pub(super) struct Watch {
    pool: Weak<SessionPool>,
    news: Weak<News>,
    heard: Arc<Notify>,
}

impl Watch {
    pub(super) fn new(pool: &Arc<SessionPool>, news: &Arc<News>) -> Watch {
        Watch {
            pool: Arc::downgrade(pool),
            news: Arc::downgrade(news),
            heard: Arc::new(Notify::new()),
        }
    }

    /// Runs until the cluster is closed.
    pub(super) async fn run(self) {
        let pause = Duration::from_millis(limit::SHARED_RETRY_MS);
        while let Some(address) = self.address() {
            let why = match self.connect(&address).await {
                Ok(client) => self.follow(&client).await,
                Err(why) => Err(why),
            };
            let (Err(why), Some(pool)) = (why, self.pool.upgrade()) else {
                return;
            };
            pool.set_down(why);
            drop(pool);
            if let Some(news) = self.news.upgrade() {
                news.forget();
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn address(&self) -> Option<Address> {
        Some(self.pool.upgrade()?.address().clone())
    }

    async fn connect(&self, address: &Address) -> Result<Client, String> {
        let heard = Heard(Arc::clone(&self.heard));
        let listener = move |message: AsyncMessage| {
            if matches!(message, AsyncMessage::Notification(_)) {
                heard.0.notify_one();
            }
        };
        let runtime = Handle::current();
        let (client, _) = address.connect_and_listen(&runtime, listener).await?;
        let listening = client.batch_execute("LISTEN ringfence_change").await;
        listening.map_err(|error| causes(&error))?;
        Ok(client)
    }

    /// Asks again and again. Ends well only when the cluster is closed.
    async fn follow(&self, client: &Client) -> Result<(), String> {
        let wait = Duration::from_millis(limit::SHARED_CONNECT_MS_MAX);
        let poll = Duration::from_millis(limit::SHARED_POLL_MS);
        let mut round: u64 = 0;
        loop {
            let (Some(news), Some(pool)) = (self.news.upgrade(), self.pool.upgrade()) else {
                return Ok(());
            };
            match timeout(wait, ask(client, (&news, &pool), round)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(causes(&error)),
                Err(_) => return Err(format!("no answer within {} ms", wait.as_millis())),
            }
            drop((news, pool));
            let _ = timeout(poll, self.heard.notified()).await;
            round += 1;
        }
    }
}

async fn ask(
    client: &Client,
    (news, pool): (&News, &SessionPool),
    round: u64,
) -> Result<(), tokio_postgres::Error> {
    let asked = Instant::now();
    let rows = client.query(READ_VERSIONS, &[]).await?;
    // First the way is open, then the news says so.
    pool.set_up();
    if let Some(row) = rows.first() {
        news.keep_versions(row, asked)?;
    }
    let own = lock(&news.known).own.clone();
    for process in own {
        let renewed = client
            .execute(RENEW_ONLY, &[&&*process, &lease_seconds()])
            .await?;
        // A process that left meanwhile must not come back.
        let is_own = |news: &News| lock(&news.known).own.contains(&process);
        if renewed == 0 && is_own(news) {
            let renew = RENEW.replace('?', "$");
            client
                .execute(&renew, &[&&*process, &lease_seconds()])
                .await?;
        }
    }
    let living = client.query(READ_LIVING, &[&most_processes()]).await?;
    let living = living.iter().map(|row| row.try_get(0));
    let living = living.collect::<Result<_, _>>()?;
    news.keep_living(living, asked);
    if round.is_multiple_of(limit::SHARED_FORGET_ROUNDS) {
        let sql = "DELETE FROM processes WHERE expires < clock_timestamp() - interval '1 hour'";
        client.execute(sql, &[]).await?;
    }
    Ok(())
}
