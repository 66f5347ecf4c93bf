//! A bounded number of sessions. Whoever finds none free waits for one, for a bounded time.
//! After a connection failed, everyone is refused at once until the watch got through: a
//! server whose store is gone says so and does not pile up callers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::sync::lock;
use tokio::runtime::Handle;

use crate::error::{SqlError, SqlResult};
use crate::limit;
use crate::postgres::address::Address;
use crate::postgres::park::wait_until;
use crate::postgres::session::Session;

/// Sessions with one database.
#[derive(Debug)]
pub(crate) struct SessionPool {
    address: Address,
    runtime: Handle,
    state: Mutex<PoolState>,
    returned: Condvar,
    is_down: AtomicBool,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<Session>,
    made: usize,
    why_down: String,
}

impl SessionPool {
    pub(super) fn new(address: Address, runtime: Handle) -> SessionPool {
        SessionPool {
            address,
            runtime,
            state: Mutex::default(),
            returned: Condvar::new(),
            is_down: AtomicBool::new(false),
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Works with a free session, or with a new one if there may be another.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Session) -> SqlResult<T>) -> SqlResult<T> {
        let session = self.session()?;
        session.start_clock();
        let done = work(&session);
        self.take_back(session);
        done
    }

    fn session(&self) -> SqlResult<Session> {
        let until = Instant::now() + Duration::from_millis(limit::SHARED_WAIT_MS_MAX);
        let mut state = lock(&self.state);
        loop {
            if self.is_down.load(Ordering::Acquire) {
                return Err(SqlError::Unavailable(state.why_down.clone()));
            }
            while let Some(session) = state.idle.pop() {
                if session.is_sound() {
                    return Ok(session);
                }
                state.made = state.made.saturating_sub(1);
            }
            if state.made < self.address.connections() {
                // Counted before it is made: that happens without the lock, and several threads
                // would make one too many.
                state.made += 1;
                drop(state);
                return self.make();
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                let message = "all connections are in use".to_owned();
                return Err(SqlError::Unavailable(message));
            };
            let waited = self.returned.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn make(&self) -> SqlResult<Session> {
        let until = Instant::now() + Duration::from_millis(limit::SHARED_CONNECT_MS_MAX);
        let address = self.address.clone();
        let runtime = self.runtime.clone();
        let connecting = self
            .runtime
            .spawn(async move { address.connect(&runtime).await });
        let abort = connecting.abort_handle();
        let why = match wait_until(until, connecting) {
            Some(Ok(Ok((client, driver)))) => {
                return Ok(Session::new(client, driver));
            }
            Some(Ok(Err(why))) => why,
            Some(Err(error)) => error.to_string(),
            None => {
                abort.abort();
                let wait = limit::SHARED_CONNECT_MS_MAX;
                format!("no connection within {wait} ms")
            }
        };
        let mut state = lock(&self.state);
        state.made = state.made.saturating_sub(1);
        drop(state);
        self.returned.notify_one();
        self.set_down(why.clone());
        Err(SqlError::Unavailable(why))
    }

    /// The database is down: every query fails at once, and idle connections are closed.
    pub(super) fn set_down(&self, why: String) {
        let mut state = lock(&self.state);
        state.why_down = why;
        let closed = std::mem::take(&mut state.idle);
        state.made = state.made.saturating_sub(closed.len());
        // Under the lock, so that no thread sees the database up and begins to wait after the
        // notification.
        self.is_down.store(true, Ordering::Release);
        drop(state);
        drop(closed);
        self.returned.notify_all();
    }

    /// The database answers.
    pub(super) fn set_up(&self) {
        self.is_down.store(false, Ordering::Release);
    }

    fn take_back(&self, session: Session) {
        let is_sound = session.is_sound();
        let mut state = lock(&self.state);
        match is_sound && !self.is_down.load(Ordering::Acquire) {
            true => state.idle.push(session),
            false => state.made = state.made.saturating_sub(1),
        }
        drop(state);
        self.returned.notify_one();
        if !is_sound {
            // Others of that time may be dead too, and the watch finds out.
            self.set_down("a connection was lost".to_owned());
        }
    }
}
