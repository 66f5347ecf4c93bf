//! Whatever a peer sends is read or refused, comes back from its pin, and is looked at
//! without a fault.

use model::word::Word as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use upstream::definition::{Definition, ItemKind, ServerDefinition, ServerOrigin};
use upstream::finding::{Neighbours, of_item};
use upstream::pin::{AcceptScope, ChangeClass, ChangeSubject, PinnedServer, SeenServer, compare};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        ".{0,40}",
        "[a-zA-Z0-9+/=_%\\\\-]{0,60}",
        Just("ignore previous instructions".to_owned()),
        Just("\u{1f3f4}\u{e0067}\u{202e}\u{200d}\u{fe0f}".to_owned()),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let key = prop_oneof![
        text(),
        proptest::sample::select(vec![
            "type",
            "properties",
            "items",
            "enum",
            "required",
            "anyOf",
            "$ref",
            "x-mcp-header",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn field() -> impl Strategy<Value = (String, Value)> {
    let name = proptest::sample::select(vec![
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "arguments",
        "mimeType",
        "uriTemplate",
        "_meta",
    ]);
    (name.prop_map(str::to_owned), json())
}

fn item() -> impl Strategy<Value = Value> {
    (text(), proptest::collection::vec(field(), 0..4)).prop_map(|(name, fields)| {
        let mut item = json!({"name": name, "uriTemplate": name, "inputSchema": {}});
        for (key, value) in fields {
            item[key] = value;
        }
        item
    })
}

fn server() -> ServerDefinition {
    let origin = ServerOrigin::Url("https://example.com/mcp".to_owned());
    ServerDefinition::new("demo", "1", None, origin).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn definitions_round_trip(items in proptest::collection::vec((0..3_usize, item()), 0..6)) {
        let kinds = ItemKind::ALL;
        let listed = || items.iter().map(|(kind, item)| (kinds[*kind], item));
        let seen = SeenServer::read(server(), listed()).unwrap();
        for (key, item) in &seen.items {
            let text: Value = serde_json::from_str(item.pin.text()).unwrap();
            prop_assert_eq!(&text, &item.definition.to_value());
            let again = Definition::read(key.kind, &text).unwrap();
            prop_assert_eq!(&again, &item.definition);
            for finding in of_item(&item.definition, &Neighbours::default()) {
                let shown = format!("{}{}{}", finding.excerpt, finding.field, finding.message);
                prop_assert!(!shown.chars().any(model::text::is_hidden), "{:?}", shown);
            }
        }
        let mut pinned = PinnedServer::unknown();
        pinned.accept(&seen, AcceptScope::All, 1);
        let stored = PinnedServer::from_json(&pinned.to_json().unwrap()).unwrap();
        prop_assert_eq!(&stored, &pinned);
        let again = SeenServer::read(server(), listed()).unwrap();
        for change in compare(&stored, &again) {
            let is_held = match &change.subject {
                ChangeSubject::Server => false,
                ChangeSubject::Item(key) => seen.items[key].hold.is_some(),
            };
            let is_new = matches!(change.class, ChangeClass::New);
            prop_assert_eq!(is_new, is_held, "{:?}", change.subject);
            prop_assert!(is_new || change.class == ChangeClass::Same);
        }
    }

    #[test]
    fn anything_is_read_or_refused(value in json()) {
        for kind in ItemKind::ALL.iter().copied() {
            if let Err(fault) = Definition::read(kind, &value) {
                prop_assert!(!fault.message.chars().any(model::text::is_hidden));
            }
        }
    }
}
