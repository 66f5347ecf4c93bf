//! Who may say yes, through the engine: every way an answer can come, every kind of
//! caller, every badge. And what a caller is told of a question that waits.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use engine::approve::{
    AnswerFault, ApprovalAnswer, ApprovalScope, Approver, Channel, Listed, Listing, Question,
};
use engine::call::{CallRequest, Progress};
use futures_util::future::join_all;
use model::caller::{Caller, Origin};
use model::policy::risk::Level;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::world::{Home, Says, World, document, error};

const SETTINGS: &str = r#"
[approvals]
wait_seconds = 1

[callers.cursor]
answers = "L4"

[callers.desktop]
answers = "L5"

[callers.careful]
answers = "L3"

[callers.quiet]
answers = "L0"

[callers."oauth:kim"]
answers = "L4"
"#;

/// Who calls, and the risk up to which their own client's answer counts.
const CALLERS: [(&str, Option<Level>); 11] = [
    ("owner", None),
    ("local", None),
    ("stdio", None),
    ("researcher", None),
    ("cursor", Some(Level::L4)),
    ("desktop", Some(Level::L5)),
    ("careful", Some(Level::L3)),
    ("quiet", None),
    ("oauth:kim", Some(Level::L4)),
    ("oauth:KIM", None),
    ("oauth:\u{212a}im", None),
];

/// A tool of each badge there is.
const TOOLS: [(&str, Level); 4] = [
    ("computes", Level::L0),
    ("reads", Level::L3),
    ("writes", Level::L4),
    ("destroys", Level::L5),
];

fn tool(name: &str) -> Value {
    let overrides = match name {
        "computes" => json!({}),
        "reads" => json!({"fileRead": true}),
        "writes" => json!({"fileWrite": true}),
        _ => json!({"fileWrite": true, "destructive": true}),
    };
    let more = json!({
        "params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}],
        "sandboxOverrides": overrides,
        "humanInTheLoop": {"mode": "REQUIRED"},
    });
    document(name, "return 'ran'", more)
}

async fn world_with(approver: Option<Arc<dyn Approver>>) -> World {
    let home = Home::new();
    home.file("ringfence.toml", SETTINGS);
    let world = World::with(home, |settings| {
        settings.single = false;
        settings.approver = approver;
    });
    for (name, _) in TOOLS {
        world.published(&tool(name)).await;
    }
    world
}

/// A caller's own client, which says yes to whatever it is shown.
#[derive(Debug)]
struct Client {
    channel: Channel,
    shown: Mutex<Vec<Question>>,
}

impl Client {
    fn new(channel: Channel) -> Arc<Client> {
        let shown = Mutex::default();
        Arc::new(Client { channel, shown })
    }

    fn was_asked(&self) -> bool {
        !self.shown.lock().unwrap().is_empty()
    }
}

impl Approver for Client {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        self.shown.lock().unwrap().push(question.clone());
        let answer = match self.channel {
            Channel::InputRequired => ApprovalAnswer::Deferred,
            _ => ApprovalAnswer::Approved(ApprovalScope::Once),
        };
        Box::pin(async move { answer })
    }

    fn channel(&self) -> Channel {
        self.channel
    }
}

fn caller(name: &str) -> Caller {
    match name {
        "owner" => Caller::owner(),
        name => Caller::named(name),
    }
}

fn request(name: &str, tool: &str, approver: Option<Arc<Client>>) -> CallRequest {
    let mut request = CallRequest::new(caller(name), Origin::Mcp, tool, json!({"text": "x"}));
    request.approver = approver.map(|client| client as Arc<dyn Approver>);
    request
}

/// What the audit says of the approval.
fn note(world: &World, outcome: &Outcome) -> String {
    let closing = world.entry(outcome).closing.unwrap();
    let mut gates = closing.gates.into_iter();
    let gate = gates.rfind(|gate| gate.gate == "approval");
    gate.and_then(|gate| gate.note).unwrap_or_default()
}

