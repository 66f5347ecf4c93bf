//! Trust in force: a clock that the test moves, histories as the audit has them, and
//! callers who try to get more than they earned.

use engine::approve::{AnswerFault, ApprovalAnswer, ApprovalScope, Channel, Listing};
use engine::call::CallRequest;
use engine::trust::TrackReport;
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalState;
use model::limits;
use model::record::audit::{Closing, Opening, Status};
use serde_json::json;

use crate::world::{Clockwork, DAY_MS, Home, Says, World, document, error};

/// Small steps, so that a test can take them.
const MILESTONE: &str = "
[trust]
strategy = \"milestone\"
initial_level = \"sandboxed\"
[trust.milestones.sandboxed_to_restricted]
tasks_completed = 2
quality_score_min = 7.0
[trust.milestones.restricted_to_standard]
tasks_completed = 2
quality_score_min = 7.0
time_active_days = 2
[trust.milestones.standard_to_elevated]
tasks_completed = 2
quality_score_min = 7.0
clean_history_days = 1
time_active_days = 0
requires_human_approval = true
";

async fn world(config: &str) -> (World, Clockwork) {
    let home = Home::new();
    home.file("ringfence.toml", config);
    let clock = Clockwork::new();
    let world = World::with(home, |settings| settings.clock = Some(clock.clock()));
    world.published(&plain()).await;
    let web = json!({"category": "WEB"});
    world.published(&document("web", "return 'web'", web)).await;
    (world, clock)
}

fn plain() -> serde_json::Value {
    document("plain", "return 1", json!({"category": "TEXT"}))
}

fn track(world: &World, caller: &str) -> TrackReport {
    let report = world.engine.trust().show(caller).unwrap().unwrap();
    report.tracks.into_iter().next().unwrap()
}

fn questions(world: &World) -> Vec<engine::approve::Listed> {
    world.engine.approvals().list(Listing::Pending).unwrap()
}

/// Does a task on each of so many days.
async fn works(world: &World, clock: &Clockwork, days: usize) {
    for _ in 0..days {
        let outcome = world.call("plain", json!({})).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        clock.pass_days(1);
    }
}

async fn web(world: &World) -> Option<&'static str> {
    let outcome = world.call("web", json!({})).await;
    outcome.error.map(|error| error.reason.code())
}

/// Writes an attempt down as a call would.
async fn attempt(world: &World, number: usize, at_ms: i64, status: Status) {
    let audit = world.engine.store().audit();
    let opening = Opening {
        call_id: format!("made-up-{number}"),
        parent_id: None,
        at_ms,
        origin: Origin::Mcp,
        caller: "ann".to_owned(),
        tool: "plain".to_owned(),
        arguments_digest: String::new(),
    };
    let row = audit.open(opening).await.unwrap();
    let closing = Closing::bare(at_ms, status, None);
    audit.close(row, closing).await.unwrap();
}

/// Level by level with time and work; what is earned is in force at once, in lists
/// and calls, after a restart and in another process.
#[tokio::test]
async fn earned_and_lost_trust_apply_to_the_next_call() {
    let (world, clock) = world(MILESTONE).await;
    let names = |world: &World| -> Vec<String> {
        let offered = world
            .engine
            .callable_tools(&Caller::named("ann"), Origin::Mcp);
        let names = offered.iter().map(|one| one.usable.document.name.clone());
        names.collect()
    };
    // Whoever was never seen starts at the bottom; the owner is not reckoned.
    assert!(!names(&world).contains(&"web".to_owned()));
    assert_eq!(web(&world).await, Some("tool.unknown"));
    assert_eq!(world.own_call("web", json!({})).await.status, Status::Done);
    works(&world, &clock, 2).await;
    assert_eq!(web(&world).await, None, "restricted has the web");
    assert!(names(&world).contains(&"web".to_owned()));
    assert_eq!(track(&world, "ann").level, "restricted");
    let world = world.again(|settings| settings.clock = Some(clock.clock()));
    assert_eq!(web(&world).await, None, "after a restart");
    // Idle for a month: one level. The same again: nothing below.
    clock.pass_days(31);
    let other = world.beside(|settings| settings.clock = Some(clock.clock()));
    let request = || CallRequest::new(Caller::named("ann"), Origin::Mcp, "web", json!({}));
    let there = other.call(request()).await.into_inner();
    assert_eq!(
        error(&there).0,
        "tool.unknown",
        "lost before the first call"
    );
    assert_eq!(web(&world).await, Some("tool.unknown"), "for every process");
    assert_eq!(track(&world, "ann").level, "sandboxed");
    world.assert_whole();
}

