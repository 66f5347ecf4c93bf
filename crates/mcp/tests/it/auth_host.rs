//! `Host` and `Origin` as a browser sends them: `cases/auth/addresses.json`, every
//! case over a socket.

use mcp::auth::AuthMode;
use mcp::auth::address::Addresses;
use model::config::Config;
use serde_json::Value;

use crate::auth_world::{Setup, World, exchange};

fn cases() -> Value {
    serde_json::from_str(include_str!("../../../../cases/auth/addresses.json")).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().unwrap().iter();
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn setup(settings: &Value) -> Setup {
    let mut serve = Config::closed().serve;
    serve.public_url = settings["public_url"].as_str().map(str::to_owned);
    serve.hosts = texts(&settings["hosts"]);
    serve.origins = texts(&settings["origins"]);
    Setup {
        serve,
        listen: Some(settings["listen"].as_str().unwrap().parse().unwrap()),
        ..Setup::default()
    }
}

#[tokio::test]
async fn every_host_of_the_table() {
    let cases = cases();
    let world = World::start(setup(&cases["settings"])).await;
    let hosts = cases["hosts"].as_array().unwrap();
    assert!(hosts.len() > 70);
    for case in hosts {
        let hosts = texts(&case["host"]);
        let headers: Vec<_> = hosts.iter().map(|host| ("Host", host.as_str())).collect();
        let reply = exchange(world.address, "GET", "/healthz", &headers, "").await;
        if case["welcome"] == true {
            assert_eq!(reply.status, 200, "{case}");
        } else {
            assert_eq!(reply.status, 403, "{case}");
            assert_eq!(reply.reason(), "gate.host", "{case}");
        }
    }
}

#[tokio::test]
async fn every_origin_of_the_table() {
    let cases = cases();
    let world = World::start(setup(&cases["settings"])).await;
    let origins = cases["origins"].as_array().unwrap();
    assert!(origins.len() > 80);
    for case in origins {
        let origins = texts(&case["origin"]);
        let mut headers = vec![("Host", "localhost:7464")];
        headers.extend(origins.iter().map(|origin| ("Origin", origin.as_str())));
        let reply = exchange(world.address, "GET", "/healthz", &headers, "").await;
        let allowed = reply.header("access-control-allow-origin");
        if case["welcome"] == true {
            assert_eq!(reply.status, 200, "{case}");
            assert_eq!(allowed, origins.first().map(String::as_str), "{case}");
        } else {
            assert_eq!(reply.status, 403, "{case}");
            assert_eq!(reply.reason(), "gate.origin", "{case}");
            assert_eq!(allowed, None, "{case}");
        }
    }
}

#[tokio::test]
async fn every_transport_asks_before_the_call_runs() {
    let world = World::start(Setup::default()).await;
    let token = format!("Bearer {}", world.local.reveal());
    for path in [
        "/mcp",
        "/api/v1/approvals",
        "/healthz",
        "/.well-known/oauth-protected-resource",
    ] {
        let stranger = [("Host", "evil.example"), ("Authorization", token.as_str())];
        let reply = exchange(world.address, "GET", path, &stranger, "").await;
        reply.is_refused(403, "gate.host");
        let page = [
            ("Origin", "https://evil.example"),
            ("Authorization", &token),
        ];
        world
            .send("GET", path, &page)
            .await
            .is_refused(403, "gate.origin");
        // Even a wrong key is not told before the page is.
        let both = [("Origin", "null"), ("Authorization", "Bearer wrong")];
        world
            .send("GET", path, &both)
            .await
            .is_refused(403, "gate.origin");
    }
    let counts = world.auth.refused();
    assert_eq!(counts, [("gate.host", 4), ("gate.origin", 8)]);
}

#[tokio::test]
async fn a_full_address_in_the_first_line_is_a_host_too() {
    let world = World::start(Setup::default()).await;
    let host = world.address.to_string();
    let ours = format!("http://{host}/healthz");
    let headers = [("Host", host.as_str())];
    let reply = exchange(world.address, "GET", &ours, &headers, "").await;
    assert_eq!(reply.status, 200);
    for theirs in [
        "http://evil.example/healthz",
        "http://localhost@evil.example/healthz",
        "http://user@localhost/healthz",
    ] {
        let reply = exchange(world.address, "GET", theirs, &headers, "").await;
        reply.is_refused(403, "gate.host");
    }
    let headers = [("Host", "evil.example")];
    let reply = exchange(world.address, "GET", &ours, &headers, "").await;
    reply.is_refused(403, "gate.host");
}

#[tokio::test]
async fn cors_headers_go_to_allowed_origins_only() {
    let mut setup = Setup::default();
    setup.serve.origins = vec!["https://app.example.com".to_owned()];
    let world = World::start(setup).await;
    let ask = |origin: &'static str| {
        [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            (
                "Access-Control-Request-Headers",
                "authorization,mcp-param-city, x-evil,mcp-param-bad\"",
            ),
        ]
    };
    let reply = world
        .send("OPTIONS", "/mcp", &ask("https://app.example.com"))
        .await;
    assert_eq!(reply.status, 204);
    assert_eq!(
        reply.header("access-control-allow-origin"),
        Some("https://app.example.com")
    );
    let allowed = reply.header("access-control-allow-headers").unwrap();
    assert_eq!(
        allowed,
        "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id, mcp-param-city"
    );
    assert_eq!(
        reply.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    assert_eq!(reply.header("access-control-max-age"), Some("600"));
    assert_eq!(reply.header("vary"), Some("Origin"));
    assert_eq!(reply.header("access-control-allow-credentials"), None);

    let reply = world
        .send("OPTIONS", "/mcp", &ask("https://evil.example"))
        .await;
    reply.is_refused(403, "gate.origin");
    let told = |(name, _): &(String, String)| name.starts_with("access-control");
    assert!(!reply.headers.iter().any(told));

    // A request that only looks like the question needs a key like any other.
    let reply = world
        .send("OPTIONS", "/mcp", &[("Origin", "https://app.example.com")])
        .await;
    reply.is_refused(401, "gate.token");
    // A page can read what helps it to go on.
    assert_eq!(
        reply.header("access-control-expose-headers"),
        Some("Mcp-Session-Id, WWW-Authenticate, Retry-After")
    );
}

#[tokio::test]
async fn no_auth_still_checks_the_origin() {
    let setup = Setup {
        mode: AuthMode::Off,
        ..Setup::default()
    };
    let world = World::start(setup).await;
    let reply = world.send("POST", "/mcp", &[]).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "local"));
    let page = [("Origin", "https://evil.example")];
    let reply = world.send("POST", "/mcp", &page).await;
    reply.is_refused(403, "gate.origin");
    let rebound = [("Host", "evil.example")];
    let reply = exchange(world.address, "POST", "/mcp", &rebound, "").await;
    reply.is_refused(403, "gate.host");
}

