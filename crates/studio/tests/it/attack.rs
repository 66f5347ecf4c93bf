//! What others try: pages of other sites and other ports, planted sessions, guessed codes,
//! names that suddenly lead here, paths that lead elsewhere, text that is not what it seems,
//! and more than fits.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use studio::{Studio, limit};

use crate::world::{Browser, World, asking};

/// A path of the table with something in its places.
fn filled(path: &str) -> String {
    path.replace("{name}", "nothing").replace("{id}", "nothing")
}

fn method(word: &str) -> Method {
    word.parse().unwrap()
}

const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", "default-src 'none'"),
    (
        "content-security-policy",
        "require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Every route, signed in and not, refused or not, and what is no route, has every header.
#[tokio::test]
async fn every_answer_of_every_route_has_the_headers() {
    let world = World::new("");
    let owner = world.owner().await;
    let stranger = Browser::new(&world.router);
    let mut foreign = owner.clone();
    foreign.host = "evil.example.com".to_owned();
    let mut routes = Studio::routes();
    for path in [
        "/",
        "/index.html",
        "/nothing",
        "/api/v1/nothing",
        "/assets/../x",
    ] {
        routes.push(("GET".to_owned(), path.to_owned()));
        routes.push(("POST".to_owned(), path.to_owned()));
    }
    let mut seen = 0;
    for (word, path) in &routes {
        for browser in [&owner, &stranger, &foreign] {
            // A stream does not end, and signing out ends what is tested.
            let is_stream = path.ends_with("/events") || path.ends_with("/sessions");
            if is_stream && std::ptr::eq(browser, &owner)
                || word == "DELETE" && path == "/api/v1/session"
            {
                continue;
            }
            let answer = browser.send(method(word), &filled(path), &json!({})).await;
            for (name, part) in HEADERS {
                let value = answer.header(name);
                assert!(value.contains(part), "{word} {path} {name}: {value}");
            }
            let policy = answer.header("content-security-policy");
            assert!(
                !policy.contains("unsafe") && !policy.contains('*'),
                "{policy}"
            );
            assert!(answer.headers.get("access-control-allow-origin").is_none());
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

/// Every route but those of signing in refuses what has no session, and every one that changes something
/// refuses a session without its header.
#[tokio::test]
async fn no_route_works_without_a_session_and_no_change_without_its_header() {
    let world = World::new("");
    let owner = world.owner().await;
    let stranger = Browser::new(&world.router);
    let mut forged = owner.clone();
    forged.csrf = None;
    let mut wrong = owner.clone();
    wrong.csrf = Some("0".repeat(64));
    let (mut open, mut changes) = (Vec::new(), 0);
    for (word, path) in Studio::routes() {
        let answer = stranger
            .send(method(&word), &filled(&path), &json!({}))
            .await;
        match answer.code() {
            "studio.session" => {}
            other => open.push(format!("{word} {path} {} {other}", answer.status.as_u16())),
        }
        // Signing in has no session yet.
        let is_sign_in = path == "/api/v1/session" && word == "POST";
        if word == "GET" || is_sign_in || path == "/api/v1/session/oauth" {
            continue;
        }
        for browser in [&forged, &wrong] {
            let answer = browser
                .send(method(&word), &filled(&path), &json!({}))
                .await;
            assert_eq!(answer.code(), "studio.csrf", "{word} {path}");
        }
        changes += 1;
    }
    assert_eq!(
        open,
        [
            "POST /api/v1/session 400 studio.request",
            "POST /api/v1/session/oauth 503 studio.unavailable",
            "GET /api/v1/session/oauth/callback 303 ",
            "GET /api/v1/openapi.json 200 ",
        ]
    );
    assert!(changes > 30, "{changes}");
    // The control: with everything in place, a change is made.
    let done = owner
        .post("/api/v1/tools/check", &json!({"document": "{}"}))
        .await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.body);
}

/// Attack: a form of another site, or a script there that needs no leave, sends one of the
/// types that browsers send without asking; or any other.
#[tokio::test]
async fn a_change_is_json_from_our_own_page_or_nothing() {
    let world = World::new("");
    world.publish(&asking("ask")).await;
    let owner = world.owner().await;
    let path = "/api/v1/tools/ask/unpublish";
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
        Some("application/json; charset=utf-16"),
        Some("application/jsonx"),
        Some("text/json"),
        Some("application/json, text/plain"),
    ] {
        let mut browser = owner.clone();
        browser.content_type = kind.map(str::to_owned);
        let answer = browser.post(path, &json!({})).await;
        assert_eq!(answer.code(), "studio.content_type", "{kind:?}");
    }
    for (origin, site) in [
        (Some("https://evil.example.com"), Some("cross-site")),
        (Some("null"), Some("cross-site")),
        (None, Some("cross-site")),
        (None, None),
        // Another port of this host is the same site: the cookie comes along.
        (Some("http://127.0.0.1:9999"), Some("same-site")),
        (Some("http://localhost:7464"), Some("same-site")),
        (Some("http://127.0.0.1:7464"), Some("same-site")),
        (Some("http://127.0.0.1:7464"), Some("cross-site")),
        (Some("http://127.0.0.1:7464"), Some("none")),
    ] {
        let mut browser = owner.clone();
        browser.origin = origin.map(str::to_owned);
        browser.site = site.map(str::to_owned);
        let answer = browser.post(path, &json!({})).await;
        assert_eq!(answer.code(), "studio.origin", "{origin:?} {site:?}");
    }
    // Reading is for our own page too.
    for site in ["cross-site", "same-site"] {
        let mut browser = owner.clone();
        browser.site = Some(site.to_owned());
        browser.mode = Some("navigate".to_owned());
        let answer = browser.get("/api/v1/tools").await;
        assert_eq!(answer.code(), "studio.origin", "{site}");
    }
    let state = owner.get("/api/v1/tools/ask").await.body["state"].clone();
    assert_eq!(state, "ACTIVE", "nothing of that did anything");
    let done = owner.post(path, &json!({})).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.body);
}

/// Attack: a page's own name suddenly leads to this machine.
#[tokio::test]
async fn a_name_that_is_not_ours_is_refused() {
    let world = World::new("");
    let owner = world.owner().await;
    for host in [
        "evil.example.com",
        "evil.example.com:7464",
        "127.0.0.1.example.com",
        "127.1",
        "0.0.0.0:7464",
        "2130706433",
        "localhost.",
        "127.0.0.1:7464@evil",
        "",
    ] {
        let mut browser = owner.clone();
        browser.host = host.to_owned();
        browser.origin = Some(format!("http://{host}"));
        let answer = browser.get("/api/v1/tools").await;
        assert_eq!(answer.code(), "studio.host", "{host}");
        assert!(answer.body["items"].is_null());
    }
    let mut browser = owner.clone();
    browser.host = "localhost:7464".to_owned();
    assert_eq!(browser.get("/api/v1/tools").await.status, StatusCode::OK);
}

/// Attack: a session is planted in the browser before its person signs in.
#[tokio::test]
async fn a_planted_session_is_not_the_one_that_is_opened() {
    let world = World::new("");
    let attacker = world.owner().await;
    let mut victim = Browser::new(&world.router);
    victim.cookie.clone_from(&attacker.cookie);
    let answer = victim
        .post("/api/v1/session", &json!({ "code": world.code() }))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_ne!(answer.cookie(), attacker.cookie);
    // What was planted is over.
    assert_eq!(
        attacker.get("/api/v1/tools").await.status,
        StatusCode::UNAUTHORIZED
    );
    let name = attacker
        .cookie
        .as_deref()
        .unwrap()
        .split_once('=')
        .unwrap()
        .0
        .to_owned();
    let made_up = format!("{name}=rfs_{}", "0".repeat(52));
    let mut browser = Browser::new(&world.router);
    browser.cookie = Some(made_up);
    assert_eq!(
        browser.get("/api/v1/tools").await.status,
        StatusCode::UNAUTHORIZED
    );
}

/// Attack: codes are guessed, many at once.
#[tokio::test]
async fn guessing_codes_is_stopped() {
    let world = World::new("");
    let code = world.code();
    let browser = Browser::new(&world.router);
    let guess = |at: usize| format!("{:05}-{:05}", at, at);
    let tries = (0..200).map(|at| {
        let browser = browser.clone();
        async move {
            browser
                .post("/api/v1/session", &json!({ "code": guess(at) }))
                .await
        }
    });
    let answers = futures_util::future::join_all(tries).await;
    let looked_at = answers
        .iter()
        .filter(|answer| answer.code() == "studio.code")
        .count();
    assert_eq!(looked_at, engine::limit::SIGN_IN_WRONG_PER_MINUTE_MAX);
    let stopped = answers
        .iter()
        .filter(|answer| answer.code() == "studio.rate");
    // All others never came so far: there were too many at one time.
    let busy = answers
        .iter()
        .filter(|answer| answer.code() == "studio.unavailable");
    assert_eq!(stopped.clone().count() + busy.count(), 200 - looked_at);
    assert!(
        stopped
            .clone()
            .all(|answer| !answer.header("retry-after").is_empty())
    );
    // Fails closed: the right one waits too.
    let right = browser
        .post("/api/v1/session", &json!({ "code": code }))
        .await;
    assert_eq!(right.code(), "studio.rate");
}

/// Attack: a path that leads out of the files of the page, and an answer that sends the
/// browser elsewhere.
#[tokio::test]
async fn no_path_leads_out_and_no_answer_sends_away() {
    let world = World::new("");
    let owner = world.owner().await;
    for path in [
        "/../../etc/passwd",
        "/assets/../../ringfence.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/%2e%2e%2fsecrets.env",
        "//evil.example.com/",
        "/%5c..%5cx",
        "/api/v1/../../token",
        "/api/v1/session?next=https://evil.example.com",
        "/?next=//evil.example.com",
    ] {
        let answer = owner.get(path).await;
        assert!(answer.headers.get("location").is_none(), "{path}");
        assert!(!answer.status.is_redirection(), "{path}");
        assert!(!answer.text.contains("root:"), "{path}");
        let is_known = answer.status == StatusCode::NOT_FOUND
            || answer.status == StatusCode::SERVICE_UNAVAILABLE
            || answer.status == StatusCode::BAD_REQUEST
            || path.starts_with("/?") && answer.status == StatusCode::OK;
        assert!(is_known, "{path} {}", answer.status);
    }
}

/// Attack: text of a tool, a caller or an argument that shows as something else. Nothing
/// that is for showing has a control character or one that is not seen.
#[tokio::test]
async fn stored_text_arrives_with_nothing_hidden() {
    let world = World::new("");
    let evil = "a\u{202e}b\u{200b}c\u{1b}[2Jd<script>alert(1)</script>";
    let mut document = asking("ask");
    document["description"] = json!(evil);
    document["category"] = json!("TEXT");
    world.publish(&document).await;
    let owner = world.owner().await;
    let waiting = world.call("ask", json!({ "path": evil }));
    let id = world.question().await;
    let question = owner.get(&format!("/api/v1/inbox/{id}")).await;
    assert_eq!(question.body["argumentsTree"]["children"][0]["hidden"], 3);
    let denied = json!({"revision": question.body["revision"], "answer": "deny", "note": evil});
    let answered = owner
        .post(&format!("/api/v1/inbox/{id}/answer"), &denied)
        .await;
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.body);
    waiting.await.unwrap();
    let entry = owner.get("/api/v1/audit?kind=call&limit=1").await;
    let call = entry.body["items"][0]["id"].as_str().unwrap().to_owned();
    for path in [
        format!("/api/v1/inbox/{id}"),
        "/api/v1/inbox?state=all".to_owned(),
        "/api/v1/tools".to_owned(),
        format!("/api/v1/audit/{call}"),
        "/api/v1/audit".to_owned(),
        "/api/v1/home".to_owned(),
        "/api/v1/sessions".to_owned(),
    ] {
        let answer = owner.get(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        shown(&answer.body, "", &path);
    }
}

/// Walks everything that is for showing. Fields that hold a text verbatim are for editors.
fn shown(value: &Value, name: &str, path: &str) {
    const VERBATIM: [&str; 4] = ["document", "arguments", "inputSchema", "toolFacts"];
    if VERBATIM.contains(&name) {
        return;
    }
    match value {
        Value::String(text) => {
            let is_bad = |letter: &char| model::text::is_hidden(*letter) && *letter != '\n';
            assert_eq!(text.chars().find(is_bad), None, "{path} {name}: {text:?}");
        }
        Value::Array(items) => items.iter().for_each(|item| shown(item, name, path)),
        Value::Object(members) => {
            for (name, item) in members {
                shown(item, name, path);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Ten thousand rows come in pages, each once, and a body or an address that is too long is
/// refused before it is read.
#[tokio::test]
async fn more_than_fits_is_paged_or_refused() {
    let world = World::new("");
    let owner = world.owner().await;
    for at in 0..10_000 {
        let act = model::record::audit::Act::KeyMade;
        let notice = model::record::audit::Notice::new(act, "ann", "cli", &format!("row {at}"));
        world.engine.notice(notice).unwrap();
    }
    let (mut seen, mut cursor) = (std::collections::BTreeSet::new(), None::<String>);
    loop {
        let from = cursor
            .as_ref()
            .map(|at| format!("&cursor={at}"))
            .unwrap_or_default();
        let page = owner
            .get(&format!("/api/v1/audit?kind=notice&limit=500{from}"))
            .await;
        let items = page.body["items"].as_array().unwrap();
        assert!(items.len() <= 500);
        for item in items {
            assert!(
                seen.insert(item["id"].as_str().unwrap().to_owned()),
                "twice"
            );
        }
        match page.body["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert!(seen.len() >= 10_000, "{}", seen.len());
    let large = json!({"document": "x".repeat(limit::BODY_BYTES_MAX)});
    let answer = owner.post("/api/v1/tools/check", &large).await;
    assert_eq!(answer.code(), "studio.too_large");
    let before = Browser::new(&world.router);
    let code = json!({"code": "x".repeat(limit::SIGN_IN_BYTES_MAX)});
    assert_eq!(
        before.post("/api/v1/session", &code).await.code(),
        "studio.too_large"
    );
    let long = format!(
        "/api/v1/audit?tool={}",
        "x".repeat(limit::ADDRESS_CHARS_MAX)
    );
    assert_eq!(owner.get(&long).await.code(), "studio.too_large");
}

/// A result of five megabytes comes whole.
#[tokio::test]
async fn a_large_result_comes_whole() {
    let world = World::new("[baseline]\ntimeout_ms = 20000\n");
    let document = json!({
        "name": "large", "description": "For a test.", "codeType": "Javascript",
        "code": "return 'x'.repeat(5000000);",
    });
    world.publish(&document).await;
    let owner = world.owner().await;
    let expose = json!({"tool": "large", "arguments": {}});
    let answer = owner.post("/api/v1/inspector/call", &expose).await;
    assert_eq!(
        answer.body["status"],
        "done",
        "{}",
        &answer.text[..500.min(answer.text.len())]
    );
    assert_eq!(answer.body["result"].as_str().unwrap().len(), 5_000_000);
    assert_eq!(answer.body["resultBytes"], 5_000_002);
}
