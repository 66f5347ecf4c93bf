//! A program that plays the parent of a jail, for tests. It reads what to start from its
//! standard input and writes what becomes of it as lines of JSON.
//!
//! - `run`: waits for the end, and tells what the child wrote and how it ended;
//! - `ready`: as `run`, by a supervisor that was ready, because `true` was started before;
//! - `wait`: starts `true`, tells which supervisor is ready then, and waits to be killed;
//! - `many`: starts `true` fifty times, and tells what stays of it;
//! - `hold`: tells the child's process, then waits to be killed;
//! - `group FOLDER`: starts nothing; a copy of it begins in that control group, and tells where
//!   it is.
//!
//! With `without-landlock`, `without-seccomp` or `without-namespaces` as second argument it
//! first takes that away from itself, as an older kernel or a container would.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jail::{
    JailEgress, JailLimits, JailNetwork, JailOverlay, JailRung, JailSettings, JailStarter,
    JailedChild, WorkerProgram,
};
use sandbox::walls::system;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
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
    workspaces: Vec<PathBuf>,
    overlays: Vec<JailOverlay>,
    private: Vec<PathBuf>,
    user_home: Option<PathBuf>,
    network: JailNetwork,
    limits: JailLimits,
    require: JailRung,
    accept_missing: bool,
    input: String,
}

fn main() -> ExitCode {
    if let Some(code) = jail::jail_main() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let played = match arguments.as_slice() {
        ["group", folder] => begin_in_group(folder),
        arguments => play(arguments),
    };
    match played {
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
        Some(&"without-namespaces") => deny_namespaces()?,
        Some(_) => return Err(io::Error::other("unknown argument")),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let input = request.input.clone();
        let starter = JailStarter::new(WorkerProgram::ThisProgram);
        match arguments.first() {
            Some(&"ready") => drop(make_ready(&starter, &request.home).await?),
            Some(&"wait") => {
                let ready = make_ready(&starter, &request.home).await?;
                say(&json!({"ready": ready}))?;
                return std::future::pending().await;
            }
            Some(&"many") => return say(&start_many(starter, &request.home).await?),
            Some(_) | None => {}
        }
        let mut child = match starter.spawn(settings(request)).await {
            Ok(child) => child,
            Err(fault) => return say(&json!({"fault": fault.to_string()})),
        };
        let walls: BTreeMap<&str, &Option<String>> = child
            .walls
            .iter()
            .map(|wall| (wall.layer.name(), &wall.missing))
            .collect();
        let rung = child.rung.name();
        say(&json!({"walls": walls, "pid": child.pid(), "rung": rung}))?;
        if let Some(egress) = child.egress.take() {
            tokio::spawn(answer(egress));
        }
        match arguments.first() {
            Some(&("run" | "ready")) => say(&run(child, &input).await),
            Some(&"hold") => std::future::pending().await,
            Some(_) | None => Err(io::Error::other("unknown argument")),
        }
    })
}

/// Starts a child, and waits until a supervisor is ready for the next: its process.
async fn make_ready(starter: &JailStarter, home: &Path) -> io::Result<u32> {
    let mut settings = JailSettings::new(vec!["true".to_owned()], home.to_path_buf());
    settings.accept_missing = true;
    let child = starter.spawn(settings).await;
    child.map_err(io::Error::other)?.wait().await;
    loop {
        if let Some(ready) = starter.ready_pid() {
            return Ok(ready);
        }
        tokio::task::yield_now().await;
    }
}

/// Descriptors of this process before and after many starts, and its children after them, with
/// the starter and without.
async fn start_many(starter: JailStarter, home: &Path) -> io::Result<Value> {
    let mut ready = make_ready(&starter, home).await?;
    let before = settled(1).await?;
    for _ in 0..50 {
        let next = make_ready(&starter, home).await?;
        if std::mem::replace(&mut ready, next) == next {
            return Err(io::Error::other("a supervisor was used twice"));
        }
    }
    let after = settled(1).await?;
    let children = own_children()?;
    drop(starter);
    settled(0).await?;
    let children = [children, own_children()?];
    Ok(json!({"descriptors_before": before, "descriptors_after": after, "children": children}))
}

