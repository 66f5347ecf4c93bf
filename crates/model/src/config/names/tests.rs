//! Every list of the settings, with a name that is there, a slip, and what is to come.

use super::*;

fn known() -> KnownNames {
    let names = [
        (
            NameKind::Tool,
            &["deleteFile", "readTextFile", "web.fetch"][..],
        ),
        (NameKind::Caller, &["owner", "researcher", "bot-1"]),
        (NameKind::Category, &["FILE", "WEB"]),
        (NameKind::Tag, &["disk", "http"]),
        (NameKind::Preset, &["starter", "files"]),
    ];
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    KnownNames {
        names: names.map(|(kind, names)| (kind, owned(names))).into(),
    }
}

/// What is said about a file, with line and column.
#[track_caller]
fn said(text: &str) -> Vec<(usize, usize, String)> {
    let config = Config::parse(text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}"));
    let strange = config.unknown_names(text, &known()).into_iter();
    strange
        .map(|(_, fault)| {
            let fix = fault.fix.unwrap_or_default();
            (
                fault.line,
                fault.column,
                format!("{}; {fix}", fault.message),
            )
        })
        .collect()
}

/// Each list: how it is written, with `{}` where the name stands, and whose names.
const LISTS: &[(&str, NameKind)] = &[
    ("[access]\nallow = ['{}']", NameKind::Tool),
    ("[access]\ndeny = ['{}']", NameKind::Tool),
    ("[access]\ncategories = ['{}']", NameKind::Category),
    ("[callers.ann]\nallow = ['{}']", NameKind::Tool),
    ("[callers.ann]\ndeny = ['{}']", NameKind::Tool),
    ("[callers.ann]\ncategories = ['{}']", NameKind::Category),
    ("[groups.devs]\nmembers = ['{}']", NameKind::Caller),
    ("[groups.devs]\nallow = ['{}']", NameKind::Tool),
    ("[groups.devs]\ndeny = ['{}']", NameKind::Tool),
    ("[groups.devs]\ncategories = ['{}']", NameKind::Category),
    (
        "[[rule]]\ntools = ['{}']\nid = 'a'\neffect = 'deny'",
        NameKind::Tool,
    ),
    (
        "[[rule]]\ncallers = ['{}']\nid = 'a'\neffect = 'deny'",
        NameKind::Caller,
    ),
    (
        "[[rule]]\ncategories = ['{}']\nid = 'a'\neffect = 'ask'",
        NameKind::Category,
    ),
    (
        "[[limit]]\ntools = ['{}']\nid = 'a'\nconcurrent = 1",
        NameKind::Tool,
    ),
    (
        "[[limit]]\ncallers = ['{}']\nid = 'a'\nconcurrent = 1",
        NameKind::Caller,
    ),
    ("[costs]\n'{}' = 3", NameKind::Tool),
    ("[codecall]\ninvoke = ['{}']", NameKind::Tool),
    ("[codecall]\nblocked = ['{}']", NameKind::Tool),
    ("[exposure]\ninclude.names = ['{}']", NameKind::Tool),
    ("[exposure]\ninclude.tags = ['{}']", NameKind::Tag),
    (
        "[exposure]\ninclude.categories = ['{}']",
        NameKind::Category,
    ),
    ("[exposure]\nexclude.names = ['{}']", NameKind::Tool),
    ("[exposure]\nexclude.tags = ['{}']", NameKind::Tag),
    (
        "[exposure]\nexclude.categories = ['{}']",
        NameKind::Category,
    ),
    ("[exposure]\npreset = '{}'", NameKind::Preset),
    ("[trust]\ncallers = ['{}']", NameKind::Caller),
    (
        "[trust.initial_levels]\n'{}' = 'sandboxed'",
        NameKind::Category,
    ),
    (
        "[trust.categories]\n'{}'.sandboxed_to_restricted.tasks_completed = 3",
        NameKind::Category,
    ),
];

