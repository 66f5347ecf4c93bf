//! Every gate stops a tool that a script calls, just as it stops a tool that is
//! called by itself, and every call of a script is in the audit below its script.

use engine::approve::ApprovalAnswer;
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};
use store::{AuditEntry, Filter};

use crate::script::{answer, run, world_with};
use crate::world::{Says, World, document};

/// What a script gets that calls one tool.
async fn meets(world: &World, tool: &str) -> Value {
    let script =
        format!("return await callTool('{tool}', {{ a: 1, b: 1 }}, {{ throwOnError: false }});");
    let outcome = run(world, &script).await;
    let answer = answer(&outcome);
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["result"].clone()
}

fn entries(world: &World) -> Vec<AuditEntry> {
    world
        .engine
        .store()
        .audit()
        .list(&Filter::default())
        .unwrap()
}

/// The entries below a call, by the names of their tools.
fn below(world: &World, outcome: &Outcome) -> Vec<AuditEntry> {
    let mut all = entries(world);
    all.retain(|entry| entry.opening.parent_id.as_deref() == Some(outcome.call_id.as_str()));
    all.sort_by(|a, b| a.opening.tool.cmp(&b.opening.tool));
    all
}

#[tokio::test]
async fn denied_and_absent_tools_look_the_same() {
    let settings = "[callers.ann]\ndeny = [\"add\", \"*secret*\"]\n[expected]\ntools = [\"add\", \"*secret*\"]\n";
    let world = world_with(settings).await;
    let denied = meets(&world, "add").await;
    let absent = meets(&world, "ada").await;
    assert_eq!(denied["error"]["code"], "NOT_FOUND");
    assert_eq!(
        denied.to_string().replace("add", "NAME"),
        absent.to_string().replace("ada", "NAME")
    );
    // Nor is it in a space, nor to be looked at.
    let script = "return [typeof getTool('add'), typeof getTool('math.add')];";
    let outcome = run(&world, script).await;
    assert_eq!(answer(&outcome)["result"], json!(["undefined", "object"]));
    let hidden =
        world_with("[callers.ann]\ndeny = [\"math.*\"]\n[expected]\ntools = [\"math.*\"]\n").await;
    let with_space = run(&hidden, "return await math.add({ a: 1, b: 1 });").await;
    let without = run(&hidden, "return await meth.add({ a: 1, b: 1 });").await;
    assert_eq!(
        answer(&with_space).to_string(),
        answer(&without).to_string().replace("meth", "math")
    );
    // Everything denied: then there is no code mode either.
    let closed = world_with("[callers.ann]\ndeny = [\"*\"]\n").await;
    let outcome = run(&closed, "return 1 + 1;").await;
    assert_eq!(crate::world::error(&outcome).0, "tool.unknown");
}

