//! What the proxy of the jail costs a program: downloads of 1 MB by curl in a jail, through
//! the proxy and with an open network, in turn. `cargo xtask bench jail` runs it. Wall time,
//! because it is what the program waits. The last line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use host::egress::{Egress, EgressSettings};
use host::fetch::Tls;
use host::fetch::connect::{Connecting, Connector, Stream};
use host::fetch::resolve::{Lookup, Resolve};
use jail::{JailExit, JailNetwork, JailSettings, WorkerProgram};
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ROUNDS: usize = 20;
/// Downloads of one process, so that its own start is a small part.
const DOWNLOADS: usize = 40;
const BODY_BYTES: usize = 1_000_000;
const HOST: &str = "files.example.com";

fn main() -> ExitCode {
    // This program is also the supervisor of its own children.
    if let Some(code) = jail::jail_main() {
        return code;
    }
    // `cargo test` runs every bench once, with this.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return ExitCode::SUCCESS;
    }
    if !Path::new("/usr/bin/curl").exists() {
        println!("there is no curl");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let asked = std::env::var("RINGFENCE_BENCH_ROUNDS").ok();
    let rounds = asked.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let (mut open, mut proxied) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let address = serve().await;
        for _ in 0..rounds {
            open.push(download(address, JailNetwork::Open).await);
            proxied.push(download(address, JailNetwork::Proxy).await);
        }
    });
    let (open, proxied) = (median(open), median(proxied));
    println!("{DOWNLOADS} times 1 MB: open network {open:.1} ms, proxy {proxied:.1} ms");
    println!("{}", json!({"egress_over_open_1mb": proxied / open}));
    ExitCode::SUCCESS
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Milliseconds of a child that downloads.
async fn download(address: SocketAddr, network: JailNetwork) -> f64 {
    let folder = std::env::temp_dir().join(format!("ringfence-egress-{}", std::process::id()));
    let (options, url) = match network {
        // As with https: a tunnel, through which bytes go as they are.
        JailNetwork::Proxy => ("-sSp", format!("http://{HOST}/file")),
        JailNetwork::Open | JailNetwork::None => ("-sS", format!("http://{address}/file")),
    };
    let mut command = vec!["/usr/bin/curl".to_owned(), options.to_owned()];
    for _ in 0..DOWNLOADS {
        command.extend(["-o".to_owned(), "/dev/null".to_owned(), url.clone()]);
    }
    let mut settings = JailSettings::new(command, folder.clone());
    settings.network = network;
    let start = Instant::now();
    let spawned = jail::spawn(settings, &WorkerProgram::ThisProgram).await;
    let mut child = spawned.expect("a jail");
    if let Some(mut door) = child.egress.take() {
        let egress = egress(address);
        tokio::spawn(async move {
            while let Ok(stream) = door.accept().await {
                egress.admit(stream);
            }
        });
    }
    let exit = child.wait().await;
    let elapsed = start.elapsed();
    assert_eq!(exit, JailExit::Code(0), "{network:?}");
    let _ = std::fs::remove_dir_all(folder);
    elapsed.as_secs_f64() * 1_000.0
}

#[derive(Debug)]
struct Loopback(SocketAddr);

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        // Any address that is public.
        Box::pin(async { Ok(vec![IpAddr::from([93, 184, 215, 14])]) })
    }
}

impl Connector for Loopback {
    fn connect(&self, _: SocketAddr) -> Connecting<'_> {
        let address = self.0;
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(address).await?);
            Ok(stream)
        })
    }
}

fn egress(address: SocketAddr) -> Egress {
    let mut settings = EgressSettings::new(Tls::system(None).unwrap());
    let wire = Arc::new(Loopback(address));
    settings.resolver = Arc::clone(&wire) as _;
    settings.connector = wire;
    let listed = HostPattern::parse(HOST).unwrap();
    let grant = NetworkGrant::Allowlist(vec![listed]);
    Egress::from_grant(&grant, &HostBounds::default(), settings)
}

async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY_BYTES}\r\n\r\n");
    let reply: Arc<[u8]> = [head.into_bytes(), vec![b'a'; BODY_BYTES]].concat().into();
    tokio::spawn(async move {
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
    address
}
