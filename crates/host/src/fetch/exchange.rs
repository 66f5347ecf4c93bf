//! One request and its reply on one connection that was made for it.
//!
//! Every wait here has a bound, and no wait outlives the whole call.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request as HttpRequest, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use crate::fetch::FetchSettings;
use crate::fetch::connect::Stream;
use crate::fetch::decode::{BodyDecoder, BodyRefusal};
use crate::fetch::event::FetchEvent;
use crate::fetch::limits::FetchLimits;
use crate::fetch::request::FetchRequest;
use crate::fetch::target::FetchTarget;
use crate::fetch::{denied, failed, invalid};
use crate::message::PowerFault;

const USER_AGENT: &str = concat!("ringfence/", env!("CARGO_PKG_VERSION"));
const ACCEPT_ENCODING: &str = "gzip, deflate, br, zstd";

/// The end of the whole call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(whole: Duration) -> Deadline {
        Deadline(Instant::now() + whole)
    }

    /// Waits for something no longer than its own bound, nor than the whole.
    pub(crate) async fn wait<T>(
        self,
        bound: Duration,
        doing: &str,
        host: &Host<String>,
        future: impl Future<Output = T>,
    ) -> Result<T, PowerFault> {
        let end = self.0.min(Instant::now() + bound);
        let waited = timeout_at(end, future).await;
        waited.map_err(|_| failed("timeout", format!("timed out while {doing} {host}")))
    }
}

/// A reply whose body has not been read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Dropped after the body: the connection goes with it.
    _connection: Connection,
}

/// Sends a request to addresses that were all checked, and waits for the head
/// of the reply.
pub(crate) async fn send(
    settings: &FetchSettings,
    request: &FetchRequest,
    addresses: &[IpAddr],
    deadline: Deadline,
    event: &mut FetchEvent,
) -> Result<Reply, PowerFault> {
    let target = &request.target;
    let limits = &settings.limits;
    let host = &target.host;
    let connecting = connect(settings, target, addresses, event);
    let connecting = deadline.wait(limits.connect, "connecting to", host, connecting);
    let mut connection = connecting.await??;
    let message = message(request, connection.version())?;
    event.sent_bytes = u64::try_from(request.body.len()).unwrap_or(u64::MAX);
    let doing = "waiting for the reply of";
    let sent = deadline.wait(limits.first_byte, doing, host, connection.send(message));
    let response = sent.await?.map_err(|error| broken(host, &error))?;
    let (head, body) = response.into_parts();
    event.status = Some(head.status.as_u16());
    Ok(Reply {
        status: head.status,
        headers: head.headers,
        body,
        _connection: connection,
    })
}

impl Reply {
    /// Reads and decodes the body, up to the bounds; gives the headers back too.
    pub(crate) async fn into_body(
        mut self,
        host: &Host<String>,
        limits: &FetchLimits,
        deadline: Deadline,
        event: &mut FetchEvent,
    ) -> Result<(HeaderMap, Vec<u8>), PowerFault> {
        let refused = |refusal| body_fault(refusal, host, limits);
        let mut decoder = BodyDecoder::new(&self.headers, limits).map_err(refused)?;
        let bytes_max = u64::try_from(limits.body_bytes_max).unwrap_or(u64::MAX);
        // Refused on its own word, before a byte is read.
        if self.body.size_hint().lower() > bytes_max {
            return Err(refused(BodyRefusal::TooLarge));
        }
        let doing = "reading the body from";
        loop {
            let piece = next_piece(&mut self.body);
            let piece = match deadline
                .wait(limits.between_bytes, doing, host, piece)
                .await?
            {
                None => break,
                Some(piece) => piece.map_err(|error| broken(host, &error))?,
            };
            let pushed = decoder.push(&piece);
            event.bytes = u64::try_from(decoder.wire_bytes()).unwrap_or(u64::MAX);
            pushed.map_err(refused)?;
        }
        let body = decoder.finish().map_err(refused)?;
        Ok((self.headers, body))
    }
}

