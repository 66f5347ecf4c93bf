//! The parser against `serde_json`, and against its own writer.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn refused(text: &str, message: &str, line: usize, column: usize) {
    let fault = parse(text).expect_err(text);
    let position = Lines::new(text).position(fault.span.start);
    assert_eq!(
        (fault.message.as_str(), position),
        (message, Position { line, column }),
        "{text:?}"
    );
}

#[test]
fn each_refusal_says_what_and_where() {
    refused("", "the file is empty", 1, 1);
    refused("[", "the text ends where a value should start", 1, 2);
    refused("{ // a\n}", "JSON has no comments", 1, 3);
    refused("{\n  \"a\": 1,\n}", "there is a comma before `}`", 2, 9);
    refused("[1,]", "there is a comma before `]`", 1, 3);
    refused("{\"a\" 1}", "expected `:` after a key", 1, 6);
    refused("{a: 1}", "expected a key in double quotes", 1, 2);
    refused("{\"a\": 'x'}", "a string starts with `'`", 1, 7);
    refused(
        "[1 2]",
        "expected `,` or `]` after a value in an array",
        1,
        4,
    );
    refused(
        "{\"a\":1 \"b\":2}",
        "expected `,` or `}` after a value in an object",
        1,
        8,
    );
    refused("\"é\\x\"", "JSON has no such escape", 1, 3);
    refused("\"\\ud800\"", "a surrogate is missing its other half", 1, 2);
    refused("\"\\u12g4\"", "`\\u` needs four hexadecimal digits", 1, 2);
    refused("\"open", "this string is never closed", 1, 1);
    refused("\"a\nb\"", "a string contains a line break", 1, 3);
    refused(
        "\"a\u{1}b\"",
        "a string contains a control character, code 1",
        1,
        3,
    );
    refused("01", "a number has a leading 0", 1, 1);
    refused("1.", "this is not a number: a digit is missing", 1, 1);
    refused("1e999", "this number is too large", 1, 1);
    refused("tru", "expected a value", 1, 1);
    refused("// hi\n{}", "JSON has no comments", 1, 1);
    refused(
        "{} {}",
        "there is more text after the end of the JSON value",
        1,
        4,
    );
    refused("\u{feff}{}", "the file starts with a byte order mark", 1, 1);
    refused("NaN", "expected a value", 1, 1);
}

#[test]
fn nesting_is_bounded_without_using_the_stack() {
    let deep = "[".repeat(2_000_000);
    assert_eq!(
        parse(&deep).expect_err("deep").message,
        "values are nested more than 64 deep"
    );
    let fits = format!("{}{}", "[".repeat(64), "]".repeat(64));
    assert!(parse(&fits).is_ok());
}

#[test]
fn every_repeated_key_is_named() {
    let (node, repeated) = parse(r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}"#).expect("readable");
    let pointers: Vec<_> = repeated
        .iter()
        .map(|fault| fault.pointer.as_str())
        .collect();
    assert_eq!(pointers, ["b.c", "a"]);
    assert_eq!(node.get("a").map(|node| node.to_value()), Some(1.into()));
}

#[test]
fn digits_and_order_survive() {
    let text = "{\n  \"z\": 1.0,\n  \"a\": 12345678901234567890123,\n  \"m\": [1E5, -0, {}]\n}\n";
    let expected = text.replace("[1E5, -0, {}]", "[\n    1E5,\n    -0,\n    {}\n  ]");
    assert_eq!(parse(text).expect("json").0.to_text(), expected);
}

#[test]
fn a_pointer_finds_its_place() {
    let text = r#"{"params": [{"name": "a"}, {"name": "b"}]}"#;
    let (node, _) = parse(text).expect("json");
    let at = |pointer: &str| text.get(node.locate(pointer).start..node.locate(pointer).end);
    assert_eq!(at("params[1].name"), Some("\"b\""));
    assert_eq!(at("params[1].testValue"), Some(r#"{"name": "b"}"#));
    assert_eq!(at("params[7]"), Some(r#"[{"name": "a"}, {"name": "b"}]"#));
    assert_eq!(at(""), Some(text));
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(|number| serde_json::json!(number)),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_of_serde_is_read_the_same(value in any_value()) {
        let text = serde_json::to_string(&value).expect("text");
        let (node, repeated) = parse(&text).expect("json");
        prop_assert!(repeated.is_empty());
        prop_assert_eq!(node.to_value(), value);
    }

    #[test]
    fn our_json_is_read_the_same(value in any_value()) {
        let (node, _) = parse(&serde_json::to_string(&value).expect("text")).expect("json");
        let (again, _) = parse(&node.to_text()).expect("json");
        prop_assert_eq!(again, node);
    }

    /// Near-JSON is taken or refused by both alike.
    #[test]
    fn acceptance_agrees_with_serde(text in r#"[\[\]{}",:0-9eE+.\-truefalsn\\u dD8cC/'\n]{0,24}"#) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        prop_assert_eq!(parse(&text).is_ok(), theirs.is_ok(), "{:?}", text);
    }

    #[test]
    fn any_text_is_parsed_without_panic(text in any::<String>()) {
        if let Err(fault) = parse(&text) {
            prop_assert!(Lines::new(&text).position(fault.span.start).line >= 1);
        }
    }
}
