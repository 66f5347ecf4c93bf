//! The ways to the same echo: directly, through us, and through proxies of others.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::json;

use crate::server::{ROLE, Server, program};

/// Bounds are not what is measured here.
pub(crate) const SETTINGS: &str = "[exposure]\npreset = \"none\"\n\n[serve]\ncalls_per_minute = 10000000\n\
    sessions_per_caller_max = 1024\ncalls_per_caller_max = 1024\n";

/// What clients call. The echo behind it is a process of its own where the front did not
/// start it, and counts as well.
pub(crate) struct Route {
    pub(crate) front: Server,
}

impl Route {
    pub(crate) fn direct() -> Route {
        Route {
            front: Server::echo(),
        }
    }

    /// A proxy that only passes calls on, with the echo over pipes behind it.
    pub(crate) fn relay() -> Route {
        Route {
            front: Server::relay(),
        }
    }

    /// `ringfence serve`, with the echo at an address behind it.
    pub(crate) fn ringfence() -> Route {
        Route::ringfence_at("bench-bridge", "legacy")
    }

    /// The same, with the newest revision between us and the echo.
    pub(crate) fn ringfence_newest() -> Route {
        Route::ringfence_at("bench-bridge-newest", "modern")
    }

    fn ringfence_at(home: &str, era: &str) -> Route {
        let echo = Server::echo();
        let home = fresh(home);
        let section = format!(
            "\n[[server]]\nname = \"echo\"\nera = \"{era}\"\nurl = \"http://127.0.0.1:{}/mcp\"\nprivate = true\n",
            echo.port
        );
        fs::write(home.join("ringfence.toml"), format!("{SETTINGS}{section}")).unwrap();
        run(&home, &["servers", "accept", "echo", "--yes"]);
        let mut front = serve(home);
        front.tool = "echo__echo".to_owned();
        front.behind = Some(Box::new(echo));
        Route { front }
    }

    /// `ringfence serve`, with the echo over pipes behind it, in its jail.
    pub(crate) fn ringfence_pipes() -> Route {
        let home = fresh("bench-bridge-pipes");
        let settings = format!("{SETTINGS}{}", section("echo", None));
        fs::write(home.join("ringfence.toml"), settings).unwrap();
        run(&home, &["servers", "accept", "echo", "--yes"]);
        let mut front = serve(home);
        front.tool = "echo__echo".to_owned();
        Route { front }
    }

    /// FastMCP's proxy in front of the same echo.
    pub(crate) fn fastmcp() -> Option<Route> {
        let echo = Server::echo();
        let python = peers().join("proxies/bin/python");
        if !python.exists() {
            return None;
        }
        let port = free_port();
        let mut command = Command::new(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/proxy.py"));
        command.args([
            format!("http://127.0.0.1:{}/mcp", echo.port),
            port.to_string(),
        ]);
        let mut front = Server::start_at(&mut command, port);
        front.behind = Some(Box::new(echo));
        Some(Route { front })
    }

    /// `mcp-proxy`, which puts a server over pipes at an address.
    pub(crate) fn mcp_proxy() -> Option<Route> {
        let program = peers().join("proxies/bin/mcp-proxy");
        if !program.exists() {
            return None;
        }
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--pass-environment", "--"]);
        command.arg(env::current_exe().unwrap());
        // It writes a line for every call.
        command.env(ROLE, "stdio").stderr(Stdio::null());
        Some(Route {
            front: Server::start_at(&mut command, port),
        })
    }
}

/// An empty home.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if home.exists() {
        fs::remove_dir_all(&home).unwrap();
    }
    fs::create_dir_all(&home).unwrap();
    home
}

pub(crate) fn ringfence(home: &Path) -> Command {
    let mut command = Command::new(program());
    command.env("RINGFENCE_HOME", home);
    command
}

pub(crate) fn run(home: &Path, words: &[&str]) {
    let output = ringfence(home).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
}

/// Serves a home, as a user does.
pub(crate) fn serve(home: PathBuf) -> Server {
    let mut command = ringfence(&home);
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
    let mut server = Server::start(&mut command);
    let token = fs::read_to_string(home.join("token")).ok();
    server.token = token.map(|token| token.trim().to_owned());
    server.home = Some(home);
    server
}

/// A `[[server]]` that is this program over pipes, with its echo or with so many tools.
pub(crate) fn section(name: &str, tools: Option<usize>) -> String {
    let tools = tools.map(|tools| format!(", BENCH_TOOLS = \"{tools}\""));
    let tools = tools.unwrap_or_default();
    let program = env::current_exe().unwrap();
    let folder = program.parent().unwrap().display().to_string();
    format!(
        "\n[[server]]\nname = \"{name}\"\nera = \"legacy\"\ncommand = [{}]\nread = [{}]\nenv = {{ {ROLE} = \"stdio\"{tools} }}\n",
        json!(program.display().to_string()),
        json!(folder)
    )
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers")
}

/// A port that was free a moment ago: these proxies cannot choose one and tell.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