/// A paused caller gets nothing computed for it: it could make work with every call.
#[tokio::test]
async fn trust_of_a_paused_caller_is_not_recomputed() {
    let (world, clock) = world(MILESTONE).await;
    works(&world, &clock, 1).await;
    let callers = world.engine.store().callers();
    let evaluated = || callers.get("ann").unwrap().unwrap().evaluated_ms;
    let before = evaluated();
    assert!(before.is_some());
    let owner = Caller::owner();
    world.engine.callers().pause("ann", &owner, None).unwrap();
    clock.pass_days(2);
    assert_eq!(web(&world).await, Some("caller.paused"));
    assert_eq!(evaluated(), before);
    // Positive control: the next call of a caller that goes on is preceded by it.
    world.engine.callers().resume("ann", &owner).unwrap();
    web(&world).await;
    assert!(evaluated() > before);
}

/// What lists show is what a call would find at that moment, with no call between;
/// and looking changes nothing.
#[tokio::test]
async fn shown_trust_is_what_the_next_call_uses() {
    let (world, clock) = world(MILESTONE).await;
    let ann = Caller::named("ann");
    let shown = |engine: &engine::Engine| {
        let names = |offered: Vec<engine::callable::CallableTool>| -> Vec<String> {
            let names = offered.iter().map(|one| one.usable.document.name.clone());
            names.filter(|name| name == "web").collect()
        };
        let offered = names(engine.callable_tools(&ann, Origin::Mcp));
        assert_eq!(names(engine.listed(&ann)), offered);
        let request = CallRequest::new(ann.clone(), Origin::Mcp, "web", json!({}));
        let told = engine.explain(&request).told;
        assert_eq!(told.is_none(), !offered.is_empty(), "{told:?}");
        let now = engine.current_for(&ann).unwrap();
        let rights = now.config.access.rights(&ann, None);
        let known = engine.callers().find("ann").unwrap();
        let listed = engine.callers().list().unwrap();
        assert_eq!(listed.first(), known.as_ref());
        let earned = known.map(|known| known.earned.unwrap());
        (
            !offered.is_empty(),
            earned,
            rights.level.map(model::word::Word::word),
        )
    };
    let nobody = (false, None, Some("sandboxed"));
    assert_eq!(shown(&world.engine), nobody, "never seen");
    assert_eq!(
        world.engine.callers().list().unwrap(),
        [],
        "and not by looking"
    );
    works(&world, &clock, 2).await;
    // Two tasks are done, and nobody has reckoned since.
    let risen = (true, Some("restricted"), Some("restricted"));
    assert_eq!(shown(&world.engine), risen, "before the call that keeps it");
    assert_eq!(web(&world).await, None);
    assert_eq!(shown(&world.engine), risen);
    let rows = || world.engine.store().callers().all().unwrap();
    let (before, asked) = (rows(), questions(&world));
    clock.pass_days(29);
    assert_eq!(shown(&world.engine), risen, "not yet");
    clock.pass_days(1);
    let fallen = (false, Some("sandboxed"), Some("sandboxed"));
    assert_eq!(shown(&world.engine), fallen, "a month without a call");
    let other = world.beside(|settings| settings.clock = Some(clock.clock()));
    assert_eq!(shown(&other), fallen, "in another process, too");
    assert_eq!(
        (rows(), questions(&world)),
        (before, asked),
        "nothing was kept"
    );
    assert_eq!(web(&world).await, Some("tool.unknown"));
    assert_eq!(shown(&world.engine), fallen);
    assert_eq!(track(&world, "ann").level, "sandboxed");
}

/// What cannot be reckoned is not shown, as a call would not get in.
#[tokio::test]
async fn tools_are_not_listed_while_trust_cannot_be_computed() {
    let (world, clock) = world(MILESTONE).await;
    works(&world, &clock, 1).await;
    let ann = Caller::named("ann");
    assert!(!world.engine.callable_tools(&ann, Origin::Mcp).is_empty());
    let counter = world.home.path.join("callers.version");
    std::fs::remove_file(&counter).unwrap();
    std::fs::create_dir(&counter).unwrap();
    assert!(world.engine.callable_tools(&ann, Origin::Mcp).is_empty());
    let request = CallRequest::new(ann, Origin::Mcp, "plain", json!({}));
    let told = world.engine.explain(&request).told.unwrap();
    assert_eq!(told.reason.code(), "caller.unavailable");
    let refused = world.made(request).await;
    assert_eq!(error(&refused).0, "caller.unavailable");
}

