//! Adding servers: what was not shown is not started and not added, a client's settings are
//! imported as `wrap` would, and no secret comes back.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::World;

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn client_file() -> String {
    json!({"theme": "dark", "mcpServers": {
        "GitHub MCP": {"command": "npx", "args": ["-y", "gh@1.0.0"], "env": {"GH_TOKEN": SECRET, "LEVEL": "debug"}, "icon": "x"},
        "far": {"url": "https://far.example/mcp", "headers": {"Authorization": format!("Bearer {SECRET}")}},
        "odd": {"command": "a", "cwd": "/x"},
        "ringfence": {"command": "ringfence"},
    }})
    .to_string()
}

fn settings(world: &World) -> String {
    std::fs::read_to_string(world.home.join("ringfence.toml")).unwrap()
}

fn acts(world: &World) -> Vec<(String, String)> {
    let notices = world.engine.store().audit();
    let notices = notices.notices(&engine::Filter::default()).unwrap();
    let shown =
        |entry: &engine::NoticeEntry| (entry.notice.act.word().to_owned(), entry.notice.by.clone());
    notices.iter().map(shown).collect()
}

#[tokio::test]
async fn a_clients_servers_are_imported_as_they_were_shown() {
    let mine = "# mine\n[exposure]\npreset = \"starter\"\n";
    let world = World::new(mine);
    let owner = world.owner().await;
    let text = client_file();
    let preview = "/api/v1/servers/import/preview";
    let plan = owner.post(preview, &json!({ "text": text })).await;
    assert_eq!(plan.status, StatusCode::OK, "{}", plan.text);
    assert!(!plan.text.contains(SECRET), "{}", plan.text);
    let rows = plan.body["servers"].as_array().unwrap().iter();
    let names: Vec<_> = rows.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["github-mcp", "far"]);
    assert_eq!(
        plan.body["servers"][0]["argv"],
        json!(["npx", "-y", "gh@1.0.0"])
    );
    assert_eq!(
        plan.body["servers"][0]["environment"],
        json!([{"name": "GH_TOKEN", "value": "${GH_TOKEN}"}, {"name": "LEVEL", "value": "debug"}])
    );
    assert_eq!(plan.body["servers"][0]["dropped"], json!(["icon"]));
    assert_eq!(plan.body["left"][0]["name"], "odd");
    assert_eq!(settings(&world), mine, "nothing is changed by looking");
    // Another text, other servers or no digest: not what was shown.
    let digest = &plan.body["digest"];
    for body in [
        json!({ "text": text }),
        json!({"text": text, "digest": "0"}),
        json!({"text": text, "digest": digest, "servers": ["far"]}),
        json!({"text": text.replace("gh@1.0.0", "evil@1.0.0"), "digest": digest}),
        json!({"text": text.replace(SECRET, "ghp_other56789abcdefghijABCDEFGHIJ012345"), "digest": digest}),
    ] {
        let refused = owner.post("/api/v1/servers/import", &body).await;
        assert_eq!(refused.code(), "studio.invalid", "{body}");
    }
    assert_eq!(settings(&world), mine);
    let done = owner
        .post(
            "/api/v1/servers/import",
            &json!({"text": text, "digest": digest}),
        )
        .await;
    assert_eq!(
        done.body,
        json!({"names": ["github-mcp", "far"]}),
        "{}",
        done.text
    );
    let settings = settings(&world);
    assert!(
        settings.starts_with(mine) && !settings.contains(SECRET),
        "{settings}"
    );
    let secrets = std::fs::read_to_string(world.home.join("secrets.env")).unwrap();
    assert_eq!(secrets.matches(SECRET).count(), 2, "{secrets}");
    let list = owner.get("/api/v1/servers").await;
    for row in list.body["items"].as_array().unwrap() {
        assert_eq!(
            (&row["decision"], &row["callable"]),
            (&json!("held"), &json!(0)),
            "{row}"
        );
    }
    let acts = acts(&world);
    for act in ["server.added", "secret.changed", "settings.changed"] {
        assert!(
            acts.contains(&(act.to_owned(), "owner".to_owned())),
            "{act} in {acts:?}"
        );
    }
    // A second time they are there already.
    let again = owner.post(preview, &json!({ "text": text })).await;
    for one in again.body["servers"].as_array().unwrap() {
        assert_eq!(one["known"], true, "{one}");
    }
}

#[tokio::test]
async fn what_is_no_clients_file_is_refused() {
    let world = World::new("");
    let owner = world.owner().await;
    for text in [
        "",
        "[]",
        "{}",
        "// a comment\n{}",
        "{\"mcpServers\": 1}",
        "{\"a\": 1, \"a\": 2}",
    ] {
        let answer = owner
            .post("/api/v1/servers/import/preview", &json!({ "text": text }))
            .await;
        assert_eq!(answer.code(), "studio.invalid", "{text}: {}", answer.text);
    }
    let long = "x".repeat(studio::limit::IMPORT_BYTES_MAX + 1);
    let answer = owner
        .post("/api/v1/servers/import/preview", &json!({ "text": long }))
        .await;
    assert_eq!(answer.code(), "studio.too_large");
}

/// A trial is a program that is started: only as shown, and nothing of it stays.
#[tokio::test]
async fn a_trial_starts_what_was_shown_and_keeps_nothing() {
    let world = World::new("# mine\n");
    let owner = world.owner().await;
    let server = json!({"name": "calc", "command": ["/absent/program"]});
    let with = |digest: &Value| {
        let mut body = server.clone();
        body["digest"] = digest.clone();
        body
    };
    for odd in [Value::Null, json!("0")] {
        let refused = owner.post("/api/v1/servers/trial", &with(&odd)).await;
        assert_eq!(refused.code(), "studio.invalid");
        assert!(
            refused.text.contains("not what was shown"),
            "{}",
            refused.text
        );
    }
    assert!(!acts(&world).iter().any(|(act, _)| act == "server.tried"));
    let shown = owner.post("/api/v1/servers/preview", &server).await;
    let failed = owner
        .post("/api/v1/servers/trial", &with(&shown.body["digest"]))
        .await;
    assert_eq!(failed.code(), "studio.invalid", "{}", failed.text);
    assert!(failed.text.contains("cannot be used"), "{}", failed.text);
    assert_eq!(settings(&world), "# mine\n");
    assert_eq!(owner.get("/api/v1/servers").await.body["items"], json!([]));
    assert!(!world.home.join("servers").exists());
    let left = std::fs::read_dir(world.home.join("scratch")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "its folder went with it");
}

#[tokio::test]
async fn the_log_of_a_server_starts_nothing() {
    let world = World::new("[[server]]\nname = \"calc\"\ncommand = [\"/absent/program\"]\n");
    let owner = world.owner().await;
    let log = owner.get("/api/v1/servers/calc/logs").await;
    assert_eq!(log.body, json!({"items": []}), "{}", log.text);
    assert_eq!(
        owner.get("/api/v1/servers/other/logs").await.code(),
        "studio.unknown"
    );
}
