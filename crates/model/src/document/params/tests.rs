//! Projection, checking and test values, by example.

use super::*;

fn param(name: &str, kind: ParamType, required: bool) -> Param {
    Param {
        name: name.to_owned(),
        description: String::new(),
        required,
        kind,
        test_value: None,
    }
}

fn params() -> Vec<Param> {
    vec![
        param("text", ParamType::String, true),
        param("count", ParamType::Integer, false),
        param("ratio", ParamType::Number, false),
        param("deep", ParamType::Boolean, false),
        param("items", ParamType::Array, false),
        param("options", ParamType::Object, false),
    ]
}

#[track_caller]
fn accepted(arguments: Value, expected: Value) {
    let checked = check(&params(), &arguments).expect("accepted");
    assert_eq!(Value::Object(checked.into_values()), expected);
}

#[track_caller]
fn refused(arguments: Value, reason: Reason, name: &str, message: &str) {
    let faults = check(&params(), &arguments).expect_err("refused");
    let fault = &faults[0];
    assert_eq!(
        (fault.reason, fault.name.as_str(), fault.message.as_str()),
        (reason, name, message)
    );
}

#[test]
fn the_input_schema_keeps_order_and_always_has_required() {
    let mut params = params();
    params[0].description = "What to say".to_owned();
    params[1].description = "  ".to_owned();
    let text = input_schema(&params).to_string();
    let expected =
        r#"{"type":"object","properties":{"text":{"type":"string","description":"What to say"},"#;
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains(
        r#""count":{"type":"integer"},"ratio":{"type":"number"},"deep":{"type":"boolean"},"#
    ));
    assert!(text.ends_with(
        r#""items":{"type":"array"},"options":{"type":"object"}},"required":["text"]}"#
    ));
    assert_eq!(
        input_schema(&[]),
        json!({"type": "object", "properties": {}, "required": []})
    );
}

#[test]
fn fitting_arguments_are_taken() {
    accepted(json!({"text": "a"}), json!({"text": "a"}));
    accepted(
        json!({"text": "", "count": 3.0, "ratio": 1, "deep": false, "items": [1], "options": {"a": null}}),
        json!({"text": "", "count": 3, "ratio": 1, "deep": false, "items": [1], "options": {"a": null}}),
    );
}

#[test]
fn null_and_blank_optionals_are_absent() {
    accepted(
        json!({"text": "a", "count": null, "items": " ", "deep": ""}),
        json!({"text": "a"}),
    );
}

#[test]
fn nested_json_may_come_as_text() {
    accepted(
        json!({"text": "a", "items": "[1, 2]", "options": "{\"x\": 1}"}),
        json!({"text": "a", "items": [1, 2], "options": {"x": 1}}),
    );
    refused(
        json!({"text": "a", "options": "[1]"}),
        Reason::ArgumentType,
        "options",
        "the argument `options` is text that is not a JSON object",
    );
    refused(
        json!({"text": "a", "options": "{\"x\": 1, \"x\": 2}"}),
        Reason::ArgumentType,
        "options",
        "the argument `options` is text that is not a JSON object",
    );
}

#[test]
fn numbers_and_booleans_may_come_as_text() {
    accepted(
        json!({"text": "1", "count": "3", "ratio": "-1.5", "deep": "true"}),
        json!({"text": "1", "count": 3, "ratio": -1.5, "deep": true}),
    );
    accepted(
        json!({"text": "a", "count": "3.0", "deep": " false "}),
        json!({"text": "a", "count": 3, "deep": false}),
    );
    for text in [
        "three",
        "3 4",
        "0x3",
        "+3",
        "03",
        "3,5",
        "1e999",
        "NaN",
        "9007199254740993",
        "3.5",
        "true",
        "[3]",
        "\"3\"",
        "null",
    ] {
        refused(
            json!({"text": "a", "count": text}),
            Reason::ArgumentType,
            "count",
            "the argument `count` must be an integer, not a string",
        );
    }
    for text in ["yes", "TRUE", "1", "0", "null"] {
        refused(
            json!({"text": "a", "deep": text}),
            Reason::ArgumentType,
            "deep",
            "the argument `deep` must be a boolean, not a string",
        );
    }
    for text in ["Infinity", "1e999", "--1", "1."] {
        refused(
            json!({"text": "a", "ratio": text}),
            Reason::ArgumentType,
            "ratio",
            "the argument `ratio` must be a number, not a string",
        );
    }
}

