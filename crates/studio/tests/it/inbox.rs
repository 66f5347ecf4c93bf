//! The inbox: a question with everything that belongs to it, and every way it is answered.

use axum::http::StatusCode;
use model::record::audit::Status;
use serde_json::json;

use crate::world::{World, asking};

#[tokio::test]
async fn a_question_says_everything_and_is_approved_once() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    // A rule that asks would ask about the test of the tool as well.
    let rule = "[[rule]]\nid = \"look\"\ntools = [\"ask\"]\neffect = \"ask\"\nreason = \"a person looks\"\n";
    std::fs::write(world.home.join("ringfence.toml"), rule).unwrap();
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({"path": "/tmp/a"}));
    let id = world.question().await;
    let listed = owner.get("/api/v1/inbox").await;
    assert_eq!(listed.body["waiting"], 1);
    let path = format!("/api/v1/inbox/{id}");
    let question = owner.get(&path).await;
    let body = &question.body;
    assert_eq!(body["state"], "pending");
    assert_eq!(body["sentence"], "ann wants to run ask");
    assert_eq!(body["rule"], "look");
    assert_eq!(body["why"], "rule `look`: a person looks");
    assert_eq!(body["arguments"], json!({"path": "/tmp/a"}));
    assert_eq!(body["stale"], false);
    assert_eq!(body["canAnswer"], true);
    assert_eq!(body["from"]["door"], "mcp");
    assert_eq!(body["scopes"][0]["scope"], "once");
    let answer = json!({"revision": body["revision"], "answer": "approve", "note": "fine"});
    let done = owner.post(&format!("{path}/answer"), &answer).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.body);
    assert_eq!(done.body["answered"]["channel"], "studio");
    assert_eq!(done.body["answered"]["by"], "owner");
    let outcome = waiting.await.unwrap();
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    // A second answer is told who came first.
    let again = owner.post(&format!("{path}/answer"), &answer).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(
        again.body["error"]["details"]["current"]["answered"]["by"],
        "owner"
    );
    let notices = owner.get("/api/v1/audit?kind=notice&limit=5").await;
    let text = notices.body.to_string();
    assert!(
        text.contains("approval.answered") && text.contains("\"studio\""),
        "{text}"
    );
    // The next call of the same is compared with this one.
    let waiting = world.call("ask", json!({"path": "/tmp/b"}));
    let next = world.question().await;
    let next = owner.get(&format!("/api/v1/inbox/{next}")).await;
    assert_eq!(
        next.body["lastApproved"]["diff"],
        json!([{"pointer": "/path", "before": "\"/tmp/a\"", "after": "\"/tmp/b\""}])
    );
    waiting.abort();
}

#[tokio::test]
async fn a_denial_reaches_the_caller_with_its_reason() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({"path": "a"}));
    let id = world.question().await;
    let question = owner.get(&format!("/api/v1/inbox/{id}")).await;
    let answer =
        json!({"revision": question.body["revision"], "answer": "deny", "note": "not on a Friday"});
    owner
        .post(&format!("/api/v1/inbox/{id}/answer"), &answer)
        .await;
    let outcome = waiting.await.unwrap();
    assert_eq!(outcome.status, Status::Refused);
    assert!(outcome.error.unwrap().message.contains("not on a Friday"));
}

/// A person changes the arguments: the call that runs is theirs, its caller is told, and the
/// audit has both.
#[tokio::test]
async fn a_call_is_approved_with_changes() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({"path": "/etc"}));
    let id = world.question().await;
    let path = format!("/api/v1/inbox/{id}");
    let question = owner.get(&path).await;
    assert_eq!(question.body["canChange"], true);
    let preview = owner
        .post(
            &format!("{path}/preview"),
            &json!({"arguments": {"path": "/tmp"}}),
        )
        .await;
    assert_eq!(preview.body["ok"], true, "{}", preview.body);
    assert_eq!(preview.body["diff"][0]["after"], "\"/tmp\"");
    let answer = json!({
        "revision": question.body["revision"], "answer": "approve", "arguments": {"path": "/tmp"},
    });
    let done = owner.post(&format!("{path}/answer"), &answer).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.body);
    assert_eq!(done.body["answered"]["changed"][0]["pointer"], "/path");
    let outcome = waiting.await.unwrap();
    assert_eq!(outcome.value, Some(json!("path /tmp")), "{outcome:?}");
    assert_eq!(outcome.notes.len(), 1);
    assert!(
        outcome.notes[0].contains("/path: \"/etc\" → \"/tmp\""),
        "{:?}",
        outcome.notes
    );
    let call = owner
        .get(&format!("/api/v1/audit/{}", outcome.call_id))
        .await;
    assert_eq!(call.body["arguments"], json!({"path": "/tmp"}));
    let notes = call.body["gates"].to_string();
    assert!(notes.contains("with changed arguments by owner"), "{notes}");
    // It counts once: the same call asks again.
    let waiting = world.call("ask", json!({"path": "/etc"}));
    let next = world.question().await;
    assert_ne!(next, id);
    waiting.abort();
}

