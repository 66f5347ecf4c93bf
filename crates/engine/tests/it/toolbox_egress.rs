//! Programs as they are, through the proxy of the jail, on both rungs: curl, git, pip, npm,
//! Python and Node reach hosts that are listed, over TLS that they check themselves, and
//! nothing else. All names lead to a lab on loopback.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use host::fetch::TlsTrust;
use model::record::audit::{Act, Notice};
use sandbox::pool::WorkerProgram;
use serde_json::{Value, json};
use store::Filter;

use crate::catalog_lab::authority_pem;
use crate::toolbox::{events, until};
use crate::toolbox_forge::{FORGE, Forge, MIRROR, OTHER};
use crate::toolbox_remote::settings;
use crate::world::{Home, WITHOUT_NAMESPACES, World, error, worker};

/// On which rung programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    Namespaces,
    Landlock,
}

pub(crate) const RUNGS: [Rung; 2] = [Rung::Namespaces, Rung::Landlock];

impl Rung {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Rung::Namespaces => "namespaces",
            Rung::Landlock => "landlock",
        }
    }

    fn program(self, folder: &Path) -> WorkerProgram {
        let WorkerProgram::Other(program, arguments) = worker() else {
            panic!("a program of the tests");
        };
        match self {
            Rung::Namespaces => WorkerProgram::Other(program, arguments),
            Rung::Landlock => {
                let path = folder.join("without-namespaces");
                let text = WITHOUT_NAMESPACES.replace("@PROGRAM@", program.to_str().unwrap());
                std::fs::write(&path, text).unwrap();
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).unwrap();
                WorkerProgram::Other(path, arguments)
            }
        }
    }
}

/// An engine whose names lead to the lab, and whose programs believe the lab's authority
/// because the operator's `ca_file` has it.
pub(crate) fn world(forge: &Forge, rung: Rung) -> World {
    world_with(forge, rung, "")
}

fn world_with(forge: &Forge, rung: Rung, more: &str) -> World {
    // What this machine has is found out once in a process, with the program of the first
    // engine: not with one that takes namespaces away.
    drop(World::new());
    let home = Home::new();
    home.file("ringfence.toml", &settings(more));
    let file = home.path.join("ca.pem");
    std::fs::write(&file, authority_pem()).unwrap();
    let (wire, program) = (forge.wire(), rung.program(&home.path));
    let workspace = home.path.join("workspace");
    World::with(home, move |settings| {
        let mut powers = engine::powers::PowerSettings::new(workspace);
        powers.trust = TlsTrust::system(Some(file));
        powers.resolver = Arc::clone(&wire) as _;
        powers.connector = wire;
        settings.powers = Some(powers);
        settings.program = program;
    })
}

/// Runs a command line and gives its exit code, what it wrote, and the decisions about its
/// connections as `host verdict`.
async fn shell(world: &World, rung: Rung, line: &str) -> (Value, String, Vec<String>) {
    let arguments = json!({"command": line, "timeout": 60});
    let outcome = world.call("shell", arguments).await;
    let value = outcome.value.clone().unwrap_or_default();
    let events = events(world, &outcome);
    let process = events.iter().find(|event| event["kind"] == "process");
    assert_eq!(process.unwrap()["rung"], rung.name(), "{line}: {events:?}");
    let egress = events.iter().filter(|event| event["kind"] == "egress");
    let decisions = egress.map(|event| {
        let verdict = event["refusal"].as_str().unwrap_or("allowed");
        format!("{} {verdict}", event["host"].as_str().unwrap_or_default())
    });
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let said = text("stdout") + &text("stderr");
    (value["exitCode"].clone(), said, decisions.collect())
}

/// What the lab serves: a text, a package for pip, one for npm.
fn stock(forge: &Forge) {
    let folder = |host: &str| forge.root.join("static").join(host);
    std::fs::create_dir_all(folder(FORGE)).unwrap();
    std::fs::write(folder(FORGE).join("hello"), "hello from the lab").unwrap();
    std::fs::create_dir_all(folder(OTHER)).unwrap();
    std::fs::write(folder(OTHER).join("hello"), "never said").unwrap();
    let script = include_str!("toolbox_egress/packages.py");
    let made = Command::new("/usr/bin/python3")
        .args(["-c", script, MIRROR])
        .arg(folder(MIRROR))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    forge.repository("project", &[("README.md", "hello\n")]);
}

