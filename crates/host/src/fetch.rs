//! The network, for tool code: one request at a time, each hop decided separately.
//!
//! A `Fetch` is made from a grant; mode `blocked` makes none. For the URL a
//! script gives and again for every redirect: the host is checked, its name is
//! looked up once, every address of the answer is checked, and the connection
//! goes to one of those addresses and no other. No proxy, no cookie jar, no
//! cache, nothing from the environment.

pub mod connect;
pub(crate) mod connection;
pub(crate) mod deadline;
mod decode;
mod event;
mod exchange;
pub(crate) mod fault;
pub mod limits;
pub(crate) mod lookup;
mod request;
pub mod resolve;
pub(crate) mod rule;
pub(crate) mod target;
pub(crate) mod tls;
mod window;

use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::BoxFuture;
use hyper::StatusCode;
use hyper::header::LOCATION;
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use model::sync::lock;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::fetch::connect::{Connector, TcpConnector};
use crate::fetch::deadline::Deadline;
use crate::fetch::exchange::{Reply, send};
use crate::fetch::lookup::{NameLookup, look_up};
use crate::fetch::request::{FetchArguments, FetchRequest, is_redirect, shown};
use crate::fetch::resolve::{Resolve, SystemResolver};
use crate::fetch::rule::{FetchRule, out_of_bounds};
use crate::fetch::target::FetchTarget;
use crate::fetch::window::answer;
use crate::message::{PowerFault, PowerReply, PowerRequest};

pub use event::FetchEvent;
pub use fault::HttpFault;
pub use limits::FetchLimits;
pub use tls::{Tls, TlsError, TlsTrust};

/// What is the same for every tool, and the secrets of this call.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    /// How long and how much.
    pub limits: FetchLimits,
    /// The certificate authorities that are trusted; made once per process.
    pub tls: Tls,
    /// Who answers questions about names.
    pub resolver: Arc<dyn Resolve>,
    /// Who opens connections.
    pub connector: Arc<dyn Connector>,
    /// The secrets of the call: a header that shows one is a credential.
    pub secrets: Arc<Masker>,
    /// Ports that no tool may reach unless the very host stands in the list.
    pub ports_blocked: Arc<[u16]>,
    /// Names that may lead to private addresses: the operator's word, never a
    /// document's.
    pub private_hosts: Arc<[HostPattern]>,
}

/// Ports on which something listens that a cleverly written request body could
/// command: the list of the Fetch standard, without what is also used for the web.
pub const PORTS_BLOCKED: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 10080, 11211,
];

impl FetchSettings {
    /// The system's resolver, plain TCP, default limits, no secrets.
    #[must_use]
    pub fn new(tls: Tls, secrets: Arc<Masker>) -> FetchSettings {
        FetchSettings {
            limits: FetchLimits::default(),
            tls,
            resolver: Arc::new(SystemResolver),
            connector: Arc::new(TcpConnector),
            secrets,
            ports_blocked: PORTS_BLOCKED.into(),
            private_hosts: Arc::new([]),
        }
    }
}

/// The power to fetch. One for each call.
#[derive(Debug)]
pub struct Fetch {
    rule: FetchRule,
    settings: FetchSettings,
    places: Semaphore,
    abandoned: Mutex<Vec<FetchEvent>>,
}

/// How one `fetch` of a script ended, and what it leaves in the record.
#[derive(Debug)]
pub struct Fetched {
    /// What the script gets.
    pub outcome: Result<PowerReply, PowerFault>,
    /// One for each hop, in order.
    pub events: Vec<FetchEvent>,
}

impl Fetch {
    /// The power a grant gives; none in mode `blocked`.
    #[must_use]
    pub fn from_grant(
        grant: &NetworkGrant,
        bounds: &HostBounds,
        mut settings: FetchSettings,
    ) -> Option<Fetch> {
        let rule = FetchRule::from_grant(grant, bounds, &settings.private_hosts)?;
        // Each call has a memory of its own, so that no server can join two
        // callers by a ticket.
        settings.tls = settings.tls.without_memory();
        let places = Semaphore::new(settings.limits.concurrent_max.max(1));
        Some(Fetch {
            rule,
            settings,
            places,
            abandoned: Mutex::default(),
        })
    }

