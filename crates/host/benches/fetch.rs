//! What `fetch` costs over the HTTP client it is made of, and what it costs to
//! judge an address. `cargo xtask bench` runs it.
//!
//! The costs of a fetch are CPU time of the asking thread, because wall time on
//! a busy machine measures its neighbours; both ways open a connection for each
//! request. The last line is one JSON object of ratios.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::future::poll_fn;
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use host::PowerRequest;
use host::address::{of_address, of_host};
use host::fetch::resolve::{Lookup, Resolve};
use host::fetch::{Fetch, FetchLimits, FetchSettings, Tls, TlsTrust};
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::TokioIo;
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 15;
const REQUESTS: u64 = 400;

fn main() {
    divan::main();
    // Divan's `--test` and `--list` want nothing more.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let small = ratio(1_000);
    let large = ratio(1_000_000);
    println!(
        "{}",
        json!({"fetch_over_client_1kb": small, "fetch_over_client_1mb": large})
    );
}

#[divan::bench(args = ["8.8.8.8", "192.168.1.1", "2606:4700:4700::1111", "64:ff9b::a00:1"])]
fn address(bencher: Bencher<'_, '_>, text: &str) {
    let address: IpAddr = text.parse().unwrap();
    bencher.bench(|| of_address(black_box(address)));
}

#[divan::bench(args = ["api.example.com", "metadata.google.internal"])]
fn name(bencher: Bencher<'_, '_>, text: &str) {
    let host = url::Host::parse(text).unwrap();
    bencher.bench(|| of_host(black_box(&host)));
}

/// What the first call with a network pays for the certificate authorities, and every other.
#[divan::bench]
fn trust_first() -> usize {
    TlsTrust::default().tls().unwrap().root_count()
}

#[divan::bench]
fn trust_kept(bencher: Bencher<'_, '_>) {
    let trust = TlsTrust::default();
    trust.tls().unwrap();
    bencher.bench(|| trust.tls().unwrap().root_count());
}

/// Best of several rounds, both ways in turn.
fn ratio(body_bytes: usize) -> f64 {
    let address = serve(body_bytes);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    // A server always has some timer near at hand. Without one, every timer set is
    // the nearest and costs a wake-up of the runtime.
    runtime.spawn(async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        loop {
            ticks.tick().await;
        }
    });
    let fetch = power();
    let (mut direct_best, mut fetch_best) = (u64::MAX, u64::MAX);
    let requests = if body_bytes > 100_000 {
        REQUESTS / 10
    } else {
        REQUESTS
    };
    for _ in 0..ROUNDS {
        let direct = cost(&runtime, requests, async || direct(address).await);
        direct_best = direct_best.min(direct);
        let fetched = cost(&runtime, requests, async || fetched(&fetch, address).await);
        fetch_best = fetch_best.min(fetched);
    }
    println!("body {body_bytes} B: client {direct_best} ns, fetch {fetch_best} ns of CPU");
    let hundredths = fetch_best * 100 / direct_best;
    f64::from(u32::try_from(hundredths).unwrap()) / 100.0
}

/// CPU time of this thread for one request, in nanoseconds.
fn cost(runtime: &Runtime, requests: u64, mut request: impl AsyncFnMut() -> usize) -> u64 {
    runtime.block_on(async {
        let before = cpu_ns();
        for _ in 0..requests {
            black_box(request().await);
        }
        (cpu_ns() - before) / requests
    })
}

fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A server on a thread of its own, so that its CPU time is not counted.
fn serve(body_bytes: usize) -> SocketAddr {
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {body_bytes}\r\n\r\n");
            let reply: Arc<[u8]> = [head.into_bytes(), vec![b'a'; body_bytes]].concat().into();
            while let Ok((mut stream, _)) = listener.accept().await {
                let reply = Arc::clone(&reply);
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    while stream.read(&mut request).await.is_ok_and(|count| count > 0) {
                        if stream.write_all(&reply).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
    });
    address.recv().unwrap()
}

/// The least a program has to do with hyper: one request, one timeout.
async fn direct(address: SocketAddr) -> usize {
    let whole = Duration::from_secs(30);
    tokio::time::timeout(whole, exchange(address))
        .await
        .unwrap()
}

async fn exchange(address: SocketAddr) -> usize {
    let limits = FetchLimits::default();
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    // The bounds that `fetch` sets; the size of the buffer decides how often a long
    // body is read.
    let made = hyper::client::conn::http1::Builder::new()
        .max_headers(limits.response_header_count_max)
        .max_header_size(limits.response_header_bytes_max)
        .max_buf_size(limits.read_buffer_bytes)
        .handshake(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = made.unwrap();
    let driver = tokio::spawn(connection);
    let request = hyper::Request::get("/page?q=1")
        .header("host", address.to_string())
        .header("accept", "*/*")
        .header("user-agent", "bench")
        .body(String::new())
        .unwrap();
    let body = whole(sender.send_request(request).await.unwrap().into_body()).await;
    driver.abort();
    body.len()
}

async fn whole(mut incoming: Incoming) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await {
        if let Ok(piece) = frame.unwrap().into_data() {
            body.extend_from_slice(&piece);
        }
    }
    body
}

#[derive(Debug)]
struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

fn power() -> Fetch {
    let hosts = ["api.example.com", "*.example.org", "localhost"];
    let patterns = hosts.map(|host| HostPattern::parse(host).unwrap());
    let secrets = Masker::new(["a-secret-of-the-call"]).unwrap();
    let mut settings = FetchSettings::new(Tls::system(None).unwrap(), Arc::new(secrets));
    settings.resolver = Arc::new(Loopback);
    settings.private_hosts = Arc::new([HostPattern::parse("localhost").unwrap()]);
    let grant = NetworkGrant::Allowlist(patterns.into());
    Fetch::from_grant(&grant, &HostBounds::default(), settings).unwrap()
}

async fn fetched(fetch: &Fetch, address: SocketAddr) -> usize {
    let url = format!("http://localhost:{}/page?q=1", address.port());
    let ask = PowerRequest {
        arguments: json!({"url": url, "headers": {"accept": "*/*", "user-agent": "bench"}}),
        bytes: Vec::new(),
    };
    fetch.run(ask).await.outcome.unwrap().bytes.len()
}
