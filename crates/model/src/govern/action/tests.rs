//! Action types, by example.

use super::*;
use crate::document::parse;
use crate::policy::{Baseline, resolve};

fn words(actions: impl IntoIterator<Item = Action>) -> Vec<String> {
    actions
        .into_iter()
        .map(|action| action.word().to_owned())
        .collect()
}

#[track_caller]
fn does(extra: &str, expected: &[&str]) {
    let text = format!(r#"{{"name":"a","code":"","codeType":"Javascript"{extra}}}"#);
    let item = parse(&text).items.pop().expect("an item");
    let document = item.document.expect("a document");
    let policy = resolve(&Baseline::closed(), &document.sandbox_overrides).expect("a policy");
    assert_eq!(words(Actions::default().of(&document, &policy)), expected);
}

#[test]
fn the_taxonomy_is_pinned() {
    let unique: BTreeSet<_> = TAXONOMY.iter().map(|(word, _)| *word).collect();
    assert_eq!(unique.len(), 41);
    let expanded = |word| Actions::default().expand(word, ListUse::Grant).expect(word);
    assert_eq!(expanded("code").len(), 5);
    assert_eq!(expanded("deploy:").len(), 2);
    assert_eq!(words(expanded("Database_Write")), ["db:admin", "db:mutate"]);
    assert_eq!(words(expanded("CODE:read")), ["code:read"]);
    for (alias, many) in ALIASES {
        assert_eq!(expanded(alias).len(), many.len(), "{alias}");
    }
}

#[test]
fn unknown_words_name_the_nearest() {
    let fault = Actions::default()
        .expand("code:raed", ListUse::Grant)
        .expect_err("a slip");
    assert_eq!(fault.message, "there is no action `code:raed`");
    assert_eq!(fault.nearest.as_deref(), Some("code:read"));
    let fault = Actions::default()
        .expand("deploymnt", ListUse::Grant)
        .expect_err("a slip");
    assert_eq!(fault.nearest.as_deref(), Some("deployment"));
}

#[test]
fn registering_grants_nothing_by_accident() {
    let mut known = Actions::default();
    known.register("code:sign", ActionRisk::High).expect("new");
    known
        .register("payments:transfer", ActionRisk::Critical)
        .expect("new");
    let grant = known.expand("code", ListUse::Grant).expect("a category");
    let restrict = known.expand("code", ListUse::Restrict).expect("a category");
    assert_eq!((grant.len(), restrict.len()), (5, 6));
    assert!(known.expand("payments", ListUse::Grant).is_err());
    assert!(known.expand("payments", ListUse::Restrict).is_ok());
    for wrong in ["code:read", "code", "a:b:c", "A:b", ":b", "a:"] {
        assert!(known.register(wrong, ActionRisk::Low).is_err(), "{wrong}");
    }
    let stranger = Action(Cow::Borrowed("x:y"));
    assert_eq!(known.risk(&stranger), ActionRisk::Critical);
    assert!(!known.knows(&stranger));
}

#[test]
fn actions_follow_from_the_policy() {
    does("", &["code:read"]);
    does(
        r#","sandboxOverrides":{"fileWrite":true,"networkMode":"strict"}"#,
        &["code:read", "code:write", "external_data:request"],
    );
    does(
        r#","sandboxOverrides":{"networkMode":"allowlist"}"#,
        &["code:read"],
    );
    does(
        r#","sandboxOverrides":{"networkMode":"open","destructive":true}"#,
        &[
            "code:delete",
            "code:read",
            "db:mutate",
            "external_data:request",
        ],
    );
    does(
        r#","category":"messaging","sandboxOverrides":{"networkMode":"strict"}"#,
        &["code:read", "comms:external", "external_data:request"],
    );
}

#[test]
fn an_author_declares_more_and_never_less() {
    does(
        r#","x-ringfence-actions":["deploy:production"]"#,
        &["code:read", "deploy:production"],
    );
    does(
        r#","sandboxOverrides":{"fileWrite":true},"x-ringfence-actions":["code:read"]"#,
        &["code:read", "code:write"],
    );
    // An unknown action stays, and is rated as the worst.
    does(
        r#","x-ringfence-actions":["depoly:production"]"#,
        &["code:read", "depoly:production"],
    );
    does(r#","x-ringfence-actions":"code:read""#, &["?", "code:read"]);
    does(r#","x-ringfence-actions":[7]"#, &["?", "code:read"]);
}
