//! Patterns one knows the answer to.

use super::*;

#[track_caller]
fn check(pattern: &str, expected: Verdict) {
    assert_eq!(judge(pattern, false), expected, "/{pattern}/");
}

#[test]
fn a_repetition_that_repeats_is_seen() {
    for pattern in [
        "(a+)+",
        "(a*)*",
        "(a|a)+",
        "(.*a)+",
        "(a+){2,}",
        "^(a+)+$",
        "((a+))+",
        "(?:a+)+b",
        "([a-z]+)*!",
        r"(\w+\s*)+$",
        r"(\d|\w)*x",
        "(a|ab)*c",
        "(a?b?)*(c+)+",
        "(x+x+)+y",
        "(?<name>a+)+",
        r"([a-zA-Z0-9]+\.?)+@",
        "(a+){12}",
        "(.|a)*z",
        "(?=(a+)+$)b",
        "((a*)*",
    ] {
        check(pattern, Verdict::Exponential);
    }
}

#[test]
fn ordinary_patterns_are_fine() {
    for pattern in [
        r"^\d{4}-\d{2}-\d{2}$",
        r"[^,]+",
        r"(\d+,)+",
        r"^[a-z]+(-[a-z]+)*$",
        r"\s+",
        r"^https?:\/\/",
        r"(foo|bar)+",
        r"^[\w.+-]+@[a-z]+\.[a-z]{2,}$",
        r"\bword\b",
        "",
        "a{2}",
        "a{,2}",
        "{",
        "x{1",
        r"[\]]+",
        "(ab)+",
        r"(?<y>\d{4})",
        r"(?:[A-F0-9]{2}:){5}[A-F0-9]{2}",
        r"^\s*#",
        "(a+",
    ] {
        check(pattern, Verdict::Linear);
    }
}

#[test]
fn overlapping_neighbours_are_polynomial() {
    for pattern in ["a*a*", r"\d+\d+$", ".*.*=", r"\s*\w*\s*\w*.*"] {
        check(pattern, Verdict::Polynomial);
    }
}

/// Attack: alternatives that differ only where letters are told apart.
#[test]
fn letters_are_one_under_the_flag_that_says_so() {
    for (pattern, plain, flagged) in [
        ("(a|A)+$", Verdict::Linear, Verdict::Exponential),
        ("([a-f]|[C-D])*x", Verdict::Linear, Verdict::Exponential),
        (r"(\a|A)*x", Verdict::Linear, Verdict::Exponential),
        ("(s|\u{17f})*x", Verdict::Linear, Verdict::Exponential),
        ("a*A*x", Verdict::Linear, Verdict::Polynomial),
        ("(a+A)+x", Verdict::Linear, Verdict::Exponential),
        ("(?i:(a|A)+)$", Verdict::Exponential, Verdict::Exponential),
        (
            "(?im-s:(a|A)+)$",
            Verdict::Exponential,
            Verdict::Exponential,
        ),
        ("(?m:(a|A)+)$", Verdict::Linear, Verdict::Exponential),
        ("([^a]|A)+x", Verdict::Exponential, Verdict::Linear),
        (r"(\d+,)+", Verdict::Linear, Verdict::Linear),
        ("(foo|bar)+", Verdict::Linear, Verdict::Linear),
        (r"^[a-z]+(-[a-z]+)*$", Verdict::Linear, Verdict::Linear),
    ] {
        check(pattern, plain);
        assert_eq!(judge(pattern, true), flagged, "/{pattern}/i");
    }
}

#[test]
fn the_reader_reaches_the_end_of_anything() {
    let pieces = [
        "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "\\", "a", ",", "1", "^", "<", "=",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let pattern = [first, second, third, first].concat();
                let _ = judge(&pattern, false);
            }
        }
    }
}
