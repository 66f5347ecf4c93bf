//! The client for servers the owner named. Every connection goes to the lab on
//! loopback, or is only recorded; each attack has a control that succeeds.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use host::client::{
    ClientLimits, ClientMethod, ClientReply, ClientRequest, ClientSettings, HttpClient,
};
use host::fetch::{HttpFault, Tls};
use model::network::host_pattern::HostPattern;

use crate::authority::Authority;
use crate::lab::{Ending, Lab, Seen, raw, redirect, reply};
use crate::wire::{Dns, Ends, Wire};
use crate::world::{PUBLIC, nobody};

struct Net {
    dns: Arc<Dns>,
    wire: Arc<Wire>,
    limits: ClientLimits,
    tls: Tls,
    private: Vec<HostPattern>,
}

impl Net {
    /// `mcp.acme.com` is public, and every connection goes to the lab.
    fn to(lab: &Lab) -> Net {
        let dns = Dns::default();
        dns.say("mcp.acme.com", PUBLIC);
        Net {
            dns: Arc::new(dns),
            wire: Arc::new(Wire::new(Ends::Lab(lab.address))),
            limits: ClientLimits::default(),
            tls: nobody(),
            private: Vec::new(),
        }
    }

    fn private(mut self, host: &str) -> Net {
        self.private.push(HostPattern::parse(host).unwrap());
        self
    }

    fn limits(mut self, change: impl FnOnce(&mut ClientLimits)) -> Net {
        change(&mut self.limits);
        self
    }

    fn client(&self) -> HttpClient {
        HttpClient::new(ClientSettings {
            limits: self.limits.clone(),
            tls: self.tls.clone(),
            resolver: Arc::clone(&self.dns) as _,
            connector: Arc::clone(&self.wire) as _,
            private_hosts: self.private.as_slice().into(),
        })
    }

    async fn get(&self, url: &str) -> Result<String, HttpFault> {
        read(get(&self.client(), url).await?).await
    }

    async fn refusal(&self, url: &str) -> &'static str {
        match self.get(url).await {
            Ok(body) => panic!("{url} gave {body:?}"),
            Err(fault) => fault.reason,
        }
    }

    fn called(&self) -> Vec<String> {
        self.wire.called().iter().map(ToString::to_string).collect()
    }
}

async fn get(client: &HttpClient, url: &str) -> Result<ClientReply, HttpFault> {
    client
        .send(ClientRequest::new(ClientMethod::Get, url))
        .await
}

async fn read(reply: ClientReply) -> Result<String, HttpFault> {
    let whole = reply.body.read(1 << 20, Duration::from_secs(20)).await?;
    Ok(String::from_utf8(whole).unwrap())
}

async fn hello() -> Lab {
    Lab::start(|seen: &Seen| match seen.path() {
        "/moved" => redirect(307, "/here"),
        "/moved-for-good" => redirect(308, "/here"),
        "/found" => redirect(302, "/here"),
        "/metadata" => redirect(307, "http://169.254.169.254/latest/meta-data/"),
        "/elsewhere" => redirect(307, "http://other.acme.com/"),
        "/loop" => redirect(307, "/loop"),
        _ => reply("200 OK", "hello"),
    })
    .await
}

#[tokio::test]
async fn a_public_host_is_reached_at_the_address_that_was_checked() {
    let lab = hello().await;
    let net = Net::to(&lab);
    assert_eq!(net.get("http://mcp.acme.com/mcp").await.unwrap(), "hello");
    assert_eq!(net.called(), [format!("{PUBLIC}:80")]);
}

