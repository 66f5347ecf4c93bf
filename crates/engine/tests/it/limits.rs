//! Limits on calls hold in every process, across restarts, and however a call ends.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Question};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::json;
use tokio::sync::Notify;

use crate::world::{Clockwork, Home, Says, World, document, error};

/// Somebody who is asked and then does what the test wants.
#[derive(Debug)]
struct Waits {
    asked: Notify,
    panics: bool,
}

impl Waits {
    fn new(panics: bool) -> Arc<Waits> {
        Arc::new(Waits {
            asked: Notify::new(),
            panics,
        })
    }
}

impl Approver for Waits {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        self.asked.notify_one();
        Box::pin(async {
            assert!(!self.panics, "a panic that the test wants");
            std::future::pending().await
        })
    }
}

fn limited(limit: &str) -> (World, Clockwork) {
    let home = Home::new();
    home.file(
        "ringfence.toml",
        &format!("[[limit]]\nid = \"few\"\n{limit}\n"),
    );
    let clock = Clockwork::new();
    let world = World::with(home, |settings| settings.clock = Some(clock.clock()));
    (world, clock)
}

fn asks() -> serde_json::Value {
    document(
        "asks",
        "return 1",
        json!({"humanInTheLoop": {"mode": "REQUIRED"}}),
    )
}

fn plain() -> serde_json::Value {
    document("plain", "return 1", json!({}))
}

#[tokio::test]
async fn the_limit_per_minute_says_when_to_retry() {
    let (world, clock) = limited("calls_per_minute = 2");
    world.published(&plain()).await;
    clock.pass_ms(500);
    for _ in 0..2 {
        assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    }
    clock.pass_ms(30_000);
    let refused = world.call("plain", json!({})).await;
    let expected = "the limit `few` allows 2 calls in a minute; it did not run, try again in 31 s";
    assert_eq!(error(&refused), ("limit.exceeded", expected));
    assert_eq!(refused.status, Status::Refused);
    assert!(refused.error.unwrap().retryable);
    // Another caller has a minute of its own.
    assert_eq!(
        world.own_call("plain", json!({})).await.status,
        Status::Done
    );
    clock.pass_ms(31_000);
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    world.assert_whole();
}

/// Whom a limit names by tool, name and group, and nobody else.
#[tokio::test]
async fn a_limit_holds_for_whom_it_names() {
    let (world, _) = limited(
        "tools = [\"pl*\"]\ncallers = [\"@devs\"]\ncalls_per_minute = 1\n\
         [groups.devs]\nmembers = [\"ann\"]\n\
         [expected]\ntools = [\"plain\", \"pl*\"]\ncallers = [\"ann\"]",
    );
    world.published(&plain()).await;
    world
        .published(&document("other", "return 1", json!({})))
        .await;
    let call = async |caller: &str, tool: &str| {
        let request = CallRequest::new(Caller::named(caller), Origin::Script, tool, json!({}));
        world.made(request).await.status
    };
    assert_eq!(call("ann", "plain").await, Status::Done);
    assert_eq!(call("Ann", "plain").await, Status::Refused);
    assert_eq!(call("ann", "other").await, Status::Done);
    assert_eq!(call("bob", "plain").await, Status::Done);
    assert_eq!(call("bob", "plain").await, Status::Done);
}

/// Units of a day are one count for all processes, and no restart gives them back.
#[tokio::test]
async fn daily_units_are_shared_by_processes_and_restarts() {
    let (world, clock) = limited("units_per_day = 3");
    world.published(&plain()).await;
    let other = world.beside(|settings| settings.clock = Some(clock.clock()));
    let there = async || {
        let ann = Caller::named("ann");
        let request = CallRequest::new(ann, Origin::Mcp, "plain", json!({}));
        other.call(request).await.into_inner()
    };
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    assert_eq!(there().await.status, Status::Done);
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    assert_eq!(error(&there().await).0, "limit.exceeded");
    drop(other);
    let world = world.again(|settings| settings.clock = Some(clock.clock()));
    let refused = world.call("plain", json!({})).await;
    assert_eq!(error(&refused).0, "limit.exceeded");
    clock.pass_days(1);
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
}

