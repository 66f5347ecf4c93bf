//! Explaining, replaying and trying rules: what is said about calls is what happens
//! to them, and saying it changes nothing.

use std::path::Path;
use std::sync::Arc;

use engine::approve::Listing;
use engine::call::CallRequest;
use engine::life::revision;
use engine::policy_admin::ApplyFault;
use engine::replay::{Missing, Replayed};
use model::caller::{Caller, Origin};
use model::govern::access::quota::Denials;
use model::govern::person::Actor;
use model::govern::rules::Effect;
use model::record::audit::{Closing, GateRecord, Status};
use serde_json::{Value, json};
use store::Filter;

use crate::world::{Home, World, document, error};

const SETTINGS: &str = r#"
[expected]
tools = ["pay"]
callers = ["carl"]

[approvals]
wait_seconds = 1

[callers.ann]
level = "sandboxed"

[callers.bot]
autonomy = "locked"

[callers.eve]
deny = ["pay"]

[[rule]]
id = "big"
tools = ["pay"]
when = "args.amount > 1000"
effect = "deny"

[[rule]]
id = "odd"
tools = ["pay"]
when = "args.amount == 13"
effect = "ask"

[[rule]]
id = "door"
when = "caller.door == 'cli' && has(args.amount) && args.amount == 7"
effect = "deny"

[[rule]]
id = "strange"
callers = ["carl"]
tools = ["pay"]
when = "args.note == 'x'"
effect = "allow"
"#;

fn pay() -> Value {
    let amount = json!({"name": "amount", "type": "NUMBER", "required": true, "testValue": "1"});
    let note = json!({"name": "note", "type": "STRING", "required": false, "testValue": "n"});
    let more = json!({"category": "TEXT", "params": [amount, note]});
    document("pay", "return amount", more)
}

async fn world(settings: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", settings);
    let world = World::with(home, |_| ());
    world.published(&pay()).await;
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world.published(&document("mail", "return 1", asks)).await;
    world.home.tool("draft", &document("draft", "1", json!({})));
    let keyed = json!({"staticVariables": [{"key": "${MISSING}"}]});
    world
        .home
        .tool("keyed", &document("keyed", "return 1", keyed));
    world
}

fn request(caller: &str, origin: Origin, tool: &str, arguments: &Value) -> CallRequest {
    let caller = match caller {
        "owner" => Caller::owner(),
        name => Caller::named(name),
    };
    CallRequest::new(caller, origin, tool, arguments.clone())
}

/// What both have: up to the rules. What a person says is not known before.
fn until_rules(closing: &Closing) -> Vec<GateRecord> {
    let gates = closing.gates.iter();
    let before = |gate: &&GateRecord| !["approval", "audit", "powers"].contains(&&*gate.gate);
    let untimed = |gate: &GateRecord| GateRecord {
        us: None,
        ..gate.clone()
    };
    gates.filter(before).map(untimed).collect()
}

