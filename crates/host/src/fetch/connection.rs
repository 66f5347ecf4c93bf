//! A connection to one of the addresses that were checked, and the messages on it.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request as HttpRequest, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use crate::fetch::connect::{Connector, Stream};
use crate::fetch::fault::HttpFault;
use crate::fetch::target::FetchTarget;
use crate::fetch::tls::Tls;

const USER_AGENT: &str = concat!("ringfence/", env!("CARGO_PKG_VERSION"));
const ACCEPT_ENCODING: &str = "gzip, deflate, br, zstd";

/// What it takes to open a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialler<'a> {
    pub(crate) connector: &'a dyn Connector,
    pub(crate) tls: &'a Tls,
    pub(crate) limits: ConnectionLimits,
}

/// The bounds of a connection and of the heads of its replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// All attempts to connect, TLS included.
    pub(crate) connect: Duration,
    pub(crate) attempt_count_max: usize,
    pub(crate) header_count_max: usize,
    pub(crate) header_bytes_max: usize,
    pub(crate) read_buffer_bytes: usize,
}

/// A connection to one of the checked addresses, ready for messages.
pub(crate) async fn connect(
    dialler: Dialler<'_>,
    target: &FetchTarget,
    addresses: &[IpAddr],
    used: &mut Option<IpAddr>,
) -> Result<Connection, HttpFault> {
    let stream = dial(dialler, target, addresses, used).await?;
    handshake(dialler, target, stream).await
}

/// Tries the checked addresses in order, each with its share of the time.
pub(crate) async fn dial(
    dialler: Dialler<'_>,
    target: &FetchTarget,
    addresses: &[IpAddr],
    used: &mut Option<IpAddr>,
) -> Result<Box<dyn Stream>, HttpFault> {
    let limits = &dialler.limits;
    let count = addresses.len().min(limits.attempt_count_max).max(1);
    let share = limits.connect / u32::try_from(count).unwrap_or(1);
    let mut last = None;
    for address in addresses.iter().take(count) {
        // Noted before the attempt: the record names the address even if
        // the connection fails.
        *used = Some(*address);
        let place = SocketAddr::new(*address, target.port);
        let connecting = dialler.connector.connect(place);
        // Alone it has all the time there is, and the caller of `connect` bounds it.
        let connected = match count {
            1 => Ok(connecting.await),
            _ => timeout_at(Instant::now() + share, connecting).await,
        };
        match connected {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => {
                let what = format!("could not connect to {}: {}", target.host, error.kind());
                last = Some(HttpFault::failed("io", what));
            }
            Err(_) => {
                let what = format!("timed out while connecting to {}", target.host);
                last = Some(HttpFault::failed("timeout", what));
            }
        }
    }
    Err(last.unwrap_or_else(|| HttpFault::failed("io", format!("no address of {}", target.host))))
}

async fn handshake(
    dialler: Dialler<'_>,
    target: &FetchTarget,
    stream: Box<dyn Stream>,
) -> Result<Connection, HttpFault> {
    let host = &target.host;
    if !target.is_https() {
        // No upgrade on a plain connection: HTTP/2 is used only where TLS agreed on it.
        return Connection::http1(stream, host, &dialler.limits).await;
    }
    // Boxed: what TLS and HTTP/2 need to remember while they greet is several
    // kilobytes, which every plain request would carry along otherwise.
    Box::pin(start_tls(dialler, target, stream)).await
}

async fn start_tls(
    dialler: Dialler<'_>,
    target: &FetchTarget,
    stream: Box<dyn Stream>,
) -> Result<Connection, HttpFault> {
    let host = &target.host;
    let stream = secure(dialler.tls, target, stream).await?;
    // The list that we offer is ours; a server that chooses nothing gets HTTP/1.1.
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if is_http2 {
        Connection::http2(stream, host, &dialler.limits).await
    } else {
        Connection::http1(stream, host, &dialler.limits).await
    }
}

/// TLS on a stream to a checked address. The certificate is for the host that was asked
/// for, though the address connected to is the one that was checked.
pub(crate) async fn secure(
    tls: &Tls,
    target: &FetchTarget,
    stream: Box<dyn Stream>,
) -> Result<TlsStream<Box<dyn Stream>>, HttpFault> {
    let host = &target.host;
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| HttpFault::invalid("invalid-url", format!("{name} is no name for TLS")))?,
        Host::Ipv4(address) => ServerName::IpAddress(IpAddr::V4(*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress(IpAddr::V6(*address).into()),
    };
    let stream = tls.connector().connect(name, stream).await;
    stream.map_err(|error| tls_fault(host, &error))
}

fn tls_fault(host: &Host<String>, error: &io::Error) -> HttpFault {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let what = match inner {
        Some(rustls::Error::InvalidCertificate(wrong)) => {
            format!("the certificate of {host} is refused: {wrong}")
        }
        Some(error) => format!("no TLS with {host}: {error}"),
        None => format!("no TLS with {host}: {}", error.kind()),
    };
    // The texts come from the TLS library and may quote what the server sent.
    HttpFault::failed("tls", what)
}

/// An open connection, and the task that moves its bytes.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    driver: Arc<Driver>,
}