mod property {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let whole = -9_007_199_254_740_991_i64..=9_007_199_254_740_991;
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            whole.prop_map(Value::from),
            (-1e9_f64..1e9).prop_map(Value::from),
            "[a-z\"{}\\[\\]0-9]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Written as text, a value is what it is as itself, for every type but
        /// text, and is refused where it would be.
        #[test]
        fn text_of_a_value_is_the_value(value in value()) {
            for kind in [
                ParamType::Integer,
                ParamType::Number,
                ParamType::Boolean,
                ParamType::Array,
                ParamType::Object,
            ] {
                if value.is_string() {
                    continue;
                }
                let params = [param("a", kind, true)];
                let plain = check(&params, &json!({"a": value})).ok();
                let text = check(&params, &json!({"a": value.to_string()})).ok();
                prop_assert_eq!(plain, text, "{:?} {}", kind, value);
            }
        }
    }
}

#[test]
fn wrong_types_are_named() {
    let text = "the argument `text` must be a string, not a number";
    refused(json!({"text": 1}), Reason::ArgumentType, "text", text);
    let count = "the argument `count` must be an integer, not an array";
    refused(
        json!({"text": "a", "count": [3]}),
        Reason::ArgumentType,
        "count",
        count,
    );
    let whole = "the argument `count` must be a whole number, not 3.5";
    refused(
        json!({"text": "a", "count": 3.5}),
        Reason::ArgumentType,
        "count",
        whole,
    );
    let exact =
        "the argument `count` is beyond ±9007199254740991, where whole numbers stop being exact";
    refused(
        json!({"text": "a", "count": 9_007_199_254_740_992_i64}),
        Reason::ArgumentType,
        "count",
        exact,
    );
    refused(
        json!({"text": "a", "count": u64::MAX}),
        Reason::ArgumentType,
        "count",
        exact,
    );
}

#[test]
fn missing_and_unknown_are_named_together() {
    let faults = check(&params(), &json!({"txet": "a", "colour": 1})).expect_err("refused");
    let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "there is no argument `txet`; did you mean `text`?",
            "there is no argument `colour`; the tool takes text, count, ratio, deep, items, options",
            "the argument `text` is required; give a string",
        ]
    );
    refused(
        json!([1]),
        Reason::ArgumentsNotAnObject,
        "",
        "the arguments must be an object, not an array",
    );
    assert!(check(&[], &Value::Null).is_ok());
}

#[test]
fn size_and_depth_are_bounded() {
    let mut deep = json!(1);
    for _ in 0..limits::ARGUMENTS_DEPTH_MAX {
        deep = json!([deep]);
    }
    let message = "the arguments are nested more than 32 deep";
    refused(
        json!({"text": "a", "items": deep}),
        Reason::ArgumentsTooDeep,
        "",
        message,
    );
    let long = "x".repeat(limits::ARGUMENTS_BYTES_MAX);
    refused(
        json!({"text": long}),
        Reason::ArgumentsTooLarge,
        "",
        "the arguments are longer than 1024 KiB",
    );
}

#[track_caller]
fn test_value_is(kind: ParamType, text: &str, expected: Result<Option<Value>, ()>) {
    assert_eq!(
        test_value(kind, text).map_err(|_| ()),
        expected,
        "{kind:?} {text:?}"
    );
}

#[test]
fn test_values_are_read_as_their_type() {
    test_value_is(ParamType::String, " 1 ", Ok(Some(json!(" 1 "))));
    test_value_is(ParamType::Integer, " 42 ", Ok(Some(json!(42))));
    test_value_is(ParamType::Integer, "", Ok(None));
    test_value_is(ParamType::Integer, "4.2", Err(()));
    test_value_is(ParamType::Integer, "9007199254740993", Err(()));
    test_value_is(ParamType::Number, "4.25", Ok(Some(json!(4.25))));
    test_value_is(ParamType::Number, "7", Ok(Some(json!(7))));
    test_value_is(ParamType::Number, "NaN", Err(()));
    test_value_is(ParamType::Number, "seven", Err(()));
    test_value_is(ParamType::Boolean, "TRUE", Ok(Some(json!(true))));
    test_value_is(ParamType::Boolean, "yes", Ok(Some(json!(false))));
    test_value_is(ParamType::Boolean, " ", Ok(None));
    test_value_is(ParamType::Array, "", Ok(Some(json!([]))));
    test_value_is(ParamType::Object, " ", Ok(Some(json!({}))));
    test_value_is(ParamType::Object, "{\"x\":3}", Ok(Some(json!({"x": 3}))));
    test_value_is(ParamType::Object, "[]", Err(()));
    test_value_is(ParamType::Array, "[1,", Err(()));
}

#[test]
fn the_local_pass_needs_every_required_value() {
    let mut params = params();
    let findings = test_arguments(&params).expect_err("no values");
    assert_eq!(findings[0].pointer, "params[0].testValue");
    params[0].test_value = Some("hello".to_owned());
    params[1].test_value = Some("3".to_owned());
    assert_eq!(
        Value::Object(test_arguments(&params).expect("values").into_values()),
        json!({"text": "hello", "count": 3})
    );
}