    /// One `fetch(url, init)`. Never waits longer than the limits say.
    pub fn run(&self, ask: PowerRequest) -> BoxFuture<'_, Fetched> {
        Box::pin(self.fetch(ask))
    }

    async fn fetch(&self, ask: PowerRequest) -> Fetched {
        // Outside of the future's own state: if the call is dropped here, the
        // hops so far are kept.
        let mut kept = Kept {
            fetch: self,
            events: Vec::new(),
        };
        let outcome = self.follow(&ask, &mut kept.events).await;
        let events = std::mem::take(&mut kept.events);
        Fetched {
            outcome: outcome.map_err(|fault| fault.into_power_fault(HELPER)),
            events,
        }
    }

    /// The hops of every [`Fetch::run`] that was dropped before its end. They may
    /// have reached their hosts, so they belong in the record too.
    pub fn take_abandoned(&self) -> Vec<FetchEvent> {
        std::mem::take(&mut *self.abandoned())
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<FetchEvent>> {
        lock(&self.abandoned)
    }

    async fn follow(
        &self,
        ask: &PowerRequest,
        events: &mut Vec<FetchEvent>,
    ) -> Result<PowerReply, HttpFault> {
        let limits = &self.settings.limits;
        let deadline = Deadline::after(limits.whole);
        let arguments = FetchArguments::from_ask(ask, limits);
        // On record even before a host is known: a refused request is an event too.
        let arguments = arguments.inspect_err(|fault| {
            events.push(refused("GET".to_owned(), None, fault));
        })?;
        let first = FetchTarget::parse(arguments.raw_url, None)
            .and_then(|target| arguments.request(target, &ask.bytes, limits));
        let mut request = first.inspect_err(|fault| {
            let to = FetchTarget::parse(arguments.raw_url, None).ok();
            events.push(refused(arguments.raw_method(), to.as_ref(), fault));
        })?;
        // Before the first hop, and held to the end: redirects of one request are not a way
        // around the bound.
        let (place, host) = (self.places.acquire(), &request.target.host);
        let waiting = deadline.wait(limits.whole, "waiting for a turn with", host, place);
        let _place = waiting.await.inspect_err(|fault| {
            let method = request.method.to_string();
            events.push(refused(method, Some(&request.target), fault));
        })?;
        let mut redirect_count = 0;
        loop {
            let mut record = Record::open(self, &request);
            let ended = self.hop(&request, &arguments, deadline, &mut record.event);
            let ended = ended.await;
            // Before `?`: a hop that failed is on record like one that worked.
            events.push(record.close(ended.as_ref().err()));
            let (status, raw_location) = match ended? {
                Hop::Answer(answer) => return Ok(answer),
                Hop::Redirect(status, raw_location) => (status, raw_location),
            };
            // A place that cannot be reached is a refused hop as well.
            let to = FetchTarget::parse(&raw_location, Some(&request.target.url));
            let method = request.method.to_string();
            let to = to.inspect_err(|fault| events.push(refused(method.clone(), None, fault)))?;
            // After the target is parsed, so that the record names where the
            // last redirect led.
            if redirect_count == limits.redirect_count_max {
                let host = &to.host;
                let rule = format!("more than {redirect_count} redirects, the last to {host}");
                let fault = HttpFault::denied("too-many-redirects", rule);
                events.push(refused(method, Some(&to), &fault));
                return Err(fault);
            }
            redirect_count += 1;
            let next = request.redirected(status, to.clone(), &self.settings.secrets);
            request = next.inspect_err(|fault| {
                events.push(refused(method, Some(&to), fault));
            })?;
        }
    }

    async fn hop(
        &self,
        request: &FetchRequest,
        arguments: &FetchArguments<'_>,
        deadline: Deadline,
        event: &mut FetchEvent,
    ) -> Result<Hop, HttpFault> {
        let settings = &self.settings;
        // The operator's own bounds come before the grant, so a wide document cannot reach
        // around them.
        self.rule.bounded(&request.target).map_err(|out| {
            event.by = Some(out.list.by.to_string());
            out_of_bounds(out, &request.target.host)
        })?;
        let admission = self.rule.admit(&request.target, &settings.ports_blocked)?;
        let names = NameLookup {
            resolver: &*settings.resolver,
            wait: settings.limits.resolve,
            address_count_max: settings.limits.address_count_max,
        };
        let addresses = look_up(names, &request.target, admission, deadline).await?;
        let reply = send(settings, request, &addresses, deadline, event).await?;
        // With `manual` the script sees the redirect. It may follow it by a request of its
        // own, which is decided from the start.
        if let Some(raw_location) = location(&reply).filter(|_| !arguments.is_manual()) {
            return Ok(Hop::Redirect(reply.status, raw_location));
        }
        let status = reply.status;
        let host = &request.target.host;
        let (headers, body) = reply
            .into_body(host, &settings.limits, deadline, event)
            .await?;
        let url = request.target.url.as_str();
        let window = arguments.window();
        Ok(Hop::Answer(answer(url, status, &headers, body, window)))
    }
}

