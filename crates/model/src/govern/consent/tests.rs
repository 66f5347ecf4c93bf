//! What a document reaches for, what was granted, and what is new.

use super::*;
use crate::document::parse;
use crate::policy::risk;
use crate::policy::{Baseline, resolve};

fn needed(overrides: &str, variables: &str) -> Vec<String> {
    let text = format!(
        r#"{{"name":"a","code":"","codeType":"Javascript","sandboxOverrides":{{{overrides}}},"staticVariables":[{variables}]}}"#
    );
    let document = parse(&text).items.pop().and_then(|item| item.document);
    let document = document.expect("a document");
    let baseline = Baseline::closed();
    let policy = resolve(&baseline, &document.sandbox_overrides).expect("a policy");
    let risk = risk::of(&document, &baseline, &policy);
    let needs = needs(&document, &policy, &risk);
    needs.iter().map(Need::word).collect()
}

#[test]
fn computing_and_reading_the_workspace_need_nothing() {
    assert_eq!(needed("", ""), [""; 0]);
    assert_eq!(needed(r#""fileRead":true"#, ""), [""; 0]);
    assert_eq!(needed(r#""networkMode":"allowlist""#, ""), [""; 0]);
}

#[test]
fn every_wider_access_is_a_need() {
    let hosts = r#""networkMode":"allowlist","hostsAllow":["b.example","a.example"]"#;
    let expected = ["host a.example", "host b.example", "variable KEY"];
    assert_eq!(needed(hosts, r#"{"k":"${KEY}-${KEY}"}"#), expected);
    assert_eq!(
        needed(r#""networkMode":"open""#, ""),
        ["network any", "risk L4"]
    );
    assert_eq!(needed(r#""networkMode":"strict""#, ""), ["network public"]);
    assert_eq!(
        needed(r#""fileRead":true,"fsBasePath":"/data""#, ""),
        ["folder /data"]
    );
    let all = r#""fileWrite":true,"destructive":true,"fsBasePath":"/data""#;
    let expected = ["folder /data", "write", "destroy", "risk L5"];
    assert_eq!(needed(all, ""), expected);
}

#[test]
fn a_grant_covers_itself_and_narrower_needs() {
    let granted = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        Granted::Only(Arc::new(words.collect()))
    };
    let host = Need::Host("a.example".to_owned());
    assert!(granted(&["host a.example"]).has(&host));
    assert!(granted(&["network any"]).has(&host));
    assert!(!granted(&["network public"]).has(&host));
    assert!(!granted(&["host b.example"]).has(&host));
    assert!(granted(&["risk L5"]).has(&Need::Risk(Level::L4)));
    assert!(!granted(&["risk L4"]).has(&Need::Risk(Level::L5)));
    assert!(!Granted::nothing().has(&Need::Write));
    assert!(Granted::Ours.has(&Need::Destroy));
    let asked = vec![host.clone(), Need::Write];
    assert_eq!(granted(&["write"]).lacks(asked), [host]);
}

#[test]
fn a_tool_sees_only_the_variables_it_was_granted() {
    let text = r#"{"name":"a","code":"","codeType":"Javascript",
        "staticVariables":[{"a":"${ONE}"},{"b":"${TWO}${ONE}"}]}"#;
    let document = parse(text).items.pop().and_then(|item| item.document);
    let document = document.expect("a document");
    let environment: Environment = [("ONE", "1"), ("TWO", "2"), ("THREE", "3")]
        .into_iter()
        .collect();
    let one = Granted::Only(Arc::new(["variable ONE".to_owned()].into()));
    let visible = one.visible(&document, &environment);
    assert_eq!(visible.get("ONE"), Some("1"));
    assert_eq!(visible.get("TWO"), None);
    assert_eq!(one.ungranted(&document), ["TWO"]);
    let ours = Granted::Ours.visible(&document, &environment);
    assert_eq!(ours.get("TWO"), Some("2"));
    assert_eq!(ours.get("THREE"), None, "only what the document names");
    let words: Vec<_> = one.variables(&document, &environment);
    let words: Vec<_> = words.iter().map(Variable::words).collect();
    assert_eq!(words, ["ONE (set, granted)", "TWO (set, not granted)"]);
}