#[tokio::test]
async fn a_rule_stops_a_call_of_a_script() {
    let rule = "[[rule]]\nid = \"big\"\ncallers = [\"ann\"]\ntools = [\"add\"]\nwhen = \"args.a > 0\"\neffect = \"deny\"\nreason = \"too big\"\n[expected]\ntools = [\"add\"]\ncallers = [\"ann\"]\n";
    let world = world_with(rule).await;
    let met = meets(&world, "add").await;
    assert_eq!(met["error"]["code"], "ACCESS_DENIED");
    let words = met["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("too big"), "{words}");
    let outcome = run(&world, "return await callTool('add', { a: 0, b: 1 });").await;
    assert_eq!(answer(&outcome)["result"], 1);
}

#[tokio::test]
async fn a_level_stops_a_call_of_a_script() {
    let world = world_with("[callers.ann]\nlevel = \"sandboxed\"\n").await;
    let web = json!({"category": "WEB"});
    world.published(&document("page", "return 1", web)).await;
    let text = json!({"category": "TEXT"});
    world.published(&document("words", "return 1", text)).await;
    let script = "const a = await callTool('words', {}); \
        const b = await callTool('page', {}, { throwOnError: false }); return [a, b.error.code];";
    let outcome = run(&world, script).await;
    assert_eq!(answer(&outcome)["result"], json!([1, "NOT_FOUND"]));
}

#[tokio::test]
async fn scripts_can_catch_a_declined_approval() {
    let world = world_with("").await;
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world
        .published(&document("asks", "return 'ran'", asks))
        .await;
    let script = "try { return await callTool('asks', {}); } catch (e) { return e.code; }";
    let arguments = json!({"script": script});
    for (said, expected) in [
        (ApprovalAnswer::Declined, json!("APPROVAL_DENIED")),
        (ApprovalAnswer::Dismissed, json!("APPROVAL_DENIED")),
        (
            ApprovalAnswer::Approved(engine::approve::ApprovalScope::Once),
            json!("ran"),
        ),
    ] {
        let caller = Caller::named("ann");
        let name = "codecall_execute";
        let mut request = CallRequest::new(caller, Origin::Mcp, name, arguments.clone());
        request.approver = Some(Says::new(said));
        let outcome = world.made(request).await;
        assert_eq!(answer(&outcome)["result"], expected, "{said:?}");
    }
}

#[tokio::test]
async fn lists_of_the_call_itself_hold() {
    let world = world_with("").await;
    let script = "const out = []; for (const a of [1]) { \
        out.push((await callTool('add', { a, b: 1 }, { throwOnError: false })).success); \
        out.push((await callTool('math.add', { a, b: 1 }, { throwOnError: false })).error.code); } return out;";
    let arguments = json!({"script": script, "allowedTools": ["add"]});
    let outcome = world.call("codecall_execute", arguments).await;
    assert_eq!(answer(&outcome)["result"], json!([true, "ACCESS_DENIED"]));
    // An empty list allows nothing; a list cannot allow code mode itself.
    for (allowed, code) in [
        (json!([]), "ACCESS_DENIED"),
        (json!(["*"]), "SELF_REFERENCE"),
    ] {
        let script =
            "return (await callTool('codecall_invoke', {}, { throwOnError: false })).error.code;";
        let other =
            "return (await callTool('add', { a: 1, b: 1 }, { throwOnError: false })).error.code;";
        let script = if code == "SELF_REFERENCE" {
            script
        } else {
            other
        };
        let arguments = json!({"script": script, "allowedTools": allowed});
        let outcome = world.call("codecall_execute", arguments).await;
        assert_eq!(answer(&outcome)["result"], code);
    }
}

#[tokio::test]
async fn every_call_is_in_the_audit_below_its_script() {
    let world = world_with("").await;
    let script = "await callTool('add', { a: 1, b: 1 }); \
        try { await callTool('absent', {}); } catch { } return await callTool('fails', { hard: true });";
    let outcome = run(&world, script).await;
    let rows = below(&world, &outcome);
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            let closing = row.closing.as_ref().unwrap();
            assert_eq!(row.opening.origin, Origin::Script);
            assert_eq!(row.opening.caller, "ann");
            (row.opening.tool.as_str(), closing.status)
        })
        .collect();
    let expected = [
        ("absent", Status::Refused),
        ("add", Status::Done),
        ("fails", Status::Failed),
    ];
    assert_eq!(seen, expected);
    let own = world.entry(&outcome).closing.unwrap();
    assert_eq!(own.status, Status::Failed);
    assert_eq!(own.error.unwrap().code, "script.tool_error");
    let expected = json!({"kind": "script", "preset": "secure", "calls": 3, "fromJournal": 0});
    assert_eq!(own.events, [expected]);
    world.assert_whole();
}

#[tokio::test]
async fn cancelling_a_script_cancels_its_tools() {
    let world = world_with("").await;
    let caller = Caller::named("ann");
    let arguments = json!({"script": "return await callTool('endless', { go: true });"});
    let request = CallRequest::new(caller, Origin::Mcp, "codecall_execute", arguments);
    let cancel = request.cancel.clone();
    let stop = async {
        loop {
            let begun = entries(&world)
                .iter()
                .any(|row| row.opening.tool == "endless" && row.opening.origin == Origin::Script);
            if begun {
                return cancel.cancel();
            }
            tokio::task::yield_now().await;
        }
    };
    let (outcome, ()) = tokio::join!(world.made(request), stop);
    assert_eq!(outcome.status, Status::Cancelled);
    loop {
        let rows = below(&world, &outcome);
        if let Some(closing) = &rows[0].closing {
            assert_eq!(closing.status, Status::Cancelled);
            break;
        }
        tokio::task::yield_now().await;
    }
}
