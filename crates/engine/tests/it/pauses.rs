//! Who is denied again and again is paused until a person says otherwise.

use std::pin::Pin;
use std::sync::Arc;

use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Question};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::json;
use store::Filter;

use crate::world::{Home, Says, World, document, error};

const RULE: &str = "[[rule]]
id = \"no\"
tools = [\"pay\"]
when = \"args.n > 1\"
effect = \"deny\"
[expected]
tools = [\"pay\"]
";

async fn world() -> World {
    let home = Home::new();
    home.file("ringfence.toml", RULE);
    let world = World::with(home, |_| ());
    let params = json!({"params": [
        {"name": "n", "type": "NUMBER", "required": true, "testValue": "1"}]});
    world.published(&document("pay", "return n", params)).await;
    world
}

async fn pay(world: &World, n: i64) -> Outcome {
    world.call("pay", json!({"n": n})).await
}

#[tokio::test]
async fn three_in_a_row_pause_until_a_person_resumes() {
    let world = world().await;
    for _ in 0..2 {
        assert_eq!(error(&pay(&world, 2).await).0, "rule.denied");
    }
    // A call that gets through ends the row.
    assert_eq!(pay(&world, 1).await.status, Status::Done);
    for _ in 0..3 {
        assert_eq!(error(&pay(&world, 2).await).0, "rule.denied");
    }
    let paused = pay(&world, 1).await;
    let (code, told) = error(&paused);
    assert_eq!(code, "caller.paused");
    // Attack: with a shell, the command would be the next thing to try.
    assert!(told.contains("until an operator resumes you"), "{told}");
    assert!(!told.contains("ringfence callers"), "{told}");
    assert!(!paused.error.as_ref().unwrap().retryable);
    assert_eq!(world.gates(&paused), ["caller stop"]);
    assert!(
        world
            .alarms
            .lock()
            .unwrap()
            .iter()
            .any(|said| said.contains("ann is paused after repeated denials")),
        "the operator is told"
    );
    // Others go on, and what there is to see stays the same.
    assert_eq!(
        world.own_call("pay", json!({"n": 1})).await.status,
        Status::Done
    );
    let offered = |name: &str| {
        world
            .engine
            .callable_tools(&Caller::named(name), Origin::Mcp)
            .len()
    };
    assert_eq!(offered("ann"), offered("bob"));
    // A restart does not help, nor another process or another way to write it.
    let other = world.beside(|_| ());
    let request = CallRequest::new(Caller::named("ANN"), Origin::Script, "pay", json!({"n": 1}));
    assert_eq!(
        error(&other.call(request).await.into_inner()).0,
        "caller.paused"
    );
    drop(other);
    let world = world.again(|_| ());
    assert_eq!(error(&pay(&world, 1).await).0, "caller.paused");
    let known = world.engine.callers().find("ann").unwrap().unwrap();
    assert_eq!((known.denied_in_a_row, known.denied_in_all), (3, 5));
    assert_eq!(known.paused_why.as_deref(), Some("denied 3 times in a row"));
    assert!(
        world
            .engine
            .callers()
            .resume("Ann", &Caller::owner())
            .unwrap()
    );
    assert!(
        !world
            .engine
            .callers()
            .resume("ann", &Caller::owner())
            .unwrap(),
        "not paused"
    );
    assert_eq!(pay(&world, 1).await.status, Status::Done);
    is_noticed(&world);
    world.assert_whole();
}

/// Who held whom, and who let them go on, is in the audit.
fn is_noticed(world: &World) {
    let notices = world.engine.store().audit().notices(&Filter::default());
    let acts: Vec<_> = notices
        .unwrap()
        .into_iter()
        .map(|entry| entry.notice)
        .collect();
    let acts = acts.iter().filter(|notice| notice.about.is_some());
    let acts: Vec<_> = acts.map(|it| (it.act.word(), it.by.as_str())).collect();
    assert!(acts.contains(&("caller.paused", "server")), "{acts:?}");
    assert!(acts.contains(&("caller.resumed", "owner")), "{acts:?}");
}

/// Whoever alone lets others go on is counted and warned at their own terminal, and
/// not held back.
#[tokio::test]
async fn the_owner_at_a_terminal_is_warned_and_not_paused() {
    let world = world().await;
    let warnings = || {
        let alarms = world.alarms.lock().unwrap();
        let warned = |said: &&String| said.contains("owner was denied too often");
        alarms.iter().filter(warned).cloned().collect::<Vec<_>>()
    };
    for number in 1..=4 {
        let denied = world.own_call("pay", json!({"n": 2})).await;
        assert_eq!(error(&denied).0, "rule.denied", "{number}");
        assert_eq!(warnings().len(), usize::from(number >= 3), "{number}");
    }
    let expected =
        "owner was denied too often; any caller but the owner at a terminal would now be paused";
    assert_eq!(warnings(), [expected]);
    // Nor do the calls of a script that is run there.
    let denies = "for (let i = 0; i < 4; i++) { await callTool('pay', { n: 2 }, { throwOnError: false }); } return 1;";
    let ran = world
        .own_call("codecall_execute", json!({"script": denies}))
        .await;
    assert_eq!(ran.status, Status::Done, "{ran:?}");
    let invoked = json!({"tool": "pay", "input": {"n": 2}});
    for _ in 0..4 {
        let refused = world.own_call("codecall_invoke", invoked.clone()).await;
        assert_ne!(error(&refused).0, "caller.paused", "{refused:?}");
    }
    let known = |world: &World| world.engine.callers().find("owner").unwrap().unwrap();
    assert!(!known(&world).paused && known(&world).denied_in_all >= 8);
    let through = world.own_call("pay", json!({"n": 1})).await;
    assert_eq!(through.status, Status::Done, "{through:?}");
    assert_eq!(
        known(&world).denied_in_a_row,
        0,
        "a row ends as everybody's"
    );
    let before = warnings().len();
    for number in 0..20 {
        let denied = world.own_call("pay", json!({"n": 2})).await;
        assert_eq!(error(&denied).0, "rule.denied", "{number}");
    }
    assert_eq!(
        warnings().len(),
        before + 2,
        "three in a row, and twenty in all"
    );
}

/// Whoever else goes by that name is paused, whatever the terminal did; and a pause
/// that somebody set by hand holds for the owner, too.
#[tokio::test]
async fn only_the_owner_at_a_terminal_is_not_paused() {
    let world = world().await;
    for _ in 0..2 {
        world.own_call("pay", json!({"n": 2})).await;
    }
    for origin in [Origin::Mcp, Origin::Script, Origin::Cli] {
        let agent = Caller::named("owner");
        let request = CallRequest::new(agent, origin, "pay", json!({"n": 2}));
        let denied = world.made(request.clone()).await;
        let first = origin == Origin::Mcp;
        let expected = if first {
            "rule.denied"
        } else {
            "caller.paused"
        };
        assert_eq!(error(&denied).0, expected, "{origin:?}");
        assert_eq!(error(&world.made(request).await).0, "caller.paused");
    }
    let known = world.engine.callers().find("owner").unwrap().unwrap();
    assert!(known.paused);
    let own = world.own_call("pay", json!({"n": 1})).await;
    assert_eq!(
        own.status,
        Status::Done,
        "the terminal is free all the same"
    );
    let mut lying = CallRequest::new(Caller::named("owner"), Origin::Cli, "pay", json!({"n": 1}));
    lying.typed = true;
    assert_eq!(error(&world.made(lying).await).0, "caller.paused");
    // A client may be driven by others, and so may its scripts.
    for origin in [Origin::Mcp, Origin::Script] {
        let request = CallRequest::new(Caller::owner(), origin, "pay", json!({"n": 1}));
        assert_eq!(error(&world.made(request).await).0, "caller.paused");
    }
    assert!(
        world
            .engine
            .callers()
            .resume("owner", &Caller::owner())
            .unwrap()
    );
    // What a person says holds for them, too; they can take it back.
    world
        .engine
        .callers()
        .pause("owner", &Caller::owner(), None)
        .unwrap();
    let held = world.own_call("pay", json!({"n": 1})).await;
    assert_eq!(error(&held).0, "caller.paused");
    world
        .engine
        .callers()
        .resume("owner", &Caller::owner())
        .unwrap();
    assert_eq!(
        world.own_call("pay", json!({"n": 1})).await.status,
        Status::Done
    );
}

/// Twenty in all, however many get through in between, whichever process counts.
#[tokio::test]
async fn twenty_in_all_pause_across_processes() {
    let world = world().await;
    let other = world.beside(|_| ());
    for number in 0..20 {
        assert_eq!(error(&pay(&world, 2).await).0, "rule.denied", "{number}");
        let ann = Caller::named("ann");
        let request = CallRequest::new(ann, Origin::Mcp, "pay", json!({"n": 1}));
        let through = other.call(request).await.into_inner();
        let is_last = number == 19;
        assert_eq!(
            through.status == Status::Refused,
            is_last,
            "{number}: {through:?}"
        );
    }
    let known = world.engine.callers().find("ann").unwrap().unwrap();
    assert_eq!((known.denied_in_a_row, known.denied_in_all), (1, 20));
    assert_eq!(
        known.paused_why.as_deref(),
        Some("denied 20 times in total")
    );
}

/// Slips in arguments, tools that are not there and tools that are not for this
/// caller say nothing; a pause would tell the last two apart.
#[tokio::test]
async fn caller_mistakes_and_hidden_tools_are_not_denials() {
    let world = world().await;
    world
        .home
        .file("ringfence.toml", "[callers.ann]\ndeny = [\"pay\"]\n");
    for _ in 0..25 {
        assert_eq!(error(&pay(&world, 1).await).0, "tool.unknown");
        assert_eq!(
            error(&world.call("none", json!({})).await).0,
            "tool.unknown"
        );
    }
    world.home.file("ringfence.toml", RULE);
    for _ in 0..4 {
        let slip = world.call("pay", json!({"m": 1})).await;
        assert!(error(&slip).0.starts_with("argument."), "{slip:?}");
    }
    assert_eq!(world.engine.callers().find("ann").unwrap(), None);
    assert_eq!(pay(&world, 1).await.status, Status::Done);
}

#[tokio::test]
async fn declined_approvals_count_as_denials_and_unanswered_ones_do_not() {
    let world = World::new();
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world.published(&document("asks", "return 1", asks)).await;
    let asking = |answer| {
        let ann = Caller::named("ann");
        let mut request = CallRequest::new(ann, Origin::Mcp, "asks", json!({}));
        request.approver = Some(Says::new(answer));
        world.made(request)
    };
    for _ in 0..4 {
        assert_eq!(
            error(&asking(ApprovalAnswer::Dismissed).await).0,
            "approval.dismissed"
        );
    }
    for _ in 0..3 {
        assert_eq!(
            error(&asking(ApprovalAnswer::Declined).await).0,
            "approval.declined"
        );
    }
    let after = asking(ApprovalAnswer::Approved(ApprovalScope::Once)).await;
    assert_eq!(error(&after).0, "caller.paused");
}

/// The person who is asked sees the call, and pauses its caller before saying yes.
#[tokio::test]
async fn a_pause_stops_a_call_that_waits_for_a_person() {
    let world = World::new();
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world.published(&document("asks", "return 1", asks)).await;
    let ann = Caller::named("ann");
    let request = CallRequest::new(ann, Origin::Mcp, "asks", json!({}));
    let answering = async {
        let inbox = world.engine.approvals();
        let id = loop {
            let listed = inbox.list(engine::approve::Listing::Pending).unwrap();
            match listed.first() {
                Some(row) => break row.id.clone(),
                None => tokio::task::yield_now().await,
            }
        };
        let owner = Caller::owner();
        world
            .engine
            .callers()
            .pause("ann", &owner, Some("looks odd"))
            .unwrap();
        inbox
            .approve(&id, &owner, ApprovalScope::Once, None)
            .unwrap();
    };
    let (outcome, ()) = tokio::join!(world.made(request), answering);
    assert_eq!(error(&outcome).0, "caller.paused");
    assert_eq!(world.gates(&outcome).pop().unwrap(), "approval stop");
    let closing = world.entry(&outcome).closing.unwrap();
    let note = closing.gates.last().unwrap().note.clone().unwrap();
    assert!(
        note.starts_with("paused by owner: looks odd; approved"),
        "{note}"
    );
}

/// What cannot be looked up lets nobody in.
#[tokio::test]
async fn calls_are_refused_while_caller_records_cannot_be_read() {
    let world = world().await;
    assert_eq!(pay(&world, 1).await.status, Status::Done);
    let counter = world.home.path.join("callers.version");
    std::fs::remove_file(&counter).unwrap();
    std::fs::create_dir(&counter).unwrap();
    let refused = pay(&world, 1).await;
    assert_eq!(error(&refused).0, "caller.unavailable");
    assert!(refused.error.unwrap().retryable);
    std::fs::remove_dir(&counter).unwrap();
    assert_eq!(pay(&world, 1).await.status, Status::Done);
}

/// Says no, and breaks what denials are counted with.
#[derive(Debug)]
struct Breaks(std::path::PathBuf);

impl Approver for Breaks {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        std::fs::remove_file(&self.0).unwrap();
        std::fs::create_dir(&self.0).unwrap();
        Box::pin(async { ApprovalAnswer::Declined })
    }
}

/// A denial that cannot be written down is owed, and until then nothing runs.
#[tokio::test]
async fn a_denial_that_cannot_be_recorded_is_kept_until_it_can() {
    let world = World::new();
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world.published(&document("asks", "return 1", asks)).await;
    world
        .published(&document("plain", "return 1", json!({})))
        .await;
    let counter = world.home.path.join("callers.version");
    let ann = Caller::named("ann");
    let mut request = CallRequest::new(ann, Origin::Mcp, "asks", json!({}));
    request.approver = Some(Arc::new(Breaks(counter.clone())));
    let denied = world.made(request).await;
    assert_eq!(error(&denied).0, "approval.declined");
    let held = world.call("plain", json!({})).await;
    assert_eq!(error(&held).0, "caller.unavailable");
    std::fs::remove_dir(&counter).unwrap();
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    let known = world.engine.callers().find("ann").unwrap().unwrap();
    // Counted once, and the call that got through ended the row.
    assert_eq!((known.denied_in_a_row, known.denied_in_all), (0, 1));
}

/// The author proves tools that rules forbid, and is not paused for it.
#[tokio::test]
async fn a_local_pass_counts_as_nothing() {
    let world = world().await;
    world.home.file(
        "ringfence.toml",
        "[[rule]]\nid = \"none\"\neffect = \"deny\"\n",
    );
    let usable = world.engine.tool("pay").unwrap().usable;
    for _ in 0..4 {
        let passed = world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
        assert_eq!(passed.error.unwrap().code, "rule.denied");
    }
    assert_eq!(world.engine.callers().find("owner").unwrap(), None);
}
