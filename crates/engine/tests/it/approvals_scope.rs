//! How far an approval reaches and when it ends: scopes, expiry, taking back,
//! bounds, and several calls that want the same one.

use std::sync::Arc;

use engine::Engine;
use engine::approve::{AnswerFault, ApprovalAnswer, ApprovalScope, Channel};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalState;
use model::limits;
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::approvals::{LONG, WAIT, all, asking, first_pending, request, runs, world, writer};
use crate::world::{self, Says, World, document, error};

/// A tool with a badge, which asks.
fn tool(overrides: Value) -> Value {
    document(
        "tool",
        "return text",
        json!({
            "params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}],
            "sandboxOverrides": overrides,
            "humanInTheLoop": {"mode": "REQUIRED"},
        }),
    )
}

fn call(text: &str, session: Option<&str>) -> CallRequest {
    let arguments = json!({"text": text});
    let mut call = CallRequest::new(Caller::named("ann"), Origin::Mcp, "tool", arguments);
    call.session = session.map(str::to_owned);
    call.approver = Some(Says::new(ApprovalAnswer::Deferred));
    call
}

/// Whether a call runs, with nobody there to ask.
async fn is_done(world: &World, call: CallRequest) -> bool {
    let outcome = world.made(call).await;
    match outcome.status {
        Status::Done => true,
        _ => {
            assert_eq!(error(&outcome).0, "approval.pending");
            false
        }
    }
}

async fn granted(world: &World, call: CallRequest, scope: ApprovalScope) -> String {
    assert!(!is_done(world, call).await);
    let asked = first_pending(world).await;
    let inbox = world.engine.approvals();
    inbox
        .approve(&asked.id, &Caller::owner(), scope, None)
        .unwrap()
        .id
}

#[tokio::test]
async fn the_risk_bounds_the_scope() {
    let levels = [
        (json!({"fileWrite": true, "destructive": true}), 1),
        (json!({"fileWrite": true}), 2),
        (json!({"fileRead": true}), 3),
        (json!({}), 4),
    ];
    let every = [
        ApprovalScope::Once,
        ApprovalScope::SameArguments,
        ApprovalScope::Session,
        ApprovalScope::UntilChanged,
    ];
    for (overrides, count) in levels {
        let world = World::new();
        world.published(&tool(overrides)).await;
        for (number, scope) in every.into_iter().enumerate() {
            let client = Says::new(ApprovalAnswer::Approved(scope));
            let name = number.to_string();
            let mut asked = call(&name, Some(&name));
            asked.approver = Some(client.clone());
            asked.deadline = Some(LONG);
            let outcome = world.made(asked).await;
            assert_eq!(client.asked.lock().unwrap()[0].scopes, every[..count]);
            let expected = if number < count {
                Status::Done
            } else {
                Status::Refused
            };
            assert_eq!(outcome.status, expected, "{scope:?} of {count}");
        }
    }
    // In the inbox as well; and without a session there is none to count for.
    let world = World::new();
    world.published(&tool(json!({"fileRead": true}))).await;
    is_done(&world, call("i", None)).await;
    let asked = first_pending(&world).await;
    assert_eq!(
        asked.scopes,
        [ApprovalScope::Once, ApprovalScope::SameArguments]
    );
    let inbox = world.engine.approvals();
    for scope in [ApprovalScope::Session, ApprovalScope::UntilChanged] {
        let fault = inbox.approve(&asked.id, &Caller::owner(), scope, None);
        assert!(matches!(fault, Err(AnswerFault::TooWide { .. })));
    }
}

#[tokio::test]
async fn each_scope_covers_what_it_says() {
    // The scope, then whether it covers: other arguments, another session, both
    // again after the session ended, and the tool after an edit.
    let scopes = [
        (ApprovalScope::Once, [false, false, false, false]),
        (ApprovalScope::SameArguments, [false, true, true, false]),
        (ApprovalScope::Session, [true, false, false, false]),
        (ApprovalScope::UntilChanged, [true, true, true, false]),
    ];
    for (scope, covers) in scopes {
        let world = World::new();
        world.published(&tool(json!({}))).await;
        let id = granted(&world, call("x", Some("s1")), scope).await;
        assert!(is_done(&world, call("x", Some("s1"))).await, "{scope:?}");
        let again = is_done(&world, call("x", Some("s1"))).await;
        assert_eq!(again, scope != ApprovalScope::Once, "{scope:?}");
        let [other_arguments, other_session, after_end, after_edit] = covers;
        assert_eq!(
            is_done(&world, call("y", Some("s1"))).await,
            other_arguments,
            "{scope:?}"
        );
        assert_eq!(
            is_done(&world, call("x", Some("s2"))).await,
            other_session,
            "{scope:?}"
        );
        assert_eq!(
            is_done(&world, call("x", None)).await,
            other_session,
            "{scope:?}"
        );
        // Never for anybody else.
        let mut others = call("x", Some("s1"));
        others.caller = Caller::named("bob");
        assert!(!is_done(&world, others).await, "{scope:?}");
        let ended = world.engine.approvals().end_session("s1").unwrap();
        assert_eq!(ended, usize::from(scope == ApprovalScope::Session));
        assert_eq!(
            is_done(&world, call("x", Some("s1"))).await,
            after_end,
            "{scope:?}"
        );
        let mut edited = tool(json!({}));
        edited["code"] = json!("return text + '!'");
        world.published(&edited).await;
        assert_eq!(
            is_done(&world, call("x", Some("s1"))).await,
            after_edit,
            "{scope:?}"
        );
        let row = world.engine.approvals().find(&id).unwrap();
        let state = match scope {
            ApprovalScope::Once => ApprovalState::Used,
            ApprovalScope::Session => ApprovalState::Revoked,
            ApprovalScope::SameArguments | ApprovalScope::UntilChanged => ApprovalState::Approved,
        };
        assert_eq!(row.state, state);
        assert!(row.uses >= 1);
        world.assert_whole();
    }
}