/// Programs as they are. Of each: what must be installed, the line, and what must be said.
fn programs() -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "/usr/bin/curl",
            format!("curl -sS https://{FORGE}/hello"),
            "hello from the lab",
        ),
        (
            "/usr/bin/python3",
            format!(
                "python3 -c 'import urllib.request as r; \
                 print(r.urlopen(\"https://{FORGE}/hello\").read().decode())'"
            ),
            "hello from the lab",
        ),
        (
            "/usr/lib/python3/dist-packages/pip",
            format!(
                "/usr/bin/python3 -c 'from pip._vendor import requests; \
                 print(requests.get(\"https://{FORGE}/hello\").text)'"
            ),
            "hello from the lab",
        ),
        (
            "/usr/bin/git",
            format!("git clone -q https://{FORGE}/project.git && cat project/README.md"),
            "hello",
        ),
        (
            "/usr/lib/python3/dist-packages/pip",
            format!(
                "/usr/bin/python3 -m pip -q install --no-cache-dir --target lib \
                 --index-url https://{MIRROR}/simple labpack \
                 && PYTHONPATH=lib /usr/bin/python3 -c 'import labpack; print(labpack.WORD)'"
            ),
            "packed by the lab",
        ),
        (
            "/usr/bin/node",
            format!("node -e '{}'", NODE.replace("@HOST@", FORGE)),
            "hello from the lab",
        ),
        (
            "/usr/bin/npm",
            format!(
                "npm install --silent --no-audit --no-fund --no-update-notifier \
                 --registry https://{MIRROR}/npm/ labpack && node -p 'require(\"labpack\")'"
            ),
            "packed by the lab",
        ),
    ]
}

