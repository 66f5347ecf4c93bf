//! Lists that change while clients are connected, and everybody who wants to hear of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::service::{Peer, SubscriptionContext, SubscriptionSink};

/// What changed.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

/// The listeners of both eras, and what they would see.
#[derive(Default)]
pub(crate) struct News {
    extra_tool: AtomicBool,
    extra_prompt: AtomicBool,
    peers: Mutex<Vec<Peer<RoleServer>>>,
    /// By a number of our own: two clients may choose the same id.
    sinks: Mutex<Vec<(u64, SubscriptionSink)>>,
    numbers: AtomicU64,
}

impl News {
    pub(crate) fn has_extra_tool(&self) -> bool {
        self.extra_tool.load(Ordering::Relaxed)
    }

    pub(crate) fn has_extra_prompt(&self) -> bool {
        self.extra_prompt.load(Ordering::Relaxed)
    }

    /// Remembers a client that has sessions.
    pub(crate) fn greet(&self, peer: Peer<RoleServer>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|peer| !peer.is_transport_closed());
        peers.push(peer);
    }

    /// Keeps a listener until it goes away.
    pub(crate) async fn listen(&self, context: SubscriptionContext) {
        let sink = context.sink().clone();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.sinks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((number, sink));
        context.cancelled().await;
        self.sinks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(other, _)| *other != number);
    }

    /// How many listen in the era without sessions.
    pub(crate) fn listeners(&self) -> usize {
        self.sinks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Makes a list longer or shorter by one and says so.
    pub(crate) async fn change(&self, change: Change) {
        let flag = match change {
            Change::Tools => &self.extra_tool,
            Change::Prompts => &self.extra_prompt,
        };
        flag.fetch_xor(true, Ordering::Relaxed);
        // Copies, so that a slow reader holds no lock.
        let peers = self
            .peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let sinks = self
            .sinks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for peer in peers.iter().filter(|peer| !peer.is_transport_closed()) {
            // A client that left meanwhile needs no news.
            let _ = match change {
                Change::Tools => peer.notify_tool_list_changed().await,
                Change::Prompts => peer.notify_prompt_list_changed().await,
            };
        }
        for (_, sink) in sinks {
            let _ = match change {
                Change::Tools => sink.notify_tool_list_changed().await,
                Change::Prompts => sink.notify_prompt_list_changed().await,
            };
        }
    }
}
