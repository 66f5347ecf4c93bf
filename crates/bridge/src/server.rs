//! One server: started when it is first used, listed and reviewed before it is called,
//! stopped when it is idle, tried again less and less often when it fails.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jail::{JailGrace, JailedChild};
use model::sync::lock;
use rmcp::service::{Peer, RoleClient, RunningService};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::backoff::Backoff;
use crate::call::{self, ToolCall, ToolResult};
use crate::client::Client;
use crate::connect::{self, Opened, ServerSettings, ServerTarget};
use crate::error_log::ErrorLog;
use crate::fault::{ServerFault, shown};
use crate::limit;
use crate::list::{self, SeenTools, ServerIdentity};
use crate::secret_mask::SecretMask;
use crate::subscribe;

/// Compares what a server offers with what its owner accepted, before any of it is used.
pub trait Reviewer: Send + Sync + fmt::Debug {
    /// What to do with a list. An error stops the server, with these words.
    fn review(&self, server: &str, seen: &SeenTools) -> Result<(), String>;
}

/// A server of the settings. Dropping it stops its process.
#[derive(Debug)]
pub struct Server {
    inner: Arc<Inner>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Inner {
    mask: SecretMask,
    settings: ServerSettings,
    reviewer: Arc<dyn Reviewer>,
    /// Held while a connection is opened, so that there are never two attempts at once.
    state: tokio::sync::Mutex<State>,
    status: Mutex<ServerStatus>,
    places: Semaphore,
    log: ErrorLog,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    backoff: Backoff,
    connection: Option<Arc<Connection>>,
}

/// An open connection.
#[derive(Debug)]
struct Connection {
    peer: Peer<RoleClient>,
    client: Client,
    stop: CancellationToken,
    used: mpsc::Sender<()>,
}

/// Where a server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    /// It was not used yet, or was idle.
    Stopped,
    /// It answers.
    Ready {
        /// What it says about itself.
        server: ServerIdentity,
        /// How many tools it offers.
        tool_count: usize,
        /// The layers of its jail, each with why it is missing if it is.
        walls: Vec<(String, Option<String>)>,
    },
    /// It failed.
    Failed(ServerFault),
}

impl Server {
    /// A server that is not started yet.
    #[must_use]
    pub fn new(settings: ServerSettings, reviewer: Arc<dyn Reviewer>) -> Server {
        let stop = CancellationToken::new();
        let tokens = match &settings.target {
            ServerTarget::Command { .. } => None,
            ServerTarget::Address(address) => address.tokens.clone(),
        };
        let mask = SecretMask::new(Arc::clone(&settings.masker), tokens);
        // Lines that cannot be kept for others are still in the memory of this process.
        let kept = settings.logs.as_deref().map(ErrorLog::kept_in);
        let log = kept.and_then(Result::ok).unwrap_or_default();
        Server {
            inner: Arc::new(Inner {
                mask,
                settings,
                reviewer,
                state: tokio::sync::Mutex::default(),
                status: Mutex::new(ServerStatus::Stopped),
                places: Semaphore::new(limit::SERVER_CALLS_MAX),
                log,
                stop: stop.clone(),
            }),
            _stop: stop.drop_guard(),
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        lock(&self.inner.status).clone()
    }

    /// The last lines its process wrote on its standard error, masked.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.inner.log.lines()
    }

    /// Starts it unless it runs, and has its list reviewed.
    pub async fn start(&self) -> Result<(), ServerFault> {
        self.inner.connection().await.map(drop)
    }

    /// Stops it, forgets its failures; the next use starts it again.
    pub async fn restart(&self) {
        let mut state = self.inner.state.lock().await;
        if let Some(connection) = state.connection.take() {
            connection.stop.cancel();
        }
        state.backoff.forget();
        *lock(&self.inner.status) = ServerStatus::Stopped;
    }

