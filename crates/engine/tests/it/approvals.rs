//! Approvals: every way a question can end, what is written down, and whether
//! the tool ran. The tool leaves a line in a file each time it does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use engine::approve::{
    AnswerFault, ApprovalAnswer, ApprovalScope, Approver, Channel, Listed, Listing, Question,
};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalState;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::world::{Home, NAMED, Says, World, document, error};

/// Long enough for anything to happen; nothing waits so long.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Nobody is going to answer, and the call waits no longer than this.
pub(crate) const WAIT: &str = "[approvals]\nwait_seconds = 1\n";

/// A tool of L4 that leaves a line for each run.
pub(crate) fn writer() -> Value {
    document(
        "writer",
        "safety.fs.appendText('ran.txt', text + '\\n'); return text",
        json!({
            "params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}],
            "sandboxOverrides": {"fileWrite": true},
            "humanInTheLoop": {"mode": "REQUIRED"},
        }),
    )
}

/// How often the writer ran.
pub(crate) fn runs(world: &World) -> usize {
    let path = world.home.path.join("workspace/ran.txt");
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A call of the writer by someone, in a session. It does not wait: its client
/// will come back with the answer.
pub(crate) fn request(caller: &str, text: &str) -> CallRequest {
    let caller = Caller::named(caller);
    let mut request = CallRequest::new(caller, Origin::Mcp, "writer", json!({"text": text}));
    request.session = Some("session-1".to_owned());
    request.approver = Some(Says::new(ApprovalAnswer::Deferred));
    request
}

/// The same, by a client that can be asked.
pub(crate) fn asking(approver: Arc<dyn Approver>) -> CallRequest {
    let mut call = request("ann", "x");
    call.approver = Some(approver);
    call.deadline = Some(LONG);
    call
}

pub(crate) async fn world() -> World {
    let world = World::new();
    world.published(&writer()).await;
    world
}

/// Everything in the inbox.
pub(crate) fn all(world: &World) -> Vec<Listed> {
    world.engine.approvals().list(Listing::All).unwrap()
}

/// Waits until somebody asks something.
pub(crate) async fn first_pending(world: &World) -> Listed {
    loop {
        let pending = world.engine.approvals().list(Listing::Pending).unwrap();
        if let Some(first) = pending.into_iter().next() {
            return first;
        }
        tokio::task::yield_now().await;
    }
}

/// What the audit says of the approval.
pub(crate) fn note(world: &World, outcome: &Outcome) -> String {
    let closing = world.entry(outcome).closing.unwrap();
    let gate = closing
        .gates
        .into_iter()
        .find(|gate| gate.gate == "approval");
    let gate = gate.expect("the gate was consulted");
    format!("{}: {}", gate.verdict, gate.note.unwrap_or_default())
}

/// Someone who is asked and never answers.
#[derive(Debug)]
struct Silent;

impl Approver for Silent {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// What the client says, what happens in the inbox, and what must come of it.
struct Case {
    name: &'static str,
    client: Client,
    inbox: Inbox,
    /// The code of the refusal; it runs if there is none.
    code: Option<&'static str>,
    retryable: bool,
    state: ApprovalState,
    note: &'static str,
}

#[derive(Clone, Copy)]
enum Client {
    None,
    Silent,
    Says(ApprovalAnswer),
}

#[derive(Clone, Copy)]
enum Inbox {
    Nothing,
    Approve(ApprovalScope),
    Deny,
}

const fn case(
    name: &'static str,
    client: Client,
    inbox: Inbox,
    code: Option<&'static str>,
    retryable: bool,
    state: ApprovalState,
    note: &'static str,
) -> Case {
    Case {
        name,
        client,
        inbox,
        code,
        retryable,
        state,
        note,
    }
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    use ApprovalAnswer::{Approved, Declined, Deferred, Dismissed, Malformed, NotRendered, TimedOut, Unavailable};
    use self::Client::{None as NoClient, Says as Client, Silent};
    use Inbox::{Approve, Deny, Nothing};
    let pending = Some("approval.pending");
    let (declined, malformed) = (Some("approval.declined"), Some("approval.malformed"));
    let timed_out = Some("approval.timed_out");
    vec![
        case("approved once", Client(Approved(ApprovalScope::Once)), Nothing, None, false, ApprovalState::Used, "pass: approved (once) by ann via elicitation; approval "),
        case("approved for the arguments", Client(Approved(ApprovalScope::SameArguments)), Nothing, None, false, ApprovalState::Approved, "pass: approved (same-arguments) by ann via elicitation; "),
        case("too wide for L4: session", Client(Approved(ApprovalScope::Session)), Nothing, malformed, false, ApprovalState::Malformed, "stop: malformed by ann via elicitation; "),
        case("too wide for L4: until changed", Client(Approved(ApprovalScope::UntilChanged)), Nothing, malformed, false, ApprovalState::Malformed, "stop: malformed by ann via elicitation; "),
        case("declined", Client(Declined), Nothing, declined, false, ApprovalState::Declined, "stop: declined by ann via elicitation; "),
        case("dismissed", Client(Dismissed), Nothing, Some("approval.dismissed"), false, ApprovalState::Dismissed, "stop: dismissed by ann via elicitation; "),
        case("malformed", Client(Malformed), Nothing, malformed, false, ApprovalState::Malformed, "stop: malformed by ann via elicitation; "),
        case("the client timed out", Client(TimedOut), Nothing, timed_out, true, ApprovalState::Pending, "stop: timed out; approval "),
        case("vanished", Silent, Nothing, timed_out, true, ApprovalState::Pending, "stop: timed out; approval "),
        case("deferred", Client(Deferred), Nothing, pending, true, ApprovalState::Pending, "stop: pending; approval "),
        case("no channel", NoClient, Nothing, pending, true, ApprovalState::Pending, "stop: pending; approval "),
        case("no channel, approved", NoClient, Approve(ApprovalScope::Once), None, false, ApprovalState::Used, "pass: approved (once) by owner via inbox; approval "),
        case("no channel, approved for the arguments", NoClient, Approve(ApprovalScope::SameArguments), None, false, ApprovalState::Approved, "pass: approved (same-arguments) by owner via inbox; "),
        case("no channel, denied", NoClient, Deny, declined, false, ApprovalState::Declined, "stop: declined by owner via inbox; "),
        case("cannot ask", Client(Unavailable), Nothing, pending, true, ApprovalState::Pending, "; elicitation said unavailable"),
        case("cannot ask, approved", Client(Unavailable), Approve(ApprovalScope::Once), None, false, ApprovalState::Used, "; elicitation said unavailable"),
        case("not rendered", Client(NotRendered), Nothing, pending, true, ApprovalState::Pending, "; elicitation said not rendered"),
        case("not rendered, approved", Client(NotRendered), Approve(ApprovalScope::Once), None, false, ApprovalState::Used, "pass: approved (once) by owner via inbox; "),
        case("not rendered, denied", Client(NotRendered), Deny, declined, false, ApprovalState::Declined, "stop: declined by owner via inbox; "),
        case("silent, approved in the inbox", Silent, Approve(ApprovalScope::Once), None, false, ApprovalState::Used, "; elicitation said answered elsewhere"),
        case("silent, denied in the inbox", Silent, Deny, declined, false, ApprovalState::Declined, "; elicitation said answered elsewhere"),
    ]
}

#[tokio::test]
async fn every_answer_ends_the_question_as_documented() {
    let cases = cases();
    assert!(cases.len() >= 20);
    for case in cases {
        let world = world().await;
        let mut call = request("ann", "x");
        match case.client {
            Client::None => call.approver = None,
            Client::Silent => call.approver = Some(Arc::new(Silent)),
            Client::Says(answer) => call.approver = Some(Says::new(answer)),
        }
        if matches!(case.inbox, Inbox::Nothing) {
            world.home.file("ringfence.toml", WAIT);
        }
        let (outcome, ()) = tokio::join!(world.made(call), in_the_inbox(&world, case.inbox));
        let name = case.name;
        match case.code {
            None => {
                assert_eq!(outcome.status, Status::Done, "{name}: {outcome:?}");
                assert_eq!(outcome.value, Some(json!("x")), "{name}");
            }
            Some(code) => {
                assert_eq!(outcome.status, Status::Refused, "{name}: {outcome:?}");
                assert_eq!(error(&outcome).0, code, "{name}");
                let retryable = outcome.error.as_ref().unwrap().retryable;
                assert_eq!(retryable, case.retryable, "{name}");
            }
        }
        assert_eq!(runs(&world), usize::from(case.code.is_none()), "{name}");
        let [row] = all(&world).try_into().expect("one question");
        assert_eq!(row.state, case.state, "{name}");
        let note = note(&world, &outcome);
        assert!(note.contains(case.note), "{name}: {note}");
        assert!(note.contains(&row.id), "{name}: {note}");
        assert!(note.contains(&row.binding), "{name}: {note}");
        assert!(note.contains(" ms"), "{name}: {note}");
        if case.state == ApprovalState::Pending {
            assert!(!error(&outcome).1.contains(&row.id), "{name}");
        }
        world.assert_whole();
    }
}

async fn in_the_inbox(world: &World, what: Inbox) {
    let owner = Caller::owner();
    match what {
        Inbox::Nothing => {}
        Inbox::Approve(scope) => {
            let asked = first_pending(world).await;
            let inbox = world.engine.approvals();
            inbox.approve(&asked.id, &owner, scope, None).unwrap();
        }
        Inbox::Deny => {
            let asked = first_pending(world).await;
            world
                .engine
                .approvals()
                .deny(&asked.id, &owner, None)
                .unwrap();
        }
    }
}

/// A call that was refused while nobody answered runs when it is made again after
/// a yes: once.
#[tokio::test]
async fn a_later_call_uses_the_approval_once() {
    let world = world().await;
    let refused = world.made(request("ann", "x")).await;
    assert_eq!(error(&refused).0, "approval.pending");
    let asked = first_pending(&world).await;
    assert_eq!(asked.call_id, refused.call_id);
    // Asking again asks no second question.
    world.made(request("ann", "x")).await;
    assert_eq!(all(&world).len(), 1);
    let inbox = world.engine.approvals();
    // The beginning of the id will do.
    let given = inbox
        .approve(
            asked.id.get(..6).unwrap(),
            &Caller::owner(),
            ApprovalScope::Once,
            None,
        )
        .unwrap();
    assert_eq!(given.state, ApprovalState::Approved);
    assert_eq!(runs(&world), 0);
    let outcome = world.made(request("ann", "x")).await;
    assert_eq!(outcome.status, Status::Done);
    assert!(note(&world, &outcome).contains(&asked.id));
    let used = inbox.find(&asked.id).unwrap();
    assert_eq!((used.state, used.uses), (ApprovalState::Used, 1));
    assert_eq!(used.used_by_call, Some(outcome.call_id));
    let again = world.made(request("ann", "x")).await;
    assert_eq!(error(&again).0, "approval.pending");
    assert_eq!(runs(&world), 1);
    // It can be neither given again nor revoked.
    let twice = inbox.approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None);
    assert!(matches!(
        twice,
        Err(AnswerFault::Answered(ApprovalState::Used))
    ));
    let revoked = inbox.revoke(&asked.id, &Caller::owner());
    assert!(matches!(
        revoked,
        Err(AnswerFault::NotApproved(ApprovalState::Used))
    ));
}

/// A no counts for the next call as well, once, with what the person said.
#[tokio::test]
async fn a_later_call_is_told_of_the_declined_approval_once() {
    let world = world().await;
    world.made(request("ann", "x")).await;
    let asked = first_pending(&world).await;
    let inbox = world.engine.approvals();
    let note = "use \u{202e}staging";
    inbox
        .deny(&asked.id, &Caller::named("bob"), Some(note))
        .unwrap();
    let told = world.made(request("ann", "x")).await;
    let expected =
        "a person declined this call; it did not run, do not repeat it: use \\u{202e}staging";
    assert_eq!(error(&told), ("approval.declined", expected));
    assert_eq!(
        error(&world.made(request("ann", "x")).await).0,
        "approval.pending"
    );
    assert_eq!(all(&world).len(), 2);
    assert_eq!(runs(&world), 0);
}

/// The answer comes with another call.
#[tokio::test]
async fn a_deferred_answer_counts_for_its_own_caller_once() {
    let world = world().await;
    let ann = Caller::named("ann");
    let deferring = Says::new(ApprovalAnswer::Deferred);
    let ask = || async {
        let outcome = world.made(asking(deferring.clone())).await;
        assert_eq!(error(&outcome).0, "approval.pending");
        deferring.asked.lock().unwrap().last().unwrap().id.clone()
    };
    let id = ask().await;
    // The same call, made again without the answer, is the same question.
    assert_eq!(ask().await, id);
    let engine = &world.engine;
    let state = |id: &str| engine.approvals().find(id).unwrap().state;
    let yes = ApprovalAnswer::Approved(ApprovalScope::Once);
    let unknown = engine.answer("0", &ann, Channel::InputRequired, yes);
    assert!(matches!(unknown, Err(AnswerFault::Unknown)));
    let beginning = engine.answer(id.get(..8).unwrap(), &ann, Channel::InputRequired, yes);
    assert!(matches!(beginning, Err(AnswerFault::Unknown)));
    for other in [Caller::named("bob"), Caller::owner(), Caller::named("Ann")] {
        let others = engine
            .answer(&id, &other, Channel::InputRequired, yes)
            .unwrap_err();
        assert!(matches!(others, AnswerFault::NotYours));
        assert_eq!(others.to_string(), AnswerFault::Unknown.to_string());
    }
    // A client that brings more than the risk allows did not show this question: the
    // same as when it is asked within the call.
    let wide = ApprovalAnswer::Approved(ApprovalScope::Session);
    engine
        .answer(&id, &ann, Channel::InputRequired, wide)
        .unwrap();
    assert_eq!(state(&id), ApprovalState::Malformed);
    let told = world.made(asking(deferring.clone())).await;
    assert_eq!(error(&told).0, "approval.malformed");
    let id = ask().await;
    engine
        .answer(&id, &ann, Channel::InputRequired, yes)
        .unwrap();
    let replayed = engine.answer(&id, &ann, Channel::InputRequired, yes);
    assert!(matches!(
        replayed,
        Err(AnswerFault::Answered(ApprovalState::Approved))
    ));
    let outcome = world.made(asking(deferring.clone())).await;
    assert_eq!(outcome.status, Status::Done);
    assert!(note(&world, &outcome).contains("approved (once) by ann via input_required"));
    let replayed = engine.answer(&id, &ann, Channel::InputRequired, yes);
    assert!(matches!(
        replayed,
        Err(AnswerFault::Answered(ApprovalState::Used))
    ));

    // A no is told to the call that comes with it, and nobody is asked again.
    let id = ask().await;
    engine
        .answer(&id, &ann, Channel::InputRequired, ApprovalAnswer::Declined)
        .unwrap();
    let asked_before = deferring.asked.lock().unwrap().len();
    let told = world.made(asking(deferring.clone())).await;
    assert_eq!(error(&told).0, "approval.declined");
    assert_eq!(deferring.asked.lock().unwrap().len(), asked_before);

    // A yes no person saw leaves it to the inbox.
    let id = ask().await;
    engine
        .answer(
            &id,
            &ann,
            Channel::InputRequired,
            ApprovalAnswer::NotRendered,
        )
        .unwrap();
    assert_eq!(state(&id), ApprovalState::Pending);
    assert_eq!(runs(&world), 1);
}

/// A person who takes all the time there is, on a thread that does nothing else.
#[derive(Debug)]
struct AtTheLastMoment;

impl Approver for AtTheLastMoment {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async {
            // Sleeps: the answer comes when the call's wait is over.
            std::thread::sleep(Duration::from_millis(1_200));
            ApprovalAnswer::Approved(ApprovalScope::Once)
        })
    }
}

