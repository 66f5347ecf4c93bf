//! Questions and answers in the database: bounds, what SQL cannot do, and the
//! clock.

use model::govern::approval::{ApprovalScope, ApprovalState};
use model::limits;
use model::policy::risk::Level;
use store::approvals::{AskResult, Claim, FoundApproval, GivenAnswer, Listing, WaitingPlace};
use store::{Approval, Store};

use super::Home;

/// How both databases spell it.
const FALSE: &str = "false";

const NOW: i64 = 1_000_000;
const LATER: i64 = NOW + 600_000;

fn question(id: &str, caller: &str, binding: &str) -> Approval {
    Approval {
        id: id.to_owned(),
        state: ApprovalState::Pending,
        place: WaitingPlace::Inbox,
        asked_at_ms: NOW,
        expires_at_ms: LATER,
        binding: binding.to_owned(),
        tool_binding: format!("tool of {caller}"),
        session: Some("session".to_owned()),
        call_id: "call".to_owned(),
        tool: "tool".to_owned(),
        caller: caller.to_owned(),
        caller_is_owner: false,
        level: Level::L3,
        reasons: vec!["files: reads".to_owned()],
        why: "rule `x`: files are asked about".to_owned(),
        prompt: "run it?".to_owned(),
        arguments: "{}".to_owned(),
        answer: None,
        used_by_call: None,
        used_at_ms: None,
        uses: 0,
    }
}

fn yes(scope: ApprovalScope, by: &str) -> GivenAnswer {
    GivenAnswer {
        scope: Some(scope),
        at_ms: NOW + 1,
        by: by.to_owned(),
        channel: "inbox".to_owned(),
        own_client: false,
        note: None,
        changed: None,
    }
}

fn claim(binding: &str, caller: &str) -> Claim {
    Claim {
        call_id: "later".to_owned(),
        binding: binding.to_owned(),
        tool_binding: format!("tool of {caller}"),
        session: Some("session".to_owned()),
        separate: false,
        own_client: true,
    }
}

fn asked(store: &Store, question: &Approval) -> AskResult {
    store.approvals().ask(question, NOW).unwrap()
}

#[test]
fn a_question_is_kept_as_it_was_asked() {
    let home = Home::new("approval");
    let (here, there) = (home.store(), home.store());
    let first = question("a1", "ann", "b1");
    assert_eq!(asked(&here, &first), AskResult::Written);
    assert_eq!(there.approvals().get("a1").unwrap(), Some(first.clone()));
    let same = asked(&there, &question("a2", "ann", "b1"));
    assert_eq!(same, AskResult::Joined(Box::new(first.clone())));
    assert_eq!(there.approvals().get("a2").unwrap(), None);
    // One that is being shown to a client is not joined, until it waits elsewhere.
    let mut shown = question("a3", "ann", "b2");
    shown.place = WaitingPlace::Client;
    assert_eq!(asked(&here, &shown), AskResult::Written);
    shown.id = "a4".to_owned();
    assert_eq!(asked(&here, &shown), AskResult::Written);
    let approvals = here.approvals();
    assert_eq!(
        approvals.wait_at("a4", WaitingPlace::Inbox, NOW).unwrap(),
        "a4"
    );
    assert_eq!(
        approvals.wait_at("a3", WaitingPlace::Inbox, NOW).unwrap(),
        "a4"
    );
    assert_eq!(approvals.get("a3").unwrap(), None);
    assert_eq!(
        approvals.find("a1").unwrap(),
        FoundApproval::One(Box::new(first))
    );
    let several = FoundApproval::Several(vec!["a1".to_owned(), "a4".to_owned()]);
    assert_eq!(approvals.find("a").unwrap(), several);
    for none in ["b", "", "%", "a_", "a1x"] {
        assert_eq!(approvals.find(none).unwrap(), FoundApproval::None, "{none}");
    }
}