#[test]
fn all_invalid_settings_are_reported_together() {
    let listen = "127.0.0.1:1".parse().unwrap();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let hosts: Vec<String> = words(&["good.example", "http://x", "x:80", "x/y", "a b", "*"]);
    let origins: Vec<String> = words(&[
        "https://good.example",
        "good.example",
        "null",
        "*",
        "https://x/",
        "https://X",
        "https://*.x",
    ]);
    let problems = Addresses::new(listen, Some("tools.example.com"), &hosts, &origins);
    assert_eq!(problems.unwrap_err().len(), 1 + 5 + 6);
    for bad in [
        "ftp://x",
        "https://",
        "https://u@x",
        "https://x?y",
        "https://x/#y",
        "https://x/\"y",
        "",
    ] {
        let problems = Addresses::new(listen, Some(bad), &[], &[]).unwrap_err();
        assert!(problems[0].contains("serve.public_url"), "{bad}");
    }
    let base = |url| {
        Addresses::new(listen, url, &[], &[])
            .unwrap()
            .base()
            .to_owned()
    };
    assert_eq!(base(None), "http://127.0.0.1:1");
    assert_eq!(base(Some("https://x.example/")), "https://x.example");
    assert_eq!(base(Some("https://x.example/a/")), "https://x.example/a");
}

/// A probe reaches a machine by its address and knows none of its names. That address does,
/// and nothing else that is none of its names.
#[tokio::test]
async fn a_probe_may_name_the_address_it_reached() {
    let world = World::start(Setup::default()).await;
    let cases = [
        ("10.1.2.3", 200),
        ("10.1.2.3:7464", 200),
        ("localhost", 200),
        ("10.1.2.4", 403),
        ("0.0.0.0", 403),
        ("evil.example", 403),
        ("10.1.2.3.evil.example", 403),
        ("", 403),
    ];
    for (host, status) in cases {
        let headers = [("Host", host)];
        let reply = exchange(world.address, "GET", "/readyz", &headers, "").await;
        assert_eq!(reply.status, status, "{host}");
    }
    // It is good for probes and for nothing else.
    let headers = [("Host", "10.1.2.3")];
    for path in ["/healthz", "/mcp"] {
        let reply = exchange(world.address, "GET", path, &headers, "").await;
        reply.is_refused(403, "gate.host");
    }
    let headers = [("Host", "10.1.2.3"), ("Origin", "http://10.1.2.3")];
    let reply = exchange(world.address, "GET", "/readyz", &headers, "").await;
    reply.is_refused(403, "gate.origin");
}
