//! The network, for servers the owner named: a client that keeps connections and
//! streams replies.
//!
//! It shares with `fetch` everything that guards: one lookup, every address
//! checked, a connection to a checked address and no other, our own TLS roots, no
//! proxy, no cookies, nothing from the environment. Private addresses only for
//! hosts the owner names. A redirect is followed only to the same origin and only
//! if it keeps the method and the body; each hop is decided by itself.

mod body;
pub mod limits;
mod pool;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};
use model::network::host_pattern::HostPattern;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use url::Host;

use crate::address::{Reach, Reserved, of_host};
use crate::client::body::Lease;
use crate::client::pool::IdlePool;
use crate::fetch::connect::{Connector, TcpConnector};
use crate::fetch::connection::{Connection, Dialler, broken, connect, message};
use crate::fetch::deadline::Deadline;
use crate::fetch::fault::HttpFault;
use crate::fetch::lookup::{NameLookup, look_up};
use crate::fetch::resolve::{Resolve, SystemResolver};
use crate::fetch::rule::Admission;
use crate::fetch::target::FetchTarget;
use crate::fetch::{PORTS_BLOCKED, Tls};

pub use body::ReplyBody;
pub use limits::ClientLimits;

/// What one client is made from.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// How long and how much.
    pub limits: ClientLimits,
    /// The certificate authorities that are trusted.
    pub tls: Tls,
    /// Who answers questions about names.
    pub resolver: Arc<dyn Resolve>,
    /// Who opens connections.
    pub connector: Arc<dyn Connector>,
    /// Hosts that may be private, or lead to private addresses. Only the owner
    /// names them.
    pub private_hosts: Arc<[HostPattern]>,
}

impl ClientSettings {
    /// The system's resolver, plain TCP, default limits, public hosts only.
    #[must_use]
    pub fn new(tls: Tls) -> ClientSettings {
        ClientSettings {
            limits: ClientLimits::default(),
            tls,
            resolver: Arc::new(SystemResolver),
            connector: Arc::new(TcpConnector),
            private_hosts: Arc::new([]),
        }
    }
}

/// One request.
pub struct ClientRequest {
    /// GET, POST or DELETE.
    pub method: ClientMethod,
    /// Where to.
    pub raw_url: String,
    /// Headers; those of the connection are ours and replaced.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// How long to wait for the status line; nothing: as the limits say.
    pub first_byte: Option<Duration>,
}

/// The methods the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMethod {
    /// Reads.
    Get,
    /// Sends.
    Post,
    /// Ends a session.
    Delete,
}

impl ClientMethod {
    fn to_http(self) -> Method {
        match self {
            ClientMethod::Get => Method::GET,
            ClientMethod::Post => Method::POST,
            ClientMethod::Delete => Method::DELETE,
        }
    }
}

impl ClientRequest {
    /// A request without a body.
    #[must_use]
    pub fn new(method: ClientMethod, raw_url: impl Into<String>) -> ClientRequest {
        ClientRequest {
            method,
            raw_url: raw_url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            first_byte: None,
        }
    }
}

// Headers and bodies carry tokens.
impl fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequest")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// A reply whose body has not been read.
pub struct ClientReply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: ReplyBody,
}

// Headers and bodies carry tokens.
impl fmt::Debug for ClientReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientReply")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A client. Clones share its connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    settings: Arc<ClientSettings>,
    pool: Arc<IdlePool>,
    places: Arc<Semaphore>,
}

impl HttpClient {
    /// A client without connections.
    #[must_use]
    pub fn new(mut settings: ClientSettings) -> HttpClient {
        // Attack: a ticket of another client's session says who came before.
        settings.tls = settings.tls.without_memory();
        let limits = &settings.limits;
        HttpClient {
            pool: Arc::new(IdlePool::new(limits.idle_count_max, limits.idle)),
            places: Arc::new(Semaphore::new(limits.concurrent_max.max(1))),
            settings: Arc::new(settings),
        }
    }

    /// The bounds of this client.
    #[must_use]
    pub fn limits(&self) -> &ClientLimits {
        &self.settings.limits
    }

    /// Connections that are open and unused.
    #[must_use]
    pub fn idle_count(&self) -> usize {
        self.pool.count()
    }

    /// Whether the owner named this URL's host as one that may be private.
    #[must_use]
    pub fn is_private_host(&self, raw_url: &str) -> bool {
        FetchTarget::parse(raw_url, None).is_ok_and(|target| self.is_named_private(&target))
    }

