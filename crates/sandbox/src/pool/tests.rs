//! The checks on what a worker says.

use std::time::Instant;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::frame;
use crate::job::{
    CallId, ConsoleLevel, Ended, GuestLine, HostCallId, HostCallKind, HostRequest, JobLimits,
    NOTES_BYTES_MAX, Payload, REJECTIONS_BYTES_MAX, REJECTIONS_TOLD_MAX, Rejections, RunReport,
    RunUsage, Thrown, Up,
};

use super::checker::{self, CallChecker, Verdict};
use super::error::Violation;

fn checker() -> CallChecker {
    let limits = JobLimits {
        work_max: 1,
        cpu_ms_max: 1,
        wall_ms_max: 1,
        memory_bytes_max: 1 << 20,
        result_bytes_max: 20,
        result_depth_max: 2,
        console_lines_max: 2,
        console_bytes_max: 10,
        host_calls_max: 3,
        host_outstanding_max: 2,
        payload_bytes_max: 10,
    };
    CallChecker::new(limits, Instant::now())
}

fn line(text: &str) -> GuestLine {
    GuestLine {
        level: ConsoleLevel::Log,
        text: text.to_owned(),
    }
}

fn request(id: u32, bytes: usize) -> HostRequest {
    HostRequest {
        id: HostCallId(id),
        kind: HostCallKind::Queued,
        operation: "echo".to_owned(),
        payload: Payload {
            json: String::new(),
            bytes: vec![0; bytes],
        },
    }
}

fn end(checker: &mut CallChecker, ended: Ended) -> Result<Verdict, Violation> {
    checker.check_end(RunReport {
        usage: RunUsage {
            host_calls: 77,
            ..RunUsage::default()
        },
        ..RunReport::new(ended)
    })
}

#[test]
fn console_is_bounded_in_lines_and_bytes() {
    let mut many = checker();
    assert_eq!(many.console(line("a")), Ok(()));
    assert_eq!(many.console(line("b")), Ok(()));
    assert_eq!(many.console(line("c")), Err(Violation::Console));
    assert_eq!(
        checker().console(line("eleven bytes")),
        Err(Violation::Console)
    );
}

#[test]
fn host_calls_are_bounded_and_in_order() {
    let mut calls = checker();
    assert_eq!(calls.host(&request(1, 10)), Ok(()));
    assert_eq!(calls.host(&request(1, 0)), Err(Violation::HostCallOrder));
    assert_eq!(
        checker().host(&request(0, 0)),
        Err(Violation::HostCallOrder)
    );
    assert_eq!(
        checker().host(&request(1, 11)),
        Err(Violation::HostCallLength)
    );
    let mut outstanding = checker();
    assert_eq!(outstanding.host(&request(1, 0)), Ok(()));
    assert_eq!(outstanding.host(&request(2, 0)), Ok(()));
    assert_eq!(
        outstanding.host(&request(3, 0)),
        Err(Violation::HostCallCount)
    );
    let mut total = checker();
    for id in 1..=3 {
        assert_eq!(total.host(&request(id, 0)), Ok(()));
        total.count_answer();
    }
    assert_eq!(total.host(&request(4, 0)), Err(Violation::HostCallCount));
}

#[track_caller]
fn refused(ended: Ended, violation: Violation) {
    assert_eq!(end(&mut checker(), ended).err(), Some(violation));
}

