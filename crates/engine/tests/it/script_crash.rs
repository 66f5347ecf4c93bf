//! A script that stopped for a person goes on, and its process dies in the middle of
//! that. Whoever goes on next repeats no call that was finished, and makes none again
//! of which nobody knows.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{Engine, Observer};
use serde_json::{Value, json};

use crate::script::answer;
use crate::script_journal::{approve, changed, request, run};
use crate::world::{self, World, error};

/// Set for the process that is to die: where, with what, and when.
const HOME: &str = "RINGFENCE_TEST_GOES_ON_HOME";
const SCRIPT: &str = "RINGFENCE_TEST_GOES_ON_SCRIPT";
const STEP: &str = "RINGFENCE_TEST_GOES_ON_STEP";

/// What the answer says of a call nobody knows about.
const UNKNOWN: &str = "unknown";

/// One call before the stop, and the one it stops at; then two more.
fn script(tag: &str) -> String {
    format!(
        "const told = (came) => came.success ? came.data \
             : came.error.message.includes('not known') ? '{UNKNOWN}' : came.error.code; \
         const mark = async (text) => told(await callTool('marks', {{ text }}, {{ throwOnError: false }})); \
         const one = await mark('{tag}-one'); \
         const w = told(await callTool('writer', {{ text: '{tag}-w' }}, {{ throwOnError: false }})); \
         return [one, w, await mark('{tag}-two'), await mark('{tag}-three')];"
    )
}

/// How often each of the four calls ran.
fn ran(world: &World, tag: &str) -> [usize; 4] {
    let count = |file: &str, name: &str| {
        let path = world.home.path.join("workspace").join(file);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .filter(|line| *line == format!("{tag}-{name}"))
            .count()
    };
    [
        count("marks.txt", "one"),
        count("ran.txt", "w"),
        count("marks.txt", "two"),
        count("marks.txt", "three"),
    ]
}

/// The result in which one call, or none, is of unknown end.
fn expected(tag: &str, unknown: Option<usize>) -> Value {
    let mut result = ["one", "w", "two", "three"].map(|name| json!(format!("{tag}-{name}")));
    if let Some(place) = unknown {
        result[place] = json!(UNKNOWN);
    }
    json!(result)
}

/// Goes on with a script and is gone at some step, the how-many-eth time it comes.
async fn die(home: &str, script: &str, step: &str) {
    let (step, nth) = step.split_once(' ').unwrap();
    let (step, nth) = (step.to_owned(), nth.parse::<u32>().unwrap());
    let seen = AtomicU32::new(0);
    let mut settings = world::settings(Path::new(home), &Arc::default());
    settings.single = false;
    settings.observer = Some(Observer::new(move |now| {
        if now == step && seen.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            let this = rustix::process::getpid();
            let _ = rustix::process::kill_process(this, rustix::process::Signal::KILL);
        }
    }));
    let engine = Engine::open(settings).unwrap();
    let outcome = engine.call(request("ann", script)).await;
    panic!("still alive: {outcome:?}");
}

/// Lets another process go on with the script, and die.
fn killed(world: &World, test: &str, script: &str, step: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(HOME, &world.home.path)
        .env(SCRIPT, script)
        .env(STEP, step)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9), "{step}");
}

async fn dies_here() {
    let set = |name: &str| std::env::var(name).ok();
    if let (Some(home), Some(script), Some(step)) = (set(HOME), set(SCRIPT), set(STEP)) {
        die(&home, &script, &step).await;
    }
}

/// Stops the script at its writer, and says yes to that.
async fn stopped_and_approved(world: &World, script: &str) {
    let stopped = run(world, script).await;
    assert_eq!(error(&stopped).0, "approval.pending");
    approve(&world.engine);
}

#[tokio::test]
async fn killed_at_every_step_of_going_on() {
    dies_here().await;
    let test = "script_crash::killed_at_every_step_of_going_on";
    let world = changed("", |_| ()).await;
    // When it dies, which call is then of unknown end, and whether that one ran.
    let cases = [
        ("begun 1", Some(1), false),
        ("ran 1", Some(1), true),
        ("closed 1", Some(1), true),
        ("journaled 1", None, true),
        ("opened 3", None, true),
        ("begun 2", Some(2), false),
        ("ran 2", Some(2), true),
        ("closed 2", Some(2), true),
        ("journaled 2", None, true),
        ("ran 3", Some(3), true),
        ("journaled 3", None, true),
    ];
    for (step, unknown, did) in cases {
        let tag = step.replace(' ', "");
        let script = script(&tag);
        stopped_and_approved(&world, &script).await;
        killed(&world, test, &script, step);
        let done = run(&world, &script).await;
        let answer = answer(&done);
        assert_eq!(answer["status"], "ok", "{step}: {answer}");
        assert_eq!(answer["result"], expected(&tag, unknown), "{step}");
        let mut each = [1; 4];
        if let (Some(place), false) = (unknown, did) {
            each[place] = 0;
        }
        assert_eq!(ran(&world, &tag), each, "{step}");
    }
    // What the dead left open is closed, and the chain is whole.
    let next = world.beside(|_| ());
    let verified = next.store().audit().verify(None).unwrap();
    assert_eq!((verified.broken, verified.open), (None, 0));
}

/// Before the tool runs nothing is unknown, but the yes is used up.
#[tokio::test]
async fn killed_between_the_yes_and_the_run() {
    dies_here().await;
    let test = "script_crash::killed_between_the_yes_and_the_run";
    let world = changed("", |_| ()).await;
    let script = script("t");
    stopped_and_approved(&world, &script).await;
    killed(&world, test, &script, "agreed 1");
    assert_eq!(ran(&world, "t"), [1, 0, 0, 0]);
    stopped_and_approved(&world, &script).await;
    let done = run(&world, &script).await;
    assert_eq!(answer(&done)["result"], expected("t", None));
    assert_eq!(ran(&world, "t"), [1; 4]);
}

/// The second death finds what the first one left, in the order the script heard it.
#[tokio::test]
async fn killed_twice() {
    dies_here().await;
    let test = "script_crash::killed_twice";
    let world = changed("", |_| ()).await;
    let script = script("t");
    stopped_and_approved(&world, &script).await;
    killed(&world, test, &script, "ran 2");
    // The call nobody knows of is the first step now, the last call the second.
    killed(&world, test, &script, "journaled 2");
    assert_eq!(ran(&world, "t"), [1; 4]);
    let done = run(&world, &script).await;
    assert_eq!(answer(&done)["result"], expected("t", Some(2)));
    assert_eq!(ran(&world, "t"), [1; 4]);
    // It is over: the next one is another.
    let fresh = run(&world, &script).await;
    assert_eq!(error(&fresh).0, "approval.pending");
    assert_eq!(ran(&world, "t"), [2, 1, 1, 1]);
}
