//! Tells clients when the tools they see have changed.
//!
//! The registry is looked at once for all of them, twice a second, and only while
//! a client listens. A listener is told only if its own list changed: a tool that is
//! hidden from a caller must not show by a notification either.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::Engine;
use engine::callable::ListStamp;
use futures_util::future::join_all;
use model::caller::Caller;
use model::document::digest;
use model::sync::lock;
use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionSendError, SubscriptionSink};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limit;
use crate::protocol::{item, tool};

/// The clients that are told.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    known: Mutex<Known>,
    /// Wakes the watcher, which sleeps while no client listens.
    added: Notify,
}

#[derive(Debug, Default)]
struct Known {
    next: u64,
    all: HashMap<u64, Listener>,
}

#[derive(Clone, Debug)]
struct Listener {
    caller: Caller,
    channel: ListenerChannel,
    /// The digests of the lists it was last told about.
    seen: ListDigests,
    /// Whether they were compared with the lists of a known stamp.
    is_compared: bool,
}

/// What the lists of each caller were made from when they were last compared.
type ListStamps = HashMap<Caller, ListStamp>;

/// The digests of a caller's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ListDigests {
    tools: String,
    prompts: String,
    resources: String,
}

/// Which lists changed.
#[derive(Clone, Copy, Debug)]
struct ChangedLists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

/// How a listener is reached.
#[derive(Clone, Debug)]
pub(crate) enum ListenerChannel {
    /// A legacy session.
    Peer(Peer<RoleServer>),
    /// The stream of a modern `subscriptions/listen`.
    Sink(SubscriptionSink),
}

impl ListenerChannel {
    fn is_gone(&self) -> bool {
        match self {
            ListenerChannel::Peer(peer) => peer.is_transport_closed(),
            // Its own task takes it off the list.
            ListenerChannel::Sink(_) => false,
        }
    }

    /// Notifies a listener. Returns whether it is still there.
    async fn notify(&self, changed: ChangedLists) -> bool {
        let bound = Duration::from_secs(limit::LIST_CHANGED_SECONDS_MAX);
        // A slow reader is told again next time; a closed one is not.
        timeout(bound, self.tell(changed)).await.unwrap_or(true)
    }

    async fn tell(&self, changed: ChangedLists) -> bool {
        let mut is_there = true;
        match self {
            ListenerChannel::Peer(peer) => {
                if changed.tools {
                    is_there &= peer.notify_tool_list_changed().await.is_ok();
                }
                if changed.prompts {
                    is_there &= peer.notify_prompt_list_changed().await.is_ok();
                }
                if changed.resources {
                    is_there &= peer.notify_resource_list_changed().await.is_ok();
                }
            }
            ListenerChannel::Sink(sink) => {
                if changed.tools {
                    is_there &= sink_told(sink.notify_tool_list_changed().await);
                }
                if changed.prompts {
                    is_there &= sink_told(sink.notify_prompt_list_changed().await);
                }
                if changed.resources {
                    is_there &= sink_told(sink.notify_resource_list_changed().await);
                }
            }
        }
        is_there
    }
}

impl Listeners {
    /// Adds a listener. Nothing if there are too many.
    pub(crate) fn add(
        &self,
        engine: &Engine,
        caller: Caller,
        channel: ListenerChannel,
        most: u64,
    ) -> Option<u64> {
        // Before the lock: a list walks the gates of every tool.
        let seen = list_digest(engine, &caller);
        let mut listeners = self.lock();
        listeners
            .all
            .retain(|_, listener| !listener.channel.is_gone());
        if u64::try_from(listeners.all.len()).unwrap_or(u64::MAX) >= most {
            return None;
        }
        let id = listeners.next;
        listeners.next += 1;
        listeners.all.insert(
            id,
            Listener {
                caller,
                channel,
                seen,
                is_compared: false,
            },
        );
        drop(listeners);
        self.added.notify_one();
        Some(id)
    }

