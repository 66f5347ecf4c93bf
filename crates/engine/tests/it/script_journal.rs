//! Scripts that meet an approval and go on: what was finished runs once, whatever
//! happens in between.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use engine::approve::{ApprovalAnswer, ApprovalScope, Listing};
use engine::call::CallRequest;
use engine::{Engine, EngineSettings};
use model::caller::{Caller, Origin};
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::approvals::{WAIT, runs, writer};
use crate::script::answer;
use crate::world::{self, Home, Says, World, document, error};

/// Leaves a line for each run, and asks nobody.
pub(crate) fn marks() -> Value {
    document(
        "marks",
        "safety.fs.appendText('marks.txt', text + '\\n'); return text.repeat(times ?? 1)",
        json!({
            "params": [
                {"name": "text", "type": "STRING", "required": true, "testValue": "t"},
                {"name": "times", "type": "INTEGER", "required": false},
            ],
            "sandboxOverrides": {"fileWrite": true},
        }),
    )
}

/// How often it ran.
pub(crate) fn marked(world: &World) -> usize {
    let path = world.home.path.join("workspace/marks.txt");
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

async fn world_with(settings: &str) -> World {
    changed(settings, |_| ()).await
}

/// The tools of these tests, in an engine that is changed first.
pub(crate) async fn changed(toml: &str, change: impl FnOnce(&mut EngineSettings)) -> World {
    let home = Home::new();
    home.file("ringfence.toml", toml);
    let world = World::with(home, |settings| {
        settings.single = false;
        change(settings);
    });
    world.published(&writer()).await;
    world.published(&marks()).await;
    world
}

pub(crate) fn request(caller: &str, script: &str) -> CallRequest {
    let caller = Caller::named(caller);
    let arguments = json!({"script": script});
    let mut request = CallRequest::new(caller, Origin::Mcp, "codecall_execute", arguments);
    request.session = Some("session-1".to_owned());
    request.approver = Some(Says::new(ApprovalAnswer::Deferred));
    request
}

pub(crate) async fn run(world: &World, script: &str) -> Outcome {
    world.made(request("ann", script)).await
}

/// Approves what waits.
pub(crate) fn approve(engine: &Engine) {
    let inbox = engine.approvals();
    let waiting = inbox.list(Listing::Pending).unwrap();
    assert!(!waiting.is_empty(), "nothing waits");
    for question in waiting {
        inbox
            .approve(&question.id, &Caller::owner(), ApprovalScope::Once, None)
            .unwrap();
    }
}

/// One call that is finished, and one a person must approve. Time and chance go into
/// the arguments, so that going another way would be noticed.
pub(crate) const SCRIPT: &str = "const one = await callTool('marks', { text: 'one' + Math.random() });\n\
    const at = Date.now();\n\
    const two = await callTool('marks', { text: 'two' + Date.now() + one });\n\
    return [one, two, at, await callTool('writer', { text: 'w' + Math.random() + Date.now() })];";

#[tokio::test]
async fn finished_calls_of_a_script_run_once() {
    let world = world_with("").await;
    let stopped = run(&world, SCRIPT).await;
    let (code, words) = error(&stopped);
    assert_eq!(code, "approval.pending");
    assert!(words.contains("stopped at `writer`"), "{words}");
    assert!(
        words.ends_with("; 2 finished calls are kept and not repeated"),
        "{words}"
    );
    assert_eq!((marked(&world), runs(&world)), (2, 0));
    // Nobody has answered: it stops again, and has repeated nothing.
    let again = run(&world, SCRIPT).await;
    assert_eq!(error(&again).0, "approval.pending");
    assert_eq!((marked(&world), runs(&world)), (2, 0));
    approve(&world.engine);
    let done = run(&world, SCRIPT).await;
    assert_eq!(answer(&done)["status"], "ok", "{done:?}");
    assert_eq!((marked(&world), runs(&world)), (2, 1));
    let event = &world.entry(&done).closing.unwrap().events[0];
    assert_eq!(
        (&event["calls"], &event["fromJournal"]),
        (&json!(3), &json!(2))
    );
    // It counted once: the next one begins at the beginning.
    let fresh = run(&world, SCRIPT).await;
    assert_eq!(error(&fresh).0, "approval.pending");
    assert_eq!(marked(&world), 4);
}

#[tokio::test]
async fn concurrent_tools_finish_and_are_kept_when_a_script_stops() {
    let world = world_with("").await;
    let script = "return await parallel(['marks', 'writer', 'marks'], async (tool) => tool === 'writer' \
        ? await callTool('writer', { text: 'w' }) : await callTool('marks', { text: tool }));";
    let stopped = run(&world, script).await;
    assert_eq!(error(&stopped).0, "approval.pending");
    assert_eq!((marked(&world), runs(&world)), (2, 0));
    approve(&world.engine);
    let done = run(&world, script).await;
    assert_eq!(answer(&done)["result"], json!(["marks", "w", "marks"]));
    assert_eq!((marked(&world), runs(&world)), (2, 1));
}

#[tokio::test]
async fn several_questions_are_several_stops() {
    let world = world_with("").await;
    let script = "await callTool('marks', { text: 'm' }); const out = []; \
        for (const text of ['a', 'b', 'c']) out.push(await callTool('writer', { text })); return out;";
    for done in 0..3 {
        let stopped = run(&world, script).await;
        assert_eq!(error(&stopped).0, "approval.pending");
        assert_eq!((marked(&world), runs(&world)), (1, done));
        approve(&world.engine);
    }
    let done = run(&world, script).await;
    assert_eq!(answer(&done)["result"], json!(["a", "b", "c"]));
    assert_eq!((marked(&world), runs(&world)), (1, 3));
}

#[tokio::test]
async fn a_resumed_script_meets_the_declined_approval_where_it_stopped() {
    let world = world_with("").await;
    let script = "const m = await callTool('marks', { text: 'm' }); \
        try { await callTool('writer', { text: 'w' }); } catch (e) { return [m, e.code]; }";
    assert_eq!(error(&run(&world, script).await).0, "approval.pending");
    let inbox = world.engine.approvals();
    let waiting = inbox.list(Listing::Pending).unwrap();
    inbox.deny(&waiting[0].id, &Caller::owner(), None).unwrap();
    let done = run(&world, script).await;
    assert_eq!(answer(&done)["result"], json!(["m", "APPROVAL_DENIED"]));
    assert_eq!((marked(&world), runs(&world)), (1, 0));
}

#[tokio::test]
async fn an_unanswered_approval_stops_the_script() {
    let world = world_with(WAIT).await;
    let script =
        "await callTool('marks', { text: 'm' }); return await callTool('writer', { text: 'w' });";
    let inbox_only = || {
        let mut request = request("ann", script);
        request.approver = None;
        request
    };
    let stopped = world.made(inbox_only()).await;
    assert_eq!(error(&stopped).0, "approval.pending");
    approve(&world.engine);
    let done = world.made(inbox_only()).await;
    assert_eq!(answer(&done)["result"], "w");
    assert_eq!((marked(&world), runs(&world)), (1, 1));
}

#[tokio::test]
async fn a_resumed_script_that_diverges_is_refused() {
    let world = world_with("").await;
    let script = "const tool = getTool('late'); \
        if (tool) { await callTool('marks', { text: 'other' }); } else { await callTool('marks', { text: 'first' }); } \
        return await callTool('writer', { text: 'w' });";
    assert_eq!(error(&run(&world, script).await).0, "approval.pending");
    approve(&world.engine);
    let late = document("late", "return 1", json!({}));
    world.published(&late).await;
    let diverged = run(&world, script).await;
    assert_eq!(error(&diverged).0, "script.diverged");
    assert_eq!((marked(&world), runs(&world)), (1, 0));
    let closing = world.entry(&diverged).closing.unwrap();
    assert_eq!(closing.error.unwrap().code, "script.diverged");
}

#[tokio::test]
async fn another_caller_cannot_resume_a_script() {
    let world = world_with("").await;
    assert_eq!(error(&run(&world, SCRIPT).await).0, "approval.pending");
    assert_eq!(marked(&world), 2);
    approve(&world.engine);
    // Bob's own script begins at the beginning and asks for Bob.
    let other = world.made(request("bob", SCRIPT)).await;
    assert_eq!(error(&other).0, "approval.pending");
    assert_eq!((marked(&world), runs(&world)), (4, 0));
    // Other arguments are another script.
    let spaced = run(&world, &format!("{SCRIPT} ")).await;
    assert_eq!(error(&spaced).0, "approval.pending");
    assert_eq!((marked(&world), runs(&world)), (6, 0));
    let done = run(&world, SCRIPT).await;
    assert_eq!(answer(&done)["status"], "ok");
    assert_eq!((marked(&world), runs(&world)), (6, 1));
}

#[tokio::test]
async fn a_script_that_cannot_be_saved_stops_for_good() {
    let world = world_with("").await;
    let script = "await callTool('marks', { text: 'x', times: 5000000 }); return await callTool('writer', { text: 'w' });";
    let stopped = run(&world, script).await;
    let (code, words) = error(&stopped);
    assert_eq!(code, "script.journal");
    assert!(words.contains("it is too large"), "{words}");
    assert_eq!((marked(&world), runs(&world)), (1, 0));
}

/// Set for the process that is to die.
const HOME: &str = "RINGFENCE_TEST_SCRIPT_HOME";

#[tokio::test]
async fn a_script_survives_the_death_of_its_process() {
    if let Ok(home) = std::env::var(HOME) {
        let mut settings = world::settings(Path::new(&home), &Arc::default());
        settings.single = false;
        let engine = Engine::open(settings).unwrap();
        let stopped = engine.call(request("ann", SCRIPT)).await.into_inner();
        assert_eq!(error(&stopped).0, "approval.pending");
        let this = rustix::process::getpid();
        let _ = rustix::process::kill_process(this, rustix::process::Signal::KILL);
    }
    let world = world_with("").await;
    let test = "script_journal::a_script_survives_the_death_of_its_process";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(HOME, &world.home.path)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
    assert_eq!((marked(&world), runs(&world)), (2, 0));
    approve(&world.engine);
    let done = run(&world, SCRIPT).await;
    assert_eq!(answer(&done)["status"], "ok", "{done:?}");
    assert_eq!((marked(&world), runs(&world)), (2, 1));
}
