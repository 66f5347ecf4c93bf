//! The store fails while a script stops, goes on or ends; or what it kept is too old,
//! or not to be read. Nothing that was finished is repeated in silence, the caller
//! reads one sentence, the operator another, and the chain stays whole.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use engine::Observer;
use model::document::digest;
use model::record::audit::Status;
use serde_json::json;
use store::scripts::JournalChange;
use store::{ScriptJournal, Store};

use crate::approvals::runs;
use crate::script::answer;
use crate::script_journal::{SCRIPT, approve, changed, marked, request, run};
use crate::world::{Clockwork, World, document, error};

/// Says what is done the how-many-eth time a step comes.
fn at(step: &'static str, nth: u32, act: impl Fn() + Send + Sync + 'static) -> Observer {
    let seen = AtomicU32::new(0);
    Observer::new(move |now| {
        if now == step && seen.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            act();
        }
    })
}

/// A world whose disk fails from some step on.
async fn failing(step: &'static str, nth: u32, fails: JournalChange) -> World {
    let store: Arc<OnceLock<Store>> = Arc::default();
    let seen = Arc::clone(&store);
    let world = changed("", |settings| {
        settings.observer = Some(at(step, nth, move || {
            seen.get().unwrap().scripts().fail(Some(fails));
        }));
    })
    .await;
    store.set(world.engine.store().clone()).unwrap();
    world
}

fn works_again(world: &World) {
    world.engine.store().scripts().fail(None);
}

/// What the operator was told since the last time.
fn alarms(world: &World) -> Vec<String> {
    std::mem::take(&mut world.alarms.lock().unwrap())
}

fn assert_alarmed(world: &World) {
    let alarms = alarms(world);
    assert!(!alarms.is_empty());
    for alarm in &alarms {
        assert!(
            alarm.starts_with("script journals cannot be saved: "),
            "{alarm}"
        );
    }
}

/// One call, one that a person must approve, one more.
const THREE: &str = "const one = await callTool('marks', { text: 'one' }); \
    const w = await callTool('writer', { text: 'w' }); \
    const two = await callTool('marks', { text: 'two' }, { throwOnError: false }); \
    return [one, w, two.success ? two.data : two.error.code];";

async fn stopped_and_approved(world: &World, script: &str) {
    let stopped = run(world, script).await;
    assert_eq!(error(&stopped).0, "approval.pending");
    approve(&world.engine);
}

#[tokio::test]
async fn a_script_whose_journal_cannot_be_saved_stops_for_good() {
    let world = changed("", |_| ()).await;
    world
        .engine
        .store()
        .scripts()
        .fail(Some(JournalChange::Keep));
    let stopped = run(&world, SCRIPT).await;
    assert_eq!(stopped.status, Status::Refused);
    let (code, words) = error(&stopped);
    assert_eq!(code, "script.journal");
    assert!(
        words.ends_with(
            "it could not be written to disk; the script stopped after 2 finished calls"
        ),
        "{words}"
    );
    assert_alarmed(&world);
    assert_eq!((marked(&world), runs(&world)), (2, 0));
    let closing = world.entry(&stopped).closing.unwrap();
    assert_eq!(closing.error.unwrap().code, "script.journal");
    works_again(&world);
    // Nothing was kept, so this is another run; and it needs a yes of its own.
    let again = run(&world, SCRIPT).await;
    assert_eq!(error(&again).0, "approval.pending");
    assert_eq!((marked(&world), runs(&world)), (4, 0));
    world.assert_whole();
}

#[tokio::test]
async fn a_journal_that_cannot_be_taken_runs_nothing() {
    let world = changed("", |_| ()).await;
    stopped_and_approved(&world, SCRIPT).await;
    world
        .engine
        .store()
        .scripts()
        .fail(Some(JournalChange::Take));
    let refused = run(&world, SCRIPT).await;
    assert_eq!(
        error(&refused),
        (
            "script.journal",
            "the script's journal cannot be read; the script did not run"
        )
    );
    assert_alarmed(&world);
    assert_eq!((marked(&world), runs(&world)), (2, 0));
    works_again(&world);
    let done = run(&world, SCRIPT).await;
    assert_eq!(answer(&done)["status"], "ok");
    assert_eq!((marked(&world), runs(&world)), (2, 1));
    world.assert_whole();
}

