//! What one call of a native tool does, in the words rules are made with. Derived from its
//! arguments, never from its name; where an argument decides, the unknown counts as the
//! worst.

use model::policy::EffectivePolicy;
use model::sql::{SqlClass, SqlDialect};
use serde_json::{Map, Value};

use super::ToolboxTool;

/// A command may do whatever a process in the folder can: no reader of command lines knows
/// better.
const ANY_PROGRAM: [&str; 3] = ["code:write", "code:delete", "test:run"];

pub(super) fn words(
    tool: ToolboxTool,
    arguments: &Map<String, Value>,
    policy: &EffectivePolicy,
) -> Vec<&'static str> {
    match tool {
        ToolboxTool::Shell | ToolboxTool::JobStart | ToolboxTool::RunCode => {
            let mut words = ANY_PROGRAM.to_vec();
            words.extend(policy.reaches_out().then_some("external_data:request"));
            words
        }
        ToolboxTool::JobStatus
        | ToolboxTool::JobOutput
        | ToolboxTool::JobCancel
        | ToolboxTool::JobList => vec!["code:read"],
        ToolboxTool::GitStatus
        | ToolboxTool::GitLog
        | ToolboxTool::GitDiff
        | ToolboxTool::GitShow => vec!["vcs:read"],
        ToolboxTool::GitBranch => branch(arguments),
        ToolboxTool::GitAdd => vec!["vcs:commit"],
        ToolboxTool::GitCommit => vec!["vcs:commit"],
        ToolboxTool::GitClone => vec!["vcs:read", "code:create", "external_data:request"],
        ToolboxTool::GitFetch => vec!["vcs:read", "external_data:request"],
        ToolboxTool::GitPush => push(arguments),
        // The changes were made by any program.
        ToolboxTool::ApplyChanges => vec!["code:write", "code:create", "code:delete"],
        ToolboxTool::SqlSchema => vec!["db:query"],
        ToolboxTool::SqlQuery => vec![class(arguments).action()],
        // A session that writes: a query may call a function that does.
        ToolboxTool::SqlExecute => vec![class(arguments).max(SqlClass::Mutate).action()],
        ToolboxTool::HttpRequest => request(arguments),
        ToolboxTool::ReadPage => vec!["external_data:request"],
    }
}

/// What a statement is read as; nothing, or both a file and a connection, is the worst.
fn class(arguments: &Map<String, Value>) -> SqlClass {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let dialect = match (text("file"), text("connection")) {
        (Some(_), None) => SqlDialect::Sqlite,
        (None, Some(_)) => SqlDialect::Postgres,
        (Some(_), Some(_)) | (None, None) => return SqlClass::Admin,
    };
    let statement = text("statement").unwrap_or_default();
    model::sql::read(statement, dialect).class()
}

/// Whatever is no question may change what is there, or tell others.
fn request(arguments: &Map<String, Value>) -> Vec<&'static str> {
    let mut words = vec!["external_data:request"];
    words.extend((!only_asks(arguments)).then_some("comms:external"));
    words
}

/// Whether a request by HTTP only asks for what is there.
pub(crate) fn only_asks(arguments: &Map<String, Value>) -> bool {
    let method = match arguments.get("method") {
        None => "GET",
        Some(method) => method.as_str().unwrap_or_default(),
    };
    let is_safe = matches!(method, "GET" | "HEAD");
    // Attack: servers that take the method from a header, such as `X-HTTP-Method-Override`, and
    // statements in a body that such a request does not need.
    let names_method = match arguments.get("headers") {
        None | Some(Value::Null) => false,
        Some(Value::Object(headers)) => headers
            .keys()
            .any(|name| name.to_ascii_lowercase().contains("method")),
        Some(_) => true,
    };
    let has_body = ["body", "json"]
        .iter()
        .any(|name| arguments.get(*name).is_some_and(|value| !value.is_null()));
    is_safe && !names_method && !has_body
}

/// Only a list reads. A branch that is deleted or moved may be the only way to its commits,
/// and one that is checked out replaces files.
fn branch(arguments: &Map<String, Value>) -> Vec<&'static str> {
    let is_forced = arguments.get("force").is_some_and(|force| force != false);
    let action = match arguments.get("action") {
        None => "list",
        Some(action) => action.as_str().unwrap_or_default(),
    };
    match (action, is_forced) {
        ("list", _) => vec!["vcs:read"],
        ("create" | "delete", false) => vec!["vcs:branch"],
        ("switch", false) => vec!["vcs:branch", "code:write"],
        _ => vec!["vcs:branch", "code:write", "code:delete"],
    }
}

