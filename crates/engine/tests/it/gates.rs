//! Every gate is consulted, from every door, and its refusal is written down.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::approve::ApprovalAnswer;
use engine::call::{CallPurpose, CallRequest, CallTarget, Refused};
use engine::{Gate, Observer};
use model::caller::{Caller, Origin};
use model::limits;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use serde_json::json;
use store::Filter;

use crate::world::{Clockwork, Home, Says, World, document, error};

/// The gates a call passes that runs to its end, asked for and with files.
const ALL: [&str; 13] = [
    "caller pass",
    "registry pass",
    "access pass",
    "secrets pass",
    "masking pass",
    "requirements pass",
    "arguments pass",
    "policy pass",
    "rules ask",
    "limits pass",
    "approval pass",
    "audit pass",
    "powers pass",
];

fn writer() -> serde_json::Value {
    document(
        "writer",
        "return text",
        json!({
            "params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}],
            "sandboxOverrides": {"fileWrite": true},
            "humanInTheLoop": {"mode": "REQUIRED"},
        }),
    )
}

#[tokio::test]
async fn every_door_walks_every_gate() {
    let approver = Says::new(ApprovalAnswer::Approved(
        engine::approve::ApprovalScope::Once,
    ));
    let world = World::with(Home::new(), |settings| {
        settings.approver = Some(approver.clone());
    });
    world.published(&writer()).await;
    for origin in Origin::ALL {
        let caller = Caller::named("ann");
        let request = CallRequest::new(caller, origin, "writer", json!({"text": "x"}));
        let outcome = world.made(request).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        assert_eq!(world.gates(&outcome), ALL, "{origin:?}");
        assert_eq!(world.entry(&outcome).opening.origin, origin);
    }
    assert_eq!(ALL.len(), Gate::ALL.len());
    let asked = approver.asked.lock().unwrap();
    assert_eq!(asked.len(), Origin::ALL.len());
    // The same question is bound to the same thing, whatever the door.
    assert!(asked.iter().all(|one| one.binding == asked[0].binding));
    drop(asked);
    world.assert_whole();
}

#[tokio::test]
async fn a_deny_list_with_a_star_denies_everywhere() {
    let world = World::new();
    world
        .published(&document("hello", "return 1", json!({})))
        .await;
    world
        .home
        .file("ringfence.toml", "[access]\ndeny = [\"*\"]\n");
    for origin in Origin::ALL {
        for caller in [Caller::named("ann"), Caller::owner()] {
            let is_owner = caller == Caller::owner();
            let request = CallRequest::new(caller, origin, "hello", json!({}));
            let outcome = world.made(request).await;
            let expected = if is_owner {
                ("access.denied", "`hello` is denied to everyone by `*`")
            } else {
                ("tool.unknown", "there is no tool `hello`")
            };
            assert_eq!(error(&outcome), expected, "{origin:?}");
            assert_eq!(outcome.status, Status::Refused);
            let gates = world.gates(&outcome);
            let expected = ["caller pass", "registry pass", "access stop"];
            assert_eq!(gates, expected, "{origin:?}");
        }
    }
    // A document as it stands, and its own Local Pass, are calls as well.
    let usable = world.engine.tool("hello").unwrap().usable;
    let passed = world.engine.local_pass(&usable, Origin::Cli).await.unwrap();
    assert_eq!(passed.error.unwrap().code, "access.denied");
}

