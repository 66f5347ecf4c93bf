//! Progress of a call: messages of the engine, and a sign of life between them. Only
//! for clients that sent a token, and never after the answer.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::call::Progress;
use model::sync::lock;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::limit;

/// What the engine says of a running call, and the client has not heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgressFeed(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    sentences: Mutex<VecDeque<String>>,
    added: Notify,
}

impl ProgressFeed {
    fn push(&self, sentence: &str) {
        let mut sentences = lock(&self.0.sentences);
        if sentences.len() >= limit::PROGRESS_KEPT_MAX {
            sentences.pop_front();
        }
        sentences.push_back(sentence.to_owned());
        drop(sentences);
        self.0.added.notify_one();
    }

    fn pop(&self) -> Option<String> {
        lock(&self.0.sentences).pop_front()
    }

    async fn next(&self) -> String {
        loop {
            if let Some(sentence) = self.pop() {
                return sentence;
            }
            self.0.added.notified().await;
        }
    }
}

/// A listener for the engine, and where to read what it heard. Only the latest
/// sentences are kept: a slow client misses words, never the end.
pub(crate) fn listener() -> (Progress, ProgressFeed) {
    let feed = ProgressFeed::default();
    let heard = feed.clone();
    (Progress::new(move |sentence| heard.push(sentence)), feed)
}

/// Waits for the call and tells the client meanwhile.
pub(crate) async fn while_running<T>(
    call: impl Future<Output = T>,
    feed: &ProgressFeed,
    peer: &Peer<RoleServer>,
    token: ProgressToken,
) -> T {
    let mut call = pin!(call);
    let started = Instant::now();
    let mut sent: u32 = 0;
    let mut beat = started + Duration::from_millis(limit::PROGRESS_FIRST_MS);
    loop {
        let sentence = tokio::select! {
            // Biased: no sign of life after the end.
            biased;
            outcome = &mut call => {
                send_last(feed, peer, token, sent).await;
                return outcome;
            }
            sentence = feed.next() => sentence,
            () = sleep_until(beat) => {
                // Whether it runs or waits for a person is told by sentences of its own.
                format!("no answer yet after {} s", started.elapsed().as_secs())
            }
        };
        sent = sent.saturating_add(1);
        let message = ProgressNotificationParam::new(token.clone(), f64::from(sent));
        let mut telling = pin!(peer.notify_progress(message.with_message(sentence)));
        tokio::select! {
            // A client that is gone is noticed by the call's own token.
            _ = &mut telling => {}
            outcome = &mut call => {
                // A message on its way must arrive before the answer.
                let last = Duration::from_millis(limit::PROGRESS_LAST_MS);
                let _ = timeout(last, telling).await;
                send_last(feed, peer, token, sent).await;
                return outcome;
            }
        }
        // The pause bounds how often a client is told. Sentences meanwhile stay in the
        // feed.
        beat = Instant::now() + Duration::from_millis(limit::PROGRESS_EVERY_MS);
        let gap = Instant::now() + Duration::from_millis(limit::PROGRESS_GAP_MS);
        tokio::select! {
            biased;
            outcome = &mut call => {
                send_last(feed, peer, token, sent).await;
                return outcome;
            }
            () = sleep_until(gap) => {}
        }
    }
}

/// Sends what the engine said and the client has not heard. The call is over.
async fn send_last(
    feed: &ProgressFeed,
    peer: &Peer<RoleServer>,
    token: ProgressToken,
    mut sent: u32,
) {
    let telling = async {
        while let Some(sentence) = feed.pop() {
            sent = sent.saturating_add(1);
            let message = ProgressNotificationParam::new(token.clone(), f64::from(sent));
            let _ = peer.notify_progress(message.with_message(sentence)).await;
        }
    };
    let last = Duration::from_millis(limit::PROGRESS_LAST_MS);
    let _ = timeout(last, telling).await;
}
