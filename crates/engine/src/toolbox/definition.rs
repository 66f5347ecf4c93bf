//! The definition of each native tool, and the document that follows from it: params from
//! the schema, the policy it asks for from what the tool reaches and what `[toolbox]` says.

use std::collections::BTreeSet;

use model::config::ToolboxConfig;
use serde_json::{Map, Value, json};

use super::{FolderChanges, ToolboxTool};

/// What stands in the file of a tool.
#[derive(Clone, Debug)]
pub(super) struct ToolboxDefinition {
    /// What the document has word for word.
    pub(super) fields: Map<String, Value>,
    pub(super) input_schema: Value,
    pub(super) output_schema: Option<Value>,
}

/// What the sandbox would say if it were asked to run one.
const CODE: &str =
    "throw new Error(\"this tool runs a program in the jail, not code in the sandbox\");";

fn text(tool: ToolboxTool) -> &'static str {
    match tool {
        ToolboxTool::Shell => include_str!("document/shell.json"),
        ToolboxTool::JobStart => include_str!("document/jobStart.json"),
        ToolboxTool::JobStatus => include_str!("document/jobStatus.json"),
        ToolboxTool::JobOutput => include_str!("document/jobOutput.json"),
        ToolboxTool::JobCancel => include_str!("document/jobCancel.json"),
        ToolboxTool::JobList => include_str!("document/jobList.json"),
        ToolboxTool::RunCode => include_str!("document/runCode.json"),
        ToolboxTool::GitStatus => include_str!("document/gitStatus.json"),
        ToolboxTool::GitLog => include_str!("document/gitLog.json"),
        ToolboxTool::GitDiff => include_str!("document/gitDiff.json"),
        ToolboxTool::GitShow => include_str!("document/gitShow.json"),
        ToolboxTool::GitBranch => include_str!("document/gitBranch.json"),
        ToolboxTool::GitAdd => include_str!("document/gitAdd.json"),
        ToolboxTool::GitCommit => include_str!("document/gitCommit.json"),
        ToolboxTool::GitClone => include_str!("document/gitClone.json"),
        ToolboxTool::GitFetch => include_str!("document/gitFetch.json"),
        ToolboxTool::GitPush => include_str!("document/gitPush.json"),
        ToolboxTool::ApplyChanges => include_str!("document/applyChanges.json"),
        ToolboxTool::SqlQuery => include_str!("document/sqlQuery.json"),
        ToolboxTool::SqlSchema => include_str!("document/sqlSchema.json"),
        ToolboxTool::SqlExecute => include_str!("document/sqlExecute.json"),
        ToolboxTool::HttpRequest => include_str!("document/httpRequest.json"),
        ToolboxTool::ReadPage => include_str!("document/readPage.json"),
    }
}

/// The definition of a tool. A file that is broken gives one that takes no argument; a test
/// reads them all.
pub(super) fn read(tool: ToolboxTool) -> ToolboxDefinition {
    let mut fields: Map<String, Value> = serde_json::from_str(text(tool)).unwrap_or_default();
    let input_schema = fields.remove("inputSchema");
    ToolboxDefinition {
        output_schema: fields
            .remove("outputSchema")
            .map(|given| or_failure(&given)),
        input_schema: input_schema
            .unwrap_or_else(|| json!({"type": "object", "additionalProperties": false})),
        fields,
    }
}

/// A call that fails has the shape of every failure, and clients hold that against the
/// schema too, so it takes both.
fn or_failure(given: &Value) -> Value {
    let mut schema = given.clone();
    let failure = json!({
        "code": {"type": "string"},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
    });
    let required = schema.get("required").cloned().unwrap_or_else(|| json!([]));
    if let Some(members) = schema.as_object_mut() {
        members.remove("required");
        members.insert(
            "anyOf".to_owned(),
            json!([{"required": required}, {"required": ["code", "message"]}]),
        );
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        if let (Some(properties), Some(failure)) = (properties.as_object_mut(), failure.as_object())
        {
            properties.extend(failure.clone());
        }
    }
    schema
}

/// The document of a tool under the operator's settings, as text.
pub(crate) fn document_text(tool: ToolboxTool, config: &ToolboxConfig) -> String {
    let ToolboxDefinition {
        mut fields,
        input_schema,
        ..
    } = read(tool);
    fields.insert("params".to_owned(), params(&input_schema));
    fields.insert("code".to_owned(), CODE.into());
    fields.insert("codeType".to_owned(), "Javascript".into());
    fields.insert("sandboxOverrides".to_owned(), overrides(tool, config));
    fields.insert("draft".to_owned(), false.into());
    Value::Object(fields).to_string()
}

/// What a tool asks for. Nothing is inherited: the baseline of other tools does not widen it.
fn overrides(tool: ToolboxTool, config: &ToolboxConfig) -> Value {
    let reach = tool.reach();
    let writes = match reach.write {
        FolderChanges::None => false,
        // The operator's folder is only read then: `applyChanges` is the tool that writes
        // it.
        FolderChanges::Aside => config.folder.is_none(),
        FolderChanges::Direct => true,
    };
    let mut overrides = json!({"fileRead": reach.read, "fileWrite": writes});
    let own = config.hosts.iter().filter(|_| reach.network);
    let connected = config.connected.iter();
    let connected = connected.filter(|(kind, _)| Some(*kind) == tool.connections());
    let hosts = own.chain(connected.map(|(_, host)| host));
    let hosts: BTreeSet<_> = hosts.map(ToString::to_string).collect();
    let hosts: Vec<_> = hosts.into_iter().collect();
    let reaches = !hosts.is_empty();
    let mode = if reaches { "allowlist" } else { "blocked" };
    if let Some(members) = overrides.as_object_mut() {
        members.insert("networkMode".to_owned(), mode.into());
        if reaches {
            members.insert("hostsAllow".to_owned(), hosts.into());
        }
        if let Some(folder) = config.folder.as_ref().filter(|_| reach.read) {
            members.insert("fsBasePath".to_owned(), folder.clone().into());
        }
    }
    overrides
}

/// The params of a schema: each property with its type, the first example as its test value.
fn params(schema: &Value) -> Value {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let params = properties.unwrap_or(&empty).iter().map(|(name, property)| {
        let kind = property.get("type").and_then(Value::as_str);
        let description = property.get("description").and_then(Value::as_str);
        let example = property.get("examples").and_then(|all| all.get(0));
        let example = example.map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
        json!({
            "name": name,
            "description": description.unwrap_or_default(),
            "required": is_required,
            "type": kind.unwrap_or("string").to_uppercase(),
            "testValue": example.unwrap_or_default(),
        })
    });
    params.collect()
}
