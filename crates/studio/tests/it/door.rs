//! The front door: codes, sessions, and what does not open it.

use axum::http::{Method, StatusCode};
use model::govern::key;
use model::govern::person::{Person, PersonRole};
use serde_json::json;

use crate::world::{Browser, World, asking, studio};

#[tokio::test]
async fn a_code_opens_one_session_once() {
    let world = World::new("");
    let code = world.code();
    let browser = Browser::new(&world.router);
    assert_eq!(
        browser.get("/api/v1/session").await.code(),
        "studio.session"
    );
    let first = browser
        .post("/api/v1/session", &json!({ "code": code }))
        .await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    let cookie = first.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let secret = first.cookie().unwrap();
    assert!(
        !first.text.contains(secret.split_once('=').unwrap().1),
        "the secret is for the browser"
    );
    let again = browser
        .post("/api/v1/session", &json!({ "code": code }))
        .await;
    assert_eq!(
        (again.status, again.code()),
        (StatusCode::UNAUTHORIZED, "studio.code")
    );
    let mut signed = browser.clone();
    signed.cookie = Some(secret);
    let session = signed.get("/api/v1/session").await;
    assert_eq!(
        session.body["person"],
        json!({"name": "owner", "role": "owner"})
    );
}

#[tokio::test]
async fn a_code_expires() {
    let world = World::new("");
    let (code, fresh) = (world.code(), world.code());
    let browser = Browser::new(&world.router);
    world.pass_minutes(9);
    assert_eq!(
        browser
            .post("/api/v1/session", &json!({ "code": fresh }))
            .await
            .status,
        StatusCode::OK
    );
    world.pass_minutes(1);
    let late = browser
        .post("/api/v1/session", &json!({ "code": code }))
        .await;
    assert_eq!(late.code(), "studio.code");
}

