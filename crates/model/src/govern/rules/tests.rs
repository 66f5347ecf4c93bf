//! Deciding, by example.

use serde_json::Value;

use super::*;
use crate::document::params;
use crate::document::parse;
use crate::policy::{Baseline, resolve};

#[track_caller]
fn check(mode: &str, level: Level, expected: Effect) {
    let text = format!(
        r#"{{"name":"a","code":"","codeType":"Javascript","humanInTheLoop":{{"mode":"{mode}"}}}}"#
    );
    let item = parse(&text).items.pop().expect("an item");
    let document = item.document.expect("a document");
    let risk = Risk {
        level,
        signals: Vec::new(),
    };
    let asked = RuleInput {
        caller: &Caller::owner(),
        rights: &CallerRights::open(),
        origin: Origin::Mcp,
        document: &document,
        arguments: &params::check(&[], &Value::Null).expect("no arguments"),
        policy: &resolve(&Baseline::closed(), &document.sandbox_overrides).expect("a policy"),
        risk: &risk,
        body: BodyFacts::sandboxed(),
        at_ms: 0,
    };
    assert_eq!(Rules::standard().decide(&asked).effect, expected);
}

#[test]
fn the_document_asks_or_leaves_it_to_the_rules() {
    for level in Level::ALL {
        check("DISABLED", level, Effect::Allow);
        check("REQUIRED", level, Effect::Ask);
    }
    check("AUTO_APPROVE", Level::L0, Effect::Allow);
    check("AUTO_APPROVE", Level::L2, Effect::Allow);
    check("AUTO_APPROVE", Level::L3, Effect::Ask);
    check("AUTO_APPROVE", Level::L5, Effect::Ask);
}

#[test]
fn a_denial_says_what_would_help() {
    let rules = |when: &str| {
        let file = format!("[[rule]]\nid = 'r'\neffect = 'deny'\nreason = 'no'\n{when}");
        let config = crate::config::Config::parse(&file).expect("a config");
        config.rules.list[0].decision().told()
    };
    assert_eq!(
        rules(""),
        "no (rule `r`); it would take: a change of the deny rule `r` by the operator; do not try again"
    );
    assert_eq!(
        rules("when = 'args.n > 5'"),
        "no (rule `r`); it would take: arguments for which `args.n > 5` does not hold; do not try again with the same arguments"
    );
    // Whom else a rule is about is not the caller's affair.
    assert_eq!(
        rules("when = \"args.n > 5 && caller.name != 'boss'\""),
        "no (rule `r`); it would take: other values of `n`; do not try again with the same arguments"
    );
    assert_eq!(
        rules("when = \"args.exists(k, k == 'n') && caller.name != 'boss'\""),
        "no (rule `r`); it would take: other arguments; do not try again with the same arguments"
    );
}

/// However a condition comes by the arguments, with others the call may pass.
#[test]
fn a_condition_on_arguments_may_be_tried_with_others() {
    let retry = |when: &str| {
        let file = format!("[[rule]]\nid = 'r'\neffect = 'deny'\nwhen = \"{when}\"\n");
        let config = crate::config::Config::parse(&file).expect("a config");
        let rule = &config.rules.list[0];
        let undecided = rule.undecided(&Unevaluable::Undefined("x".to_owned()));
        let costly = rule.undecided(&Unevaluable::TooCostly);
        [rule.decision().retry, undecided.retry, costly.retry]
    };
    for when in [
        "args.n > 5",
        "args['n'] > 5",
        "has(args.n)",
        "args.exists(k, k == 'n')",
        "args.all(k, args[k] != 'x')",
        "'n' in args",
        "size(args) > 3",
        "jsonSize(args) > 3",
        "args == args",
        "caller.name in ['a'] && args.exists(k, k == 'n')",
    ] {
        assert_eq!(retry(when), [Retry::Changed; 3], "{when}");
    }
    for when in [
        "caller.name == 'a'",
        "time.hour > 3",
        "tool.tags.exists(t, t == 'x')",
    ] {
        assert_eq!(retry(when), [Retry::Never; 3], "{when}");
    }
}

mod lints {
    use super::super::lint::{AwayTool, LintKind, LintTools, lint};
    use super::*;
    use crate::config::Config;

