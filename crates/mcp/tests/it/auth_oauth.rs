//! Tokens of an issuer: what makes one count, and what its keys cost.

use std::sync::Arc;
use std::time::Duration;

use mcp::auth::FetchKeys;
use mcp::auth::issuer::Fetching;
use mcp::auth::oauth::{Oauth, Rejection};
use model::config::OauthConfig;
use serde_json::{Value, json};

use crate::auth_issuer::{Courier, Lab, Pair};
use crate::auth_world::{Hands, Reply, Setup, World};

struct Scene {
    lab: Lab,
    pair: Pair,
    world: World,
}

impl Scene {
    async fn start(change: impl FnOnce(&mut OauthConfig)) -> Scene {
        let lab = Lab::start().await;
        let pair = Pair::new(Some("one"));
        lab.put_keys(&[pair.public()]);
        let mut config = lab.config();
        change(&mut config);
        let mut setup = Setup {
            oauth: Some(config),
            fetch: Arc::new(Courier::default()),
            ..Setup::default()
        };
        setup.serve.public_url = Some("https://tools.example.com/".to_owned());
        let world = World::start(setup).await;
        Scene { lab, pair, world }
    }

    /// Right in every way.
    fn claims(&self) -> Value {
        json!({
            "iss": self.lab.name(),
            "aud": "https://tools.example.com/mcp",
            "sub": "ada",
            "exp": self.world.hands.now() + 300,
        })
    }

    fn with(&self, claim: &str, value: Value) -> Value {
        let mut claims = self.claims();
        claims[claim] = value;
        claims
    }

    async fn show(&self, claims: &Value) -> Reply {
        self.world.call(&self.pair.sign(claims)).await
    }
}

#[tokio::test]
async fn a_valid_token_names_its_subject() {
    let scene = Scene::start(|_| {}).await;
    let reply = scene.show(&scene.claims()).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "oauth:ada"));
    let several = json!(["https://other.example", "https://tools.example.com/mcp"]);
    assert_eq!(scene.show(&scene.with("aud", several)).await.status, 200);
    let soon = json!(scene.world.hands.now() + 20);
    assert_eq!(scene.show(&scene.with("nbf", soon)).await.status, 200);
    let just = json!(scene.world.hands.now() - 20);
    assert_eq!(scene.show(&scene.with("exp", just)).await.status, 200);
    // Nothing of it goes further, and no issuer's token answers questions.
    let seen = scene.world.inside.seen.lock().unwrap().clone();
    assert!(!seen.contains("eyJ"), "{seen}");
    let bearer = format!("Bearer {}", scene.pair.sign(&scene.claims()));
    let headers = [("Authorization", bearer.as_str())];
    let api = scene.world.send("GET", "/api/v1/approvals", &headers).await;
    api.is_refused(403, "gate.role");
    // All of that took one look at the issuer's keys.
    assert_eq!(scene.lab.requests(), ["/keys"]);
}