#[tokio::test]
async fn one_private_address_spoils_the_answer() {
    let lab = hello().await;
    for address in [
        "10.0.0.7",
        "127.0.0.1",
        "169.254.169.254",
        "::ffff:10.0.0.7",
    ] {
        let net = Net::to(&lab);
        net.dns
            .say("mixed.acme.com", &format!("{PUBLIC} {address}"));
        assert_eq!(
            net.refusal("http://mixed.acme.com/").await,
            "resolved-private-ip",
            "{address}"
        );
        assert!(net.called().is_empty(), "{address}");
        // The control: the same name with good addresses only.
        let net = Net::to(&lab);
        net.dns
            .say("mixed.acme.com", &format!("{PUBLIC} 93.184.216.35"));
        assert_eq!(net.get("http://mixed.acme.com/").await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn a_private_host_is_reached_only_if_the_owner_names_it() {
    let lab = hello().await;
    for (host, address) in [
        ("127.0.0.1", None),
        ("[::1]", None),
        ("10.1.2.3", None),
        ("localhost", Some("127.0.0.1")),
        ("tools.internal", Some("10.1.2.3")),
        ("tools", Some("172.16.0.9")),
    ] {
        let url = format!("http://{host}:9000/mcp");
        let net = Net::to(&lab);
        if let Some(address) = address {
            net.dns.say(host, address);
        }
        assert_eq!(net.refusal(&url).await, "literal-private-ip", "{host}");
        assert!(net.called().is_empty(), "{host}");
        let net = Net::to(&lab).private(host);
        if let Some(address) = address {
            net.dns.say(host, address);
        }
        assert_eq!(net.get(&url).await.unwrap(), "hello", "{host}");
    }
}

#[tokio::test]
async fn the_metadata_address_is_nobodys_server() {
    let lab = hello().await;
    for host in [
        "169.254.169.254",
        "169.254.1.1",
        "[fe80::1]",
        "0.0.0.0",
        "metadata.google.internal",
    ] {
        let net = Net::to(&lab).private(host);
        net.dns.say(host, "169.254.169.254");
        let reason = net.refusal(&format!("http://{host}/")).await;
        assert_eq!(reason, "literal-private-ip", "{host}");
        assert!(net.called().is_empty(), "{host}");
    }
    // A name the owner named does not lead there either, nor to this machine.
    for address in ["169.254.169.254", "127.0.0.1"] {
        let net = Net::to(&lab).private("tools.acme.com");
        net.dns.say("tools.acme.com", address);
        let reason = net.refusal("http://tools.acme.com/").await;
        assert_eq!(reason, "resolved-private-ip", "{address}");
        assert!(net.called().is_empty());
    }
}

#[tokio::test]
async fn a_redirect_stays_at_its_origin_and_keeps_the_message() {
    let lab = hello().await;
    let net = Net::to(&lab);
    for path in ["moved", "moved-for-good"] {
        let url = format!("http://mcp.acme.com/{path}");
        assert_eq!(net.get(&url).await.unwrap(), "hello", "{path}");
    }
    let before = net.called().len();
    for path in ["found", "elsewhere", "metadata"] {
        let url = format!("http://mcp.acme.com/{path}");
        assert_eq!(net.refusal(&url).await, "redirect-refused", "{path}");
    }
    let after = net.called().split_off(before);
    assert_eq!(after, vec![format!("{PUBLIC}:80"); 3], "no other address");
    assert_eq!(
        net.refusal("http://mcp.acme.com/loop").await,
        "too-many-redirects"
    );
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_looked_up_anew() {
    let lab = hello().await;
    let net = Net::to(&lab);
    net.dns.say("turning.acme.com", PUBLIC);
    net.dns.say("turning.acme.com", "10.0.0.7");
    // The lab closes its connections, so the second hop needs a new one.
    let reason = net.refusal("http://turning.acme.com/moved").await;
    assert_eq!(reason, "resolved-private-ip");
    assert_eq!(net.called(), [format!("{PUBLIC}:80")]);
}

#[tokio::test]
async fn credentials_and_blocked_ports_are_refused() {
    let lab = hello().await;
    let net = Net::to(&lab);
    let reason = net.refusal("http://user:pass@mcp.acme.com/").await;
    assert_eq!(reason, "invalid-url");
    assert_eq!(
        net.refusal("ftp://mcp.acme.com/").await,
        "unsupported-scheme"
    );
    assert_eq!(net.refusal("http://mcp.acme.com:25/").await, "port-blocked");
    assert!(net.called().is_empty());
}

fn sse(ending: Ending) -> crate::lab::Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    raw(format!("{head}data: first\n\n"), ending)
}

#[tokio::test]
async fn a_stream_comes_piece_by_piece_and_may_be_silent_for_a_while() {
    let lab = Lab::start(|_| {
        sse(Ending::Drip(
            b": ping\n\n".to_vec(),
            Duration::from_millis(60),
        ))
    })
    .await;
    let net = Net::to(&lab).limits(|limits| {
        limits.stream_silence = Duration::from_secs(5);
        limits.stream = Duration::from_millis(700);
    });
    let mut reply = get(&net.client(), "http://mcp.acme.com/").await.unwrap();
    let mut whole = Vec::new();
    let fault = loop {
        match reply.body.next().await.expect("the stream has a bound") {
            Ok(piece) => whole.extend_from_slice(&piece),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.reason, "timeout");
    let text = String::from_utf8(whole).unwrap();
    assert!(text.starts_with("data: first\n\n: ping"), "{text}");
    assert!(reply.body.next().await.is_none(), "a fault is the end");
}

#[tokio::test]
async fn silence_size_and_slowness_have_their_bounds() {
    let lab = Lab::start(|seen: &Seen| match seen.path() {
        "/silent" => sse(Ending::Hold),
        "/endless" => sse(Ending::Endless(vec![b'x'; 65536])),
        "/mute" => raw("", Ending::Hold),
        "/large-head" => raw(
            "HTTP/1.1 200 OK\r\n",
            Ending::Endless(b"x-a: b\r\n".to_vec()),
        ),
        "/boast" => raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n",
            Ending::Hold,
        ),
        "/cut" => raw(
            "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
            Ending::Close,
        ),
        "/coded" => reply("200 OK\r\ncontent-encoding: gzip", "xx"),
        _ => reply("200 OK", "hello"),
    })
    .await;
    let net = Net::to(&lab).limits(|limits| {
        limits.stream_silence = Duration::from_millis(200);
        limits.first_byte = Duration::from_millis(200);
        limits.reply_bytes_max = 1 << 20;
    });
    for (path, reason) in [
        ("silent", "timeout"),
        ("endless", "response-body-too-large"),
        ("mute", "timeout"),
        ("large-head", "io"),
        ("boast", "response-body-too-large"),
        ("cut", "io"),
        ("coded", "io"),
    ] {
        let refusal = net.refusal(&format!("http://mcp.acme.com/{path}")).await;
        assert_eq!(refusal, reason, "{path}");
    }
    assert_eq!(net.get("http://mcp.acme.com/").await.unwrap(), "hello");
}

/// A server that keeps its connections, unlike the lab.
async fn keeping(count_max: usize) -> SocketAddr {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                for _ in 0..count_max {
                    let mut bytes = Vec::new();
                    while !bytes.ends_with(b"\r\n\r\n") {
                        let mut piece = [0; 1024];
                        let count = stream.read(&mut piece).await.unwrap_or(0);
                        if count == 0 {
                            return;
                        }
                        bytes.extend_from_slice(&piece[..count]);
                    }
                    let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    stream.write_all(reply).await.unwrap();
                }
            });
        }
    });
    address
}

