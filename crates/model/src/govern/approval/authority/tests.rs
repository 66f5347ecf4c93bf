//! The table of who may say yes, as data: every channel, every kind of caller, every
//! risk.

use super::*;
use crate::word::Word as _;

use Channel::{Automation, Elicitation, Inbox, InputRequired, Studio, Terminal, Watch};

fn settings() -> ApprovalsConfig {
    let mut settings = crate::config::Config::closed().approvals;
    let said = [
        ("cursor", Level::L4),
        ("desktop", Level::L5),
        ("quiet", Level::L0),
        ("careful", Level::L3),
        ("oauth:kim", Level::L4),
    ];
    settings.answers = said
        .into_iter()
        .map(|(name, level)| (name.to_owned(), level))
        .collect();
    settings.automation = Some(Level::L3);
    settings
}

fn caller(name: &str) -> Caller {
    match name {
        "owner" => Caller::owner(),
        name => Caller::named(name),
    }
}

/// Who calls, and the risk up to which an answer of their own client counts.
const CLIENTS: [(&str, Option<Level>); 13] = [
    ("owner", None),
    // The token of this machine and the plain pipe: a client that was not named.
    ("local", None),
    ("stdio", None),
    // A key.
    ("researcher", None),
    // Clients their owner named.
    ("cursor", Some(Level::L4)),
    ("CURSOR", Some(Level::L4)),
    ("desktop", Some(Level::L5)),
    ("careful", Some(Level::L3)),
    ("quiet", None),
    // Subjects: named to the letter, or not named.
    ("oauth:kim", Some(Level::L4)),
    ("oauth:KIM", None),
    ("oauth:\u{212a}im", None),
    ("oauth:lee", None),
];

/// Every way an answer can come, and whether it is the caller's own client's.
const CHANNELS: [(Channel, bool); 7] = [
    (Elicitation, true),
    (InputRequired, true),
    (Terminal, false),
    (Watch, false),
    (Automation, false),
    (Inbox, false),
    (Studio, false),
];

#[test]
fn every_channel_every_caller_every_risk() {
    let settings = settings();
    assert_eq!(CHANNELS.len(), Channel::ALL.len());
    let mut cells = 0;
    for (channel, is_own) in CHANNELS {
        assert_eq!(channel.is_own_client(), is_own, "{channel:?}");
        for (name, most) in CLIENTS {
            let by = if is_own { name } else { "another-person" };
            for level in Level::ALL {
                let expected = match (is_own, most) {
                    (false, _) if channel == Automation && level > Level::L3 => {
                        Err(AnswerRefusal::Automation(Some(Level::L3)))
                    }
                    (false, _) => Ok(()),
                    (true, Some(most)) if level <= most => Ok(()),
                    (true, most) => Err(AnswerRefusal::Client(most)),
                };
                let got = counts(
                    channel,
                    ApprovalSubject::Call(level),
                    &caller(name),
                    by,
                    &settings,
                );
                assert_eq!(got, expected, "{channel:?} {name} {level:?}");
                cells += 1;
            }
            let expected = match is_own {
                true => Err(AnswerRefusal::Separate),
                false if channel == Automation => Err(AnswerRefusal::Automation(None)),
                false => Ok(()),
            };
            let got = counts(
                channel,
                ApprovalSubject::Trust,
                &caller(name),
                by,
                &settings,
            );
            assert_eq!(got, expected, "{channel:?} {name}");
        }
    }
    assert_eq!(cells, 7 * 13 * 6);
}

/// With nothing in the settings, no caller's own client answers anything.
#[test]
fn a_client_that_was_not_named_answers_nothing() {
    let settings = crate::config::Config::closed().approvals;
    for (name, _) in CLIENTS {
        for level in Level::ALL {
            for channel in [Elicitation, InputRequired] {
                let got = counts(
                    channel,
                    ApprovalSubject::Call(level),
                    &caller(name),
                    name,
                    &settings,
                );
                assert_eq!(got, Err(AnswerRefusal::Client(None)), "{name} {level:?}");
            }
        }
    }
}

/// With nothing in the settings, no command answers without a person.
#[test]
fn automation_is_off_unless_the_operator_says_otherwise() {
    let settings = crate::config::Config::closed().approvals;
    for level in Level::ALL {
        let got = counts(
            Automation,
            ApprovalSubject::Call(level),
            &caller("local"),
            "owner",
            &settings,
        );
        assert_eq!(got, Err(AnswerRefusal::Automation(None)), "{level:?}");
    }
}

/// Where another person must approve, neither the caller's client nor their own name
/// does, wherever it is given.
#[test]
fn separate_excludes_the_caller_on_every_channel() {
    let mut settings = settings();
    settings.separate = true;
    for (channel, is_own) in CHANNELS {
        for (name, _) in CLIENTS {
            let matter = ApprovalSubject::Call(Level::L3);
            let own = counts(channel, matter, &caller(name), name, &settings);
            assert_eq!(own, Err(AnswerRefusal::Separate), "{channel:?} {name}");
            let other = counts(channel, matter, &caller(name), "another-person", &settings);
            assert_eq!(other.is_ok(), !is_own, "{channel:?} {name}");
        }
    }
}

/// No caller approves its own step in trust, on any channel.
#[test]
fn trust_is_raised_by_another_person() {
    let settings = settings();
    for channel in Channel::ALL {
        for (name, _) in CLIENTS {
            let got = counts(
                *channel,
                ApprovalSubject::Trust,
                &caller(name),
                name,
                &settings,
            );
            assert_eq!(got, Err(AnswerRefusal::Separate), "{channel:?} {name}");
        }
    }
}

#[test]
fn the_question_says_who_may_answer() {
    let settings = settings();
    let told = |name: &str, level| told(&caller(name), level, &settings);
    assert_eq!(told("local", Level::L3), ELSEWHERE);
    assert_eq!(
        told("cursor", Level::L4),
        format!("the person at the caller's own client, or {ELSEWHERE}")
    );
    assert_eq!(
        told("cursor", Level::L5),
        format!("{ELSEWHERE}; not the caller's own client, which answers up to L4")
    );
    let mut separate = settings.clone();
    separate.separate = true;
    assert_eq!(
        super::told(&caller("cursor"), Level::L3, &separate),
        ELSEWHERE
    );
    assert!(super::told(&Caller::owner(), Level::L3, &separate).starts_with("an operator"));
}

#[test]
fn a_longer_question_takes_longer_to_read() {
    assert_eq!(reading_ms(""), 400);
    assert_eq!(reading_ms(&"x".repeat(250)), 900);
    // Characters, not bytes.
    assert_eq!(reading_ms(&"é".repeat(250)), 900);
    assert_eq!(reading_ms(&"x".repeat(1_300)), 3_000);
    assert_eq!(reading_ms(&"x".repeat(100_000)), 3_000);
}