/// Every caller, door, tool and argument: what explain says is what the call meets,
/// word for word, and explaining leaves no trace.
#[tokio::test]
async fn explain_says_what_happens() {
    let world = world(SETTINGS).await;
    let arguments = [
        json!({"amount": 1}),
        json!({"amount": 7}),
        json!({"amount": 13}),
        json!({"amount": 5000, "note": "x"}),
        json!({"amount": "much"}),
        json!({}),
    ];
    let mut effects = std::collections::BTreeMap::<_, usize>::new();
    for caller in ["owner", "ann", "bot", "carl", "eve"] {
        for tool in ["pay", "draft", "keyed", "nothing"] {
            let doors = [Origin::Mcp, Origin::Cli];
            let each = arguments.iter().flat_map(|it| doors.map(|door| (it, door)));
            // Questions take a second each; one door of theirs will do.
            let is_asked = caller == "bot";
            for (arguments, origin) in each.filter(|(_, door)| !is_asked || *door == Origin::Mcp) {
                let request = request(caller, origin, tool, arguments);
                let head = world.engine.store().audit().head().unwrap();
                let explained = world.engine.explain(&request);
                assert_eq!(world.engine.store().audit().head().unwrap(), head);
                let outcome = {
                    let mut request = request.clone();
                    // Nobody answers; the question itself is not the subject here.
                    request.deadline = Some(std::time::Duration::from_millis(1_300));
                    world.made(request).await
                };
                let closing = world.entry(&outcome).closing.unwrap();
                let what = format!("{caller} {tool} {arguments} {origin:?}");
                let (seen, met) = (until_rules(&explained.closing), until_rules(&closing));
                assert_eq!(seen, met, "{what}");
                assert_eq!(explained.closing.tool, closing.tool, "{what}");
                assert_eq!(explained.closing.arguments, closing.arguments, "{what}");
                match explained.effect {
                    Effect::Allow => assert_eq!(outcome.status, Status::Done, "{what}"),
                    Effect::Ask => assert!(error(&outcome).0.starts_with("approval."), "{what}"),
                    Effect::Deny => assert_eq!(explained.told, outcome.error, "{what}"),
                }
                *effects.entry(explained.effect).or_default() += 1;
            }
        }
    }
    assert_eq!(effects.len(), 3, "{effects:?}");
}

#[tokio::test]
async fn explaining_stores_no_question() {
    let world = world(SETTINGS).await;
    let asked = request("bob", Origin::Mcp, "mail", &json!({}));
    let explained = world.engine.explain(&asked);
    assert_eq!(explained.effect, Effect::Ask);
    let gates = explained.closing.gates.iter().rev();
    let last: Vec<_> = gates.take(2).map(|it| (&*it.gate, &*it.verdict)).collect();
    assert_eq!(last, [("powers", "pass"), ("approval", "ask")]);
    let waiting = world.engine.approvals().list(Listing::All).unwrap();
    assert_eq!(waiting, []);
}

fn with_shadow(settings: &str) -> String {
    format!("[rules]\nshadow = 'next.toml'\n{settings}")
}

#[tokio::test]
async fn shadow_rules_are_recorded_and_decide_nothing() {
    let world = world(SETTINGS).await;
    let differs = || {
        let filter = Filter {
            differs: true,
            ..Filter::default()
        };
        world.engine.store().audit().list(&filter).unwrap().len()
    };
    // The same settings never differ.
    world.home.file("next.toml", SETTINGS);
    world.home.file("ringfence.toml", &with_shadow(SETTINGS));
    let calls = [
        ("bob", json!({"amount": 1})),
        ("bob", json!({"amount": 5000})),
        ("carl", json!({"amount": 1})),
        ("eve", json!({"amount": 1})),
        ("ann", json!({"amount": "much"})),
    ];
    let made = async |world: &World| {
        let mut all = Vec::new();
        for (caller, arguments) in &calls {
            let outcome = world
                .made(request(caller, Origin::Mcp, "pay", arguments))
                .await;
            all.push((outcome.status, outcome.error, outcome.value));
        }
        // Being denied in round after round pauses them, which is another matter.
        for (caller, _) in &calls {
            let denials = |row: &mut store::callers::CallerRow| row.denials = Denials::resumed();
            world
                .engine
                .store()
                .callers()
                .change(caller, 0, denials)
                .unwrap();
        }
        all
    };
    let before = made(&world).await;
    assert_eq!(differs(), 0);
    assert!(world.engine.registry().current().shadow.is_some());

    // Rules alone: all other rules are gone, the rest stays.
    let next = "[[rule]]\nid = 'all'\ntools = ['pay']\neffect = 'deny'\nreason = 'none'\n";
    world.home.file("next.toml", next);
    assert_eq!(made(&world).await, before);
    assert_eq!(differs(), 1);
    let outcome = world.call("pay", json!({"amount": 2})).await;
    let shadow = world.entry(&outcome).closing.unwrap().shadow.unwrap();
    assert_eq!((&*shadow.live, &*shadow.verdict), ("allow", "deny"));
    assert_eq!(shadow.rule.as_deref(), Some("all"));
    assert_eq!((&*shadow.candidate, &*shadow.reason), ("next.toml", "none"));
    assert_eq!(differs(), 2);

    // Whole settings: who may use what differs as well.
    world.home.file("next.toml", "[exposure]\nauto = true\n");
    assert_eq!(made(&world).await, before);
    // Two denials of rules and one of a list are gone.
    assert_eq!(differs(), 5);

    // One that is broken is said and not tried; the live ones stay.
    world.home.file("next.toml", "[[rule]]\nid = 'x'\n");
    assert_eq!(made(&world).await, before);
    assert_eq!(differs(), 5);
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(
        alarms.contains("the shadow candidate `next.toml` is not evaluated")
            && alarms.contains("next.toml:1:1: a rule needs an `effect`"),
        "{alarms}"
    );
    std::fs::remove_file(world.home.path.join("next.toml")).unwrap();
    assert_eq!(made(&world).await, before);
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert!(alarms.contains("there is no such file"), "{alarms}");
    world.assert_whole();
}