#[tokio::test]
async fn a_call_whose_opening_row_fails_does_not_run() {
    // From the moment the answer of the writer is on the disk.
    let world = failing("journaled", 1, JournalChange::Add).await;
    stopped_and_approved(&world, THREE).await;
    let stopped = run(&world, THREE).await;
    let (code, words) = error(&stopped);
    assert_eq!(code, "script.journal");
    assert!(
        words.starts_with("the script stopped before `marks` ran: "),
        "{words}"
    );
    assert_alarmed(&world);
    assert_eq!((marked(&world), runs(&world)), (1, 1));
    world.assert_whole();
    works_again(&world);
    let done = run(&world, THREE).await;
    assert_eq!(answer(&done)["result"], json!(["one", "w", "two"]));
    assert_eq!((marked(&world), runs(&world)), (2, 1));
}

#[tokio::test]
async fn a_call_whose_closing_row_fails_is_not_repeated() {
    // From the moment the second of the marks is about to run.
    let world = failing("begun", 2, JournalChange::Add).await;
    stopped_and_approved(&world, THREE).await;
    let stopped = run(&world, THREE).await;
    let (code, words) = error(&stopped);
    assert_eq!(code, "script.journal");
    assert!(
        words.starts_with("the script stopped after `marks`: "),
        "{words}"
    );
    assert_alarmed(&world);
    assert_eq!((marked(&world), runs(&world)), (2, 1));
    world.assert_whole();
    // It cannot even be said that nobody knows: then nothing runs at all.
    let refused = run(&world, THREE).await;
    assert_eq!(error(&refused).0, "script.journal");
    works_again(&world);
    let done = run(&world, THREE).await;
    assert_eq!(answer(&done)["result"], json!(["one", "w", "EXECUTION"]));
    assert_eq!((marked(&world), runs(&world)), (2, 1));
}

#[tokio::test]
async fn a_script_end_that_cannot_be_saved_is_answered_by_the_next_call() {
    let world = changed("", |_| ()).await;
    stopped_and_approved(&world, THREE).await;
    world
        .engine
        .store()
        .scripts()
        .fail(Some(JournalChange::End));
    let ended = run(&world, THREE).await;
    let (code, words) = error(&ended);
    assert_eq!(code, "script.journal");
    assert!(words.starts_with("the script ended"), "{words}");
    assert_alarmed(&world);
    assert_eq!((marked(&world), runs(&world)), (2, 1));
    works_again(&world);
    let done = run(&world, THREE).await;
    assert_eq!(answer(&done)["result"], json!(["one", "w", "two"]));
    assert_eq!((marked(&world), runs(&world)), (2, 1));
    // And after that it is over.
    let fresh = run(&world, THREE).await;
    assert_eq!(error(&fresh).0, "approval.pending");
    assert_eq!(marked(&world), 3);
    world.assert_whole();
}

#[tokio::test]
async fn a_second_stop_that_cannot_be_saved_keeps_the_first_journal() {
    let script = "const a = await callTool('writer', { text: 'a' }); \
        const m = await callTool('marks', { text: 'm' }); \
        return [a, m, await callTool('writer', { text: 'b' })];";
    let world = changed("", |_| ()).await;
    stopped_and_approved(&world, script).await;
    world
        .engine
        .store()
        .scripts()
        .fail(Some(JournalChange::Keep));
    let stopped = run(&world, script).await;
    assert_eq!(error(&stopped).0, "script.journal");
    assert_alarmed(&world);
    assert_eq!((marked(&world), runs(&world)), (1, 1));
    works_again(&world);
    approve(&world.engine);
    let done = run(&world, script).await;
    assert_eq!(answer(&done)["result"], json!(["a", "m", "b"]));
    assert_eq!((marked(&world), runs(&world)), (1, 2));
    world.assert_whole();
}