/// The clock decides, to the millisecond.
#[test]
fn expired_questions_are_neither_answered_nor_used() {
    let home = Home::new("expiry");
    let store = home.store();
    let approvals = store.approvals();
    asked(&store, &question("a1", "ann", "b1"));
    let late = GivenAnswer {
        at_ms: LATER,
        ..yes(ApprovalScope::Once, "owner")
    };
    assert!(
        !approvals
            .answer("a1", ApprovalState::Approved, &late, None)
            .unwrap()
    );
    // Expired, it is not joined either, and is no longer listed as pending.
    assert!(approvals.list(Listing::Pending, LATER).unwrap().is_empty());
    assert_eq!(approvals.list(Listing::All, LATER).unwrap().len(), 1);
    let mut next = question("a2", "ann", "b1");
    next.expires_at_ms = LATER + 10;
    assert_eq!(approvals.ask(&next, LATER).unwrap(), AskResult::Written);
    let given = GivenAnswer {
        at_ms: LATER + 1,
        ..yes(ApprovalScope::Once, "owner")
    };
    let until = Some(LATER + 20);
    assert!(
        approvals
            .answer("a2", ApprovalState::Approved, &given, until)
            .unwrap()
    );
    assert!(
        !approvals
            .answer("a2", ApprovalState::Approved, &given, until)
            .unwrap()
    );
    let wanted = claim("b1", "ann");
    assert_eq!(approvals.claim(&wanted, LATER + 20).unwrap(), None);
    assert!(!approvals.revoke("a2", LATER + 20).unwrap());
    let used = approvals.claim(&wanted, LATER + 19).unwrap().unwrap();
    assert_eq!((used.state, used.uses), (ApprovalState::Used, 1));
    assert_eq!(approvals.claim(&wanted, LATER + 19).unwrap(), None);
    assert_eq!(
        approvals.claim_one("a2", &wanted, LATER + 19).unwrap(),
        None
    );
}

/// One that counts for more is noted, one that counts once is left for when it is
/// needed.
#[test]
fn wider_approvals_are_used_first() {
    let home = Home::new("wider");
    let store = home.store();
    let approvals = store.approvals();
    for (id, binding, scope) in [
        ("a1", "b1", ApprovalScope::Once),
        ("a2", "b2", ApprovalScope::Session),
    ] {
        asked(&store, &question(id, "ann", binding));
        let given = yes(scope, "owner");
        assert!(
            approvals
                .answer(id, ApprovalState::Approved, &given, Some(LATER))
                .unwrap()
        );
    }
    for uses in 1..=3 {
        let used = approvals
            .claim(&claim("b1", "ann"), NOW + 2)
            .unwrap()
            .unwrap();
        assert_eq!((used.id.as_str(), used.uses), ("a2", uses));
    }
    assert_eq!(approvals.end_session("session").unwrap(), 1);
    let used = approvals
        .claim(&claim("b1", "ann"), NOW + 2)
        .unwrap()
        .unwrap();
    assert_eq!((used.id.as_str(), used.state), ("a1", ApprovalState::Used));
    assert_eq!(approvals.claim(&claim("b1", "ann"), NOW + 2).unwrap(), None);
}

/// The rules are the database's, whoever writes to it.
#[test]
fn sql_cannot_use_an_approval_twice() {
    let home = Home::new("rules");
    let store = home.store();
    let approvals = store.approvals();
    for id in ["pending", "used", "declined", "revoked"] {
        asked(&store, &question(id, "ann", id));
        let given = yes(ApprovalScope::Once, "owner");
        let state = match id {
            "pending" => continue,
            "declined" => ApprovalState::Declined,
            _ => ApprovalState::Approved,
        };
        assert!(approvals.answer(id, state, &given, Some(LATER)).unwrap());
    }
    assert!(
        approvals
            .claim(&claim("used", "ann"), NOW + 2)
            .unwrap()
            .is_some()
    );
    assert!(approvals.revoke("revoked", NOW + 2).unwrap());
    for sql in [
        "UPDATE approvals SET state = 'approved' WHERE id = 'used'",
        "UPDATE approvals SET state = 'pending' WHERE id = 'used'",
        "UPDATE approvals SET state = 'approved' WHERE id = 'declined'",
        "UPDATE approvals SET state = 'approved' WHERE id = 'revoked'",
        "UPDATE approvals SET state = 'used' WHERE id = 'pending'",
        "UPDATE approvals SET state = 'approved' WHERE id = 'pending'",
        "UPDATE approvals SET scope = 'until-changed' WHERE id = 'used'",
        "UPDATE approvals SET binding = 'other'",
        "UPDATE approvals SET caller = 'other'",
        "UPDATE approvals SET state = 'maybe'",
    ] {
        assert!(home.try_sql(sql).is_err(), "{sql}");
    }
}

