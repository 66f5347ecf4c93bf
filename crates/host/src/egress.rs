//! The network of child processes: an HTTP proxy with the guard of `fetch`.
//!
//! A child has no network of its own. Its connections come to us one by one, and each says
//! in HTTP where it wants to go: the host is checked against the grant of the call, its
//! name is looked up here and never by the child, every address is classified, and the
//! connection goes to a checked one. Everything is bounded for each child, and each
//! decision is an event of its call.

pub mod event;
/// The route of git to one repository.
pub mod git;
mod hop;
pub mod limits;
mod meter;
mod proxy;
mod route;
mod tunnel;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::egress::hop::EgressGuard;
use crate::egress::meter::EgressBudget;
use crate::egress::proxy::Hold;
use crate::fetch::connect::{Connector, Stream, TcpConnector};
use crate::fetch::resolve::{Resolve, SystemResolver};
use crate::fetch::rule::FetchRule;
use crate::fetch::{PORTS_BLOCKED, Tls};

pub use event::{EgressEvent, EgressTally};
pub use limits::EgressLimits;
pub use route::{EgressRoute, RouteAnswer, RouteBody, RouteGuard, RouteReply, RouteRequest};

/// What the network of one child is made from.
#[derive(Clone, Debug)]
pub struct EgressSettings {
    /// How long and how much.
    pub limits: EgressLimits,
    /// Whom routes believe; tunnels carry the child's own TLS.
    pub tls: Tls,
    /// Who answers questions about names.
    pub resolver: Arc<dyn Resolve>,
    /// Who opens connections.
    pub connector: Arc<dyn Connector>,
    /// Ports that no child may reach unless the very host stands in the list.
    pub ports_blocked: Arc<[u16]>,
    /// Names that may lead to private addresses: the operator's word.
    pub private_hosts: Arc<[HostPattern]>,
    /// What a child finds at `/-/NAME/` of its proxy.
    pub routes: BTreeMap<String, Arc<dyn EgressRoute>>,
    /// Whether routes are all there is: no tunnel, no forwarding.
    pub routes_only: bool,
    /// Where decisions are counted, beside the events of the child.
    pub tally: Arc<EgressTally>,
}

impl EgressSettings {
    /// The system's resolver, plain TCP, default limits, no routes.
    #[must_use]
    pub fn new(tls: Tls) -> EgressSettings {
        EgressSettings {
            limits: EgressLimits::default(),
            tls,
            resolver: Arc::new(SystemResolver),
            connector: Arc::new(TcpConnector),
            ports_blocked: PORTS_BLOCKED.into(),
            private_hosts: Arc::new([]),
            routes: BTreeMap::new(),
            routes_only: false,
            tally: Arc::default(),
        }
    }
}

/// The network of one child. Clones are the same network; with the last of them all its
/// connections end.
#[derive(Clone)]
pub struct Egress {
    guard: Arc<EgressGuard>,
    places: Arc<Semaphore>,
    admitted: Arc<AtomicU64>,
    end: Arc<watch::Sender<bool>>,
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").finish_non_exhaustive()
    }
}

impl Egress {
    /// The network a grant gives. In mode `blocked` every connection is answered with a
    /// refusal.
    #[must_use]
    pub fn from_grant(
        grant: &NetworkGrant,
        bounds: &HostBounds,
        settings: EgressSettings,
    ) -> Egress {
        let rule = FetchRule::from_grant(grant, bounds, &settings.private_hosts);
        let (end, _) = watch::channel(false);
        Egress {
            places: Arc::new(Semaphore::new(places(&settings.limits))),
            admitted: Arc::default(),
            end: Arc::new(end),
            guard: Arc::new(EgressGuard {
                rule,
                tls: settings.tls.without_memory().http1_only(),
                budget: Arc::new(EgressBudget::new(
                    settings.limits.bytes_max,
                    &settings.tally,
                )),
                settings,
            }),
        }
    }

    /// Serves one connection of the child, in a task of its own. One too many is closed.
    pub fn admit(&self, stream: impl Stream + 'static) {
        let before = self.admitted.fetch_add(1, Ordering::Relaxed);
        let place = Arc::clone(&self.places).try_acquire_owned();
        let Ok(place) = place else {
            return;
        };
        if before >= self.guard.settings.limits.connection_count_max {
            return;
        }
        let hold = Hold {
            guard: Arc::clone(&self.guard),
            end: self.end.subscribe(),
            _place: Arc::new(place),
        };
        tokio::spawn(proxy::serve(stream, hold));
    }

    /// The decisions that are over, since they were last taken.
    #[must_use]
    pub fn take_events(&self) -> Vec<EgressEvent> {
        self.guard.budget.take_events().0
    }

    /// Ends every connection.
    pub fn close(&self) {
        self.end.send_replace(true);
    }

    /// Ends every connection and gives the decisions, also those that were under way.
    pub async fn finish(&self) -> Vec<EgressEvent> {
        self.close();
        let limits = &self.guard.settings.limits;
        let count = u32::try_from(places(limits)).unwrap_or(u32::MAX);
        let wait = Duration::from_millis(limits::EGRESS_END_MS);
        // What has not ended by then ends without a record; nothing waits for it.
        let _ = timeout(wait, self.places.acquire_many(count)).await;
        self.take_events()
    }
}

fn places(limits: &EgressLimits) -> usize {
    usize::try_from(limits.concurrent_max.max(1)).unwrap_or(1)
}
