//! One engine behind both transports: the state its clients share, and the shutdown.

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use tokio_util::sync::CancellationToken;

use crate::auth::PipeClient;
use crate::call_count::CallCount;
use crate::limit;
use crate::protocol::list_changed::Listeners;
use crate::protocol::parked::ParkedCalls;
use crate::protocol::request_state::Seal;
use crate::unsent::Unsent;

/// The door of one engine. Clones share it.
#[derive(Clone, Debug)]
pub struct Door {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) calls: CallCount,
    /// Answers that are made and not sent.
    pub(crate) unsent: Unsent,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) seal: Seal,
    /// Calls that wait for an answer to a server.
    pub(crate) parked: ParkedCalls,
    /// Who is at the other end of a pipe, if there is one.
    pub(crate) pipe_client: PipeClient,
    /// The one session of a client at a pipe. Process ids are reused; this is not.
    pub(crate) pipe_session: String,
    /// Cancels whatever still runs.
    pub(crate) stop: CancellationToken,
    /// Ends the streams that only wait for changes.
    pub(crate) closing: CancellationToken,
}

/// The door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Without randomness nothing can be sealed.
    #[error("the system provides no random bytes")]
    Random,
    /// The listening socket failed.
    #[error("the server cannot listen")]
    Listen(#[from] std::io::Error),
}

/// When to end. The first request lets calls finish for a while, the second does not.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Take nothing new.
    pub soft: CancellationToken,
    /// Do not wait for a person.
    pub hard: CancellationToken,
}

impl Door {
    /// A door of an engine.
    pub fn open(engine: Arc<Engine>) -> Result<Door, DoorError> {
        Door::open_for(engine, PipeClient::unnamed())
    }

    /// The same, for a client at a pipe that may show a key.
    pub fn open_for(engine: Arc<Engine>, client: PipeClient) -> Result<Door, DoorError> {
        let inner = Inner {
            engine,
            pipe_client: client,
            calls: CallCount::default(),
            unsent: Unsent::default(),
            listeners: Arc::default(),
            seal: Seal::fresh().ok_or(DoorError::Random)?,
            parked: ParkedCalls::default(),
            pipe_session: session_name()?,
            stop: CancellationToken::new(),
            closing: CancellationToken::new(),
        };
        Ok(Door {
            inner: Arc::new(inner),
        })
    }

    /// The engine behind the door.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// How many calls are under way.
    #[must_use]
    pub fn calls_under_way(&self) -> usize {
        self.inner.calls.under_way()
    }

    /// How many bytes of answers are made and not sent.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.inner.unsent.together()
    }

    /// How many peers are told when tools change.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.inner.listeners.count()
    }

    /// Lets calls finish for a while, then cancels the rest and waits until their
    /// audit rows are closed.
    pub(crate) async fn drain(&self, hard: &CancellationToken) {
        // First, so that `/readyz` fails and a load balancer stops sending requests.
        self.inner.closing.cancel();
        // No client can come back for these: the seal ends with this process.
        self.inner.parked.clear();
        tokio::select! {
            () = self.inner.calls.quiet() => {}
            () = tokio::time::sleep(Duration::from_secs(limit::SHUTDOWN_GRACE_SECONDS)) => {}
            () = hard.cancelled() => {}
        }
        self.inner.stop.cancel();
        let bound = Duration::from_secs(limit::SHUTDOWN_CLOSE_SECONDS);
        let _ = tokio::time::timeout(bound, self.inner.calls.quiet()).await;
    }
}

/// An unguessable name that no later process has.
fn session_name() -> Result<String, DoorError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| DoorError::Random)?;
    Ok(format!("stdio-{:032x}", u128::from_be_bytes(bytes)))
}
