//! What a state counts for.

use super::*;
use crate::protocol::elicit::tests::question;

fn sealed(seal: &Seal, question: &Question, binding: &StateBinding<'_>) -> String {
    let required = seal.ask(question, binding).expect("a question");
    required.request_state.expect("a state")
}

fn accepted() -> InputResponses {
    let answer = json!({"action": "accept", "content": {"answer": "once"}});
    BTreeMap::from([(APPROVAL_KEY.to_owned(), answer)])
}

fn is_refused(returned: ReturnedState) -> bool {
    matches!(returned, ReturnedState::Refused)
}

#[test]
fn a_state_counts_for_one_call_only() {
    let seal = Seal::fresh().expect("a key");
    let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
    let owner = Caller {
        name: "ann".to_owned(),
        ..Caller::owner()
    };
    let (arguments, others) = (json!({"to": "carol"}), json!({"to": "dave"}));
    let binding = StateBinding {
        caller: &ann,
        tool: "send",
        arguments: &arguments,
    };
    let state = sealed(&seal, &question(), &binding);
    let responses = accepted();
    let open =
        |state: &str, binding: &StateBinding<'_>| seal.open(state, Some(&responses), binding);
    let ReturnedState::Answered(answered) = open(&state, &binding) else {
        panic!("it is ours");
    };
    assert_eq!(answered.question, "question-1");
    // No person reads that fast.
    assert_eq!(answered.answer, ApprovalAnswer::NotRendered);
    for wrong in [
        StateBinding {
            caller: &bob,
            ..binding.clone()
        },
        StateBinding {
            caller: &owner,
            ..binding.clone()
        },
        StateBinding {
            tool: "delete",
            ..binding.clone()
        },
        StateBinding {
            arguments: &others,
            ..binding.clone()
        },
    ] {
        assert!(is_refused(open(&state, &wrong)), "{wrong:?}");
    }
    let other_seal = Seal::fresh().expect("a key");
    assert!(is_refused(other_seal.open(
        &state,
        Some(&responses),
        &binding
    )));
    // Any character that is changed, cut off or added.
    for place in 0..state.len() {
        let mut bytes = state.clone().into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("text");
        assert!(is_refused(open(&changed, &binding)), "{place}");
    }
    for wrong in [
        "",
        "rs1.",
        state.trim_start_matches('r'),
        &format!("{state}A"),
        &"A".repeat(1 << 16),
    ] {
        assert!(is_refused(open(wrong, &binding)));
    }
}

#[test]
fn an_expired_state_is_refused() {
    let seal = Seal::fresh().expect("a key");
    let caller = Caller::named("ann");
    let arguments = json!({});
    let binding = StateBinding {
        caller: &caller,
        tool: "send",
        arguments: &arguments,
    };
    let old = Question {
        expires_at_ms: 0,
        ..question()
    };
    let state = sealed(&seal, &old, &binding);
    assert!(is_refused(seal.open(&state, Some(&accepted()), &binding)));
}

/// Without an answer the same is asked again; an answer that fits nothing is one.
#[test]
fn a_state_without_its_answer_is_no_answer() {
    let seal = Seal::fresh().expect("a key");
    let caller = Caller::named("ann");
    let arguments = json!({});
    let binding = StateBinding {
        caller: &caller,
        tool: "send",
        arguments: &arguments,
    };
    let state = sealed(&seal, &question(), &binding);
    let other = BTreeMap::from([("other".to_owned(), json!({"action": "accept"}))]);
    for responses in [None, Some(&BTreeMap::new()), Some(&other)] {
        let returned = seal.open(&state, responses, &binding);
        assert!(
            matches!(returned, ReturnedState::Unanswered),
            "{returned:?}"
        );
    }
    let wrong = BTreeMap::from([(APPROVAL_KEY.to_owned(), json!({"action": "sure"}))]);
    match seal.open(&state, Some(&wrong), &binding) {
        ReturnedState::Answered(answered) => assert_eq!(answered.answer, ApprovalAnswer::Malformed),
        other => panic!("{other:?}"),
    }
}

/// A state can be read by its holder; the name of its question cannot.
#[test]
fn a_state_does_not_tell_the_name_of_its_question() {
    let seal = Seal::fresh().expect("a key");
    let caller = Caller::named("ann");
    let arguments = json!({});
    let binding = StateBinding {
        caller: &caller,
        tool: "send",
        arguments: &arguments,
    };
    let question = Question {
        id: "4f0c2a7be61d4b1f9d1e0a8c77aa3355".to_owned(),
        ..question()
    };
    let states: Vec<_> = (0..2).map(|_| sealed(&seal, &question, &binding)).collect();
    for state in &states {
        let opened = seal.unseal(state, &binding).expect("it is ours");
        assert_eq!(opened.0, question.id);
        let readable = serde_json::to_string(&opened.1).expect("JSON");
        assert!(!readable.contains(&question.id), "{readable}");
        let raw = &opened.1.question;
        assert!(
            !raw.windows(4)
                .any(|part| question.id.as_bytes().windows(4).any(|own| own == part))
        );
        let mut spoilt = raw.clone();
        spoilt[20] ^= 1;
        assert_eq!(seal.reveal(&spoilt), None);
    }
    assert_ne!(states[0], states[1]);
}
