//! Connections that wait for the next request to the same origin: few, and not
//! for long.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use model::sync::lock;
use tokio::time::{Instant, sleep, timeout};
use url::Origin;

use crate::fetch::connection::Connection;

/// How long a connection may take to finish with its last reply.
const SETTLE: Duration = Duration::from_millis(100);

/// The unused connections of one client.
#[derive(Debug)]
pub(crate) struct IdlePool {
    kept: Mutex<Kept>,
    count_max: usize,
    idle: Duration,
}

#[derive(Debug, Default)]
struct Kept {
    connections: Vec<Unused>,
    is_swept: bool,
}

#[derive(Debug)]
struct Unused {
    origin: Origin,
    connection: Connection,
    since: Instant,
}

impl IdlePool {
    pub(crate) fn new(count_max: usize, idle: Duration) -> IdlePool {
        IdlePool {
            kept: Mutex::default(),
            count_max,
            idle,
        }
    }

    /// A connection to this origin that still works; the one used last, because
    /// the other side has had least time to close it. One that carries several
    /// requests at a time stays here as well.
    pub(crate) async fn take(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let mut connection = self.pick(origin)?;
            let is_ready = timeout(SETTLE, connection.ready()).await;
            if is_ready.is_ok_and(|ready| ready.is_ok()) {
                return Some(connection);
            }
        }
    }

    fn pick(&self, origin: &Origin) -> Option<Connection> {
        let mut kept = self.lock();
        let (idle, now) = (self.idle, Instant::now());
        kept.drop_old(idle, now);
        let fits = |unused: &Unused| unused.origin == *origin;
        let place = kept.connections.iter().rposition(fits)?;
        let unused = kept.connections.get_mut(place)?;
        // Its time begins again: a connection in use is not an idle one.
        if let Some(shared) = unused.connection.share() {
            unused.since = now;
            return Some(shared);
        }
        Some(kept.connections.swap_remove(place).connection)
    }

    /// Keeps a connection for the next request. The oldest goes if there are too many.
    pub(crate) fn give(self: &Arc<IdlePool>, origin: Origin, connection: Connection) {
        if connection.is_closed() || self.count_max == 0 {
            return;
        }
        let mut kept = self.lock();
        if kept.connections.len() >= self.count_max {
            kept.connections.remove(0);
        }
        kept.connections.push(Unused {
            origin,
            connection,
            since: Instant::now(),
        });
        if !kept.is_swept {
            kept.is_swept = true;
            // A weak reference, so that the sweep does not keep a client
            // alive that is gone.
            tokio::spawn(sweep(Arc::downgrade(self), self.idle));
        }
    }

    /// How many there are that work.
    pub(crate) fn count(&self) -> usize {
        let kept = self.lock();
        let open = kept.connections.iter();
        open.filter(|unused| !unused.connection.is_closed()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

impl Kept {
    fn drop_old(&mut self, idle: Duration, now: Instant) {
        self.connections.retain(|unused| {
            !unused.connection.is_closed() && now.duration_since(unused.since) < idle
        });
    }
}

/// Closes connections whose time is over, and ends with the last of them.
async fn sweep(pool: Weak<IdlePool>, idle: Duration) {
    loop {
        sleep(idle).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut kept = pool.lock();
        kept.drop_old(idle, Instant::now());
        if kept.connections.is_empty() {
            kept.is_swept = false;
            return;
        }
    }
}
