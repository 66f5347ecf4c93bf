//! One hop of a child: the guard of `fetch` with a stream at its end. Host and port are
//! checked against the grant, the name is looked up once, every address is classified, and
//! the connection goes to one of those addresses and no other.

use std::sync::Arc;

use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;

use crate::egress::EgressSettings;
use crate::egress::event::EgressEvent;
use crate::egress::meter::{Direction, EgressBudget, EgressMeter, MeteredBody};
use crate::egress::route::{RouteBody, RouteReply};
use crate::fetch::HttpFault;
use crate::fetch::Tls;
use crate::fetch::connect::Stream;
use crate::fetch::connection::{Dialler, broken, dial, secure};
use crate::fetch::deadline::Deadline;
use crate::fetch::lookup::{NameLookup, look_up};
use crate::fetch::rule::{FetchRule, out_of_bounds};
use crate::fetch::target::FetchTarget;

/// Headers that belong to one connection and go no further.
const OF_CONNECTION: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Who decides for one child.
#[derive(Debug)]
pub(crate) struct EgressGuard {
    /// Nothing: the network is blocked.
    pub(crate) rule: Option<FetchRule>,
    pub(crate) settings: EgressSettings,
    pub(crate) tls: Tls,
    pub(crate) budget: Arc<EgressBudget>,
}

impl EgressGuard {
    pub(crate) fn meter(
        &self,
        method: &Method,
        to: Option<&FetchTarget>,
        route: Option<&str>,
    ) -> Arc<EgressMeter> {
        let event = EgressEvent {
            method: method.to_string(),
            host: to.map_or_else(String::new, |to| to.host.to_string()),
            port: to.map(|to| to.port),
            route: route.map(str::to_owned),
            ..EgressEvent::default()
        };
        EgressMeter::open(&self.budget, event)
    }

    /// A stream to a checked address of the target.
    pub(crate) async fn open(
        &self,
        target: &FetchTarget,
        meter: &EgressMeter,
    ) -> Result<Box<dyn Stream>, HttpFault> {
        let opened = self.open_checked(target, meter).await;
        opened.inspect_err(|fault| meter.note(|event| event.refusal = Some(fault.reason)))
    }

    async fn open_checked(
        &self,
        target: &FetchTarget,
        meter: &EgressMeter,
    ) -> Result<Box<dyn Stream>, HttpFault> {
        let limits = &self.settings.limits;
        let Some(rule) = &self.rule else {
            let rule = format!("the network is blocked: {}", target.host);
            return Err(HttpFault::denied("network-blocked", rule));
        };
        rule.bounded(target).map_err(|out| {
            meter.note(|event| event.by = Some(out.list.by.to_string()));
            out_of_bounds(out, &target.host)
        })?;
        let admission = rule.admit(target, &self.settings.ports_blocked)?;
        let deadline = Deadline::after(limits.resolve + limits.connect);
        let names = NameLookup {
            resolver: &*self.settings.resolver,
            wait: limits.resolve,
            address_count_max: limits.address_count_max(),
        };
        let addresses = look_up(names, target, admission, deadline).await?;
        let dialler = Dialler {
            connector: &*self.settings.connector,
            tls: &self.tls,
            limits: limits.connection_limits(),
        };
        let mut used = None;
        let dialling = dial(dialler, target, &addresses, &mut used);
        let dialled = deadline.wait(limits.connect, "connecting to", &target.host, dialling);
        let dialled = dialled.await;
        // Before the result is looked at: the record names the address that was tried, also where
        // that failed.
        meter.note(|event| event.address = used);
        dialled?
    }

    /// Sends one request to a URL of either scheme.
    pub(crate) async fn send(
        &self,
        method: Method,
        raw_url: &str,
        headers: HeaderMap,
        body: RouteBody,
        route: Option<&str>,
    ) -> Result<RouteReply, HttpFault> {
        let target = FetchTarget::parse(raw_url, None);
        let meter = self.meter(&method, target.as_ref().ok(), route);
        match target {
            Ok(target) => self.forward(&target, method, headers, body, &meter).await,
            Err(fault) => {
                meter.note(|event| event.refusal = Some(fault.reason));
                Err(fault)
            }
        }
    }

    /// Sends one request to a target, whose event is open.
    pub(crate) async fn forward(
        &self,
        target: &FetchTarget,
        method: Method,
        headers: HeaderMap,
        body: RouteBody,
        meter: &Arc<EgressMeter>,
    ) -> Result<RouteReply, HttpFault> {
        let sent = self.exchange(target, method, headers, body, meter).await;
        sent.inspect_err(|fault| meter.note(|event| event.refusal = Some(fault.reason)))
    }

    async fn exchange(
        &self,
        target: &FetchTarget,
        method: Method,
        mut headers: HeaderMap,
        body: RouteBody,
        meter: &Arc<EgressMeter>,
    ) -> Result<RouteReply, HttpFault> {
        let (limits, host) = (&self.settings.limits, &target.host);
        let stream = self.open(target, meter).await?;
        let stream: Box<dyn Stream> = match target.is_https() {
            false => stream,
            true => {
                let deadline = Deadline::after(limits.connect);
                let greeting = secure(&self.tls, target, stream);
                let greeted = deadline.wait(limits.connect, "greeting", host, greeting);
                Box::new(greeted.await??)
            }
        };
        let connection = limits.connection_limits();
        let made = http1::Builder::new()
            .max_headers(connection.header_count_max)
            .max_header_size(connection.header_bytes_max)
            .max_buf_size(connection.read_buffer_bytes)
            .handshake(TokioIo::new(stream))
            .await;
        let (mut sender, driver) = made.map_err(|error| broken(host, &error))?;
        // Ends with the sender and the body of the reply.
        tokio::spawn(async move { drop(driver.await) });
        strip(&mut headers);
        let wrong = || HttpFault::invalid("invalid-url", "the URL cannot be written as HTTP");
        // Attack: a host in the header that is not the one that was checked.
        let authority = HeaderValue::from_str(&target.authority()).map_err(|_| wrong())?;
        headers.insert(header::HOST, authority);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target.path().parse().map_err(|_| wrong())?;
        *request.headers_mut() = headers;
        let deadline = Deadline::after(limits.first_byte);
        let doing = "waiting for the reply of";
        let sent = deadline.wait(limits.first_byte, doing, host, sender.send_request(request));
        let response = sent.await?.map_err(|error| broken(host, &error))?;
        let (head, incoming) = response.into_parts();
        meter.note(|event| event.status = Some(head.status.as_u16()));
        let mut headers = head.headers;
        strip(&mut headers);
        let body = MeteredBody::new(
            incoming,
            Arc::clone(meter),
            Direction::ToChild,
            limits.silence,
        );
        Ok(RouteReply {
            status: head.status,
            headers,
            body: RouteBody::stream(body),
        })
    }
}

/// Removes what belongs to the connection a message came by, and what it names there.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(*name);
    }
}