/// An answer that was taken counts, also when recording it outlasts the wait.
#[tokio::test]
async fn an_answer_at_the_last_moment_counts() {
    let world = world().await;
    let settings = format!("{WAIT}{NAMED}");
    world.home.file("ringfence.toml", &settings);
    let outcome = world.made(asking(Arc::new(AtTheLastMoment))).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    assert_eq!(runs(&world), 1);
}

/// An approval of one thing is none of another.
#[tokio::test]
async fn any_change_needs_a_new_approval() {
    let grant = |world: &World, caller: &str| {
        let asked = all(world).into_iter().find(|row| row.caller == caller);
        let inbox = world.engine.approvals();
        let id = asked.unwrap().id;
        inbox
            .approve(&id, &Caller::owner(), ApprovalScope::Once, None)
            .unwrap();
    };
    type Change = fn(&World) -> CallRequest;
    let changes: [(&str, Change); 5] = [
        ("arguments", |_| request("ann", "y")),
        ("caller", |_| request("bob", "x")),
        ("kind of caller", |_| {
            let mut call = request("ann", "x");
            call.caller.kind = model::caller::CallerKind::Owner;
            call
        }),
        ("policy", |world| {
            let toml = "[baseline]\ntimeout_ms = 29000\n";
            world.home.file("ringfence.toml", toml);
            request("ann", "x")
        }),
        ("settings", |world| {
            let toml = "[files]\nper_caller = true\n";
            world.home.file("ringfence.toml", toml);
            request("ann", "x")
        }),
    ];
    for (what, change) in changes {
        let world = world().await;
        world.made(request("ann", "x")).await;
        grant(&world, "ann");
        let outcome = world.made(change(&world)).await;
        assert_eq!(error(&outcome).0, "approval.pending", "{what}");
        assert_eq!(runs(&world), 0, "{what}");
        // Unused, it still counts for what it was given for.
        world.home.file("ringfence.toml", "");
        let outcome = world.made(request("ann", "x")).await;
        assert_eq!(outcome.status, Status::Done, "{what}");
    }
    let world = world().await;
    world.made(request("ann", "x")).await;
    grant(&world, "ann");
    let mut changed = writer();
    changed["description"] = json!("Writes more.");
    world.published(&changed).await;
    let outcome = world.made(request("ann", "x")).await;
    assert_eq!(error(&outcome).0, "approval.pending");
    assert_eq!(runs(&world), 0);
}