    /// Takes a listener off the list.
    pub(crate) fn remove(&self, id: u64) {
        self.lock().all.remove(&id);
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().all.len()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// The callers that listen, and whether lists of each have to be compared whatever the
    /// stamp says: a listener came since. Drops those that disconnected.
    fn callers(&self) -> HashMap<Caller, bool> {
        let mut listeners = self.lock();
        listeners
            .all
            .retain(|_, listener| !listener.channel.is_gone());
        let mut callers = HashMap::new();
        for listener in listeners.all.values() {
            *callers.entry(listener.caller.clone()).or_default() |= !listener.is_compared;
        }
        callers
    }

    /// Takes the listeners whose list changed, and marks them as notified. Lists are made
    /// only for callers whose stamp is another one: making those of a thousand tools twice
    /// a second would keep an idle server busy.
    fn take_due(
        &self,
        engine: &Engine,
        stamps: &mut ListStamps,
    ) -> Vec<(u64, ListenerChannel, ChangedLists)> {
        // Lists are made outside the lock, one for each caller.
        let mut lists = HashMap::new();
        let mut current = ListStamps::new();
        for (caller, is_new) in self.callers() {
            // Before the lists: what changes in between changes the next stamp.
            let stamp = engine.list_stamp(&caller);
            if is_new || stamps.get(&caller) != Some(&stamp) {
                lists.insert(caller.clone(), list_digest(engine, &caller));
            }
            current.insert(caller, stamp);
        }
        *stamps = current;
        let mut due = Vec::new();
        for (id, listener) in &mut self.lock().all {
            let list = lists.get(&listener.caller);
            listener.is_compared |= list.is_some();
            match list {
                Some(list) if *list != listener.seen => {
                    let changed = ChangedLists {
                        tools: list.tools != listener.seen.tools,
                        prompts: list.prompts != listener.seen.prompts,
                        resources: list.resources != listener.seen.resources,
                    };
                    // Marked before it is sent: a slow listener is told again at the next
                    // change, not at every look.
                    listener.seen.clone_from(list);
                    due.push((*id, listener.channel.clone(), changed));
                }
                Some(_) | None => {}
            }
        }
        due
    }
}

/// Looks for changes until `ended`.
pub(crate) async fn watch(
    engine: Arc<Engine>,
    listeners: Arc<Listeners>,
    ended: CancellationToken,
) {
    let watching = async {
        let mut known = engine.registry().current();
        let mut stamps = ListStamps::new();
        let mut looks: u32 = 0;
        loop {
            // No client listens, so nothing is compared: an idle server does no work
            // here.
            if listeners.count() == 0 {
                listeners.added.notified().await;
            }
            // The pause merges many changes into one message.
            tokio::time::sleep(Duration::from_millis(limit::LIST_CHANGED_EVERY_MS)).await;
            let now = engine.registry().current();
            looks = looks.wrapping_add(1);
            // A variable that is set or unset changes lists without changing the
            // registry, and so does trust that a caller earned: their stamps are compared now
            // and then in any case.
            if Arc::ptr_eq(&now, &known) && !looks.is_multiple_of(limit::LIST_CHANGED_LOOKS_MAX) {
                continue;
            }
            known = now;
            let due = listeners.take_due(&engine, &mut stamps);
            let telling = due.iter();
            let telling = telling.map(|(_, channel, changed)| channel.notify(*changed));
            let told = join_all(telling).await;
            let gone = due.iter().zip(told).filter(|(_, told)| !told);
            gone.for_each(|((id, ..), _)| listeners.remove(*id));
        }
    };
    tokio::select! {
        () = watching => {}
        () = ended.cancelled() => {}
    }
}

/// Whether a listener is still there. A message it did not subscribe to is not sent,
/// and is no reason to drop it.
fn sink_told(told: Result<(), SubscriptionSendError>) -> bool {
    match told {
        Ok(()) => true,
        Err(
            SubscriptionSendError::NotificationNotAccepted(_)
            | SubscriptionSendError::UnsupportedNotification(_),
        ) => true,
        Err(_) => false,
    }
}

/// The digests of a caller's lists.
fn list_digest(engine: &Engine, caller: &Caller) -> ListDigests {
    let offered = engine.listed(caller);
    let tools: Vec<_> = offered.iter().map(tool::listed).collect();
    let tools = serde_json::to_value(tools).unwrap_or(Value::Null);
    let (prompts, resources) = item::lists(engine, caller);
    let of = |value: &Value| digest::of_value(value).unwrap_or_default();
    ListDigests {
        tools: of(&tools),
        prompts: of(&prompts),
        resources: of(&resources),
    }
}
