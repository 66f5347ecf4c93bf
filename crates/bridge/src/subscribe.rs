//! "The list changed", from servers of the newer era: they tell only those that listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerCapabilities, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, Subscription};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::limit;

/// Begins to listen. Asked before the list is fetched, so that no change falls between the
/// two. Nothing where the server tells without, or does not tell at all.
pub(crate) async fn begin(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let filter = filter(peer)?;
    let bound = Duration::from_millis(limit::SERVER_LISTEN_MS_MAX);
    // A server that does not answer in time is used all the same; `keep` asks again.
    timeout(bound, peer.listen(filter)).await.ok()?.ok()
}

/// Signals changes until the connection ends. A stream that ends is opened again; what
/// changed meanwhile is not known, so that counts as a change. `listening` says whether the
/// server tells now.
pub(crate) async fn keep(
    peer: Peer<RoleClient>,
    mut subscription: Option<Subscription>,
    changed: Arc<Notify>,
    listening: Arc<AtomicBool>,
    ended: CancellationToken,
) {
    let Some(wanted) = filter(&peer) else {
        return;
    };
    let info = peer.peer_info();
    let tells_all = info.is_some_and(|info| tells_of_all(&info.capabilities));
    let least = Duration::from_millis(limit::SERVER_RETRY_MS_MIN);
    let most = Duration::from_millis(limit::SERVER_RETRY_MS_MAX);
    let listening = async {
        let mut pause = least;
        while !peer.is_transport_closed() {
            let began = Instant::now();
            // One that leaves out a list tells of less than all changes.
            let is_whole = |stream: &Subscription| *stream.acknowledged() == wanted;
            let is_told = tells_all && subscription.as_ref().is_some_and(is_whole);
            listening.store(is_told, Ordering::Relaxed);
            while let Some(stream) = &mut subscription
                && let Ok(Some(_)) = stream.next().await
            {
                changed.notify_one();
            }
            listening.store(false, Ordering::Relaxed);
            // Attack: a server that ends every stream at once would be asked in a loop.
            let is_healthy = began.elapsed() >= Duration::from_millis(limit::SERVER_HEALTHY_MS);
            pause = match is_healthy {
                true => least,
                false => (pause * 2).min(most),
            };
            sleep(pause).await;
            subscription = begin(&peer).await;
            if subscription.is_some() {
                changed.notify_one();
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = ended.cancelled() => {}
    }
}

/// Whether a server tells of changes without a subscription: a process of the older era that
/// says so. At an address such a notice comes on a stream that ends unnoticed, or nowhere.
pub(crate) fn tells_unasked(peer: &Peer<RoleClient>, is_process: bool) -> bool {
    let Some(info) = peer.peer_info() else {
        return false;
    };
    is_process && !is_modern(&info.protocol_version) && tells_of_all(&info.capabilities)
}

/// Whether a server says that it tells of changes of every list it offers.
fn tells_of_all(offered: &ServerCapabilities) -> bool {
    let tools = offered.tools.as_ref().map(|it| it.list_changed);
    let prompts = offered.prompts.as_ref().map(|it| it.list_changed);
    let resources = offered.resources.as_ref().map(|it| it.list_changed);
    let mut all = [tools, prompts, resources].into_iter().flatten();
    all.all(|tells| tells == Some(true))
}

fn is_modern(version: &ProtocolVersion) -> bool {
    version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()
}

/// What there is to listen to; nothing for servers of the older era, which tell unasked.
fn filter(peer: &Peer<RoleClient>) -> Option<SubscriptionFilter> {
    let info = peer.peer_info()?;
    let is_modern = is_modern(&info.protocol_version);
    let all = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .build();
    let offered = all.supported_by(&info.capabilities);
    (is_modern && offered != SubscriptionFilter::default()).then_some(offered)
}
