//! Random worlds: an operator's file, a caller, a tool and a call, decided by
//! Ringfence and by a small model of it that is plainly right and knows none of
//! its code.

use std::fmt::Write as _;

use model::caller::{Caller, Origin};
use model::config::Config;
use model::document::Document;
use model::document::params;
use model::govern::rules::{Decision, Effect, RuleInput, Rules};
use model::policy::resolve;
use model::policy::risk::rate;
use model::reason::Reason;
use model::word::Word as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::govern::documents;

/// What a world is made of.
#[derive(Clone, Debug)]
struct World {
    rules: Vec<SpecRule>,
    level: Option<&'static str>,
    autonomy: Option<&'static str>,
    allow: Option<&'static str>,
    deny: Option<&'static str>,
    caller: &'static str,
    tool: SpecTool,
    amount: Option<Value>,
}

#[derive(Clone, Debug)]
struct SpecRule {
    tools: Vec<&'static str>,
    callers: Vec<&'static str>,
    categories: Vec<&'static str>,
    actions: Option<&'static str>,
    risk_from: Option<usize>,
    when: Option<When>,
    effect: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum When {
    /// `args.amount > n`
    Over(i64),
    /// `has(args.amount)`
    Given,
    /// `has(args.amount) && args.amount > n`
    GivenOver(i64),
}

#[derive(Clone, Debug)]
struct SpecTool {
    name: &'static str,
    category: &'static str,
    network: &'static str,
    write: bool,
    declared: Option<&'static str>,
    mode: &'static str,
}

fn file(world: &World) -> String {
    let list = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        format!("[{}]", words.join(", "))
    };
    let mut text = String::from("[callers.ann]\n");
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{name} = {value}");
        }
    };
    set("level", world.level.map(|word| format!("'{word}'")));
    set("autonomy", world.autonomy.map(|word| format!("'{word}'")));
    set("allow", world.allow.map(|word| list(&[word])));
    set("deny", world.deny.map(|word| list(&[word])));
    text.push_str("[groups.crew]\nmembers = ['ann']\n");
    for (index, rule) in world.rules.iter().enumerate() {
        let _ = writeln!(
            text,
            "[[rule]]\nid = 'r{index}'\neffect = '{}'",
            rule.effect
        );
        let lists = [
            ("tools", &rule.tools),
            ("callers", &rule.callers),
            ("categories", &rule.categories),
        ];
        for (name, words) in lists.into_iter().filter(|(_, words)| !words.is_empty()) {
            let _ = writeln!(text, "{name} = {}", list(words));
        }
        if let Some(action) = rule.actions {
            let _ = writeln!(text, "actions = ['{action}']");
        }
        if let Some(from) = rule.risk_from {
            let _ = writeln!(text, "risk = 'L{from}+'");
        }
        let when = match rule.when {
            None => continue,
            Some(When::Over(n)) => format!("args.amount > {n}"),
            Some(When::Given) => "has(args.amount)".to_owned(),
            Some(When::GivenOver(n)) => format!("has(args.amount) && args.amount > {n}"),
        };
        let _ = writeln!(text, "when = '{when}'");
    }
    text
}

fn document(tool: &SpecTool, amount: Option<&Value>) -> Document {
    let kind = if amount.is_some_and(Value::is_string) {
        "STRING"
    } else {
        "NUMBER"
    };
    let hosts: &[&str] = match tool.network {
        "allowlist" => &["a.example"],
        _ => &[],
    };
    let tool = json!({
        "name": tool.name, "category": tool.category, "code": "", "codeType": "Javascript",
        "params": [{"name": "amount", "type": kind, "required": false}],
        "sandboxOverrides": {
            "networkMode": tool.network, "hostsAllow": hosts, "fileWrite": tool.write,
        },
        "humanInTheLoop": {"mode": tool.mode},
        "x-ringfence-actions": tool.declared.iter().collect::<Vec<_>>(),
    });
    documents(&tool.to_string()).pop().unwrap()
}

/// Ringfence's answer; nothing when the tool does not exist for the caller.
fn decide(world: &World, rules: Option<&Rules>) -> Option<Decision> {
    decide_under(&Config::parse(&file(world)).unwrap(), world, rules)
}

