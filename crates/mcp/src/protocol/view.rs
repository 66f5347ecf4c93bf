//! One request as the methods see it: read by rmcp, or as a plain call.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProgressToken, ProtocolVersion, RequestMetaObject};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::era::Era;

/// The key of W3C's trace context, in a header or in `_meta`.
const TRACE_HEADER: &str = "traceparent";

/// A request, whoever read it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestView<'a> {
    /// Read by rmcp, in any era and over any transport.
    Rmcp(&'a RequestContext<RoleServer>),
    /// A call of the newest revision that gets its answer and nothing before it.
    Plain(&'a PlainRequest),
}

/// What comes with a plain call beside its params.
#[derive(Debug)]
pub(crate) struct PlainRequest {
    /// The head of its HTTP request.
    pub(crate) parts: Parts,
    pub(crate) meta: RequestMetaObject,
    /// Ends the call.
    pub(crate) cancel: CancellationToken,
}

impl<'a> RequestView<'a> {
    /// The head of the HTTP request; none over pipes.
    pub(crate) fn parts(self) -> Option<&'a Parts> {
        match self {
            RequestView::Rmcp(context) => context.extensions.get::<Parts>(),
            RequestView::Plain(plain) => Some(&plain.parts),
        }
    }

    pub(crate) fn meta(self) -> &'a RequestMetaObject {
        match self {
            RequestView::Rmcp(context) => &context.meta,
            RequestView::Plain(plain) => &plain.meta,
        }
    }

    /// Cancelled when the client no longer waits.
    pub(crate) fn cancel(self) -> &'a CancellationToken {
        match self {
            RequestView::Rmcp(context) => &context.ct,
            RequestView::Plain(plain) => &plain.cancel,
        }
    }

    /// The revision, by the request's own `_meta` or by the handshake of its session.
    pub(crate) fn version(self) -> Option<ProtocolVersion> {
        match self {
            RequestView::Rmcp(context) => context.protocol_version(),
            RequestView::Plain(plain) => plain.meta.protocol_version(),
        }
    }

    pub(crate) fn era(self) -> Era {
        Era::of(self.version().as_ref().map(ProtocolVersion::as_str))
    }

    pub(crate) fn capabilities(self) -> Option<ClientCapabilities> {
        match self {
            RequestView::Rmcp(context) => context.client_capabilities(),
            RequestView::Plain(plain) => plain.meta.client_capabilities(),
        }
    }

    /// The way to the client while the request is open. A plain call has none.
    pub(crate) fn peer(self) -> Option<&'a Peer<RoleServer>> {
        match self {
            RequestView::Rmcp(context) => Some(&context.peer),
            RequestView::Plain(_) => None,
        }
    }

    /// Where progress goes, if the client wants to hear of it.
    pub(crate) fn progress(self) -> Option<(&'a Peer<RoleServer>, ProgressToken)> {
        Some((self.peer()?, self.meta().get_progress_token()?))
    }

    /// The trace a call is part of: in the request's own words, or in its header.
    pub(crate) fn trace(self) -> Option<String> {
        let told = self.meta().get(TRACE_HEADER).and_then(Value::as_str);
        let header = || self.parts()?.headers.get(TRACE_HEADER)?.to_str().ok();
        told.or_else(header).map(str::to_owned)
    }
}
