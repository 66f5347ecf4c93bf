//! Tools: from a text as it is typed to one that is published, and back.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, asking};

/// The whole life of a tool from the page: template, risk that moves, save, test with
/// consent, publish, change, difference, back to a draft, trash. The audit names the person.
#[tokio::test]
async fn a_tool_is_written_tested_and_published() {
    let world = World::new("");
    let owner = world.owner().await;
    let template = owner.get("/api/v1/tools/template?name=greet").await;
    let text = template.body["document"].as_str().unwrap().to_owned();
    let checked = owner
        .post("/api/v1/tools/check", &json!({"document": text}))
        .await;
    assert_eq!(checked.body["ok"], true, "{}", checked.body);
    assert_eq!(checked.body["risk"]["level"], "L0");
    assert_eq!(checked.body["approvalSuggested"], "DISABLED");
    let path = "/api/v1/tools/greet";
    let save = json!({"document": text, "revision": null});
    let saved = owner
        .send(Method::PUT, &format!("{path}/document"), &save)
        .await;
    assert_eq!(saved.status, StatusCode::OK, "{}", saved.body);
    assert_eq!(saved.body["document"], text, "every byte as it was typed");
    assert_eq!(saved.body["state"], "DRAFT");
    let tested = owner.post(&format!("{path}/test"), &json!({})).await;
    assert_eq!(tested.body["ok"], true, "{}", tested.body);
    assert!(tested.body["budgets"].as_array().unwrap().len() >= 4);
    let digest = &saved.body["digest"];
    let published = owner
        .post(&format!("{path}/publish"), &json!({"digest": digest}))
        .await;
    assert_eq!(published.body["ok"], true, "{}", published.body);
    assert_eq!(published.body["tool"]["state"], "ACTIVE");
    // Another text: its risk rises as it is typed, and its difference is shown.
    let wider = text.replace(
        "\"networkMode\": \"blocked\"",
        "\"networkMode\": \"allowlist\", \"hostsAllow\": [\"api.example.com\"]",
    );
    let now = owner.get(path).await;
    let checked = owner
        .post(
            "/api/v1/tools/check",
            &json!({"document": wider, "name": "greet"}),
        )
        .await;
    assert_eq!(checked.body["before"]["level"], "L0");
    assert_ne!(checked.body["risk"]["level"], "L0", "{}", checked.body);
    assert!(!checked.body["widens"].as_array().unwrap().is_empty());
    assert_eq!(checked.body["approvalSuggested"], "REQUIRED");
    let current = now.body["document"].as_str().unwrap();
    let wider = current.replace(
        "\"networkMode\": \"blocked\"",
        "\"networkMode\": \"allowlist\", \"hostsAllow\": [\"api.example.com\"]",
    );
    let save = json!({"document": wider, "revision": now.body["revision"]});
    let saved = owner
        .send(Method::PUT, &format!("{path}/document"), &save)
        .await;
    assert_eq!(saved.status, StatusCode::OK, "{}", saved.body);
    let again = owner
        .send(Method::PUT, &format!("{path}/document"), &save)
        .await;
    assert_eq!(
        again.status,
        StatusCode::CONFLICT,
        "the text it was made from is gone"
    );
    let differs = owner.get(&format!("{path}/diff")).await;
    assert_eq!(differs.body["same"], false, "{}", differs.body);
    assert_eq!(differs.body["risk"]["before"]["level"], "L0");
    // It reaches for a host, which takes the owner's consent.
    let refused = owner.post(&format!("{path}/test"), &json!({})).await;
    assert_eq!(refused.code(), "studio.consent");
    let needs = &refused.body["error"]["details"]["needs"];
    let words: Vec<_> = needs
        .as_array()
        .unwrap()
        .iter()
        .map(|need| need["word"].clone())
        .collect();
    let agreed = owner
        .post(&format!("{path}/test"), &json!({"consent": words}))
        .await;
    assert_eq!(agreed.status, StatusCode::OK, "{}", agreed.body);
    owner.post(&format!("{path}/unpublish"), &json!({})).await;
    let gone = owner.send(Method::DELETE, path, &json!({})).await;
    assert_eq!(gone.status, StatusCode::OK, "{}", gone.body);
    let notices = owner.get("/api/v1/audit?kind=notice&limit=50").await;
    let by_person = |act: &str| {
        let items = notices.body["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["act"] == act);
        let found = found.unwrap_or_else(|| panic!("no {act}: {}", notices.body));
        assert_eq!(
            (&found["by"], &found["through"]),
            (&json!("owner"), &json!("studio")),
            "{act}"
        );
    };
    for act in [
        "tool.published",
        "tool.consented",
        "tool.unpublished",
        "tool.deleted",
    ] {
        by_person(act);
    }
}

#[tokio::test]
async fn what_is_no_document_is_not_saved() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    for text in ["", "{", "[]", "{}", "{\"name\": \"other\"}"] {
        let save = json!({"document": text, "revision": null});
        let answer = owner
            .send(Method::PUT, "/api/v1/tools/new/document", &save)
            .await;
        assert_eq!(
            answer.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{text} {}",
            answer.body
        );
    }
    // A name that is taken, a bundled one, and one that leads out of the folder.
    let taken = json!({"document": asking("ask").to_string(), "revision": null});
    let answer = owner
        .send(Method::PUT, "/api/v1/tools/ask/document", &taken)
        .await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    let mut evil = asking("x");
    evil["name"] = json!("../../evil");
    let save = json!({"document": evil.to_string(), "revision": null});
    let answer = owner
        .send(Method::PUT, "/api/v1/tools/..%2F..%2Fevil/document", &save)
        .await;
    assert!(!world.home.parent().unwrap().join("evil.json").exists());
    if answer.status == StatusCode::OK {
        let inside = std::fs::read_dir(world.home.join("tools")).unwrap().count();
        assert_eq!(inside, 2);
    }
}

#[tokio::test]
async fn exposure_is_previewed_and_applied_as_a_difference() {
    let world = World::new("# mine\n");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let now = owner.get("/api/v1/exposure").await;
    let is_exposed = |body: &Value| {
        let tools = body["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == "ask").unwrap()["exposed"].clone()
    };
    assert_eq!(is_exposed(&now.body), true);
    let body = json!({
        "preset": now.body["preset"], "auto": true, "exclude": {"names": ["ask"]}, "revision": now.body["revision"],
    });
    let preview = owner.post("/api/v1/exposure/preview", &body).await;
    assert_eq!(preview.body["removed"], json!(["ask"]), "{}", preview.body);
    assert_eq!(is_exposed(&owner.get("/api/v1/exposure").await.body), true);
    let applied = owner.send(Method::PUT, "/api/v1/exposure", &body).await;
    assert_eq!(applied.status, StatusCode::OK, "{}", applied.body);
    assert_eq!(is_exposed(&applied.body), false);
    let text = std::fs::read_to_string(world.home.join("ringfence.toml")).unwrap();
    assert!(text.starts_with("# mine"), "{text}");
    let again = owner.send(Method::PUT, "/api/v1/exposure", &body).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
}