    /// Calls a tool. `check` is asked once the list of this very connection was reviewed:
    /// what the caller was shown may be gone by then.
    pub async fn call<E: From<ServerFault>>(
        &self,
        tool_call: ToolCall,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<ToolResult, E> {
        let connection = self.inner.connection().await?;
        check()?;
        let wait = self.inner.places.acquire();
        let place = tokio::time::timeout(tool_call.timeout, wait).await;
        let _place = place.map_err(|_| ServerFault::Timeout(tool_call.timeout))?;
        let _ = connection.used.try_send(());
        let result = call::run(&connection.peer, connection.client.calls(), tool_call).await;
        let _ = connection.used.try_send(());
        if let Err(fault) = &result
            && fault.ends_connection()
        {
            self.inner.leave(&connection, fault).await;
        }
        Ok(result.map_err(|fault| self.inner.mask.fault(fault))?)
    }
}

impl Inner {
    /// Boxed because rustc compiles a future again in every crate that awaits it, and this
    /// one holds the whole client.
    fn connection(self: &Arc<Inner>) -> BoxFuture<'_, Result<Arc<Connection>, ServerFault>> {
        Box::pin(self.connect())
    }

    async fn connect(self: &Arc<Inner>) -> Result<Arc<Connection>, ServerFault> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection
            && !connection.peer.is_transport_closed()
        {
            return Ok(Arc::clone(connection));
        }
        state.connection = None;
        state.backoff.check(Instant::now())?;
        match self.open().await {
            Ok(connection) => {
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(fault) => {
                let fault = self.mask.fault(fault);
                if fault.is_failure_of_server() {
                    state
                        .backoff
                        .fail(&fault.to_string(), Instant::now(), spread());
                }
                *lock(&self.status) = ServerStatus::Failed(fault.clone());
                Err(fault)
            }
        }
    }

    /// Gives up a connection that is of no use any more. The next call opens another, and
    /// the list of that one is reviewed again.
    async fn leave(&self, connection: &Arc<Connection>, fault: &ServerFault) {
        let mut state = self.state.lock().await;
        let current = state.connection.as_ref();
        if current.is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            *lock(&self.status) = ServerStatus::Failed(fault.clone());
        }
        connection.stop.cancel();
    }

    /// Opens a connection, fetches the list and has it reviewed.
    async fn open(self: &Arc<Inner>) -> Result<Arc<Connection>, ServerFault> {
        let Opened {
            service,
            client,
            process,
        } = connect::open(&self.settings, &self.mask, &self.log).await?;
        let peer = service.peer().clone();
        let walls = process.as_ref().map(wall_lines).unwrap_or_default();
        let subscription = subscribe::begin(&peer).await;
        let reviewed = self.review(&peer).await;
        let (used, uses) = mpsc::channel(1);
        let connection = Arc::new(Connection {
            peer,
            client,
            stop: self.stop.child_token(),
            used,
        });
        let (server, tool_count) = match reviewed {
            Ok(seen) => seen,
            Err(fault) => {
                end(service, process).await;
                return Err(fault);
            }
        };
        *lock(&self.status) = ServerStatus::Ready {
            server,
            tool_count,
            walls,
        };
        let watch = Watch {
            inner: Arc::downgrade(self),
            connection: Arc::clone(&connection),
            started: Instant::now(),
            idle: self.settings.idle,
        };
        let (peer, stop) = (connection.peer.clone(), connection.stop.clone());
        let changed = Arc::clone(connection.client.list_changed());
        tokio::spawn(subscribe::keep(peer, subscription, changed, stop));
        tokio::spawn(watch.run(service, process, uses));
        Ok(connection)
    }

    /// Fetches the list and hands it over before any of it is used.
    async fn review(
        &self,
        peer: &Peer<RoleClient>,
    ) -> Result<(ServerIdentity, usize), ServerFault> {
        let Some(info) = peer.peer_info() else {
            return Err(ServerFault::Protocol(
                "it says nothing about itself".to_owned(),
            ));
        };
        let mut server = ServerIdentity::of(&info);
        let offers = list::fetch(peer, &server, &self.settings).await?;
        let tool_count = offers.tools.len();
        // Attack: a server that writes a secret of ours into a description, which is kept,
        // shown to the owner and to every client.
        let mask = self.mask.now()?;
        let hide = |words: Option<String>| words.map(|words| mask.text(&words));
        server.name = hide(server.name);
        server.version = hide(server.version);
        server.instructions = hide(server.instructions);
        let offers = offers.map(|item| mask.value(item));
        let seen = SeenTools { server, offers };
        let reviewed = self.reviewer.review(&self.settings.name, &seen);
        reviewed.map_err(ServerFault::Held)?;
        Ok((seen.server, tool_count))
    }
}