/// Nobody looks for four months: as much is lost as if somebody had looked every day.
#[tokio::test]
async fn inactivity_lowers_trust_by_a_level_a_month() {
    let config = MILESTONE.replace("\"sandboxed\"\n[", "\"standard\"\n[");
    let (world, clock) = world(&config).await;
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    assert_eq!(track(&world, "ann").level, "standard");
    clock.pass_days(65);
    assert_eq!(web(&world).await, Some("tool.unknown"));
    assert_eq!(track(&world, "ann").level, "sandboxed");
}

/// An error rate that is too high costs a level within a few calls, not at the end
/// of the hour.
#[tokio::test]
async fn errors_cost_a_level_at_once() {
    let config = MILESTONE.replace("\"sandboxed\"\n[", "\"restricted\"\n[");
    let (world, _) = world(&config).await;
    let throws = document(
        "throws",
        "if (n > 1) throw new Error('no'); return n",
        json!({"category": "TEXT", "params": [
            {"name": "n", "type": "NUMBER", "required": true, "testValue": "1"}]}),
    );
    world.published(&throws).await;
    assert_eq!(web(&world).await, None);
    for _ in 0..12 {
        let failed = world.call("throws", json!({"n": 2})).await;
        assert_eq!(error(&failed).0, "tool.threw");
    }
    assert_eq!(web(&world).await, Some("tool.unknown"));
    let lines = track(&world, "ann").lines.join("\n");
    assert!(lines.contains("level sandboxed since 0 days"), "{lines}");
}

async fn at_standard() -> (World, Clockwork) {
    let (world, clock) = world(MILESTONE).await;
    works(&world, &clock, 8).await;
    let track = track(&world, "ann");
    assert_eq!(track.level, "standard", "{track:?}");
    (world, clock)
}

/// The last step is a question, and only somebody else than the caller answers it.
#[tokio::test]
async fn the_last_trust_step_needs_a_person() {
    let (world, clock) = at_standard().await;
    works(&world, &clock, 20).await;
    assert_eq!(track(&world, "ann").level, "standard", "never by itself");
    let asked = questions(&world);
    assert_eq!(asked.len(), 1, "asked once: {asked:?}");
    let question = &asked[0];
    assert_eq!(question.tool, "trust:promote");
    assert_eq!(question.scopes, [ApprovalScope::Once]);
    let prompt = "Raise the level of ann from standard to elevated for all tools?";
    assert_eq!(question.prompt, prompt);
    let (ann, owner) = (Caller::named("ann"), Caller::owner());
    let inbox = world.engine.approvals();
    // Attack: the caller's own client brings a yes, in any shape it has.
    for answer in [
        ApprovalAnswer::Approved(ApprovalScope::Once),
        ApprovalAnswer::Declined,
    ] {
        let fault = world
            .engine
            .answer(&question.id, &ann, Channel::InputRequired, answer);
        assert!(matches!(fault, Err(AnswerFault::NotYours)), "{fault:?}");
    }
    let own = inbox.approve(&question.id, &ann, ApprovalScope::Once, None);
    assert!(matches!(own, Err(AnswerFault::Separate)), "{own:?}");
    // Attack: a call of a tool by that name, to have it approved as a call.
    let called = world.call("trust:promote", json!({"to": "elevated"})).await;
    assert_eq!(error(&called).0, "tool.unknown");
    assert_eq!(track(&world, "ann").level, "standard");
    let done = inbox.approve(&question.id, &owner, ApprovalScope::Once, Some("well done"));
    assert_eq!(done.unwrap().state, ApprovalState::Used);
    let raised = track(&world, "ann");
    assert_eq!(raised.level, "elevated");
    assert_eq!(raised.since_ms, clock.now_ms());
    let notices = world
        .engine
        .store()
        .audit()
        .notices(&store::Filter::default());
    let notices: Vec<_> = notices
        .unwrap()
        .into_iter()
        .map(|entry| entry.notice)
        .collect();
    let raise = notices
        .iter()
        .find(|notice| notice.details.get("to").is_some_and(|to| to == "elevated"));
    let raise = raise.expect("a notice about the step");
    assert_eq!(
        (raise.act.word(), raise.by.as_str()),
        ("trust.changed", "owner")
    );
    assert_eq!(raise.about.as_deref(), Some("ann"));
    let config = &world.engine.registry().current().config;
    let rights = config.access.rights(&ann, None);
    assert_eq!(
        rights.level.map(|level| format!("{level:?}")),
        Some("Elevated".to_owned())
    );
    let again = inbox.approve(&question.id, &owner, ApprovalScope::Once, None);
    assert!(
        matches!(again, Err(AnswerFault::Answered(ApprovalState::Used))),
        "{again:?}"
    );
    let world = world.again(|settings| settings.clock = Some(clock.clock()));
    assert_eq!(track(&world, "ann").level, "elevated");
    // What a person gave is lost like anything else.
    clock.pass_days(31);
    assert_eq!(track(&world, "ann").level, "standard");
}