async fn wait_until_closed(client: &HttpClient) {
    let closed = async {
        while client.idle_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let waiting = tokio::time::timeout(Duration::from_secs(20), closed);
    waiting.await.expect("an unused connection is closed");
}

#[tokio::test]
async fn a_connection_is_kept_used_again_and_let_go() {
    let address = keeping(100).await;
    let lab = hello().await;
    let mut net = Net::to(&lab).limits(|limits| limits.idle = Duration::from_millis(100));
    net.wire = Arc::new(Wire::new(Ends::Lab(address)));
    let client = net.client();
    for _ in 0..5 {
        let reply = get(&client, "http://mcp.acme.com/").await.unwrap();
        assert_eq!(read(reply).await.unwrap(), "ok");
    }
    assert_eq!(net.called().len(), 1, "one connection for five requests");
    assert_eq!(client.idle_count(), 1);
    wait_until_closed(&client).await;
}

#[tokio::test]
async fn a_connection_the_server_closed_is_replaced_unnoticed() {
    let address = keeping(1).await;
    let lab = hello().await;
    let mut net = Net::to(&lab);
    net.wire = Arc::new(Wire::new(Ends::Lab(address)));
    let client = net.client();
    for _ in 0..5 {
        let reply = get(&client, "http://mcp.acme.com/").await.unwrap();
        assert_eq!(read(reply).await.unwrap(), "ok");
        // The server closes now.
        wait_until_closed(&client).await;
    }
    assert_eq!(net.called().len(), 5);
}

/// A server that keeps its connections and answers with a stream of chunks: an event, and what
/// its `path` says before the end.
async fn streaming() -> SocketAddr {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                loop {
                    let (mut first, mut line) = (String::new(), String::new());
                    stream.read_line(&mut first).await.unwrap();
                    while !line.ends_with("\r\n\r\n") {
                        if stream.read_line(&mut line).await.unwrap() == 0 {
                            return;
                        }
                    }
                    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ndata\r\n";
                    stream.write_all(head.as_bytes()).await.unwrap();
                    if first.contains("/silent") {
                        // Until the client closes.
                        let _ = stream.read_line(&mut line).await;
                        return;
                    }
                    if first.contains("/long") {
                        let rest = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
                        let _ = stream.write_all(rest.as_bytes()).await;
                    }
                    // A client that closed meanwhile is no fault.
                    let _ = stream.write_all(b"0\r\n\r\n").await;
                }
            });
        }
    });
    address
}

