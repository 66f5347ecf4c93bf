//! The database is stopped in the middle of the load, stays away for a moment, and is started
//! again as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Seen;

/// How long it is away.
const AWAY: Duration = Duration::from_secs(2);

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("ringfence-test-postgres-{}", std::process::id()))
}

/// The number of the server, while it runs.
fn server(data: &Path) -> Option<String> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    Some(text.lines().next()?.to_owned())
}

/// Stops it at this moment, notes how many calls had run, and starts it again. Ends with the
/// process, because the server ends with the thread that starts it.
pub(crate) fn run(seen: &Seen, at: Instant) {
    while Instant::now() < at && !seen.is_over.load(Ordering::SeqCst) {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let data = folder().join("data");
    let pid = server(&data).unwrap();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let words = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    let words = words.map(|word| String::from_utf8(word.to_vec()).unwrap());
    let words: Vec<String> = words.collect();
    let stopped = Command::new("kill").args(["-INT", &pid]).status();
    assert!(stopped.unwrap().success());
    while server(&data).is_some() {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    std::thread::park_timeout(AWAY);
    seen.ran_before_outage
        .store(seen.ran.load(Ordering::SeqCst), Ordering::SeqCst);
    start(&words);
}

/// From a thread that stays: the server dies with it.
fn start(words: &[String]) {
    let mut command = match rustix::process::getuid().is_root() {
        false => Command::new("setpriv"),
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command
        }
    };
    command
        .args(["--pdeathsig", "KILL"])
        .args(words)
        .current_dir(folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::thread::spawn(move || {
        let mut server = command.spawn().unwrap();
        let _ = server.wait();
        loop {
            std::thread::park();
        }
    });
}
