//! One server: started when it is first used, listed and reviewed before it is called,
//! stopped when it is idle, tried again less and less often when it fails.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use host::egress::{Egress, EgressEvent};
use model::record::mask::Masker;
use model::sync::lock;
use rmcp::service::{Peer, RoleClient, RunningService};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::backoff::Backoff;
use crate::call::{self, CallWay, ToolResult};
use crate::client::Client;
use crate::connect::{self, Opened, ServerSettings, ServerTarget};
use crate::error_log::ErrorLog;
use crate::fault::{ServerFault, shown};
use crate::http::plain::{self, PlainCalls};
use crate::limit;
use crate::list::{self, SeenTools, ServerIdentity};
use crate::process::{ConnectionSink, ServerProcess};
use crate::secret_mask::SecretMask;
use crate::subscribe;
use crate::tool_call::ToolCall;

/// Compares what a server offers with what its owner accepted, before any of it is used.
pub trait Reviewer: Send + Sync + fmt::Debug {
    /// What to do with a list. Gives a stamp that is the same for the same list and for no
    /// other; an error stops the server, with these words.
    fn review(&self, server: &str, seen: &SeenTools) -> Result<String, String>;

    /// What was decided about connections of a server's process that no call asked for.
    fn note_connections(&self, server: &str, events: &[EgressEvent]);
}

/// A list that was reviewed.
#[derive(Clone, Debug)]
pub struct ReviewedTools {
    /// What the reviewer knows it by.
    pub stamp: String,
    /// The list.
    pub seen: SeenTools,
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
    /// When it is tried again, after a failure.
    next_attempt: Mutex<Option<Instant>>,
    places: Semaphore,
    log: ErrorLog,
    /// The network of the process that runs, if it has one.
    egress: Mutex<Option<Egress>>,
    sink: ConnectionSink,
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
    plain: Option<PlainCalls>,
    /// What it was shown last.
    list: Mutex<CurrentList>,
    /// Held while the list is fetched again: calls that find it too old share one fetch.
    listing: tokio::sync::Mutex<()>,
    /// Whether the server tells of changes, now.
    is_told: Arc<AtomicBool>,
    stop: CancellationToken,
    used: mpsc::Sender<()>,
    started: Instant,
}

/// A list, and until when it counts as what the server offers, if the server does not tell.
#[derive(Clone, Debug)]
struct CurrentList {
    reviewed: Arc<ReviewedTools>,
    /// Tools whose calls are not plain.
    with_headers: Vec<String>,
    until: Instant,
}

impl Connection {
    fn reviewed(&self) -> Arc<ReviewedTools> {
        Arc::clone(&lock(&self.list).reviewed)
    }

    fn way(&self, call: &ToolCall) -> CallWay<'_> {
        let is_plain =
            PlainCalls::take(call) && !lock(&self.list).with_headers.contains(&call.tool);
        CallWay {
            peer: &self.peer,
            us: &self.client,
            plain: self.plain.as_ref().filter(|_| is_plain),
        }
    }

    fn is_current(&self) -> bool {
        self.is_told.load(Ordering::Relaxed) || Instant::now() < lock(&self.list).until
    }
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