/// Looks after one connection until it ends.
struct Watch {
    inner: Weak<Inner>,
    connection: Arc<Connection>,
    started: Instant,
    idle: Duration,
}

impl Watch {
    async fn run(
        self,
        service: RunningService<RoleClient, Client>,
        process: Option<JailedChild>,
        mut uses: mpsc::Receiver<()>,
    ) {
        let close = service.cancellation_token();
        let mut ended = std::pin::pin!(service.waiting());
        let mut idle_at = Instant::now() + self.idle;
        let mut relist_from = Instant::now();
        let list_changed = Arc::clone(self.connection.client.list_changed());
        let why = loop {
            tokio::select! {
                _ = &mut ended => break Some("the connection ended".to_owned()),
                () = self.connection.stop.cancelled() => break None,
                used = uses.recv() => match used {
                    Some(()) => idle_at = Instant::now() + self.idle,
                    None => break None,
                },
                () = sleep_until(idle_at) => {
                    match self.connection.client.calls().is_empty() {
                        true => break None,
                        false => idle_at = Instant::now() + self.idle,
                    }
                }
                () = list_changed.notified() => {
                    // Several changes in a row, or a flood of them, are one fetch.
                    let delay = Duration::from_millis(limit::SERVER_RELIST_DELAY_MS);
                    sleep_until(relist_from.max(Instant::now() + delay)).await;
                    let pause = Duration::from_millis(limit::SERVER_RELIST_PAUSE_MS);
                    relist_from = Instant::now() + pause;
                    if let Err(fault) = self.relist().await {
                        break Some(fault.to_string());
                    }
                }
            }
        };
        self.forget(why.as_deref()).await;
        // Whatever else looks after the connection ends with it.
        self.connection.stop.cancel();
        close.cancel();
        if let Some(process) = process {
            process.terminate(JailGrace::standard()).await;
        }
    }

    async fn relist(&self) -> Result<(), ServerFault> {
        let Some(inner) = self.inner.upgrade() else {
            return Ok(());
        };
        let (server, tool_count) = inner.review(&self.connection.peer).await?;
        let mut status = lock(&inner.status);
        if let ServerStatus::Ready { walls, .. } = &*status {
            let walls = walls.clone();
            *status = ServerStatus::Ready {
                server,
                tool_count,
                walls,
            };
        }
        Ok(())
    }

    /// The connection is over: the next call opens another, unless this one failed a
    /// moment ago.
    async fn forget(&self, why: Option<&str>) {
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        let mut state = inner.state.lock().await;
        let is_current = |connection: &Arc<Connection>| Arc::ptr_eq(connection, &self.connection);
        if !state.connection.as_ref().is_some_and(is_current) {
            return;
        }
        state.connection = None;
        let uptime = self.started.elapsed();
        state.backoff.note_uptime(uptime);
        *lock(&inner.status) = match why {
            None => ServerStatus::Stopped,
            Some(why) => {
                let last = inner
                    .log
                    .last()
                    .map(|line| format!("; its last line: {line}"));
                let why = format!("{}{}", shown(why), last.unwrap_or_default());
                let ended = inner.mask.fault(ServerFault::Closed(why));
                if let ServerFault::Closed(why) = &ended {
                    state.backoff.fail(why, Instant::now(), spread());
                }
                ServerStatus::Failed(ended)
            }
        };
    }
}

async fn end(service: RunningService<RoleClient, Client>, process: Option<JailedChild>) {
    service.cancellation_token().cancel();
    if let Some(process) = process {
        process.terminate(JailGrace::standard()).await;
    }
}

fn wall_lines(process: &JailedChild) -> Vec<(String, Option<String>)> {
    let walls = process.walls.iter();
    walls
        .map(|wall| (wall.layer.to_string(), wall.missing.clone()))
        .collect()
}

/// Shifts the pauses of several processes apart. It decides nothing, so the clock is
/// random enough.
fn spread() -> u8 {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    nanos.to_le_bytes()[1]
}