/// A forced push removes commits from where others find them.
fn push(arguments: &Map<String, Value>) -> Vec<&'static str> {
    let mut words = vec!["vcs:push", "external_data:request"];
    let is_forced = arguments.get("force").is_some_and(|force| force != false);
    words.extend(is_forced.then_some("code:delete"));
    words
}

#[cfg(test)]
mod tests {
    use model::document::Overrides;
    use model::policy::Baseline;
    use serde_json::json;

    use super::*;

    fn of(tool: ToolboxTool, arguments: Value) -> Vec<&'static str> {
        let policy =
            model::policy::resolve(&Baseline::closed(), &Overrides::default()).expect("a policy");
        let Value::Object(arguments) = arguments else {
            panic!("an object");
        };
        words(tool, &arguments, &policy)
    }

    #[test]
    fn a_branch_call_does_what_its_arguments_say() {
        let branch = |arguments| of(ToolboxTool::GitBranch, arguments);
        assert_eq!(branch(json!({})), ["vcs:read"]);
        assert_eq!(branch(json!({"action": "list"})), ["vcs:read"]);
        assert_eq!(
            branch(json!({"action": "create", "name": "x"})),
            ["vcs:branch"]
        );
        assert_eq!(
            branch(json!({"action": "delete", "name": "x"})),
            ["vcs:branch"]
        );
        assert_eq!(
            branch(json!({"action": "delete", "name": "x", "force": false})),
            ["vcs:branch"]
        );
        assert_eq!(
            branch(json!({"action": "switch"})),
            ["vcs:branch", "code:write"]
        );
        // Forced, or not understood: the worst.
        for worst in [
            json!({"action": "delete", "force": true}),
            json!({"action": "create", "force": "yes"}),
            json!({"action": "burn"}),
            json!({"action": 1}),
        ] {
            assert!(branch(worst.clone()).contains(&"code:delete"), "{worst}");
        }
    }

    #[test]
    fn a_statement_does_what_it_says_and_the_unread_the_worst() {
        let query = |statement: &str| {
            of(
                ToolboxTool::SqlQuery,
                json!({"file": "a", "statement": statement}),
            )
        };
        let execute = |statement: &str| {
            of(
                ToolboxTool::SqlExecute,
                json!({"connection": "a", "statement": statement}),
            )
        };
        assert_eq!(query("SELECT 1"), ["db:query"]);
        assert_eq!(query("DELETE FROM a"), ["db:mutate"]);
        assert_eq!(query("DROP TABLE a"), ["db:admin"]);
        assert_eq!(query("gibberish"), ["db:admin"]);
        assert_eq!(execute("SELECT 1"), ["db:mutate"]);
        assert_eq!(execute("INSERT INTO a VALUES (1)"), ["db:mutate"]);
        assert_eq!(execute("gibberish"), ["db:admin"]);
        assert_eq!(
            of(ToolboxTool::SqlQuery, json!({"statement": "SELECT 1"})),
            ["db:admin"]
        );
        assert_eq!(
            of(ToolboxTool::HttpRequest, json!({"method": "HEAD"})),
            ["external_data:request"]
        );
        assert!(of(ToolboxTool::HttpRequest, json!({"method": "PUT"})).contains(&"comms:external"));
        assert!(of(ToolboxTool::HttpRequest, json!({"method": 1})).contains(&"comms:external"));
        for hidden in [
            json!({"headers": {"X-HTTP-Method-Override": "DELETE"}}),
            json!({"headers": {"x-method": "delete"}, "method": "HEAD"}),
            json!({"headers": ["x-http-method: delete"]}),
            json!({"body": "mutation { drop }"}),
            json!({"json": {"delete": true}, "method": "GET"}),
        ] {
            assert!(of(ToolboxTool::HttpRequest, hidden).contains(&"comms:external"));
        }
        assert_eq!(
            of(
                ToolboxTool::HttpRequest,
                json!({"headers": {"accept": "text/html"}, "body": null})
            ),
            ["external_data:request"]
        );
    }

    #[test]
    fn a_forced_push_deletes() {
        assert!(!of(ToolboxTool::GitPush, json!({})).contains(&"code:delete"));
        assert!(of(ToolboxTool::GitPush, json!({"force": true})).contains(&"code:delete"));
        assert!(of(ToolboxTool::GitPush, json!({"force": 1})).contains(&"code:delete"));
    }
}