/// For each gate a call that it alone stops, with what the caller is told and
/// what the operator reads.
#[tokio::test]
async fn each_gate_can_say_no() {
    let home = Home::new();
    home.file("secrets.env", "KEY=value-of-key\nA=1\nB=2\nC=3\n");
    let world = World::with(home, |_| ());
    set_mode(&world, 0o600);
    let variables = json!({"staticVariables": [{"key": "${KEY}"}]});
    let three = json!({"staticVariables": [{"a": "${A}"}, {"b": "${B}"}, {"c": "${C}"}]});
    world.published(&document("laden", "return 1", three)).await;
    let needs = json!({"staticVariables": [{"key": "${ABSENT}"}], "draft": false});
    world
        .published(&document("keyed", "return 1", variables))
        .await;
    world
        .home
        .tool("draft", &document("draft", "return 1", json!({})));
    world
        .home
        .tool("needy", &document("needy", "return 1", needs));
    world.published(&writer_of_outside()).await;

    stops(&world, "nothing", json!({}), "registry", "tool.unknown").await;
    stops(&world, "draft", json!({}), "registry", "tool.draft").await;
    stops(
        &world,
        "keyed",
        json!({"x": 1}),
        "arguments",
        "argument.unknown",
    )
    .await;
    world
        .home
        .file("ringfence.toml", "[approvals]\nwait_seconds = 1\n");
    stops(&world, "outside", json!({}), "approval", "approval.pending").await;

    world.home.file(
        "ringfence.toml",
        "[exposure.exclude]\nnames = [\"keyed\"]\n",
    );
    stops(&world, "keyed", json!({}), "access", "tool.not_exposed").await;
    world.home.file(
        "ringfence.toml",
        "[baseline]
file_read = true
fs_base_path = \"/dev/null/no/folder\"
",
    );
    stops(&world, "keyed", json!({}), "powers", "power.unavailable").await;
    world.home.file("ringfence.toml", "");

    set_mode(&world, 0o644);
    stops(&world, "keyed", json!({}), "secrets", "secrets.unavailable").await;
    set_mode(&world, 0o600);
    world.home.file("secrets.env", "OTHER=1\n");
    stops(
        &world,
        "keyed",
        json!({}),
        "requirements",
        "requirement.missing",
    )
    .await;
    let long = |name: &str| format!("{name}={}\n", name.repeat(60_000));
    let secrets = format!("{}{}{}", long("A"), long("B"), long("C"));
    world.home.file("secrets.env", &secrets);
    stops(&world, "laden", json!({}), "masking", "mask.unavailable").await;
    // Set again without a restart, it works.
    world.home.file("secrets.env", "KEY=value-of-key\n");
    assert_eq!(
        world.own_call("keyed", json!({})).await.status,
        Status::Done
    );
    world.assert_whole();
}