#[tokio::test]
async fn a_token_that_is_wrong_in_one_way_is_refused() {
    let scene = Scene::start(|_| {}).await;
    let now = scene.world.hands.now();
    let long = "x".repeat(129);
    let wrong = [
        ("iss", json!("https://evil.example")),
        ("iss", json!(format!("{}/", scene.lab.name()))),
        ("iss", json!([scene.lab.name()])),
        ("iss", Value::Null),
        ("aud", json!("https://evil.example/mcp")),
        ("aud", json!("https://tools.example.com")),
        ("aud", json!("https://tools.example.com/mcp/")),
        ("aud", json!("https://tools.example.com/mcp/../x")),
        ("aud", json!([])),
        ("aud", json!([["https://tools.example.com/mcp"]])),
        ("aud", json!({"https://tools.example.com/mcp": true})),
        ("aud", Value::Null),
        ("exp", json!(now - 31)),
        ("exp", json!(0)),
        ("exp", json!(-5)),
        ("exp", json!((now + 300).to_string())),
        ("exp", Value::Null),
        ("nbf", json!(now + 31)),
        ("nbf", json!("soon")),
        ("sub", json!("")),
        ("sub", json!(" ada")),
        ("sub", json!("ada\n")),
        ("sub", json!("a\u{0}da")),
        ("sub", json!("a\u{202e}da")),
        ("sub", json!(long)),
        ("sub", json!(["ada"])),
        ("sub", json!(7)),
        ("sub", Value::Null),
    ];
    for (claim, value) in wrong {
        let reply = scene.show(&scene.with(claim, value.clone())).await;
        assert_eq!(reply.status, 401, "{claim} {value}");
        assert_eq!(reply.reason(), "gate.token");
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(!reply.body.contains("eyJ"), "{}", reply.body);
    }
    for claim in ["iss", "aud", "exp", "sub"] {
        let mut claims = scene.claims();
        claims.as_object_mut().unwrap().remove(claim);
        assert_eq!(scene.show(&claims).await.status, 401, "{claim}");
    }
    assert!(scene.world.inside.seen.lock().unwrap().is_empty());
}

/// Clocks that differ are the usual reason, so the answer says by how much.
#[tokio::test]
async fn a_token_out_of_time_says_how_far_the_clocks_differ() {
    let scene = Scene::start(|_| {}).await;
    let now = scene.world.hands.now();
    for (claim, value, words) in [
        (
            "exp",
            now - 45,
            "it expired 45 seconds ago by the clock of this server",
        ),
        ("exp", now - 7_300, "it expired 2 hours ago"),
        (
            "nbf",
            now + 320,
            "its `nbf` is 5 minutes ahead of the clock of this server",
        ),
        ("iat", now + 3 * 86_400, "its `iat` is 3 days ahead"),
    ] {
        let reply = scene.show(&scene.with(claim, json!(value))).await;
        reply.is_refused(401, "gate.token");
        assert!(reply.body.contains(words), "{}", reply.body);
    }
    let just = scene.with("iat", json!(now + 20));
    assert_eq!(scene.show(&just).await.status, 200);
}

#[tokio::test]
async fn headers_of_a_token_choose_nothing_but_a_key_of_the_issuer() {
    let scene = Scene::start(|_| {}).await;
    let evil = Pair::new(Some("one"));
    let claims = scene.claims();
    let same_name = evil.sign(&claims);
    let embedded = json!({
        "alg": "ES256", "kid": "one", "jwk": evil.public(),
        "jku": "http://127.0.0.1:9/evil", "x5u": "http://127.0.0.1:9/evil",
    });
    let tokens = [
        same_name,
        evil.sign_with(&embedded, &claims),
        // Ours by name and by another algorithm than the operator takes.
        scene
            .pair
            .sign_with(&json!({"alg": "ES384", "kid": "one"}), &claims),
        scene
            .pair
            .sign_with(&json!({"alg": "EdDSA", "kid": "one"}), &claims),
        scene
            .pair
            .sign_with(&json!({"alg": "RS256", "kid": "one"}), &claims),
        scene
            .pair
            .sign_with(&json!({"alg": "none", "kid": "one"}), &claims),
        scene
            .pair
            .sign_with(&json!({"alg": "HS256", "kid": "one"}), &claims),
        scene
            .pair
            .sign_with(&json!({"alg": "ES256", "kid": "../one"}), &claims),
        scene
            .pair
            .sign_with(&json!({"alg": "ES256", "kid": "' OR 1=1 --"}), &claims),
    ];
    for token in tokens {
        scene.world.call(&token).await.is_refused(401, "gate.token");
    }
    // The one the token brought along does no harm if ours signed.
    let token = scene.pair.sign_with(&embedded, &claims);
    assert_eq!(scene.world.call(&token).await.status, 200);
    // Without a name the only key is meant.
    let token = scene.pair.sign_with(&json!({"alg": "ES256"}), &claims);
    assert_eq!(scene.world.call(&token).await.status, 200);
    assert_eq!(scene.lab.requests(), ["/keys"]);
}

