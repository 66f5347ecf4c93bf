//! A program that plays the parent of a jail, for tests. It reads what to start from its
//! standard input and writes what becomes of it as lines of JSON.
//!
//! - `run`: waits for the end, and tells what the child wrote and how it ended;
//! - `hold`: tells the child's process, then waits to be killed.
//!
//! With `without-landlock` or `without-seccomp` as second argument it first takes that away
//! from itself, as an older kernel would.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jail::{JailLimits, JailNetwork, JailSettings, JailedChild, WorkerProgram};
use seccompiler::{SeccompAction, SeccompFilter};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::unix::pipe;

/// Bytes kept of each stream of the child.
const STREAM_BYTES_MAX: usize = 1 << 20;

/// How long a child may run.
const RUN_MAX: Duration = Duration::from_secs(30);

/// What to start.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    command: Vec<String>,
    home: PathBuf,
    environment: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    private: Vec<PathBuf>,
    user_home: Option<PathBuf>,
    network: JailNetwork,
    limits: JailLimits,
    accept_missing: bool,
    input: String,
}

fn main() -> ExitCode {
    if let Some(code) = jail::jail_main() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match play(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = say(&json!({"broken": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}

fn play(arguments: &[&str]) -> io::Result<()> {
    let mut request = String::new();
    io::stdin().read_to_string(&mut request)?;
    let request: Request = serde_json::from_str(&request)?;
    match arguments.get(1) {
        None => {}
        Some(&"without-landlock") => deny(libc::SYS_landlock_create_ruleset)?,
        Some(&"without-seccomp") => deny(libc::SYS_seccomp)?,
        Some(_) => return Err(io::Error::other("unknown argument")),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let input = request.input.clone();
        let child = jail::spawn(settings(request), &WorkerProgram::ThisProgram).await;
        let child = match child {
            Ok(child) => child,
            Err(fault) => return say(&json!({"fault": fault.to_string()})),
        };
        let walls: BTreeMap<&str, &Option<String>> = child
            .walls
            .iter()
            .map(|wall| (wall.layer.name(), &wall.missing))
            .collect();
        say(&json!({"walls": walls, "pid": child.pid()}))?;
        match arguments.first() {
            Some(&"run") => say(&run(child, &input).await),
            Some(&"hold") => std::future::pending().await,
            Some(_) | None => Err(io::Error::other("unknown argument")),
        }
    })
}

fn settings(request: Request) -> JailSettings {
    let mut settings = JailSettings::new(request.command, request.home);
    settings.environment = request.environment;
    settings.folder = request.folder;
    settings.read = request.read;
    settings.write = request.write;
    settings.private = request.private;
    settings.user_home = request.user_home;
    settings.network = request.network;
    settings.limits = request.limits;
    settings.accept_missing = request.accept_missing;
    settings
}

/// As a kernel that does not have the call, or a container that hides it.
fn deny(call: libc::c_long) -> io::Result<()> {
    let filter = SeccompFilter::new(
        BTreeMap::from([(call, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        std::env::consts::ARCH
            .try_into()
            .map_err(io::Error::other)?,
    );
    let program: seccompiler::BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

async fn run(mut child: JailedChild, input: &str) -> Value {
    if let Some(stdin) = child.stdin.take() {
        // Small enough for a pipe.
        let _ = stdin.try_write(input.as_bytes());
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let all = async { tokio::join!(child.wait(), collect(stdout), collect(stderr)) };
    match tokio::time::timeout(RUN_MAX, all).await {
        Ok((exit, stdout, stderr)) => {
            json!({"exit": format!("{exit:?}"), "stdout": stdout, "stderr": stderr})
        }
        Err(_) => json!({"exit": "still running"}),
    }
}

async fn collect(pipe: Option<pipe::Receiver>) -> String {
    let mut all = Vec::new();
    while let Some(pipe) = &pipe {
        if pipe.readable().await.is_err() {
            break;
        }
        let mut chunk = vec![0; 64 << 10];
        match pipe.try_read(&mut chunk) {
            Ok(0) => break,
            Ok(count) if all.len() < STREAM_BYTES_MAX => {
                all.extend_from_slice(chunk.get(..count).unwrap_or_default());
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn say(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}