/// How one hop ends when nothing goes wrong.
enum Hop {
    Answer(PowerReply),
    Redirect(StatusCode, String),
}

/// The event of a hop that was refused before it began.
fn refused(method: String, to: Option<&FetchTarget>, fault: &HttpFault) -> FetchEvent {
    FetchEvent {
        method,
        host: to.map_or_else(String::new, |to| to.host.to_string()),
        port: to.map(|to| to.port),
        refusal: Some(fault.reason),
        ..FetchEvent::default()
    }
}

/// Where the reply sends us; nothing if it is the answer. A redirect without a
/// `Location` is an answer.
fn location(reply: &Reply) -> Option<String> {
    let location = reply.headers.get(LOCATION)?;
    is_redirect(reply.status).then(|| shown(location))
}

/// An event under way. Dropped before it is closed, it is kept as abandoned.
struct Record<'a> {
    fetch: &'a Fetch,
    event: FetchEvent,
    started: Instant,
    is_closed: bool,
}

impl<'a> Record<'a> {
    fn open(fetch: &'a Fetch, request: &FetchRequest) -> Record<'a> {
        let event = FetchEvent {
            method: request.method.to_string(),
            host: request.target.host.to_string(),
            port: Some(request.target.port),
            ..FetchEvent::default()
        };
        Record {
            fetch,
            event,
            started: Instant::now(),
            is_closed: false,
        }
    }

    fn close(mut self, fault: Option<&HttpFault>) -> FetchEvent {
        self.is_closed = true;
        self.take_event(fault.map(|fault| fault.reason))
    }

    fn take_event(&mut self, refusal: Option<&'static str>) -> FetchEvent {
        let mut event = std::mem::take(&mut self.event);
        event.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        event.refusal = refusal;
        event
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let event = self.take_event(Some("interrupted"));
            self.fetch.abandoned().push(event);
        }
    }
}

/// The events of a call that has not ended. Dropped with some left, they are
/// abandoned: before the one that was under way, which was dropped first.
struct Kept<'a> {
    fetch: &'a Fetch,
    events: Vec<FetchEvent>,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let events = std::mem::take(&mut self.events);
        self.fetch.abandoned().splice(0..0, events);
    }
}

/// The fuzz target and its seeds call this. Whatever the text, an address that is
/// taken has a scheme we speak, a host and nothing before it; the script's own
/// `URL` reads the same host; written out it is the same address again; and mode
/// strict takes no address that is not public.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let raw_url = String::from_utf8_lossy(data);
    let Ok(target) = FetchTarget::parse(&raw_url, None) else {
        return;
    };
    let url = &target.url;
    assert!(matches!(url.scheme(), "http" | "https"), "{url}");
    assert!(
        url.username().is_empty() && url.password().is_none(),
        "{url}"
    );
    assert!(!target.host.to_string().ends_with('.'), "{url}");
    let ask = PowerRequest {
        arguments: serde_json::json!({"input": raw_url}),
        bytes: Vec::new(),
    };
    let seen = crate::url::parse(&ask).map(|answer| answer.value);
    let seen = seen.as_ref().ok().and_then(|parts| parts.get("hostname"));
    let seen = seen.and_then(serde_json::Value::as_str).unwrap_or_default();
    assert_eq!(seen.trim_end_matches('.'), target.host.to_string());
    let again = FetchTarget::parse(url.as_str(), None);
    assert!(
        again.is_ok_and(|again| (&again.host, again.port) == (&target.host, target.port)),
        "{url}"
    );
    let strict = FetchRule::from_grant(
        &NetworkGrant::Strict,
        &HostBounds::default(),
        &Arc::from([]),
    );
    let admitted = strict.map(|rule| rule.admit(&target, PORTS_BLOCKED).is_ok());
    let is_public = crate::address::of_host(&target.host) == crate::address::Reach::Public;
    assert!(admitted == Some(false) || is_public, "{url}");
}

/// The helper's name in every fault.
const HELPER: &str = "fetch";
