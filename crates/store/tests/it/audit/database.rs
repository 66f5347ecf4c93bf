//! A real Postgres for this test program: in a folder of its own, as a user who is not
//! root, on a socket of files. Every test has a database of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The user of the server if we are root: Postgres refuses to run as root.
const NOBODY: &str = "65534";
/// Short, because the path of a socket is bounded.
const FOLDER: &str = "rf-ship-";

/// The address of a new database.
pub(crate) fn new_database() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let folder = server();
    let name = format!("ship_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    run_sql("postgres", &format!("CREATE DATABASE {name}"));
    let host = folder.display().to_string().replace('/', "%2F");
    format!("postgres://ring@{host}/{name}")
}

/// Runs a statement past the store; prints nothing but values.
pub(crate) fn run_sql(database: &str, sql: &str) -> String {
    let database = database.rsplit('/').next().unwrap();
    let done = Command::new(programs().join("psql"))
        .args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "ring",
            "-h",
        ])
        .arg(server())
        .args(["-d", database, "-c", sql])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{sql}: {said}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn server() -> &'static Path {
    static SERVER: OnceLock<PathBuf> = OnceLock::new();
    SERVER.get_or_init(start)
}

fn programs() -> PathBuf {
    let folder = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<PathBuf> = folder
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    versions.sort();
    let found = versions
        .into_iter()
        .rfind(|bin| bin.join("initdb").exists());
    found.unwrap_or_else(|| panic!("no Postgres; `cargo xtask setup` installs it"))
}

/// A command of Postgres, as the server's user. It ends with the thread that starts it.
fn command(program: &Path) -> Command {
    if !rustix::process::getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let user = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    command
        .args(user)
        .args(["--pdeathsig", "KILL"])
        .arg(program);
    command
}

fn start() -> PathBuf {
    let parent = std::env::temp_dir();
    for entry in fs::read_dir(&parent).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(FOLDER);
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
    let folder = parent.join(format!("{FOLDER}{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    if rustix::process::getuid().is_root() {
        let owned = Command::new("chown").arg(NOBODY).arg(&folder).status();
        assert!(owned.unwrap().success());
    }
    let data = folder.join("data");
    let made = command(&programs().join("initdb"))
        .current_dir(&folder)
        .arg("-D")
        .arg(&data)
        .args([
            "-U",
            "ring",
            "--auth=trust",
            "--no-locale",
            "-E",
            "UTF8",
            "-N",
        ])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    serve(&folder, &data);
    folder
}

/// Starts the server and waits until it takes connections.
fn serve(folder: &Path, data: &Path) {
    let mut server = command(&programs().join("postgres"));
    server
        .current_dir(folder)
        .arg("-D")
        .arg(data)
        .arg("-k")
        .arg(folder)
        .args([
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "max_connections=60",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The signal at the parent's death is sent when the thread that started the child ends.
    thread::spawn(move || {
        let mut child = server.spawn().unwrap();
        drop(child.wait());
        loop {
            thread::park();
        }
    });
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        let ready = Command::new(programs().join("pg_isready"))
            .args(["-q", "-h"])
            .arg(folder)
            .status();
        if ready.is_ok_and(|ready| ready.success()) {
            return;
        }
        thread::yield_now();
    }
    panic!("Postgres does not start");
}