#[tokio::test]
async fn an_ambiguous_key_name_matches_no_key() {
    let scene = Scene::start(|_| {}).await;
    let other = Pair::new(Some("one"));
    let third = Pair::new(Some("two"));
    scene
        .lab
        .put_keys(&[scene.pair.public(), other.public(), third.public()]);
    let claims = scene.claims();
    scene.show(&claims).await.is_refused(401, "gate.token");
    let unnamed = third.sign_with(&json!({"alg": "ES256"}), &claims);
    scene
        .world
        .call(&unnamed)
        .await
        .is_refused(401, "gate.token");
    assert_eq!(scene.world.call(&third.sign(&claims)).await.status, 200);
}

#[tokio::test]
async fn unknown_key_names_do_not_flood_the_issuer() {
    let scene = Scene::start(|_| {}).await;
    let claims = scene.claims();
    assert_eq!(scene.show(&claims).await.status, 200);
    for round in 1..=3 {
        scene.world.hands.forward(Duration::from_secs(10));
        let stranger = Pair::new(Some("stranger"));
        for count in 0..10 {
            let header = json!({"alg": "ES256", "kid": format!("nobody-{round}-{count}")});
            let token = stranger.sign_with(&header, &claims);
            scene.world.call(&token).await.is_refused(401, "gate.token");
        }
        assert_eq!(scene.lab.requests().len(), 1 + round);
    }
    assert_eq!(scene.show(&claims).await.status, 200);
}

#[tokio::test]
async fn many_at_once_ask_the_issuer_once() {
    let scene = Scene::start(|_| {}).await;
    let token = scene.pair.sign(&scene.claims());
    let calls = (0..20).map(|_| scene.world.call(&token));
    let mut done = 0;
    let mut calls: Vec<_> = calls.map(Box::pin).collect();
    // All of them on their way before any is answered.
    let all = std::future::poll_fn(|context| {
        calls.retain_mut(|call| match call.as_mut().poll(context) {
            std::task::Poll::Ready(reply) => {
                assert_eq!(reply.status, 200);
                done += 1;
                false
            }
            std::task::Poll::Pending => true,
        });
        if calls.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    });
    all.await;
    assert_eq!(done, 20);
    assert_eq!(scene.lab.requests(), ["/keys"]);
}

#[tokio::test]
async fn rotated_issuer_keys_are_followed() {
    let scene = Scene::start(|_| {}).await;
    let old = scene.pair.sign(&scene.claims());
    assert_eq!(scene.world.call(&old).await.status, 200);
    let new = Pair::new(Some("two"));
    scene.lab.put_keys(&[scene.pair.public(), new.public()]);
    // Too soon to ask again.
    let token = new.sign(&scene.claims());
    scene.world.call(&token).await.is_refused(401, "gate.token");
    scene.world.hands.forward(Duration::from_secs(10));
    assert_eq!(scene.world.call(&token).await.status, 200);
    assert_eq!(scene.world.call(&old).await.status, 200);
    // The old one is withdrawn: at the next look it is gone, remembered or not.
    scene.lab.put_keys(&[new.public()]);
    scene.world.hands.forward(Duration::from_secs(10));
    let nobody = Pair::new(Some("nobody")).sign(&scene.claims());
    scene
        .world
        .call(&nobody)
        .await
        .is_refused(401, "gate.token");
    scene.world.call(&old).await.is_refused(401, "gate.token");
    assert_eq!(scene.world.call(&token).await.status, 200);
}

#[tokio::test]
async fn a_remembered_token_still_expires() {
    let scene = Scene::start(|_| {}).await;
    let soon = scene.with("exp", json!(scene.world.hands.now() + 1));
    let token = scene.pair.sign(&soon);
    assert_eq!(scene.world.call(&token).await.status, 200);
    scene.world.hands.forward(Duration::from_secs(29));
    assert_eq!(scene.world.call(&token).await.status, 200);
    scene.world.hands.forward(Duration::from_secs(3));
    scene.world.call(&token).await.is_refused(401, "gate.token");
}

