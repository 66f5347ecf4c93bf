//! The document by example, and its schema and parser against each other.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::document::finding::Severity;
use crate::word::Word as _;

fn plain() -> Value {
    json!({"name": "a", "code": "return 1", "codeType": "Javascript"})
}

fn read(value: &Value) -> ParsedDocument {
    let mut file = parse(&value.to_string());
    assert_eq!(file.items.len(), 1);
    file.items.remove(0)
}

fn set(mut value: Value, pointer: &str, inner: Value) -> Value {
    *value
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("{pointer}")) = inner;
    value
}

#[track_caller]
fn finds(value: &Value, pointer: &str, message: &str, fix: Option<&str>) {
    let item = read(value);
    let seen: Vec<_> = item
        .findings
        .iter()
        .map(|finding| {
            (
                finding.pointer.as_str(),
                finding.message.as_str(),
                finding.fix.as_deref(),
            )
        })
        .collect();
    assert!(seen.contains(&(pointer, message, fix)), "{seen:#?}");
}

#[test]
fn the_least_document_gets_its_defaults() {
    let document = read(&plain()).document.expect("a document");
    assert_eq!(document.description, "");
    assert_eq!(
        (
            document.category,
            document.tags.len(),
            document.params.len()
        ),
        (None, 0, 0)
    );
    assert_eq!(document.static_variables, []);
    assert_eq!(document.sandbox_overrides, Overrides::default());
    assert_eq!(
        (document.tool_safety, document.human_in_the_loop.clone()),
        (None, None)
    );
    assert_eq!((document.draft, document.create_timestamp), (None, None));
}

#[test]
fn null_means_absent_everywhere_it_may() {
    let mut value = plain();
    for key in [
        "toolId",
        "description",
        "category",
        "tags",
        "params",
        "staticVariables",
        "sandboxOverrides",
        "toolSafety",
        "humanInTheLoop",
        "draft",
        "createTimestamp",
        "updateTimestamp",
    ] {
        value[key] = Value::Null;
    }
    let item = read(&value);
    assert!(item.findings.is_empty(), "{:?}", item.findings);
    for key in ["name", "code", "codeType"] {
        assert!(
            read(&set(value.clone(), &format!("/{key}"), Value::Null))
                .document
                .is_none(),
            "{key}"
        );
    }
}

#[test]
fn every_word_of_every_enum_is_read() {
    for kind in ParamType::ALL {
        let value = json!({"name": "a", "code": "1", "codeType": "Javascript",
            "params": [{"name": "x", "type": kind.word(), "required": false}]});
        assert_eq!(
            read(&value).document.expect("a document").params[0].kind,
            *kind
        );
        assert_eq!(serde_json::to_value(kind).expect("json"), kind.word());
    }
    for mode in NetworkMode::ALL {
        let mut value = plain();
        value["sandboxOverrides"] = json!({"networkMode": mode.word()});
        assert_eq!(
            read(&value)
                .document
                .expect("a document")
                .sandbox_overrides
                .network_mode,
            Some(*mode)
        );
        assert_eq!(serde_json::to_value(mode).expect("json"), mode.word());
    }
    for mode in ApprovalMode::ALL {
        let mut value = plain();
        value["humanInTheLoop"] = json!({"mode": mode.word(), "promptTemplate": null, "x-more": 1});
        assert_eq!(read(&value).document.expect("a document").approval(), *mode);
        assert_eq!(serde_json::to_value(mode).expect("json"), mode.word());
    }
}

