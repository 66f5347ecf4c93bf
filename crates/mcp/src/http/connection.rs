//! Sockets and connections: how many there are, how long a head may take, and how
//! they end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, StatusCode, Uri, header};
use axum::response::Response;
use futures_util::future::{Either, ready};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::auth::ReachedAddress;
use crate::http::body;
use crate::http::bounds::HttpBounds;
use crate::http::transport::Transport;
use crate::jsonrpc::TRANSPORT;
use crate::limit;
use crate::protocol::door::DoorError;
use crate::write_timeout::WriteTimeout;

/// The reply to a connection above the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// Runs a router on a socket until `end`; then waits for `drain`, cuts the streams
/// and lets the connections go.
pub async fn listen(
    listener: TcpListener,
    app: Router,
    transport: &Transport,
    bounds: &HttpBounds,
    end: &CancellationToken,
    drain: impl Future<Output = ()>,
) -> Result<(), DoorError> {
    let room = Arc::new(Semaphore::new(
        bounds.connections_max.min(Semaphore::MAX_PERMITS),
    ));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => break,
            accepted = listener.accept() => accepted,
            // Collects connections that ended. The set would keep each result otherwise.
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors: other connections must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        prepare(&stream, bounds);
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let ends = ConnectionEnds {
                    peer,
                    reached: stream.local_addr().ok(),
                };
                let app = app.clone();
                let end = (end.clone(), transport.cut.clone());
                let stream = WriteTimeout::new(stream, bounds.write_max);
                let head_max = bounds.head_max;
                connections.spawn(connection(stream, ends, app, head_max, end, place));
            }
            Err(_) => turn_away(stream).await,
        }
    }
    drop(listener);
    // In this order: calls end, their answers are written, then streams are cut.
    drain.await;
    let bound = Duration::from_secs(limit::SHUTDOWN_ANSWER_SECONDS);
    let _ = timeout(bound, transport.answers.wait_written()).await;
    transport.kept.close_all().await;
    transport.cut.cancel();
    let bound = Duration::from_secs(limit::SHUTDOWN_CONNECTION_SECONDS);
    let _ = timeout(bound, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
    Ok(())
}

/// Sets socket options. The bounds above hold without them, so errors are ignored.
fn prepare(stream: &TcpStream, bounds: &HttpBounds) {
    // Without this, Nagle's algorithm delays every streamed event until the reader's
    // kernel acknowledges.
    let _ = stream.set_nodelay(true);
    // The less the kernel keeps, the sooner it shows that the peer does not read.
    let _ = sockopt::set_socket_send_buffer_size(stream, limit::WRITE_KEPT_BYTES_MAX);
    // An answer too small to fill that buffer must not stay forever either.
    let patience_ms = u32::try_from(bounds.write_max.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, patience_ms);
}

/// Between which addresses a connection is.
#[derive(Clone, Copy)]
struct ConnectionEnds {
    peer: SocketAddr,
    /// None if the socket is gone already.
    reached: Option<SocketAddr>,
}

/// One connection, for as long as it lives. Asked to end, it takes no further
/// request; when the streams are cut, it goes.
async fn connection(
    stream: WriteTimeout<TcpStream>,
    ends: ConnectionEnds,
    app: Router,
    head_max: Duration,
    (end, cut): (CancellationToken, CancellationToken),
    _place: OwnedSemaphorePermit,
) {
    let app = TowerToHyperService::new(app);
    // Not layers of the router: a layer wraps every route again for each connection, and
    // is cloned for each request.
    let service = service_fn(|mut request: Request<Incoming>| {
        if let Some(refusal) = refuse_head(&request) {
            return Either::Left(ready(Ok(refusal)));
        }
        let extensions = request.extensions_mut();
        extensions.insert(ConnectInfo(ends.peer));
        if let Some(reached) = ends.reached {
            extensions.insert(ReachedAddress(reached));
        }
        Either::Right(app.call(request))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also runs between requests, so that it bounds idle connections.
        .header_read_timeout(head_max)
        .max_headers(limit::HEADERS_MAX)
        .max_buf_size(limit::CONNECTION_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => return,
        () = end.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = serving.as_mut() => {}
        () = cut.cancelled() => {
            // A stream that was cut may still write its last bytes.
            let _ = timeout(Duration::from_millis(500), serving).await;
        }
    }
}

/// Says that there is no room, if the peer still reads.
async fn turn_away(mut stream: TcpStream) {
    let said = async {
        let _ = stream.write_all(FULL).await;
        let _ = stream.shutdown().await;
    };
    // Bounded, because no connection is accepted meanwhile.
    let _ = timeout(Duration::from_millis(100), said).await;
}

/// Refuses a head that is too long: the first line and the headers, as they are
/// written, but for white space around values.
fn refuse_head<B>(request: &Request<B>) -> Option<Response> {
    const LINE: usize = " HTTP/1.1\r\n".len() + 1;
    const BETWEEN: usize = ": \r\n".len();
    let line = request.method().as_str().len() + uri_length(request.uri()) + LINE;
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + BETWEEN);
    if line + headers.sum::<usize>() + 2 <= limit::HEAD_BYTES_MAX {
        return None;
    }
    let most = limit::HEAD_BYTES_MAX;
    let message = format!("the head of the request is longer than {most} bytes");
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let mut response = body::refusal(status, TRANSPORT, &message, &Value::Null);
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    Some(response)
}

/// As many bytes as the target has when it is written, or a few more.
fn uri_length(uri: &Uri) -> usize {
    let authority = uri
        .authority()
        .map_or(0, |authority| authority.as_str().len());
    let scheme = uri
        .scheme_str()
        .map_or(0, |scheme| scheme.len() + "://".len());
    let path = uri.path_and_query().map_or(1, |path| path.as_str().len());
    scheme + authority + path
}