/// Node before version 24 has no proxy of its own: the way that every proxy agent for it goes.
const NODE: &str = "
const proxy = new URL(process.env.https_proxy);
const tunnel = require(\"http\").request({host: proxy.hostname, port: proxy.port,
  method: \"CONNECT\", path: \"@HOST@:443\"});
tunnel.on(\"connect\", (answer, socket) => {
  if (answer.statusCode !== 200) { console.log(\"refused\", answer.statusCode); process.exit(1); }
  require(\"https\").get({host: \"@HOST@\", path: \"/hello\", socket, agent: false},
    reply => { reply.pipe(process.stdout); reply.on(\"end\", () => process.exit(0)); });
});
tunnel.end();";

/// The record of `jobStart` is closed before its program connects, so the end of the job tells
/// what became of it: each host, allowed or refused, and what the program used.
#[tokio::test]
async fn the_end_of_a_job_tells_its_connections_and_its_call() {
    let forge = Forge::plain().await;
    stock(&forge);
    for rung in RUNGS {
        let world = world(&forge, rung);
        let command = format!(
            "curl -sS https://{FORGE}/hello; curl -sS https://{FORGE}/hello; \
             curl -sS https://{OTHER}/hello; exit 3"
        );
        let started = world.call("jobStart", json!({"command": command})).await;
        let job = started.value.clone().unwrap()["job"].clone();
        let notice = ended(&world, job.as_str().unwrap()).await;
        let told = |name: &str| notice.details.get(name).map_or("", String::as_str);
        let shown = format!("{rung:?} {notice:?}");
        assert_eq!(
            (told("state"), told("exitCode")),
            ("failed", "3"),
            "{shown}"
        );
        assert_eq!(told("callId"), started.call_id, "{shown}");
        assert_eq!((told("rung"), told("backend")), (rung.name(), "jail"));
        assert!(told("program").ends_with("/sh"), "{shown}");
        assert!(told("cpuMs").parse::<u64>().is_ok(), "{shown}");
        assert_eq!(told("connections"), "3 connections, 1 of them refused");
        let allowed = told(&format!("{FORGE}:443"));
        assert!(allowed.starts_with("connected, 2; bytes: "), "{shown}");
        assert!(!allowed.contains(" 0 in"), "{shown}");
        let refused = told(&format!("{OTHER}:443 host-not-in-allowlist"));
        assert_eq!(refused, "refused, 1", "{shown}");
        world.assert_whole();
    }
}

/// The notice of a job's end.
pub(crate) async fn ended(world: &World, job: &str) -> Notice {
    let mut found = None;
    until("the end of the job is on record", async || {
        let audit = world.engine.store().audit();
        let notices = audit.notices(&Filter::default()).unwrap();
        let mut notices = notices.into_iter().map(|entry| entry.notice);
        let is_end =
            |notice: &Notice| notice.act == Act::JobEnded && notice.about.as_deref() == Some(job);
        found = notices.find(is_end);
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn programs_reach_listed_hosts_unchanged() {
    let forge = Forge::plain().await;
    stock(&forge);
    for rung in RUNGS {
        let world = world(&forge, rung);
        let mut tried = 0;
        for (needs, line, expected) in programs() {
            if !Path::new(needs).exists() {
                continue;
            }
            tried += 1;
            let (code, said, decisions) = shell(&world, rung, &line).await;
            assert!(
                code == 0 && said.contains(expected),
                "{rung:?} {line}\n{code} {said}\n{decisions:?}"
            );
            let allowed = decisions.iter().filter(|one| one.ends_with(" allowed"));
            assert!(allowed.count() >= 1, "{line} {decisions:?}");
        }
        // `cargo xtask setup` installs all but Node and npm.
        assert!(tried >= 5, "{tried} programs are installed");
        let jail = world.engine.load().jail;
        assert!(jail.egress_allowed >= 3, "{jail:?}");
    }
}

#[tokio::test]
async fn a_jail_that_is_required_is_not_replaced_by_a_weaker_one() {
    let forge = Forge::plain().await;
    let required = "[sandbox.jail]\nrequire = \"namespaces\"\n";
    let arguments = json!({"command": "echo it runs"});
    let world = world_with(&forge, Rung::Landlock, required);
    let outcome = world.call("shell", arguments.clone()).await;
    assert_eq!(error(&outcome).0, "jail.unavailable", "{outcome:?}");
    let event = events(&world, &outcome).pop().unwrap_or_default();
    let why = event["refusal"].as_str().unwrap_or_default();
    assert!(why.contains("the settings require them"), "{event}");
    // The control: the same machine without the requirement, and with namespaces.
    for (rung, more) in [(Rung::Landlock, ""), (Rung::Namespaces, required)] {
        let world = world_with(&forge, rung, more);
        let outcome = world.call("shell", arguments.clone()).await;
        let value = outcome.value.clone().unwrap_or_default();
        assert_eq!(value["stdout"], "it runs\n", "{outcome:?}");
    }
}

#[tokio::test]
async fn the_record_of_a_call_names_each_layer_of_its_jail() {
    let forge = Forge::plain().await;
    let world = world(&forge, Rung::Namespaces);
    let outcome = world.call("shell", json!({"command": "true"})).await;
    let facts = world.entry(&outcome).closing.unwrap().tool.unwrap();
    let safety = &facts.tool_safety;
    assert_eq!(safety["runtime"]["id"], "ringfence/jail", "{safety}");
    assert_eq!(safety["jail"]["rung"], "namespaces", "{safety}");
    let up = safety["jail"]["up"].as_array().unwrap();
    for layer in [
        "namespaces",
        "identity",
        "files",
        "signals",
        "network",
        "system_calls",
    ] {
        assert!(up.contains(&json!(layer)), "{layer} {safety}");
    }
    let jail = world.engine.load().jail;
    assert_eq!(jail.standing.unwrap().rung(), "namespaces");
    assert_eq!(jail.standing.unwrap().walls().len(), 14);
}

#[tokio::test]
async fn programs_reach_no_other_host() {
    let forge = Forge::plain().await;
    stock(&forge);
    for rung in RUNGS {
        let world = world(&forge, rung);
        for (needs, line, expected) in programs() {
            if !Path::new(needs).exists() {
                continue;
            }
            let line = line.replace(FORGE, OTHER).replace(MIRROR, OTHER);
            // One try is enough to see it refused.
            let line = line
                .replace("install -", "install --retries 0 -")
                .replace("npm install --retries 0", "npm install --fetch-retries 0");
            let (code, said, decisions) = shell(&world, rung, &line).await;
            assert!(code != 0 && !said.contains(expected), "{line}\n{said}");
            let refused = format!("{OTHER} host-not-in-allowlist");
            assert!(decisions.contains(&refused), "{line} {said} {decisions:?}");
        }
        assert!(world.engine.load().jail.egress_refused >= 5);
        let asked = forge.asked();
        assert!(!asked.iter().any(|one| one.contains(OTHER)), "{asked:?}");
    }
}

/// Listeners of this machine that no program may reach; they count.
struct Neighbours {
    tcp: u16,
    udp: UdpSocket,
    path: PathBuf,
    reached: Arc<AtomicUsize>,
}

impl Neighbours {
    fn new(folder: &Path) -> Neighbours {
        let reached: Arc<AtomicUsize> = Arc::default();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let path = folder.join("socket");
        let local = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let count = Arc::clone(&reached);
        std::thread::spawn(move || {
            for _ in tcp.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let count = Arc::clone(&reached);
        std::thread::spawn(move || {
            for _ in local.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        Neighbours {
            tcp: port,
            udp,
            path,
            reached,
        }
    }

    fn reached(&self) -> usize {
        let mut word = [0; 64];
        let packets = std::iter::from_fn(|| self.udp.recv(&mut word).ok()).count();
        self.reached.swap(0, Ordering::SeqCst) + packets
    }
}

/// Ways around the proxy. Each line prints `reached` if it got through.
fn ways_around(neighbours: &Neighbours) -> Vec<String> {
    let (tcp, path) = (neighbours.tcp, neighbours.path.display());
    let udp = neighbours.udp.local_addr().unwrap().port();
    let forwarder = "import socket, threading, subprocess, sys
inside = socket.socket(); inside.bind((\"127.0.0.1\", 0)); inside.listen()
def carry():
    one, _ = inside.accept()
    out = socket.create_connection((\"127.0.0.1\", int(sys.argv[1])), 5)
    out.sendall(one.recv(1000)); one.sendall(out.recv(1000))
threading.Thread(target=carry, daemon=True).start()
port = inside.getsockname()[1]
sys.exit(subprocess.call([\"curl\", \"-s\", \"-m\", \"5\", f\"http://127.0.0.1:{port}/\", \"--noproxy\", \"*\"]))";
    vec![
        format!("curl -sf -m 5 http://127.0.0.1:{tcp}/ && echo reached"),
        // On the lower rung this speaks to the proxy, whatever address it names.
        format!("curl -s -m 5 --noproxy '*' telnet://127.0.0.1:{tcp} </dev/null"),
        format!("curl -sf -m 5 --noproxy '*' http://127.0.0.1:{tcp}/ && echo reached"),
        format!("curl -sf -m 5 --noproxy '*' http://[::ffff:127.0.0.1]:{tcp}/ && echo reached"),
        format!(
            "env -u http_proxy -u all_proxy curl -sf -m 5 http://localhost:{tcp}/ && echo reached"
        ),
        format!(
            "curl -sf -m 5 --resolve {FORGE}:{tcp}:127.0.0.1 --noproxy '*' http://{FORGE}:{tcp}/ && echo reached"
        ),
        format!("curl -sf -m 5 --socks5 127.0.0.1:3128 http://127.0.0.1:{tcp}/ && echo reached"),
        format!("curl -sf -m 5 --unix-socket {path} http://{FORGE}/ && echo reached"),
        format!("curl -sf -m 5 --proxy 127.0.0.1:{tcp} http://{FORGE}/ && echo reached"),
        format!(
            "curl -sf -m 5 -p --proxy http://127.0.0.1:3128 telnet://127.0.0.1:{tcp} </dev/null && echo reached"
        ),
        format!(
            "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b\"x\", (\"127.0.0.1\", {udp}))'"
        ),
        format!(
            "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{path}\"); print(\"reached\")'"
        ),
        format!("/usr/bin/python3 -c '{forwarder}' {tcp} && echo reached"),
    ]
}

#[tokio::test]
async fn there_is_no_way_around_the_proxy() {
    let forge = Forge::plain().await;
    for rung in RUNGS {
        let world = world(&forge, rung);
        let workspace = world.home.path.join("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        let neighbours = Neighbours::new(&workspace);
        for line in ways_around(&neighbours) {
            let (_, said, decisions) = shell(&world, rung, &line).await;
            assert!(!said.contains("reached"), "{rung:?} {line}\n{said}");
            assert!(
                decisions.iter().all(|one| !one.ends_with(" allowed")),
                "{rung:?} {line} {decisions:?}"
            );
        }
        assert_eq!(neighbours.reached(), 0, "{rung:?}");
        assert_eq!(forge.asked(), [""; 0]);
        // The control: without a jail the same lines reach them.
        for line in ways_around(&neighbours) {
            let mut bare = Command::new("/bin/sh");
            bare.args(["-c", &format!("timeout 1 {line}")])
                .output()
                .unwrap();
        }
        assert!(neighbours.reached() >= 6, "the control");
    }
}