/// A no counts for a month. A yes that comes too late raises nothing.
#[tokio::test]
async fn a_declined_promotion_stays_declined_and_a_late_approval_does_not_count() {
    let (world, clock) = at_standard().await;
    works(&world, &clock, 3).await;
    track(&world, "ann");
    let inbox = world.engine.approvals();
    let owner = Caller::owner();
    let id = questions(&world)[0].id.clone();
    inbox.deny(&id, &owner, Some("not yet")).unwrap();
    works(&world, &clock, 5).await;
    let lines = track(&world, "ann").lines.join("\n");
    assert!(lines.ends_with("a person declined"), "{lines}");
    assert_eq!(questions(&world), []);
    works(&world, &clock, 26).await;
    track(&world, "ann");
    let id = questions(&world)[0].id.clone();
    // Now the caller fails again and again, before anybody looks at the question.
    clock.pass_days(20);
    for number in 0..12 {
        attempt(&world, number, clock.now_ms(), Status::Failed).await;
    }
    clock.pass_ms(1);
    let late = inbox.approve(&id, &owner, ApprovalScope::Once, None);
    assert!(matches!(late, Err(AnswerFault::TrustChanged)), "{late:?}");
    assert_eq!(inbox.find(&id).unwrap().state, ApprovalState::Revoked);
    assert_eq!(track(&world, "ann").level, "restricted");
}

/// A thousand easy calls in an hour are one task and buy nothing; nor do they push
/// an error out of sight.
#[tokio::test]
async fn many_easy_calls_neither_raise_trust_nor_hide_errors() {
    let (world, clock) = world(MILESTONE).await;
    assert_eq!(world.call("plain", json!({})).await.status, Status::Done);
    let now = clock.now_ms();
    for number in 0..1_000 {
        attempt(&world, number, now + 1, Status::Done).await;
    }
    clock.pass_ms(3_600_000);
    let bought = track(&world, "ann");
    assert_eq!(bought.level, "sandboxed");
    let lines = bought.lines.join("\n");
    assert!(
        lines.contains("1001 done, 0 failed, 0 denied: 1 tasks"),
        "{lines}"
    );
    assert!(lines.contains("it takes 2 tasks, there are 1"), "{lines}");
    assert_eq!(web(&world).await, Some("tool.unknown"));

    let (world, clock) = at_standard().await;
    works(&world, &clock, 1).await;
    let now = clock.now_ms();
    attempt(&world, 0, now, Status::Failed).await;
    for number in 1..=limits::TRUST_RECORDS_MAX {
        attempt(&world, number, now + 1, Status::Done).await;
    }
    clock.pass_ms(DAY_MS / 2);
    let lines = track(&world, "ann").lines.join("\n");
    assert!(lines.contains("1 days without an error"), "{lines}");
    // What was asked before the error is not there to be had any more.
    let inbox = world.engine.approvals();
    let id = questions(&world)[0].id.clone();
    let late = inbox.approve(&id, &Caller::owner(), ApprovalScope::Once, None);
    assert!(matches!(late, Err(AnswerFault::TrustChanged)), "{late:?}");
    clock.pass_days(1);
    works(&world, &clock, 2).await;
    track(&world, "ann");
    assert_eq!(questions(&world).len(), 1, "asked again when it is");
}

