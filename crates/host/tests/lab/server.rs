//! A server that does what no server should. It speaks HTTP/1.1 by hand, so that
//! it can lie; HTTP/2 is hyper's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::HandshakeKind;
use tokio_rustls::server::TlsStream;

/// One request as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or("")
    }

    pub(crate) fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or("")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What comes after the bytes of a reply.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// A clean end.
    Close,
    /// A reset.
    Reset,
    /// Nothing, until the other side gives up.
    Hold,
    /// These bytes again and again, as fast as they are taken.
    Endless(Vec<u8>),
    /// These bytes again and again, one portion each time.
    Drip(Vec<u8>, Duration),
}

/// A reply, byte for byte.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ending: Ending,
}

pub(crate) fn raw(bytes: impl Into<Vec<u8>>, ending: Ending) -> Reply {
    Reply {
        bytes: bytes.into(),
        ending,
    }
}

/// An honest reply; `head` is the status and any headers, without the last line
/// break.
pub(crate) fn reply(head: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let length = body.len();
    let mut bytes = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body);
    raw(bytes, Ending::Close)
}

pub(crate) fn redirect(status: u16, location: &str) -> Reply {
    reply(&format!("{status} Moved\r\nlocation: {location}"), "")
}

type Handler = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// A running server; it ends with the test's runtime.
#[derive(Clone, Debug)]
pub(crate) struct Lab {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    resumed: Arc<AtomicUsize>,
}

impl Lab {
    /// HTTP/1.1 in the clear.
    pub(crate) async fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Lab {
        Lab::listen(None, Arc::new(handler)).await
    }

    /// HTTP/1.1 or, if the other side offers it, HTTP/2, over TLS.
    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Lab {
        Lab::listen(Some(acceptor), Arc::new(handler)).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How often somebody came back with the ticket of an earlier TLS session.
    pub(crate) fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }

    async fn listen(acceptor: Option<TlsAcceptor>, handler: Handler) -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let lab = Lab {
            address,
            seen: Arc::clone(&seen),
            resumed: Arc::default(),
        };
        let resumed = Arc::clone(&lab.resumed);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, seen) = (Arc::clone(&handler), Arc::clone(&seen));
                let acceptor = acceptor.clone();
                let resumed = Arc::clone(&resumed);
                tokio::spawn(async move {
                    let Some(acceptor) = acceptor else {
                        serve(stream, &handler, &seen).await;
                        return;
                    };
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                        resumed.fetch_add(1, Ordering::Relaxed);
                    }
                    serve_tls(stream, handler, seen).await;
                });
            }
        });
        lab
    }
}

async fn serve_tls(stream: TlsStream<TcpStream>, handler: Handler, seen: Arc<Mutex<Vec<Seen>>>) {
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        let (mut stream, ending) = match exchange(stream, &handler, &seen).await {
            Some(next) => next,
            None => return,
        };
        let _ = end(&mut stream, ending).await;
        return;
    }
    let service = hyper::service::service_fn(move |request| {
        let (handler, seen) = (Arc::clone(&handler), Arc::clone(&seen));
        async move { Ok::<_, Infallible>(http2_reply(request, &handler, &seen)) }
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

/// The lab's replies are written for HTTP/1.1; over HTTP/2 their parts are used.
fn http2_reply(
    request: hyper::Request<hyper::body::Incoming>,
    handler: &Handler,
    seen: &Mutex<Vec<Seen>>,
) -> hyper::Response<Whole> {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()));
    let arrived = Seen {
        line: format!("{} {} HTTP/2", request.method(), request.uri()),
        headers: headers.collect(),
        body: Vec::new(),
    };
    let reply = handler(&arrived);
    seen.lock().unwrap().push(arrived);
    let split = reply.bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = reply.bytes.split_at(split.unwrap() + 4);
    let head = String::from_utf8(head.to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let mut response = hyper::Response::builder().status(status);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        response = response.header(name, value);
    }
    response
        .body(Whole(Some(Bytes::copy_from_slice(body))))
        .unwrap()
}

struct Whole(Option<Bytes>);

impl hyper::body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        let body = self.0.take();
        std::task::Poll::Ready(body.map(|body| Ok(hyper::body::Frame::data(body))))
    }
}

async fn serve(stream: TcpStream, handler: &Handler, seen: &Mutex<Vec<Seen>>) {
    let Some((mut stream, ending)) = exchange(stream, handler, seen).await else {
        return;
    };
    if matches!(ending, Ending::Reset) {
        let _ = stream.set_zero_linger();
        return;
    }
    let _ = end(&mut stream, ending).await;
}

async fn end<S>(stream: &mut S, ending: Ending) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match ending {
        Ending::Close | Ending::Reset => stream.shutdown().await?,
        Ending::Hold => {}
        Ending::Endless(bytes) => loop {
            stream.write_all(&bytes).await?;
        },
        Ending::Drip(bytes, period) => {
            let mut ticks = tokio::time::interval(period);
            loop {
                ticks.tick().await;
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
        }
    }
    // Until the other side hangs up.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await?;
    Ok(())
}

async fn exchange<S>(
    mut stream: S,
    handler: &Handler,
    seen: &Mutex<Vec<Seen>>,
) -> Option<(S, Ending)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut bytes = Vec::new();
    let head_length = loop {
        let mut piece = [0; 4096];
        let count = stream
            .read(&mut piece)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        // A TLS greeting has no end that we could see.
        if bytes.first() == Some(&0x16) {
            break bytes.len();
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_length]).into_owned();
    let mut lines = head.lines();
    let line = lines.next().unwrap_or("").to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let mut arrived = Seen {
        line,
        headers: headers.collect(),
        body: bytes[head_length..].to_vec(),
    };
    let length = arrived
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    while arrived.body.len() < length {
        let mut piece = [0; 4096];
        let count = stream
            .read(&mut piece)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        arrived.body.extend_from_slice(&piece[..count]);
    }
    let reply = handler(&arrived);
    seen.lock().unwrap().push(arrived);
    stream.write_all(&reply.bytes).await.ok()?;
    stream.flush().await.ok()?;
    Some((stream, reply.ending))
}
