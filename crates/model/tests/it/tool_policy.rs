//! A policy built in Rust and the same policy written as configuration decide the
//! same about every call.

use model::caller::{Caller, Origin};
use model::config::Config;
use model::document::Document;
use model::document::params;
use model::govern::access::CallerRights;
use model::govern::rules::{Decision, Effect, RuleInput, Rules};
use model::govern::tool_policy::ToolPolicy;
use model::policy::resolve;
use model::policy::risk::rate;
use model::reason::Reason;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::govern::documents;

/// Names of tools; some differ only in the case of a letter.
const TOOLS: [&str; 6] = ["pay", "Pay", "mail.send", "mail.read", "web\"get", "x"];

/// One part of a policy, which both spell.
#[derive(Clone, Debug)]
enum Part {
    DenyAll,
    AllowList(Vec<&'static str>),
    DenyList(Vec<&'static str>),
    AskList(Vec<&'static str>),
    When(i64),
    DenyWhen(i64),
    AskWhen(i64),
}

fn part() -> impl Strategy<Value = Part> {
    let names = || proptest::sample::subsequence(TOOLS.to_vec(), 0..4);
    let patterns = || proptest::sample::subsequence(vec!["PAY", "mail.*", "x", "nothing"], 0..3);
    prop_oneof![
        1 => Just(Part::DenyAll),
        4 => names().prop_map(Part::AllowList),
        4 => patterns().prop_map(Part::DenyList),
        4 => patterns().prop_map(Part::AskList),
        4 => (0..4_i64).prop_map(Part::When),
        4 => (0..4_i64).prop_map(Part::DenyWhen),
        4 => (0..4_i64).prop_map(Part::AskWhen),
    ]
}

fn is_over(args: &serde_json::Map<String, Value>, most: i64) -> bool {
    args.get("amount").and_then(Value::as_f64) > Some(most as f64)
}

fn in_rust(parts: &[Part]) -> ToolPolicy {
    let one = |part: &Part| match part.clone() {
        Part::DenyAll => ToolPolicy::deny_all(),
        Part::AllowList(names) => ToolPolicy::allow_list(names),
        Part::DenyList(names) => ToolPolicy::deny_list(names),
        Part::AskList(names) => ToolPolicy::ask_list(names),
        Part::When(most) => ToolPolicy::when(move |call| !is_over(call.args, most), "too much"),
        Part::DenyWhen(most) => ToolPolicy::deny_when(move |call| is_over(call.args, most), "no"),
        Part::AskWhen(most) => ToolPolicy::ask_when(move |call| is_over(call.args, most), "ask"),
    };
    let parts = parts.iter().map(one);
    parts.fold(ToolPolicy::ALLOW_ALL, ToolPolicy::and)
}

/// The same as an operator writes it. An empty list of tools cannot be written, for
/// it names nothing; then there is no rule.
fn in_toml(parts: &[Part]) -> String {
    let quoted = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| json!(name).to_string()).collect();
        format!("[{}]", names.join(", "))
    };
    let over = |most: &i64| format!("when = 'has(args.amount) && args.amount > {most}'\n");
    let tools = |names: &[&str]| format!("tools = {}\n", quoted(names));
    let mut text = String::new();
    let mut number = 0;
    for part in parts {
        let (effect, reason, about) = match part {
            Part::DenyAll => ("deny", "every tool is denied", String::new()),
            Part::AllowList(names) => (
                "deny",
                "it is not on the list of allowed tools",
                format!("when = '!(tool.name in {})'\n", quoted(names)),
            ),
            Part::DenyList(names) | Part::AskList(names) if names.is_empty() => continue,
            Part::DenyList(names) => ("deny", "it is on the list of denied tools", tools(names)),
            Part::AskList(names) => ("ask", "a person is asked about this tool", tools(names)),
            Part::When(most) => ("deny", "too much", over(most)),
            Part::DenyWhen(most) => ("deny", "no", over(most)),
            Part::AskWhen(most) => ("ask", "ask", over(most)),
        };
        number += 1;
        text += &format!(
            "[[rule]]\nid = 'policy-{number:04}'\neffect = '{effect}'\nreason = '{reason}'\n{about}"
        );
    }
    text
}

fn tool(name: &str, mode: &str) -> Document {
    let tool = json!({
        "name": name, "code": "", "codeType": "Javascript",
        "params": [{"name": "amount", "type": "NUMBER", "required": false}],
        "humanInTheLoop": {"mode": mode},
    });
    documents(&tool.to_string()).pop().unwrap()
}

fn decide(rules: &Rules, tool: &Document, amount: Option<i64>) -> Decision {
    let raw = amount.map_or(json!({}), |amount| json!({ "amount": amount }));
    let arguments = params::check(&tool.params, &raw).unwrap();
    let baseline = Config::closed().effective_baseline().unwrap();
    let policy = resolve(&baseline, &tool.sandbox_overrides).unwrap();
    rules.decide(&RuleInput {
        caller: &Caller::named("ann"),
        rights: &CallerRights::open(),
        origin: Origin::Mcp,
        document: tool,
        arguments: &arguments,
        policy: &policy,
        risk: &rate(&baseline, &tool.sandbox_overrides, &policy),
        body: model::govern::rules::BodyFacts::sandboxed(),
        at_ms: 0,
    })
}

fn with(policy: &ToolPolicy) -> Rules {
    Rules {
        list: policy.rules(),
        ..Rules::standard()
    }
}

proptest! {
    #[test]
    fn code_and_configuration_decide_the_same(
        parts in proptest::collection::vec(part(), 0..5),
        name in proptest::sample::select(TOOLS.to_vec()),
        mode in proptest::sample::select(vec!["DISABLED", "REQUIRED", "AUTO_APPROVE"]),
        amount in proptest::option::of(0..5_i64),
    ) {
        let tool = tool(name, mode);
        let ours = decide(&with(&in_rust(&parts)), &tool, amount);
        let text = in_toml(&parts);
        let theirs = decide(&Config::parse(&text).unwrap().rules, &tool, amount);
        let rule = theirs.rule.map(|id| id.replace('-', ":"));
        prop_assert_eq!(
            (ours.effect, &ours.reason, &ours.rule, ours.code),
            (theirs.effect, &theirs.reason, &rule, theirs.code),
            "{}", text
        );
    }

    /// Whatever is added, a decision only gets stricter.
    #[test]
    fn another_rule_never_weakens_a_decision(
        parts in proptest::collection::vec(part(), 1..5),
        name in proptest::sample::select(TOOLS.to_vec()),
        amount in proptest::option::of(0..5_i64),
    ) {
        let tool = tool(name, "AUTO_APPROVE");
        let (_, fewer) = parts.split_last().unwrap();
        let before = decide(&with(&in_rust(fewer)), &tool, amount).effect;
        prop_assert!(decide(&with(&in_rust(&parts)), &tool, amount).effect >= before);
    }
}

/// Lists are the very rules that a file makes, not only ones that decide alike.
#[test]
fn lists_are_the_rules_of_a_file() {
    let parts = [
        Part::AllowList(vec!["pay", "web\"get"]),
        Part::DenyList(vec!["mail.*"]),
        Part::AskList(vec!["x"]),
        Part::DenyAll,
    ];
    let mut read = Config::parse(&in_toml(&parts)).unwrap().rules.list;
    for rule in &mut read {
        rule.id = rule.id.replace('-', ":");
    }
    assert_eq!(in_rust(&parts).rules(), read);
}

#[test]
fn a_predicate_that_panics_denies_with_a_code_of_its_own() {
    let broken = ToolPolicy::ask_when(|call| call.args["missing"].is_null(), "never said");
    let decision = decide(&with(&broken), &tool("x", "DISABLED"), None);
    assert_eq!(decision.effect, Effect::Deny);
    assert_eq!(decision.code, Some(Reason::RuleUnevaluable));
    assert_eq!(decision.rule.as_deref(), Some("policy:0001"));
}

#[test]
fn an_empty_policy_adds_nothing_and_an_empty_allow_list_denies_all() {
    let none: [&str; 0] = [];
    assert!(
        ToolPolicy::ALLOW_ALL
            .and(ToolPolicy::deny_list(none))
            .is_open()
    );
    let closed = decide(
        &with(&ToolPolicy::allow_list(none)),
        &tool("x", "DISABLED"),
        None,
    );
    assert_eq!(closed.effect, Effect::Deny);
}
