//! The examples for programs that embed the engine do what they say.

use model::caller::{Caller, Origin};
use model::govern::tool_policy::ToolPolicy;
use serde_json::json;

use crate::world::{Home, World, document, error, worker};

#[path = "../../examples/embed.rs"]
#[expect(
    dead_code,
    reason = "its `main` starts workers from its own program, which a test is not"
)]
mod example;

#[tokio::test]
async fn the_example_publishes_calls_and_reads_the_audit() {
    let home = Home::new();
    let told = example::run(&home.path, worker()).await.unwrap();
    let expected = "\
published: true
result: {\"greeting\":\"Hello, Ada!\",\"length\":11}
audit: agent called hello: done
audit: owner called hello: done
audit is whole: true
";
    assert_eq!(told, expected);
}

#[path = "../../examples/policy.rs"]
#[expect(
    dead_code,
    reason = "its `main` starts workers from its own program, which a test is not"
)]
mod policy;

#[tokio::test]
async fn the_policy_example_denies_by_name_and_by_argument() {
    let home = Home::new();
    let told = policy::run(&home.path, worker()).await.unwrap();
    let expected = "\
result: {\"greeting\":\"Hello, Ada!\",\"length\":11}
rule.denied: Mallory is not greeted (rule `policy:0002`); it would take: other arguments; do not try again with the same arguments
rule.denied: it is not on the list of allowed tools (rule `policy:0001`); it would take: a change of the deny rule `policy:0001` by the operator; do not try again
audit: countWords was decided by policy:0001
audit: hello was decided by policy:0002
";
    assert_eq!(told, expected);
}

/// The policy of a program is in force beside the operator's rules, before and after an
/// edit, in a candidate that is only tried, and for the owner.
#[tokio::test]
async fn a_policy_holds_under_all_settings() {
    let home = Home::new();
    home.file("ringfence.toml", "");
    let deny = || ToolPolicy::deny_when(|call| call.args.contains_key("n"), "no n");
    let world = World::with(home, |settings| settings.policy = deny());
    let params = json!([{"name": "n", "type": "INTEGER", "required": false}]);
    world
        .published(&document("tool", "return 1", json!({"params": params})))
        .await;
    let allow = "[[rule]]\nid = \"all\"\neffect = \"allow\"\n";
    for text in [
        String::new(),
        allow.to_owned(),
        format!("[rules]\nshadow = 'next.toml'\n{allow}"),
    ] {
        world.home.file(
            "next.toml",
            "[[rule]]\nid = \"other\"\neffect = \"allow\"\n",
        );
        world.home.file("ringfence.toml", &text);
        let outcome = world.call("tool", json!({"n": 1})).await;
        assert_eq!(error(&outcome).0, "rule.denied", "{text}");
        assert!(
            error(&outcome).1.starts_with("no n (rule `policy:0001`)"),
            "{outcome:?}"
        );
        assert_eq!(
            world.entry(&outcome).closing.unwrap().shadow,
            None,
            "{text}"
        );
        let own = world.own_call("tool", json!({"n": 1})).await;
        assert_eq!(error(&own).0, "rule.denied", "{text}");
        assert!(
            world.call("tool", json!({})).await.error.is_none(),
            "{text}"
        );
    }
    // A list shows what may be called with other arguments.
    let listed = world
        .engine
        .callable_tools(&Caller::named("ann"), Origin::Mcp);
    assert!(
        listed
            .iter()
            .any(|tool| tool.usable.document.name == "tool")
    );
}

/// More rules than there may be are an error, not a policy that is left out.
#[test]
fn a_policy_that_cannot_be_taken_opens_no_engine() {
    let home = Home::new();
    let many = (0..=model::limits::RULES_MAX).map(|_| ToolPolicy::deny_list(["x"]));
    let many = many.fold(ToolPolicy::ALLOW_ALL, ToolPolicy::and);
    let mut settings = crate::world::settings(&home.path, &std::sync::Arc::default());
    settings.policy = many;
    let fault = engine::Engine::open(settings).unwrap_err();
    assert_eq!(fault.to_string(), "there are more than 1000 rules");
}