    fn tools() -> Vec<Document> {
        let text = r#"[
            {"name":"pay.send","category":"MONEY","code":"","codeType":"Javascript",
             "params":[{"name":"amount","type":"NUMBER","required":false}]},
            {"name":"web.get","category":"WEB","code":"","codeType":"Javascript"}
        ]"#;
        let items = parse(text).items.into_iter();
        items
            .map(|item| item.document.expect("a document"))
            .collect()
    }

    #[track_caller]
    fn check(file: &str, expected: &[(&str, LintKind)]) {
        let config = Config::parse(file).expect("a config");
        let tools = tools();
        let tools: Vec<_> = tools.iter().collect();
        let takes = |tool: &Document, name: &str| tool.params.iter().any(|it| it.name == name);
        let tools = LintTools {
            there: &tools,
            away: &[AwayTool {
                name: "bank__transfer",
                category: "MCP",
            }],
        };
        let found = lint(&config.rules, tools, takes);
        let seen: Vec<_> = found
            .iter()
            .map(|one| (one.rule.as_str(), one.kind))
            .collect();
        assert_eq!(seen, expected, "{found:?}");
    }

    fn rule(id: &str, effect: &str, rest: &str) -> String {
        format!("[[rule]]\nid = '{id}'\neffect = '{effect}'\n{rest}\n")
    }

    #[test]
    fn rules_that_never_match() {
        check(
            &rule("a", "deny", "tools = ['mail.*']"),
            &[("a", LintKind::NeverMatches)],
        );
        check(
            &rule("a", "deny", "when = '1 > 2'"),
            &[("a", LintKind::NeverMatches)],
        );
        let both = "tools = ['pay.*']\ncategories = ['web']";
        check(&rule("a", "deny", both), &[("a", LintKind::NeverMatches)]);
        check(
            &rule("a", "deny", "tools = ['pay.*']\nwhen = 'args.amount > 5'"),
            &[],
        );
    }

    #[test]
    fn counting_arguments_is_linted() {
        check(
            &rule("a", "ask", "when = 'size(args) > 2000'"),
            &[("a", LintKind::Counts)],
        );
        check(&rule("a", "ask", "when = 'jsonSize(args) > 2000'"), &[]);
    }

    #[test]
    fn rules_are_told_in_words() {
        let rest = "tools = ['pay.*']\ncategories = ['money']\ncallers = ['ann', '@crew']\n\
                    actions = ['budget:spend']\nrisk = 'L3+'\nwhen = 'args.amount > 5'\n\
                    reason = 'too much'\n[groups.crew]\nmembers = ['bob']";
        let config = Config::parse(&rule("a", "deny", rest)).expect("a config");
        let said = &config.rules.list[0];
        assert_eq!(
            said.words(),
            "denies calls of `pay.*` in `money` by `ann`, `@crew`, that do any of \
             `budget:spend`, rated L3 to L5, when `args.amount > 5`: too much"
        );
        let crew = ["crew".to_owned()];
        assert!(said.concerns("Ann", &[]) && said.concerns("bob", &crew));
        assert!(!said.concerns("bob", &[]));
        let config = Config::parse(&rule("a", "ask", "risk = 'L4'")).expect("a config");
        let said = &config.rules.list[0];
        assert_eq!(
            said.words(),
            "asks about calls of every tool by every caller, rated L4"
        );
        assert!(said.concerns("anybody", &[]));
    }

    #[test]
    fn rules_that_can_only_deny() {
        let slip = "tools = ['pay.*']\nwhen = 'args.amuont > 5'";
        check(&rule("a", "allow", slip), &[("a", LintKind::Undecidable)]);
        check(&rule("a", "ask", "when = 'args.amount > 5'"), &[]);
    }

    /// Attack: a server that changes a tool, which is held from then on, just when its owner
    /// wants to change the settings.
    #[test]
    fn rules_about_tools_that_are_away() {
        for tools in ["['bank__transfer']", "['bank__*']"] {
            let held = format!("tools = {tools}");
            check(&rule("a", "deny", &held), &[("a", LintKind::Away)]);
            let asks = format!("{held}\nwhen = 'args.to > 5'");
            check(&rule("a", "deny", &asks), &[("a", LintKind::Away)]);
        }
        let mixed = "tools = ['pay.send', 'bank__transfer']\nwhen = 'args.to > 5'";
        check(&rule("a", "deny", mixed), &[]);
        let by_category = "categories = ['mcp']";
        check(&rule("a", "deny", by_category), &[("a", LintKind::Away)]);
        // What is certain is still said.
        let never = "tools = ['bank__transfer']\nwhen = '1 > 2'";
        check(&rule("a", "deny", never), &[("a", LintKind::NeverMatches)]);
        let other = "tools = ['bank__transfer']\ncategories = ['web']";
        check(&rule("a", "deny", other), &[("a", LintKind::NeverMatches)]);
        check(
            &rule("a", "deny", "tools = ['bank__tranfer']"),
            &[("a", LintKind::NeverMatches)],
        );
    }

    #[test]
    fn rules_that_others_overrule() {
        let pair = |one: &str, two: &str| format!("{one}{two}");
        let deny = rule("d", "deny", "tools = ['pay.*']");
        let tight = rule("a", "allow", "tools = ['pay.send']\nrisk = 'L0'");
        check(&pair(&deny, &tight), &[("a", LintKind::Shadowed)]);
        check(&pair(&tight, &deny), &[("a", LintKind::Shadowed)]);
        let same = rule("a", "allow", "tools = ['pay.*']");
        check(&pair(&deny, &same), &[("a", LintKind::Contradicts)]);
        let again = rule("e", "deny", "tools = ['PAY.*']");
        check(&pair(&deny, &again), &[("e", LintKind::Shadowed)]);
        // An allow beside a deny with a condition, or for other callers, is sense.
        let some = rule("d", "deny", "tools = ['pay.*']\nwhen = 'args.amount > 5'");
        check(&pair(&some, &same), &[]);
        let ann = rule("d", "deny", "tools = ['pay.*']\ncallers = ['ann']");
        check(&pair(&ann, &same), &[]);
        let wide = rule("d", "deny", "actions = ['code']");
        check(
            &pair(&wide, &rule("a", "ask", "actions = ['code:read']")),
            &[("a", LintKind::Shadowed)],
        );
        check(&pair(&wide, &rule("a", "ask", "")), &[]);
    }
}