/// Someone who takes their time, in which something happens.
struct While(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for While {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("While")
    }
}

impl Approver for While {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        (self.0)();
        Box::pin(async { ApprovalAnswer::Approved(ApprovalScope::Once) })
    }
}

/// What was agreed to is gone when the person answers: nothing runs.
#[tokio::test]
async fn a_call_that_changed_during_its_approval_does_not_run() {
    let settings = [
        ("[access]\ndeny = [\"writer\"]\n", "tool.unknown"),
        ("[baseline]\ntimeout_ms = 29000\n", "approval.stale"),
        ("[exposure.exclude]\nnames = [\"writer\"]\n", "tool.unknown"),
    ];
    for (toml, code) in settings {
        let world = world().await;
        let path = world.home.path.join("ringfence.toml");
        let toml = format!("{toml}{NAMED}");
        let text = toml.clone();
        let change = While(Box::new(move || std::fs::write(&path, &text).unwrap()));
        let outcome = world.made(asking(Arc::new(change))).await;
        assert_eq!(error(&outcome).0, code, "{toml}");
        let note = note(&world, &outcome);
        assert!(note.contains("approved (once) by ann"), "{note}");
        assert_eq!(runs(&world), 0, "{toml}");
    }
    let world = world().await;
    let path = world.home.path.join("tools/writer.json");
    let edit = While(Box::new(move || {
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("return text", "return 1")).unwrap();
    }));
    let outcome = world.made(asking(Arc::new(edit))).await;
    assert_eq!(error(&outcome).0, "tool.unknown");
    assert_eq!(runs(&world), 0);
}