fn pending(world: &World, name: &str, tool: &str) -> Listed {
    let all = world.engine.approvals().list(Listing::Pending).unwrap();
    let shown = model::govern::approval::shown(name);
    let mut own = all
        .into_iter()
        .filter(|row| row.tool == tool && row.caller == shown);
    own.next().expect("a question")
}

/// Every cell of an own client's channel.
fn cells() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    CALLERS.into_iter().flat_map(|(name, most)| {
        TOOLS.into_iter().map(move |(tool, level)| {
            let counts = most.is_some_and(|most| level <= most);
            (name, tool, counts)
        })
    })
}

/// H2 in one sentence: whatever a program says for its person counts only as far as
/// the owner named that program.
#[tokio::test]
async fn a_client_may_approve_up_to_its_configured_risk() {
    let world = &world_with(None).await;
    let tries = cells().map(|(name, tool, counts)| async move {
        let client = Client::new(Channel::Elicitation);
        let outcome = world.made(request(name, tool, Some(client.clone()))).await;
        let what = format!("{name} {tool}: {outcome:?}");
        assert_eq!(client.was_asked(), counts, "{what}");
        let note = note(world, &outcome);
        if counts {
            assert_eq!(outcome.status, Status::Done, "{what}");
            assert!(note.contains("via elicitation"), "{what} {note}");
        } else {
            assert_eq!(error(&outcome).0, "approval.pending", "{what}");
            assert!(
                note.contains("may answer: a person at the terminal"),
                "{what} {note}"
            );
        }
    });
    assert_eq!(join_all(tries).await.len(), CALLERS.len() * TOOLS.len());
}

/// The same where the answer comes with another call: it is looked at when the question
/// is raised, and again when the answer comes.
#[tokio::test]
async fn an_answer_that_comes_later_counts_as_far_as_its_owner_said() {
    let world = &world_with(None).await;
    let tries = cells().map(|(name, tool, counts)| async move {
        let what = format!("{name} {tool}");
        let client = Client::new(Channel::InputRequired);
        let call = || world.made(request(name, tool, Some(client.clone())));
        assert_eq!(error(&call().await).0, "approval.pending", "{what}");
        assert_eq!(client.was_asked(), counts, "{what}");
        let id = pending(world, name, tool).id;
        let yes = ApprovalAnswer::Approved(ApprovalScope::Once);
        let by = caller(name);
        let taken = world.engine.answer(&id, &by, Channel::InputRequired, yes);
        if counts {
            taken.unwrap();
            assert_eq!(call().await.status, Status::Done, "{what}");
        } else {
            assert!(
                matches!(taken, Err(AnswerFault::NotByClient)),
                "{what} {taken:?}"
            );
            assert_eq!(error(&call().await).0, "approval.pending", "{what}");
        }
    });
    assert_eq!(join_all(tries).await.len(), CALLERS.len() * TOOLS.len());
}

/// The person at this process's own terminal answers for everybody, whatever the risk.
#[tokio::test]
async fn the_terminal_answers_for_every_caller() {
    let world = world_with(Some(Says::new(ApprovalAnswer::Approved(
        ApprovalScope::Once,
    ))))
    .await;
    for (name, tool, _) in cells() {
        let outcome = world.made(request(name, tool, None)).await;
        assert_eq!(outcome.status, Status::Done, "{name} {tool} {outcome:?}");
        assert!(note(&world, &outcome).contains("by owner via terminal"));
    }
}

