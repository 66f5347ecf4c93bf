//! The events of one server: numbered, the newest of them kept for a page that comes back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::http::HeaderMap;
use axum::http::header::HeaderName;
use model::sync::lock;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};

use crate::limit;

/// The header by which a browser says what it last saw.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The events of one server.
#[derive(Debug)]
pub(crate) struct EventHub {
    /// Another one for each run of the server.
    boot: String,
    pub(crate) kept: Mutex<KeptEvents>,
    pub(crate) newest: watch::Sender<u64>,
    pub(crate) streams: Arc<Semaphore>,
    /// Wakes the watcher, which sleeps while no page listens.
    pub(crate) listened: Notify,
    /// Counts the times that sessions may have ended.
    pub(crate) ends: watch::Sender<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct KeptEvents {
    pub(crate) seq: u64,
    pub(crate) events: VecDeque<HubEvent>,
    pub(crate) is_watched: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct HubEvent {
    pub(crate) seq: u64,
    pub(crate) text: Arc<str>,
}

impl Default for EventHub {
    fn default() -> EventHub {
        EventHub {
            boot: model::govern::key::id(boot_bytes()),
            kept: Mutex::default(),
            newest: watch::Sender::new(0),
            streams: Arc::new(Semaphore::new(limit::STREAMS_MAX)),
            listened: Notify::new(),
            ends: watch::Sender::new(0),
        }
    }
}

/// No secret: it only has to differ between two runs.
fn boot_bytes() -> [u8; 5] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.as_nanos());
    let [a, b, c, d, e, ..] = nanos.to_le_bytes();
    let process = std::process::id().to_le_bytes();
    [a ^ process[0], b ^ process[1], c, d, e]
}

impl EventHub {
    /// Tells every page.
    pub(crate) fn tell(&self, topic: &'static str, data: Value) {
        let mut kept = lock(&self.kept);
        kept.seq += 1;
        let seq = kept.seq;
        let event = HubEvent {
            seq,
            text: self.text(Some(seq), seq, topic, data),
        };
        kept.events.push_back(event);
        if kept.events.len() > limit::EVENTS_KEPT_MAX {
            kept.events.pop_front();
        }
        // Woken outside the lock, because each stream takes it again.
        drop(kept);
        self.newest.send_replace(seq);
    }

    pub(crate) fn text(&self, id: Option<u64>, seq: u64, topic: &str, data: Value) -> Arc<str> {
        let mut members = Map::new();
        members.insert("seq".to_owned(), seq.into());
        members.insert("boot".to_owned(), self.boot.clone().into());
        members.insert("topic".to_owned(), topic.into());
        if let Value::Object(data) = data {
            members.extend(data);
        }
        let data = Value::Object(members);
        let id = id.map_or_else(String::new, |id| format!("id: {}.{id}\n", self.boot));
        format!("{id}event: {topic}\ndata: {data}\n\n").into()
    }

    /// Has every stream look whether its session is still open.
    pub(crate) fn recheck(&self) {
        self.ends.send_modify(|count| *count += 1);
    }

    /// What a page that last saw `after` missed; nothing if that is not known any more.
    pub(crate) fn since(&self, after: u64) -> Option<Vec<HubEvent>> {
        let kept = lock(&self.kept);
        let oldest = kept.events.front().map_or(kept.seq + 1, |event| event.seq);
        // Ahead of us: an id of another run, or one that was made up.
        if after > kept.seq || after + 1 < oldest {
            return None;
        }
        let missed = kept.events.iter().filter(|event| event.seq > after);
        Some(missed.cloned().collect())
    }

    /// Where a page that comes back left off.
    pub(crate) fn left_off(&self, headers: &HeaderMap) -> Option<u64> {
        let id = headers.get(LAST_EVENT_ID)?.to_str().ok()?;
        let (boot, seq) = id.split_once('.')?;
        // Numbers start again with each run, so a number alone says nothing.
        (boot == self.boot).then(|| seq.parse().ok()).flatten()
    }
}