/// Reads the first piece of a reply and no more.
async fn begin(client: &HttpClient, path: &str) {
    let url = format!("http://mcp.acme.com/{path}");
    let mut reply = get(client, &url).await.unwrap();
    assert_eq!(reply.body.next().await.unwrap().unwrap(), "data");
}

#[tokio::test]
async fn a_stream_that_is_left_at_its_end_keeps_the_connection() {
    let lab = hello().await;
    let mut net = Net::to(&lab);
    net.wire = Arc::new(Wire::new(Ends::Lab(streaming().await)));
    let client = net.client();
    for _ in 0..5 {
        begin(&client, "short").await;
        let kept = async {
            while client.idle_count() == 0 {
                tokio::task::yield_now().await;
            }
        };
        let waiting = tokio::time::timeout(Duration::from_secs(20), kept);
        waiting.await.expect("the connection is kept");
    }
    assert_eq!(net.called().len(), 1, "one connection for five streams");
}

/// Attack: a server that keeps a connection, and what it holds here, by never coming to an end.
#[tokio::test]
async fn a_stream_that_is_left_and_goes_on_is_closed() {
    for path in ["silent", "long"] {
        let lab = hello().await;
        let mut net = Net::to(&lab).limits(|limits| limits.concurrent_max = 1);
        net.wire = Arc::new(Wire::new(Ends::Lab(streaming().await)));
        let client = net.client();
        for count in 1..4 {
            // There is one place, so each begins when the one before was let go.
            begin(&client, path).await;
            assert_eq!(net.called().len(), count, "{path}");
        }
    }
}

#[tokio::test]
async fn connections_of_one_origin_are_not_used_for_another() {
    let one = keeping(100).await;
    let lab = hello().await;
    let other: SocketAddr = "93.184.216.99:80".parse().unwrap();
    let mut net = Net::to(&lab);
    net.dns.say("other.acme.com", "93.184.216.99");
    let first: SocketAddr = format!("{PUBLIC}:80").parse().unwrap();
    let labs = HashMap::from([(first, Some(one)), (other, Some(lab.address))]);
    net.wire = Arc::new(Wire::new(Ends::Labs(labs)));
    let client = net.client();
    let reply = get(&client, "http://mcp.acme.com/").await.unwrap();
    assert_eq!(read(reply).await.unwrap(), "ok");
    let reply = get(&client, "http://other.acme.com/").await.unwrap();
    assert_eq!(read(reply).await.unwrap(), "hello");
}

#[tokio::test]
async fn http2_carries_many_requests_on_one_connection() {
    let authority = Authority::new();
    let acceptor = authority.acceptor("mcp.acme.com", &["h2"]);
    let lab = Lab::start_tls(acceptor, |_| reply("200 OK", "hello")).await;
    let mut net = Net::to(&lab);
    net.tls = Tls::only(&authority.pem).unwrap();
    let client = net.client();
    for _ in 0..4 {
        let reply = get(&client, "https://mcp.acme.com/").await.unwrap();
        assert_eq!(read(reply).await.unwrap(), "hello");
    }
    assert_eq!(net.called().len(), 1);
    // The control: an unknown authority.
    net.tls = nobody();
    assert_eq!(net.refusal("https://mcp.acme.com/").await, "tls");
}

#[tokio::test]
async fn headers_and_bodies_arrive_and_debug_shows_neither() {
    let lab = hello().await;
    let net = Net::to(&lab);
    let mut request = ClientRequest::new(ClientMethod::Post, "http://mcp.acme.com/mcp");
    let headers = &mut request.headers;
    headers.insert("authorization", "Bearer tok-7781".parse().unwrap());
    headers.insert("cookie", "a=b".parse().unwrap());
    headers.insert("host", "evil.acme.com".parse().unwrap());
    request.body = b"{\"tok-7781\":1}".to_vec().into();
    assert!(!format!("{request:?}").contains("7781"));
    let reply = net.client().send(request).await.unwrap();
    assert_eq!(read(reply).await.unwrap(), "hello");
    let seen = lab.seen().remove(0);
    assert_eq!(seen.method(), "POST");
    assert_eq!(seen.header("authorization"), Some("Bearer tok-7781"));
    assert_eq!(seen.header("host"), Some("mcp.acme.com"));
    assert_eq!(seen.header("cookie"), None);
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(seen.body, b"{\"tok-7781\":1}");
}
