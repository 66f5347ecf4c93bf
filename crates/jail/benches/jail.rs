//! What a jail costs: `/bin/true` in it, against the same program started bare and against
//! bubblewrap with all namespaces, in turn; and a hundred jails at once. `cargo xtask bench
//! jail` runs it. Wall time: most of it is the kernel's work in several processes. The last
//! line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use jail::{JailExit, JailSettings, WorkerProgram};
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
    let rounds = rounds();
    let bwrap = bwrap();
    let (mut bare, mut jailed, mut wrapped) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        bare.push(timed(|| run(&mut Command::new(PROGRAM))));
        let start = Instant::now();
        run_jailed(folder.join("one")).await;
        jailed.push(since(start));
        if let Some(bwrap) = &bwrap {
            wrapped.push(timed(|| run(&mut wrap(bwrap))));
        }
    }
    let start = Instant::now();
    run_crowd(&folder).await;
    let crowd = since(start);
    let _ = std::fs::remove_dir_all(&folder);
    let (bare, jailed) = (median(bare), median(jailed));
    println!("bare {bare:.2} ms, in the jail {jailed:.2} ms, {AT_ONCE} at once {crowd:.0} ms");
    let mut report = json!({
        "bare_ms": bare,
        "jail_ms": jailed,
        "jail_over_bare_ms": jailed - bare,
        "hundred_at_once_ms": crowd,
    });
    if !wrapped.is_empty() {
        let wrapped = median(wrapped);
        println!("bubblewrap {wrapped:.2} ms");
        report["bwrap_ms"] = json!(wrapped);
        report["jail_over_bwrap"] = json!(jailed / wrapped);
    }
    println!("{report}");
    ExitCode::SUCCESS
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

async fn run_jailed(home: PathBuf) {
    let settings = JailSettings::new(vec![PROGRAM.to_owned()], home);
    let child = jail::spawn(settings, &WorkerProgram::ThisProgram).await;
    let exit = child.expect("a jail").wait().await;
    assert_eq!(exit, JailExit::Code(0));
}

async fn run_crowd(folder: &std::path::Path) {
    let mut all = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        all.spawn(run_jailed(folder.join(number.to_string())));
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
fn wrap(bwrap: &std::path::Path) -> Command {
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