/// The task of a connection. It ends with the last that uses it.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A message that got no reply.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) error: hyper::Error,
    /// Nothing of it has left this machine.
    pub(crate) was_unsent: bool,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<WholeBody>),
    Http2(http2::SendRequest<WholeBody>),
}

impl Connection {
    async fn http1<S>(
        stream: S,
        host: &Host<String>,
        limits: &ConnectionLimits,
    ) -> Result<Connection, HttpFault>
    where
        S: Stream + 'static,
    {
        // Below this hyper refuses to work.
        let buffer_bytes = limits.read_buffer_bytes.max(16 * 1024);
        let made = http1::Builder::new()
            .max_headers(limits.header_count_max)
            .max_header_size(limits.header_bytes_max)
            .max_buf_size(buffer_bytes)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| broken(host, &error))?;
        // The one that waits for the reply learns what went wrong.
        // Without a task of its own the connection would move only while a
        // caller waits for it.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection {
            sender: Sender::Http1(sender),
            driver: Arc::new(Driver(driver)),
        })
    }

    async fn http2<S>(
        stream: S,
        host: &Host<String>,
        limits: &ConnectionLimits,
    ) -> Result<Connection, HttpFault>
    where
        S: Stream + 'static,
    {
        let header_bytes = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
        let made = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(header_bytes)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| broken(host, &error))?;
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection {
            sender: Sender::Http2(sender),
            driver: Arc::new(Driver(driver)),
        })
    }

    pub(crate) fn version(&self) -> Version {
        match self.sender {
            Sender::Http1(_) => Version::HTTP_11,
            Sender::Http2(_) => Version::HTTP_2,
        }
    }

    /// The same connection once more, if it carries several messages at a time.
    pub(crate) fn share(&self) -> Option<Connection> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Connection {
                sender: Sender::Http2(sender.clone()),
                driver: Arc::clone(&self.driver),
            }),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Waits until it takes the next message.
    pub(crate) async fn ready(&mut self) -> hyper::Result<()> {
        match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await,
            Sender::Http2(sender) => sender.ready().await,
        }
    }

    /// Sends a message on a connection that may have been closed meanwhile.
    pub(crate) async fn send_or_return(
        &mut self,
        message: HttpRequest<WholeBody>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let sent = match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(message).await,
            Sender::Http2(sender) => sender.try_send_request(message).await,
        };
        sent.map_err(|mut error| Unanswered {
            was_unsent: error.take_message().is_some(),
            error: error.into_error(),
        })
    }

    /// A new connection takes one message without being asked whether it is
    /// ready; asking would cost a turn of the scheduler.
    pub(crate) async fn send(
        &mut self,
        message: HttpRequest<WholeBody>,
    ) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => sender.send_request(message).await,
            Sender::Http2(sender) => sender.send_request(message).await,
        }
    }
}

/// The request as hyper wants it: HTTP/1.1 takes a path and a `Host`, HTTP/2
/// the whole address. Headers that are not given get their usual values.
pub(crate) fn message(
    target: &FetchTarget,
    method: &Method,
    mut headers: HeaderMap,
    body: Bytes,
    version: Version,
) -> Result<HttpRequest<WholeBody>, HttpFault> {
    let wrong = || HttpFault::invalid("invalid-url", "the URL cannot be written as HTTP");
    let uri: Uri = if version == Version::HTTP_2 {
        target.url.as_str().parse().map_err(|_| wrong())?
    } else {
        let host = HeaderValue::from_str(&target.authority()).map_err(|_| wrong())?;
        // Set here and never taken from a script: rules were asked about this
        // host and no other.
        headers.insert(header::HOST, host);
        target.path().parse().map_err(|_| wrong())?
    };
    for (name, value) in [
        (header::ACCEPT, "*/*"),
        (header::USER_AGENT, USER_AGENT),
        // Part of a coded body cannot be decoded.
        (header::ACCEPT_ENCODING, ACCEPT_ENCODING),
    ] {
        let is_unwanted = name == header::ACCEPT_ENCODING && headers.contains_key(header::RANGE);
        if !is_unwanted && !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    let mut message = HttpRequest::new(WholeBody(Some(body)));
    *message.method_mut() = method.clone();
    *message.uri_mut() = uri;
    *message.version_mut() = version;
    *message.headers_mut() = headers;
    Ok(message)
}

/// A body that is all there.
#[derive(Debug)]
pub(crate) struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let body = self.0.take().filter(|body| !body.is_empty());
        Poll::Ready(body.map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        let count = self.0.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(count).unwrap_or(u64::MAX))
    }
}

/// The next piece that holds something. Attack: empty frames without end,
/// must not count as progress.
pub(crate) async fn next_piece(body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
            Err(error) => return Some(Err(error)),
            Ok(frame) => match frame.into_data() {
                Ok(piece) if !piece.is_empty() => return Some(Ok(piece)),
                Ok(_) | Err(_) => {}
            },
        }
    }
}

pub(crate) fn broken(host: &Host<String>, error: &hyper::Error) -> HttpFault {
    let what = if error.is_incomplete_message() {
        "it hung up before the end of its reply"
    } else if error.is_parse() {
        "the head of its reply is too large or not HTTP"
    } else {
        "the connection broke"
    };
    HttpFault::failed("io", format!("no reply from {host}: {what}"))
}