    /// Sends a request and waits for the head of the reply.
    ///
    /// # Errors
    /// The URL is none, the host may not be reached, a redirect leads elsewhere,
    /// or it did not work.
    pub fn send(&self, request: ClientRequest) -> BoxFuture<'_, Result<ClientReply, HttpFault>> {
        Box::pin(self.send_and_follow(request))
    }

    async fn send_and_follow(&self, request: ClientRequest) -> Result<ClientReply, HttpFault> {
        if request.raw_url.len() > limits::CLIENT_URL_BYTES_MAX {
            let what = format!("a URL has at most {} bytes", limits::CLIENT_URL_BYTES_MAX);
            return Err(HttpFault::invalid("invalid-url", what));
        }
        if request.body.len() > limits::CLIENT_REQUEST_BYTES_MAX {
            let count = limits::CLIENT_REQUEST_BYTES_MAX;
            let what = format!("a request has at most {count} bytes");
            return Err(HttpFault::invalid("request-too-large", what));
        }
        let mut target = FetchTarget::parse(&request.raw_url, None)?;
        let mut redirect_count = 0;
        loop {
            let reply = self.hop(&request, &target).await?;
            let Some(raw_location) = location(&reply) else {
                return Ok(reply);
            };
            let next = FetchTarget::parse(&raw_location, Some(&target.url))?;
            follow(&target, &next, reply.status)?;
            if redirect_count == self.settings.limits.redirect_count_max {
                let rule = format!("more than {redirect_count} redirects by {}", target.host);
                return Err(HttpFault::denied("too-many-redirects", rule));
            }
            redirect_count += 1;
            target = next;
        }
    }

    async fn hop(
        &self,
        request: &ClientRequest,
        target: &FetchTarget,
    ) -> Result<ClientReply, HttpFault> {
        let limits = &self.settings.limits;
        let admission = self.admit(target)?;
        let first_byte = request.first_byte.unwrap_or(limits.first_byte);
        let host = &target.host;
        // Waiting for a turn is bounded too, or streams that stay open could hold up a
        // request without end.
        let turn = Deadline::after(first_byte);
        let place = Arc::clone(&self.places).acquire_owned();
        let place = turn.wait(first_byte, "waiting for a turn with", host, place);
        // Never closed, so there is a place.
        let place = place.await?.map_err(|_| {
            HttpFault::failed("io", format!("the client of {host} has been closed"))
        })?;
        loop {
            let unused = self.pool.take(&target.origin()).await;
            let is_new = unused.is_none();
            let mut connection = match unused {
                Some(connection) => connection,
                None => {
                    let opened = self.open(target, admission).await;
                    opened.map_err(HttpFault::unsent)?
                }
            };
            let (headers, body) = (headers(request), request.body.clone());
            let method = request.method.to_http();
            let message = message(target, &method, headers, body, connection.version())?;
            // A new one for each attempt: an unused connection that was closed must not use
            // up the time.
            let deadline = Deadline::after(first_byte);
            let sent = connection.send_or_return(message);
            let doing = "waiting for the reply of";
            match deadline.wait(first_byte, doing, host, sent).await? {
                Ok(response) => return self.reply(target, response, connection, place),
                // A pooled connection that the server had closed: nothing was sent, so the next
                // one is tried. A request that may have arrived is never sent twice.
                Err(unsent) if unsent.was_unsent && !is_new => {}
                Err(unsent) => return Err(broken(host, &unsent.error)),
            }
        }
    }

    async fn open(
        &self,
        target: &FetchTarget,
        admission: Admission,
    ) -> Result<Connection, HttpFault> {
        let settings = &self.settings;
        let limits = &settings.limits;
        let deadline = Deadline::after(limits.resolve + limits.connect);
        let names = NameLookup {
            resolver: &*settings.resolver,
            wait: limits.resolve,
            address_count_max: limits::CLIENT_ADDRESSES_MAX,
        };
        let addresses = look_up(names, target, admission, deadline).await?;
        let dialler = Dialler {
            connector: &*settings.connector,
            tls: &settings.tls,
            limits: limits.connection(),
        };
        let mut used: Option<IpAddr> = None;
        let connecting = connect(dialler, target, &addresses, &mut used);
        let doing = "connecting to";
        let connecting = deadline.wait(limits.connect, doing, &target.host, connecting);
        let connection = connecting.await??;
        // Kept at once and not at the end of the reply: others share it meanwhile.
        if let Some(shared) = connection.share() {
            self.pool.give(target.origin(), shared);
        }
        Ok(connection)
    }

    fn reply(
        &self,
        target: &FetchTarget,
        response: Response<Incoming>,
        connection: Connection,
        place: OwnedSemaphorePermit,
    ) -> Result<ClientReply, HttpFault> {
        let (head, incoming) = response.into_parts();
        let host = target.host.clone();
        let coding = head.headers.get(header::CONTENT_ENCODING);
        // Attack: decompression bombs. This client decodes nothing, so a
        // coded body is refused.
        if coding.is_some_and(|coding| coding != "identity") {
            let what = format!("the body from {host} is coded, though it was asked not to be");
            return Err(HttpFault::failed("io", what));
        }
        let limits = &self.settings.limits;
        let body = ReplyBody {
            host,
            bytes_left: limits.reply_bytes_max,
            silence: limits.stream_silence,
            end: Instant::now() + limits.stream,
            lease: Some(Lease {
                incoming,
                connection,
                origin: target.origin(),
                pool: Arc::clone(&self.pool),
                _place: place,
            }),
        };
        Ok(ClientReply {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// May this host be asked for, and what may it resolve to?
    fn admit(&self, target: &FetchTarget) -> Result<Admission, HttpFault> {
        let reach = of_host(&target.host);
        if self.is_named_private(target) {
            return admit_private(reach, target);
        }
        // Also for hosts of the owner: ports of other protocols are opened only by naming
        // the host private.
        if PORTS_BLOCKED.contains(&target.port) {
            let rule = format!("port {} is not for the web: {}", target.port, target.host);
            return Err(HttpFault::denied("port-blocked", rule));
        }
        match reach {
            Reach::Public => Ok(Admission::Chosen),
            Reach::Reserved(reserved) => {
                let host = &target.host;
                let rule = format!(
                    "{host} is a {reserved} address or name; set `private = true` for this server, or list the host in `network.private_hosts`"
                );
                Err(HttpFault::denied("literal-private-ip", rule))
            }
        }
    }

    fn is_named_private(&self, target: &FetchTarget) -> bool {
        let mut patterns = self.settings.private_hosts.iter();
        patterns.any(|pattern| pattern.matches(&target.host, target.port))
    }
}

/// The owner named the host. Attack: ssrf. Where clouds keep credentials there is
/// no server of ours, even if the owner names it.
pub(crate) fn admit_private(reach: Reach, target: &FetchTarget) -> Result<Admission, HttpFault> {
    let is_allowed = match reach {
        Reach::Public => true,
        Reach::Reserved(reserved) => match reserved {
            Reserved::Loopback
            | Reserved::Private
            | Reserved::Shared
            | Reserved::UniqueLocal
            | Reserved::SiteLocal
            | Reserved::Benchmarking
            | Reserved::LocalName
            | Reserved::DotlessName => true,
            Reserved::Unspecified
            | Reserved::LinkLocal
            | Reserved::Metadata
            | Reserved::Documentation
            | Reserved::Protocol
            | Reserved::Multicast
            | Reserved::Broadcast
            | Reserved::Discard
            | Reserved::Orchid
            | Reserved::LocalTranslator
            | Reserved::Transition
            | Reserved::Unassigned
            | Reserved::SpecialName => false,
        },
    };
    if !is_allowed {
        let rule = format!("no server is at {} ({})", target.host, reach.word());
        return Err(HttpFault::denied("literal-private-ip", rule));
    }
    Ok(match &target.host {
        Host::Ipv4(_) | Host::Ipv6(_) => Admission::Anywhere,
        Host::Domain(_) => Admission::Private(reach),
    })
}

/// Where the reply sends us; nothing if it is the answer.
fn location(reply: &ClientReply) -> Option<String> {
    let is_redirect = reply.status.is_redirection() && reply.status != StatusCode::NOT_MODIFIED;
    let location = reply
        .headers
        .get(header::LOCATION)
        .filter(|_| is_redirect)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// Attack: a redirect would carry the token, the session and the message to
/// another host, or turn a message into a plain GET.
fn follow(from: &FetchTarget, to: &FetchTarget, status: StatusCode) -> Result<(), HttpFault> {
    let refused = |what: &str| {
        let rule = format!("{} redirects {what}", from.host);
        Err(HttpFault::denied("redirect-refused", rule))
    };
    if from.origin() != to.origin() {
        return refused(&format!("to another origin, {}", to.host));
    }
    match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Ok(()),
        _ => refused("in a way that loses the message; it must answer 307 or 308"),
    }
}

/// Headers of the connection are not for those who ask.
fn headers(request: &ClientRequest) -> HeaderMap {
    let mut headers = request.headers.clone();
    for name in [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::COOKIE,
        header::EXPECT,
        header::HOST,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ] {
        headers.remove(name);
    }
    let identity = HeaderValue::from_static("identity");
    headers.insert(header::ACCEPT_ENCODING, identity);
    headers
}
