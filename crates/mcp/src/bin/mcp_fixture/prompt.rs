//! Prompts, one of which asks back, and what completes their arguments.

use rmcp::RoleServer;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::content::PICTURE;
use crate::round;
use crate::server::typed;

pub(crate) fn list(has_extra: bool) -> Value {
    let argument = |name: &str| json!({"name": name, "description": "A word.", "required": true});
    let mut prompts = vec![
        prompt("test_simple_prompt", &[]),
        prompt(
            "test_prompt_with_arguments",
            &[argument("arg1"), argument("arg2")],
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            &[argument("resourceUri")],
        ),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ];
    if has_extra {
        prompts.push(prompt("test_extra_prompt", &[]));
    }
    Value::Array(prompts)
}

fn prompt(name: &str, arguments: &[Value]) -> Value {
    json!({"name": name, "description": "A prompt of the suite.", "arguments": arguments})
}

pub(crate) fn get(
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| {
        let missing =
            || ErrorData::invalid_params(format!("the argument `{name}` is missing"), None);
        arguments
            .get(name)
            .and_then(Value::as_str)
            .ok_or_else(missing)
    };
    let content = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![text(&format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            vec![
                json!({"type": "resource", "resource": resource}),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PICTURE, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        "test_extra_prompt" => vec![text("This prompt comes and goes.")],
        "test_input_required_result_prompt" => {
            let responses = request.input_responses.unwrap_or_default();
            let Some(words) = round::accepted(&responses, "user_context", "context") else {
                let question =
                    round::elicitation("What context should the prompt use?", "context", "string");
                let requests = json!({"user_context": question});
                return Ok(round::ask(context, requests, None)?.into());
            };
            vec![text(&format!("Use this context: {words}"))]
        }
        name => {
            return Err(ErrorData::invalid_params(
                format!("there is no prompt `{name}`"),
                None,
            ));
        }
    };
    let messages: Vec<_> = content
        .into_iter()
        .map(|content| json!({"role": "user", "content": content}))
        .collect();
    let result: GetPromptResult = typed(json!({"messages": messages, "resultType": "complete"}))?;
    Ok(result.into())
}

pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let words = ["paris", "park", "party", "test", "testing"];
    let start = request.argument.value.as_str();
    let values: Vec<_> = words
        .iter()
        .filter(|word| word.starts_with(start))
        .collect();
    typed(json!({
        "completion": {"total": values.len(), "values": values, "hasMore": false},
        "resultType": "complete",
    }))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
