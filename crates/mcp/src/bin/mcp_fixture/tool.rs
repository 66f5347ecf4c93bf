//! The list of tools, and which file answers each.

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::ask;
use crate::content;
use crate::news::Change;
use crate::server::{Fixture, typed};
use crate::{round, task};

/// Tools without arguments.
const PLAIN: &[&str] = &[
    // The suite calls whatever comes first without arguments and wants a result.
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_error_handling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "failing_job",
    "protocol_error_job",
    "multi_input",
    "test_tool_with_task",
];

/// Always in the same order.
pub(crate) fn list(has_extra: bool) -> Value {
    let mut tools: Vec<_> = PLAIN.iter().map(|name| tool(name, json!({}))).collect();
    let word = json!({"type": "string"});
    tools.push(tool("test_sampling", json!({"prompt": word})));
    tools.push(tool("test_elicitation", json!({"message": word})));
    tools.push(tool("greet", json!({"name": word})));
    tools.push(tool("confirm_delete", json!({"filename": word})));
    let seconds = json!({"type": "integer", "minimum": 0});
    tools.push(tool(
        "slow_compute",
        json!({"seconds": seconds, "label": word}),
    ));
    let mirrored = json!({"type": "string", "x-mcp-header": "Value"});
    tools.push(tool("test_custom_header", json!({"value": mirrored})));
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "A tool whose schema uses much of the dialect.",
        "inputSchema": rich_schema(),
    }));
    if has_extra {
        tools.push(tool("test_extra_tool", json!({})));
    }
    Value::Array(tools)
}

fn tool(name: &str, properties: Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    json!({"name": name, "description": "A tool of the suite.", "inputSchema": schema})
}

fn rich_schema() -> Value {
    let street_and_city = json!({"street": {"type": "string"}, "city": {"type": "string"}});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": street_and_city,
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {
            "properties": {"contactMethod": {"const": "phone"}},
            "required": ["contactMethod"],
        },
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = |name: &str| {
        let value = request
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.get(name));
        let word = value.and_then(Value::as_str);
        word.unwrap_or_default().to_owned()
    };
    let result = match request.name.as_ref() {
        "test_simple_text" => content::text("This is a simple text response for testing."),
        "test_image_content" => content::picture(),
        "test_audio_content" => content::sound(),
        "test_embedded_resource" => content::embedded(),
        "test_multiple_content_types" => content::mixed(),
        "test_tool_with_logging" | "test_logging_tool" => content::logging(fixture, &context).await,
        "test_tool_with_progress" => content::progress(&context).await,
        "test_error_handling" => {
            content::failure("This tool intentionally returns an error for testing")
        }
        "test_sampling" => ask::sampling(&context, &given("prompt")).await,
        "test_elicitation" => ask::name_and_address(&context, &given("message")).await,
        "test_elicitation_sep1034_defaults" => ask::defaults(&context).await,
        "test_elicitation_sep1330_enums" => ask::choices(&context).await,
        "test_reconnection" => content::text("The answer came."),
        "test_missing_capability" => match ask::declares(&context, "sampling") {
            true => content::text("The capability is there."),
            false => {
                let sampling = typed(json!({"sampling": {}}))?;
                Err(ErrorData::missing_required_client_capability(sampling))
            }
        },
        "test_trigger_tool_change" => {
            fixture.shared.news.change(Change::Tools).await;
            content::text("The list of tools has changed.")
        }
        "test_trigger_prompt_change" => {
            fixture.shared.news.change(Change::Prompts).await;
            content::text("The list of prompts has changed.")
        }
        "test_custom_header" => content::text(&given("value")),
        "json_schema_2020_12_tool" => content::text("The schema was kept."),
        "test_extra_tool" => content::text("This tool comes and goes."),
        "greet" => content::text(&format!("Hello, {}!", given("name"))),
        "slow_compute"
        | "failing_job"
        | "protocol_error_job"
        | "confirm_delete"
        | "multi_input"
        | "test_tool_with_task" => {
            return task::call(fixture, request, &context).await;
        }
        name if PLAIN.contains(&name) => {
            return round::call(&fixture.shared.states, request, &context);
        }
        name => {
            let sentence = format!("there is no tool `{name}`");
            return Err(ErrorData::invalid_params(sentence, None));
        }
    };
    Ok(result?.into())
}
