//! The proxy of child processes. Every connection goes to the lab on loopback, or is only
//! recorded; each refusal has a control that goes through.

use std::sync::Arc;
use std::time::Duration;

use host::egress::{
    Egress, EgressEvent, EgressRoute, EgressSettings, RouteAnswer, RouteBody, RouteGuard,
    RouteReply, RouteRequest,
};
use hyper::{HeaderMap, Method, StatusCode};
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::lab::{Ending, Lab, raw, redirect, reply};
use crate::wire::{Dns, Ends, Wire};
use crate::world::{PUBLIC, nobody};

pub(crate) struct Net {
    dns: Arc<Dns>,
    wire: Arc<Wire>,
    pub(crate) settings: EgressSettings,
    grant: NetworkGrant,
}

impl Net {
    /// `api.acme.com` is public and listed, and every connection goes to `ends`.
    pub(crate) fn new(ends: Ends) -> Net {
        let (dns, wire) = (Arc::new(Dns::default()), Arc::new(Wire::new(ends)));
        dns.say("api.acme.com", PUBLIC);
        let mut settings = EgressSettings::new(nobody());
        settings.resolver = Arc::clone(&dns) as _;
        settings.connector = Arc::clone(&wire) as _;
        let listed = HostPattern::parse("api.acme.com").unwrap();
        let port = HostPattern::parse("api.acme.com:8080").unwrap();
        Net {
            dns,
            wire,
            settings,
            grant: NetworkGrant::Allowlist(vec![listed, port]),
        }
    }

    pub(crate) fn egress(&self) -> Egress {
        Egress::from_grant(&self.grant, &HostBounds::default(), self.settings.clone())
    }
}

/// What a child gets that sends `said` on one connection and then reads to the end.
async fn say(egress: &Egress, said: &str) -> String {
    let mut child = connect(egress);
    child.write_all(said.as_bytes()).await.unwrap();
    read_all(&mut child).await
}

fn connect(egress: &Egress) -> DuplexStream {
    let (child, ours) = tokio::io::duplex(64 << 10);
    egress.admit(ours);
    child
}

async fn read_all(child: &mut DuplexStream) -> String {
    let mut heard = Vec::new();
    let _ = child.read_to_end(&mut heard).await;
    String::from_utf8_lossy(&heard).into_owned()
}

fn get(url: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n")
}

pub(crate) fn one(events: &[EgressEvent]) -> &EgressEvent {
    assert_eq!(events.len(), 1, "{events:?}");
    &events[0]
}

#[tokio::test]
async fn a_listed_host_is_reached_and_the_host_header_is_its_own() {
    let lab = Lab::start(|_| reply("200 OK", "hello")).await;
    let net = Net::new(Ends::Lab(lab.address));
    let egress = net.egress();
    let heard = say(&egress, &get("http://api.acme.com/path?x=1")).await;
    assert!(heard.starts_with("HTTP/1.1 200 OK"), "{heard}");
    assert!(heard.ends_with("hello"), "{heard}");
    let seen = lab.seen();
    assert_eq!(seen[0].path(), "/path?x=1");
    // Attack: a header that names another host than was checked.
    assert_eq!(seen[0].header("host"), Some("api.acme.com"));
    let events = egress.finish().await;
    let event = one(&events);
    assert_eq!(
        (event.host.as_str(), event.port),
        ("api.acme.com", Some(80))
    );
    assert_eq!((event.status, event.refusal), (Some(200), None));
    assert_eq!(event.bytes, 5);
    assert!(event.address.is_some());
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let lab = Lab::start(|_| reply("200 OK", "through")).await;
    let net = Net::new(Ends::Lab(lab.address));
    let egress = net.egress();
    let mut child = connect(&egress);
    child
        .write_all(b"CONNECT api.acme.com:8080 HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(child.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"), "{head:?}");
    child
        .write_all(b"GET /inner HTTP/1.1\r\nHost: y\r\n\r\n")
        .await
        .unwrap();
    let heard = read_all(&mut child).await;
    assert!(heard.ends_with("through"), "{heard}");
    let events = egress.finish().await;
    let event = one(&events);
    assert_eq!((event.method.as_str(), event.port), ("CONNECT", Some(8080)));
    assert!(event.sent_bytes > 20 && event.bytes > 20, "{event:?}");
}

