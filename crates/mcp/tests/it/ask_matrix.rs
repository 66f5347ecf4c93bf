//! The matrix of approvals: every way a question can end, over every way a client can
//! speak. `TABLE` has them all; each cell says what the client is told, how often the
//! tool ran, where each question stands and how many the inbox shows, at every step.
//! Where a thing cannot happen in an era, the cell says why, and what is nearest to it
//! is tried instead.

use std::time::Duration;

use futures_util::future::join_all;
use model::caller::Caller;
use model::govern::approval::ApprovalState;
use serde_json::{Value, json};

use ApprovalState::{Approved, Declined, Dismissed, Expired, Malformed, Pending, Used};

use crate::ask_scene::{Asked, Column, Fact, Scene, TOOL, Visitor, guarded, read, to, yes};

/// What may come of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// A person says yes: the control that shows that anything can run at all.
    Yes,
    /// The client cannot ask.
    Unable,
    Declined,
    Dismissed,
    /// No answer comes within the wait.
    TimedOut,
    /// The client is gone while it is asked, or never comes back.
    Vanished,
    /// An answer faster than anybody reads.
    Machine,
    /// Answers that do not fit the form.
    Malformed,
    /// The same answer once more, and another after the first.
    Replayed,
    /// Another caller brings the answer.
    Stranger,
    /// The answer comes with other arguments, or another tool.
    OtherArguments,
    /// The tool changes before the answer comes.
    OtherDocument,
    /// The caller may not approve its own calls.
    Separate,
    /// The same, set while the caller's client is being asked.
    SeparateNow,
    /// Its owner named no client of this caller.
    Unnamed,
    /// The client is named, for less than this risk.
    TooRisky,
    /// The same, set while the client is being asked.
    TooRiskyNow,
    /// The answer comes too late.
    Expired,
}

/// One step of a cell: told, runs, questions, shown in the inbox.
type Step = (&'static str, usize, &'static [ApprovalState], usize);

/// What must be seen in a cell.
#[derive(Clone, Copy)]
struct Cell {
    /// Why the thing itself cannot happen here, if it cannot.
    instead: Option<&'static str>,
    steps: &'static [Step],
}

const fn plain(steps: &'static [Step]) -> Cell {
    Cell {
        instead: None,
        steps,
    }
}

const fn instead(why: &'static str, steps: &'static [Step]) -> Cell {
    Cell {
        instead: Some(why),
        steps,
    }
}

const fn alike(cell: Cell) -> [Cell; 4] {
    [cell; 4]
}

/// The same over HTTP and over pipes.
const fn by_era(legacy: Cell, modern: Cell) -> [Cell; 4] {
    [legacy, legacy, modern, modern]
}