fn decide_under(config: &Config, world: &World, rules: Option<&Rules>) -> Option<Decision> {
    let tool = document(&world.tool, world.amount.as_ref());
    let caller = Caller::named(world.caller);
    config.access.check(&caller, &tool).ok()?;
    let raw = world
        .amount
        .as_ref()
        .map(|amount| json!({ "amount": amount }));
    let arguments = params::check(&tool.params, &raw.unwrap_or(json!({}))).unwrap();
    let baseline = config.effective_baseline().unwrap();
    let rights = config.access.rights(&caller, tool.category.as_deref());
    let policy = rights.narrow(resolve(&baseline, &tool.sandbox_overrides).unwrap());
    Some(rules.unwrap_or(&config.rules).decide(&RuleInput {
        caller: &caller,
        rights: &rights,
        origin: Origin::Mcp,
        document: &tool,
        arguments: &arguments,
        policy: &policy,
        risk: &rate(&baseline, &tool.sandbox_overrides, &policy),
        body: model::govern::rules::BodyFacts::sandboxed(),
        at_ms: 0,
    }))
}

// ---- the model ----------------------------------------------------------

fn like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(name),
        Some((head, tail)) => {
            let (name, head, tail) = (
                name.to_lowercase(),
                head.to_lowercase(),
                tail.to_lowercase(),
            );
            name.len() >= head.len() + tail.len()
                && name.starts_with(&head)
                && name.ends_with(&tail)
        }
    }
}

/// Whether the tool exists for the caller: denied, allowed, level, no.
fn exists(world: &World) -> bool {
    let tool = world.tool.name;
    if !world.caller.eq_ignore_ascii_case("ann") {
        return true;
    }
    if world.deny.is_some_and(|pattern| like(pattern, tool)) {
        return false;
    }
    let allowed = world.allow.map(|pattern| like(pattern, tool));
    let Some(level) = world.level else {
        return allowed.unwrap_or(true);
    };
    allowed == Some(true)
        || match (level, world.tool.category) {
            ("custom", _) => false,
            ("elevated", _) | (_, "FILE") => true,
            ("restricted" | "standard", "WEB") => true,
            (_, _) => false,
        }
}

/// What is left of the network under the caller's level.
fn network(world: &World) -> &'static str {
    let level = if world.caller.eq_ignore_ascii_case("ann") {
        world.level
    } else {
        None
    };
    match (level, world.tool.network) {
        (Some("sandboxed" | "custom"), _) => "blocked",
        (Some("restricted"), "strict" | "open") => "nothing",
        (_, network) => network,
    }
}

fn actions(world: &World) -> Vec<&'static str> {
    let mut actions = vec!["code:read"];
    let out = !["blocked", "nothing"].contains(&network(world));
    if world.tool.write {
        actions.push("code:write");
    }
    if out {
        actions.push("external_data:request");
    }
    if world.tool.category == "MESSAGING" {
        actions.push(if out {
            "comms:external"
        } else {
            "comms:internal"
        });
    }
    actions.extend(world.tool.declared);
    actions
}

fn badge(world: &World) -> usize {
    let network = match network(world) {
        "blocked" | "nothing" => 0,
        "open" => 4,
        _ => 3,
    };
    network.max(if world.tool.write { 4 } else { 0 })
}

/// Yes, no, or unknown.
fn holds(when: When, amount: Option<&Value>) -> Option<bool> {
    match (when, amount) {
        (When::Given, amount) => Some(amount.is_some()),
        (When::GivenOver(_), None) => Some(false),
        (When::Over(_), None) => None,
        (When::Over(n) | When::GivenOver(n), Some(amount)) => {
            amount.as_f64().map(|amount| amount > n as f64)
        }
    }
}

fn about(rule: &SpecRule, world: &World) -> bool {
    let crew = world.caller.eq_ignore_ascii_case("ann");
    let caller = |word: &&str| (*word == "@crew" && crew) || like(word, world.caller);
    let does = actions(world);
    let strange = does.contains(&"depoly:prod");
    let actions = match (rule.actions, rule.effect) {
        (None, _) => true,
        (Some(action), "allow") => does.iter().all(|one| *one == action),
        (Some(action), _) => strange || does.contains(&action),
    };
    (rule.tools.is_empty() || rule.tools.iter().any(|word| like(word, world.tool.name)))
        && (rule.callers.is_empty() || rule.callers.iter().any(caller))
        && (rule.categories.is_empty() || rule.categories.contains(&world.tool.category))
        && rule.risk_from.is_none_or(|from| badge(world) >= from)
        && actions
}