#[test]
fn results_are_checked() {
    refused(Ended::Value("{oops".to_owned()), Violation::ResultNotJson);
    refused(Ended::Value("[[[1]]]".to_owned()), Violation::ResultSize);
    refused(
        Ended::Value(format!("\"{}\"", "x".repeat(20))),
        Violation::ResultSize,
    );
    refused(Ended::Cancelled, Violation::NotCancelled);
    let long = RunReport {
        notes: "x".repeat(NOTES_BYTES_MAX + 1),
        ..RunReport::new(Ended::Undefined)
    };
    assert_eq!(checker().check_end(long).err(), Some(Violation::ResultSize));
    let rejected = |told: Vec<Thrown>| RunReport {
        rejections: Rejections { told, count: 9 },
        ..RunReport::new(Ended::Undefined)
    };
    let many = rejected(vec![Thrown::default(); REJECTIONS_TOLD_MAX + 1]);
    assert_eq!(
        checker().check_end(many).err(),
        Some(Violation::ThrownLength)
    );
    let long = rejected(vec![Thrown {
        message: "x".repeat(REJECTIONS_BYTES_MAX + 1),
        ..Thrown::default()
    }]);
    assert_eq!(
        checker().check_end(long).err(),
        Some(Violation::ThrownLength)
    );
    let no_json = rejected(vec![Thrown {
        helper: Some("{".to_owned()),
        ..Thrown::default()
    }]);
    assert_eq!(
        checker().check_end(no_json).err(),
        Some(Violation::ResultNotJson)
    );
    let most = rejected(vec![Thrown::default(); REJECTIONS_TOLD_MAX]);
    assert!(checker().check_end(most).is_ok());
    let long = Thrown {
        message: "x".repeat(100_000),
        ..Thrown::default()
    };
    refused(Ended::Threw(long), Violation::ThrownLength);
    let odd = Thrown {
        helper: Some("{".to_owned()),
        ..Thrown::default()
    };
    refused(Ended::Threw(odd), Violation::ResultNotJson);
}

#[test]
fn the_parent_uses_its_own_values() {
    let mut called = checker();
    assert_eq!(called.host(&request(1, 0)), Ok(()));
    match end(&mut called, Ended::Value("[[1]]".to_owned())) {
        Ok(Verdict::Ended(run)) => assert_eq!(run.report.usage.host_calls, 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cancelled_call_may_end_in_any_honest_way() {
    for ended in [
        Ended::Cancelled,
        Ended::Undefined,
        Ended::Value("1".to_owned()),
    ] {
        let mut cancelled = checker();
        cancelled.cancel();
        assert!(end(&mut cancelled, ended).is_ok());
    }
}

fn ended(ended: Ended) -> Up {
    let usage = RunUsage {
        memory_bytes: u64::MAX,
        host_calls: 9,
        ..RunUsage::default()
    };
    Up::Ended(
        CallId(1),
        Box::new(RunReport {
            usage,
            ..RunReport::new(ended)
        }),
    )
}

fn words(said: &[Up]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for up in said {
        frame::encode_up(up, &mut bytes).expect("it fits");
    }
    bytes
}

/// Words of every kind, inside the limits of the fuzz target and outside them.
fn said() -> Vec<Up> {
    let mut said: Vec<Up> = [
        "1",
        "[[[1]]]",
        "[[[[1]]]]",
        "{\"a\":\"\\u0041\"}",
        "[1",
        "\"\\ud800\"",
    ]
    .map(|json| ended(Ended::Value(json.to_owned())))
    .into();
    for length in [0, 20, 41] {
        said.push(ended(Ended::Value(format!("\"{}\"", "x".repeat(length)))));
        said.push(Up::Console(CallId(1), line(&"y".repeat(length))));
        said.push(Up::Host(CallId(1), request(1, length)));
    }
    said.push(Up::Host(CallId(1), request(2, 0)));
    said.push(ended(Ended::Undefined));
    said.push(ended(Ended::Cancelled));
    said
}

/// The seeds of the fuzz target, run as an ordinary test: each pair, whole and cut short.
#[test]
fn fuzz_seeds_pass() {
    checker::fuzz(&[]);
    let said = said();
    for first in &said {
        for second in &said {
            let bytes = words(&[first.clone(), second.clone()]);
            checker::fuzz(&bytes);
            checker::fuzz(&bytes[..bytes.len() / 2]);
        }
    }
}

proptest! {
    #[test]
    fn changed_messages_stay_within_the_limits(
        order in vec(0_usize..16, 1..6),
        changes in vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        let said = said();
        let mut bytes = words(&order.iter().map(|at| said[at % said.len()].clone()).collect::<Vec<_>>());
        for (place, byte) in changes {
            let length = bytes.len();
            bytes[place % length] = byte;
        }
        checker::fuzz(&bytes);
    }
}
