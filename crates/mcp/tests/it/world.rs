//! A home of its own for every test, an engine on it, and a door in front.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use engine::{Alarm, AuditEntry, Engine, EngineSettings, Filter, WorkerProgram};
use mcp::auth::{Principal, PrincipalId};
use mcp::{Door, Shutdown, http, stdio};
use model::Environment;
use model::caller::{Caller, Origin};
use model::govern::key::Role;
use model::record::audit::Status;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::{Http, Pipe};

/// The header that says who calls: the authentication of these tests.
pub(crate) const CALLER: &str = "x-test-caller";

/// The clients that may answer for a person.
pub(crate) const NAMED: &str =
    "\n[callers.ann]\nanswers = \"L5\"\n\n[callers.stdio]\nanswers = \"L5\"\n";

/// A folder that goes with the test.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Home {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfence-mcp-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tools")).unwrap();
        Home { path }
    }

    /// Writes a file. Settings that say nothing of callers name the clients of these
    /// tests: one that is not named answers nothing.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let is_silent = name == "ringfence.toml" && !text.contains("[callers");
        let clients = if is_silent { NAMED } else { "" };
        // As editors do, so that no reader sees half a file.
        let new = self.path.join(format!("{name}.new"));
        std::fs::write(&new, format!("{text}{clients}")).unwrap();
        std::fs::rename(new, self.path.join(name)).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// An engine and its door. Bundled tools are not exposed unless the settings say
/// so.
pub(crate) struct World {
    pub(crate) door: Door,
    pub(crate) alarms: Arc<Mutex<Vec<String>>>,
    pub(crate) home: Arc<Home>,
}

/// A server on loopback.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: Shutdown,
    pub(crate) ended: JoinHandle<()>,
}

pub(crate) fn document(name: &str, code: &str, more: Value) -> Value {
    let mut document = json!({
        "name": name, "description": "For a test.", "code": code, "codeType": "Javascript",
    });
    let (Value::Object(members), Value::Object(more)) = (&mut document, more) else {
        panic!("objects");
    };
    members.extend(more);
    document
}

/// A tool that returns its one argument.
pub(crate) fn echo() -> Value {
    let params = json!([
        {"name": "text", "description": "What to say", "type": "STRING", "required": true, "testValue": "t"},
    ]);
    document("echo", "return text", json!({"params": params}))
}

fn opened(home: &Path, alarms: &Arc<Mutex<Vec<String>>>) -> Door {
    let raised = Arc::clone(alarms);
    let alarm = Alarm::new(move |sentence| raised.lock().unwrap().push(sentence.to_owned()));
    let mut settings = EngineSettings::new(home.to_owned(), Environment::empty(), alarm);
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_mcp-test-worker"));
    settings.program = WorkerProgram::Other(worker, Vec::new());
    let engine = Engine::open(settings).unwrap();
    Door::open(Arc::new(engine)).unwrap()
}

impl World {
    /// With `echo` published.
    pub(crate) async fn new() -> World {
        World::with("").await
    }

    /// With these settings, and `echo` published.
    pub(crate) async fn with(settings: &str) -> World {
        let home = Home::new();
        home.file(
            "ringfence.toml",
            &format!("[exposure]\npreset = \"none\"\n{settings}"),
        );
        let alarms: Arc<Mutex<Vec<String>>> = Arc::default();
        let door = opened(&home.path, &alarms);
        let home = Arc::new(home);
        let world = World { door, alarms, home };
        world.publish(&echo()).await;
        world
    }

    /// The same home, opened by another process.
    pub(crate) fn reopened(&self) -> World {
        World {
            door: opened(&self.home.path, &self.alarms),
            alarms: Arc::clone(&self.alarms),
            home: Arc::clone(&self.home),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.door.engine()
    }

    /// Writes a tool and publishes it.
    pub(crate) async fn publish(&self, document: &Value) {
        let name = document["name"].as_str().unwrap();
        self.write(document);
        let usable = self.engine().tool(name).unwrap().usable;
        let needs = self.engine().wants(&usable, None).needs;
        let consent = engine::consent::Consent::Flag;
        let agreed = self.engine().consent(&usable, None, &needs, consent);
        agreed.unwrap();
        let passed = self.engine().publish(name, Origin::Cli).await.unwrap();
        assert!(passed.ok, "{passed:?} {:?}", self.alarms);
    }

    pub(crate) fn write(&self, document: &Value) {
        let name = document["name"].as_str().unwrap();
        let stem: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(40)
            .collect();
        self.home
            .file(&format!("tools/{stem}.json"), &document.to_string());
    }

    /// Serves over HTTP. Requests say themselves who they are from; `ann` if they
    /// do not.
    pub(crate) async fn serve(&self) -> Server {
        self.serve_within(|_| {}).await
    }

    /// The same, within other bounds.
    pub(crate) async fn serve_within(&self, change: impl FnOnce(&mut http::HttpBounds)) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let config = &self.door.engine().registry().current().config;
        let mut bounds = http::HttpBounds::of(&config.serve);
        change(&mut bounds);
        let door = self.door.clone();
        let serving = http::serve(door, listener, bounds, guard, shutdown.clone());
        let ended = tokio::spawn(async move { serving.await.unwrap() });
        Server {
            address,
            shutdown,
            ended,
        }
    }

    /// Serves over pipes.
    pub(crate) fn pipe(&self) -> (Pipe, JoinHandle<()>, Shutdown) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let shutdown = Shutdown::default();
        let serving = stdio::serve_pipes(self.door.clone(), read, write, shutdown.clone());
        (Pipe::new(ours), tokio::spawn(serving), shutdown)
    }

    /// The newest attempt at a tool that has ended. Waits for it.
    pub(crate) async fn ended(&self, tool: &str) -> AuditEntry {
        let filter = Filter {
            tool: Some(tool.to_owned()),
            ..Filter::default()
        };
        loop {
            let entries = self.engine().store().audit().list(&filter).unwrap();
            match entries.into_iter().next() {
                Some(entry) if entry.closing.is_some() && entry.opening.origin == Origin::Mcp => {
                    return entry;
                }
                _ => tokio::task::yield_now().await,
            }
        }
    }

    pub(crate) async fn ended_as(&self, tool: &str, status: Status) {
        let entry = self.ended(tool).await;
        assert_eq!(entry.closing.unwrap().status, status);
    }
}

impl Server {
    pub(crate) async fn client(&self) -> Http {
        Http::connect(self.address).await
    }

    /// Ends the server and waits for it.
    pub(crate) async fn end(self) {
        self.shutdown.soft.cancel();
        self.ended.await.unwrap();
    }
}

fn guard(routes: http::Routes) -> Router {
    let protocol = routes.protocol.layer(middleware::from_fn(named));
    protocol.merge(routes.probes)
}

async fn named(mut request: Request, next: Next) -> Response {
    let name = request.headers().get(CALLER);
    let name = name.map_or("ann", |name| name.to_str().unwrap()).to_owned();
    let caller = Caller::named(name);
    request.extensions_mut().insert(Principal {
        id: PrincipalId::key(&caller.name),
        caller,
        role: Role::Agent,
        scopes: Arc::default(),
    });
    next.run(request).await
}
