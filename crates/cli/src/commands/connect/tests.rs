//! Entries in the settings of clients: nothing else may change.

use super::client::{Entry, Folders, Platform};
use clap::ValueEnum as _;

use super::*;

use serde_json::Value;

fn put(old: &str, entry: Option<&Value>) -> Option<String> {
    splice::put(Some(old), "mcpServers", "ringfence", entry).expect("a change")
}

fn sample() -> Value {
    json!({"command": "/bin/ringfence", "args": ["stdio"]})
}

#[track_caller]
fn check(old: &str, expected: &str) {
    let entry = sample();
    let new = put(old, Some(&entry)).expect("something changed");
    assert_eq!(new, expected);
    assert_eq!(
        put(&new, Some(&entry)),
        None,
        "a second time changes nothing"
    );
    let removed = put(&new, None).expect("it was there");
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let mut before = value(old);
    let section = before.as_object_mut().expect("an object");
    let servers = section.entry("mcpServers").or_insert(json!({}));
    servers
        .as_object_mut()
        .expect("an object")
        .shift_remove("ringfence");
    assert_eq!(value(&removed), before);
    assert_eq!(put(&removed, None), None);
}

#[test]
fn an_entry_is_added_as_the_author_would() {
    check(
        "{}",
        "{\n  \"mcpServers\": {\n    \"ringfence\": {\n      \"command\": \"/bin/ringfence\",\n      \"args\": [\n        \"stdio\"\n      ]\n    }\n  }\n}",
    );
    check(
        "{\n\t\"theme\": 1.50,\n\t\"mcpServers\": {}\n}\n",
        "{\n\t\"theme\": 1.50,\n\t\"mcpServers\": {\n\t\t\"ringfence\": {\n\t\t\t\"command\": \"/bin/ringfence\",\n\t\t\t\"args\": [\n\t\t\t\t\"stdio\"\n\t\t\t]\n\t\t}\n\t}\n}\n",
    );
    check(
        "{\n    \"mcpServers\": {\n        \"other\": { \"url\": \"x\" }\n    },\n    \"last\": 1e5\n}\n",
        "{\n    \"mcpServers\": {\n        \"other\": { \"url\": \"x\" },\n        \"ringfence\": {\n            \"command\": \"/bin/ringfence\",\n            \"args\": [\n                \"stdio\"\n            ]\n        }\n    },\n    \"last\": 1e5\n}\n",
    );
    check(
        r#"{"mcpServers":{"a":{}},"n":12345678901234567890123}"#,
        r#"{"mcpServers":{"a":{}, "ringfence": {"command":"/bin/ringfence","args":["stdio"]}},"n":12345678901234567890123}"#,
    );
}

#[test]
fn an_older_entry_is_replaced_in_its_place() {
    check(
        "{\n  \"mcpServers\": {\n    \"ringfence\": {\"url\": \"old\"},\n    \"z\": {}\n  }\n}\n",
        "{\n  \"mcpServers\": {\n    \"ringfence\": {\n      \"command\": \"/bin/ringfence\",\n      \"args\": [\n        \"stdio\"\n      ]\n    },\n    \"z\": {}\n  }\n}\n",
    );
}

#[test]
fn a_removed_entry_takes_its_comma_along() {
    let around = |inner: &str| format!("{{\n  \"mcpServers\": {{{inner}}}\n}}");
    for (old, new) in [
        (
            "\n    \"a\": 1,\n    \"ringfence\": 2,\n    \"b\": 3\n  ",
            "\n    \"a\": 1,\n    \"b\": 3\n  ",
        ),
        (
            "\n    \"ringfence\": 2,\n    \"b\": 3\n  ",
            "\n    \"b\": 3\n  ",
        ),
        (
            "\n    \"a\": 1,\n    \"ringfence\": 2\n  ",
            "\n    \"a\": 1\n  ",
        ),
        ("\n    \"ringfence\": 2\n  ", ""),
    ] {
        assert_eq!(put(&around(old), None), Some(around(new)));
    }
    for untouched in [
        "{}",
        "{\"mcpServers\":{}}",
        "{\"mcpServers\":{\"a\":1}}",
        "",
    ] {
        assert_eq!(put(untouched, None), None, "{untouched}");
    }
}

#[test]
fn settings_that_are_not_plain_json_are_left_alone() {
    for bad in [
        "// mine\n{}",
        "{ /* mine */ }",
        "{\"a\": 1,}",
        "{\"mcpServers\": {\"a\": {},}}",
        "[]",
        "\"text\"",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": null}",
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
        "\u{feff}{}",
        "{",
    ] {
        let entry = sample();
        let done = splice::put(Some(bad), "mcpServers", "ringfence", Some(&entry));
        assert!(done.is_err(), "{bad}");
    }
    // No file, or nothing in it: a new one.
    for nothing in [None, Some(""), Some(" \n")] {
        let entry = sample();
        let done = splice::put(nothing, "mcpServers", "ringfence", Some(&entry));
        assert!(
            done.expect("written")
                .is_some_and(|text| text.ends_with("}\n"))
        );
    }
}

#[test]
fn each_client_has_its_file_and_its_spelling() {
    let folders = Folders {
        home: Some("/ada".into()),
        config: None,
    };
    let elsewhere = Folders {
        home: Some("/ada".into()),
        config: Some("/elsewhere".into()),
    };
    let mut shown = String::new();
    let clients = ClientWord::value_variants();
    for client in clients {
        for (platform, folders) in [
            (Platform::Linux, &folders),
            (Platform::Linux, &elsewhere),
            (Platform::Mac, &folders),
        ] {
            let file = client::file(*client, platform, folders).expect("a file");
            shown.push_str(&format!("{client:?} {platform:?} {}\n", file.display()));
        }
        let home = Path::new("/ring");
        let program = Path::new("/bin/ringfence");
        for entry in [
            Entry::Program {
                program,
                home: None,
                key: "KEY",
            },
            Entry::Program {
                program,
                home: Some(home),
                key: "KEY",
            },
            Entry::Address {
                url: "http://127.0.0.1:7464/mcp",
                key: "KEY",
            },
        ] {
            let is_address = matches!(entry, Entry::Address { .. });
            if is_address && !client.takes_addresses() {
                continue;
            }
            let value = client::entry(*client, &entry).expect("an entry");
            shown.push_str(&format!("  {value}\n"));
        }
    }
    assert_eq!(
        client::file(ClientWord::Cursor, Platform::Linux, &Folders::default()),
        None
    );
    insta::assert_snapshot!("clients", shown);
}

#[test]
fn snippets_have_a_key_of_their_own_and_never_show_it() {
    let text = snippets("http://127.0.0.1:7464/mcp");
    insta::assert_snapshot!("snippets", text);
}

#[test]
fn an_address_as_typed_gets_the_path_of_the_endpoint() {
    for (written, expected) in [
        ("http://127.0.0.1:9999", "http://127.0.0.1:9999/mcp"),
        (
            "https://tools.example.com/",
            "https://tools.example.com/mcp",
        ),
        (
            "https://example.com/ring/mcp",
            "https://example.com/ring/mcp",
        ),
    ] {
        assert_eq!(endpoint(written).expect("an address"), expected);
    }
    for odd in [
        "",
        "http://",
        "ftp://x",
        "127.0.0.1:1",
        "http://a b",
        "http://a@b",
        "http:///x",
    ] {
        assert!(endpoint(odd).is_err(), "{odd}");
    }
}