/// Beyond the bound nothing is asked, and nothing that waits or counts is removed;
/// what is over goes, oldest first.
#[test]
fn questions_are_bounded_and_old_ones_are_deleted() {
    let home = Home::new("bound");
    let store = home.store();
    let approvals = store.approvals();
    let (all_max, own_max) = (
        limits::APPROVALS_PENDING_MAX,
        limits::APPROVALS_PENDING_PER_CALLER_MAX,
    );
    asked(&store, &question("first", "caller-0", "first"));
    // By hand, many at a time: one by one the disk would be asked for each.
    let copy = |count: u64, state: &str, caller: &str, asked_ms: i64| {
        home.sql(&format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})
             INSERT INTO approvals (id, state, place, asked_ms, expires_ms, binding, tool_binding,
               call_id, tool, caller, caller_owner, risk, reasons, prompt, arguments, scope,
               answered_ms, answered_by, channel, own_client)
             SELECT '{state}-' || {caller} || '-' || n, '{state}', 'inbox', {asked_ms} + n, {LATER},
               '{state}-' || {caller} || '-' || n, 't',
               'c', 't', {caller}, {FALSE}, 'L3', '[]', 'p', '{{}}',
               CASE WHEN '{state}' = 'pending' THEN NULL ELSE 'once' END,
               CASE WHEN '{state}' = 'pending' THEN NULL ELSE 1 END,
               'owner', 'inbox', {FALSE} FROM n"
        ));
    };
    copy(own_max - 1, "pending", "'caller-0'", NOW);
    let more = asked(&store, &question("more", "caller-0", "more"));
    assert_eq!(more, AskResult::TooManyOfCaller);
    assert_eq!(
        asked(&store, &question("b", "caller-b", "b")),
        AskResult::Written
    );
    copy(all_max - own_max - 1, "pending", "'other-' || n", NOW);
    assert_eq!(
        asked(&store, &question("c", "caller-c", "c")),
        AskResult::TooMany
    );
    assert_eq!(
        approvals.list(Listing::Pending, NOW).unwrap().len() as u64,
        all_max
    );
    // When they have expired there is room again.
    let mut late = question("d", "caller-d", "d");
    late.expires_at_ms = LATER + 1;
    assert_eq!(approvals.ask(&late, LATER).unwrap(), AskResult::Written);

    copy(limits::APPROVALS_KEPT_MAX, "used", "'old'", 0);
    late.id = "e".to_owned();
    late.binding = "e".to_owned();
    assert_eq!(approvals.ask(&late, LATER).unwrap(), AskResult::Written);
    assert_eq!(approvals.get("used-old-1").unwrap(), None);
    let kept = approvals.list(Listing::All, LATER).unwrap();
    assert!(kept.iter().any(|row| row.id == "d") && kept.iter().any(|row| row.id == "e"));
    assert!(kept.len() as u64 <= limits::APPROVALS_KEPT_MAX + 1);
}

/// Nothing of an argument is unreadable before a yes: as long as a question waits, all
/// of it is kept. Afterwards both ends are.
#[test]
fn arguments_are_whole_until_there_is_an_answer() {
    let home = Home::new("whole");
    let store = home.store();
    let approvals = store.approvals();
    let long = format!("{{{}}}", "é".repeat(100_000));
    let kept = |id: &str| approvals.get(id).unwrap().unwrap().arguments;
    for (id, answered) in [("a1", Some(ApprovalState::Approved)), ("a2", None)] {
        let mut asking = question(id, "ann", id);
        asking.arguments.clone_from(&long);
        assert_eq!(asked(&store, &asking), AskResult::Written);
        assert_eq!(kept(id), long);
        if let Some(state) = answered {
            let given = yes(ApprovalScope::Once, "owner");
            assert!(approvals.answer(id, state, &given, Some(LATER)).unwrap());
        }
    }
    // One nobody answered is shortened when the next is asked.
    let mut next = question("a3", "ann", "b3");
    next.expires_at_ms = LATER + 600_000;
    assert_eq!(approvals.ask(&next, LATER).unwrap(), AskResult::Written);
    for id in ["a1", "a2"] {
        let kept = kept(id);
        assert_eq!(kept.chars().count(), limits::APPROVAL_KEPT_CHARS_MAX);
        assert!(kept.starts_with("{é") && kept.ends_with("é}") && kept.contains(" more… "));
    }
}

