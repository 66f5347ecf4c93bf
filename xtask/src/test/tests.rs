//! Totals out of what test programs print.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use super::{Patience, Totals, watch};
use crate::run::TaskAnswer;

#[track_caller]
fn check(output: &str, expected: &str) {
    let mut totals = Totals::default();
    for line in output.lines() {
        totals.add(line);
    }
    assert_eq!(totals.to_string(), expected);
}

#[test]
fn results_of_several_programs_are_added() {
    check(
        "running 3 tests\n\
         test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
         \n\
         test result: FAILED. 40 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out; finished in 1.25s\n",
        "43 passed, 2 failed",
    );
}

#[test]
fn skipped_tests_are_not_hidden() {
    check(
        "test result: ok. 1 passed; 0 failed; 4 ignored",
        "1 passed, 0 failed, 4 skipped",
    );
}

#[test]
fn other_lines_count_for_nothing() {
    check(
        "test a::b ... ok\nnote: test result: ok. 9 passed\n9 passed; 9 failed",
        "0 passed, 0 failed",
    );
}

/// A test that never ends is a failed run, and nothing of it stays behind.
#[test]
fn a_stuck_program_is_stopped_with_all_it_started() {
    let noted = env::temp_dir().join(format!("ringfence-stuck-{}", process::id()));
    let script = "sleep 1000 & echo $! > \"$0\"; echo 'test a ... ok'; wait";
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(&noted);
    let mut totals = Totals::default();
    let patience = Patience {
        silence_max: Duration::from_millis(300),
        sign_every: Duration::from_millis(20),
    };
    let answer = watch(&mut command, &mut totals, patience, |_| ()).unwrap();
    assert_eq!(answer, TaskAnswer::No);
    let pid = fs::read_to_string(&noted).unwrap();
    fs::remove_file(&noted).unwrap();
    // One that ended and waits to be noticed has no command line. A killed one may
    // need a moment to end.
    let line = || fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(30);
    while !line().is_empty() {
        assert!(
            Instant::now() < until,
            "{}",
            String::from_utf8_lossy(&line())
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_part_fails_by_its_own_tests_alone() {
    let run = |line: &str, totals: &mut Totals| {
        let mut command = Command::new("echo");
        command.arg(line);
        // Not shown: the run that this test is a part of counts every result it reads.
        watch(&mut command, totals, Patience::USUAL, |_| ()).unwrap()
    };
    let mut totals = Totals::default();
    let failed = "test result: FAILED. 3 passed; 1 failed; 0 ignored";
    assert_eq!(run(failed, &mut totals), TaskAnswer::No);
    let passed = "test result: ok. 2 passed; 0 failed; 0 ignored";
    assert_eq!(run(passed, &mut totals), TaskAnswer::Yes);
    assert_eq!(totals.to_string(), "5 passed, 1 failed");
}
