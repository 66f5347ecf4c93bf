//! Questions of the era without sessions: a call ends with what it needs to know, and the
//! client calls again with the answers and the state it was given.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, InputRequiredResult, InputResponses,
    RequestStateCodec, SealOptions,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::ask::{declares, said};
use crate::content::{failure, is_modern, text};
use crate::server::typed;

/// How long a client may take for its answer.
const LIFETIME: Duration = Duration::from_secs(60);

/// Seals what a client carries for us, as the door seals its own questions: with a key
/// nobody else has, for one tool and for a while.
pub(crate) struct States(RequestStateCodec);

impl States {
    /// With a key that goes with the process.
    pub(crate) fn fresh() -> std::io::Result<States> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(std::io::Error::other)?;
        let codec = RequestStateCodec::try_new(key).map_err(std::io::Error::other)?;
        Ok(States(codec))
    }

    fn hand_out(&self, tool: &str, meaning: &Value) -> Result<String, ErrorData> {
        let options = SealOptions::new()
            .associated_data(tool.as_bytes())
            .ttl(LIFETIME);
        let sealed = self.0.seal_json_with(meaning, &options);
        sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn take_back(&self, tool: &str, sealed: &str) -> Result<Value, ErrorData> {
        let refused = |_| ErrorData::invalid_params("the request state is not one of ours", None);
        self.0
            .open_json_with(sealed, tool.as_bytes())
            .map_err(refused)
    }
}

/// How a round ends.
enum Step {
    Done(String),
    /// The questions, and what the next round must remember.
    Ask(Value, Option<Value>),
}

/// The tools that ask in rounds.
pub(crate) fn call(
    states: &States,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if !is_modern(context) {
        return Ok(failure("this tool asks in rounds, which this protocol version lacks")?.into());
    }
    let state = match &request.request_state {
        Some(state) => states.take_back(&request.name, state)?,
        None => Value::Null,
    };
    let responses = request.input_responses.unwrap_or_default();
    let step = match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            greet(&responses)
        }
        "test_input_required_result_sampling" => capital(&responses),
        "test_input_required_result_list_roots" => match roots(&responses) {
            Some(roots) => Step::Done(format!("The roots are {roots}.")),
            None => Step::Ask(json!({"client_roots": list_roots()}), None),
        },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => confirm(&state, &responses),
        "test_input_required_result_multiple_inputs" => three(&responses),
        "test_input_required_result_multi_round" => color(&state, &responses),
        "test_input_required_result_capabilities" => possible(context, &responses),
        name => {
            let sentence = format!("there is no tool `{name}`");
            return Err(ErrorData::invalid_params(sentence, None));
        }
    };
    match step {
        Step::Done(words) => Ok(text(&words)?.into()),
        Step::Ask(requests, meaning) => {
            let state = match meaning {
                Some(meaning) => Some(states.hand_out(&request.name, &meaning)?),
                None => None,
            };
            Ok(ask(context, requests, state)?.into())
        }
    }
}

fn greet(responses: &InputResponses) -> Step {
    match accepted(responses, "user_name", "name") {
        Some(name) => Step::Done(format!("Hello, {name}!")),
        None => {
            let question = elicitation("What is your name?", "name", "string");
            Step::Ask(json!({"user_name": question}), None)
        }
    }
}

fn capital(responses: &InputResponses) -> Step {
    match responses.get("capital_question") {
        Some(answer) => Step::Done(said(answer.get("content").unwrap_or(answer))),
        None => {
            let question = sampling("What is the capital of France?", 100);
            Step::Ask(json!({"capital_question": question}), None)
        }
    }
}

fn confirm(state: &Value, responses: &InputResponses) -> Step {
    let meaning = json!("confirm");
    if *state == meaning && responses.contains_key("confirm") {
        return Step::Done("state-ok".to_owned());
    }
    let question = elicitation("Please confirm", "ok", "boolean");
    Step::Ask(json!({"confirm": question}), Some(meaning))
}

fn three(responses: &InputResponses) -> Step {
    if let (Some(name), Some(greeting), Some(roots)) = (
        accepted(responses, "user_name", "name"),
        responses.get("greeting"),
        roots(responses),
    ) {
        let greeting = said(greeting.get("content").unwrap_or(greeting));
        return Step::Done(format!("{greeting} {name}, with {roots}."));
    }
    let requests = json!({
        "user_name": elicitation("What is your name?", "name", "string"),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": list_roots(),
    });
    Step::Ask(requests, Some(json!("three")))
}

/// Two rounds; what the first brought is in the state of the second.
fn color(state: &Value, responses: &InputResponses) -> Step {
    let known = state.get("name").and_then(Value::as_str);
    if let (Some(name), Some(color)) = (known, accepted(responses, "step2", "color")) {
        return Step::Done(format!("{name} likes {color}."));
    }
    let told = accepted(responses, "step1", "name");
    match known.or(told.as_deref()) {
        Some(name) => {
            let question = elicitation("Step 2: What is your favorite color?", "color", "string");
            Step::Ask(json!({"step2": question}), Some(json!({"name": name})))
        }
        None => {
            let question = elicitation("Step 1: What is your name?", "name", "string");
            Step::Ask(json!({"step1": question}), Some(json!({})))
        }
    }
}

/// Asks whatever this client can be asked.
fn possible(context: &RequestContext<RoleServer>, responses: &InputResponses) -> Step {
    let mut requests = serde_json::Map::new();
    if declares(context, "elicitation") {
        let question = elicitation("What is your name?", "name", "string");
        requests.insert("name".to_owned(), question);
    }
    if declares(context, "sampling") {
        requests.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
    }
    match requests.is_empty() || !responses.is_empty() {
        true => Step::Done("There is nothing to ask.".to_owned()),
        false => Step::Ask(Value::Object(requests), None),
    }
}

/// Ends a call with questions; only such as the client says it can put.
pub(crate) fn ask(
    context: &RequestContext<RoleServer>,
    requests: Value,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    for request in requests
        .as_object()
        .into_iter()
        .flat_map(|requests| requests.values())
    {
        let capability = match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => "elicitation",
            Some("sampling/createMessage") => "sampling",
            _ => "roots",
        };
        if !declares(context, capability) {
            let missing = typed(json!({capability: {}}))?;
            return Err(ErrorData::missing_required_client_capability(missing));
        }
    }
    Ok(InputRequiredResult::new(Some(typed(requests)?), state))
}

/// What a person filled in; nothing if they did not accept, or filled in something else.
pub(crate) fn accepted(responses: &InputResponses, key: &str, field: &str) -> Option<String> {
    let response = responses.get(key)?;
    if response.get("action") != Some(&json!("accept")) {
        return None;
    }
    let value = response.get("content")?.get(field)?;
    value.as_str().map(str::to_owned)
}

pub(crate) fn elicitation(message: &str, field: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": {field: {"type": kind}},
                "required": [field],
            },
        },
    })
}

fn sampling(words: &str, tokens_max: u32) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": words}}],
            "maxTokens": tokens_max,
        },
    })
}

fn list_roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn roots(responses: &InputResponses) -> Option<String> {
    let roots = responses.get("client_roots")?.get("roots")?.as_array()?;
    let names = roots.iter().filter_map(|root| root.get("uri")?.as_str());
    Some(names.collect::<Vec<_>>().join(", "))
}
