//! The store fails in the middle of an approval, at every step of it. Nothing runs, the
//! caller reads one sentence, the operator another, nothing is half written, and once
//! the store works again everything goes on from where it was.

use engine::approve::{AnswerFault, ApprovalAnswer, ApprovalScope, Channel};
use engine::call::CallRequest;
use model::caller::Caller;
use model::govern::approval::ApprovalState;
use model::record::audit::Status;
use store::approvals::ApprovalChange;

use crate::approvals::{WAIT, all, asking, first_pending, request, runs, world, writer};
use crate::world::{Home, Says, World, error};

/// What the client says, where the store fails, and what is there afterwards.
struct Case {
    answer: ApprovalAnswer,
    step: ApprovalChange,
    left: &'static [ApprovalState],
}

const YES: ApprovalAnswer = ApprovalAnswer::Approved(ApprovalScope::Once);

const CASES: [Case; 11] = [
    case(YES, ApprovalChange::Claim, &[]),
    case(YES, ApprovalChange::Ask, &[]),
    case(YES, ApprovalChange::Answer, &[ApprovalState::Pending]),
    case(YES, ApprovalChange::Take, &[ApprovalState::Approved]),
    case(
        ApprovalAnswer::Declined,
        ApprovalChange::Answer,
        &[ApprovalState::Pending],
    ),
    case(
        ApprovalAnswer::Declined,
        ApprovalChange::Take,
        &[ApprovalState::Declined],
    ),
    case(
        ApprovalAnswer::Dismissed,
        ApprovalChange::Answer,
        &[ApprovalState::Pending],
    ),
    case(
        ApprovalAnswer::Malformed,
        ApprovalChange::Answer,
        &[ApprovalState::Pending],
    ),
    case(
        ApprovalAnswer::NotRendered,
        ApprovalChange::Wait,
        &[ApprovalState::Pending],
    ),
    case(
        ApprovalAnswer::TimedOut,
        ApprovalChange::Wait,
        &[ApprovalState::Pending],
    ),
    case(
        ApprovalAnswer::Deferred,
        ApprovalChange::Wait,
        &[ApprovalState::Pending],
    ),
];

const fn case(
    answer: ApprovalAnswer,
    step: ApprovalChange,
    left: &'static [ApprovalState],
) -> Case {
    Case { answer, step, left }
}

fn states(world: &World) -> Vec<ApprovalState> {
    all(world).iter().map(|row| row.state).collect()
}

fn alarms(world: &World) -> Vec<String> {
    std::mem::take(&mut world.alarms.lock().unwrap())
}

fn says(answer: ApprovalAnswer) -> CallRequest {
    asking(Says::new(answer))
}

#[tokio::test]
async fn a_step_that_cannot_be_written_runs_nothing() {
    for Case { answer, step, left } in CASES {
        let what = format!("{answer:?} {step:?}");
        let world = world().await;
        let approvals = world.engine.store().approvals();
        approvals.fail(Some(step));
        let outcome = world.made(says(answer)).await;
        assert_eq!(outcome.status, Status::Refused, "{what}");
        let (code, message) = error(&outcome);
        assert_eq!(code, "approval.unavailable", "{what}");
        assert_eq!(
            message, "a person must approve this call and could not be asked; it did not run",
            "{what}"
        );
        assert_eq!(runs(&world), 0, "{what}");
        assert_eq!(states(&world), left, "{what}");
        let alarms = alarms(&world);
        assert_eq!(alarms.len(), 1, "{what}: {alarms:?}");
        assert!(
            alarms[0].starts_with("the approvals cannot be read or written: "),
            "{alarms:?}"
        );
        // The store works again, and nothing that was lost counts.
        approvals.fail(None);
        let later = world.made(request("ann", "x")).await;
        let counts = left == [ApprovalState::Approved];
        assert_eq!(later.status == Status::Done, counts, "{what}: {later:?}");
        assert_eq!(runs(&world), usize::from(counts), "{what}");
        world.assert_whole();
    }
}

