//! The quick spelling against the general one.

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::*;
use crate::caller::Origin;
use crate::record::audit::{SharedFacts, Status};

fn general(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a value");
    String::from_utf8(canonical::to_bytes(&value).expect("canonical")).expect("text")
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-9_007_199_254_740_993_i64..).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

prop_compose! {
    fn any_tool()(
        texts in prop::collection::vec(any::<String>(), 4),
        category in any::<Option<String>>(),
        risk_reasons in prop::collection::vec(any::<String>(), 0..3),
        tool_safety in any_value(),
    ) -> ToolFacts {
        ToolFacts {
            tool_id: texts[0].clone(),
            name: texts[1].clone(),
            category,
            digest: texts[2].clone(),
            risk: texts[3].clone(),
            risk_reasons,
            tool_safety,
        }
    }
}

prop_compose! {
    fn any_gate()(
        gate in any::<String>(),
        verdict in any::<String>(),
        reason in any::<Option<String>>(),
        note in any::<Option<String>>(),
        rule in any::<Option<String>>(),
        us in any::<Option<u64>>(),
    ) -> GateRecord {
        GateRecord { gate: gate.into(), verdict: verdict.into(), reason: reason.map(Into::into), note, rule, us }
    }
}

prop_compose! {
    fn any_closing()(
        at_ms in any::<i64>(),
        status in prop::sample::select(&Status::ALL[..]),
        error in prop::option::of((any::<String>(), any::<String>())),
        tool in prop::option::of(any_tool()),
        gates in prop::collection::vec(any_gate(), 0..3),
        arguments in prop::option::of(any_value()),
        result_digest in any::<Option<String>>(),
        events in prop::collection::vec(any_value(), 0..3),
        events_dropped in prop_oneof![Just(0), any::<u64>()],
        shadow in prop::option::of(prop::collection::vec(any::<String>(), 4)),
        shadow_rule in any::<Option<String>>(),
        timing in prop::option::of(any::<(u64, u64, u64)>()),
    ) -> Closing {
        Closing {
            at_ms,
            status,
            error: error.map(|(code, message)| Failure { code, message }),
            tool: tool.map(SharedFacts::from),
            gates,
            arguments,
            result_digest,
            events,
            events_dropped,
            shadow: shadow.map(|texts| Shadow {
                candidate: texts[0].clone(),
                live: texts[1].clone(),
                verdict: texts[2].clone(),
                reason: texts[3].clone(),
                rule: shadow_rule,
            }),
            timing: timing.map(|(total_us, run_us, cpu_us)| Timing { total_us, run_us, cpu_us }),
        }
    }
}

prop_compose! {
    fn any_opening()(
        texts in prop::collection::vec(any::<String>(), 4),
        parent_id in any::<Option<String>>(),
        at_ms in any::<i64>(),
        origin in prop::sample::select(&Origin::ALL[..]),
    ) -> Opening {
        Opening {
            call_id: texts[0].clone(),
            parent_id,
            at_ms,
            origin,
            caller: texts[1].clone(),
            tool: texts[2].clone(),
            arguments_digest: texts[3].clone(),
        }
    }
}

proptest! {
    #[test]
    fn a_closing_is_spelled_as_the_general_way_does(closing in any_closing()) {
        prop_assert_eq!(super::closing(&closing).expect("canonical"), general(&closing));
    }

    #[test]
    fn an_opening_is_spelled_as_the_general_way_does(opening in any_opening()) {
        prop_assert_eq!(super::opening(&opening).expect("canonical"), general(&opening));
    }

    #[test]
    fn a_value_is_spelled_as_the_general_way_does(value in any_value()) {
        let mut out = Vec::new();
        canonical::write(&value, &mut out).expect("canonical");
        prop_assert_eq!(String::from_utf8(out).expect("text"), general(&value));
    }
}

/// The two orders differ only beyond the basic plane.
#[test]
fn keys_sort_as_utf16() {
    let value = json!({"\u{fb33}": 1, "\u{1f600}": 2, "z": 3});
    let mut out = Vec::new();
    canonical::write(&value, &mut out).expect("canonical");
    assert_eq!(String::from_utf8(out).expect("text"), general(&value));
}