/// The next piece that holds something. Attack: empty frames, sent endlessly,
/// must not count as progress.
async fn next_piece(body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
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

fn body_fault(refusal: BodyRefusal, host: &Host<String>, limits: &FetchLimits) -> PowerFault {
    match refusal {
        BodyRefusal::TooLarge => {
            let rule = format!("response body over {} bytes: {host}", limits.body_bytes_max);
            denied("response-body-too-large", rule)
        }
        BodyRefusal::RatioTooHigh => {
            let rule = format!(
                "response body swells more than {} times: {host}",
                limits.ratio_max
            );
            denied("response-body-too-large", rule)
        }
        BodyRefusal::Corrupt => failed("io", format!("the body from {host} cannot be decoded")),
        BodyRefusal::CodingUnknown => failed(
            "io",
            format!("the body from {host} is coded more than once"),
        ),
    }
}

fn broken(host: &Host<String>, error: &hyper::Error) -> PowerFault {
    let what = if error.is_incomplete_message() {
        "it hung up before the end of its reply"
    } else if error.is_parse() {
        "the head of its reply is too large or not HTTP"
    } else {
        "the connection broke"
    };
    failed("io", format!("no reply from {host}: {what}"))
}

/// Tries the checked addresses in order, each with its share of the time.
async fn connect(
    settings: &FetchSettings,
    target: &FetchTarget,
    addresses: &[IpAddr],
    event: &mut FetchEvent,
) -> Result<Connection, PowerFault> {
    let limits = &settings.limits;
    let count = addresses.len().min(limits.attempt_count_max).max(1);
    let share = limits.connect / u32::try_from(count).unwrap_or(1);
    let mut last = None;
    for address in addresses.iter().take(count) {
        event.address = Some(*address);
        let place = SocketAddr::new(*address, target.port);
        let connecting = settings.connector.connect(place);
        // Without a limit of its own it has the time of the caller that waits for it.
        let connected = match count {
            1 => Ok(connecting.await),
            _ => timeout_at(Instant::now() + share, connecting).await,
        };
        match connected {
            Ok(Ok(stream)) => return handshake(settings, target, stream).await,
            Ok(Err(error)) => {
                let what = format!("could not connect to {}: {}", target.host, error.kind());
                last = Some(failed("io", what));
            }
            Err(_) => {
                let what = format!("timed out while connecting to {}", target.host);
                last = Some(failed("timeout", what));
            }
        }
    }
    Err(last.unwrap_or_else(|| failed("io", format!("no address of {}", target.host))))
}

async fn handshake(
    settings: &FetchSettings,
    target: &FetchTarget,
    stream: Box<dyn Stream>,
) -> Result<Connection, PowerFault> {
    let host = &target.host;
    if !target.is_https() {
        return Connection::http1(stream, host, &settings.limits).await;
    }
    // Boxed: what TLS and HTTP/2 need to remember while they greet is several
    // kilobytes, which every plain request would carry along otherwise.
    Box::pin(start_tls(settings, target, stream)).await
}

async fn start_tls(
    settings: &FetchSettings,
    target: &FetchTarget,
    stream: Box<dyn Stream>,
) -> Result<Connection, PowerFault> {
    let host = &target.host;
    // The certificate is for the host that was asked for, though the address
    // connected to is the one that was checked.
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|_| invalid("invalid-url", format!("{name} is no name for TLS")))?,
        Host::Ipv4(address) => ServerName::IpAddress(IpAddr::V4(*address).into()),
        Host::Ipv6(address) => ServerName::IpAddress(IpAddr::V6(*address).into()),
    };
    let stream = settings.tls.connector().connect(name, stream).await;
    let stream = stream.map_err(|error| tls_fault(host, &error))?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if is_http2 {
        Connection::http2(stream, host, &settings.limits).await
    } else {
        Connection::http1(stream, host, &settings.limits).await
    }
}

fn tls_fault(host: &Host<String>, error: &io::Error) -> PowerFault {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let what = match inner {
        Some(rustls::Error::InvalidCertificate(wrong)) => {
            format!("the certificate of {host} is refused: {wrong}")
        }
        Some(error) => format!("no TLS with {host}: {error}"),
        None => format!("no TLS with {host}: {}", error.kind()),
    };
    // The texts come from the TLS library and may quote what the server sent.
    failed("tls", what)
}

/// An open connection, and the task that moves its bytes.
#[derive(Debug)]
struct Connection {
    sender: Sender,
    driver: JoinHandle<()>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Payload>),
    Http2(http2::SendRequest<Payload>),
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    async fn http1<S>(
        stream: S,
        host: &Host<String>,
        limits: &FetchLimits,
    ) -> Result<Connection, PowerFault>
    where
        S: Stream + 'static,
    {
        // Below this hyper refuses to work.
        let buffer_bytes = limits.read_buffer_bytes.max(16 * 1024);
        let made = http1::Builder::new()
            .max_headers(limits.response_header_count_max)
            .max_header_size(limits.response_header_bytes_max)
            .max_buf_size(buffer_bytes)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| broken(host, &error))?;
        // The error goes to the task that waits for the reply.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection {
            sender: Sender::Http1(sender),
            driver,
        })
    }

    async fn http2<S>(
        stream: S,
        host: &Host<String>,
        limits: &FetchLimits,
    ) -> Result<Connection, PowerFault>
    where
        S: Stream + 'static,
    {
        let header_bytes = u32::try_from(limits.response_header_bytes_max).unwrap_or(u32::MAX);
        let made = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(header_bytes)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| broken(host, &error))?;
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection {
            sender: Sender::Http2(sender),
            driver,
        })
    }

    fn version(&self) -> Version {
        match self.sender {
            Sender::Http1(_) => Version::HTTP_11,
            Sender::Http2(_) => Version::HTTP_2,
        }
    }

    /// A new connection takes one message without being asked whether it is
    /// ready; asking would cost a turn of the scheduler.
    async fn send(&mut self, message: HttpRequest<Payload>) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => sender.send_request(message).await,
            Sender::Http2(sender) => sender.send_request(message).await,
        }
    }
}

/// The request as hyper wants it: HTTP/1.1 takes a path and a `Host`, HTTP/2
/// the whole address.
fn message(request: &FetchRequest, version: Version) -> Result<HttpRequest<Payload>, PowerFault> {
    let target = &request.target;
    let wrong = || invalid("invalid-url", "the URL cannot be written as HTTP");
    let mut headers = request.headers.clone();
    let uri: Uri = if version == Version::HTTP_2 {
        target.url.as_str().parse().map_err(|_| wrong())?
    } else {
        let host = HeaderValue::from_str(&target.authority()).map_err(|_| wrong())?;
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
    let mut message = HttpRequest::new(Payload(Some(request.body.clone())));
    *message.method_mut() = request.method.clone();
    *message.uri_mut() = uri;
    *message.version_mut() = version;
    *message.headers_mut() = headers;
    Ok(message)
}

/// A body that is all there.
#[derive(Debug)]
struct Payload(Option<Bytes>);

impl Body for Payload {
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