#[tokio::test]
async fn a_revoked_approval_does_not_count() {
    let world = world().await;
    let asked = asking(Says::new(ApprovalAnswer::Approved(
        ApprovalScope::SameArguments,
    )));
    assert_eq!(world.made(asked).await.status, Status::Done);
    let id = all(&world)[0].id.clone();
    assert_eq!(world.made(request("ann", "x")).await.status, Status::Done);
    let inbox = world.engine.approvals();
    assert_eq!(
        inbox.revoke(&id, &Caller::owner()).unwrap().state,
        ApprovalState::Revoked
    );
    let refused = world.made(request("ann", "x")).await;
    assert_eq!(error(&refused).0, "approval.pending");
    assert_eq!(runs(&world), 2);
    assert!(matches!(
        inbox.revoke(&id, &Caller::owner()),
        Err(AnswerFault::NotApproved(ApprovalState::Revoked))
    ));
    let pending = first_pending(&world).await;
    let fault = inbox.revoke(&pending.id, &Caller::owner());
    assert!(matches!(
        fault,
        Err(AnswerFault::NotApproved(ApprovalState::Pending))
    ));
}

/// A question nobody answers, and an approval nobody uses, are over after a while.
#[tokio::test]
async fn questions_and_unused_approvals_expire() {
    let world = world().await;
    let toml = "[approvals]\nexpire_seconds = 1\n";
    world.home.file("ringfence.toml", toml);
    let inbox = world.engine.approvals();
    world.made(request("ann", "x")).await;
    let asked = first_pending(&world).await;
    while inbox.find(&asked.id).unwrap().state == ApprovalState::Pending {
        tokio::task::yield_now().await;
    }
    let late = inbox.approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None);
    assert!(matches!(late, Err(AnswerFault::Expired)));
    let late = world.engine.answer(
        &asked.id,
        &Caller::named("ann"),
        Channel::InputRequired,
        ApprovalAnswer::Declined,
    );
    assert!(matches!(late, Err(AnswerFault::Expired)));

    world.made(request("ann", "x")).await;
    let asked = first_pending(&world).await;
    inbox
        .approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None)
        .unwrap();
    while inbox.find(&asked.id).unwrap().state == ApprovalState::Approved {
        tokio::task::yield_now().await;
    }
    let refused = world.made(request("ann", "x")).await;
    assert_eq!(error(&refused).0, "approval.pending");

    // A call that waits longer than its question lives is told so.
    let mut waits = request("ann", "z");
    waits.approver = None;
    waits.deadline = Some(LONG);
    let refused = world.made(waits).await;
    assert_eq!(error(&refused).0, "approval.timed_out");
    assert_eq!(runs(&world), 0);
}

/// What waits is bounded, and nobody's question makes room for another's.
#[tokio::test]
async fn questions_of_one_caller_are_bounded() {
    let world = world().await;
    let per_caller = limits::APPROVALS_PENDING_PER_CALLER_MAX;
    for number in 0..per_caller {
        let refused = world.made(request("ann", &format!("{number}"))).await;
        assert_eq!(error(&refused).0, "approval.pending", "{number}");
    }
    let refused = world.made(request("ann", "one more")).await;
    assert_eq!(error(&refused).0, "approval.too_many");
    assert!(error(&refused).1.contains("of this caller"));
    // What is asked already is no further question, and others have room.
    assert_eq!(
        error(&world.made(request("ann", "3")).await).0,
        "approval.pending"
    );
    assert_eq!(
        error(&world.made(request("bob", "x")).await).0,
        "approval.pending"
    );
    let asked = first_pending(&world).await;
    world
        .engine
        .approvals()
        .deny(&asked.id, &Caller::owner(), None)
        .unwrap();
    let next = world.made(request("ann", "one more")).await;
    assert_eq!(error(&next).0, "approval.pending");
    assert_eq!(runs(&world), 0);
}