/// Seven units, and a tool that takes three of them.
async fn dear() -> (World, Clockwork) {
    let (world, clock) = limited("units_per_day = 7\n[costs]\n\"de*\" = 3\n\"codecall_*\" = 0");
    world.published(&plain()).await;
    world
        .published(&document("dear", "return 1", json!({})))
        .await;
    (world, clock)
}

fn explained(world: &World, tool: &str) -> engine::explain::Explained {
    let ann = Caller::named("ann");
    let request = CallRequest::new(ann, Origin::Mcp, tool, json!({}));
    world.engine.explain(&request)
}

fn limits_note(gates: &[model::record::audit::GateRecord]) -> String {
    let mut gates = gates.iter();
    let gate = gates.find(|gate| gate.gate == "limits").unwrap();
    gate.note.clone().unwrap()
}

/// What calls cost ends a day at the very call that does not fit any more; what is
/// told before, to the caller and in the audit is the same.
#[tokio::test]
async fn expensive_calls_use_up_the_daily_units() {
    let (world, clock) = dear().await;
    clock.pass_ms(3_600_000);
    for used in [0, 3] {
        // Asking uses nothing up.
        for _ in 0..3 {
            let told = explained(&world, "dear");
            assert_eq!(told.told, None);
            let expected = format!(
                "a call counts towards few (7 units in a day: {used} used, {} left, this call costs 3; \
                 the day ends in 82800 s, at 00:00 UTC)",
                7 - used
            );
            assert_eq!(limits_note(&told.closing.gates), expected);
        }
        let done = world.call("dear", json!({})).await;
        assert_eq!(done.status, Status::Done);
        let gates = world.entry(&done).closing.unwrap().gates;
        assert_eq!(limits_note(&gates), "1 limit; it costs 3 units of the day");
    }
    let expected = "the limit `few` allows 7 units in a day: 6 used, 1 left, this call costs 3; \
                    it did not run, try again in 82800 s, when the day ends at 00:00 UTC";
    let refused = world.call("dear", json!({})).await;
    assert_eq!(error(&refused), ("limit.exceeded", expected));
    let told = explained(&world, "dear").told.unwrap();
    assert_eq!((told.message.as_str(), told.retryable), (expected, true));
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    let refused = world.call("plain", json!({})).await;
    assert!(
        error(&refused)
            .1
            .contains("7 used, 0 left, this call costs 1")
    );
    clock.pass_ms(82_800_000);
    assert_eq!(world.call("dear", json!({})).await.status, Status::Done);
}

/// What a tool costs is what it costs now; what it did cost stays used.
#[tokio::test]
async fn new_costs_apply_at_the_next_call_and_refused_calls_cost_nothing() {
    let (world, _) =
        limited("units_per_day = 5\n[costs]\n\"asks\" = 5\n[expected]\ntools = [\"asks\"]");
    world.published(&asks()).await;
    world.published(&plain()).await;
    let ann = Caller::named("ann");
    let mut request = CallRequest::new(ann, Origin::Mcp, "asks", json!({}));
    request.approver = Some(Says::new(ApprovalAnswer::Dismissed));
    let dismissed = world.made(request).await;
    assert_eq!(error(&dismissed).0, "approval.dismissed");
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    let settings = "[[limit]]\nid = \"few\"\nunits_per_day = 5\n[costs]\n\"plain\" = 6\n";
    world.home.file("ringfence.toml", settings);
    let refused = world.call("plain", json!({})).await;
    let expected = "the limit `few` allows 5 units in a day: 1 used, 4 left, this call costs 6; \
                    it did not run, and retrying will not help: no day allows that many";
    assert_eq!(error(&refused), ("limit.exceeded", expected));
    assert!(!refused.error.unwrap().retryable);
}