/// A rule of the operator stops a call at every door, and only the call it is about.
#[tokio::test]
async fn a_rule_says_no_everywhere() {
    let home = Home::new();
    home.file(
        "ringfence.toml",
        "[[rule]]
id = \"big\"
tools = [\"pay\"]
when = \"args.amount > 1000\"
effect = \"deny\"
reason = \"above 1000\"
[expected]
tools = [\"pay\"]
",
    );
    let world = World::with(home, |_| ());
    let params = json!({"params": [
        {"name": "amount", "type": "NUMBER", "required": true, "testValue": "1"}]});
    world
        .published(&document("pay", "return amount", params))
        .await;
    for origin in Origin::ALL {
        for caller in [Caller::named("ann"), Caller::owner()] {
            let call = |amount| {
                let arguments = json!({"amount": amount});
                CallRequest::new(caller.clone(), origin, "pay", arguments)
            };
            assert_eq!(world.made(call(1000)).await.status, Status::Done);
            let outcome = world.made(call(1001)).await;
            let (code, told) = error(&outcome);
            assert_eq!(code, "rule.denied", "{origin:?}");
            assert!(
                told.contains("above 1000") && told.contains("big"),
                "{told}"
            );
            assert_eq!(outcome.value, None);
            assert_eq!(world.gates(&outcome).pop().unwrap(), "rules stop");
        }
    }
    world.assert_whole();
}

/// A limit that is used up and a pause stop a call at every door, whoever makes it.
#[tokio::test]
async fn limits_and_pauses_say_no_everywhere() {
    let home = Home::new();
    home.file(
        "ringfence.toml",
        "[[limit]]\nid = \"few\"\ncalls_per_minute = 1\n",
    );
    let clock = Clockwork::new();
    let world = World::with(home, |settings| settings.clock = Some(clock.clock()));
    world
        .published(&document("hello", "return 1", json!({})))
        .await;
    for origin in Origin::ALL {
        for caller in [Caller::named("ann"), Caller::owner()] {
            clock.pass_ms(61_000);
            let call = || {
                let request = CallRequest::new(caller.clone(), origin, "hello", json!({}));
                world.made(request)
            };
            assert_eq!(call().await.status, Status::Done, "{origin:?}");
            let limited = call().await;
            assert_eq!(error(&limited).0, "limit.exceeded", "{origin:?}");
            assert_eq!(world.gates(&limited).pop().unwrap(), "limits stop");
            clock.pass_ms(61_000);
            let callers = world.engine.callers();
            callers.pause(&caller.name, &Caller::owner(), None).unwrap();
            let paused = call().await;
            assert_eq!(error(&paused).0, "caller.paused", "{origin:?}");
            assert_eq!(world.gates(&paused), ["caller stop"], "{origin:?}");
            assert!(callers.resume(&caller.name, &Caller::owner()).unwrap());
        }
    }
    world.assert_whole();
}

/// What a caller did not earn is not there for it, at any door.
#[tokio::test]
async fn trust_limits_calls_at_every_door() {
    let home = Home::new();
    let trust = "[trust]\nstrategy = \"milestone\"\ninitial_level = ";
    home.file("ringfence.toml", &format!("{trust}\"sandboxed\"\n"));
    let world = World::with(home, |_| ());
    let web = json!({"category": "WEB"});
    world.published(&document("web", "return 1", web)).await;
    let call = |name: &str, origin| {
        let request = CallRequest::new(Caller::named(name), origin, "web", json!({}));
        world.made(request)
    };
    for origin in Origin::ALL {
        let outcome = call("ann", origin).await;
        assert_eq!(error(&outcome).0, "tool.unknown", "{origin:?}");
        assert_eq!(world.gates(&outcome).pop().unwrap(), "access stop");
    }
    // Somebody who begins with more, after the settings changed.
    let file = format!("{trust}\"restricted\"\n");
    world.home.file("ringfence.toml", &file);
    for origin in Origin::ALL {
        assert_eq!(call("bob", origin).await.status, Status::Done, "{origin:?}");
        assert_eq!(error(&call("ann", origin).await).0, "tool.unknown");
    }
}

/// A caller's level takes powers from a call that everybody else has, and the audit
/// says what was enforced.
#[tokio::test]
async fn a_level_takes_from_the_policy() {
    let home = Home::new();
    // A tool that asks for the network itself is not there without it: `govern.rs`.
    let baseline = "[baseline]\nnetwork = \"allowlist\"\nhosts = [\"api.example\"]\n";
    let level = "[callers.ann]\nlevel = \"sandboxed\"\n";
    home.file("ringfence.toml", &format!("{baseline}{level}"));
    let world = World::with(home, |_| ());
    let more = json!({"category": "TEXT"});
    let reaches = document("reaches", "return typeof fetch", more);
    world.published(&reaches).await;
    for (caller, face, mode) in [
        ("ann", "undefined", "blocked"),
        ("bob", "function", "allowlist"),
    ] {
        let request = CallRequest::new(Caller::named(caller), Origin::Mcp, "reaches", json!({}));
        let outcome = world.made(request).await;
        assert_eq!(outcome.value, Some(json!(face)), "{caller}: {outcome:?}");
        let facts = world.entry(&outcome).closing.unwrap().tool.unwrap();
        let enforced = facts.tool_safety.to_string();
        assert!(enforced.contains(mode), "{caller}: {enforced}");
    }
}

/// A document as it stands was judged under other settings; the path judges anew.
#[tokio::test]
async fn the_policy_gate_says_no_to_a_document_that_conflicts_by_now() {
    let world = World::new();
    let asks = json!({"sandboxOverrides": {"addAllowClasses": ["com.example.Thing"]}});
    world.published(&document("asks", "return 1", asks)).await;
    let usable = world.engine.tool("asks").unwrap().usable;
    let call = || {
        let mut request = CallRequest::new(Caller::owner(), Origin::Cli, "", json!({}));
        request.target = CallTarget::Document(usable.clone());
        world.made(request)
    };
    assert_eq!(call().await.status, Status::Done);
    world.home.file(
        "ringfence.toml",
        "[baseline]\ndeny_classes = [\"com.example.Thing\"]\n",
    );
    let outcome = call().await;
    assert_eq!(outcome.status, Status::Refused);
    assert_eq!(error(&outcome).0, "policy.overlap");
    assert_eq!(world.gates(&outcome).pop().unwrap(), "policy stop");
    // The same document in its folder is set aside, and so it is unknown.
    let outcome = world.call("asks", json!({})).await;
    assert_eq!(error(&outcome).0, "tool.unknown");
}

/// The disk does not confirm the opening of a call that writes files: it does not
/// run, nor does any after it, until somebody starts anew.
#[tokio::test]
async fn the_audit_gate_says_no_when_the_disk_does() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let world = World::with(Home::new(), |settings| {
        settings.observer = Some(Observer::new(move |step| {
            noted.lock().unwrap().push(step.to_owned());
        }));
    });
    let writes = json!({"sandboxOverrides": {"fileWrite": true}});
    let code = "safety.fs.writeText('out.txt', 'x'); return 1";
    world.published(&document("writes", code, writes)).await;
    store::testing::fail_syncs(&world.home.path);
    seen.lock().unwrap().clear();
    let outcome = world.own_call("writes", json!({})).await;
    assert_eq!(error(&outcome).0, "audit.unavailable", "{outcome:?}");
    assert_eq!(outcome.status, Status::Refused);
    assert_eq!(outcome.value, None);
    let steps = seen.lock().unwrap().clone();
    assert!(steps.contains(&"audit".to_owned()), "{steps:?}");
    assert!(!steps.contains(&"powers".to_owned()), "{steps:?}");
    let file = world.home.path.join("workspace/out.txt");
    assert!(!file.exists(), "it ran");
    let outcome = world.own_call("writes", json!({})).await;
    assert_eq!(error(&outcome).0, "audit.unavailable");
    let World { engine, home, .. } = world;
    drop(engine);
    store::testing::mend(&home.path);
    let world = World::with(home, |_| ());
    let audit = world.engine.store().audit();
    let closed = audit.list(&Filter::default()).unwrap();
    assert_eq!(closed[0].closing.as_ref().unwrap().status, Status::Crashed);
    // The Local Pass and the first call; the second was not even begun.
    assert_eq!(closed.len(), 2);
    world.assert_whole();
    let outcome = world.own_call("writes", json!({})).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
}

fn writer_of_outside() -> serde_json::Value {
    document(
        "outside",
        "return 1",
        json!({"humanInTheLoop": {"mode": "REQUIRED"}}),
    )
}

fn set_mode(world: &World, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = world.home.path.join("secrets.env");
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).unwrap();
}