#[tokio::test]
async fn known_keys_survive_a_failing_issuer() {
    let scene = Scene::start(|_| {}).await;
    let day = 24 * 3600;
    let claims = scene.with("exp", json!(scene.world.hands.now() + 3 * day));
    let token = scene.pair.sign(&claims);
    assert_eq!(scene.world.call(&token).await.status, 200);
    scene.lab.fail();
    scene.world.hands.forward(Duration::from_secs(3_600));
    assert_eq!(scene.world.call(&token).await.status, 200);
    let nobody = Pair::new(Some("nobody")).sign(&claims);
    scene
        .world
        .call(&nobody)
        .await
        .is_refused(401, "gate.token");
    scene.lab.put("/keys", "no keys, sorry");
    scene.world.hands.forward(Duration::from_secs(3_600));
    assert_eq!(scene.world.call(&token).await.status, 200);
    // Only for a while.
    scene.world.hands.forward(Duration::from_secs(23 * 3_600));
    scene
        .world
        .call(&token)
        .await
        .is_refused(503, "gate.unavailable");
    assert!(scene.world.auth.issuer_trouble().is_some());
    scene.lab.put_keys(&[scene.pair.public()]);
    scene.world.hands.forward(Duration::from_secs(10));
    assert_eq!(scene.world.call(&token).await.status, 200);
    assert_eq!(scene.world.auth.issuer_trouble(), None);
}

#[tokio::test]
async fn without_keys_of_the_issuer_tokens_are_refused() {
    let scene = Scene::start(|_| {}).await;
    let many: Vec<_> = (0..65).map(|_| scene.pair.public()).collect();
    let huge = format!(
        r#"{{"keys":[{}],"padding":"{}"}}"#,
        scene.pair.public(),
        "x".repeat(300_000)
    );
    let deep = "[".repeat(10_000);
    let documents = [
        json!({"keys": many}).to_string(),
        huge,
        deep,
        "{}".to_owned(),
        r#"{"keys":{}}"#.to_owned(),
        r#"{"keys":[]}"#.to_owned(),
        r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#.to_owned(),
        String::new(),
    ];
    let token = scene.pair.sign(&scene.claims());
    for document in documents {
        scene.lab.put("/keys", &document);
        let reply = scene.world.call(&token).await;
        reply.is_refused(503, "gate.unavailable");
        assert!(!reply.body.contains("127.0.0.1"), "{}", reply.body);
        assert!(scene.world.auth.issuer_trouble().is_some());
        scene.world.hands.forward(Duration::from_secs(10));
    }
    scene.lab.put_keys(&[scene.pair.public()]);
    assert_eq!(scene.world.call(&token).await.status, 200);
}

#[tokio::test]
async fn keys_are_found_by_the_issuers_metadata() {
    let scene = Scene::start(|config| config.jwks_url = None).await;
    let name = scene.lab.name();
    let metadata = json!({"issuer": name, "jwks_uri": format!("{name}/keys")}).to_string();
    scene
        .lab
        .put("/.well-known/openid-configuration", &metadata);
    assert_eq!(scene.show(&scene.claims()).await.status, 200);
    assert_eq!(
        scene.lab.requests(),
        [
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration",
            "/keys",
        ]
    );
    // Found once, asked directly the next time.
    scene.world.hands.forward(Duration::from_secs(10));
    let nobody = Pair::new(Some("nobody")).sign(&scene.claims());
    scene
        .world
        .call(&nobody)
        .await
        .is_refused(401, "gate.token");
    assert_eq!(scene.lab.requests().len(), 4);
}

