//! What the risk of a native tool says is what the jail lets through: for each combination
//! of folder and hosts a probe in the jail tries everything, and what it could do is held
//! against the level and its reasons.

use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;

use model::policy::risk::Level;
use serde_json::{Value, json};

use crate::toolbox::{done, until};
use crate::toolbox_folder::Project;
use crate::toolbox_forge::{FORGE, Forge, OTHER};
use crate::world::{Home, World};

/// Tries everything, and says what it could do.
const PROBE: &str = r#"
import json, os, socket, ssl, sys, urllib.request

def can(attempt):
    try:
        attempt()
        return True
    except Exception:
        return False

def fetch(host):
    context = ssl._create_unverified_context()
    return urllib.request.urlopen(f"https://{host}/probe", timeout=5, context=context).read()

def send_datagram():
    talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    talk.settimeout(1)
    talk.sendto(b"x", ("127.0.0.1", DATAGRAMS))
    talk.recvfrom(10)

print("PROBE " + json.dumps({
    "read": can(lambda: open("seen.txt").read()),
    "write": can(lambda: open("made.txt", "w").write("made")),
    "secrets": can(lambda: open(SECRETS).read()),
    "settings": can(lambda: open(SETTINGS, "w").write("x")),
    "above": can(lambda: open("../planted", "w").write("x")),
    "forge": can(lambda: fetch(FORGE)),
    "other": can(lambda: fetch(OTHER)),
    "loopback": can(lambda: socket.create_connection(("127.0.0.1", STREAMS), 2).recv(1)),
    "address": can(lambda: socket.create_connection(("93.184.215.14", 443), 2).recv(1)),
    "datagram": can(send_datagram),
}))
"#;

/// The folder of a combination.
enum Where {
    Workspace,
    Operators,
}

struct Combination {
    place: Where,
    hosts: &'static [&'static str],
}

const COMBINATIONS: [Combination; 6] = [
    Combination {
        place: Where::Workspace,
        hosts: &[],
    },
    Combination {
        place: Where::Workspace,
        hosts: &[FORGE],
    },
    Combination {
        place: Where::Workspace,
        hosts: &["*"],
    },
    Combination {
        place: Where::Operators,
        hosts: &[],
    },
    Combination {
        place: Where::Operators,
        hosts: &[FORGE],
    },
    Combination {
        place: Where::Operators,
        hosts: &["*"],
    },
];

/// What the probe says after one tool ran it.
async fn probe(world: &World, tool: &str, text: &str) -> Value {
    let shell = format!("python3 - <<'END'\n{text}\nEND\n");
    let printed = match tool {
        "runCode" => {
            let arguments = json!({"language": "python", "code": text});
            done(world, tool, arguments).await["stdout"].clone()
        }
        "shell" => done(world, tool, json!({"command": shell})).await["stdout"].clone(),
        _ => {
            let job = done(world, tool, json!({"command": shell})).await["job"].clone();
            until("the probe is done", async || {
                let row = done(world, "jobStatus", json!({"job": job})).await;
                row["state"] != "running"
            })
            .await;
            done(world, "jobOutput", json!({"job": job})).await["text"].clone()
        }
    };
    let printed = printed.as_str().unwrap_or_default();
    let line = printed.lines().find_map(|line| line.strip_prefix("PROBE "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{tool}: {printed}"))).unwrap()
}

/// The level and the reasons of a tool, the machine's own fence aside.
fn rated(world: &World, tool: &str) -> (Level, Vec<String>) {
    let risk = world.engine.tool(tool).unwrap().usable.facts.risk.clone();
    let signals = risk.signals.iter();
    let signals: Vec<_> = signals
        .filter(|one| !one.words.starts_with("jail:"))
        .collect();
    let level = signals.iter().map(|one| one.level).max();
    let words = signals.iter().map(|one| one.words.clone()).collect();
    (level.unwrap_or(Level::L0), words)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_risk_says_is_what_the_jail_lets_through() {
    // What must not be reached is there: without the fence a connection would come about.
    let streams = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let forge = Forge::start(Box::new(|_, target| {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        (target == "/probe").then(|| reply.to_owned())
    }))
    .await;
    for combination in COMBINATIONS {
        let project = Project::new();
        let folder = match combination.place {
            Where::Workspace => String::new(),
            Where::Operators => format!("folder = \"{}\"\n", project.path.display()),
        };
        let home = Home::new();
        let toml = format!(
            "[toolbox]\nenabled = [\"terminal\", \"code\"]\nhosts = {:?}\n{folder}\
             [[rule]]\nid = \"all\"\neffect = \"allow\"\n\
             [[rule]]\nid = \"no-copy\"\ntools = [\"applyChanges\"]\neffect = \"deny\"\n",
            combination.hosts
        );
        home.file("ringfence.toml", &toml);
        home.secrets("TOKEN=very-secret\n");
        let real: PathBuf = match combination.place {
            Where::Workspace => home.path.join("workspace"),
            Where::Operators => project.path.clone(),
        };
        std::fs::create_dir_all(&real).unwrap();
        let head = format!(
            "SECRETS = {:?}\nSETTINGS = {:?}\nFORGE = {FORGE:?}\nOTHER = {OTHER:?}\nSTREAMS = {}\nDATAGRAMS = {}\n",
            home.path.join("secrets.env").display().to_string(),
            home.path.join("ringfence.toml").display().to_string(),
            streams.local_addr().unwrap().port(),
            datagrams.local_addr().unwrap().port(),
        );
        let text = format!("{head}{PROBE}");
        let world = forge.world_in(home);
        for tool in ["shell", "runCode", "jobStart"] {
            std::fs::write(real.join("seen.txt"), "seen").unwrap();
            let _ = std::fs::remove_file(real.join("made.txt"));
            let told = probe(&world, tool, &text).await;
            let (level, reasons) = rated(&world, tool);
            let shown = format!("{tool} {toml} {told} {level:?} {reasons:?}");
            let says = |start: &str| reasons.iter().any(|reason| reason.starts_with(start));
            assert!(says("programs:"), "{shown}");
            assert_eq!(told["read"], says("files: reads"), "{shown}");
            // What a program may change in the operator's folder comes by another tool.
            let changed = real.join("made.txt").exists();
            assert_eq!(changed, says("files: reads and writes"), "{shown}");
            assert_eq!(told["forge"], says("network:"), "{shown}");
            assert_eq!(
                told["other"],
                says("network: the host list holds `*`"),
                "{shown}"
            );
            // No reason names these, and none is possible.
            for never in ["secrets", "loopback", "address", "datagram"] {
                assert_eq!(told[never], false, "{never}: {shown}");
            }
            // The folders around are the jail's own: what it writes there goes with it.
            let file = std::fs::read_to_string(world.home.path.join("ringfence.toml"));
            assert!(file.unwrap().starts_with(&toml), "{shown}");
            assert!(!real.join("../planted").exists(), "{shown}");
            let wanted = match changed || told["other"] == true {
                true => Level::L4,
                false => Level::L3,
            };
            assert_eq!(level, wanted, "{shown}");
        }
    }
}