/// The calls of a script cost what they cost by themselves.
#[tokio::test]
async fn calls_of_a_script_use_the_same_daily_units() {
    let (world, _) = dear().await;
    let script = "const said = [];
        const note = (met) => said.push(met.success ? 'ran' : met.error.message);
        for (let i = 0; i < 3; i++) note(await callTool('dear', {}, { throwOnError: false }));
        for (let i = 0; i < 2; i++) note(await callTool('plain', {}, { throwOnError: false }));
        return said;";
    let arguments = json!({"script": script});
    let ran = world.call("codecall_execute", arguments.clone()).await;
    let said = ran.value.clone().unwrap()["result"].clone();
    let used_up = |used, left, costs| {
        format!(
            "the limit `few` allows 7 units in a day: {used} used, {left} left, this call costs {costs}; \
             it did not run, try again in 86400 s, when the day ends at 00:00 UTC"
        )
    };
    let expected = json!(["ran", "ran", used_up(6, 1, 3), "ran", used_up(7, 0, 1)]);
    assert_eq!(said, expected, "{ran:?}");
    // The script itself is free, and so runs on a day that is used up.
    let ran = world.call("codecall_execute", arguments).await;
    let said = ran.value.unwrap()["result"].clone();
    assert_eq!(said[0], json!(used_up(7, 0, 3)));
}

/// Two processes spend one day, whatever their calls cost.
#[tokio::test]
async fn expensive_calls_of_two_processes_share_the_daily_units() {
    let (world, clock) = dear().await;
    let other = world.beside(|settings| settings.clock = Some(clock.clock()));
    assert_eq!(made(&other, "dear").await.status, Status::Done);
    assert_eq!(world.call("dear", json!({})).await.status, Status::Done);
    for refused in [
        made(&other, "dear").await,
        world.call("dear", json!({})).await,
    ] {
        assert!(
            error(&refused)
                .1
                .contains("6 used, 1 left, this call costs 3")
        );
    }
    assert_eq!(made(&other, "plain").await.status, Status::Done);
    let told = explained(&world, "plain").told.unwrap();
    assert!(told.message.contains("7 used, 0 left"), "{told:?}");
    // Both at the same moment: one of them gets the last unit.
    clock.pass_days(1);
    assert_eq!(made(&other, "dear").await.status, Status::Done);
    let both = tokio::join!(made(&other, "dear"), world.call("dear", json!({})));
    let through = [both.0.status, both.1.status];
    assert_eq!(
        through
            .iter()
            .filter(|status| **status == Status::Done)
            .count(),
        1
    );
}

/// What a person did not let run costs nothing of the day, but a call of the minute.
#[tokio::test]
async fn a_call_that_did_not_run_gives_its_unit_back() {
    let (world, clock) = limited("units_per_day = 1\ncalls_per_minute = 3");
    world.published(&asks()).await;
    let asking = |answer| {
        let ann = Caller::named("ann");
        let mut request = CallRequest::new(ann, Origin::Mcp, "asks", json!({}));
        request.approver = Some(Says::new(answer));
        world.made(request)
    };
    assert_eq!(
        error(&asking(ApprovalAnswer::Declined).await).0,
        "approval.declined"
    );
    assert_eq!(
        error(&asking(ApprovalAnswer::Dismissed).await).0,
        "approval.dismissed"
    );
    assert_eq!(
        asking(ApprovalAnswer::Approved(ApprovalScope::Once))
            .await
            .status,
        Status::Done
    );
    let refused = asking(ApprovalAnswer::Approved(ApprovalScope::Once)).await;
    assert!(
        error(&refused).1.contains("3 calls in a minute"),
        "{refused:?}"
    );
    clock.pass_ms(61_000);
    let refused = asking(ApprovalAnswer::Approved(ApprovalScope::Once)).await;
    assert!(
        error(&refused)
            .1
            .contains("1 unit in a day: 1 used, 0 left"),
        "{refused:?}"
    );
}

/// A rule's no costs nothing: it has a count of its own.
#[tokio::test]
async fn denied_calls_use_no_units() {
    let (world, _) = limited(
        "calls_per_minute = 1\n[[rule]]\nid = \"no\"\nwhen = \"args.n > 1\"\neffect = \"deny\"",
    );
    let params = json!({"params": [
        {"name": "n", "type": "NUMBER", "required": true, "testValue": "1"}]});
    world.published(&document("pay", "return n", params)).await;
    let denied = world.call("pay", json!({"n": 2})).await;
    assert_eq!(error(&denied).0, "rule.denied");
    let slip = world.call("pay", json!({"n": "x"})).await;
    assert_eq!(error(&slip).0, "argument.type");
    assert_eq!(
        world.call("pay", json!({"n": 1})).await.status,
        Status::Done
    );
    assert_eq!(
        error(&world.call("pay", json!({"n": 1})).await).0,
        "limit.exceeded"
    );
}

