//! Reverse routes: a child asks its proxy for `/-/NAME/…`, and our side of the connection
//! decides what that means, speaks TLS and adds credentials. The child sees neither.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::egress::hop::EgressGuard;
use crate::fetch::HttpFault;

/// Something a child can ask for at its proxy.
pub trait EgressRoute: fmt::Debug + Send + Sync {
    /// Answers one request. `guard` is the only way to a network, and records each hop.
    fn answer<'a>(&'a self, request: RouteRequest, guard: RouteGuard) -> RouteAnswer<'a>;
}

/// What a route gives, in time.
pub type RouteAnswer<'a> = Pin<Box<dyn Future<Output = RouteReply> + Send + 'a>>;

/// What a child asks of a route.
#[derive(Debug)]
pub struct RouteRequest {
    /// The method.
    pub method: Method,
    /// What follows `/-/NAME`, as it was sent: a path that begins with `/`, and the query.
    pub path: String,
    /// The headers, without those of the connection.
    pub headers: HeaderMap,
    /// The body, as it comes.
    pub body: RouteBody,
}

/// What a child gets from a route, and a route from a server.
#[derive(Debug)]
pub struct RouteReply {
    /// The status.
    pub status: StatusCode,
    /// The headers, without those of the connection.
    pub headers: HeaderMap,
    /// The body, as it comes.
    pub body: RouteBody,
}

/// The header that carries the reason of a refusal.
const REASON: HeaderName = HeaderName::from_static("x-ringfence-reason");

impl RouteReply {
    /// Status 403, with a reason for programs and a sentence for people.
    #[must_use]
    pub fn refused(reason: &'static str, sentence: &str) -> RouteReply {
        RouteReply::no(StatusCode::FORBIDDEN, "egress_refused", reason, sentence)
    }

    pub(crate) fn no(
        status: StatusCode,
        error: &str,
        reason: &'static str,
        sentence: &str,
    ) -> RouteReply {
        let body = json!({"error": error, "reason": reason, "message": sentence});
        let mut headers = HeaderMap::new();
        headers.insert(REASON, HeaderValue::from_static(reason));
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        RouteReply {
            status,
            headers,
            body: RouteBody::whole(Bytes::from(format!("{body}\n"))),
        }
    }
}

/// The way of a route to a network: one hop at a time, each decided and recorded. What the
/// call may not reach, its routes cannot.
#[derive(Clone, Debug)]
pub struct RouteGuard {
    pub(crate) guard: Arc<EgressGuard>,
    pub(crate) name: String,
}

impl RouteGuard {
    /// Sends one request and gives the head of the reply. A redirect is a reply: it is for
    /// the route to send again, which is decided again.
    pub async fn send(
        &self,
        method: Method,
        raw_url: &str,
        headers: HeaderMap,
        body: RouteBody,
    ) -> Result<RouteReply, HttpFault> {
        self.guard
            .send(method, raw_url, headers, body, Some(&self.name))
            .await
    }
}

/// A body, piece by piece.
pub struct RouteBody(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = io::Error> + Send>>),
}

impl fmt::Debug for RouteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteBody").finish_non_exhaustive()
    }
}

impl RouteBody {
    /// Nothing.
    #[must_use]
    pub fn empty() -> RouteBody {
        RouteBody(Inner::Whole(None))
    }

    /// All at once.
    #[must_use]
    pub fn whole(bytes: Bytes) -> RouteBody {
        RouteBody(Inner::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    pub(crate) fn stream(
        body: impl Body<Data = Bytes, Error = io::Error> + Send + 'static,
    ) -> RouteBody {
        RouteBody(Inner::Stream(Box::pin(body)))
    }

    /// The next piece; nothing after the end.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match poll_fn(|context| Pin::new(&mut *self).poll_frame(context)).await? {
                Err(error) => return Some(Err(error)),
                Ok(frame) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Some(Ok(piece)),
                    Ok(_) | Err(_) => {}
                },
            }
        }
    }
}

impl Body for RouteBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Stream(stream) => stream.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(bytes) => bytes.is_none(),
            Inner::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                let count = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(count).unwrap_or(u64::MAX))
            }
            Inner::Stream(stream) => stream.size_hint(),
        }
    }
}