/// A candidate of another baseline judges tools anew.
#[tokio::test]
async fn a_shadow_candidate_uses_its_own_baseline() {
    let open = "[baseline]\nnetwork = 'open'\n";
    let world = world("").await;
    let asks = json!({"humanInTheLoop": {"mode": "AUTO_APPROVE"}});
    world.published(&document("auto", "return 1", asks)).await;
    world.home.file("next.toml", open);
    world.home.file("ringfence.toml", &with_shadow(""));
    let outcome = world.call("auto", json!({})).await;
    assert_eq!(outcome.status, Status::Done);
    let closing = world.entry(&outcome).closing.unwrap();
    let shadow = closing.shadow.unwrap();
    assert_eq!((&*shadow.live, &*shadow.verdict), ("allow", "ask"));
    assert_eq!(closing.tool.unwrap().risk, "L0");
}

fn replayed(world: &World, text: &str) -> Replayed {
    let now = world.engine.registry().current();
    let settings = now.settings.candidate(Path::new("next.toml"), text);
    let snapshot = world.engine.registry().under(&Arc::new(settings.unwrap()));
    let replayed = world.engine.replay(&snapshot.unwrap(), &Filter::default());
    replayed.unwrap()
}

#[tokio::test]
async fn recorded_calls_are_decided_again() {
    let world = world(SETTINGS).await;
    for (caller, amount) in [("bob", 1), ("bob", 5000), ("bob", 2000), ("carl", 7)] {
        let asked = request(caller, Origin::Mcp, "pay", &json!({"amount": amount}));
        world.made(asked).await;
    }
    let eve = request("eve", Origin::Mcp, "pay", &json!({"amount": 1}));
    world.made(eve).await;
    world.call("nothing", json!({})).await;
    let count = |replayed: &Replayed| (replayed.changes.len(), replayed.calls - replayed.decided);
    let head = world.engine.store().audit().head().unwrap();
    // The settings in force change nothing. Two were Local Passes; one was of no
    // tool at all.
    let same = replayed(&world, SETTINGS);
    assert_eq!((same.calls, count(&same)), (8, (0, 1)));
    assert_eq!(same.missing.get(&Missing::Undecided), Some(&1));

    let looser = SETTINGS.replace("> 1000", "> 4000");
    let changed = replayed(&world, &looser);
    let [change] = changed.changes.as_slice() else {
        panic!("{changed:?}");
    };
    assert!(change.loosens());
    assert_eq!((change.before, change.after), (Effect::Deny, Effect::Allow));
    assert_eq!(change.before_rule.as_deref(), Some("big"));
    assert_eq!(change.caller, "bob");

    // Who may use the tool is decided again although eve's arguments were not kept.
    let opened = replayed(
        &world,
        &SETTINGS.replace(
            "[\"pay\"]\n\n[[rule]]\nid = \"big\"",
            "[]\n\n[[rule]]\nid = \"big\"",
        ),
    );
    let eves: Vec<_> = opened
        .changes
        .iter()
        .filter(|it| it.caller == "eve")
        .collect();
    assert_eq!(eves.len(), 1, "{opened:?}");
    assert!(eves[0].loosens());

    let tighter = replayed(&world, "[access]\ndeny = ['*']\n");
    assert!(!tighter.changes.is_empty());
    assert!(tighter.changes.iter().all(|change| !change.loosens()));
    // Deciding again leaves no trace.
    assert_eq!(world.engine.store().audit().head().unwrap(), head);
}