#[tokio::test]
async fn metadata_that_speak_for_another_are_refused() {
    let scene = Scene::start(|config| config.jwks_url = None).await;
    let name = scene.lab.name();
    let evil = json!({"issuer": "https://evil.example", "jwks_uri": format!("{name}/keys")});
    scene
        .lab
        .put("/.well-known/oauth-authorization-server", &evil.to_string());
    scene
        .show(&scene.claims())
        .await
        .is_refused(503, "gate.unavailable");
    assert!(!scene.lab.requests().contains(&"/keys".to_owned()));
}

#[tokio::test]
async fn clients_are_told_where_to_get_a_token() {
    let scene = Scene::start(|config| {
        config.scopes = vec!["tools:call".to_owned(), "tools:list".to_owned()];
    })
    .await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let reply = scene.world.send("GET", path, &[]).await;
        assert_eq!(reply.status, 200);
        let document: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(document["resource"], "https://tools.example.com/mcp");
        assert_eq!(document["authorization_servers"], json!([scene.lab.name()]));
        assert_eq!(
            document["scopes_supported"],
            json!(["tools:call", "tools:list"])
        );
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    }
    let reply = scene.world.send("POST", "/mcp", &[]).await;
    reply.is_refused(401, "gate.token");
    assert_eq!(
        reply.header("www-authenticate"),
        Some(
            "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\", scope=\"tools:call tools:list\""
        )
    );
    // The issuer was asked nothing for that.
    assert!(scene.lab.requests().is_empty());
}

#[tokio::test]
async fn all_missing_scopes_are_named_at_once() {
    let scene = Scene::start(|config| {
        config.scopes = ["a", "b", "c"].map(str::to_owned).to_vec();
    })
    .await;
    let reply = scene.show(&scene.with("scope", json!("b x"))).await;
    reply.is_refused(403, "gate.scope");
    let challenge = reply.header("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"insufficient_scope\""));
    assert!(challenge.contains("scope=\"a b c\""), "{challenge}");
    assert!(challenge.contains("missing: a c"), "{challenge}");
    for (claim, value, status) in [
        ("scope", json!("a b c"), 200),
        ("scope", json!("c b a extra"), 200),
        ("scp", json!(["a", "b", "c"]), 200),
        ("scp", json!("a b c"), 200),
        ("scope", json!("a,b,c"), 403),
        ("scope", json!("A B C"), 403),
        ("scope", json!(["a b c"]), 403),
        ("scope", json!(7), 403),
        ("other", json!("a b c"), 403),
    ] {
        let reply = scene.show(&scene.with(claim, value.clone())).await;
        assert_eq!(reply.status, status, "{claim} {value}");
    }
}

#[tokio::test]
async fn another_claim_may_name_the_caller_and_a_fresh_token_keeps_the_session() {
    let scene = Scene::start(|config| config.caller_claim = "email".to_owned()).await;
    let token = |email: &str, subject: &str, more: i64| {
        let mut claims = scene.with("email", json!(email));
        claims["sub"] = json!(subject);
        claims["exp"] = json!(scene.world.hands.now() + more);
        format!("Bearer {}", scene.pair.sign(&claims))
    };
    let first = token("ada@example.com", "1", 300);
    let headers = [("Authorization", first.as_str()), ("X-Initialize", "1")];
    let begun = scene.world.send("POST", "/mcp", &headers).await;
    assert_eq!(begun.body, "oauth:ada@example.com");
    let id = begun.header("mcp-session-id").unwrap().to_owned();
    let refreshed = token("ada@example.com", "1", 600);
    assert_ne!(first, refreshed);
    let headers = [
        ("Authorization", refreshed.as_str()),
        ("Mcp-Session-Id", &id),
    ];
    assert_eq!(scene.world.send("POST", "/mcp", &headers).await.status, 200);
    // Another client at the same address.
    let other = token("ada@example.com", "2", 300);
    let headers = [("Authorization", other.as_str()), ("Mcp-Session-Id", &id)];
    let reply = scene.world.send("POST", "/mcp", &headers).await;
    reply.is_refused(404, "gate.session");
    // An issuer cannot name our own callers.
    scene
        .world
        .book
        .add("ada", model::govern::key::Role::Agent, None);
    assert!(begun.body.starts_with("oauth:"));
    scene
        .show(&scene.claims())
        .await
        .is_refused(401, "gate.token");
}

