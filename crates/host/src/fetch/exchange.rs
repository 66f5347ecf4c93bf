//! One request and its reply on one connection that was made for it.
//!
//! Every wait here has a bound, and no wait outlives the whole call.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;
use url::Host;

use crate::fetch::FetchSettings;
use crate::fetch::connection::{Connection, Dialler, broken, connect, message, next_piece};
use crate::fetch::deadline::Deadline;
use crate::fetch::decode::{BodyDecoder, BodyRefusal};
use crate::fetch::event::FetchEvent;
use crate::fetch::fault::HttpFault;
use crate::fetch::limits::FetchLimits;
use crate::fetch::request::FetchRequest;

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
) -> Result<Reply, HttpFault> {
    let target = &request.target;
    let limits = &settings.limits;
    let host = &target.host;
    let dialler = Dialler {
        connector: &*settings.connector,
        tls: &settings.tls,
        limits: limits.connection(),
    };
    let connecting = connect(dialler, target, addresses, &mut event.address);
    let connecting = deadline.wait(limits.connect, "connecting to", host, connecting);
    let mut connection = connecting.await??;
    // Cloned, because a redirect may need both again.
    let (headers, body) = (request.headers.clone(), request.body.clone());
    let message = message(target, &request.method, headers, body, connection.version())?;
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
    ) -> Result<(HeaderMap, Vec<u8>), HttpFault> {
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
            // Noted before the verdict, so that the record has the bytes of
            // a refused body too.
            let pushed = decoder.push(&piece);
            event.bytes = u64::try_from(decoder.wire_bytes()).unwrap_or(u64::MAX);
            pushed.map_err(refused)?;
        }
        let body = decoder.finish().map_err(refused)?;
        Ok((self.headers, body))
    }
}

fn body_fault(refusal: BodyRefusal, host: &Host<String>, limits: &FetchLimits) -> HttpFault {
    match refusal {
        BodyRefusal::TooLarge => {
            let rule = format!("response body over {} bytes: {host}", limits.body_bytes_max);
            HttpFault::denied("response-body-too-large", rule)
        }
        BodyRefusal::RatioTooHigh => {
            let rule = format!(
                "response body swells more than {} times: {host}",
                limits.ratio_max
            );
            HttpFault::denied("response-body-too-large", rule)
        }
        BodyRefusal::Corrupt => {
            HttpFault::failed("io", format!("the body from {host} cannot be decoded"))
        }
        BodyRefusal::CodingUnknown => HttpFault::failed(
            "io",
            format!("the body from {host} is coded more than once"),
        ),
    }
}
