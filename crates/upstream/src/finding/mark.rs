//! Everything a server declares now, looked at, and marked where a finding holds.

use super::{Neighbours, UpstreamFinding, hold, of_item, of_server};
use crate::name::ServerName;
use crate::pin::SeenServer;

/// Looks at a server and all it offers, and notes on each what holds it, so that
/// [`serve`](crate::pin::serve) and [`accept`](crate::pin::PinnedServer::accept) know.
/// Returns every finding, those of the server first.
pub fn mark(
    seen: &mut SeenServer,
    name: &ServerName,
    neighbours: &Neighbours,
) -> Vec<UpstreamFinding> {
    let mut all = of_server(name.as_str(), &seen.server, neighbours);
    seen.hold = hold(&all);
    for item in seen.items.values_mut() {
        let findings = of_item(&item.definition, neighbours);
        item.hold = hold(&findings);
        all.extend(findings);
    }
    all
}