/// What people say counts, and is explained.
#[tokio::test]
async fn feedback_counts_against_what_was_done() {
    let (world, clock) = world(MILESTONE).await;
    works(&world, &clock, 1).await;
    let owner = Caller::owner();
    let say = |score, category| {
        let trust = world.engine.trust();
        trust
            .feedback("Ann", &owner, score, category, Some("hm"))
            .unwrap()
    };
    assert!(say(3, None));
    works(&world, &clock, 2).await;
    let poor = track(&world, "ann");
    assert_eq!(poor.level, "sandboxed");
    let lines = poor.lines.join("\n");
    assert!(lines.contains("quality 3.00 of 10"), "{lines}");
    for _ in 0..9 {
        assert!(say(9, None));
    }
    assert_eq!(track(&world, "ann").level, "restricted");
    // What is kept about a caller does not grow for ever.
    for _ in 0..=limits::TRUST_FEEDBACK_MAX {
        assert!(say(1, Some("web")));
    }
    let kept = world.engine.store().callers().feedback("ann").unwrap();
    assert_eq!(kept.len(), limits::TRUST_FEEDBACK_MAX);
}

/// Trust that is off, or turned off, leaves what the operator gave.
#[tokio::test]
async fn trust_that_is_off_takes_nothing() {
    let (world, clock) = world("").await;
    assert_eq!(web(&world).await, None);
    assert!(
        world
            .engine
            .trust()
            .show("ann")
            .unwrap()
            .unwrap()
            .tracks
            .is_empty()
    );
    world.home.file("ringfence.toml", MILESTONE);
    assert_eq!(web(&world).await, Some("tool.unknown"));
    works(&world, &clock, 1).await;
    world.home.file("ringfence.toml", "");
    assert_eq!(web(&world).await, None);
    assert_eq!(
        world.engine.trust().show("nobody").unwrap().unwrap().tracks,
        []
    );
    world.home.file("ringfence.toml", MILESTONE);
    assert_eq!(world.engine.trust().show("nobody").unwrap(), None);
}

/// Each category has a level of its own, and what is earned in one is not in another.
#[tokio::test]
async fn categories_are_earned_one_by_one() {
    let config = "[trust]\nstrategy = \"per_category\"\ninitial_level = \"restricted\"\n\
                  [trust.initial_levels]\nWEB = \"sandboxed\"\nTEXT = \"sandboxed\"\n\
                  [trust.milestones.sandboxed_to_restricted]\ntasks_completed = 1\n\
                  quality_score_min = 5.0\n";
    let (world, clock) = world(config).await;
    assert_eq!(web(&world).await, Some("tool.unknown"));
    works(&world, &clock, 2).await;
    let report = world.engine.trust().show("ann").unwrap().unwrap();
    let level = |category: &str| {
        let mut tracks = report.tracks.iter();
        let found = tracks.find(|track| track.category.as_deref() == Some(category));
        found.unwrap().level
    };
    assert_eq!(level("TEXT"), "restricted");
    assert_eq!(level("WEB"), "sandboxed");
    assert_eq!(web(&world).await, Some("tool.unknown"));
}

/// A tool may be called what questions about trust are called; it is a tool.
#[tokio::test]
async fn a_tool_named_like_a_trust_question_is_an_ordinary_tool() {
    let (world, _) = world(MILESTONE).await;
    let more = json!({"category": "TEXT", "humanInTheLoop": {"mode": "REQUIRED"}});
    let tool = document("trust:promote", "return 'ran'", more);
    world.home.tool("odd", &tool);
    let passed = world.engine.publish("trust:promote", Origin::Cli).await;
    assert!(passed.unwrap().ok);
    let mut request = CallRequest::new(
        Caller::named("ann"),
        Origin::Cli,
        "trust:promote",
        json!({}),
    );
    request.approver = Some(Says::new(ApprovalAnswer::Deferred));
    let waiting = world.made(request.clone()).await;
    assert_eq!(error(&waiting).0, "approval.pending");
    let id = questions(&world)[0].id.clone();
    let ann = Caller::named("ann");
    let answer = ApprovalAnswer::Approved(ApprovalScope::Once);
    world
        .engine
        .answer(&id, &ann, Channel::InputRequired, answer)
        .unwrap();
    assert_eq!(world.made(request).await.value, Some(json!("ran")));
    assert_eq!(track(&world, "ann").level, "sandboxed");
}