/// Waits until there are so few children, or long enough; how many descriptors there are.
async fn settled(children: usize) -> io::Result<usize> {
    let until = Instant::now() + RUN_MAX;
    while own_children()? > children && Instant::now() < until {
        tokio::task::yield_now().await;
    }
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

fn own_children() -> io::Result<usize> {
    let mut count = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread may have ended meanwhile; its children are another's then.
        let children = std::fs::read_to_string(thread?.path().join("children"));
        count += children.unwrap_or_default().split_whitespace().count();
    }
    Ok(count)
}

fn begin_in_group(folder: &str) -> io::Result<()> {
    let folder = std::fs::File::open(folder)?;
    let (child, has_begun) = system::fork_into(system::NEW_USERS, Some(folder.as_fd()))?;
    match child {
        None => {
            let groups = std::fs::read_to_string("/proc/self/cgroup")?;
            say(&json!({"groups": groups, "begun": has_begun}))?;
            system::exit_now(0)
        }
        Some(child) => {
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())?;
            Ok(())
        }
    }
}

fn settings(request: Request) -> JailSettings {
    let mut settings = JailSettings::new(request.command, request.home);
    settings.environment = request.environment;
    settings.folder = request.folder;
    settings.read = request.read;
    settings.write = request.write;
    settings.workspaces = request.workspaces;
    settings.overlays = request.overlays;
    settings.require = request.require;
    settings.private = request.private;
    settings.user_home = request.user_home;
    settings.network = request.network;
    settings.limits = request.limits;
    settings.accept_missing = request.accept_missing;
    settings
}

/// A proxy that reaches nothing: it answers with the first line it hears.
async fn answer(mut egress: JailEgress) {
    while let Ok(stream) = egress.accept().await {
        tokio::spawn(async move {
            let mut heard = Vec::new();
            while !heard.contains(&b'\n') && stream.readable().await.is_ok() {
                let mut chunk = [0; 1024];
                match stream.try_read(&mut chunk) {
                    Ok(0) => return,
                    Ok(count) => heard.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
            let heard = String::from_utf8_lossy(&heard);
            let line = heard.lines().next().unwrap_or_default();
            let length = line.len();
            let reply = format!(
                "HTTP/1.1 403 Forbidden\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{line}"
            );
            // Small enough for one piece.
            let _ = stream.writable().await;
            let _ = stream.try_write(reply.as_bytes());
        });
    }
}

/// As the default filter of Docker: no new namespaces, and `clone3`, whose flags a filter
/// does not see, seems not to exist.
fn deny_namespaces() -> io::Result<()> {
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let flags = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET];
    let mut clone = Vec::new();
    for flag in flags.map(|flag| u64::from(flag.unsigned_abs())) {
        let equal = SeccompCmpOp::MaskedEq(flag);
        let flag = SeccompCondition::new(0, SeccompCmpArgLen::Dword, equal, flag);
        let rule = flag.and_then(|flag| SeccompRule::new(vec![flag]));
        clone.push(rule.map_err(io::Error::other)?);
    }
    let calls = [
        (libc::SYS_clone, clone),
        (libc::SYS_unshare, Vec::new()),
        (libc::SYS_setns, Vec::new()),
        (libc::SYS_mount, Vec::new()),
    ];
    apply(BTreeMap::from(calls), refused)?;
    deny(libc::SYS_clone3)
}

/// As a kernel that does not have the call, or a container that hides it.
fn deny(call: libc::c_long) -> io::Result<()> {
    let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    apply(BTreeMap::from([(call, Vec::new())]), absent)
}

fn apply(calls: BTreeMap<libc::c_long, Vec<SeccompRule>>, action: SeccompAction) -> io::Result<()> {
    let machine = std::env::consts::ARCH
        .try_into()
        .map_err(io::Error::other)?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, machine);
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