#[tokio::test]
async fn what_the_grant_does_not_list_is_refused_with_a_reason() {
    let net = Net::new(Ends::Nowhere);
    net.dns.say("rebound.acme.com", "127.0.0.1");
    net.dns
        .say("mixed.acme.com", &format!("{PUBLIC},169.254.169.254"));
    let below = HostPattern::parse("*.acme.com").unwrap();
    let listed = HostPattern::parse("api.acme.com").unwrap();
    for (said, reason) in [
        (get("http://evil.example/"), "host-not-in-allowlist"),
        (
            get("http://api.acme.com.evil.example/"),
            "host-not-in-allowlist",
        ),
        (get("http://api.acme.com@evil.example/"), "invalid-url"),
        (get("http://127.0.0.1/"), "host-not-in-allowlist"),
        (get("http://[::1]/"), "host-not-in-allowlist"),
        (get("http://0x7f.1/"), "host-not-in-allowlist"),
        (get("http://rebound.acme.com/"), "resolved-private-ip"),
        (get("http://mixed.acme.com/"), "resolved-private-ip"),
        (get("https://api.acme.com/"), "unsupported-scheme"),
        (get("ftp://api.acme.com/"), "unsupported-scheme"),
        (get("/"), "not-a-proxy-request"),
        (get("/-/unknown/x"), "no-such-route"),
        (
            "CONNECT evil.example:443 HTTP/1.1\r\n\r\n".to_owned(),
            "host-not-in-allowlist",
        ),
        (
            "CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n".to_owned(),
            "host-not-in-allowlist",
        ),
        (
            "CONNECT rebound.acme.com:443 HTTP/1.1\r\n\r\n".to_owned(),
            "resolved-private-ip",
        ),
        (
            "CONNECT x.acme.com:25 HTTP/1.1\r\n\r\n".to_owned(),
            "port-blocked",
        ),
    ] {
        let mut egress = Net::new(Ends::Nowhere);
        egress.dns = Arc::clone(&net.dns);
        egress.settings = net.settings.clone();
        // A refused tunnel leaves the connection open for the next request.
        egress.settings.limits.head = Duration::from_millis(100);
        egress.grant = NetworkGrant::Allowlist(vec![listed.clone(), below.clone()]);
        let egress = egress.egress();
        let mut child = connect(&egress);
        child.write_all(said.as_bytes()).await.unwrap();
        let heard = read_all(&mut child).await;
        let status = heard.split(' ').nth(1).unwrap_or_default();
        assert!(["400", "403"].contains(&status), "{said} {heard}");
        assert!(
            heard.contains(&format!("x-ringfence-reason: {reason}\r\n")),
            "{said} {heard}"
        );
        assert!(
            heard.contains(&format!("\"reason\":\"{reason}\"")),
            "{heard}"
        );
        assert_eq!(one(&egress.finish().await).refusal, Some(reason), "{said}");
    }
    assert!(net.wire.called().is_empty(), "{:?}", net.wire.called());
}

/// A program that goes past its proxy: without namespaces its connection comes here all the
/// same, and is on record though it does not say where it wanted to go.
#[tokio::test]
async fn what_is_no_request_is_on_record() {
    let net = Net::new(Ends::Nowhere);
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 the greeting of TLS \r\n\r\n";
    for bytes in [&hello[..], b"EHLO example.com\r\n\r\n"] {
        let egress = net.egress();
        let mut child = connect(&egress);
        child.write_all(bytes).await.unwrap();
        read_all(&mut child).await;
        let events = egress.finish().await;
        let event = one(&events);
        assert_eq!(event.refusal, Some("not-a-proxy-request"), "{event:?}");
        assert_eq!((event.host.as_str(), event.port), ("", None));
    }
    // One that says nothing and hangs up is no decision.
    let egress = net.egress();
    drop(connect(&egress));
    assert_eq!(egress.finish().await, []);
    assert!(net.wire.called().is_empty(), "{:?}", net.wire.called());
}