#[test]
fn errors_suggest_a_fix() {
    let params = |param: Value| {
        let mut value = plain();
        value["params"] = json!([param]);
        value
    };
    finds(
        &params(json!({"name": "x", "type": "string", "required": false})),
        "params[0].type",
        "`params[0].type` is `string`; it must be STRING, INTEGER, NUMBER, BOOLEAN, OBJECT or ARRAY",
        Some("write `STRING`"),
    );
    finds(
        &params(json!({"name": "x", "type": "STRING", "requred": false})),
        "params[0].requred",
        "`requred` is not a key of `params[0]`",
        Some("did you mean `required`?"),
    );
    finds(
        &params(json!({"name": "x", "type": "STRING"})),
        "params[0].required",
        "`params[0]` has no `required`",
        Some("add `\"required\"`: true or false"),
    );
    finds(
        &params(json!({"name": "x", "type": "INTEGER", "required": true, "testValue": 5})),
        "params[0].testValue",
        "`testValue` must be a string, this is a number",
        Some("write `\"5\"`"),
    );
    finds(
        &params(json!({"name": "x", "type": "STRING", "required": true})),
        "params[0].testValue",
        "the required param `x` has no `testValue`",
        Some("add a realistic value: the Local Pass runs the tool with it"),
    );
    finds(
        &set(plain(), "/codeType", json!("JavaScript")),
        "codeType",
        "`codeType` is `JavaScript`; it must be Javascript",
        Some("write `Javascript`"),
    );
    let mut value = plain();
    value["sandboxOverrides"] = json!({"network_mode": "strict", "fileRead": "true"});
    finds(
        &value,
        "sandboxOverrides.network_mode",
        "`network_mode` is not a key of `sandboxOverrides`",
        Some("did you mean `networkMode`?"),
    );
    finds(
        &value,
        "sandboxOverrides.fileRead",
        "`sandboxOverrides.fileRead` must be true or false, this is a string",
        Some("write `true`"),
    );
    let mut value = plain();
    value["humanInTheLop"] = json!({"mode": "REQUIRED"});
    finds(
        &value,
        "humanInTheLop",
        "`humanInTheLop` is kept but has no effect here",
        Some("did you mean `humanInTheLoop`?"),
    );
}

#[test]
fn all_problems_come_together_in_the_order_of_the_file() {
    let text = "{\n  \"name\": \"\",\n  \"name\": \"b\",\n  \"params\": [{\"name\": 1, \"type\": \"TEXT\"}],\n  \"tags\": [\"a\", \"b\", \"c\"]\n}";
    let item = parse(text).items.remove(0);
    let seen: Vec<_> = item
        .findings
        .iter()
        .map(|f| (f.pointer.as_str(), f.position.line))
        .collect();
    assert_eq!(
        seen,
        [
            ("code", 1),
            ("codeType", 1),
            ("name", 2),
            ("name", 3),
            ("params[0].required", 4),
            ("params[0].name", 4),
            ("params[0].type", 4),
            ("tags", 5)
        ]
    );
    assert!(
        item.findings
            .iter()
            .all(|finding| finding.code == Code::SpecParse)
    );
}

#[test]
fn an_array_keeps_good_documents_beside_bad_ones() {
    let file = parse(
        r#"[{"name":"a","code":"1","codeType":"Javascript"}, 7, {"name":"c","draft":1,"draft":2}]"#,
    );
    assert_eq!(file.shape, FileShape::Many);
    assert!(file.items[0].document.is_some());
    assert_eq!(
        file.items[1].findings[0].message,
        "a tool document is an object, this is a number"
    );
    assert_eq!(file.items[2].name.as_deref(), Some("c"));
    let repeated = &file.items[2]
        .findings
        .iter()
        .find(|f| f.message.contains("twice"))
        .expect("repeated");
    assert_eq!(
        (repeated.pointer.as_str(), repeated.position.column),
        ("draft", 76)
    );
}

#[test]
fn unknown_fields_and_order_survive_saving() {
    let text = "{\n  \"x-acme\": {\n    \"b\": 1.50,\n    \"a\": [\n      null,\n      12345678901234567890\n    ]\n  },\n  \"codeType\": \"Javascript\",\n  \"name\": \"a\",\n  \"code\": \"return 'é\\n'\"\n}\n";
    let mut document = parse(text).items.remove(0).document.expect("a document");
    assert_eq!(document.to_text(), text);
    document.set_draft(false);
    document.set_tool_id("id");
    document.set_update_timestamp(7);
    let saved = document.to_text();
    assert!(saved.starts_with(text.trim_end_matches("\n}\n")), "{saved}");
    assert!(saved.ends_with("\"draft\": false,\n  \"toolId\": \"id\",\n  \"createTimestamp\": 7,\n  \"updateTimestamp\": 7\n}\n"), "{saved}");
    assert_eq!(
        parse(&saved).items.remove(0).document.expect("a document"),
        document
    );
}

