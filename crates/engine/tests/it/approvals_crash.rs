//! The process dies between the steps of an approval. Whoever comes next finds
//! every question, counts no answer that was not written, and uses none twice.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use engine::approve::{ApprovalAnswer, ApprovalScope};
use engine::call::CallRequest;
use engine::{Engine, Observer};
use model::caller::Caller;
use model::govern::approval::ApprovalState;
use model::record::audit::Status;

use crate::approvals::{LONG, all, first_pending, request, runs, world};
use crate::world::{self, Says, World, error};

/// Set for the process that is to die or to race.
const HOME: &str = "RINGFENCE_TEST_APPROVAL_HOME";
const STEP: &str = "RINGFENCE_TEST_APPROVAL_STEP";

fn child(test: &str, home: &Path, step: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(HOME, home)
        .env(STEP, step)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn is_child() -> Option<(String, String)> {
    Some((std::env::var(HOME).ok()?, std::env::var(STEP).ok()?))
}

/// The call of a client that says yes.
fn approving() -> CallRequest {
    let mut call = request("ann", "x");
    call.deadline = Some(LONG);
    call.approver = Some(Says::new(ApprovalAnswer::Approved(ApprovalScope::Once)));
    call
}

/// Makes one call and is gone in the middle of it.
async fn die(home: &str, step: String) {
    let mut settings = world::settings(Path::new(home), &Arc::default());
    settings.observer = Some(Observer::new(move |seen| {
        if seen == step {
            let this = rustix::process::getpid();
            let _ = rustix::process::kill_process(this, rustix::process::Signal::KILL);
        }
    }));
    let engine = Engine::open(settings).unwrap();
    let outcome = engine.call(approving()).await;
    panic!("still alive: {outcome:?}");
}

#[tokio::test]
async fn killed_between_the_steps_of_an_approval() {
    if let Some((home, step)) = is_child() {
        die(&home, step).await;
    }
    // The step, where the question stands after it, and whether a call that comes
    // later may run by the answer.
    let steps = [
        ("rules", None, false),
        ("asked", Some(ApprovalState::Pending), false),
        ("answered", Some(ApprovalState::Approved), true),
        ("agreed", Some(ApprovalState::Used), false),
        ("approval", Some(ApprovalState::Used), false),
        ("audit", Some(ApprovalState::Used), false),
        ("powers", Some(ApprovalState::Used), false),
    ];
    for (step, state, counts) in steps {
        let world = world().await;
        let test = "approvals_crash::killed_between_the_steps_of_an_approval";
        let status = child(test, &world.home.path, step).wait().unwrap();
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(status.signal(), Some(9), "{step}");
        assert_eq!(runs(&world), 0, "{step}");
        let states: Vec<_> = all(&world).iter().map(|row| row.state).collect();
        assert_eq!(states, Vec::from_iter(state), "{step}");
        let later = world.made(request("ann", "x")).await;
        assert_eq!(later.status == Status::Done, counts, "{step}: {later:?}");
        assert_eq!(runs(&world), usize::from(counts), "{step}");
        // Never twice.
        let again = world.made(request("ann", "x")).await;
        assert_eq!(error(&again).0, "approval.pending", "{step}");
        // What waits can still be answered.
        let asked = first_pending(&world).await;
        let inbox = world.engine.approvals();
        inbox
            .approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None)
            .unwrap();
        let done = world.made(request("ann", "x")).await;
        assert_eq!(done.status, Status::Done, "{step}");
        assert_eq!(runs(&world), usize::from(counts) + 1, "{step}");
        assert_crashed(&world, step);
    }
}

/// The call of the dead process is closed as crashed when the home is opened.
fn assert_crashed(world: &World, step: &str) {
    let next = Engine::open(world::settings(&world.home.path, &Arc::default())).unwrap();
    let entries = next
        .store()
        .audit()
        .list(&store::Filter::default())
        .unwrap();
    let crashed = entries.iter().filter(|entry| {
        let closing = entry.closing.as_ref();
        closing.is_some_and(|closing| closing.status == Status::Crashed)
    });
    assert_eq!(crashed.count(), 1, "{step}");
    let verified = next.store().audit().verify(None).unwrap();
    assert_eq!((verified.broken, verified.open), (None, 0), "{step}");
}

/// Processes that start at once and want the one approval there is.
#[tokio::test]
async fn one_of_many_processes_uses_an_approval() {
    if let Some((home, _)) = is_child() {
        let settings = world::settings(Path::new(&home), &Arc::default());
        let engine = Engine::open(settings).unwrap();
        let outcome = engine.call(request("ann", "x")).await.into_inner();
        assert!(
            outcome.status == Status::Done || error(&outcome).0 == "approval.pending",
            "{outcome:?}"
        );
        return;
    }
    let world = world().await;
    for round in 1..=3 {
        world.made(request("ann", "x")).await;
        let asked = first_pending(&world).await;
        let inbox = world.engine.approvals();
        inbox
            .approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None)
            .unwrap();
        let test = "approvals_crash::one_of_many_processes_uses_an_approval";
        let children: Vec<_> = (0..4)
            .map(|_| child(test, &world.home.path, "race"))
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(runs(&world), round);
        assert_eq!(inbox.find(&asked.id).unwrap().uses, 1);
        // Clears the question the losers left.
        let left = first_pending(&world).await;
        inbox.deny(&left.id, &Caller::owner(), None).unwrap();
        let told = world.made(request("ann", "x")).await;
        assert_eq!(error(&told).0, "approval.declined");
    }
}
