//! The process of a server with its network: started together, ended together.
//!
//! A process that may reach hosts reaches our proxy and nothing else. Every connection is
//! decided there, and each decision is kept until it is asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use host::egress::{Egress, EgressEvent, EgressSettings};
use jail::{JailGrace, JailNetwork, JailSettings, JailedChild, WorkerProgram};
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::egress_door::EgressDoor;
use crate::error_log::ErrorLog;
use crate::fault::ServerFault;
use crate::limit;

/// The hosts that the process of a server may reach.
#[derive(Clone, Debug)]
pub struct ServerHosts {
    /// These and no others.
    pub hosts: Vec<HostPattern>,
    /// How connections to them are made.
    pub egress: EgressSettings,
}

/// Is told the decisions about a process's connections that nothing asked for.
#[derive(Clone)]
pub(crate) struct ConnectionSink(Arc<TellConnections>);

type TellConnections = dyn Fn(Vec<EgressEvent>) + Send + Sync;

impl ConnectionSink {
    pub(crate) fn new(tell: impl Fn(Vec<EgressEvent>) + Send + Sync + 'static) -> Self {
        ConnectionSink(Arc::new(tell))
    }
}

impl fmt::Debug for ConnectionSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionSink")
    }
}

/// A process in its jail. Dropped, it is killed with everything it started, and its
/// connections end.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    pub(crate) child: JailedChild,
    door: Option<ServerDoor>,
    /// What reads its standard error.
    following: Option<JoinHandle<()>>,
}

impl ServerProcess {
    /// Starts a process. Its network is what `hosts` say, whatever the settings of the
    /// jail do.
    pub(crate) async fn start(
        mut jail: JailSettings,
        hosts: Option<Box<ServerHosts>>,
        program: &WorkerProgram,
        sink: &ConnectionSink,
    ) -> Result<ServerProcess, ServerFault> {
        if hosts.is_some() {
            // Whatever the settings say, there is no other way out than the proxy.
            jail.network = JailNetwork::Proxy;
        }
        let spawned = jail::spawn(jail, program).await;
        let mut child = spawned.map_err(|fault| ServerFault::Start(fault.to_string()))?;
        let door = hosts.and_then(|hosts| ServerDoor::open(*hosts, &mut child, sink.clone()));
        Ok(ServerProcess {
            child,
            door,
            following: None,
        })
    }

    /// Keeps what it says on its standard error. From the start: what a process says before
    /// its handshake explains most failures.
    pub(crate) fn follow(&mut self, log: &ErrorLog, masker: &Arc<Masker>) {
        if let Some(error) = self.child.stderr.take() {
            let following = log.clone().follow(error, Arc::clone(masker));
            self.following = Some(tokio::spawn(following));
        }
    }

    /// Its network, if it has one.
    pub(crate) fn egress(&self) -> Option<Egress> {
        let server_door = self.door.as_ref();
        server_door.map(|network| network.door.egress().clone())
    }

    /// Ends it: asked, told, killed. Says how it ended.
    pub(crate) async fn end(self) -> String {
        let exit = self.child.terminate(JailGrace::standard()).await;
        if let Some(network) = &self.door {
            let rest = network.door.egress().finish().await;
            network.tell(rest);
        }
        // Its last words may still be in the pipe. A grandchild could hold it open, so the
        // wait is bounded.
        if let Some(following) = self.following {
            let bound = Duration::from_millis(limit::SERVER_LAST_WORDS_MS);
            let _ = timeout(bound, following).await;
        }
        exit.to_string()
    }
}

/// The network of one process. Dropped, it ends, and what is over is told.
#[derive(Debug)]
struct ServerDoor {
    door: EgressDoor,
    sink: ConnectionSink,
}

impl ServerDoor {
    fn open(
        hosts: ServerHosts,
        child: &mut JailedChild,
        sink: ConnectionSink,
    ) -> Option<ServerDoor> {
        let mut settings = hosts.egress;
        settings.limits.connection_count_max = limit::SERVER_CONNECTIONS_MAX;
        settings.limits.bytes_max = limit::SERVER_NETWORK_BYTES_MAX;
        let grant = NetworkGrant::Allowlist(hosts.hosts);
        // No bounds of a caller: the process serves all callers, and its own
        // hosts are its bounds.
        let egress = Egress::from_grant(&grant, &HostBounds::default(), settings);
        let door = EgressDoor::open(egress, child)?;
        Some(ServerDoor { door, sink })
    }

    fn tell(&self, events: Vec<EgressEvent>) {
        if !events.is_empty() {
            (self.sink.0)(events);
        }
    }
}

impl Drop for ServerDoor {
    fn drop(&mut self) {
        let egress = self.door.egress();
        egress.close();
        self.tell(egress.take_events());
    }
}