fn preset(autonomy: &str, actions: &[&str]) -> Effect {
    let workspace = ["code:read", "code:write"];
    let home = ["comms:internal"];
    let worst = ["deploy:production", "depoly:prod"];
    let all = |lists: &[&[&str]]| {
        actions
            .iter()
            .all(|one| lists.iter().any(|list| list.contains(one)))
    };
    match autonomy {
        "full" => Effect::Allow,
        "semi" if all(&[&workspace, &home]) => Effect::Allow,
        "supervised" if all(&[&workspace]) => Effect::Allow,
        "locked" if actions.iter().any(|one| worst.contains(one)) => Effect::Deny,
        _ => Effect::Ask,
    }
}

fn reference(world: &World) -> Option<Effect> {
    if !exists(world) {
        return None;
    }
    let verdict = |rule: &SpecRule| {
        if !about(rule, world) {
            return None;
        }
        match rule.when.map(|when| holds(when, world.amount.as_ref())) {
            Some(None) => Some(Effect::Deny),
            Some(Some(false)) => None,
            None | Some(Some(true)) => Effect::ALL
                .iter()
                .copied()
                .find(|effect| effect.word() == rule.effect),
        }
    };
    let by_rule = world.rules.iter().filter_map(verdict).max();
    let does = actions(world);
    let ann = world.caller.eq_ignore_ascii_case("ann");
    let by_level = match world.level.filter(|_| ann) {
        Some("restricted") if does.contains(&"deploy:production") => Effect::Ask,
        _ => Effect::Allow,
    };
    let by_document = match world.tool.mode {
        "REQUIRED" => Effect::Ask,
        "AUTO_APPROVE" if badge(world) >= 3 => Effect::Ask,
        _ => Effect::Allow,
    };
    let always = if world.tool.mode == "REQUIRED" {
        Effect::Ask
    } else {
        Effect::Allow
    };
    let autonomy = world.autonomy.filter(|_| ann).unwrap_or("full");
    let said = by_rule.unwrap_or(by_level.max(by_document));
    Some(said.max(always).max(preset(autonomy, &does)))
}

// ---- worlds -------------------------------------------------------------

fn some<T: Clone + std::fmt::Debug + 'static>(
    of: &[T],
) -> impl Strategy<Value = Option<T>> + use<T> {
    prop::option::of(prop::sample::select(of.to_vec()))
}

