//! Tells clients when the tools they see have changed.
//!
//! One look at the registry for all of them, twice a second, and only while
//! somebody listens. Each listener is told only if its own list is another one
//! than it was: what is hidden from a caller makes no noise for that caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::Engine;
use futures_util::future::join_all;
use model::caller::Caller;
use model::document::digest;
use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionSink};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Door, limit, tool};

/// Who is told.
#[derive(Debug, Default)]
pub(crate) struct News {
    listeners: Mutex<Listeners>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Listeners {
    next: u64,
    all: HashMap<u64, Listener>,
}

#[derive(Clone, Debug)]
struct Listener {
    caller: Caller,
    to: To,
    /// The digest of the list it was last told about.
    seen: String,
}

/// The way to a listener.
#[derive(Clone, Debug)]
pub(crate) enum To {
    /// A session.
    Peer(Peer<RoleServer>),
    /// A stream that waits for news.
    Sink(SubscriptionSink),
}

impl To {
    fn is_gone(&self) -> bool {
        match self {
            To::Peer(peer) => peer.is_transport_closed(),
            // Its own task takes it off the list.
            To::Sink(_) => false,
        }
    }

    /// Whether it is still there.
    async fn tell(&self) -> bool {
        let bound = Duration::from_secs(limit::NEWS_SECONDS_MAX);
        let told = match self {
            To::Peer(peer) => timeout(bound, peer.notify_tool_list_changed())
                .await
                .map(|told| told.is_ok()),
            To::Sink(sink) => timeout(bound, sink.notify_tool_list_changed())
                .await
                .map(|told| told.is_ok()),
        };
        // A slow reader is told again next time; a closed one is not.
        told.unwrap_or(true)
    }
}

impl News {
    /// Adds a listener. Nothing if there are too many.
    pub(crate) fn add(&self, engine: &Engine, caller: Caller, to: To, most: u64) -> Option<u64> {
        let seen = list_digest(engine, &caller);
        let mut listeners = self.lock();
        listeners.all.retain(|_, listener| !listener.to.is_gone());
        if u64::try_from(listeners.all.len()).unwrap_or(u64::MAX) >= most {
            return None;
        }
        let id = listeners.next;
        listeners.next += 1;
        listeners.all.insert(id, Listener { caller, to, seen });
        drop(listeners);
        self.arrived.notify_one();
        Some(id)
    }

    /// Takes a listener off the list.
    pub(crate) fn remove(&self, id: u64) {
        self.lock().all.remove(&id);
    }

    /// How many there are.
    pub(crate) fn listeners(&self) -> usize {
        self.lock().all.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Listeners> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Everybody whose list is another one now, marked as told. Who went away is
    /// forgotten.
    fn due(&self, engine: &Engine) -> Vec<(u64, To)> {
        let callers: Vec<_> = {
            let mut listeners = self.lock();
            listeners.all.retain(|_, listener| !listener.to.is_gone());
            let callers = listeners.all.values();
            callers.map(|listener| listener.caller.clone()).collect()
        };
        // Lists are made outside the lock, one for each caller.
        let mut lists = HashMap::new();
        for caller in callers {
            lists
                .entry(caller)
                .or_insert_with_key(|caller| list_digest(engine, caller));
        }
        let mut due = Vec::new();
        for (id, listener) in &mut self.lock().all {
            match lists.get(&listener.caller) {
                Some(list) if *list != listener.seen => {
                    listener.seen.clone_from(list);
                    due.push((*id, listener.to.clone()));
                }
                Some(_) | None => {}
            }
        }
        due
    }
}

/// Looks for changes until the door closes.
pub(crate) async fn watch(door: Door, ended: CancellationToken) {
    let inner = Arc::clone(&door.inner);
    let watching = async {
        let mut known = inner.engine.registry().current();
        let mut looks: u32 = 0;
        loop {
            if inner.news.listeners() == 0 {
                inner.news.arrived.notified().await;
            }
            // The pause is what makes one message out of many changes.
            tokio::time::sleep(Duration::from_millis(limit::NEWS_EVERY_MS)).await;
            let now = inner.engine.registry().current();
            looks = looks.wrapping_add(1);
            // Variables are no part of the registry, so that even where nothing
            // changed lists are compared now and then.
            if Arc::ptr_eq(&now, &known) && !looks.is_multiple_of(limit::NEWS_LOOKS_MAX) {
                continue;
            }
            known = now;
            let due = inner.news.due(&inner.engine);
            let told = join_all(due.iter().map(|(_, to)| to.tell())).await;
            let gone = due.iter().zip(told).filter(|(_, told)| !told);
            gone.for_each(|((id, _), _)| inner.news.remove(*id));
        }
    };
    tokio::select! {
        () = watching => {}
        () = ended.cancelled() => {}
    }
}

/// The digest of what a caller sees.
fn list_digest(engine: &Engine, caller: &Caller) -> String {
    let offered = engine.listed(caller);
    let tools: Vec<_> = offered.iter().map(tool::shown).collect();
    let value = serde_json::to_value(tools).unwrap_or(Value::Null);
    digest::of_value(&value).unwrap_or_default()
}
