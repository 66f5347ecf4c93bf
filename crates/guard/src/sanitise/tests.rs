//! Values cut to size; text that goes and text that stays.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(raw: Value, limits: &Limits, expected: Value, warnings: &[&str]) {
    let sanitised = value(raw, limits);
    assert_eq!(sanitised.value, expected);
    assert_eq!(sanitised.warnings, warnings);
}

fn small() -> Limits {
    Limits {
        depth_max: 3,
        properties_max: 4,
        string_chars_max: 5,
        array_items_max: 2,
    }
}

#[test]
fn small_values_are_unchanged() {
    let raw = json!({ "a": [1, 2.5, null, true], "b": { "c": "grüße" }, "d": "2026-11-16T00:00:00.000Z" });
    check(raw.clone(), &Limits::default(), raw, &[]);
}

#[test]
fn oversized_parts_are_cut_with_a_warning() {
    check(
        json!("äöüäöü"),
        &small(),
        json!("äöüäö … [1 more character]"),
        &["result: text cut, 1 characters left out"],
    );
    check(
        json!([1, 2, 3, 4]),
        &small(),
        json!([1, 2]),
        &["result: list cut, 2 of 4 items left out"],
    );
    check(
        json!({ "a": { "b": { "c": { "d": 1 } } } }),
        &small(),
        json!({ "a": { "b": { "c": "[too deep]" } } }),
        &["result.a.b.c: deeper than 3 levels, left out"],
    );
    check(
        json!({ "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6 }),
        &small(),
        json!({ "a": 1, "b": 2, "c": 3, "d": 4 }),
        &["result: more than 4 properties, 2 left out"],
    );
}

#[test]
fn keys_that_change_objects_are_left_out() {
    check(
        json!({ "__proto__": { "x": 1 }, "constructor": 1, "prototype": 2, "a": 1 }),
        &Limits::default(),
        json!({ "a": 1 }),
        &[
            "result: the key `__proto__` was left out",
            "result: the key `constructor` was left out",
            "result: the key `prototype` was left out",
        ],
    );
}

#[test]
fn errors_and_buffers_that_became_data() {
    check(
        json!({ "name": "TypeError", "message": "no", "stack": "at x", "code": 7, "path": "y" }),
        &Limits::default(),
        json!({ "name": "TypeError", "message": "no", "code": 7 }),
        &[],
    );
    check(
        json!({ "type": "Buffer", "data": [1, 2] }),
        &Limits::default(),
        json!("[Buffer]"),
        &[],
    );
    let not_an_error = json!({ "message": "hello", "from": "Ada" });
    check(not_an_error.clone(), &Limits::default(), not_an_error, &[]);
}

#[test]
fn the_same_value_twice_is_no_circle() {
    let shared = json!({ "a": 1 });
    let raw = json!([shared, shared]);
    check(raw.clone(), &Limits::default(), raw, &[]);
}

#[test]
fn warnings_are_bounded() {
    let raw: Vec<Value> = (0..500).map(|_| json!("123456")).collect();
    let limits = Limits {
        array_items_max: 1_000,
        ..small()
    };
    let warnings = value(Value::Array(raw), &limits).warnings;
    assert_eq!(warnings.len(), 21);
    assert_eq!(
        warnings.last().map(String::as_str),
        Some("result: 480 more cuts")
    );
}

#[test]
fn excessive_depth_is_cut() {
    let mut raw = json!(1);
    for _ in 0..1_000 {
        raw = json!([raw]);
    }
    let limits = Limits {
        depth_max: usize::MAX,
        ..Limits::default()
    };
    assert_eq!(value(raw, &limits).warnings.len(), 1);
}

/// A file of two columns: `before`, a line `=>` with `after`, a blank line.
fn rows(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(" => "))
        .collect()
}

#[test]
fn details_of_the_machine_are_removed() {
    let rows = rows(include_str!("../../../../cases/guard/scrub/goes.txt"));
    assert!(rows.len() >= 60, "only {} rows", rows.len());
    let mut wrong = String::new();
    for (raw, expected) in rows {
        // Spelled in two pieces in the file, so that it holds no path of a machine.
        let raw = raw.replace('¦', "");
        let cleaned = text(&raw);
        if cleaned != expected {
            let _ = writeln!(wrong, "{raw}\n  is      {cleaned}\n  must be {expected}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn innocent_text_stays_as_it_is() {
    let mut wrong = String::new();
    let corpus = include_str!("../../../../cases/guard/scrub/stays.txt");
    assert!(corpus.lines().count() >= 80);
    for line in corpus.lines() {
        let cleaned = text(line);
        if cleaned != line {
            let _ = writeln!(wrong, "{line}\n  became {cleaned}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(
        text(corpus),
        corpus,
        "line by line it stays, as a whole it must too"
    );
}

#[test]
fn cleaning_twice_is_cleaning_once() {
    for (raw, _) in rows(include_str!("../../../../cases/guard/scrub/goes.txt")) {
        let once = text(&raw.replace('¦', "")).into_owned();
        assert_eq!(text(&once), once);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_cleaned(raw in "([a-z/:.= \\\\@\"'é]|/var/|10\\.|token=|bearer |://|\\.internal|sk-){0,60}") {
        let once = text(&raw).into_owned();
        // A replacement is never longer than a word.
        proptest::prop_assert!(once.len() <= raw.len() * 11 + 11);
    }
}