/// Somebody else must approve: the caller's own client is not asked, and its
/// answer, wherever it comes in, is none.
#[tokio::test]
async fn callers_cannot_approve_their_own_calls_when_separate() {
    let world = world().await;
    let toml = "[approvals]\nseparate = true\nwait_seconds = 1\n";
    world.home.file("ringfence.toml", toml);
    let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
    let client = Says::new(ApprovalAnswer::Approved(ApprovalScope::Once));
    let call = asking(client.clone());
    let refused = world.made(call.clone()).await;
    assert_eq!(error(&refused).0, "approval.pending");
    assert!(client.asked.lock().unwrap().is_empty());
    let asked = first_pending(&world).await;
    let inbox = world.engine.approvals();
    for own in [ann.clone(), Caller::named("ANN")] {
        let fault = inbox.approve(&asked.id, &own, ApprovalScope::Once, None);
        assert!(matches!(fault, Err(AnswerFault::Separate)));
    }
    let fault = world.engine.answer(
        &asked.id,
        &ann,
        Channel::InputRequired,
        ApprovalAnswer::Approved(ApprovalScope::Once),
    );
    assert!(matches!(fault, Err(AnswerFault::Separate)));
    assert_eq!(runs(&world), 0);
    inbox
        .approve(&asked.id, &bob, ApprovalScope::Once, None)
        .unwrap();
    let outcome = world.made(call.clone()).await;
    assert_eq!(outcome.status, Status::Done);
    assert!(note(&world, &outcome).contains("by bob via inbox"));

    // What a client gave before it was forbidden counts no more.
    world.home.file("ringfence.toml", "");
    let mut scoped = asking(Says::new(ApprovalAnswer::Approved(
        ApprovalScope::SameArguments,
    )));
    assert_eq!(world.made(scoped.clone()).await.status, Status::Done);
    scoped.approver = None;
    assert_eq!(world.made(scoped.clone()).await.status, Status::Done);
    world.home.file("ringfence.toml", toml);
    let refused = world.made(scoped).await;
    assert_eq!(error(&refused).0, "approval.pending");
    assert_eq!(runs(&world), 3);
}