/// The owner is told the reason; to anybody else a tool that is not for them is
/// unknown, in the same words as one that does not exist.
#[track_caller]
fn stops<'a>(
    world: &'a World,
    tool: &'a str,
    arguments: serde_json::Value,
    gate: &'a str,
    code: &'a str,
) -> impl Future<Output = ()> + 'a {
    let place = std::panic::Location::caller();
    async move {
        let owned = world.own_call(tool, arguments.clone()).await;
        assert_eq!(owned.status, Status::Refused, "{place}");
        assert_eq!(error(&owned).0, code, "{place}");
        let last = world.gates(&owned).pop().unwrap();
        assert_eq!(last, format!("{gate} stop"), "{place}");
        let other = world.call(tool, arguments).await;
        let hidden = matches!(
            code,
            "tool.draft" | "tool.not_exposed" | "requirement.missing" | "access.denied"
        );
        let unknown = format!("there is no tool `{tool}`");
        if hidden || code == "tool.unknown" {
            let expected = ("tool.unknown", unknown.as_str());
            assert_eq!(error(&other), expected, "{place}");
        } else {
            assert_eq!(error(&other).0, code, "{place}");
        }
        // The operator reads the true reason either way.
        let closing = world.entry(&other).closing.unwrap();
        let reason = closing.gates.last().unwrap().reason.clone();
        assert_eq!(reason.as_deref(), Some(code), "{place}");
    }
}