/// So do the other places where people answer; and a client's way leads to none of them.
#[tokio::test]
async fn the_inbox_answers_for_every_caller() {
    let world = &world_with(None).await;
    for channel in [Channel::Inbox, Channel::Watch, Channel::Terminal] {
        let tries = cells().map(|(name, tool, _)| async move {
            let what = format!("{channel:?} {name} {tool}");
            let call = || world.made(request(name, tool, None));
            assert_eq!(error(&call().await).0, "approval.pending", "{what}");
            let id = pending(world, name, tool).id;
            let inbox = world.engine.approvals();
            let me = Caller::named("me");
            for own in [Channel::Elicitation, Channel::InputRequired] {
                let fault = inbox
                    .through(own)
                    .approve(&id, &me, ApprovalScope::Once, None);
                assert!(matches!(fault, Err(AnswerFault::NotByClient)), "{what}");
            }
            let inbox = inbox.through(channel);
            inbox.approve(&id, &me, ApprovalScope::Once, None).unwrap();
            let outcome = call().await;
            assert_eq!(outcome.status, Status::Done, "{what}");
            let word = model::word::Word::word(channel);
            assert!(
                note(world, &outcome).contains(&format!("by me via {word}")),
                "{what}"
            );
        });
        join_all(tries).await;
    }
}

/// What a client was let answer counts no more once the owner takes that back, also for
/// approvals it gave before.
#[tokio::test]
async fn an_approval_of_a_client_counts_while_the_client_may_answer() {
    let world = world_with(None).await;
    let yes = Says::new(ApprovalAnswer::Approved(ApprovalScope::SameArguments));
    let mut call = request("cursor", "writes", None);
    call.approver = Some(yes.clone());
    assert_eq!(world.made(call.clone()).await.status, Status::Done);
    call.approver = None;
    assert_eq!(world.made(call.clone()).await.status, Status::Done);
    let less = SETTINGS.replacen("answers = \"L4\"", "answers = \"L3\"", 1);
    world.home.file("ringfence.toml", &less);
    assert_eq!(error(&world.made(call.clone()).await).0, "approval.pending");
    // Nor does a yes that was on its way when it was taken back.
    world.home.file("ringfence.toml", SETTINGS);
    let path = world.home.path.join("ringfence.toml");
    let taking = Taking(Box::new(move || std::fs::write(&path, &less).unwrap()));
    call.approver = Some(Arc::new(taking));
    call.arguments = json!({"text": "other"});
    let outcome = world.made(call).await;
    assert_eq!(error(&outcome).0, "approval.unavailable");
}

/// A client that says yes after something happened.
struct Taking(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Taking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Taking")
    }
}

impl Approver for Taking {
    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        (self.0)();
        Box::pin(async { ApprovalAnswer::Approved(ApprovalScope::Once) })
    }
}

/// A script's own calls ask the same client, which counts as far.
#[tokio::test]
async fn a_client_approves_calls_of_a_script_up_to_its_configured_risk() {
    let world = &world_with(None).await;
    let tries =
        cells()
            .filter(|(name, ..)| *name != "owner")
            .map(|(name, tool, counts)| async move {
                let what = format!("{name} {tool}");
                let client = Client::new(Channel::Elicitation);
                let script = format!("return await callTool('{tool}', {{ text: 'x' }});");
                let mut call = request(name, "codecall_execute", Some(client.clone()));
                call.arguments = json!({"script": script});
                let outcome = world.made(call).await;
                assert_eq!(client.was_asked(), counts, "{what} {outcome:?}");
                if counts {
                    assert_eq!(outcome.status, Status::Done, "{what} {outcome:?}");
                    return;
                }
                let (code, told) = error(&outcome);
                assert_eq!(code, "approval.pending", "{what}");
                let id = pending(world, name, tool).id;
                assert_silent(&what, told, &id);
            });
    join_all(tries).await;
}

#[track_caller]
fn assert_silent(what: &str, told: &str, id: &str) {
    assert!(!told.contains(id), "{what}: {told}");
    assert!(!told.contains("ringfence approvals"), "{what}: {told}");
}