/// The table, in the order of [`Column::ALL`].
const TABLE: [(Row, [Cell; 4]); 18] = [
    (Row::Yes, alike(plain(&[("ran", 1, &[Used], 0)]))),
    (
        Row::Unable,
        alike(plain(&[
            ("approval.pending", 0, &[Pending], 1),
            ("approval.pending", 0, &[Pending], 1),
            ("approval.pending", 0, &[Pending], 1),
            ("ran", 1, &[Used], 0),
        ])),
    ),
    (
        Row::Declined,
        alike(plain(&[("approval.declined", 0, &[Declined], 0)])),
    ),
    (
        Row::Dismissed,
        alike(plain(&[("approval.dismissed", 0, &[Dismissed], 0)])),
    ),
    (
        Row::TimedOut,
        by_era(
            plain(&[
                ("approval.timed_out", 0, &[Pending], 1),
                ("nothing", 0, &[Pending], 1),
            ]),
            instead(
                "the call has ended with its question, so no wait can run out; made again \
                 after that time, it comes with the same question",
                &[("asked", 0, &[Pending], 1)],
            ),
        ),
    ),
    (
        Row::Vanished,
        [
            plain(&[
                ("approval.timed_out", 0, &[Pending], 1),
                ("call.cancelled", 0, &[Pending, Pending], 2),
            ]),
            plain(&[("call.cancelled", 0, &[Pending], 1)]),
            plain(&[
                ("nothing", 0, &[Pending], 1),
                ("nothing", 0, &[Approved], 0),
            ]),
            plain(&[
                ("nothing", 0, &[Pending], 1),
                ("nothing", 0, &[Approved], 0),
            ]),
        ],
    ),
    (
        Row::Machine,
        alike(plain(&[
            ("approval.pending", 0, &[Pending], 1),
            ("ran", 1, &[Used], 0),
            ("ran", 2, &[Used, Used], 0),
        ])),
    ),
    (
        Row::Malformed,
        alike(plain(&[
            ("approval.malformed", 0, &[Malformed], 0),
            ("approval.malformed", 0, &[Malformed; 2], 0),
            ("approval.malformed", 0, &[Malformed; 3], 0),
            ("approval.malformed", 0, &[Malformed; 4], 0),
            ("approval.malformed", 0, &[Malformed; 5], 0),
            ("approval.malformed", 0, &[Malformed; 6], 0),
            ("approval.malformed", 0, &[Malformed; 7], 0),
        ])),
    ),
    (
        Row::Replayed,
        by_era(
            instead(
                "an answer names its question by the id of a request, and no state travels \
                 that could be kept; the same answer is sent again under that id",
                &[
                    ("ran", 1, &[Used], 0),
                    ("nothing", 1, &[Used], 0),
                    ("approval.declined", 1, &[Used, Declined], 0),
                    ("nothing", 1, &[Used, Declined], 0),
                ],
            ),
            plain(&[
                ("ran", 1, &[Used], 0),
                ("approval.state", 1, &[Used], 0),
                ("approval.declined", 1, &[Used, Declined], 0),
                ("approval.state", 1, &[Used, Declined], 0),
            ]),
        ),
    ),
    (
        Row::Stranger,
        by_era(
            instead(
                "no state travels that could be stolen, but the ids of questions can be \
                 guessed: they are answered from another session, and in the caller's own \
                 by another name where the transport knows names",
                &[
                    ("nothing", 0, &[Pending], 1),
                    ("refused", 0, &[Pending], 1),
                    ("ran", 1, &[Used], 0),
                ],
            ),
            plain(&[
                ("approval.state", 0, &[Pending], 1),
                ("approval.state", 0, &[Pending], 1),
                ("ran", 1, &[Used], 0),
            ]),
        ),
    ),
    (
        Row::OtherArguments,
        by_era(
            instead(
                "the arguments of an open call cannot change; a yes to one call is tried on \
                 the one that waits beside it",
                &[
                    ("ran", 1, &[Used, Pending], 1),
                    ("approval.timed_out", 1, &[Used, Pending], 1),
                    ("approval.timed_out", 1, &[Used, Approved, Pending], 1),
                    ("ran", 2, &[Used, Used, Pending], 1),
                ],
            ),
            plain(&[
                ("approval.state", 0, &[Pending], 1),
                ("approval.state", 0, &[Pending], 1),
                ("approval.state", 0, &[Pending], 1),
                ("ran", 1, &[Used], 0),
            ]),
        ),
    ),
    (
        Row::OtherDocument,
        by_era(
            plain(&[("approval.stale", 0, &[Used], 0)]),
            plain(&[("asked", 0, &[Approved, Pending], 1)]),
        ),
    ),
    (
        Row::Separate,
        alike(plain(&[
            ("approval.pending", 0, &[Pending], 1),
            ("refused", 0, &[Pending], 1),
            ("ran", 1, &[Used], 0),
        ])),
    ),
    (
        Row::SeparateNow,
        by_era(
            plain(&[("approval.unavailable", 0, &[Approved], 0)]),
            plain(&[("approval.state", 0, &[Pending], 1)]),
        ),
    ),
    (
        Row::Unnamed,
        alike(plain(&[
            ("approval.pending", 0, &[Pending], 1),
            ("ran", 1, &[Used], 0),
        ])),
    ),
    (
        Row::TooRisky,
        alike(plain(&[
            ("approval.pending", 0, &[Pending], 1),
            ("ran", 1, &[Used], 0),
        ])),
    ),
    (
        Row::TooRiskyNow,
        by_era(
            plain(&[("approval.unavailable", 0, &[Approved], 0)]),
            plain(&[("approval.state", 0, &[Pending], 1)]),
        ),
    ),
    (
        Row::Expired,
        by_era(
            plain(&[
                ("approval.timed_out", 0, &[Expired], 0),
                ("nothing", 0, &[Expired], 0),
            ]),
            plain(&[("approval.state", 0, &[Expired], 0)]),
        ),
    ),
];

