//! The process dies at every step of a call. Whoever comes next finds no lost
//! row, the open one closed as crashed, and the chain whole.

use std::process::Command;
use std::sync::{Arc, Mutex};

use engine::call::CallRequest;
use engine::{Engine, Observer};
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use serde_json::json;
use store::Filter;

use crate::world::{self, Home, World, document};

/// Set for the process that is to die.
const HOME: &str = "RINGFENCE_TEST_CRASH_HOME";
const STEP: &str = "RINGFENCE_TEST_CRASH_STEP";

/// The steps of a call that writes files.
const STEPS: [&str; 13] = [
    "opened",
    "registry",
    "access",
    "secrets",
    "masking",
    "requirements",
    "arguments",
    "policy",
    "rules",
    "audit",
    "powers",
    "ran",
    "closed",
];

#[tokio::test]
async fn killed_at_every_step() {
    if let (Ok(home), Ok(step)) = (std::env::var(HOME), std::env::var(STEP)) {
        die(&home, step).await;
    }
    let home = Home::new();
    let world = World::with(home, |_| ());
    let more = json!({"sandboxOverrides": {"fileWrite": true}});
    world.published(&document("tool", "return 1", more)).await;
    for (round, step) in STEPS.into_iter().enumerate() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::killed_at_every_step", "--nocapture"])
            .env(HOME, &world.home.path)
            .env(STEP, step)
            .status()
            .unwrap();
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(status.signal(), Some(9), "{step}");
        // Whoever opens the home next closes what the dead left open.
        let next = Engine::open(world::settings(&world.home.path, &Arc::default())).unwrap();
        let filter = Filter {
            caller: Some("victim".to_owned()),
            ..Filter::default()
        };
        let entries = next.store().audit().list(&filter).unwrap();
        assert_eq!(entries.len(), round + 1, "{step}");
        let expected = if step == "closed" {
            Status::Done
        } else {
            Status::Crashed
        };
        let closing = entries[0].closing.as_ref().expect("closed");
        assert_eq!(closing.status, expected, "{step}");
        let verified = next.store().audit().verify(None).unwrap();
        assert_eq!((verified.broken, verified.open), (None, 0), "{step}");
    }
}

/// Makes one call and is gone in the middle of it.
async fn die(home: &str, step: String) {
    let alarms: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut settings = world::settings(std::path::Path::new(home), &alarms);
    settings.observer = Some(Observer::new(move |seen| {
        if seen == step {
            let this = rustix::process::getpid();
            let _ = rustix::process::kill_process(this, rustix::process::Signal::KILL);
        }
    }));
    let engine = Engine::open(settings).unwrap();
    let caller = Caller::named("victim");
    let request = CallRequest::new(caller, Origin::Mcp, "tool", json!({}));
    let outcome = engine.call(request).await;
    panic!("still alive: {outcome:?}");
}

/// No room for the record: nothing runs, nothing is corrupted, and with room it
/// goes on.
#[tokio::test]
async fn a_full_audit_refuses_calls() {
    let home = Home::new();
    home.file("ringfence.toml", "[audit]\nbytes_max = 1048576\n");
    let world = World::with(home, |_| ());
    let params =
        json!({"params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}]});
    world
        .published(&document("echo", "return text.length", params))
        .await;
    let text = "x".repeat(100_000);
    let mut done = 0;
    let refused = loop {
        let outcome = world.call("echo", json!({"text": text})).await;
        match outcome.status {
            Status::Done => done += 1,
            _ => break outcome,
        }
        assert!(done < 100, "it never fills up");
    };
    assert!(done > 3);
    assert_eq!(world::error(&refused).0, "audit.unavailable");
    assert_eq!(refused.value, None);
    assert!(!world.alarms.lock().unwrap().is_empty());
    world.assert_whole();
}