#[tokio::test]
async fn a_cancelled_script_resumes_when_called_again() {
    let script = "const w = await callTool('writer', { text: 'w' }); \
        const slow = await callTool('slow', { go: true }, { throwOnError: false }); \
        return [w, slow.error.code, await callTool('marks', { text: 'm' })];";
    let call = request("ann", script);
    let cancel = call.cancel.clone();
    let world = changed("", |settings| {
        settings.observer = Some(at("begun", 2, move || cancel.cancel()));
    })
    .await;
    let slow = document(
        "slow",
        "if (go) for (;;) {} return 1",
        json!({"params": [{"name": "go", "type": "BOOLEAN", "required": false}]}),
    );
    world.published(&slow).await;
    stopped_and_approved(&world, script).await;
    let cancelled = world.made(call).await;
    assert_eq!(cancelled.status, Status::Cancelled);
    assert_eq!((marked(&world), runs(&world)), (0, 1));
    let done = run(&world, script).await;
    assert_eq!(answer(&done)["result"], json!(["w", "EXECUTION", "m"]));
    assert_eq!((marked(&world), runs(&world)), (1, 1));
}

/// Seconds a question can be answered, and then an answer counts.
const EXPIRES: &str = "[approvals]\nexpire_seconds = 600\n";

async fn timed(clock: &Clockwork) -> World {
    let clock = clock.clock();
    changed(EXPIRES, |settings| settings.clock = Some(clock)).await
}

#[tokio::test]
async fn a_late_answer_still_finds_the_journal() {
    let clock = Clockwork::new();
    let world = timed(&clock).await;
    assert_eq!(error(&run(&world, SCRIPT).await).0, "approval.pending");
    clock.pass_ms(599_000);
    approve(&world.engine);
    clock.pass_ms(599_000);
    let done = run(&world, SCRIPT).await;
    assert_eq!(answer(&done)["status"], "ok", "{done:?}");
    assert_eq!((marked(&world), runs(&world)), (2, 1));
}

#[tokio::test]
async fn an_expired_script_starts_over_and_asks_again() {
    let clock = Clockwork::new();
    let world = timed(&clock).await;
    stopped_and_approved(&world, SCRIPT).await;
    clock.pass_ms(1_200_001);
    let fresh = run(&world, SCRIPT).await;
    assert_eq!(error(&fresh).0, "approval.pending");
    // From the beginning; and the old yes counts for nothing.
    assert_eq!((marked(&world), runs(&world)), (4, 0));
    approve(&world.engine);
    let done = run(&world, SCRIPT).await;
    assert_eq!(answer(&done)["status"], "ok", "{done:?}");
    assert_eq!((marked(&world), runs(&world)), (4, 1));
}

#[tokio::test]
async fn an_unreadable_journal_is_refused_once() {
    let world = changed("", |_| ()).await;
    let bound = json!({
        "caller": "ann", "kind": "named", "preset": "secure", "arguments": {"script": SCRIPT},
    });
    let kept = ScriptJournal {
        key: digest::of_value(&bound).unwrap(),
        caller: "ann".to_owned(),
        kept_at_ms: 0,
        expires_at_ms: i64::MAX,
        journal: "{\"form\":0}".to_owned(),
    };
    world.engine.store().scripts().keep(&kept, None).unwrap();
    let refused = run(&world, SCRIPT).await;
    let (code, words) = error(&refused);
    assert_eq!(code, "script.journal");
    assert!(words.contains("cannot be read; nothing ran"), "{words}");
    assert_eq!(marked(&world), 0);
    let fresh = run(&world, SCRIPT).await;
    assert_eq!(error(&fresh).0, "approval.pending");
    assert_eq!(marked(&world), 2);
}
