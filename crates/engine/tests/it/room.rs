//! The room of the audit: what the settings say now, who is told in time, and what a
//! probe hears when there is none.

use std::time::Duration;

use model::record::audit::Status;
use serde_json::{Value, json};

use crate::world::{Home, World, document};

const LONG: Duration = Duration::from_secs(60);
const MIB: usize = 1 << 20;

fn filled(bytes_max: usize, more: &str) -> String {
    format!("[audit]\nbytes_max = {bytes_max}\n{more}")
}

/// Calls until one is refused, at most so many.
async fn fill(world: &World, calls_max: usize) -> Option<String> {
    let text = "x".repeat(60_000);
    for _ in 0..calls_max {
        let outcome = world.call("tool", json!({"text": text})).await;
        if outcome.status != Status::Done {
            return outcome.error.map(|error| error.reason.code().to_owned());
        }
    }
    None
}

async fn world(settings: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", settings);
    let world = World::with(home, |_| ());
    let params: Value =
        json!([{"name": "text", "type": "STRING", "required": true, "testValue": "a"}]);
    let tool = document("tool", "return text.length", json!({"params": params}));
    world.published(&tool).await;
    world
}

#[tokio::test]
async fn a_full_audit_is_not_ready_and_another_size_is_in_force_at_once() {
    let world = world(&filled(8 * MIB, "")).await;
    assert_eq!(world.engine.ready(LONG).await, Ok(()));
    assert_eq!(fill(&world, 10).await, None);
    // Smaller than what is there.
    world.home.file("ringfence.toml", &filled(MIB, ""));
    assert_eq!(
        fill(&world, 100).await.as_deref(),
        Some("audit.unavailable")
    );
    assert_eq!(
        world.engine.ready(LONG).await,
        Err("the audit cannot be written")
    );
    // Room again, although there is none for the notice in the size of before.
    world
        .home
        .file("ringfence.toml", &filled(8 * MIB, "# more"));
    assert_eq!(fill(&world, 3).await, None);
    assert_eq!(world.engine.ready(LONG).await, Ok(()));
}

#[tokio::test]
async fn the_owner_is_told_before_the_audit_is_full() {
    let world = world(&filled(MIB, "")).await;
    assert_eq!(fill(&world, 14).await, None);
    world.engine.tend_audit();
    world.engine.tend_audit();
    let alarms = world.alarms.lock().unwrap().clone();
    let told: Vec<_> = alarms.iter().filter(|it| it.contains("prune")).collect();
    assert_eq!(told.len(), 1, "{alarms:?}");
}

#[tokio::test]
async fn the_oldest_entries_are_removed_when_configured() {
    let world = world(&filled(MIB, "when_full = \"remove-oldest\"")).await;
    for _ in 0..60 {
        assert_eq!(fill(&world, 1).await, None);
        world.engine.tend_audit();
    }
    let verified = world.engine.store().audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert!(verified.checkpoints > 0, "{verified:?}");
}