#[tokio::test]
async fn only_the_owner_brings_documents() {
    let world = World::new();
    world
        .published(&document("hello", "return 1", json!({})))
        .await;
    let usable = world.engine.tool("hello").unwrap().usable;
    for (caller, expected) in [
        (Caller::owner(), Status::Done),
        (Caller::named("ann"), Status::Refused),
    ] {
        let mut request = CallRequest::new(caller, Origin::Mcp, "", json!({}));
        request.target = CallTarget::Document(usable.clone());
        assert_eq!(world.made(request).await.status, expected);
    }
}

/// The Local Pass asks nobody; the same call for use does.
#[tokio::test]
async fn only_the_local_pass_does_not_ask() {
    let approver = Says::new(ApprovalAnswer::Declined);
    let world = World::with(Home::new(), |settings| {
        settings.approver = Some(approver.clone());
    });
    world.published(&writer()).await;
    assert!(approver.asked.lock().unwrap().is_empty());
    let outcome = world.own_call("writer", json!({"text": "x"})).await;
    assert_eq!(error(&outcome).0, "approval.declined");
    let mut request =
        CallRequest::new(Caller::owner(), Origin::Cli, "writer", json!({"text": "x"}));
    request.purpose = CallPurpose::LocalPass;
    assert_eq!(world.made(request).await.status, Status::Done);
    assert_eq!(approver.asked.lock().unwrap().len(), 1);
}

/// What a door cannot make is an attempt like any other: opened, closed, with the gate
/// that stopped it, and nothing is looked up or run.
#[tokio::test]
async fn a_call_refused_by_its_door_is_recorded() {
    let world = World::new();
    world
        .published(&document("hello", "return 1", json!({})))
        .await;
    for (tool, gate) in [("hello", Gate::Limits), ("nothing", Gate::Approval)] {
        let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, tool, json!({}));
        request.refused = Some(Refused {
            gate,
            error: CallError::passing(Reason::CallBusy, "later"),
        });
        let outcome = world.made(request).await;
        assert_eq!(outcome.status, Status::Refused);
        assert_eq!(error(&outcome), ("call.busy", "later"));
        assert_eq!(world.gates(&outcome), [format!("{} stop", gate.word())]);
        let entry = world.entry(&outcome);
        assert_eq!(entry.opening.tool, tool);
        assert!(entry.closing.unwrap().tool.is_none());
    }
}

/// Invariant 10, by the clock. A tool that is hidden costs more to refuse than one that
/// never was; both answers wait for one of a row of even moments, and no other answer does.
#[tokio::test]
async fn hidden_and_absent_leave_at_even_moments() {
    let world = World::new();
    world
        .published(&document("hidden", "return 1", json!({})))
        .await;
    world.home.file(
        "ringfence.toml",
        "[exposure.exclude]\nnames = [\"hidden\"]\n",
    );
    let step = Duration::from_millis(limits::UNKNOWN_STEP_MS);
    for tool in ["hidden", "nothing"] {
        for _ in 0..20 {
            let began = Instant::now();
            assert_eq!(error(&world.call(tool, json!({})).await).0, "tool.unknown");
            assert!(began.elapsed() >= step, "{tool}: {:?}", began.elapsed());
        }
    }
    // To the owner they are two things anyway. The fastest of many, on a busy machine.
    let mut fastest = Duration::MAX;
    for _ in 0..50 {
        let began = Instant::now();
        world.own_call("hidden", json!({})).await;
        fastest = fastest.min(began.elapsed());
    }
    assert!(fastest < step, "{fastest:?}");
}