/// Plays a row over every column.
async fn plays(row: Row) {
    let mut wrong = Vec::new();
    let (_, cells) = TABLE.iter().find(|(listed, _)| *listed == row).unwrap();
    let all = Column::ALL.map(|column| played(row, column));
    let all = join_all(all).await.into_iter();
    for ((column, cell), seen) in Column::ALL.into_iter().zip(cells).zip(all) {
        let fact = |(told, runs, states, shown): &Step| Fact {
            told: (*told).to_owned(),
            runs: *runs,
            states: states.to_vec(),
            shown: *shown,
        };
        let expected: Vec<_> = cell.steps.iter().map(fact).collect();
        if seen != expected {
            wrong.push(format!("over {column:?}\n saw {seen:?}\n not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{row:?} {}", wrong.join("\n"));
}

async fn played(row: Row, column: Column) -> Vec<Fact> {
    let approvals = match row {
        // Longer than the five seconds a call may take to end when its client has left.
        Row::Vanished => "wait_seconds = 8\n",
        Row::Separate => "wait_seconds = 1\nseparate = true\n",
        Row::Unnamed => "wait_seconds = 1\n[callers.other]\nanswers = \"L5\"\n",
        Row::TooRisky => {
            "wait_seconds = 1\n[callers.ann]\nanswers = \"L3\"\n[callers.stdio]\nanswers = \"L3\"\n"
        }
        Row::Expired => "wait_seconds = 20\nexpire_seconds = 1\n",
        // A late answer must still find the question.
        Row::TimedOut | Row::Unable => "wait_seconds = 1\n",
        // Longer than a person reads.
        Row::Machine | Row::OtherArguments => "wait_seconds = 4\n",
        Row::Yes
        | Row::Declined
        | Row::Dismissed
        | Row::Malformed
        | Row::Replayed
        | Row::Stranger
        | Row::OtherDocument
        | Row::TooRiskyNow
        | Row::SeparateNow => "wait_seconds = 20\n",
    };
    if row == Row::Machine {
        return machine(column, approvals).await;
    }
    let mut scene = Scene::new(&format!("{row:?}"), column, approvals).await;
    let stage = &mut scene;
    match row {
        Row::Yes => says(stage, yes()).await,
        Row::Declined => says(stage, json!({"action": "decline"})).await,
        Row::Dismissed => says(stage, json!({"action": "cancel"})).await,
        Row::Unable => unable(stage).await,
        Row::TimedOut if column.is_modern() => timed_out_modern(stage).await,
        Row::TimedOut => timed_out(stage).await,
        Row::Vanished => vanished(stage).await,
        Row::Machine => {}
        Row::Malformed => malformed(stage).await,
        Row::Replayed => replayed(stage).await,
        Row::Stranger if column.is_modern() => stranger_modern(stage).await,
        Row::Stranger => stranger(stage).await,
        Row::OtherArguments if column.is_modern() => other_arguments_modern(stage).await,
        Row::OtherArguments => other_arguments(stage).await,
        Row::OtherDocument => other_document(stage).await,
        Row::Separate => separate(stage).await,
        Row::SeparateNow => separate_now(stage).await,
        Row::Unnamed | Row::TooRisky => unasked(stage).await,
        Row::TooRiskyNow => too_risky_now(stage).await,
        Row::Expired => expired(stage).await,
    }
    scene.end().await
}

/// How most rows begin: a person is asked, and reads the question.
async fn asked(scene: &Scene) -> (Visitor, Asked) {
    let mut visitor = scene.visitor().await;
    let asked = scene.ask(&mut visitor, &to("ann")).await;
    read().await;
    (visitor, asked)
}

async fn says(scene: &mut Scene, result: Value) {
    let (mut visitor, mut asked) = asked(scene).await;
    let said = visitor.answer(&mut asked, &result).await;
    scene.see_answer(&said);
}

async fn unable(scene: &mut Scene) {
    let mut visitors = Vec::new();
    for capabilities in [
        json!({}),
        json!({"elicitation": {"url": {}}}),
        json!({"sampling": {}}),
    ] {
        visitors.push(scene.visitor_with(capabilities).await);
    }
    let arguments = to("ann");
    let calls = visitors.iter_mut().map(|visitor| visitor.call(&arguments));
    for said in join_all(calls).await {
        scene.see_answer(&said);
    }
    scene.approve(&Caller::owner()).unwrap();
    let said = visitors[0].call(&arguments).await;
    scene.see_answer(&said);
}

async fn timed_out(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    let said = visitor.rest(&mut asked).await;
    scene.see_answer(&said);
    // A yes that no call waits for any more.
    let told = visitor.respond(&asked.token, &yes()).await;
    visitor.ping().await;
    scene.see(told);
}

async fn timed_out_modern(scene: &mut Scene) {
    let (mut visitor, _) = asked(scene).await;
    // Sleeps: longer than a call waits.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let said = visitor.call(&to("ann")).await;
    scene.see_answer(&said);
}

async fn vanished(scene: &mut Scene) {
    let (visitor, asked) = asked(scene).await;
    visitor.vanish(asked).await;
    if scene.column.is_modern() {
        scene.see("nothing");
        // Nothing runs by itself, whatever is approved.
        scene.approve(&Caller::owner()).unwrap();
        return scene.see("nothing");
    }
    scene.see_audit().await;
    if scene.column == Column::LegacyHttp {
        let attempts = scene.attempts().len();
        let mut visitor = scene.visitor().await;
        let _asked = scene.ask(&mut visitor, &to("bob")).await;
        visitor.leave().await;
        while scene.attempts().len() == attempts {
            tokio::task::yield_now().await;
        }
        scene.see_audit().await;
    }
}

/// On a busy machine even an answer at once may take as long as a person's. Then it
/// rightly counts, and everything is tried again.
async fn machine(column: Column, approvals: &str) -> Vec<Fact> {
    for _ in 0..5 {
        let mut scene = Scene::new("Machine", column, approvals).await;
        let was_fast = answers_at_once(&mut scene).await.is_some();
        let facts = scene.end().await;
        if was_fast {
            return facts;
        }
    }
    panic!("no answer was too fast for a person")
}

/// No person watches the inbox at first; one does later, while the call waits.
async fn answers_at_once(scene: &mut Scene) -> Option<()> {
    let mut visitor = scene.visitor().await;
    let said = too_fast(scene, &mut visitor, None).await?;
    scene.see_answer(&said);
    scene.approve(&Caller::owner()).unwrap();
    let said = visitor.call(&to("ann")).await;
    scene.see_answer(&said);
    let said = too_fast(scene, &mut visitor, Some(Caller::owner())).await?;
    scene.see_answer(&said);
    Some(())
}

/// Answers at once, and returns what comes of the call; nothing if that was not fast.
/// A person may approve it in the inbox while it waits there.
async fn too_fast(scene: &Scene, visitor: &mut Visitor, inbox: Option<Caller>) -> Option<Value> {
    let mut asked = scene.ask(visitor, &to("ann")).await;
    let answer = yes();
    let answering = visitor.answer(&mut asked, &answer);
    let approving = async {
        if let Some(owner) = inbox {
            // By then the client's own answer is there.
            read().await;
            let _ = scene.approve(&owner);
        }
    };
    let (said, ()) = tokio::join!(answering, approving);
    let question = scene.questions().pop().unwrap();
    if question.channel.is_some_and(|channel| channel != "inbox") {
        let took_ms = question.answered_at_ms.unwrap() - question.asked_at_ms;
        assert!(took_ms >= 400, "an answer after {took_ms} ms counted");
        return None;
    }
    let closing = scene.world.ended(TOOL).await.closing.unwrap();
    let gate = closing.gates.iter().find(|gate| gate.gate == "approval");
    let note = gate.unwrap().note.clone().unwrap();
    assert!(note.contains(" said not rendered"), "{note}");
    Some(said)
}

async fn malformed(scene: &mut Scene) {
    let content = |content: Value| json!({"action": "accept", "content": content});
    let answers = [
        json!({"action": "accept"}),
        content(json!({"answer": "always"})),
        // Wider than the risk of this tool allows.
        content(json!({"answer": "until-changed"})),
        content(json!({"answer": ["once"]})),
        content(json!({"answer": "once", "also": "this"})),
        json!({"action": "sure", "content": {"answer": "once"}}),
        json!({"answer": "once"}),
    ];
    let mut visitor = scene.visitor().await;
    for (number, result) in answers.iter().enumerate() {
        let mut asked = scene.ask(&mut visitor, &to(&number.to_string())).await;
        read().await;
        let said = visitor.answer(&mut asked, result).await;
        scene.see_answer(&said);
    }
}

async fn replayed(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
    again(scene, &mut visitor, &mut asked).await;
    let mut asked = scene.ask(&mut visitor, &to("bob")).await;
    read().await;
    let no = json!({"action": "decline"});
    let said = visitor.answer(&mut asked, &no).await;
    scene.see_answer(&said);
    // A yes does not come after a no.
    again(scene, &mut visitor, &mut asked).await;
}

/// Says yes to a question that was answered.
async fn again(scene: &mut Scene, visitor: &mut Visitor, asked: &mut Asked) {
    if scene.column.is_modern() {
        let said = visitor.answer(asked, &yes()).await;
        return scene.see_answer(&said);
    }
    let told = visitor.respond(&asked.token, &yes()).await;
    visitor.ping().await;
    scene.see(told);
}

async fn stranger(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    let capable = json!({"elicitation": {}});
    // In a session of her own, where her own question has the same id.
    let mut mallory = scene
        .visitor_as(Column::LegacyHttp, Some("mallory"), capable.clone())
        .await;
    let told = mallory.respond(&asked.token, &yes()).await;
    mallory.ping().await;
    scene.see(told);
    if scene.column.is_http() {
        mallory.borrow_session(&visitor);
        let told = mallory.respond(&asked.token, &yes()).await;
        assert_eq!(told, "status 404");
    } else {
        let mut other = scene
            .visitor_as(Column::LegacyPipe, None, capable.clone())
            .await;
        let told = other.respond(&asked.token, &yes()).await;
        assert_eq!(told, "nothing");
        other.ping().await;
    }
    scene.see("refused");
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
}

async fn stranger_modern(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    let capable = json!({"elicitation": {}});
    let other = match scene.column.is_http() {
        true => Column::ModernPipe,
        false => Column::ModernHttp,
    };
    let mut mallory = scene
        .visitor_as(Column::ModernHttp, Some("mallory"), capable.clone())
        .await;
    let said = mallory.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
    let mut neighbour = scene.visitor_as(other, None, capable).await;
    let said = neighbour.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
    // None of it used the state up.
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
}

async fn other_arguments(scene: &mut Scene) {
    let mut visitor = scene.visitor().await;
    let mut first = scene.ask(&mut visitor, &to("ann")).await;
    let mut second = scene.ask(&mut visitor, &to("mallory")).await;
    read().await;
    let said = visitor.answer(&mut first, &yes()).await;
    scene.see_answer(&said);
    let said = visitor.rest(&mut second).await;
    scene.see_answer(&said);
    assert_eq!(scene.lines(), ["ann"]);
    // Nor does a yes in the inbox count for anything else.
    scene.approve(&Caller::owner()).unwrap();
    let said = visitor.call(&to("carol")).await;
    scene.see_answer(&said);
    let said = visitor.call(&to("mallory")).await;
    scene.see_answer(&said);
    assert_eq!(scene.lines(), ["ann", "mallory"]);
}

async fn other_arguments_modern(scene: &mut Scene) {
    scene.world.publish(&guarded("other", "ran")).await;
    let (mut visitor, mut asked) = asked(scene).await;
    let mut other = visitor.retry(&asked, &yes());
    other["params"]["arguments"] = to("mallory");
    let mut none = visitor.retry(&asked, &yes());
    none["params"].as_object_mut().unwrap().remove("arguments");
    let mut tool = visitor.retry(&asked, &yes());
    tool["params"]["name"] = json!("other");
    for message in [other, none, tool] {
        let said = visitor.say_modern(&message).await;
        scene.see_answer(&said);
    }
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
    assert_eq!(scene.lines(), ["ann"]);
}

async fn other_document(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    scene.world.publish(&guarded(TOOL, "r' + 'an")).await;
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
}

async fn separate(scene: &mut Scene) {
    let mut visitor = scene.visitor().await;
    let said = visitor.call(&to("ann")).await;
    scene.see_answer(&said);
    let own = Caller::named(scene.column.caller());
    let refused = scene.approve(&own).unwrap_err();
    assert!(refused.to_string().contains("another person must"));
    scene.see("refused");
    scene.approve(&Caller::named("bob")).unwrap();
    let said = visitor.call(&to("ann")).await;
    scene.see_answer(&said);
}

async fn separate_now(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    scene.world.home.file(
        "ringfence.toml",
        "[exposure]\npreset = \"none\"\n[approvals]\nseparate = true\n",
    );
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
}

/// Attack: a program that declares a form, and would say yes to whatever it is shown. It
/// is shown nothing, and is told neither the question's name nor what would answer it.
async fn unasked(scene: &mut Scene) {
    let mut visitor = scene.visitor().await;
    let said = visitor.call(&to("ann")).await;
    scene.see_answer(&said);
    let id = scene.questions().pop().unwrap().id;
    let told = said.to_string();
    assert!(
        !told.contains(&id) && !told.contains("ringfence approvals"),
        "{told}"
    );
    scene.approve(&Caller::named("bob")).unwrap();
    let said = visitor.call(&to("ann")).await;
    scene.see_answer(&said);
}

async fn too_risky_now(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    let callers = ["ann", "stdio"].map(|name| format!("[callers.{name}]\nanswers = \"L3\"\n"));
    let callers = callers.concat();
    scene.world.home.file(
        "ringfence.toml",
        &format!("[exposure]\npreset = \"none\"\n{callers}"),
    );
    let said = visitor.answer(&mut asked, &yes()).await;
    scene.see_answer(&said);
}

async fn expired(scene: &mut Scene) {
    let (mut visitor, mut asked) = asked(scene).await;
    if scene.column.is_modern() {
        // Sleeps: longer than a question lives.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let said = visitor.answer(&mut asked, &yes()).await;
        return scene.see_answer(&said);
    }
    let said = visitor.rest(&mut asked).await;
    scene.see_answer(&said);
    again(scene, &mut visitor, &mut asked).await;
}

#[tokio::test]
async fn a_yes() {
    plays(Row::Yes).await;
}

#[tokio::test]
async fn a_client_that_cannot_ask() {
    plays(Row::Unable).await;
}

#[tokio::test]
async fn a_no() {
    plays(Row::Declined).await;
}

#[tokio::test]
async fn a_question_put_away() {
    plays(Row::Dismissed).await;
}

#[tokio::test]
async fn no_answer_in_time() {
    plays(Row::TimedOut).await;
}

#[tokio::test]
async fn a_client_that_is_gone() {
    plays(Row::Vanished).await;
}

#[tokio::test]
async fn a_machine_that_answers() {
    plays(Row::Machine).await;
}

#[tokio::test]
async fn answers_that_do_not_fit() {
    plays(Row::Malformed).await;
}

#[tokio::test]
async fn an_answer_twice() {
    plays(Row::Replayed).await;
}

#[tokio::test]
async fn an_answer_by_another_person() {
    plays(Row::Stranger).await;
}

#[tokio::test]
async fn an_answer_to_other_arguments() {
    plays(Row::OtherArguments).await;
}

#[tokio::test]
async fn an_answer_about_a_tool_that_changed() {
    plays(Row::OtherDocument).await;
}

#[tokio::test]
async fn a_caller_who_may_not_approve() {
    plays(Row::Separate).await;
}

#[tokio::test]
async fn a_caller_who_may_no_longer_approve() {
    plays(Row::SeparateNow).await;
}

#[tokio::test]
async fn a_client_its_owner_did_not_name() {
    plays(Row::Unnamed).await;
}

#[tokio::test]
async fn a_client_that_may_answer_less() {
    plays(Row::TooRisky).await;
}

#[tokio::test]
async fn a_client_that_may_answer_less_by_now() {
    plays(Row::TooRiskyNow).await;
}

#[tokio::test]
async fn an_answer_too_late() {
    plays(Row::Expired).await;
}

/// No cell is missing: every row of `Row` is in the table and has a test, every cell
/// expects something, and what cannot happen says why.
#[test]
fn the_matrix_is_whole() {
    let source = include_str!("ask_matrix.rs");
    let (_, rows) = source.split_once("enum Row {").unwrap();
    let (rows, _) = rows.split_once("\n}").unwrap();
    let rows = rows
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','));
    let rows: Vec<_> = rows.filter(|row| !row.starts_with("//")).collect();
    let listed: Vec<_> = TABLE.iter().map(|(row, _)| format!("{row:?}")).collect();
    assert_eq!(rows, listed);
    for (row, cells) in &TABLE {
        let test = format!("plays(Row::{row:?}).await");
        assert_eq!(source.matches(&test).count(), 1, "{row:?} has no test");
        for (cell, column) in cells.iter().zip(Column::ALL) {
            let place = format!("{row:?} over {column:?}");
            assert!(!cell.steps.is_empty(), "{place} expects nothing");
            let is_sentence = |why: &str| why.split(' ').count() > 5;
            assert!(cell.instead.is_none_or(is_sentence), "{place} says no why");
        }
    }
}