#[tokio::test]
async fn calls_that_cannot_be_replayed_are_counted() {
    let digests = "[approvals]\nwait_seconds = 1\n[audit]\narguments = 'digest'\n";
    let world = world(digests).await;
    world.call("pay", json!({"amount": 3})).await;
    world.own_call("mail", json!({})).await;
    let found = replayed(&world, "");
    // A call without arguments has a digest everybody knows.
    assert_eq!(found.missing.get(&Missing::OnlyDigest), Some(&2));
    world.home.file("ringfence.toml", "");
    world
        .call("pay", json!({"amount": 3, "note": "a *** b"}))
        .await;
    // The arguments are what they were, marks and all.
    assert_eq!(replayed(&world, "").missing.get(&Missing::Masked), None);
    let mut other = pay();
    other["description"] = json!("Another.");
    other["code"] = json!("return 2");
    world.published(&other).await;
    let found = replayed(&world, "");
    assert!(
        found.missing.get(&Missing::ToolChanged) >= Some(&1),
        "{found:?}"
    );
    world.engine.delete("pay").unwrap();
    let found = replayed(&world, "");
    assert!(
        found.missing.get(&Missing::ToolGone) >= Some(&1),
        "{found:?}"
    );
}

#[tokio::test]
async fn calls_with_masked_arguments_are_not_replayed() {
    let world = World::with(Home::new(), |settings| {
        let variables = [("KEY".to_owned(), "hunter22".to_owned())];
        settings.environment = variables.into_iter().collect();
    });
    let text = json!({"name": "text", "type": "STRING", "required": true, "testValue": "t"});
    let more = json!({"params": [text], "staticVariables": [{"key": "${KEY}"}]});
    world.published(&document("say", "return 1", more)).await;
    world.call("say", json!({"text": "it is hunter22"})).await;
    world.call("say", json!({"text": "it is not"})).await;
    let found = replayed(&world, "");
    assert_eq!(found.missing.get(&Missing::Masked), Some(&1), "{found:?}");
    assert_eq!((found.calls, found.decided), (3, 2));
}

/// Two processes that change the settings at the same time: each change is there in the end, or
/// its author was told that another one was first.
#[test]
fn of_two_writers_of_the_settings_none_is_lost() {
    const CHANGES: usize = 20;
    let world = World::with(Home::new(), |_| ());
    let other = world.beside(|_| ());
    let change = |engine: &engine::Engine, by: &str| {
        for index in 0..CHANGES {
            loop {
                let seen = store::settings::read(engine.home()).unwrap();
                let seen = seen.unwrap_or_default();
                let text = format!("{seen}# {by} {index}.\n");
                let who = Actor { by, through: "cli" };
                let applied = engine.apply_settings(&text, &revision(&seen), (who, "why"));
                match applied {
                    Ok(()) => break,
                    Err(ApplyFault::Changed) => {}
                    Err(fault) => panic!("{fault}"),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| change(&world.engine, "ann"));
        scope.spawn(|| change(&other, "bob"));
    });
    let text = store::settings::read(world.engine.home()).unwrap().unwrap();
    for by in ["ann", "bob"] {
        let lost: Vec<_> = (0..CHANGES)
            .filter(|index| !text.contains(&format!("# {by} {index}.\n")))
            .collect();
        assert!(lost.is_empty(), "of {by}: {lost:?}");
    }
}