/// The owner at a terminal is somebody else for a caller, and not for themself.
#[tokio::test]
async fn the_terminal_is_the_owners() {
    let terminal = Says::new(ApprovalAnswer::Approved(ApprovalScope::Once));
    let world = World::with(Home::new(), |settings| {
        settings.approver = Some(terminal.clone());
    });
    world.published(&writer()).await;
    let toml = "[approvals]\nseparate = true\nwait_seconds = 1\n";
    world.home.file("ringfence.toml", toml);
    let mut call = request("ann", "x");
    call.approver = None;
    let outcome = world.made(call.clone()).await;
    assert_eq!(outcome.status, Status::Done);
    assert!(note(&world, &outcome).contains("approved (once) by owner via terminal"));
    call.caller = Caller::owner();
    let outcome = world.made(call).await;
    assert_eq!(error(&outcome).0, "approval.pending");
    assert_eq!(terminal.asked.lock().unwrap().len(), 1);
    let own = first_pending(&world).await;
    let fault =
        world
            .engine
            .approvals()
            .approve(&own.id, &Caller::owner(), ApprovalScope::Once, None);
    assert!(matches!(fault, Err(AnswerFault::Separate)));
    assert_eq!(runs(&world), 1);
}

/// The client takes its call back, or is gone, while it is asked: the question is
/// in the inbox, and the same call made again is the same question.
#[tokio::test]
async fn a_cancelled_call_leaves_its_question_to_the_inbox() {
    let world = world().await;
    let call = asking(Arc::new(Silent));
    let cancel = call.cancel.clone();
    let stop = async {
        first_pending(&world).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(world.made(call), stop);
    assert_eq!(outcome.status, Status::Cancelled);
    let asked = first_pending(&world).await;
    let place = || {
        let row = world.engine.store().approvals().get(&asked.id).unwrap();
        row.unwrap().place
    };
    while place() != store::approvals::WaitingPlace::Inbox {
        tokio::task::yield_now().await;
    }
    let again = world.made(request("ann", "x")).await;
    assert_eq!(error(&again).0, "approval.pending");
    assert_eq!(all(&world).len(), 1);
    let inbox = world.engine.approvals();
    inbox
        .approve(&asked.id, &Caller::owner(), ApprovalScope::Once, None)
        .unwrap();
    let outcome = world.made(request("ann", "x")).await;
    assert_eq!(outcome.status, Status::Done);
    assert_eq!(runs(&world), 1);
}
