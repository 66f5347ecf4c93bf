//! Keys, roles and limits, on the wire.

use std::time::Duration;

use mcp::auth::AuthMode;
use model::govern::key::Role;

use crate::auth_world::{START_MS, Setup, World};

#[tokio::test]
async fn a_valid_key_authenticates_its_holder() {
    let world = World::start(Setup::default()).await;
    let key = world.book.add("researcher", Role::Agent, None);
    let reply = world.call(key.reveal()).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "researcher"));
    let reply = world.call(world.local.reveal()).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "local"));
}

#[tokio::test]
async fn a_missing_key_is_explained() {
    let world = World::start(Setup::default()).await;
    let reply = world.send("POST", "/mcp", &[]).await;
    reply.is_refused(401, "gate.token");
    assert_eq!(
        reply.header("www-authenticate"),
        Some("Bearer realm=\"ringfence\"")
    );
    assert!(world.inside.seen.lock().unwrap().is_empty());
    // No issuer, so nothing to say about one.
    let path = "/.well-known/oauth-protected-resource";
    assert_eq!(world.send("GET", path, &[]).await.status, 404);
}

#[tokio::test]
async fn wrong_keys_are_refused_and_never_repeated() {
    let world = World::start(Setup::default()).await;
    let right = world.book.add("ada", Role::Agent, None);
    let stranger = model::govern::key::key(&model::govern::key::id([9; 5]), [1; 32]);
    let id = right.reveal().get(3..11).unwrap();
    let same_id = model::govern::key::key(id, [2; 32]);
    let other_local = model::govern::key::local_token([6; 32]);
    let slip = right.reveal().replace("rf_", "rf_0");
    for wrong in [
        stranger.reveal(),
        same_id.reveal(),
        other_local.reveal(),
        &slip,
        "rf_",
        "eyJhbGciOiJub25lIn0.e30.",
        "hunter2hunter2",
    ] {
        let reply = world.call(wrong).await;
        reply.is_refused(401, "gate.token");
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        if wrong.len() > 4 {
            assert!(!format!("{reply:?}").contains(wrong), "{reply:?}");
        }
    }
    assert!(world.inside.seen.lock().unwrap().is_empty());
}