impl ServerStatus {
    fn ready(seen: &SeenTools, walls: Vec<(String, Option<String>)>) -> ServerStatus {
        ServerStatus::Ready {
            server: seen.server.clone(),
            tool_count: seen.offers.tools.len(),
            walls,
        }
    }
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
        let (name, reader) = (settings.name.clone(), Arc::clone(&reviewer));
        let masker = Arc::clone(&settings.masker);
        let sink = ConnectionSink::new(move |events| {
            reader.note_connections(&name, &masked(&masker, events));
        });
        Server {
            inner: Arc::new(Inner {
                mask,
                settings,
                reviewer,
                state: tokio::sync::Mutex::default(),
                status: Mutex::new(ServerStatus::Stopped),
                next_attempt: Mutex::default(),
                places: Semaphore::new(limit::SERVER_CALLS_MAX),
                log,
                egress: Mutex::default(),
                sink,
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

    /// In how long it is tried again, if it failed.
    #[must_use]
    pub fn next_attempt(&self) -> Option<Duration> {
        let next = *lock(&self.inner.next_attempt);
        next?.checked_duration_since(Instant::now())
    }

    /// The last lines its process wrote on its standard error, masked.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.inner.log.lines()
    }

    /// What was decided about the connections of its process that ended since this was
    /// last asked, secrets masked. What is left when the process ends goes to the reviewer.
    #[must_use]
    pub fn take_connections(&self) -> Vec<EgressEvent> {
        let events = match &*lock(&self.inner.egress) {
            Some(egress) => egress.take_events(),
            None => return Vec::new(),
        };
        masked(&self.inner.settings.masker, events)
    }

    /// Starts it unless it runs, and has its list reviewed.
    pub async fn start(&self) -> Result<(), ServerFault> {
        self.inner.connection(Instant::now()).await.map(drop)
    }

    /// Stops it, forgets its failures; the next use starts it again.
    pub async fn restart(&self) {
        let mut state = self.inner.state.lock().await;
        if let Some(connection) = state.connection.take() {
            connection.stop.cancel();
        }
        state.backoff.forget();
        *lock(&self.inner.next_attempt) = None;
        *lock(&self.inner.status) = ServerStatus::Stopped;
    }

    /// Calls a tool. `check` gets the list of this very connection: what the caller was
    /// shown may be gone by then, or may be what the server shows to others.
    pub async fn call<E: From<ServerFault>>(
        &self,
        tool_call: ToolCall,
        check: impl Fn(&ReviewedTools) -> Result<(), E>,
    ) -> Result<ToolResult, E> {
        let called = match self.call_once(&tool_call, &check).await? {
            // It did not run, as after a restart of the server. So it runs now, on a
            // connection whose list is fetched and checked like that of any other.
            Err(ServerFault::Forgotten) => self.call_once(&tool_call, &check).await?,
            called => called,
        };
        Ok(called.map_err(|fault| self.inner.mask.fault(fault))?)
    }

    /// One attempt. What `check` says is the outer error.
    async fn call_once<E>(
        &self,
        tool_call: &ToolCall,
        check: &impl Fn(&ReviewedTools) -> Result<(), E>,
    ) -> Result<Result<ToolResult, ServerFault>, E> {
        let until = Instant::now() + tool_call.timeout;
        // First: a list that was compared before a long wait says nothing about what is served
        // after it.
        let wait = self.inner.places.acquire();
        let Ok(Ok(_place)) = tokio::time::timeout_at(until, wait).await else {
            return Ok(Err(ServerFault::Timeout(tool_call.timeout)));
        };
        let connection = match self.inner.connection(until).await {
            Ok(connection) => connection,
            Err(fault) => return Ok(Err(fault)),
        };
        // On this connection's own list: a server may show one list and serve another.
        check(&connection.reviewed())?;
        // A full channel already says that it is used.
        let _ = connection.used.try_send(());
        let called = call::run(connection.way(tool_call), tool_call).await;
        let _ = connection.used.try_send(());
        if let Err(fault) = &called
            && fault.ends_connection()
        {
            self.inner.leave(&connection, fault).await;
        }
        Ok(called)
    }
}

impl Inner {
    /// A connection whose list was reviewed and is not too old. Until `until` it waits for the
    /// list of a server that is busy.
    ///
    /// Boxed because rustc compiles a future again in every crate that awaits it, and this
    /// one holds the whole client.
    fn connection(
        self: &Arc<Inner>,
        until: Instant,
    ) -> BoxFuture<'_, Result<Arc<Connection>, ServerFault>> {
        Box::pin(async move {
            let connection = self.connect().await?;
            // Before the list is fetched, so that it does not end as idle meanwhile.
            let _ = connection.used.try_send(());
            loop {
                let began = Instant::now();
                let Err(fault) = self.refresh(&connection).await else {
                    return Ok(connection);
                };
                let fault = self.mask.fault(fault);
                let is_refused = matches!(fault, ServerFault::Held(_)) || fault.ends_connection();
                // Calls that run passed the check, and many servers answer one at a time.
                let is_busy = !connection.client.calls().is_empty();
                if is_refused || !is_busy {
                    self.leave(&connection, &fault).await;
                    return Err(fault);
                }
                let was_slow = began.elapsed() >= Duration::from_millis(limit::SERVER_LIST_MS_MAX);
                if !was_slow || Instant::now() >= until {
                    return Err(fault);
                }
            }
        })
    }

    /// Attack: another server at the same address, or another version of it, which tells
    /// nobody. Its list is compared before a call once the last one is too old. A busy server
    /// is asked once for each such time, an idle one never.
    async fn refresh(&self, connection: &Connection) -> Result<(), ServerFault> {
        if connection.is_current() {
            return Ok(());
        }
        let _turn = connection.listing.lock().await;
        // Another call may have fetched it meanwhile.
        match connection.is_current() {
            true => Ok(()),
            false => self.relist(connection).await,
        }
    }

    /// Fetches the list of a connection again and has it reviewed.
    async fn relist(&self, connection: &Connection) -> Result<(), ServerFault> {
        let list = self.review(&connection.peer, &connection.client).await?;
        let mut status = lock(&self.status);
        if let ServerStatus::Ready { walls, .. } = &*status {
            *status = ServerStatus::ready(&list.reviewed.seen, walls.clone());
        }
        drop(status);
        *lock(&connection.list) = list;
        Ok(())
    }

    /// Counts a failure of the server, and notes when it is tried again.
    fn fail(&self, state: &mut State, why: &str) {
        let now = Instant::now();
        state.backoff.fail(why, now, spread());
        *lock(&self.next_attempt) = match state.backoff.check(now) {
            Err(ServerFault::Waiting { retry_in, .. }) => Some(now + retry_in),
            Err(_) | Ok(()) => None,
        };
    }

    async fn connect(self: &Arc<Inner>) -> Result<Arc<Connection>, ServerFault> {
        // Held over the whole attempt, so that several first calls start one process.
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
                *lock(&self.next_attempt) = None;
                Ok(connection)
            }
            Err(fault) => {
                // Before it is kept anywhere: status, log and callers all
                // get the masked one.
                let fault = self.mask.fault(fault);
                if fault.is_failure_of_server() {
                    self.fail(&mut state, &fault.to_string());
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
            state.backoff.note_uptime(connection.started.elapsed());
            // A session or a token that ended is no fault of the server: there is no pause.
            if fault.is_failure_of_server() {
                self.fail(&mut state, &fault.to_string());
            }
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
            plain,
        } = connect::open(&self.settings, &self.mask, &self.log, &self.sink).await?;
        *lock(&self.egress) = process.as_ref().and_then(ServerProcess::egress);
        let peer = service.peer().clone();
        let walls = process.as_ref().map(wall_lines).unwrap_or_default();
        // Before the list, so that no change falls in between.
        let subscription = subscribe::begin(&peer).await;
        let list = match self.review(&peer, &client).await {
            Ok(list) => list,
            Err(fault) => {
                end(service, process).await;
                return Err(fault);
            }
        };
        *lock(&self.status) = ServerStatus::ready(&list.reviewed.seen, walls);
        let is_told = subscribe::tells_unasked(&peer, process.is_some());
        let (used, uses) = mpsc::channel(1);
        let connection = Arc::new(Connection {
            peer,
            client,
            plain,
            list: Mutex::new(list),
            listing: tokio::sync::Mutex::default(),
            is_told: Arc::new(AtomicBool::new(is_told)),
            stop: self.stop.child_token(),
            used,
            started: Instant::now(),
        });
        let watch = Watch {
            // Weak: a watch must not keep a server alive that its owner dropped.
            inner: Arc::downgrade(self),
            connection: Arc::clone(&connection),
            idle: self.settings.idle,
        };
        let (peer, stop) = (connection.peer.clone(), connection.stop.clone());
        let changed = Arc::clone(connection.client.list_changed());
        let is_told = Arc::clone(&connection.is_told);
        tokio::spawn(subscribe::keep(peer, subscription, changed, is_told, stop));
        tokio::spawn(watch.run(service, process, uses));
        Ok(connection)
    }

    /// Fetches the list and hands it over before any of it is used.
    async fn review(
        &self,
        peer: &Peer<RoleClient>,
        us: &Client,
    ) -> Result<CurrentList, ServerFault> {
        // From before the fetch: what changes during it is not in the list.
        let asked = Instant::now();
        let Some(info) = peer.peer_info() else {
            return Err(ServerFault::Protocol(
                "it says nothing about itself".to_owned(),
            ));
        };
        let mut server = ServerIdentity::of(&info);
        let (offers, age) = list::fetch((peer, us.calls()), &server, &self.settings).await?;
        // Attack: a server that writes a secret of ours into a description, which is kept,
        // shown to the owner and to every client.
        let mask = self.mask.now()?;
        let hide = |words: Option<String>| words.map(|words| mask.text(&words));
        server.name = hide(server.name);
        server.version = hide(server.version);
        server.instructions = hide(server.instructions);
        let offers = offers.map(|item| mask.value(item));
        let with_headers = plain::tools_with_headers(&offers.tools);
        let seen = SeenTools { server, offers };
        let stamp = self.reviewer.review(&self.settings.name, &seen);
        let stamp = stamp.map_err(ServerFault::Held)?;
        Ok(CurrentList {
            reviewed: Arc::new(ReviewedTools { stamp, seen }),
            with_headers,
            until: asked + age,
        })
    }
}

/// Looks after one connection until it ends.
struct Watch {
    inner: Weak<Inner>,
    connection: Arc<Connection>,
    idle: Duration,
}

impl Watch {
    async fn run(
        self,
        service: RunningService<RoleClient, Client>,
        process: Option<ServerProcess>,
        mut uses: mpsc::Receiver<()>,
    ) {
        let close = service.cancellation_token();
        let mut ended = std::pin::pin!(service.waiting());
        let mut idle_at = Instant::now() + self.idle;
        let mut relist_from = Instant::now();
        let list_changed = Arc::clone(self.connection.client.list_changed());
        let why = loop {
            tokio::select! {
                // Ended by itself, which is a failure; the other two ways out are ours.
                _ = &mut ended => break Some(self.why_ended()),
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
                    let from = relist_from.max(Instant::now() + delay);
                    let relisted = async {
                        sleep_until(from).await;
                        self.relist().await
                    };
                    // The pause and the fetch may take long; the end does not wait for them.
                    let listed = tokio::select! {
                        _ = &mut ended => break Some(self.why_ended()),
                        () = self.connection.stop.cancelled() => break None,
                        listed = relisted => listed,
                    };
                    relist_from = from + Duration::from_millis(limit::SERVER_RELIST_PAUSE_MS);
                    // A list that is refused later ends the connection as it would
                    // have at the start.
                    if let Err(fault) = listed {
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
            process.end().await;
        }
    }

    /// Why the connection ended by itself, as far as that is known.
    fn why_ended(&self) -> String {
        let faults = self.connection.client.calls().faults();
        match faults.explain(ServerFault::Closed("the connection ended".to_owned())) {
            ServerFault::Closed(why) => why,
            other => other.to_string(),
        }
    }

    async fn relist(&self) -> Result<(), ServerFault> {
        let Some(inner) = self.inner.upgrade() else {
            return Ok(());
        };
        let _turn = self.connection.listing.lock().await;
        inner.relist(&self.connection).await
    }

    /// The connection is over: the next call opens another, unless this one failed a
    /// moment ago.
    async fn forget(&self, why: Option<&str>) {
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        let mut state = inner.state.lock().await;
        let is_current = |connection: &Arc<Connection>| Arc::ptr_eq(connection, &self.connection);
        // The owner restarted it, or a call gave it up: its end is accounted for.
        if !state.connection.as_ref().is_some_and(is_current) {
            return;
        }
        state.connection = None;
        let uptime = self.connection.started.elapsed();
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
                    inner.fail(&mut state, why);
                }
                ServerStatus::Failed(ended)
            }
        };
    }
}

async fn end(service: RunningService<RoleClient, Client>, process: Option<ServerProcess>) {
    service.cancellation_token().cancel();
    if let Some(process) = process {
        process.end().await;
    }
}

/// Attack: a process that writes a secret into the name of a host, which goes to the
/// audit.
fn masked(masker: &Masker, mut events: Vec<EgressEvent>) -> Vec<EgressEvent> {
    for event in &mut events {
        event.host = masker.text(&event.host).into_inner();
        event.method = masker.text(&event.method).into_inner();
    }
    events
}

fn wall_lines(process: &ServerProcess) -> Vec<(String, Option<String>)> {
    let walls = process.child.walls.iter();
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