#[test]
fn timestamps_are_whole_numbers_however_written() {
    let with = |digits: &str| {
        let text = format!(
            r#"{{"name":"a","code":"1","codeType":"Javascript","createTimestamp":{digits}}}"#
        );
        parse(&text)
            .items
            .remove(0)
            .document
            .and_then(|document| document.create_timestamp)
    };
    assert_eq!(with("1763234567890"), Some(1_763_234_567_890));
    assert_eq!(with("1e3"), Some(1000));
    assert_eq!(with("1000.0"), Some(1000));
    for digits in ["-1", "1.5", "9007199254740992", "1e300", "\"1\""] {
        assert_eq!(with(digits), None, "{digits}");
    }
}

#[test]
fn findings_are_bounded_and_counted() {
    let params: Vec<_> = (0..120).map(|_| json!({"nme": 1, "typ": 2})).collect();
    let mut value = plain();
    value["params"] = json!(params);
    let item = read(&value);
    assert_eq!(item.findings.len(), limits::DOCUMENT_FINDINGS_MAX + 1);
    assert!(
        item.findings
            .last()
            .expect("last")
            .message
            .ends_with("more findings are not shown")
    );
}

#[test]
fn warnings_do_not_prevent_use() {
    let mut value = plain();
    value["name"] = json!("my tool");
    value["sandboxOverrides"] = json!({"hostsAllow": ["a.example"]});
    value["staticVariables"] = json!([{"key": "${api_key}"}]);
    let item = read(&value);
    assert!(item.document.is_some());
    assert_eq!(item.findings.len(), 3);
    assert!(
        item.findings
            .iter()
            .all(|finding| finding.severity == Severity::Warning)
    );
    finds(
        &value,
        "name",
        "some MCP clients take only letters, digits, `_` and `-`, up to 64, as a tool's name",
        Some("write `my_tool`"),
    );
    finds(
        &value,
        "staticVariables[0]",
        "`${api_key}` is not a placeholder and stays as it is",
        Some("write `${API_KEY}`"),
    );
}

/// What the shape alone says; the schema knows no more than that.
fn shape_is_right(value: &Value) -> bool {
    let item = read(value);
    !item
        .findings
        .iter()
        .any(|finding| finding.code == Code::SpecParse && finding.severity == Severity::Error)
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&schema_text()).expect("a schema");
    jsonschema::draft202012::new(&schema).expect("a valid schema")
}

/// Values that are right, nearly right and wrong, for any place.
fn any_leaf() -> impl Strategy<Value = Value> {
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1000.0),
        json!(9_007_199_254_740_992_u64),
        json!(""),
        json!("a"),
        json!("STRING"),
        json!("strict"),
        json!("REQUIRED"),
        json!("AUTO_APPROVE"),
        json!("Javascript"),
        json!("safety.fs/v1"),
        json!("tool-safety-helpers/v1#crypto"),
        json!("Safety.fs/v1"),
        json!("safety.fs/vx"),
        json!([]),
        json!(["a"]),
        json!(["a", "b", "c"]),
        json!([1]),
        json!({}),
        json!({"k": "v"}),
        json!({"k": 1}),
        json!({"": "v"}),
        json!({"k": "v", "l": "v"}),
        json!("é".repeat(1024)),
        json!("é".repeat(1025)),
    ];
    prop::sample::select(odd.to_vec())
}

fn full() -> Value {
    json!({
        "toolId": "id", "name": "a", "description": "d", "category": "WEB", "tags": ["x"],
        "params": [{"name": "p", "description": "d", "required": true, "type": "STRING", "testValue": "v"}],
        "staticVariables": [{"k": "${V}"}],
        "code": "return 1", "codeType": "Javascript",
        "sandboxOverrides": {"addAllowClasses": [], "removeAllowClasses": [], "addDenyClasses": [],
            "removeDenyClasses": [], "networkMode": "strict", "hostsAllow": ["a.example"], "fileRead": null,
            "fileWrite": false, "fsBasePath": null, "destructive": null},
        "toolSafety": {"version": "1.0",
            "runtime": {"id": "i", "minVersion": "0", "ecmaVersion": "2024", "javaInterop": false,
                "helpers": ["safety.http/v1"], "console": true},
            "category": {"source": "user", "id": "WEB"},
            "capabilities": {"network": {"mode": "strict", "hosts": []}, "fileRead": false, "fileWrite": false, "destructive": true},
            "jail": {"rung": "landlock", "up": ["files"], "missing": ["namespaces: refused"]}},
        "humanInTheLoop": {"mode": "REQUIRED", "promptTemplate": "p"},
        "draft": true, "createTimestamp": 1, "updateTimestamp": 2
    })
}

