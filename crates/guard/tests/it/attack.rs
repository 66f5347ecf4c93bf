//! Every attack is found, by its code, at a place inside the script.

use crate::case::cases;

#[test]
fn every_attack_is_found_by_its_code() {
    let cases = cases("attack/guard");
    assert!(cases.len() >= 300, "only {} attacks", cases.len());
    let mut missed = Vec::new();
    for case in &cases {
        let code = case.title.split(' ').next().unwrap();
        let report = guard::check(&case.source, &case.preset());
        let codes: Vec<&str> = report
            .issues
            .iter()
            .map(|issue| issue.code.word())
            .collect();
        if report.valid || !codes.contains(&code) {
            missed.push(format!("{} {}: found {codes:?}", case.place, case.title));
        }
        let lines = case.source.lines().count();
        for issue in &report.issues {
            assert!(
                issue.line >= 1 && issue.line <= lines,
                "{}: {issue:?}",
                case.place
            );
        }
        assert!(
            guard::prepare(&case.source, &case.preset()).is_err(),
            "{} was prepared",
            case.place
        );
    }
    assert!(
        missed.is_empty(),
        "{} of {}:\n{}",
        missed.len(),
        cases.len(),
        missed.join("\n")
    );
}

#[test]
fn every_code_has_an_attack_or_a_test() {
    // Codes that need a wish, a list of tools or another preset have tests in `preset.rs`.
    const ELSEWHERE: &[&str] = &[
        "INVALID_ARGUMENT_COUNT",
        "INVALID_ARGUMENT_TYPE",
        "REQUIRED_FUNCTION_NOT_CALLED",
        "FUNCTION_CALLED_TOO_MANY_TIMES",
        "UNKNOWN_TOOL_NAME",
        "NO_ASYNC",
        "NO_AWAIT",
        "NO_USER_ARROW_FUNCTION",
        "UNREACHABLE_CODE",
        "UNAWAITED_CALL",
        "REGEX_TOO_LONG",
        "REGEX_REDOS_SUSPICIOUS",
        "REGEX_METHOD_DYNAMIC",
        "PRESCANNER_STRING_TOTAL",
        "PRESCANNER_REGEX_COUNT",
        "PRESCANNER_TOO_MANY_LINES",
        "UNICODE_BIDI_ATTACK",
    ];
    let cases = cases("attack/guard");
    let used: Vec<&str> = cases
        .iter()
        .filter_map(|case| case.title.split(' ').next())
        .collect();
    let mut missing: Vec<&str> = Vec::new();
    for code in guard::IssueCode::ALL {
        if !used.contains(&code.word()) && !ELSEWHERE.contains(&code.word()) {
            missing.push(code.word());
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