#[tokio::test]
async fn all_invalid_settings_are_reported_together() {
    let lab = Lab::start().await;
    let mut config = lab.config();
    config.algorithms.clear();
    config.issuer = "http://issuer.example".to_owned();
    config.jwks_url = Some("ftp://x".to_owned());
    config.audience = Some(String::new());
    config.scopes = vec!["a b".to_owned()];
    let courier = Arc::new(Courier::default());
    let problems = Oauth::new(&config, "r", courier.clone()).unwrap_err();
    assert_eq!(problems.len(), 5, "{problems:?}");
    for (issuer, is_fine) in [
        ("https://issuer.example", true),
        ("https://issuer.example/realms/x", true),
        ("http://127.0.0.1:8080/realms/x", true),
        ("http://[::1]:8080", true),
        ("http://10.0.0.5", true),
        ("http://localhost:8080", false),
        ("https://user@issuer.example", false),
        ("https://issuer.example?x", false),
        ("https://issuer.example/#x", false),
        ("https://", false),
        ("https:///x", false),
        ("issuer.example", false),
        ("", false),
    ] {
        let mut config = lab.config();
        config.issuer = issuer.to_owned();
        let made = Oauth::new(&config, "r", courier.clone());
        assert_eq!(made.is_ok(), is_fine, "{issuer}");
    }
}

/// Never answers.
#[derive(Debug)]
struct Silent;

impl FetchKeys for Silent {
    fn fetch<'a>(&'a self, _url: &'a str, _bytes_max: usize) -> Fetching<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_silent_is_not_waited_for_long() {
    let hands = Hands::default();
    let config = OauthConfig {
        issuer: "https://issuer.example".to_owned(),
        jwks_url: None,
        audience: None,
        algorithms: vec!["ES256".to_owned()],
        caller_claim: "sub".to_owned(),
        scopes: Vec::new(),
    };
    let oauth = Oauth::new(&config, "r", Arc::new(Silent)).unwrap();
    let token = Pair::new(Some("one")).sign(&json!({}));
    let began = tokio::time::Instant::now();
    let moment = hands.clock().now();
    let answer = oauth.principal(&token, moment).await;
    assert_eq!(answer, Err(Rejection::Unavailable));
    assert_eq!(began.elapsed().as_secs(), 5);
    // And not again so soon.
    let answer = oauth.principal(&token, moment).await;
    assert_eq!(answer, Err(Rejection::Unavailable));
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!(
        oauth.trouble().as_deref(),
        Some("the issuer did not answer in time")
    );
}

#[tokio::test]
async fn hanging_up_does_not_stop_the_fetch_of_keys() {
    let lab = Lab::start().await;
    let pair = Pair::new(Some("one"));
    lab.put_keys(&[pair.public()]);
    let hands = Hands::default();
    let oauth = Oauth::new(&lab.config(), "r", Arc::new(Courier::default())).unwrap();
    let claims = json!({
        "iss": lab.name(), "aud": "https://tools.example.com/mcp",
        "sub": "ada", "exp": hands.now() + 300,
    });
    let token = pair.sign(&claims);
    let moment = hands.clock().now();
    {
        let mut asking = Box::pin(oauth.principal(&token, moment));
        let first = std::future::poll_fn(|context| {
            std::task::Poll::Ready(asking.as_mut().poll(context).is_pending())
        });
        assert!(first.await);
    }
    // The same moment: no second request is allowed, so the first answer is used.
    let answer = oauth.principal(&token, moment).await;
    assert_eq!(answer.unwrap().caller.name, "oauth:ada");
    assert_eq!(lab.requests(), ["/keys"]);
}
