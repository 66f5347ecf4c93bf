//! What the process of a server reaches: the hosts its owner names, through our proxy, and
//! nothing else; what it tried is on record. Names lead to a lab on loopback.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use host::fetch::connect::{Connecting, Connector, Stream};
use host::fetch::resolve::{Lookup, Resolve};
use model::record::audit::{Act, Status};
use model::record::outcome::Outcome;
use serde_json::{Value, json};
use store::Filter;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{Home, World};

const SCRIPT: &str = include_str!("server/reach.py");
const LISTED: &str = "api.example.com";
const OTHER: &str = "evil.example.com";

/// Answers every request with a greeting, and counts them.
struct Lab {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    /// Of the server's script. Beside the home: no server is given any of that.
    folder: Home,
}

impl Lab {
    async fn start() -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\nthe lab greets";
                    let _ = stream.write_all(reply.as_bytes()).await;
                });
            }
        });
        let folder = Home::new();
        std::fs::write(folder.path.join("reach.py"), SCRIPT).unwrap();
        Lab {
            address,
            asked,
            folder,
        }
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    /// A world with the server, whose names lead here; accepted.
    async fn world(&self, more: &str) -> World {
        let home = Home::new();
        let folder = &self.folder.path;
        let script = folder.join("reach.py");
        let command = json!(["/usr/bin/python3", "-I", script.display().to_string()]);
        let read = json!([folder.display().to_string()]);
        home.file(
            "ringfence.toml",
            &format!("[[server]]\nname = \"test\"\nera = \"legacy\"\ncommand = {command}\nread = {read}\n{more}\n"),
        );
        home.secrets("SERVER_TOKEN=a-long-secret-value\n");
        let wire = Arc::new(Wire {
            address: self.address,
        });
        let workspace = home.path.join("workspace");
        let world = World::with(home, move |settings| {
            let mut powers = engine::powers::PowerSettings::new(workspace);
            powers.resolver = Arc::clone(&wire) as _;
            powers.connector = wire;
            settings.powers = Some(powers);
        });
        let servers = world.engine.servers();
        servers.look("test").await.expect("a list");
        let digest = servers.review("test").expect("a review").digest;
        servers.accept("test", &digest, None).expect("accepted");
        world
    }
}

#[derive(Debug)]
struct Wire {
    address: SocketAddr,
}

impl Resolve for Wire {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let address = match name {
            "inside.example.com" => "169.254.169.254",
            _ => "93.184.215.14",
        };
        let address: Result<IpAddr, _> = address.parse();
        Box::pin(async move {
            address
                .map(|address| vec![address])
                .map_err(io::Error::other)
        })
    }
}

impl Connector for Wire {
    fn connect(&self, _: SocketAddr) -> Connecting<'_> {
        let address = self.address;
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(address).await?);
            Ok(stream)
        })
    }
}

fn said(outcome: &Outcome) -> String {
    let relayed = outcome.relayed.as_ref().expect("what the server gave");
    relayed.content[0]["text"].as_str().unwrap_or("").to_owned()
}

fn url(host: &str) -> Value {
    json!({"url": format!("http://{host}/page")})
}

/// The decisions in the record of a call.
fn decisions(world: &World, outcome: &Outcome) -> Vec<(String, Option<String>)> {
    let events = world.entry(outcome).closing.expect("an end").events;
    let egress = events.iter().filter(|event| event["kind"] == "egress");
    egress
        .map(|event| {
            assert_eq!(event["server"], "test");
            let refusal = event["refusal"].as_str().map(str::to_owned);
            (event["host"].as_str().unwrap().to_owned(), refusal)
        })
        .collect()
}

#[tokio::test]
async fn a_server_reaches_the_hosts_it_was_given_and_nothing_else() {
    let lab = Lab::start().await;
    let hosts = format!("hosts = [\"{LISTED}\", \"inside.example.com\"]");
    let world = lab.world(&hosts).await;
    let reached = world.call("test__get", url(LISTED)).await;
    assert_eq!(said(&reached), "the lab greets", "{reached:?}");
    assert_eq!(lab.asked(), 1);
    let mut recorded = decisions(&world, &reached);
    for host in [OTHER, "inside.example.com", "127.0.0.1", "169.254.169.254"] {
        let refused = world.call("test__get", url(host)).await;
        assert_eq!(refused.status, Status::Failed, "{host}: {refused:?}");
        assert!(said(&refused).contains("403"), "{host}: {}", said(&refused));
        recorded.extend(decisions(&world, &refused));
    }
    // Around the proxy there is nothing: neither the lab nor what it could resolve.
    let port = lab.address.port();
    for host in ["127.0.0.1", "93.184.215.14", "localhost"] {
        let dialled = world
            .call("test__dial", json!({"host": host, "port": port}))
            .await;
        assert!(!said(&dialled).contains("greets"), "{host}: {dialled:?}");
        recorded.extend(decisions(&world, &dialled));
    }
    assert_eq!(lab.asked(), 0);
    // What ended after the last answer is on record when the process ends.
    world.engine.servers().restart("test").expect("restarted");
    let again = world.call("test__get", url(LISTED)).await;
    recorded.extend(decisions(&world, &again));
    let refused = |host: &str| {
        let mut all = recorded.iter();
        all.any(|(known, refusal)| known == host && refusal.is_some())
    };
    assert!(
        recorded.contains(&(LISTED.to_owned(), None)),
        "{recorded:?}"
    );
    assert!(refused(OTHER), "{recorded:?}");
    assert!(refused("inside.example.com"), "{recorded:?}");
    world.assert_whole();
}