#[tokio::test]
async fn a_session_ends_unused_and_in_any_case() {
    let world = World::new("");
    let browser = world.owner().await;
    for _ in 0..12 {
        world.pass_minutes(59);
        let answer = browser.get("/api/v1/session").await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    // Twelve hours are over, however much it was used.
    world.pass_minutes(13);
    assert_eq!(browser.get("/api/v1/tools").await.code(), "studio.session");
    let browser = world.owner().await;
    world.pass_minutes(60);
    assert_eq!(browser.get("/api/v1/tools").await.code(), "studio.session");
}

#[tokio::test]
async fn signing_out_ends_one_session_or_all() {
    let world = World::new("");
    let (one, two, three) = (
        world.owner().await,
        world.owner().await,
        world.owner().await,
    );
    let out = one
        .send(Method::DELETE, "/api/v1/session", &json!({}))
        .await;
    assert_eq!(out.status, StatusCode::OK, "{}", out.body);
    assert_eq!(
        one.get("/api/v1/tools").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(two.get("/api/v1/tools").await.status, StatusCode::OK);
    let listed = two.get("/api/v1/sessions").await;
    assert_eq!(listed.body["items"].as_array().unwrap().len(), 2);
    let left = world.code();
    let out = two
        .send(Method::DELETE, "/api/v1/sessions", &json!({}))
        .await;
    assert_eq!(out.body, json!({"ended": 2}));
    for browser in [&two, &three] {
        assert_eq!(
            browser.get("/api/v1/tools").await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    // A code that was made before counts no more either.
    let code = one.post("/api/v1/session", &json!({ "code": left })).await;
    assert_eq!(code.code(), "studio.code");
    let notices = world
        .engine
        .store()
        .audit()
        .notices(&engine::Filter::default())
        .unwrap();
    let acts: Vec<_> = notices
        .iter()
        .map(|entry| entry.notice.act.word())
        .collect();
    assert!(
        acts.contains(&"person.signed_in") && acts.contains(&"person.signed_out"),
        "{acts:?}"
    );
}

/// Invariant 18: an agent's key, an operator's key and the token of the machine open no
/// session, wherever they are put.
#[tokio::test]
async fn no_key_opens_the_door() {
    let world = World::new("");
    let actor = model::govern::person::Actor::OWNER_AT_TERMINAL;
    let made = |name, role| world.engine.make_key(name, role, None, actor).unwrap().1;
    let agent = made("ann", key::Role::Agent);
    let operator = made("olga", key::Role::Operator);
    let token = key::local_token([7; 32]);
    let good = world.owner().await;
    let (name, _) = good.cookie.as_deref().unwrap().split_once('=').unwrap();
    for secret in [agent.reveal(), operator.reveal(), token.reveal()] {
        let mut browser = Browser::new(&world.router);
        browser.cookie = Some(format!("{name}={secret}"));
        assert_eq!(
            browser.get("/api/v1/tools").await.status,
            StatusCode::UNAUTHORIZED
        );
        let answer = browser
            .post("/api/v1/session", &json!({ "code": secret }))
            .await;
        assert_eq!(answer.code(), "studio.code");
    }
    // And a session's secret is no key.
    let secret = good.cookie.as_deref().unwrap().split_once('=').unwrap().1;
    assert_eq!(key::read(secret), None);
}

#[tokio::test]
async fn a_role_does_what_it_may_and_no_more() {
    let world = World::new(
        "[studio.oauth]\nissuer = \"https://a.example\"\nclient_id = \"c\"\nowner = [\"o\"]\n",
    );
    world.publish(&asking("ask")).await;
    let waiting = world.call("ask", json!({"path": "a"}));
    let id = world.question().await;
    let address = "http://127.0.0.1:7464";
    let place = engine::people::SessionPlace {
        address,
        raw_browser: "test",
    };
    let session = |role| {
        let person = Person {
            name: format!("oauth:{role:?}"),
            role,
        };
        let (secret, _) = world.engine.people().begin(&person, place, &[]).unwrap();
        secret.reveal().to_owned()
    };
    let owner = world.owner().await;
    let (name, _) = owner.cookie.as_deref().unwrap().split_once('=').unwrap();
    for (role, may_answer, may_change) in [
        (PersonRole::Viewer, false, false),
        (PersonRole::Approver, true, false),
        (PersonRole::Owner, true, true),
    ] {
        let mut browser = Browser::new(&world.router);
        browser.cookie = Some(format!("{name}={}", session(role)));
        let own = browser.get("/api/v1/session").await;
        browser.csrf = own.body["csrf"].as_str().map(str::to_owned);
        assert_eq!(browser.get("/api/v1/tools").await.status, StatusCode::OK);
        let preview = format!("/api/v1/inbox/{id}/preview");
        let asked = browser
            .post(&preview, &json!({"arguments": {"path": "b"}}))
            .await;
        assert_eq!(
            asked.status == StatusCode::OK,
            may_answer,
            "{role:?} {}",
            asked.body
        );
        let copied = browser
            .post("/api/v1/tools/ask/unpublish", &json!({}))
            .await;
        assert_eq!(
            copied.status == StatusCode::OK,
            may_change,
            "{role:?} {}",
            copied.body
        );
        if !may_change {
            assert_eq!(copied.code(), "studio.role");
        }
    }
    waiting.abort();
}

#[tokio::test]
async fn a_session_of_one_server_is_none_at_another() {
    let world = World::new("");
    let browser = world.owner().await;
    let beside = studio(&world.engine, "127.0.0.1:7465").router();
    let mut other = browser.clone();
    other.router = &beside;
    other.host = "127.0.0.1:7465".to_owned();
    other.origin = Some("http://127.0.0.1:7465".to_owned());
    assert_eq!(
        other.get("/api/v1/tools").await.status,
        StatusCode::UNAUTHORIZED
    );
    // Even under the name that the other one looks for.
    let there = other
        .post("/api/v1/session", &json!({ "code": world.code() }))
        .await;
    let (name, _) = there.header("set-cookie").split_once('=').unwrap();
    let (ours, secret) = browser.cookie.as_deref().unwrap().split_once('=').unwrap();
    assert_ne!(name, ours);
    other.cookie = Some(format!("{name}={secret}"));
    assert_eq!(
        other.get("/api/v1/tools").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(browser.get("/api/v1/tools").await.status, StatusCode::OK);
}
