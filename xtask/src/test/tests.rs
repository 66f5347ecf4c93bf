//! Totals out of what test programs print.

use super::Totals;

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