#[tokio::test]
async fn a_blocked_grant_refuses_everything() {
    let mut net = Net::new(Ends::Nowhere);
    net.grant = NetworkGrant::Blocked;
    let egress = net.egress();
    let heard = say(&egress, &get("http://api.acme.com/")).await;
    assert!(heard.contains("network-blocked"), "{heard}");
    assert!(net.wire.called().is_empty());
    assert!(net.dns.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn bytes_are_bounded_for_the_whole_child() {
    let lab = Lab::start(|_| reply("200 OK", vec![b'x'; 6_000])).await;
    let mut net = Net::new(Ends::Lab(lab.address));
    net.settings.limits.bytes_max = 10_000;
    let egress = net.egress();
    let first = say(&egress, &get("http://api.acme.com/")).await;
    assert!(first.len() > 6_000, "the control");
    let second = say(&egress, &get("http://api.acme.com/")).await;
    assert!(second.len() < 6_000, "{}", second.len());
    let refusals: Vec<_> = egress
        .finish()
        .await
        .iter()
        .map(|event| event.refusal)
        .collect();
    assert_eq!(refusals, [None, Some("egress-bytes-exceeded")]);
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off() {
    let mut net = Net::new(Ends::Nowhere);
    net.settings.limits.head = Duration::from_millis(50);
    let egress = net.egress();
    let mut child = connect(&egress);
    child
        .write_all(b"GET http://api.acme.com/ HT")
        .await
        .unwrap();
    // Ends only because the proxy hangs up.
    read_all(&mut child).await;
    assert!(net.wire.called().is_empty());
}

#[tokio::test]
async fn a_silent_server_does_not_hold_a_connection() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let lab = Lab::start(move |_| raw(half, Ending::Hold)).await;
    let mut net = Net::new(Ends::Lab(lab.address));
    net.settings.limits.silence = Duration::from_millis(100);
    let egress = net.egress();
    let heard = say(&egress, &get("http://api.acme.com/")).await;
    assert!(heard.ends_with("half"), "{heard}");
    assert_eq!(one(&egress.finish().await).refusal, Some("timeout"));
}

#[tokio::test]
async fn one_connection_too_many_is_closed() {
    let mut net = Net::new(Ends::Nowhere);
    net.settings.limits.concurrent_max = 2;
    let egress = net.egress();
    let held = [connect(&egress), connect(&egress)];
    let mut third = connect(&egress);
    assert_eq!(read_all(&mut third).await, "");
    drop(held);
}

#[tokio::test]
async fn closing_ends_every_connection() {
    let lab = Lab::start(|_| raw("", Ending::Hold)).await;
    let net = Net::new(Ends::Lab(lab.address));
    let egress = net.egress();
    let mut child = connect(&egress);
    child
        .write_all(b"CONNECT api.acme.com:8080 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut head = [0; 15];
    child.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    drop(egress);
    read_all(&mut child).await;
}

/// Follows redirects, each hop decided again.
#[derive(Debug)]
struct Follower;

impl EgressRoute for Follower {
    fn answer<'a>(&'a self, request: RouteRequest, guard: RouteGuard) -> RouteAnswer<'a> {
        Box::pin(async move {
            let mut url = format!("http://api.acme.com{}", request.path);
            for _ in 0..3 {
                let sent = guard.send(Method::GET, &url, HeaderMap::new(), RouteBody::empty());
                match sent.await {
                    Err(fault) => return RouteReply::refused(fault.reason, &fault.to_string()),
                    Ok(reply) if reply.status == StatusCode::FOUND => {
                        let to = &reply.headers["location"];
                        url = to.to_str().unwrap().to_owned();
                    }
                    Ok(reply) => return reply,
                }
            }
            RouteReply::refused("too-many-redirects", "more than two redirects")
        })
    }
}

#[tokio::test]
async fn a_route_goes_by_the_guard_at_each_hop() {
    let lab = Lab::start(|seen| match seen.path() {
        "/good" => redirect(302, "http://api.acme.com/end"),
        "/bad" => redirect(302, "http://169.254.169.254/latest"),
        _ => reply("200 OK", "arrived"),
    })
    .await;
    let mut net = Net::new(Ends::Lab(lab.address));
    net.settings
        .routes
        .insert("follow".to_owned(), Arc::new(Follower));
    let egress = net.egress();
    let heard = say(&egress, &get("/-/follow/good")).await;
    assert!(heard.ends_with("arrived"), "{heard}");
    let heard = say(&egress, &get("/-/follow/bad")).await;
    assert!(heard.contains("host-not-in-allowlist"), "{heard}");
    let events = egress.finish().await;
    let hops: Vec<_> = events
        .iter()
        .filter(|event| !event.host.is_empty())
        .map(|event| (event.host.as_str(), event.refusal, event.route.as_deref()))
        .collect();
    assert_eq!(
        hops,
        [
            ("api.acme.com", None, Some("follow")),
            ("api.acme.com", None, Some("follow")),
            ("api.acme.com", None, Some("follow")),
            (
                "169.254.169.254",
                Some("host-not-in-allowlist"),
                Some("follow")
            ),
        ]
    );
}