/// Long arguments of one caller fill no disk, and leave room for others.
#[test]
fn the_bytes_that_wait_are_bounded() {
    let home = Home::new("bytes");
    let store = home.store();
    let bytes = usize::try_from(limits::APPROVALS_WAITING_BYTES_PER_CALLER_MAX).unwrap();
    let ask = |id: &str, caller: &str, bytes: usize| {
        let mut asking = question(id, caller, id);
        asking.arguments = "x".repeat(bytes);
        asked(&store, &asking)
    };
    assert_eq!(ask("a1", "ann", bytes + 1), AskResult::TooManyOfCaller);
    assert_eq!(ask("a2", "ann", bytes - 10), AskResult::Written);
    assert_eq!(ask("a3", "ann", 11), AskResult::TooManyOfCaller);
    assert_eq!(ask("a4", "ann", 10), AskResult::Written);
    assert_eq!(ask("b1", "bob", 11), AskResult::Written);
    let callers =
        limits::APPROVALS_WAITING_BYTES_MAX / limits::APPROVALS_WAITING_BYTES_PER_CALLER_MAX;
    for caller in 1..callers {
        let expected = match caller {
            last if last == callers - 1 => AskResult::TooMany,
            _ => AskResult::Written,
        };
        let name = format!("c{caller}");
        assert_eq!(ask(&name, &name, bytes), expected, "{name}");
    }
}

/// Every change fails once just before it is kept: nothing of it is there, and the next try
/// does all of it.
#[test]
fn a_change_that_fails_leaves_nothing() {
    use store::approvals::ApprovalChange;
    let home = Home::new("approvals-fail");
    let store = home.store();
    let approvals = store.approvals();
    let refused = |step, what: &dyn Fn() -> bool| {
        approvals.fail(Some(step));
        assert!(what(), "{step:?} fails");
        approvals.fail(None);
    };
    let first = question("a1", "ann", "b1");
    refused(ApprovalChange::Ask, &|| approvals.ask(&first, NOW).is_err());
    assert_eq!(approvals.get("a1").unwrap(), None);
    let mut shown = first.clone();
    shown.place = WaitingPlace::Client;
    assert_eq!(asked(&store, &shown), AskResult::Written);
    let place = WaitingPlace::Inbox;
    refused(ApprovalChange::Wait, &|| {
        approvals.wait_at("a1", place, NOW).is_err()
    });
    let kept = approvals.get("a1").unwrap().unwrap();
    assert_eq!(kept.place, WaitingPlace::Client);
    approvals.wait_at("a1", place, NOW).unwrap();
    let given = yes(ApprovalScope::Once, "owner");
    let answer = || approvals.answer("a1", ApprovalState::Approved, &given, Some(LATER));
    refused(ApprovalChange::Answer, &|| answer().is_err());
    let kept = approvals.get("a1").unwrap().unwrap();
    assert_eq!(kept.state, ApprovalState::Pending);
    assert!(answer().unwrap());
    let wanted = claim("b1", "ann");
    refused(ApprovalChange::Claim, &|| {
        approvals.claim(&wanted, NOW + 2).is_err()
    });
    refused(ApprovalChange::Take, &|| {
        approvals.claim_one("a1", &wanted, NOW + 2).is_err()
    });
    refused(ApprovalChange::Revoke, &|| {
        approvals.revoke("a1", NOW + 2).is_err()
    });
    refused(ApprovalChange::EndSession, &|| {
        approvals.end_session("session").is_err()
    });
    let used = approvals.claim(&wanted, NOW + 2).unwrap().unwrap();
    assert_eq!((used.state, used.uses), (ApprovalState::Used, 1));
}
