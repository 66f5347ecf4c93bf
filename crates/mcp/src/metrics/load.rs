//! Gauges for everything that fills up or waits. They are set when the page is asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::load::{EngineLoad, JailLoad, ShipStatus};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// A gauge of things that are counted.
type Count = Gauge<u64, AtomicU64>;
/// A gauge or counter of seconds.
type Seconds = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FenceLayer {
    layer: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FenceRung {
    rung: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verdict {
    verdict: &'static str,
}

/// How busy an engine is, as gauges.
#[derive(Debug)]
pub(super) struct LoadGauges {
    workers_ready: Count,
    worker_places: Count,
    worker_queue: Count,
    worker_calls: Count,
    workers_lost: Counter,
    servers: Family<State, Count>,
    approvals_waiting: Count,
    audit_bytes: Count,
    audit_bytes_max: Count,
    audit_queue: Count,
    audit_owed: Count,
    audit_lag: Seconds,
    audit_commits: Counter,
    audit_syncs: Counter,
    audit_sync_seconds: Counter<f64, AtomicU64>,
    audit_signed: Count,
    audit_unsigned: Count,
    audit_signing_fault: Count,
    audit_contradictions: Count,
    jail: JailGauges,
    shipping: ShipGauges,
    store_answer: Seconds,
    jobs_running: Count,
}

/// How far records were copied elsewhere.
#[derive(Debug)]
struct ShipGauges {
    waiting: Count,
    lag: Seconds,
    fault: Count,
}

impl ShipGauges {
    fn new(registry: &mut Registry) -> ShipGauges {
        let (waiting, fault) = (Count::default(), Count::default());
        let about = "Records on the disk that are not copied to the shared database yet";
        registry.register("audit_unshipped_records", about, waiting.clone());
        let about = "1 if the last records could not be copied to the shared database";
        registry.register("audit_ship_fault", about, fault.clone());
        let lag = Seconds::default();
        let about = "How long the oldest record waits to be copied, in seconds";
        registry.register("audit_ship_lag_seconds", about, lag.clone());
        ShipGauges {
            waiting,
            lag,
            fault,
        }
    }

    fn set(&self, shipping: &ShipStatus) {
        self.waiting.set(shipping.waiting);
        self.lag.set(seconds(shipping.lag_ms.saturating_mul(1_000)));
        self.fault.set(u64::from(shipping.fault.is_some()));
    }
}

/// Child processes and their fence, as gauges.
#[derive(Debug)]
struct JailGauges {
    running: Count,
    layers: Family<FenceLayer, Count>,
    rung: Family<FenceRung, Count>,
    egress: Family<Verdict, Counter>,
}

impl JailGauges {
    fn new(registry: &mut Registry) -> JailGauges {
        let running = Count::default();
        let about = "Child processes that run in a jail";
        registry.register("jails_running", about, running.clone());
        let layers = Family::default();
        let about = "Layers of the jail on this machine: 1 if it is up, 0 if it is missing";
        registry.register("jail_layer", about, layers.clone());
        let rung = Family::default();
        let about = "1 for the rung of the jail on this machine";
        registry.register("jail_rung", about, rung.clone());
        let egress = Family::default();
        let about = "Decisions about connections of child processes";
        registry.register("egress_decisions", about, egress.clone());
        JailGauges {
            running,
            layers,
            rung,
            egress,
        }
    }

    fn set(&self, load: &JailLoad) {
        self.running.set(load.running);
        if let Some(standing) = load.standing {
            for wall in standing.walls() {
                let layer = FenceLayer {
                    layer: wall.layer.name(),
                };
                let gauge = self.layers.get_or_create(&layer);
                gauge.set(u64::from(wall.is_up()));
            }
            let rung = FenceRung {
                rung: standing.rung(),
            };
            self.rung.get_or_create(&rung).set(1);
        }
        for (verdict, total) in [
            ("allowed", load.egress_allowed),
            ("refused", load.egress_refused),
        ] {
            let counter = self.egress.get_or_create(&Verdict { verdict });
            set(&counter, total);
        }
    }
}

impl LoadGauges {
    pub(super) fn new(registry: &mut Registry) -> LoadGauges {
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of this program", version);
        let mut count = |name: &str, about: &str| {
            let gauge = Count::default();
            registry.register(name, about, gauge.clone());
            gauge
        };
        let workers_ready = count("workers_ready", "Sandbox workers that take calls");
        let worker_places = count("worker_places_taken", "Places taken in sandbox workers");
        let worker_queue = count("worker_queue", "Calls that wait for a place in a worker");
        let worker_calls = count("worker_calls", "Runs in workers whose end is not heard yet");
        let approvals_waiting = count("approvals_waiting", "Questions that wait for a person");
        let audit_bytes = count("audit_bytes", "Bytes of the audit log");
        let audit_bytes_max = count("audit_bytes_max", "Bytes the audit log may have");
        let audit_queue = count("audit_queue", "Audit records that wait to be written");
        let audit_owed = count("audit_owed", "Ends of calls that could not be written yet");
        let audit_signed = count("audit_signed_records", "Records that a signed head covers");
        let about = "Records no signed head covers yet";
        let audit_unsigned = count("audit_unsigned_records", about);
        let about = "1 if no head can be signed over the audit log";
        let audit_signing_fault = count("audit_signing_fault", about);
        let about = "Contradictions between signed heads of other logs that are kept";
        let audit_contradictions = count("audit_contradictions", about);
        let jobs_running = count("jobs_running", "Background jobs that run");
        let mut total = |name: &str, about: &str| {
            let counter = Counter::default();
            registry.register(name, about, counter.clone());
            counter
        };
        let workers_lost = total("workers_lost", "Workers that ended before their time");
        let audit_commits = total("audit_commits", "Groups of audit records written");
        let audit_syncs = total("audit_syncs", "Times the disk confirmed the audit log");
        let servers = Family::default();
        let about = "MCP servers that were used, by where they stand";
        registry.register("servers", about, servers.clone());
        let audit_lag = Seconds::default();
        let about = "How long the oldest audit record waits for the disk, in seconds";
        registry.register("audit_lag_seconds", about, audit_lag.clone());
        let store_answer = Seconds::default();
        let about = "How long the store took to answer one question just now, in seconds";
        registry.register("store_answer_seconds", about, store_answer.clone());
        let audit_sync_seconds = Counter::default();
        let about = "Time the disk took to confirm the audit log, in seconds";
        registry.register("audit_sync_seconds", about, audit_sync_seconds.clone());
        LoadGauges {
            workers_ready,
            worker_places,
            worker_queue,
            worker_calls,
            workers_lost,
            servers,
            approvals_waiting,
            audit_bytes,
            audit_bytes_max,
            audit_queue,
            audit_owed,
            audit_lag,
            audit_commits,
            audit_syncs,
            audit_sync_seconds,
            audit_signed,
            audit_unsigned,
            audit_signing_fault,
            audit_contradictions,
            jail: JailGauges::new(registry),
            shipping: ShipGauges::new(registry),
            store_answer,
            jobs_running,
        }
    }

    /// Sets every gauge from the engine's load.
    pub(super) fn set(&self, load: &EngineLoad) {
        if let Some(pool) = &load.pool {
            self.workers_ready.set(count(pool.ready_count));
            self.worker_places.set(u64::from(pool.live_count));
            self.worker_queue.set(count(pool.waiting_count));
            self.worker_calls.set(count(pool.pending_count));
            set(&self.workers_lost, pool.lost_count);
        }
        for (state, number) in [
            ("ready", load.servers.ready),
            ("stopped", load.servers.stopped),
            ("failed", load.servers.failed),
        ] {
            self.servers.get_or_create(&State { state }).set(number);
        }
        if let Some(waiting) = load.approvals_waiting {
            self.approvals_waiting.set(waiting);
        }
        if let Some(room) = load.room {
            self.audit_bytes.set(room.bytes);
            self.audit_bytes_max.set(room.bytes_max);
        }
        self.audit_queue.set(load.audit.queue);
        self.audit_owed.set(load.audit.owed);
        self.audit_lag.set(seconds(load.audit.lag_us));
        set(&self.audit_commits, load.audit.commits);
        set(&self.audit_syncs, load.audit.syncs);
        let sync_seconds = seconds(load.audit.sync_us).to_bits();
        let inner = self.audit_sync_seconds.inner();
        inner.store(sync_seconds, Ordering::Relaxed);
        self.audit_signed.set(load.signing.signed);
        self.audit_unsigned.set(load.signing.unsigned);
        let has_fault = load.signing.fault.is_some();
        self.audit_signing_fault.set(u64::from(has_fault));
        if let Some(contradictions) = load.contradictions {
            self.audit_contradictions.set(contradictions);
        }
        self.jail.set(&load.jail);
        self.shipping.set(&load.shipping);
        if let Some(us) = load.store_us {
            self.store_answer.set(seconds(us));
        }
        self.jobs_running.set(load.jobs_running);
    }
}

/// A counter whose total is counted elsewhere.
fn set(counter: &Counter, total: u64) {
    counter.inner().store(total, Ordering::Relaxed);
}

fn seconds(us: u64) -> f64 {
    std::time::Duration::from_micros(us).as_secs_f64()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