/// A question whose answer was lost waits in the inbox, where the same call finds it:
/// it is not asked twice.
#[tokio::test]
async fn a_question_whose_answer_is_lost_waits_in_the_inbox() {
    let world = world().await;
    let approvals = world.engine.store().approvals();
    approvals.fail(Some(ApprovalChange::Answer));
    world.made(says(YES)).await;
    approvals.fail(None);
    let question = first_pending(&world).await;
    // Moving it there is work on a thread of its own.
    while approvals.get(&question.id).unwrap().unwrap().place
        != store::approvals::WaitingPlace::Inbox
    {
        tokio::task::yield_now().await;
    }
    let done = world.made(says(YES)).await;
    assert_eq!(done.status, Status::Done);
    assert_eq!(states(&world), [ApprovalState::Used]);
    assert_eq!(runs(&world), 1);
}

/// The same where nobody but the inbox can be asked.
#[tokio::test]
async fn an_answer_in_the_inbox_that_cannot_be_written_does_not_count() {
    let home = Home::new();
    home.file("ringfence.toml", WAIT);
    let world = World::with(home, |_| ());
    world.published(&writer()).await;
    let approvals = world.engine.store().approvals();
    let mut call = request("ann", "x");
    call.approver = None;
    let answering = async {
        let question = first_pending(&world).await;
        let inbox = world.engine.approvals();
        approvals.fail(Some(ApprovalChange::Answer));
        let owner = Caller::owner();
        let yes = inbox.approve(&question.id, &owner, ApprovalScope::Once, None);
        assert!(matches!(yes, Err(AnswerFault::Store(_))), "{yes:?}");
        let no = inbox.deny(&question.id, &owner, None);
        assert!(matches!(no, Err(AnswerFault::Store(_))), "{no:?}");
    };
    let (outcome, ()) = tokio::join!(world.made(call), answering);
    assert_eq!(error(&outcome).0, "approval.pending");
    assert_eq!(
        (states(&world), runs(&world)),
        (vec![ApprovalState::Pending], 0)
    );
    assert_eq!(alarms(&world).len(), 2);
    approvals.fail(None);
    let question = first_pending(&world).await;
    let inbox = world.engine.approvals();
    let given = inbox.approve(&question.id, &Caller::owner(), ApprovalScope::Once, None);
    assert_eq!(given.unwrap().state, ApprovalState::Approved);
    // An approval whose revocation fails still counts, and the caller of revoke is told.
    approvals.fail(Some(ApprovalChange::Revoke));
    let revoked = inbox.revoke(&question.id, &Caller::owner());
    assert!(matches!(revoked, Err(AnswerFault::Store(_))), "{revoked:?}");
    assert_eq!(states(&world), [ApprovalState::Approved]);
}

/// The answer a client brings with another call.
#[tokio::test]
async fn an_answer_that_comes_later_and_cannot_be_written_does_not_count() {
    let world = world().await;
    let approvals = world.engine.store().approvals();
    world.made(request("ann", "x")).await;
    let question = first_pending(&world).await;
    let ann = Caller::named("ann");
    for (answer, step) in [
        (YES, ApprovalChange::Answer),
        (ApprovalAnswer::Declined, ApprovalChange::Answer),
        (ApprovalAnswer::NotRendered, ApprovalChange::Wait),
    ] {
        approvals.fail(Some(step));
        let given = world
            .engine
            .answer(&question.id, &ann, Channel::InputRequired, answer);
        assert!(matches!(given, Err(AnswerFault::Store(_))), "{given:?}");
        assert_eq!(alarms(&world).len(), 1);
        assert_eq!(states(&world), [ApprovalState::Pending]);
    }
    approvals.fail(None);
    world
        .engine
        .answer(&question.id, &ann, Channel::InputRequired, YES)
        .unwrap();
    let done = world.made(request("ann", "x")).await;
    assert_eq!(done.status, Status::Done);
    assert_eq!(runs(&world), 1);
}
