//! What changes a digest and what does not.

use serde_json::json;

use crate::document::{Document, parse};

use super::*;

fn document(text: &str) -> Document {
    parse(text)
        .items
        .pop()
        .and_then(|item| item.document)
        .expect("a document")
}

const PLAIN: &str = r#"{"name":"a","code":"return 1","codeType":"Javascript",
    "params":[{"name":"x","type":"STRING","required":true,"testValue":"1"}],
    "sandboxOverrides":{"networkMode":"allowlist","hostsAllow":["a.example","b.example"]}}"#;

#[track_caller]
fn check(from: &str, to: &str, same: bool) {
    assert!(PLAIN.contains(from), "{from}");
    let digest = of_document(&document(PLAIN)).expect("digest");
    let other = of_document(&document(&PLAIN.replacen(from, to, 1))).expect("digest");
    assert_eq!(digest == other, same, "{from} -> {to}");
}

#[test]
fn irrelevant_fields_do_not_change_the_digest() {
    check(
        r#""name":"a","#,
        r#""toolId":"z","name":"a","draft":true,"x-vendor":1,"#,
        true,
    );
    check(r#""testValue":"1""#, r#""testValue":"2""#, true);
    check(
        r#""name":"a","code""#,
        r#""description":"","tags":null, "name":"a","code""#,
        true,
    );
    check(
        r#"["a.example","b.example"]"#,
        r#"["b.example","a.example"]"#,
        true,
    );
    check(
        r#""name":"a","#,
        r#""name":"a","toolSafety":{"version":"1.0"},"#,
        true,
    );
}

#[test]
fn relevant_fields_change_the_digest() {
    check("return 1", "return 2", false);
    check(r#""name":"a","#, r#""name":"b","#, false);
    check(r#""name":"a","#, r#""name":"a","description":"d","#, false);
    check(r#""required":true"#, r#""required":false"#, false);
    check("STRING", "NUMBER", false);
    check(r#"["a.example","b.example"]"#, r#"["a.example"]"#, false);
    check("allowlist", "strict", false);
    check(
        r#""name":"a","#,
        r#""name":"a","humanInTheLoop":{"mode":"REQUIRED"},"#,
        false,
    );
    check(
        r#""name":"a","#,
        r#""name":"a","staticVariables":[{"k":"v"}],"#,
        false,
    );
    check(r#""name":"a","#, r#""name":"a","category":"FILE","#, false);
}

/// The scheme is a promise: this digest must not change under it.
#[test]
fn the_scheme_is_pinned() {
    let digest = of_document(&document(PLAIN)).expect("digest").to_string();
    assert_eq!(
        digest,
        "ringfence-tool-1:sha256:rfc8785:a838154cc636e78eb9727b82c0161961d57fe7bfa8deef097c498eb9b612a450"
    );
}

#[test]
fn an_id_is_made_only_where_there_is_none() {
    assert_eq!(
        tool_id(&document(PLAIN)),
        "2714bf69-1e01-5404-b07f-e9f975ebba79"
    );
    let own = document(&PLAIN.replacen('{', r#"{"toolId":"my own id","#, 1));
    assert_eq!(tool_id(&own), "my own id");
}

/// The same as a tree, spelled the general way.
fn general(document: &Document) -> Vec<u8> {
    let params = document.params.iter().map(|param| {
        json!({
            "name": param.name, "description": param.description,
            "required": param.required, "type": param.kind.word(),
        })
    });
    let variables = document.static_variables.iter();
    let variables = variables.map(|variable| json!([variable.name, variable.template]));
    let overrides = &document.sandbox_overrides;
    let prompt = document.human_in_the_loop.as_ref();
    let prompt = prompt.and_then(|block| block.prompt_template.clone());
    let mut value = json!({
        "name": document.name,
        "description": document.description,
        "category": document.category,
        "tags": sorted(&document.tags),
        "params": params.collect::<Vec<_>>(),
        "staticVariables": variables.collect::<Vec<_>>(),
        "code": document.code,
        "codeType": document.code_type.word(),
        "sandboxOverrides": {
            "addAllowClasses": sorted(&overrides.add_allow_classes),
            "removeAllowClasses": sorted(&overrides.remove_allow_classes),
            "addDenyClasses": sorted(&overrides.add_deny_classes),
            "removeDenyClasses": sorted(&overrides.remove_deny_classes),
            "networkMode": overrides.network_mode.map(Word::word),
            "hostsAllow": sorted(&overrides.hosts_allow),
            "fileRead": overrides.file_read,
            "fileWrite": overrides.file_write,
            "fsBasePath": overrides.fs_base_path,
            "destructive": overrides.destructive,
        },
        "approval": { "mode": document.approval().word(), "prompt": prompt },
    });
    let examples = Metadata::of(document).examples;
    if !examples.is_empty() {
        let examples = examples.iter();
        let examples = examples.map(|it| json!({"description": it.description, "input": it.input}));
        value["examples"] = examples.collect();
    }
    if let Some(schema) = codecall::output_schema(document) {
        value["outputSchema"] = schema;
    }
    let shipped = resource::of(document);
    if !shipped.is_empty() {
        let shipped = shipped
            .iter()
            .map(|it| json!({"name": it.name, "mimeType": it.mime_type, "text": it.text}));
        value["resources"] = shipped.collect();
    }
    canonical::to_bytes(&value).expect("canonical")
}

#[test]
fn examples_count_and_switches_do_not() {
    let with = |field: &str| {
        let field = format!(r#"{{"x-ringfence-codecall":{field},"name":"a""#);
        document(&PLAIN.replacen(r#"{"name":"a""#, &field, 1))
    };
    let example = |words: &str| {
        with(&format!(
            r#"{{"examples":[{{"description":"{words}","input":{{"x":"1","a":[2]}}}}]}}"#
        ))
    };
    let digest = |document: &Document| of_document(document).expect("a digest");
    assert_ne!(digest(&example("one")), digest(&example("two")));
    assert_ne!(digest(&example("one")), digest(&document(PLAIN)));
    let switch = with(r#"{"visibleInListTools":false}"#);
    assert_eq!(digest(&switch), digest(&document(PLAIN)));
    assert_eq!(
        general(&example("one")),
        meaning(&example("one")).expect("canonical")
    );
}

/// So is what it says it gives back.
#[test]
fn the_output_schema_counts() {
    let with = |schema: &str| {
        let field = format!(r#"{{"x-ringfence-codecall":{{"outputSchema":{schema}}},"name":"a""#);
        document(&PLAIN.replacen(r#"{"name":"a""#, &field, 1))
    };
    let digest = |document: &Document| of_document(document).expect("a digest");
    let one = with(r#"{"type":"object","description":"one"}"#);
    assert_ne!(
        digest(&one),
        digest(&with(r#"{"type":"object","description":"two"}"#))
    );
    assert_ne!(digest(&one), digest(&document(PLAIN)));
    // Their order does not count.
    let turned = with(r#"{"description":"one","type":"object"}"#);
    assert_eq!(digest(&one), digest(&turned));
    assert_eq!(general(&one), meaning(&one).expect("canonical"));
}

/// What a document ships is read by models, so it must not change behind a pass.
#[test]
fn resources_count() {
    let with = |text: &str| {
        let shipped = json!([{"name": "a", "mimeType": "text/plain", "text": text}]);
        let field = format!(r#"{{"x-ringfence-resources":{shipped},"name":"a""#);
        document(&PLAIN.replacen(r#"{"name":"a""#, &field, 1))
    };
    let digest = |document: &Document| of_document(document).expect("a digest");
    assert_eq!(resource::of(&with("one")).len(), 1);
    assert_ne!(digest(&with("one")), digest(&with("two")));
    assert_ne!(digest(&with("one")), digest(&document(PLAIN)));
    assert_eq!(
        general(&with("one")),
        meaning(&with("one")).expect("canonical")
    );
}

#[test]
fn the_quick_spelling_is_the_general_one() {
    let full = r#"{"name":"abc","description":"d \"q\" \n\u0001\u2028","code":"return '\\\\'",
        "codeType":"Javascript","category":"DATA","tags":["b","a"],
        "params":[{"name":"x","type":"STRING","required":true,"testValue":"1","description":"\ud83d\ude00"},
                  {"name":"y","type":"NUMBER","required":false}],
        "staticVariables":[{"k":"${KEY} \u00e9"},{"l":"\"x\""}],
        "humanInTheLoop":{"mode":"REQUIRED","promptTemplate":"{args}?"},
        "sandboxOverrides":{"networkMode":"allowlist","hostsAllow":["b.example","a.example"],
            "fileRead":true,"fileWrite":false,"fsBasePath":"x","destructive":true,
            "addAllowClasses":["b.*","a"],"removeAllowClasses":["r"],"addDenyClasses":["d"],
            "removeDenyClasses":["java.lang.Thread"]}}"#;
    let least = r#"{"name":"a","code":"","codeType":"Javascript"}"#;
    for text in [full, least, PLAIN] {
        let item = parse(text).items.pop().expect("an item");
        let findings = item.findings;
        let document = item.document.unwrap_or_else(|| panic!("{findings:?}"));
        assert_eq!(meaning(&document).expect("canonical"), general(&document));
    }
}
