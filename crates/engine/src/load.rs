//! How busy an engine is: everything that fills up or waits, at one moment, for the
//! operator's instruments.

use std::time::Instant;

use bridge::ServerStatus;
use sandbox::pool::PoolStatus;
pub use store::ShipStatus;
use store::{Room, SigningStatus, StoreStatus};

use crate::engine::Engine;
use crate::toolbox::JailStanding;

/// Everything that fills up or waits.
#[derive(Clone, Debug)]
pub struct EngineLoad {
    /// The workers of the sandbox; nothing before the first call.
    pub pool: Option<PoolStatus>,
    /// How many servers answer, are stopped, have failed.
    pub servers: ServerCounts,
    /// Questions that wait for a person; nothing if the store cannot say.
    pub approvals_waiting: Option<u64>,
    /// What the audit has done and what waits there.
    pub audit: StoreStatus,
    /// How much of its allowed size the audit uses.
    pub room: Option<Room>,
    /// How far signed heads cover the audit.
    pub signing: SigningStatus,
    /// How far records were copied elsewhere.
    pub shipping: ShipStatus,
    /// Contradictions of other logs that this node keeps as evidence; nothing if they
    /// cannot be read.
    pub contradictions: Option<u64>,
    /// How long the store took to answer one question just now, in microseconds; nothing if
    /// it did not.
    pub store_us: Option<u64>,
    /// Background jobs that run.
    pub jobs_running: u64,
    /// Child processes and their fence.
    pub jail: JailLoad,
}

/// Child processes, and the fence around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JailLoad {
    /// Children that run now.
    pub running: u64,
    /// The fence of this machine; nothing before it was needed and tried.
    pub standing: Option<&'static JailStanding>,
    /// Connections and requests of children that went through.
    pub egress_allowed: u64,
    /// Those that were refused or failed.
    pub egress_refused: u64,
}

/// Servers by where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// They answer.
    pub ready: u64,
    /// They were not used yet, or were idle.
    pub stopped: u64,
    /// They failed.
    pub failed: u64,
}

impl Engine {
    /// How busy the engine is now. Reads the database, so it can wait for it.
    #[must_use]
    pub fn load(&self) -> EngineLoad {
        let mut servers = ServerCounts::default();
        for status in self.server_connections().statuses() {
            match status {
                ServerStatus::Ready { .. } => servers.ready += 1,
                ServerStatus::Stopped => servers.stopped += 1,
                ServerStatus::Failed(_) => servers.failed += 1,
            }
        }
        let store = self.store();
        let asked = Instant::now();
        let approvals_waiting = store.approvals().count_pending(self.now_ms()).ok();
        let took = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        EngineLoad {
            pool: self.pool_status(),
            servers,
            store_us: approvals_waiting.map(|_| took),
            approvals_waiting,
            audit: store.status(),
            room: store.room().ok(),
            signing: store.audit().signing(),
            shipping: store.audit().shipping(),
            contradictions: (store.audit().conflicts().ok())
                .map(|kept| u64::try_from(kept.len()).unwrap_or(u64::MAX)),
            jobs_running: self.jobs().count(),
            jail: self.jail_load(),
        }
    }

    fn jail_load(&self) -> JailLoad {
        // Trying it starts a process, so a machine that needs no jail is not asked.
        let is_needed = !self.registry().current().config.toolbox.enabled.is_empty();
        let tally = self.egress_tally();
        JailLoad {
            running: jail::running_count(),
            standing: match is_needed {
                true => Some(JailStanding::of_machine()),
                false => JailStanding::tried(),
            },
            egress_allowed: tally.allowed(),
            egress_refused: tally.refused(),
        }
    }
}