#[test]
fn unknown_names_on_any_list_are_reported_with_their_place() {
    for (list, kind) in LISTS {
        let (good, slip, list_name) = match kind {
            NameKind::Tool => ("deleteFile", "delteFile", "tools"),
            NameKind::Caller => ("researcher", "resercher", "callers"),
            NameKind::Category => ("FILE", "FLIE", "categories"),
            NameKind::Tag => ("disk", "dsik", "tags"),
            NameKind::Preset => ("starter", "startr", ""),
        };
        let with = |name: &str| list.replace("{}", name);
        assert_eq!(said(&with(good)), [], "{list}");
        assert_eq!(said(&with(&good.to_lowercase())), [], "{list}");
        let at = with(slip).lines().nth(1).and_then(|line| line.find('\''));
        let word = kind.word();
        let message = format!("there is no {word} `{slip}`; did you mean `{good}`?");
        let later = format!(" a {word} that is to come is named in `expected.{list_name}`");
        let message = match kind {
            NameKind::Preset => message,
            _ => message + &later,
        };
        let column = at.map_or(0, |at| at + 1);
        assert_eq!(said(&with(slip)), [(2, column, message)], "{list}");
        if *kind != NameKind::Preset {
            let expected = format!("{}\n[expected]\n{list_name} = ['{slip}']\n", with(slip));
            assert_eq!(said(&expected), [], "{expected}");
        }
    }
}

#[test]
fn patterns_fit_or_are_told() {
    assert_eq!(
        said("[access]\ndeny = ['delete*', '*', '*file', 'WEB.*']"),
        []
    );
    assert_eq!(
        said("[access]\ndeny = ['delete*', 'delte*']"),
        [(
            2,
            20,
            "no tool fits `delte*`; did you mean `delete*`? a tool that is to come is named in `expected.tools`"
                .to_owned()
        )]
    );
    assert_eq!(
        said("[access]\ndeny = ['payment.*']"),
        [(
            2,
            9,
            "no tool fits `payment.*`; a tool that is to come is named in `expected.tools`"
                .to_owned()
        )]
    );
    // Where no pattern is taken a star would fit nothing.
    let [(_, _, message)] = &said("[exposure]\nexclude.names = ['delete*']")[..] else {
        panic!("one");
    };
    assert!(
        message.starts_with("there is no tool `delete*`, and patterns are not accepted here"),
        "{message}"
    );
}

#[test]
fn expected_names_may_be_patterns() {
    let text =
        "[access]\ndeny = ['payment.*', 'payment.send', 'pay']\n[expected]\ntools = ['payment.*']";
    let [(line, _, message)] = &said(text)[..] else {
        panic!("one");
    };
    assert_eq!(*line, 2);
    assert!(message.starts_with("there is no tool `pay`"), "{message}");
    let faults = Config::parse("[expected]\ntools = ['a', '*']\n").expect_err("refused");
    assert_eq!((faults[0].line, faults[0].column), (2, 15));
    assert_eq!(
        faults[0].message,
        "an expected name without a letter would match everything"
    );
    let many = vec!["'a'"; 257].join(", ");
    assert!(Config::parse(&format!("[expected]\ntags = [{many}]")).is_err());
}

#[test]
fn callers_are_declared_by_their_section_or_an_issuer() {
    let rule = "[[rule]]\nid = 'a'\neffect = 'deny'\ncallers = ['Ann', '@devs']\n[groups.devs]\n";
    assert_eq!(said(rule).len(), 1);
    assert_eq!(said(&format!("{rule}[callers.ann]\n")), []);
    assert_eq!(
        said(&format!("{rule}[callers.ann]\nlevel = 'standard'\n")),
        []
    );
    let subject = "[[limit]]\nid = 'a'\nconcurrent = 1\ncallers = ['oauth:kim', 'OAuth:*']\n";
    assert_eq!(said(subject).len(), 2);
    let issuer = "[oauth]\nissuer = 'https://login.example.com'\n";
    assert_eq!(said(&format!("{subject}{issuer}")), []);
}

#[test]
fn default_block_patterns_need_no_tool() {
    assert_eq!(
        said("[codecall]\nblocked = ['system:*', 'internal:*', '__*']"),
        []
    );
    assert_eq!(said("[codecall]\ninvoke = ['system:*']").len(), 1);
}

#[test]
fn a_preset_that_is_none_names_those_there_are() {
    assert_eq!(said("[exposure]\npreset = 'none'"), []);
    assert_eq!(
        said("[exposure]\npreset = 'colours'"),
        [(
            2,
            10,
            "there is no preset `colours`; known: starter, files".to_owned()
        )]
    );
}
