//! The OpenAPI document: every route is in it, nothing else is, and what routes answer is
//! what it says.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use studio::{Studio, openapi};

use crate::world::{Browser, World, asking};

fn described() -> BTreeSet<(String, String)> {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().clone();
    let mut found = BTreeSet::new();
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            found.insert((method.to_ascii_uppercase(), path.clone()));
        }
    }
    found
}

#[test]
fn the_document_has_every_route_and_no_other() {
    let routes: BTreeSet<_> = Studio::routes().into_iter().collect();
    assert_eq!(routes, described());
    assert_eq!(
        routes.len(),
        Studio::routes().len(),
        "no route is there twice"
    );
    assert!(routes.len() > 60, "{}", routes.len());
}

#[test]
fn the_document_is_sound() {
    let document = openapi();
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            let places = path.matches('{').count();
            let parameters = operation["parameters"].as_array().unwrap();
            let in_path = parameters.iter().filter(|it| it["in"] == "path").count();
            assert_eq!(places, in_path, "{method} {path}");
            assert!(!operation["summary"].as_str().unwrap().is_empty());
            if method == "post" || method == "put" {
                assert!(operation["requestBody"].is_object(), "{method} {path}");
            }
        }
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for piece in text.split("\"$ref\":\"").skip(1) {
        let pointer = piece.split('"').next().unwrap().trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

/// The router takes what the document says and nothing else.
#[tokio::test]
async fn the_router_takes_exactly_these_methods() {
    let world = World::new("");
    let browser = Browser::new(&world.router);
    let routes = described();
    let paths: BTreeSet<_> = routes.iter().map(|(_, path)| path.clone()).collect();
    for path in paths {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let is_known = routes.contains(&(method.to_owned(), path.clone()));
            let at = path.replace("{name}", "x").replace("{id}", "x");
            let method: Method = method.parse().unwrap();
            let answer = browser.send(method.clone(), &at, &json!({})).await;
            let is_refused = answer.status == StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(is_refused, !is_known, "{method} {path} {}", answer.status);
        }
    }
}

/// Holds an answer against the schema of its route.
fn check(document: &Value, method: &str, path: &str, answer: &Value) {
    let operation = &document["paths"][path][method];
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    assert!(
        schema.is_object() || schema.is_boolean(),
        "{method} {path} has no schema"
    );
    let whole = json!({"allOf": [schema], "components": document["components"]});
    let validator = jsonschema::validator_for(&whole).unwrap();
    let faults: Vec<_> = validator
        .iter_errors(answer)
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{method} {path}: {faults:?}\n{answer}");
}

#[tokio::test]
async fn answers_are_what_the_document_says() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    // A rule that asks would ask about the test of the tool as well.
    let rule = "[[rule]]\nid = \"look\"\ntools = [\"ask\"]\neffect = \"ask\"\nreason = \"look\"\n";
    std::fs::write(world.home.join("ringfence.toml"), rule).unwrap();
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({"path": "a"}));
    let id = world.question().await;
    let actor = model::govern::person::Actor::OWNER_AT_TERMINAL;
    world
        .engine
        .make_key("ann", model::govern::key::Role::Agent, None, actor)
        .unwrap();
    let document = openapi();
    let call = owner
        .post(
            "/api/v1/inspector/call",
            &json!({"tool": "none", "arguments": {}}),
        )
        .await;
    check(&document, "post", "/api/v1/inspector/call", &call.body);
    let call = call.body["callId"].as_str().unwrap().to_owned();
    let mut checked = 0;
    for (method, path) in described() {
        if method != "GET"
            || path.ends_with("/events")
            || path.ends_with("/callback")
            || path.ends_with("/export") && path.contains("audit")
        {
            continue;
        }
        let at = match path.as_str() {
            "/api/v1/inbox/{id}" => format!("/api/v1/inbox/{id}"),
            "/api/v1/audit/{id}" => format!("/api/v1/audit/{call}"),
            "/api/v1/audit/{id}/raw" => format!("/api/v1/audit/{call}/raw"),
            "/api/v1/tools/export" => "/api/v1/tools/export?name=ask".to_owned(),
            path if path.contains("/tools/{name}") => path.replace("{name}", "ask"),
            path if path.contains("/callers/{name}") => path.replace("{name}", "ann"),
            // There is no server here; the browser tests have some.
            path if path.contains("/servers/{name}") => continue,
            path => path.to_owned(),
        };
        let answer = owner.get(&at).await;
        assert_eq!(answer.status, StatusCode::OK, "{at} {}", answer.body);
        check(&document, "get", &path, &answer.body);
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
    // The control: a schema notices what is not in it.
    let schema = &document["paths"]["/api/v1/sessions"]["get"]["responses"]["200"]["content"]["application/json"]
        ["schema"];
    let whole = json!({"allOf": [schema], "components": document["components"]});
    assert!(
        !jsonschema::validator_for(&whole)
            .unwrap()
            .is_valid(&json!({"items": [{"id": 1}]}))
    );
    for (path, body) in [
        (
            "/api/v1/tools/check",
            json!({"document": asking("ask").to_string()}),
        ),
        ("/api/v1/policy/lint", json!({"text": ""})),
        ("/api/v1/policy/rehearse", json!({"text": ""})),
        ("/api/v1/policy/preview", json!({"text": ""})),
        ("/api/v1/audit/verify", json!({})),
        (
            "/api/v1/inspector/explain",
            json!({"tool": "ask", "arguments": {}}),
        ),
        (
            "/api/v1/inspector/script/check",
            json!({"code": "return 1"}),
        ),
        (
            "/api/v1/servers/preview",
            json!({"name": "calc", "command": ["calc"]}),
        ),
        (
            "/api/v1/servers/import/preview",
            json!({"text": "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"cwd\": 1}, \"b\": {\"command\": \"b\"}}}"}),
        ),
        (
            "/api/v1/callers/ann/feedback",
            json!({"score": 7, "note": "good"}),
        ),
    ] {
        let answer = owner.post(path, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{path} {}", answer.body);
        let path = path.replace("/ann/", "/{name}/");
        check(&document, "post", &path, &answer.body);
    }
    let error = owner.get("/api/v1/tools/nothing").await;
    let schema =
        json!({"$ref": "#/components/schemas/ErrorBody", "components": document["components"]});
    assert!(
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&error.body),
        "{}",
        error.body
    );
    waiting.abort();
}
