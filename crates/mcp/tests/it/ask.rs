//! Asking the person at the client: what they are shown, and what the matrix in
//! `ask_matrix` has no row for.

use engine::approve::ApprovalChange;
use model::govern::approval::ApprovalState;
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::ask_scene::{Column, Scene, TOOL, outcome, read, to, yes};
use crate::client::{LEGACY, call};
use crate::world::{World, document};

const WAIT: &str = "wait_seconds = 1\n";

/// The form is the same in both eras: who, what, how risky, and one choice.
fn assert_whole(form: &Value) {
    assert_eq!(form["mode"], "form");
    let message = form["message"].as_str().unwrap();
    for part in [
        "ann wants",
        "Do asks?",
        "L0",
        r#"{"to":"bob"}"#,
        "asked because: the tool asks before every call",
        "may answer: the person at the caller's own client",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let schema = &form["requestedSchema"];
    assert_eq!(schema["required"], json!(["answer"]));
    assert_eq!(schema["properties"]["answer"]["oneOf"][0]["const"], "once");
}

#[tokio::test]
async fn a_question_shows_everything() {
    let world = World::with(&format!("[approvals]\n{WAIT}")).await;
    let more = json!({
        "humanInTheLoop": {"mode": "REQUIRED", "promptTemplate": "Do {toolName}?"},
        "params": [{"name": "to", "type": "STRING", "required": false}],
    });
    world.publish(&document("asks", "return 'ran'", more)).await;
    let server = world.serve().await;
    let capable = json!({"elicitation": {}});
    let mut client = server.client().await;
    client.begin(LEGACY, capable.clone()).await;
    let message = call(1, "asks", to("bob"));
    let mut events = client.post(&message).await.events();
    let asked = events.next().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    assert_whole(&asked["params"]);
    let mut client = server.client().await;
    let said = client.modern_with(&message, capable).await.last().await;
    let asked = &said["result"]["inputRequests"]["approval"];
    assert_eq!(asked["method"], "elicitation/create");
    assert_whole(&asked["params"]);
    server.end().await;
}

/// A client that says it can ask, and then that it cannot, is treated as one that cannot.
#[tokio::test]
async fn a_client_may_be_unable_after_all() {
    let mut scene = Scene::new("unable after all", Column::LegacyHttp, WAIT).await;
    let mut visitor = scene.visitor().await;
    let mut asked = scene.ask(&mut visitor, &to("ann")).await;
    let error = json!({"code": -32601, "message": "no"});
    let cannot = json!({"jsonrpc": "2.0", "id": asked.token, "error": error});
    visitor.say(&cannot).await;
    let said = visitor.rest(&mut asked).await;
    scene.see_answer(&said);
    let facts = scene.end().await;
    assert_eq!(facts[0].told, "approval.pending");
    assert_eq!((facts[0].runs, facts[0].shown), (0, 1));
}

/// The question of a cancelled call is closed with it.
#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let scene = Scene::new("cancelled", Column::LegacyPipe, "wait_seconds = 60\n").await;
    let mut visitor = scene.visitor().await;
    let asked = scene.ask(&mut visitor, &to("ann")).await;
    let params = json!({"requestId": asked.call});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    visitor.say(&cancelled).await;
    let said = visitor.next().await;
    assert_eq!(said["method"], "notifications/cancelled");
    assert_eq!(said["params"]["requestId"], asked.token);
    scene.world.ended_as(TOOL, Status::Cancelled).await;
    assert_eq!(scene.runs(), 0);
    // Another call with the same arguments finds it in the inbox.
    assert_eq!(scene.questions()[0].state, ApprovalState::Pending);
    scene.end().await;
}

#[tokio::test]
async fn two_at_once_run_once() {
    let scene = Scene::new("two at once", Column::ModernHttp, WAIT).await;
    let mut first = scene.visitor().await;
    let mut second = scene.visitor().await;
    let asked = scene.ask(&mut first, &to("ann")).await;
    read().await;
    let messages = (first.retry(&asked, &yes()), second.retry(&asked, &yes()));
    let both = tokio::join!(
        first.say_modern(&messages.0),
        second.say_modern(&messages.1)
    );
    assert_eq!(scene.runs(), 1, "{both:?}");
    scene.end().await;
}