/// H3: only the owner learns which question it is and which command answers it.
#[tokio::test]
async fn a_caller_learns_neither_question_id_nor_command() {
    let world = world_with(None).await;
    for (name, _) in CALLERS {
        let tool = "writes";
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = Arc::clone(&heard);
        let mut call = request(name, tool, None);
        call.deadline = Some(std::time::Duration::from_secs(60));
        call.progress = Some(Progress::new(move |words| {
            hears.lock().unwrap().push(words.to_owned());
        }));
        let outcome = world.made(call).await;
        let id = pending(&world, name, tool).id;
        let told = serde_json::to_string(&outcome.error.as_ref().unwrap().to_json()).unwrap();
        let heard = heard.lock().unwrap().join("\n");
        if name == "owner" {
            let command = format!("ringfence approvals approve {id}");
            assert!(told.contains(&command), "{told}");
            assert!(heard.contains(&command), "{heard}");
            continue;
        }
        assert_silent(name, &told, &id);
        assert_silent(name, &heard, &id);
        assert!(told.contains("the inbox of this Ringfence"), "{told}");
    }
}

/// The question says which rule wants it and why, and who may answer; so do the inbox
/// and what is explained.
#[tokio::test]
async fn a_question_says_why_and_who_may_answer() {
    let world = world_with(None).await;
    let rule = "\n[[rule]]\nid = \"after-hours\"\ntools = [\"plain\"]\neffect = \"ask\"\nreason = \"payments \\u001b[1mare looked at\"\n";
    // The rule asks for a Local Pass too, so the tool is there first.
    world
        .published(&document("plain", "return 1", json!({})))
        .await;
    world
        .home
        .file("ringfence.toml", &format!("{SETTINGS}{rule}"));
    let client = Says::new(ApprovalAnswer::Approved(ApprovalScope::Once));
    let mut call = CallRequest::new(Caller::named("cursor"), Origin::Mcp, "plain", json!({}));
    call.approver = Some(client.clone());
    assert_eq!(world.made(call.clone()).await.status, Status::Done);
    let text = client.asked.lock().unwrap()[0].text();
    let why = "asked because: rule `after-hours`: payments \\u{1b}[1mare looked at";
    assert!(text.contains(why), "{text}");
    assert!(
        text.contains("may answer: the person at the caller's own client, or"),
        "{text}"
    );
    call.approver = None;
    call.caller = Caller::named("researcher");
    world.made(call.clone()).await;
    let row = pending(&world, "researcher", "plain");
    assert_eq!(
        row.why,
        "rule `after-hours`: payments \\u{1b}[1mare looked at"
    );
    assert!(
        row.may_answer.starts_with("a person at the terminal"),
        "{row:?}"
    );
    let explained = world.engine.explain(&call);
    let gates = explained.closing.gates.iter();
    let notes: String = gates.filter_map(|gate| gate.note.clone()).collect();
    assert!(
        notes.contains("may answer: a person at the terminal"),
        "{notes}"
    );
}

/// The audit says how long the person took, also where the answer came long before the
/// call that runs by it.
#[tokio::test]
async fn the_audit_says_how_long_the_person_took() {
    let clockwork = crate::world::Clockwork::new();
    let clock = clockwork.clock();
    let home = Home::new();
    home.file("ringfence.toml", SETTINGS);
    let world = World::with(home, |settings| settings.clock = Some(clock));
    world.published(&tool("writes")).await;
    let client = Client::new(Channel::InputRequired);
    let call = || world.made(request("cursor", "writes", Some(client.clone())));
    assert_eq!(error(&call().await).0, "approval.pending");
    clockwork.pass_ms(2_500);
    let id = pending(&world, "cursor", "writes").id;
    let (by, yes) = (
        caller("cursor"),
        ApprovalAnswer::Approved(ApprovalScope::Once),
    );
    world
        .engine
        .answer(&id, &by, Channel::InputRequired, yes)
        .unwrap();
    clockwork.pass_ms(7_000);
    let outcome = call().await;
    let note = note(&world, &outcome);
    assert!(note.contains("after 2500 ms"), "{note}");
}