#[tokio::test]
async fn without_hosts_there_is_no_network_and_with_all_of_it_there_is() {
    let lab = Lab::start().await;
    let port = lab.address.port();
    let dial = json!({"host": "127.0.0.1", "port": port});
    let closed = lab.world("").await;
    let dialled = closed.call("test__dial", dial.clone()).await;
    assert_eq!(dialled.status, Status::Failed, "{dialled:?}");
    assert_eq!(lab.asked(), 0);
    let open = lab.world("network = \"open\"").await;
    let dialled = open.call("test__dial", dial).await;
    assert!(said(&dialled).contains("greets"), "{dialled:?}");
    let level = |world: &World| {
        let tool = world.engine.tool("test__get").expect("a tool");
        let risk = tool.usable.facts.risk.clone();
        let words: Vec<_> = risk.signals.iter().map(|it| it.words.clone()).collect();
        (risk.level.badge(), words.join("; "))
    };
    let some = lab.world(&format!("hosts = [\"{LISTED}\"]")).await;
    let (closed, some, open) = (level(&closed), level(&some), level(&open));
    assert!(!closed.1.contains("network"), "{closed:?}");
    assert!(
        some.1.contains("network: 1 host listed (api.example.com)"),
        "{some:?}"
    );
    assert!(open.1.contains("can reach any host"), "{open:?}");
    assert!(some.0 < open.0, "{some:?} {open:?}");
}

#[tokio::test]
async fn connections_that_no_call_asked_for_leave_a_notice_without_secrets() {
    let lab = Lab::start().await;
    let more = format!("hosts = [\"{LISTED}\"]\nenv = {{ TOKEN = \"${{SERVER_TOKEN}}\" }}");
    let world = lab.world(&more).await;
    // Attack: the secret leaves, or is kept, as the name of a host.
    let urls = [
        format!("http://a-long-secret-value.{OTHER}/"),
        format!("http://{OTHER}/"),
        format!("http://{LISTED}/"),
    ];
    // The server waits for this file, so that none of it happens during the call.
    let go = lab.folder.path.join("go");
    let later = json!({"urls": urls, "after": go.display().to_string()});
    let later = world.call("test__later", later).await;
    assert_eq!(said(&later), "later", "{later:?}");
    std::fs::write(go, "").unwrap();
    until(|| lab.asked.load(Ordering::SeqCst) == 1).await;
    // The next call gets a process of its own; the end of the first one is told.
    world.engine.servers().restart("test").expect("restarted");
    world.call("test__local", json!({})).await;
    let noted = || {
        let audit = world.engine.store().audit();
        let all = audit.notices(&Filter::default()).unwrap();
        let mut all = all.into_iter().map(|entry| entry.notice);
        all.find(|notice| notice.act == Act::ServerConnected)
    };
    until(|| noted().is_some()).await;
    let notice = noted().expect("a notice");
    assert_eq!(decisions(&world, &later), []);
    let shown = format!("{notice:?}");
    assert!(!shown.contains("a-long-secret-value"), "{shown}");
    for host in [format!("***.{OTHER}"), OTHER.to_owned()] {
        let told = format!("{host}:80 host-not-in-allowlist");
        assert!(notice.details.contains_key(&told), "{told}: {shown}");
    }
    let kept = notice.details.get(&format!("{LISTED}:80"));
    let kept = kept.map(String::as_str).unwrap_or_default();
    assert!(kept.starts_with("connected, 1; bytes: "), "{shown}");
    world.assert_whole();
}

/// Waits until something holds, for twenty seconds.
async fn until(mut holds: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(20));
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        ticks.tick().await;
    }
    panic!("it did not come true");
}

/// Programs that share memory with their own children start as well.
#[tokio::test]
async fn a_server_has_shared_memory_and_pairs_of_sockets_of_its_own() {
    let lab = Lab::start().await;
    let world = lab.world("").await;
    let local = world.call("test__local", json!({})).await;
    assert_eq!(said(&local), "7 x", "{local:?}");
}