/// Every place of the full document, as JSON pointers.
fn places(value: &Value, at: &str, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, inner)| {
            places.push(format!("{at}/{key}"));
            self::places(inner, &format!("{at}/{key}"), places);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, inner)| {
            places.push(format!("{at}/{index}"));
            self::places(inner, &format!("{at}/{index}"), places);
        }),
        _ => {}
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => drop(members.shift_remove(key)),
        Some(Value::Array(items)) => drop(items.pop()),
        _ => {}
    }
}

#[derive(Clone, Debug)]
enum Change {
    Set(String, Value),
    Remove(String),
    Add(String, String, Value),
}

fn any_change() -> impl Strategy<Value = Change> {
    let mut all = Vec::new();
    places(&full(), "", &mut all);
    let place = prop::sample::select(all.clone());
    let parents: Vec<_> = [
        "",
        "/params/0",
        "/sandboxOverrides",
        "/toolSafety",
        "/toolSafety/runtime",
        "/toolSafety/category",
        "/toolSafety/capabilities",
        "/toolSafety/capabilities/network",
        "/toolSafety/jail",
        "/humanInTheLoop",
        "/staticVariables/0",
    ]
    .map(str::to_owned)
    .to_vec();
    prop_oneof![
        (place.clone(), any_leaf()).prop_map(|(place, value)| Change::Set(place, value)),
        place.prop_map(Change::Remove),
        (prop::sample::select(parents), "[a-z]{1,3}", any_leaf())
            .prop_map(|(parent, key, value)| Change::Add(parent, key, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// Parser and schema take the same shapes, in both directions.
    #[test]
    fn parser_and_schema_agree(changes in prop::collection::vec(any_change(), 0..4)) {
        thread_local!(static VALIDATOR: jsonschema::Validator = validator());
        let mut value = full();
        for change in changes {
            match change {
                Change::Set(place, inner) => if let Some(slot) = value.pointer_mut(&place) { *slot = inner },
                Change::Remove(place) => remove(&mut value, &place),
                Change::Add(parent, key, inner) => if let Some(Value::Object(members)) = value.pointer_mut(&parent) {
                    members.insert(key, inner);
                },
            }
        }
        let by_schema = VALIDATOR.with(|validator| validator.is_valid(&value));
        prop_assert_eq!(shape_is_right(&value), by_schema, "{:#} {:?}", value, read(&value).findings);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz(&bytes);
    }
}

#[test]
fn a_document_that_is_no_object_is_refused_by_both() {
    for value in [json!(null), json!(1), json!("x"), json!(true)] {
        assert!(!shape_is_right(&value));
        assert!(!validator().is_valid(&value));
    }
}

#[test]
fn the_stored_block_is_compared_never_obeyed() {
    let document = read(&full()).document.expect("a document");
    let baseline = crate::policy::Baseline::closed();
    let narrow = Overrides {
        network_mode: None,
        ..document.sandbox_overrides.clone()
    };
    let policy = crate::policy::resolve(&baseline, &narrow).expect("no conflict");
    let record = crate::policy::safety::record(&document, &policy, safety::Source::User);
    let stored = document.tool_safety.clone().expect("stored");
    let findings = safety::compare(&stored, &record);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].message,
        "the stored block says `strict`, the policy in force says `blocked`"
    );
    let text = serde_json::to_string(&record).expect("json");
    assert_eq!(
        text,
        r#"{"version":"1.0","runtime":{"id":"ringfence/quickjs","minVersion":"0.1.0","ecmaVersion":"2024","javaInterop":false,"helpers":["safety.parser/v1","tool-safety-helpers/v1#crypto","tool-safety-helpers/v1#encoding"],"console":true},"category":{"source":"user","id":"WEB"},"capabilities":{"network":{"mode":"blocked","hosts":[]},"fileRead":false,"fileWrite":false}}"#
    );
}
