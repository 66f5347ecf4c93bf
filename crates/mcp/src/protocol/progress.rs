//! Progress of a call: messages of the engine, and a sign of life between them. Only
//! for clients that sent a token, and never after the answer.

use std::pin::pin;
use std::time::Duration;

use engine::call::Progress;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::limit;

/// The latest progress message of a running call.
#[derive(Debug)]
pub(crate) struct ProgressFeed {
    latest: watch::Receiver<String>,
}

/// A sender for the engine and its receiver. Only the latest message is kept: a slow
/// client misses some, never the end.
pub(crate) fn listener() -> (Progress, ProgressFeed) {
    let (heard, latest) = watch::channel(String::new());
    let progress = Progress::new(move |sentence| {
        let _ = heard.send(sentence.to_owned());
    });
    (progress, ProgressFeed { latest })
}

/// Waits for the call and tells the client meanwhile.
pub(crate) async fn while_running<T>(
    call: impl Future<Output = T>,
    feed: &mut ProgressFeed,
    peer: &Peer<RoleServer>,
    token: ProgressToken,
) -> T {
    let mut call = pin!(call);
    let started = Instant::now();
    let mut sent: u32 = 0;
    let mut beat = started + Duration::from_millis(limit::PROGRESS_FIRST_MS);
    let mut silent = false;
    loop {
        let sentence = tokio::select! {
            biased;
            outcome = &mut call => {
                send_last(feed, peer, token, sent).await;
                return outcome;
            }
            changed = feed.latest.changed(), if !silent => {
                silent = changed.is_err();
                if silent { continue }
                feed.latest.borrow_and_update().clone()
            }
            () = sleep_until(beat) => {
                format!("running for {} s", started.elapsed().as_secs())
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
                return outcome;
            }
        }
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

/// Sends the engine's last message, if the client does not have it. The call is over.
async fn send_last(
    feed: &mut ProgressFeed,
    peer: &Peer<RoleServer>,
    token: ProgressToken,
    sent: u32,
) {
    let sentence = {
        let latest = feed.latest.borrow_and_update();
        match latest.has_changed() {
            true => latest.clone(),
            false => return,
        }
    };
    let message = ProgressNotificationParam::new(token, f64::from(sent.saturating_add(1)));
    let telling = peer.notify_progress(message.with_message(sentence));
    let last = Duration::from_millis(limit::PROGRESS_LAST_MS);
    let _ = timeout(last, telling).await;
}
