//! Patterns one knows the answer to.

use super::*;

#[track_caller]
fn check(pattern: &str, expected: Verdict) {
    assert_eq!(judge(pattern), expected, "/{pattern}/");
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

#[test]
fn the_reader_reaches_the_end_of_anything() {
    let pieces = [
        "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "\\", "a", ",", "1", "^", "<", "=",
    ];
    for first in pieces {
        for second in pieces {
            for third in pieces {
                let pattern = [first, second, third, first].concat();
                let _ = judge(&pattern);
            }
        }
    }
}