/// Changed arguments that do not fit, that a rule denies, or that are approved for more than
/// once, are not taken, and the question still waits.
#[tokio::test]
async fn changes_are_checked_and_judged() {
    let rule = "[expected]\ntools = [\"ask\"]\n[[rule]]\nid = \"no-etc\"\ntools = [\"ask\"]\nwhen = \"args.path == '/etc'\"\neffect = \"deny\"\nreason = \"never there\"\n";
    let world = World::new(rule);
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({"path": "/tmp"}));
    let id = world.question().await;
    let path = format!("/api/v1/inbox/{id}");
    let question = owner.get(&path).await;
    for (arguments, scope) in [
        (json!({"path": "/etc"}), "once"),
        (json!({"path": 1}), "once"),
        (json!({"other": "x"}), "once"),
        (json!([]), "once"),
        (json!({"path": "/tmp"}), "once"),
        (json!({"path": "/var"}), "same-arguments"),
    ] {
        let answer = json!({
            "revision": question.body["revision"], "answer": "approve", "scope": scope,
            "arguments": arguments,
        });
        let refused = owner.post(&format!("{path}/answer"), &answer).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{arguments} {}",
            refused.body
        );
    }
    assert_eq!(owner.get(&path).await.body["state"], "pending");
    waiting.abort();
}

/// The tool changes while the person reads: the page says so, and no approval counts.
#[tokio::test]
async fn a_stale_question_is_said_to_be_stale() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({"path": "a"}));
    let id = world.question().await;
    let path = format!("/api/v1/inbox/{id}");
    let before = owner.get(&path).await;
    let mut other = asking("ask");
    other["code"] = json!("return 'other ' + path;");
    world.publish(&other).await;
    let after = owner.get(&path).await;
    assert_eq!(after.body["stale"], true, "{}", after.body);
    assert_eq!(after.body["canAnswer"], false);
    for revision in [&before.body["revision"], &after.body["revision"]] {
        let answer = json!({"revision": revision, "answer": "approve"});
        let refused = owner.post(&format!("{path}/answer"), &answer).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
    }
    let deny = json!({"revision": after.body["revision"], "answer": "deny"});
    assert_eq!(
        owner.post(&format!("{path}/answer"), &deny).await.status,
        StatusCode::OK
    );
    assert_eq!(waiting.await.unwrap().status, Status::Refused);
}

/// Where another person must approve, the owner by any name is no other for the owner's own
/// call.
#[tokio::test]
async fn the_owner_approves_no_call_of_their_own_where_another_must() {
    let world = World::new("[approvals]\nseparate = true\n");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let engine = std::sync::Arc::clone(&world.engine);
    let own = tokio::spawn(async move {
        let caller = model::caller::Caller::owner();
        let origin = model::caller::Origin::Studio;
        let request = engine::call::CallRequest::new(caller, origin, "ask", json!({"path": "a"}));
        engine.call(request).await.into_inner()
    });
    let id = world.question().await;
    let person = model::govern::person::Person {
        name: "oauth:eve".to_owned(),
        role: model::govern::person::PersonRole::Owner,
    };
    assert!(world.engine.check_person(&id, &person).is_err());
    let question = owner.get(&format!("/api/v1/inbox/{id}")).await;
    let answer = json!({"revision": question.body["revision"], "answer": "approve"});
    let refused = owner
        .post(&format!("/api/v1/inbox/{id}/answer"), &answer)
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    own.abort();
}
