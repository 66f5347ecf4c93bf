//! What the API promises, as an OpenAPI document: made from the table of routes and from
//! the types that the routes read and write.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::error::ErrorBody;
use crate::route::{Needs, Route};
use crate::session::CSRF_HEADER;
use model::word::Word as _;

/// The document of some routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<ErrorBody>();
    let error = serde_json::to_value(error).unwrap_or_default();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let body = route.body.map(|schema| schema(&mut generator));
        let answer = route.answer.map(|schema| schema(&mut generator));
        let body = body.map(|schema| serde_json::to_value(schema).unwrap_or_default());
        let answer = answer.map(|schema| serde_json::to_value(schema).unwrap_or_default());
        let operation = operation(route, body, answer, &error);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ringfence Studio",
            "version": "1",
            "description": "The API of the Studio. Every route but the sign-in needs the cookie \
                of a person's session; every change also needs the header of that session.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "ringfence_studio"},
                "csrf": {"type": "apiKey", "in": "header", "name": CSRF_HEADER},
            },
        },
    })
}

fn operation(route: &Route, body: Option<Value>, answer: Option<Value>, error: &Value) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for piece in route.path.split('/') {
        if let Some(name) = piece
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            let schema = json!({"type": "string"});
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
        }
    }
    for name in route.query {
        let schema = json!({"type": "string"});
        parameters.push(json!({"name": name, "in": "query", "required": false, "schema": schema}));
    }
    let content = match answer {
        Some(schema) => json!({"application/json": {"schema": schema}}),
        None => json!({"*/*": {"schema": {}}}),
    };
    let (role, security) = match route.needs {
        Needs::Nothing => ("none", json!([])),
        Needs::Role(role) if route.method == axum::http::Method::GET => {
            (role.word(), json!([{"session": []}]))
        }
        Needs::Role(role) => (role.word(), json!([{"session": [], "csrf": []}])),
    };
    let mut operation = json!({
        "summary": route.about,
        "operationId": operation_id(route),
        "x-role": role,
        "security": security,
        "parameters": parameters,
        "responses": {
            "200": {"description": "done", "content": content},
            "default": {
                "description": "not done",
                "content": {"application/json": {"schema": error}},
            },
        },
    });
    if let (Some(schema), Some(members)) = (body, operation.as_object_mut()) {
        let content = json!({"application/json": {"schema": schema}});
        members.insert(
            "requestBody".to_owned(),
            json!({"required": true, "content": content}),
        );
    }
    operation
}

/// `postInboxIdAnswer`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    let path = route.path.strip_prefix("/api/v1").unwrap_or(route.path);
    for word in path.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.extend(letters);
    }
    id
}