/// A person with a browser gets a page for every refusal that is about them.
#[tokio::test]
async fn a_browser_gets_a_page() {
    let world = World::start(Setup::default()).await;
    let agent = world.book.add("ada", Role::Agent, None);
    let bearer = format!("Bearer {}", agent.reveal());
    let html = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let foreign = ("Origin", "https://elsewhere.example");
    let keyed = ("Authorization", bearer.as_str());
    let refused = [
        ("/mcp", vec![html], 401, "ringfence connect"),
        ("/mcp", vec![html, foreign], 403, "<code>origins</code>"),
        (
            "/api/v1/approvals",
            vec![html, keyed],
            403,
            "ringfence keys list",
        ),
    ];
    for (path, headers, status, words) in refused {
        let reply = world.send("GET", path, &headers).await;
        assert_eq!(reply.status, status, "{reply:?}");
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("text/html; charset=utf-8"), "{reply:?}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(reply.body.contains(words), "{}", reply.body);
        assert!(!format!("{reply:?}").contains(agent.reveal()), "{reply:?}");
        // The same without a browser.
        let plain: Vec<_> = headers
            .iter()
            .filter(|one| **one != html)
            .copied()
            .collect();
        let reply = world.send("GET", path, &plain).await;
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    // What is no refusal of ours stays as it is.
    assert_eq!(world.send("GET", "/healthz", &[html]).await.body, "fine");
}

#[tokio::test]
async fn odd_credential_headers_are_refused() {
    let world = World::start(Setup::default()).await;
    let bearer = format!("Bearer {}", world.local.reveal());
    let twice = [("Authorization", bearer.as_str()); 2];
    let reply = world.send("POST", "/mcp", &twice).await;
    reply.is_refused(400, "gate.request");
    let path = format!("/mcp?access_token={}", world.local.reveal());
    for headers in [&[][..], &twice[..1]] {
        let reply = world.send("POST", &path, headers).await;
        reply.is_refused(400, "gate.request");
    }
    let basic = [("Authorization", "Basic bG9jYWw6eA==")];
    let reply = world.send("POST", "/mcp", &basic).await;
    reply.is_refused(400, "gate.request");
    assert!(world.inside.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn revoked_and_expired_keys_end_at_the_next_request() {
    let world = World::start(Setup::default()).await;
    let ada = world.book.add("ada", Role::Agent, None);
    let brief = world.book.add("brief", Role::Agent, Some(START_MS + 5_000));
    assert_eq!(world.call(ada.reveal()).await.status, 200);
    assert_eq!(world.call(brief.reveal()).await.status, 200);
    world.hands.forward(Duration::from_secs(5));
    let reply = world.call(brief.reveal()).await;
    reply.is_refused(401, "gate.token");
    assert!(reply.body.contains("expired"), "{}", reply.body);
    world.book.keys.lock().unwrap().clear();
    world.call(ada.reveal()).await.is_refused(401, "gate.token");
}

#[tokio::test]
async fn keys_that_cannot_be_looked_up_are_refused() {
    let world = World::start(Setup::default()).await;
    let ada = world.book.add("ada", Role::Agent, None);
    *world.book.broken.lock().unwrap() = true;
    let reply = world.call(ada.reveal()).await;
    reply.is_refused(503, "gate.unavailable");
    assert!(!reply.body.contains("disk"), "{}", reply.body);
    assert_eq!(world.call(world.local.reveal()).await.status, 200);
}

#[tokio::test]
async fn each_role_has_its_own_routes() {
    let world = World::start(Setup::default()).await;
    let agent = world.book.add("agent", Role::Agent, None);
    let operator = world.book.add("operator", Role::Operator, None);
    let api = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        world.send("GET", "/api/v1/approvals", &headers).await
    };
    let reply = api(operator.reveal()).await;
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (200, "operator operator")
    );
    world
        .call(operator.reveal())
        .await
        .is_refused(403, "gate.role");
    // Invariant 7.
    for token in [agent.reveal(), world.local.reveal()] {
        api(token).await.is_refused(403, "gate.role");
    }
    let reply = world.send("GET", "/api/v1/approvals", &[]).await;
    reply.is_refused(401, "gate.token");
}

#[tokio::test]
async fn no_auth_makes_no_operators_and_accepts_no_wrong_keys() {
    let setup = Setup {
        mode: AuthMode::Off,
        ..Setup::default()
    };
    let world = World::start(setup).await;
    assert_eq!(world.send("POST", "/mcp", &[]).await.body, "local");
    let reply = world.send("GET", "/api/v1/approvals", &[]).await;
    reply.is_refused(403, "gate.role");
    let key = world.book.add("ada", Role::Agent, None);
    assert_eq!(world.call(key.reveal()).await.body, "ada");
    world.book.keys.lock().unwrap().clear();
    world.call(key.reveal()).await.is_refused(401, "gate.token");
}

#[tokio::test]
async fn credentials_are_removed_from_requests() {
    let world = World::start(Setup::default()).await;
    let key = world.book.add("ada", Role::Agent, None);
    assert_eq!(world.call(key.reveal()).await.status, 200);
    assert_eq!(world.call(world.local.reveal()).await.status, 200);
    let seen = world.inside.seen.lock().unwrap().clone();
    assert!(seen.contains("Principal"), "{seen}");
    for secret in [&key, &world.local] {
        let body = secret.reveal().split_at(12).1;
        assert!(!seen.contains(body), "{seen}");
    }
    assert!(!seen.to_ascii_lowercase().contains("bearer"), "{seen}");
    assert!(!format!("{:?}", world.auth).contains(key.reveal().split_at(12).1));
    assert!(!format!("{:?}", world.auth).contains(world.local.reveal().split_at(9).1));
}

#[tokio::test]
async fn rate_limits_are_per_caller() {
    let mut setup = Setup::default();
    setup.serve.calls_per_minute = 5;
    let world = World::start(setup).await;
    let ada = world.book.add("ada", Role::Agent, None);
    for _ in 0..5 {
        assert_eq!(world.call(ada.reveal()).await.status, 200);
    }
    let reply = world.call(ada.reveal()).await;
    reply.is_refused(429, "gate.caller_limit");
    let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((12..=13).contains(&seconds), "{seconds}");
    assert_eq!(world.call(world.local.reveal()).await.status, 200);
    world.hands.forward(Duration::from_secs(seconds));
    assert_eq!(world.call(ada.reveal()).await.status, 200);
    world
        .call(ada.reveal())
        .await
        .is_refused(429, "gate.caller_limit");
}

#[tokio::test]
async fn many_wrong_keys_slow_an_address_and_valid_keys_still_work() {
    let world = World::start(Setup::default()).await;
    let wrong = model::govern::key::local_token([6; 32]);
    for _ in 0..60 {
        let reply = world.call(wrong.reveal()).await;
        reply.is_refused(401, "gate.token");
    }
    let reply = world.call(wrong.reveal()).await;
    reply.is_refused(429, "gate.address_limit");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(world.call(world.local.reveal()).await.status, 200);
    world.hands.forward(Duration::from_secs(2));
    world
        .call(wrong.reveal())
        .await
        .is_refused(401, "gate.token");
}

#[tokio::test]
async fn a_rate_limited_address_waits_with_any_key() {
    let mut setup = Setup::default();
    setup.serve.calls_per_minute = 1;
    let world = World::start(setup).await;
    for _ in 0..600 {
        assert_eq!(world.send("GET", "/healthz", &[]).await.status, 200);
    }
    let reply = world.send("GET", "/healthz", &[]).await;
    reply.is_refused(429, "gate.address_limit");
    world
        .call(world.local.reveal())
        .await
        .is_refused(429, "gate.address_limit");
    world.hands.forward(Duration::from_secs(1));
    assert_eq!(world.send("GET", "/healthz", &[]).await.status, 200);
}