/// What was made up, changed or left out opens nothing, and uses nothing up.
#[tokio::test]
async fn a_foreign_state_is_refused() {
    for column in [Column::ModernHttp, Column::ModernPipe] {
        let scene = Scene::new("not ours", column, WAIT).await;
        let mut visitor = scene.visitor().await;
        let mut asked = scene.ask(&mut visitor, &to("ann")).await;
        read().await;
        let state = asked.token.as_str().unwrap().to_owned();
        let mut cut = state.clone();
        cut.pop();
        let turned: String = state.chars().rev().collect();
        for wrong in [&format!("{state}A"), &cut, &turned, "made up", ""] {
            asked.token = json!(wrong);
            let said = visitor.answer(&mut asked, &yes()).await;
            assert_eq!(outcome(&said), "approval.state", "{wrong}");
        }
        assert_eq!(scene.runs(), 0);
        asked.token = json!(state);
        // Without an answer, or with one to another question, the same is asked again.
        for responses in [json!(null), json!({}), json!({"other": yes()})] {
            let mut message = visitor.retry(&asked, &yes());
            message["params"]["inputResponses"] = responses;
            if message["params"]["inputResponses"].is_null() {
                let params = message["params"].as_object_mut().unwrap();
                params.remove("inputResponses");
            }
            let said = visitor.say_modern(&message).await;
            assert_eq!(outcome(&said), "asked", "{message}");
        }
        assert_eq!(scene.questions().len(), 1);
        let said = visitor.answer(&mut asked, &yes()).await;
        assert_eq!(outcome(&said), "ran");
        scene.end().await;
    }
}

/// The key of the seal goes with the process: after a restart everybody is asked again,
/// and the question that waits is the same.
#[tokio::test]
async fn a_state_of_another_process_is_refused() {
    let scene = Scene::new("restart", Column::ModernPipe, WAIT).await;
    let mut visitor = scene.visitor().await;
    let mut asked = scene.ask(&mut visitor, &to("ann")).await;
    read().await;
    let mut later = scene.after_restart().await;
    let said = later.answer(&mut asked, &yes()).await;
    assert_eq!(outcome(&said), "approval.state");
    assert_eq!(outcome(&later.call(&to("ann")).await), "asked");
    assert_eq!(scene.questions().len(), 1);
    assert_eq!(scene.runs(), 0);
    scene.end().await;
}

/// A store that fails at any step: nothing runs, the client reads one sentence, and once
/// the store works again nothing was used up.
#[tokio::test]
async fn a_store_that_fails_runs_nothing() {
    for column in Column::ALL {
        // Where a modern call takes an answer it does not know whether there is one.
        let taking = match column.is_modern() {
            true => ApprovalChange::Claim,
            false => ApprovalChange::Take,
        };
        let steps = [
            (ApprovalChange::Answer, ApprovalState::Pending),
            (taking, ApprovalState::Approved),
        ];
        for (step, left) in steps {
            let scene = Scene::new("a store that fails", column, "wait_seconds = 20\n").await;
            let approvals = scene.world.engine().store().approvals();
            let mut visitor = scene.visitor().await;
            approvals.fail(Some(ApprovalChange::Ask));
            let said = visitor.call(&to("ann")).await;
            assert_eq!(outcome(&said), "approval.unavailable", "{said}");
            assert_eq!(scene.questions().len(), 0, "{column:?}");
            approvals.fail(None);
            let mut asked = scene.ask(&mut visitor, &to("ann")).await;
            read().await;
            approvals.fail(Some(step));
            let said = visitor.answer(&mut asked, &yes()).await;
            assert_eq!(outcome(&said), "approval.unavailable", "{said}");
            let text = said["result"]["content"][0]["text"].as_str().unwrap();
            assert!(
                text.contains("did not run") && !text.contains("disk"),
                "{text}"
            );
            let states: Vec<_> = scene.questions().iter().map(|row| row.state).collect();
            assert_eq!(
                (states, scene.runs()),
                (vec![left], 0),
                "{column:?} {step:?}"
            );
            assert_eq!(scene.world.alarms.lock().unwrap().len(), 2);
            approvals.fail(None);
            let said = match (column.is_modern(), left) {
                (true, _) => visitor.answer(&mut asked, &yes()).await,
                (false, ApprovalState::Approved) => visitor.call(&to("ann")).await,
                (false, _) => {
                    let mut asked = visitor.ask(&to("ann")).await;
                    read().await;
                    visitor.answer(&mut asked, &yes()).await
                }
            };
            assert_eq!(
                (outcome(&said).as_str(), scene.runs()),
                ("ran", 1),
                "{column:?}"
            );
            scene.end().await;
        }
    }
}
