//! The words of questions, what answers bind to, and how far they reach.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::document::{self, Document, NetworkMode};
use crate::network::host_pattern::HostPattern;
use crate::policy::{self, Baseline};
use crate::record::mask::Masker;
use crate::text;

fn document(template: &str) -> Document {
    let text = json!({
        "name": "send", "code": "", "codeType": "Javascript",
        "humanInTheLoop": {"mode": "REQUIRED", "promptTemplate": template},
    });
    let item = document::parse(&text.to_string()).items.pop();
    let item = item.and_then(|item| item.document);
    item.expect("a sound document")
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("arguments are an object, not {other}"),
    }
}

fn asked(template: &str, arguments: Value) -> String {
    let masker = Masker::new(["s3cret-value"]).expect("a masker");
    prompt(&document(template), &object(arguments), &masker).into_inner()
}

#[track_caller]
fn check(template: &str, arguments: Value, expected: &str) {
    assert_eq!(asked(template, arguments), expected);
}

#[test]
fn templates_are_filled_once() {
    check("", json!({"a": 1}), r#"Run `send` with {"a":1}?"#);
    check("   ", json!({}), "Run `send` with {}?");
    check(
        "{toolName}: {args.to.0}",
        json!({"to": ["ann", "bob"]}),
        r#"send: "ann""#,
    );
    check(
        "{args.a.b}",
        json!({"a": {"b": {"c": null}}}),
        r#"{"c":null}"#,
    );
    check("{args.gone.deep}", json!({}), "nothing");
    check(
        "{args.to.9} {args.to.x}",
        json!({"to": ["ann"]}),
        "nothing nothing",
    );
    check("{args.}", json!({"": 1}), "1");
    check("{args.a.}", json!({"a": 1}), "nothing");
    // Spelled otherwise it is not a place, and stays to be seen.
    check("{unknown} {", json!({}), "{unknown} {");
    check("{} {ARGS} { args }", json!({}), "{} {ARGS} { args }");
    check("{{toolName}} }{", json!({}), "{send} }{");
    check("{{args.a}", json!({"a": 1}), "{1");
    check("{args.{toolName}}", json!({}), "{args.send}");
    // What an argument says is not a template.
    check(
        "{args.a}",
        json!({"a": "{args.b}", "b": "x"}),
        r#""{args.b}""#,
    );
    check(
        "{args.a}{args.b}}",
        json!({"a": "{tool", "b": "Name}"}),
        r#""{tool""Name}"}"#,
    );
}

#[test]
fn arguments_cannot_hide() {
    check(
        "{args.a}",
        json!({"a": "pay\u{202e}evil\n\u{1b}[2Jyes"}),
        "\"pay\\u{202e}evil\\n\\u001b[2Jyes\"",
    );
    // Nothing wide, nothing blank, no line of its own.
    check(
        "{args.a}",
        json!({"a": "a\u{200b}b\u{2060}c\u{a0}d\u{3000}e\u{2800}f\u{2028}g\u{e0041}"}),
        "\"a\\u{200b}b\\u{2060}c\\u{a0}d\\u{3000}e\\u{2800}f\\u{2028}g\\u{e0041}\"",
    );
    // A written escape is not taken for a hidden character.
    check("{args.a}", json!({"a": "\\u{202e}"}), r#""\\u{202e}""#);
    // The names of arguments are data as well.
    check(
        "{args}",
        json!({"\u{202e}a\nb": 1}),
        "{\"\\u{202e}a\\nb\":1}",
    );
    // The author's own words are shown the same way.
    check("really?\nyes", json!({}), "really?\\nyes");
}

/// A run of spaces pushes the rest of a question out of sight.
#[test]
fn runs_of_spaces_are_shown_as_a_number() {
    let wide = format!("a{}b   c", " ".repeat(70));
    check("{args.a}", json!({"a": wide}), "\"a\\u{20 ×70}b   c\"");
    check("a  {toolName}  b", json!({}), "a  send  b");
    check("sure?    {args.a}", json!({"a": 1}), "sure?\\u{20 ×4}1");
    check(
        "{args.a}  {args.b}",
        json!({"a": "x  ", "b": 1}),
        "\"x  \"  1",
    );
}

#[test]
fn letters_that_look_like_others_are_told_apart() {
    check(
        "{args.a}",
        json!({"a": "p\u{430}ypal.com"}),
        "\"p\\u{430}ypal.com\"",
    );
    check(
        "{args.a}",
        json!({"a": "\u{ff41}dmin"}),
        "\"\\u{ff41}dmin\"",
    );
    check(
        "{args.a}",
        json!({"a": "\u{1d5ba}dmin"}),
        "\"\\u{1d5ba}dmin\"",
    );
    // Words of one alphabet stay readable, whatever it is.
    for plain in [
        "naïve café",
        "日本語 text",
        "привет, мир",
        "αβγ and more",
        "größe",
    ] {
        check("{args.a}", json!({"a": plain}), &format!("\"{plain}\""));
    }
}

/// A cut in the middle of a secret would leave its halves.
#[test]
fn secrets_are_masked_before_anything_is_cut() {
    check("{args.a}", json!({"a": "s3cret-value"}), "\"***\"");
    let masker = Masker::new(["s3cret-value"]).expect("a masker");
    for before in 0..40 {
        for template in ["{args.a}", "{args}", ""] {
            let text = format!(
                "{}s3cret-value{}",
                "x".repeat(180 + before),
                "y".repeat(400)
            );
            let shown = asked(template, json!({"a": text}));
            assert!(!shown.contains("s3c"), "{before}: {shown}");
            assert!(!shown.contains("alue"), "{before}: {shown}");
        }
        let text = format!(
            "{}s3cret-value{}",
            "x".repeat(180 + before),
            "y".repeat(400)
        );
        let line = arguments(&object(json!({"a": text})), &masker, 400).into_inner();
        assert!(!line.contains("s3c") && !line.contains("alue"), "{line}");
    }
}

#[test]
fn long_arguments_lose_their_middle_and_say_so() {
    let long = format!("{}; rm -rf everything", "a".repeat(5_000));
    let shown = asked("{args.cmd}", json!({"cmd": long}));
    assert!(shown.contains("…4634 more…"), "{shown}");
    assert!(shown.ends_with("rm -rf everything\""), "{shown}");
    let shown = asked(&"{args.cmd} ".repeat(300), json!({"cmd": long}));
    assert!(shown.chars().count() < 2_100, "{}", shown.len());
}

#[test]
fn scopes_narrow_as_the_risk_rises() {
    let narrower = Level::ALL.windows(2);
    for pair in narrower {
        let (low, high) = (scopes(pair[0]), scopes(pair[1]));
        assert!(high.iter().all(|scope| low.contains(scope)));
    }
    for level in Level::ALL {
        assert_eq!(scopes(level).first(), Some(&ApprovalScope::Once));
        assert!(!scopes_of_call(level, false).contains(&ApprovalScope::Session));
        assert_eq!(scopes_of_call(level, true), scopes(level));
    }
    assert_eq!(scopes(Level::L5), [ApprovalScope::Once]);
    assert_eq!(
        scopes(Level::L4),
        [ApprovalScope::Once, ApprovalScope::SameArguments]
    );
    assert!(!scopes(Level::L3).contains(&ApprovalScope::UntilChanged));
    assert_eq!(scopes(Level::L0), ApprovalScope::ALL);
    for pair in ApprovalScope::ALL.windows(2) {
        assert!(pair[0].lasts_seconds(60) <= pair[1].lasts_seconds(60));
    }
}

#[test]
fn open_questions_and_valid_approvals_expire() {
    for state in ApprovalState::ALL {
        assert_eq!(state.at(5, 4), *state);
        let expires = matches!(state, ApprovalState::Pending | ApprovalState::Approved);
        let expected = if expires {
            ApprovalState::Expired
        } else {
            *state
        };
        assert_eq!(state.at(5, 5), expected);
    }
}

fn a_policy() -> EffectivePolicy {
    let baseline = Baseline::closed();
    policy::resolve(&baseline, &document("").sandbox_overrides).expect("a policy")
}

/// A policy for each part of it, with that part changed.
fn other_policies() -> Vec<EffectivePolicy> {
    let changes: [fn(&mut EffectivePolicy); 10] = [
        |policy| policy.network = NetworkMode::Open,
        |policy| policy.hosts.extend(HostPattern::parse("a.example")),
        |policy| policy.file_read = true,
        |policy| policy.file_write = true,
        |policy| policy.fs_base_path = Some("/tmp".to_owned()),
        |policy| policy.destructive = true,
        |policy| policy.statements_max += 1,
        |policy| policy.timeout_ms += 1,
        |policy| policy.allow_classes = Arc::new(["a.B".to_owned()].into()),
        |policy| policy.deny_classes = Arc::new(["a.B".to_owned()].into()),
    ];
    let changed = changes.map(|change| {
        let mut policy = a_policy();
        change(&mut policy);
        policy
    });
    changed.to_vec()
}

/// Each part changed alone changes what an approval binds to; the arguments only
/// that of the call.
#[test]
fn everything_that_was_looked_at_is_bound() {
    let (policy, others) = (a_policy(), other_policies());
    let (safety, other_safety) = (json!({"version": "1.0"}), json!({"version": "1.1"}));
    let arguments = [
        object(json!({"a": 1, "b": 2})),
        object(json!({"b": 2, "a": 1})),
        object(json!({"a": 1, "b": "2"})),
    ];
    // A name that says it is the owner is not.
    let (ann, owner, not_owner) = (
        Caller::named("ann"),
        Caller::owner(),
        Caller::named("owner"),
    );
    let bound = BindingInput {
        document: "d1",
        safety: &safety,
        policy: &policy,
        level: Level::L3,
        files: "workspace",
        caller: &ann,
        arguments: &arguments[0],
    };
    let of = |bound: BindingInput<'_>| bound.binding().expect("a digest");
    let first = of(bound);
    assert_ne!(first.call, first.tool);
    assert_eq!(
        of(BindingInput {
            arguments: &arguments[1],
            ..bound
        }),
        first
    );
    let other = of(BindingInput {
        arguments: &arguments[2],
        ..bound
    });
    assert_eq!(other.tool, first.tool);
    assert_ne!(other.call, first.call);

    let mut changed = vec![
        BindingInput {
            document: "d2",
            ..bound
        },
        BindingInput {
            safety: &other_safety,
            ..bound
        },
        BindingInput {
            level: Level::L4,
            ..bound
        },
        BindingInput {
            files: "elsewhere",
            ..bound
        },
        BindingInput {
            caller: &owner,
            ..bound
        },
        BindingInput {
            caller: &not_owner,
            ..bound
        },
    ];
    changed.extend(others.iter().map(|policy| BindingInput { policy, ..bound }));
    assert_all_differ(first, changed.into_iter().map(of));
}

#[track_caller]
fn assert_all_differ(first: Binding, others: impl Iterator<Item = Binding>) {
    let mut seen = vec![first];
    for binding in others {
        for earlier in &seen {
            assert_ne!(binding.call, earlier.call);
            assert_ne!(binding.tool, earlier.tool);
        }
        seen.push(binding);
    }
}

proptest! {
    /// Whatever an argument holds, a question is one line without a character
    /// a person cannot see, is bounded, and what is shown is shown the same again.
    #[test]
    fn questions_are_one_visible_line(text in any::<String>(), template in "[ -~{}]{0,40}") {
        let shown_text = shown(&text);
        prop_assert!(!shown_text.chars().any(text::is_hidden));
        prop_assert_eq!(text::one_line(&shown_text), shown_text.clone());
        let line = asked(&format!("{template}{{args}}{{args.a}}"), json!({"a": text}));
        prop_assert!(!line.chars().any(text::is_hidden));
        prop_assert!(!line.chars().any(|c| c.is_whitespace() && c != ' '));
        prop_assert!(line.chars().count() <= limits::APPROVAL_PROMPT_CHARS_MAX + 40);
    }

    /// Plain text is not changed by being shown.
    #[test]
    fn plain_text_stays(text in "([!-~]{1,8} {0,3}){0,10}") {
        prop_assert_eq!(shown(&text), text);
    }

    /// Two calls with different arguments never share what an answer counts for.
    #[test]
    fn other_arguments_other_binding(a in any::<String>(), b in any::<String>()) {
        let policy = a_policy();
        let caller = Caller::named("ann");
        let binding = |text: &str| {
            let arguments = object(json!({"a": text}));
            let bound = BindingInput {
                document: "d", safety: &Value::Null, policy: &policy, level: Level::L0,
                files: "", caller: &caller, arguments: &arguments,
            };
            bound.binding().expect("a digest").call
        };
        prop_assert_eq!(binding(&a) == binding(&b), a == b);
    }
}

/// What a person reads stands for exactly the arguments: they can be had back from it.
#[test]
fn shown_arguments_are_read_back() {
    let masker = Masker::none();
    for value in [
        json!({}),
        json!({"a": 1, "b": [null, true, "x"]}),
        json!({"t": "a\u{202e}b\u{200b}c\u{1b}[2J\u{7f}\n\t\"q\" \\ \u{1d159}"}),
        json!({"literal": "\\u{202e} \\\\u{41}", "mixed": "pаypal αβγ"}),
        json!({"spaces": format!("a{}b", " ".repeat(500)), "\u{feff}k": "\u{10ffff}"}),
    ] {
        let arguments_of = value.as_object().expect("an object");
        let line = arguments(arguments_of, &masker, usize::MAX).into_inner();
        assert_eq!(read_arguments(&line).as_ref(), Some(&value), "{line}");
    }
    for odd in [
        "",
        "{",
        "\\",
        "\\u{",
        "\\u{zz}",
        "\\u{110000}",
        "\\u{20 ×99999999999}",
        "{\"a\": … }",
    ] {
        assert_eq!(read_arguments(odd), None, "{odd}");
    }
}

/// Indentation is read, everything that deceives is not.
#[test]
fn a_line_of_a_patch_keeps_its_indentation_only() {
    for (line, wanted) in [
        ("+        return x", "+        return x"),
        (" plain", " plain"),
        ("+\tmake", "+⇥   make"),
        ("-  \tmake", "-  ⇥ make"),
        ("+a\tb", "+a⇥b"),
        ("+a⇥b", "+a\\u{21e5}b"),
        ("+a    b", "+a\\u{20 ×4}b"),
        ("+    p\u{430}y\u{202e}", "+    p\\u{430}y\\u{202e}"),
        ("+a\r", "+a\\r"),
        ("+    \u{a0}x", "+    \\u{a0}x"),
        ("@@ -1,1 +1,1 @@", "@@ -1,1 +1,1 @@"),
        ("", ""),
    ] {
        assert_eq!(shown_patch_line(line), wanted, "{line:?}");
    }
    let far = format!("+{}evil", " ".repeat(9_000));
    assert!(!shown_patch_line(&far).contains(&" ".repeat(61)));
}

/// What a question about changes names is found again in its one line, whatever it holds.
#[test]
fn changes_are_read_from_the_line_of_arguments() {
    let mut given = Map::new();
    given.insert("changes".to_owned(), json!("0f"));
    given.insert("folder".to_owned(), json!("/srv"));
    let diff = vec!["+    deep\t\u{202e}".to_owned(), "-\"x\"".to_owned()];
    ShownChanges::add(&mut given, vec!["created: a".to_owned()], vec![], diff);
    let line = arguments(&given, &Masker::none(), usize::MAX).into_inner();
    let changes = ShownChanges::read("applyChanges", &line).unwrap();
    assert_eq!(changes.arguments, r#"{"changes":"0f","folder":"/srv"}"#);
    assert_eq!(changes.files, ["created: a"]);
    assert_eq!(changes.diff, ["+    deep⇥\\u{202e}", "-\"x\""]);
    let parts = changes.parts();
    assert_eq!(
        parts.iter().map(|part| part.0).collect::<Vec<_>>(),
        ["files", "diff"]
    );
    // Of other arguments nothing is taken.
    for line in [
        "{}",
        "no json",
        r#"{"files":[],"diff":[]}"#,
        r#"{"files":[1],"leftOut":[],"diff":[]}"#,
    ] {
        assert_eq!(ShownChanges::read("applyChanges", line), None, "{line}");
    }
    // Nor of another tool, whose caller writes what it likes.
    assert_eq!(ShownChanges::read("notify", &line), None);
}
