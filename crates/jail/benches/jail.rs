//! What a jail costs: `/bin/true` in it, against the same program started bare and against
//! bubblewrap with all namespaces, in turn; and a hundred jails at once. `cargo xtask bench
//! jail` runs it. Wall time: most of it is the kernel's work in several processes. The last
//! line is one JSON object.
//!
//! A jail is started as the engine does it: by a supervisor that was made ready after the start
//! before. That work is not in the time of a start; it is in that of starts in a row
//! (`jail_in_a_row_ms`). `jail_new_ms` is a start whose supervisor was not ready.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use jail::{JailExit, JailSettings, JailStarter, WorkerProgram};
use serde_json::json;

const ROUNDS: usize = 200;
const AT_ONCE: usize = 100;
const PROGRAM: &str = "/bin/true";

/// Where `cargo xtask bench jail` unpacks Debian's bubblewrap if the system has none.
const UNPACKED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/peers/bubblewrap/usr/bin/bwrap"
);

fn main() -> ExitCode {
    // This program is also the supervisor of its own children.
    if let Some(code) = jail::jail_main() {
        return code;
    }
    // `cargo test` runs every bench once, with this.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    // In a task, as in a server: its thread also hears what the kernel has to say.
    let measured = runtime.block_on(async { tokio::spawn(measure()).await });
    measured.unwrap()
}

async fn measure() -> ExitCode {
    let folder = std::env::temp_dir().join(format!("ringfence-bench-{}", std::process::id()));
    let starter = JailStarter::new(WorkerProgram::ThisProgram);
    let home = folder.join("one");
    run_jailed(&starter, home.clone()).await;
    let times = run_in_turn(&starter, &home, bwrap().as_deref()).await;
    let mut in_a_row = Vec::new();
    for _ in 0..rounds() {
        let start = Instant::now();
        run_jailed(&starter, home.clone()).await;
        in_a_row.push(since(start));
    }
    let start = Instant::now();
    run_crowd(&starter, &folder).await;
    let crowd = since(start);
    let _ = std::fs::remove_dir_all(&folder);
    let (bare, jailed) = (median(times.bare), median(times.jailed));
    let (new, in_a_row) = (median(times.new), median(in_a_row));
    println!("bare {bare:.2} ms, in the jail {jailed:.2} ms, {AT_ONCE} at once {crowd:.0} ms");
    println!("in a row {in_a_row:.2} ms, by a new supervisor {new:.2} ms");
    let mut report = json!({
        "bare_ms": bare,
        "jail_ms": jailed,
        "jail_over_bare_ms": jailed - bare,
        "jail_in_a_row_ms": in_a_row,
        "jail_new_ms": new,
        "hundred_at_once_ms": crowd,
    });
    if !times.wrapped.is_empty() {
        let wrapped = median(times.wrapped);
        println!("bubblewrap {wrapped:.2} ms");
        report["bwrap_ms"] = json!(wrapped);
        report["jail_over_bwrap"] = json!(jailed / wrapped);
        report["jail_new_over_bwrap"] = json!(new / wrapped);
    }
    println!("{report}");
    ExitCode::SUCCESS
}

/// Milliseconds of each kind of start.
#[derive(Default)]
struct Times {
    bare: Vec<f64>,
    jailed: Vec<f64>,
    new: Vec<f64>,
    wrapped: Vec<f64>,
}

async fn run_in_turn(starter: &JailStarter, home: &Path, bwrap: Option<&Path>) -> Times {
    let mut times = Times::default();
    for _ in 0..rounds() {
        // Nothing is measured beside the start of the next supervisor.
        until_ready(starter).await;
        times.bare.push(timed(|| run(&mut Command::new(PROGRAM))));
        let start = Instant::now();
        run_jailed(starter, home.to_path_buf()).await;
        times.jailed.push(since(start));
        until_ready(starter).await;
        let start = Instant::now();
        run_jailed_by_new(home.to_path_buf()).await;
        times.new.push(since(start));
        if let Some(bwrap) = bwrap {
            times.wrapped.push(timed(|| run(&mut wrap(bwrap))));
        }
    }
    times
}

/// How many, or fewer for a quick look: `RINGFENCE_BENCH_ROUNDS=5`.
fn rounds() -> usize {
    let asked = std::env::var("RINGFENCE_BENCH_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Milliseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    since(start)
}

fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1_000.0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn run(command: &mut Command) {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(quiet.status().unwrap().success(), "{command:?}");
}

async fn run_jailed(starter: &JailStarter, home: PathBuf) {
    let settings = JailSettings::new(vec![PROGRAM.to_owned()], home);
    let child = starter.spawn(settings).await;
    let exit = child.expect("a jail").wait().await;
    assert_eq!(exit, JailExit::Code(0));
}

async fn run_jailed_by_new(home: PathBuf) {
    let settings = JailSettings::new(vec![PROGRAM.to_owned()], home);
    let child = jail::spawn(settings, &WorkerProgram::ThisProgram).await;
    let exit = child.expect("a jail").wait().await;
    assert_eq!(exit, JailExit::Code(0));
}

/// Until a supervisor is ready, and is done with its own start: it sleeps.
async fn until_ready(starter: &JailStarter) {
    loop {
        let ready = starter.ready_pid();
        let stat = ready.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        if stat.is_some_and(|stat| stat.contains(") S ")) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn run_crowd(starter: &JailStarter, folder: &Path) {
    let mut all = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        let (starter, home) = (starter.clone(), folder.join(number.to_string()));
        all.spawn(async move { run_jailed(&starter, home).await });
    }
    let limit = tokio::time::timeout(Duration::from_secs(60), async {
        while let Some(ended) = all.join_next().await {
            ended.unwrap();
        }
    });
    assert!(limit.await.is_ok(), "{AT_ONCE} jails did not end");
}

fn bwrap() -> Option<PathBuf> {
    let places = [PathBuf::from("/usr/bin/bwrap"), PathBuf::from(UNPACKED)];
    let found = places.into_iter().find(|path| path.exists());
    found.filter(|path| {
        let tried = wrap(path).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// The same fence, as far as bubblewrap has it: all namespaces, a root of its own, `/proc`.
fn wrap(bwrap: &Path) -> Command {
    let mut command = Command::new(bwrap);
    command.args(["--unshare-all", "--unshare-user", "--die-with-parent"]);
    command.args(["--new-session", "--cap-drop", "ALL", "--clearenv"]);
    command.args(["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]);
    for name in ["bin", "lib", "lib64"] {
        let usr = format!("usr/{name}");
        command.args(["--symlink", &usr, &format!("/{name}")]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    command.arg(PROGRAM);
    command
}
