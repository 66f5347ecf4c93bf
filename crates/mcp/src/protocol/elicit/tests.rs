//! What an answer counts for, and what the form looks like.

use model::policy::risk::{Level, Risk};

use serde::Deserialize as _;

use super::*;

const READ: Duration = Duration::from_millis(700);
/// A little less than that.
const TOO_FAST: Duration = Duration::from_millis(699);

pub(in crate::protocol) fn question() -> Question {
    Question {
        call_id: "call".to_owned(),
        tool: "send".to_owned(),
        caller: "ann".to_owned(),
        risk: Risk {
            level: Level::L3,
            signals: Vec::new(),
        },
        prompt: "Send it?".to_owned(),
        arguments: "{}".to_owned(),
        binding: "digest".to_owned(),
        id: "question-1".to_owned(),
        expires_at_ms: 4_000_000_000_000,
        scopes: vec![ApprovalScope::Once, ApprovalScope::Session],
        why: "the tool asks before every call".to_owned(),
        may_answer: "the person at the caller's own client".to_owned(),
    }
}

#[track_caller]
fn judged(response: Value, took: Duration, expected: ApprovalAnswer) {
    let result = ElicitResult::deserialize(&response).expect("a result");
    assert_eq!(
        judge(&result, took, READ, &question().scopes),
        expected,
        "{response}"
    );
}

#[test]
fn only_a_complete_approval_counts() {
    let yes = |answer: Value| json!({"action": "accept", "content": answer});
    let once = || yes(json!({"answer": "once"}));
    judged(once(), READ, ApprovalAnswer::Approved(ApprovalScope::Once));
    let session = yes(json!({"answer": "session"}));
    judged(
        session,
        READ,
        ApprovalAnswer::Approved(ApprovalScope::Session),
    );
    judged(once(), TOO_FAST, ApprovalAnswer::NotRendered);
    judged(json!({"action": "decline"}), READ, ApprovalAnswer::Declined);
    judged(json!({"action": "cancel"}), READ, ApprovalAnswer::Dismissed);
    // Some clients decline by themselves; no person saw the question.
    for action in ["decline", "cancel"] {
        let result = json!({"action": action});
        judged(result, TOO_FAST, ApprovalAnswer::NotRendered);
    }
    for wrong in [
        json!({"action": "accept"}),
        yes(json!(null)),
        yes(json!({})),
        yes(json!("once")),
        yes(json!({"answer": true})),
        yes(json!({"answer": "ONCE"})),
        yes(json!({"answer": "until-changed"})),
        yes(json!({"answer": "once", "more": 1})),
        yes(json!([{"answer": "once"}])),
    ] {
        judged(wrong, READ, ApprovalAnswer::Malformed);
    }
}

/// The time a person needs to read depends on the question, in both eras.
#[test]
fn a_long_question_takes_longer() {
    let long = Question {
        prompt: "x".repeat(800),
        ..question()
    };
    assert!(reading(&long) > reading(&question()) + Duration::from_millis(1_500));
    assert!(reading(&question()) >= Duration::from_millis(600));
}

/// Titles stand where each revision has them.
#[test]
fn the_form_is_what_the_revision_knows() {
    let shape = |version: ProtocolVersion| {
        let form = form(&question(), Some(&version)).expect("a form");
        let form = serde_json::to_value(form).expect("JSON");
        form["requestedSchema"]["properties"]["answer"].clone()
    };
    let new = shape(ProtocolVersion::V_2025_11_25);
    assert_eq!(new["oneOf"][1]["const"], "session");
    let old = shape(ProtocolVersion::V_2025_06_18);
    assert_eq!(old["enum"], json!(["once", "session"]));
    let closed = Question {
        scopes: Vec::new(),
        ..question()
    };
    assert!(form(&closed, None).is_none());
}