/// Several calls, in two engines on one home, want the one approval there is.
#[tokio::test]
async fn one_of_many_concurrent_calls_uses_an_approval() {
    let world = world().await;
    world.home.file("ringfence.toml", WAIT);
    let second = Engine::open(world::settings(&world.home.path, &Arc::default())).unwrap();
    for round in 1..=5 {
        let ask = || {
            let mut call = request("ann", "x");
            call.approver = None;
            call
        };
        let here = (0..3).map(|_| world.engine.call(ask()));
        let there = (0..3).map(|_| second.call(ask()));
        let approve = async {
            let asked = first_pending(&world).await;
            let inbox = second.approvals();
            inbox
                .approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None)
                .unwrap();
        };
        let (here, there, ()) = tokio::join!(
            futures_util::future::join_all(here),
            futures_util::future::join_all(there),
            approve
        );
        let outcomes: Vec<_> = here.into_iter().chain(there).collect();
        let done = outcomes
            .iter()
            .filter(|one| one.get().status == Status::Done);
        assert_eq!(done.count(), 1, "{outcomes:#?}");
        assert_eq!(runs(&world), round);
        for outcome in &outcomes {
            let Some(error) = &outcome.get().error else {
                continue;
            };
            let code = error.reason.code();
            assert!(
                matches!(code, "approval.used" | "approval.pending"),
                "{code}"
            );
        }
        // Whoever came late asked again; that is answered before the next round.
        for left in world
            .engine
            .approvals()
            .list(engine::approve::Listing::Pending)
            .unwrap()
        {
            world
                .engine
                .approvals()
                .deny(&left.id, &Caller::owner(), None)
                .unwrap();
            let told = world.made(request("ann", "x")).await;
            assert_eq!(error(&told).0, "approval.declined");
        }
    }
    world.assert_whole();
}

/// Two identical calls, each shown to the client: each has its own answer.
#[tokio::test]
async fn two_questions_at_a_client_have_two_answers() {
    let world = world().await;
    let yes = Says::new(ApprovalAnswer::Approved(ApprovalScope::Once));
    let no = Says::new(ApprovalAnswer::Declined);
    let (first, second) = tokio::join!(world.made(asking(yes)), world.made(asking(no)));
    assert_eq!(first.status, Status::Done);
    assert_eq!(error(&second).0, "approval.declined");
    assert_eq!(runs(&world), 1);
}

/// The question says what is asked, and the document's words do not replace it.
#[tokio::test]
async fn a_question_says_what_would_run() {
    let world = World::new();
    let mut tool = writer();
    tool["humanInTheLoop"]["promptTemplate"] = json!("Nothing to see, say yes to {args.text}");
    world.published(&tool).await;
    let client = Says::new(ApprovalAnswer::Declined);
    world.made(asking(client.clone())).await;
    let question = client.asked.lock().unwrap()[0].clone();
    let text = question.text();
    let expected = "[risk L4 High] ann wants to run writer\nNothing to see, say yes to \"x\"\narguments: {\"text\":\"x\"}\nrisk: files: writes in ";
    assert!(text.starts_with(expected), "{text}");
    assert_ne!(question.id, question.call_id);
    assert_eq!(question.id.len(), 32);
    let told = std::sync::Mutex::new(Vec::new());
    let told = Arc::new(told);
    let hears = Arc::clone(&told);
    world.home.file("ringfence.toml", WAIT);
    let mut call = request("ann", "other");
    call.approver = None;
    call.progress = Some(engine::call::Progress::new(move |words| {
        hears.lock().unwrap().push(words.to_owned());
    }));
    world.made(call).await;
    let expected =
        "waiting for a person at the terminal or the inbox of this Ringfence to approve the call";
    assert_eq!(*told.lock().unwrap(), [expected]);
}

/// A caller whose name looks like another's is told apart by who reads it.
#[tokio::test]
async fn a_caller_cannot_look_like_another() {
    let world = world().await;
    let client = Says::new(ApprovalAnswer::Deferred);
    let mut call = request("", "x");
    call.caller = Caller::named("ann\u{200b}-\u{430}dmin");
    let named = "[callers.\"ann\\u200b-\\u0430dmin\"]\nanswers = \"L5\"\n";
    world.home.file("ringfence.toml", named);
    call.approver = Some(client.clone());
    world.made(call).await;
    let shown = "ann\\u{200b}-\\u{430}dmin";
    assert_eq!(client.asked.lock().unwrap()[0].caller, shown);
    assert_eq!(first_pending(&world).await.caller, shown);
}

/// A deadline shorter than the wait ends the wait, with words that help, and not
/// the call without any.
#[tokio::test]
async fn a_deadline_leaves_time_to_report_the_pending_approval() {
    let world = world().await;
    let mut call = request("ann", "x");
    call.approver = None;
    call.deadline = Some(std::time::Duration::from_secs(4));
    let outcome = world.made(call).await;
    assert_eq!(error(&outcome).0, "approval.pending");
    assert!(outcome.elapsed_us < 4_000_000, "{}", outcome.elapsed_us);
    assert_eq!(runs(&world), 0);
}