/// However a call ends, its place is free again: answered, cancelled, too late, its
/// task gone, its task panicking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_end_of_a_call_releases_its_place() {
    let (world, _) = limited("concurrent = 1");
    world.published(&asks()).await;
    world.published(&plain()).await;
    let World { engine, home, .. } = world;
    let engine = Arc::new(engine);
    let ann = || Caller::named("ann");
    for end in ["cancel", "deadline", "abort", "panic", "deny"] {
        let approver = Waits::new(end == "panic");
        let mut request = CallRequest::new(ann(), Origin::Mcp, "asks", json!({"": 0}));
        request.arguments = json!({});
        request.approver = Some(approver.clone());
        if end == "deadline" {
            request.deadline = Some(Duration::from_millis(700));
        }
        let cancel = request.cancel.clone();
        let calling = Arc::clone(&engine);
        let call = tokio::spawn(async move { calling.call(request).await.into_inner() });
        approver.asked.notified().await;
        if end != "panic" {
            let second = made(&engine, "plain").await;
            let said = error(&second);
            assert_eq!(said.0, "limit.exceeded", "{end}");
            assert!(said.1.ends_with("try again when one has ended"), "{said:?}");
        }
        match end {
            "cancel" => cancel.cancel(),
            "abort" => call.abort(),
            "deny" => {
                let inbox = engine.approvals();
                let listed = inbox.list(engine::approve::Listing::Pending).unwrap();
                inbox.deny(&listed[0].id, &Caller::owner(), None).unwrap();
            }
            _ => {}
        }
        let ended = call.await;
        match end {
            "cancel" => assert_eq!(ended.unwrap().status, Status::Cancelled),
            "deadline" | "deny" => assert_eq!(ended.unwrap().status, Status::Refused),
            _ => assert!(ended.is_err(), "{end}"),
        }
        // Where nobody is left to wait for it, a thread of its own gives it back.
        let mut tries = 0;
        while made(&engine, "plain").await.status != Status::Done {
            tries += 1;
            assert!(tries < 500, "{end}: the place is lost");
        }
        assert!(
            tries == 0 || matches!(end, "abort" | "panic"),
            "{end}: {tries}"
        );
    }
    drop(engine);
    drop(home);
}

async fn made(engine: &engine::Engine, tool: &str) -> Outcome {
    let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, tool, json!({}));
    engine.call(request).await.into_inner()
}

/// The author's own proof is no use of the tool.
#[tokio::test]
async fn a_local_pass_is_not_limited() {
    let (world, _) = limited("calls_per_minute = 1");
    world.published(&plain()).await;
    let usable = world.engine.tool("plain").unwrap().usable;
    for _ in 0..2 {
        let passed = world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
        assert!(passed.ok, "{passed:?}");
    }
    assert_eq!(
        world.own_call("plain", json!({})).await.status,
        Status::Done
    );
    let refused = world.own_call("plain", json!({})).await;
    assert_eq!(error(&refused).0, "limit.exceeded");
}

/// What was used is looked up when a limit first holds, and where that is impossible
/// nothing runs.
#[tokio::test]
async fn calls_are_refused_while_usage_cannot_be_read() {
    let (world, _) = limited("calls_per_minute = 5");
    world
        .published(&document("free", "return 1", json!({})))
        .await;
    std::fs::remove_file(world.home.path.join("ringfence.db")).unwrap();
    let outcome = world.call("free", json!({})).await;
    assert_eq!(outcome.status, Status::Refused);
    assert_eq!(error(&outcome).0, "limit.unavailable");
    let gates = world.gates(&outcome);
    assert!(
        gates.iter().any(|gate| gate.starts_with("limits")),
        "{gates:?}"
    );
}