fn few(of: &[&'static str]) -> impl Strategy<Value = Vec<&'static str>> + use<> {
    prop::collection::vec(prop::sample::select(of.to_vec()), 0..2)
}

fn whens() -> impl Strategy<Value = When> {
    prop_oneof![
        (0_i64..4).prop_map(When::Over),
        Just(When::Given),
        (0_i64..4).prop_map(When::GivenOver),
    ]
}

fn rules() -> impl Strategy<Value = SpecRule> {
    let acts = [
        "code:read",
        "code:write",
        "external_data:request",
        "deploy:production",
    ];
    (
        few(&["web.*", "*.get", "WEB.get", "*", "pay"]),
        few(&["ann", "b*", "@crew", "*"]),
        few(&["FILE", "WEB", "MESSAGING"]),
        some(&acts),
        some(&[0_usize, 3, 4, 5]),
        prop::option::of(whens()),
        prop::sample::select(vec!["allow", "ask", "deny"]),
    )
        .prop_map(
            |(tools, callers, categories, actions, risk_from, when, effect)| SpecRule {
                tools,
                callers,
                categories,
                actions,
                risk_from,
                when,
                effect,
            },
        )
}

/// With [`amounts`], 21 worlds for each file: more than 20 000 in one run.
fn callers() -> [&'static str; 3] {
    ["ann", "Ann", "bob"]
}

fn amounts() -> [Option<Value>; 7] {
    [
        None,
        Some(json!(0)),
        Some(json!(2)),
        Some(json!(2.5)),
        Some(json!(1e30)),
        Some(json!(u64::MAX)),
        Some(json!("3")),
    ]
}

fn worlds() -> impl Strategy<Value = World> {
    let tool = (
        prop::sample::select(vec!["web.get", "pay", "file.get"]),
        prop::sample::select(vec!["FILE", "WEB", "MESSAGING"]),
        prop::sample::select(vec!["blocked", "allowlist", "strict", "open"]),
        any::<bool>(),
        some(&["deploy:production", "depoly:prod", "code:read"]),
        prop::sample::select(vec!["DISABLED", "REQUIRED", "AUTO_APPROVE"]),
    )
        .prop_map(
            |(name, category, network, write, declared, mode)| SpecTool {
                name,
                category,
                network,
                write,
                declared,
                mode,
            },
        );
    (
        prop::collection::vec(rules(), 0..5),
        some(&["sandboxed", "restricted", "standard", "elevated", "custom"]),
        some(&["full", "semi", "supervised", "locked"]),
        some(&["web.*", "*"]),
        some(&["pay", "file.*"]),
        prop::sample::select(callers().to_vec()),
        tool,
        prop::sample::select(amounts().to_vec()),
    )
        .prop_map(
            |(rules, level, autonomy, allow, deny, caller, tool, amount)| World {
                rules,
                level,
                autonomy,
                allow,
                deny,
                caller,
                tool,
                amount,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn ringfence_and_its_model_agree(settings in worlds()) {
        let config = Config::parse(&file(&settings)).unwrap();
        // Reading a file takes longest: each is asked about everybody with anything.
        for (caller, amount) in callers().into_iter().flat_map(|caller| {
            amounts().into_iter().map(move |amount| (caller, amount))
        }) {
            let world = World { caller, amount, ..settings.clone() };
            let decided = decide_under(&config, &world, None);
            let effect = decided.as_ref().map(|one| one.effect);
            prop_assert_eq!(effect, reference(&world), "{:?} {:?}", world, decided);
            if let Some(decided) = decided {
                let denied = decided.effect == Effect::Deny;
                prop_assert_eq!((decided.code.is_some(), decided.remedy.is_some()), (denied, denied));
            }
        }
        // Same world, same verdict, word for word.
        prop_assert_eq!(decide(&settings, None), decide_under(&config, &settings, None));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_order_of_rules_means_nothing(world in worlds(), turn in 0_usize..5) {
        let config = Config::parse(&file(&world)).unwrap();
        let mut turned = config.rules.clone();
        turned.list.reverse();
        let turn = turn.min(turned.list.len());
        turned.list.rotate_left(turn);
        prop_assert_eq!(decide(&world, Some(&turned)), decide(&world, None));
    }

    #[test]
    fn adding_a_deny_or_taking_an_allow_never_grants(world in worlds(), index in 0_usize..5, rule in rules()) {
        let before = decide(&world, None).map(|one| one.effect);
        let mut added = world.clone();
        added.rules.push(SpecRule { effect: "deny", ..rule });
        prop_assert!(decide(&added, None).map(|one| one.effect) >= before);
        let mut all = world.clone();
        all.rules.push(SpecRule {
            tools: vec![], callers: vec![], categories: vec![], actions: None, risk_from: None,
            when: None, effect: "deny",
        });
        prop_assert!(decide(&all, None).is_none_or(|one| one.effect == Effect::Deny));
        // A rule that cannot be decided denies, whatever it says; without it there
        // is less denied. Any other rule that allows can only be missed.
        let decided = decide(&world, None);
        let undecided = decided.is_some_and(|one| one.code == Some(Reason::RuleUnevaluable));
        let mut taken = world.clone();
        if taken.rules.get(index).is_some_and(|rule| rule.effect == "allow") && !undecided {
            taken.rules.remove(index);
            prop_assert!(decide(&taken, None).map(|one| one.effect) >= before);
        }
    }

    /// A layer only takes: a level, a preset or a denied list, put upon settings
    /// without one, never lets more through. A rule that asks may turn a caller's
    /// no into nothing else.
    #[test]
    fn a_layer_never_weakens_a_decision(world in worlds()) {
        let strength = |world: &World| decide(world, None).map_or(3, |one| one.effect as usize);
        let bare = World { level: None, autonomy: None, deny: None, ..world.clone() };
        let layers = [
            World { autonomy: world.autonomy, ..bare.clone() },
            World { deny: world.deny, ..bare.clone() },
        ];
        for layered in layers {
            prop_assert!(strength(&layered) >= strength(&bare), "{:?}", layered);
        }
        // A level also brings categories, so it is held against `elevated`, which
        // has them all; what it takes may lower the badge, so rules that look at
        // badges and actions are left out.
        let plain = |rule: &SpecRule| SpecRule { risk_from: None, actions: None, ..rule.clone() };
        let rules: Vec<_> = world.rules.iter().map(plain).collect();
        let tool = SpecTool { mode: "DISABLED", ..world.tool.clone() };
        let under = |level| World { level: Some(level), rules: rules.clone(), tool: tool.clone(), ..bare.clone() };
        for level in ["sandboxed", "restricted", "standard", "custom"] {
            prop_assert!(strength(&under(level)) >= strength(&under("elevated")), "{level}");
        }
    }
}
