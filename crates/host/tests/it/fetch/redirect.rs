//! Redirects: every hop decided anew, and credentials that stay at home.

use serde_json::{Value, json};

use crate::lab::{Lab, Reply, Seen, redirect, reply};
use crate::world::{PUBLIC, World};

const TABLE: &str = include_str!("../../../../../cases/host/address/table.txt");

/// `/to?<url>` sends elsewhere, with the status the path says; anything else is
/// an answer that says what arrived.
fn lab(seen: &Seen) -> Reply {
    let path = seen.path();
    match path.strip_prefix('/').and_then(|path| path.split_once("?")) {
        Some((status, to)) => redirect(status.parse().unwrap(), to),
        None => reply("200 OK", &seen.line),
    }
}

async fn world(grant: &str) -> (World, Lab) {
    let lab = Lab::start(lab).await;
    let world = World::new(grant)
        .lab(&lab)
        .dns("a.example.com", PUBLIC)
        .dns("b.example.com", PUBLIC);
    (world, lab)
}

#[tokio::test]
async fn a_redirect_to_any_reserved_place_is_refused() {
    let (base, lab) = world("strict").await;
    let mut count = 0;
    for line in TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (host, verdict) = line.split_once(' ').unwrap();
        if matches!(verdict.trim(), "public" | "invalid") || !host.is_ascii() {
            continue;
        }
        let world = World::new("strict").lab(&lab).dns("a.example.com", PUBLIC);
        let ran = world
            .run(
                json!({"url": format!("http://a.example.com/302?http://{host}/")}),
                b"",
            )
            .await;
        let fault = ran.outcome.unwrap_err();
        assert!(
            matches!(fault.reason, "literal-private-ip" | "resolved-private-ip"),
            "{host}: {}",
            fault.reason
        );
        assert_eq!(world.called(), [format!("{PUBLIC}:80")], "{host}");
        assert_eq!(ran.events.len(), 2);
        assert_eq!(
            (ran.events[0].status, ran.events[0].refusal),
            (Some(302), None)
        );
        assert_eq!(ran.events[1].refusal, Some(fault.reason));
        count += 1;
    }
    assert!(count >= 200, "only {count}");
    drop(base);
}

/// To a name that turns out to be inside, and to what is not the web.
#[tokio::test]
async fn a_redirect_is_checked_like_the_first_request() {
    let (world, _lab) = world("strict").await;
    let world = world.dns("inside.example.com", "10.0.0.1");
    for (to, reason) in [
        ("http://inside.example.com/", "resolved-private-ip"),
        ("file:///etc/passwd", "unsupported-scheme"),
        ("gopher://b.example.com/", "unsupported-scheme"),
        ("http://u:p@b.example.com/", "invalid-url"),
        ("http://[::1", "invalid-url"),
        ("//127.0.0.1/", "literal-private-ip"),
        ("http://b.example.com:25/", "port-blocked"),
    ] {
        let url = format!("http://a.example.com/307?{to}");
        assert_eq!(world.reason(&url).await, reason, "{to}");
    }
}

#[tokio::test]
async fn a_list_holds_on_every_hop() {
    let (world, _lab) = world("a.example.com").await;
    let url = "http://a.example.com/302?http://b.example.com/";
    assert_eq!(world.reason(url).await, "host-not-in-allowlist");
    let url = "http://a.example.com/302?/next";
    let answer = world.get(url).await.unwrap();
    assert_eq!(answer.value["url"], "http://a.example.com/next");
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_not() {
    let chain = |count: usize| {
        let lab = Lab::start(move |seen| {
            let step: usize = seen.path().trim_start_matches('/').parse().unwrap();
            match step < count {
                true => redirect(302, &format!("/{}", step + 1)),
                false => reply("200 OK", "end"),
            }
        });
        async move {
            let lab = lab.await;
            let world = World::new("strict").lab(&lab).dns("a.example.com", PUBLIC);
            world
                .run(json!({"url": "http://a.example.com/0"}), b"")
                .await
        }
    };
    let five = chain(5).await;
    assert_eq!(five.outcome.unwrap().bytes, b"end");
    assert_eq!(five.events.len(), 6);
    let six = chain(6).await;
    assert_eq!(six.outcome.unwrap_err().reason, "too-many-redirects");
    assert_eq!(six.events.len(), 7);
    assert_eq!(six.events[6].refusal, Some("too-many-redirects"));
}

#[tokio::test]
async fn a_loop_ends() {
    let lab = Lab::start(|_| redirect(301, "/again")).await;
    let world = World::new("strict").lab(&lab).dns("a.example.com", PUBLIC);
    assert_eq!(
        world.reason("http://a.example.com/").await,
        "too-many-redirects"
    );
    assert_eq!(lab.seen().len(), 6);
}

#[tokio::test]
async fn methods_and_bodies_change_as_the_status_says() {
    for (status, method, expected, keeps_body) in [
        (301, "POST", "GET", false),
        (301, "PUT", "GET", false),
        (301, "DELETE", "DELETE", true),
        (302, "PATCH", "GET", false),
        (302, "POST", "GET", false),
        (302, "HEAD", "HEAD", false),
        (303, "POST", "GET", false),
        (303, "DELETE", "GET", false),
        (303, "HEAD", "HEAD", false),
        (307, "POST", "POST", true),
        (307, "GET", "GET", false),
        (308, "PUT", "PUT", true),
    ] {
        let (world, lab) = world("strict").await;
        let url = format!("http://a.example.com/{status}?/end");
        let headers = json!({"content-type": "text/plain", "x-kept": "yes"});
        let ask = json!({"url": url, "method": method, "headers": headers});
        world.run(ask, b"body").await.outcome.unwrap();
        let last = lab.seen().pop().unwrap();
        assert_eq!(last.method(), expected, "{status} {method}");
        assert_eq!(last.body == b"body", keeps_body, "{status} {method}");
        assert_eq!(last.header("x-kept"), Some("yes"));
        let becomes_get = method != expected;
        assert_eq!(
            last.header("content-type").is_some(),
            !becomes_get,
            "{status} {method}"
        );
    }
}

fn credentials() -> Value {
    json!({
        "Authorization": "Bearer token",
        "Cookie": "session=1",
        "X-Api-Key": "s3cret-value",
        "X-Basic": "Basic dXNlcjpzM2NyZXQtdmFsdWU=",
        "X-Other": "plain",
    })
}

#[tokio::test]
async fn credentials_do_not_follow_to_another_origin() {
    for to in [
        "http://b.example.com/end",
        "http://a.example.com:8080/end",
        "http://b.example.com/302?http://a.example.com/end",
    ] {
        let (world, lab) = world("strict").await;
        let world = world.secret("s3cret-value");
        let url = format!("http://a.example.com/302?{to}");
        world
            .run(json!({"url": url, "headers": credentials()}), b"")
            .await
            .outcome
            .unwrap();
        let seen = lab.seen();
        let names = ["authorization", "cookie", "x-api-key", "x-basic", "x-other"];
        let kept = |seen: &Seen| names.map(|name| seen.header(name).is_some());
        assert_eq!(kept(&seen[0]), [true; 5]);
        for later in &seen[1..] {
            assert_eq!(kept(later), [false, false, false, false, true], "{to}");
        }
    }
}

#[tokio::test]
async fn credentials_follow_within_an_origin() {
    let (world, lab) = world("strict").await;
    let world = world.secret("s3cret-value");
    let ask = json!({"url": "http://a.example.com/302?/end", "headers": credentials()});
    world.run(ask, b"").await.outcome.unwrap();
    let last = lab.seen().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer token"));
    assert_eq!(last.header("x-api-key"), Some("s3cret-value"));
}

/// A header can be dropped; a body that holds a secret stops the chain, in any
/// of the forms a secret is known by.
#[tokio::test]
async fn a_secret_in_the_body_does_not_follow_to_another_origin() {
    for (to, body, expected) in [
        (
            "http://b.example.com/end",
            "key=s3cret-value",
            Some("redirect-with-secret"),
        ),
        (
            "http://b.example.com/end",
            "dXNlcjpzM2NyZXQtdmFsdWU=",
            Some("redirect-with-secret"),
        ),
        ("http://b.example.com/end", "key=other", None),
        ("http://a.example.com/end", "key=s3cret-value", None),
    ] {
        let (world, lab) = world("strict").await;
        let world = world.secret("s3cret-value");
        let url = format!("http://a.example.com/307?{to}");
        let ask = json!({"url": url, "method": "POST"});
        let ran = world.run(ask, body.as_bytes()).await;
        assert_eq!(
            ran.outcome.err().map(|fault| fault.reason),
            expected,
            "{to} {body}"
        );
        assert_eq!(ran.events[1].refusal, expected);
        assert!(to.contains(&ran.events[1].host), "{to}");
        assert_eq!(lab.seen().len(), if expected.is_some() { 1 } else { 2 });
    }
}

/// Nor does a secret in the URL, which a server may copy into its redirect.
#[tokio::test]
async fn a_secret_in_the_url_does_not_follow_to_another_origin() {
    for (to, expected) in [
        (
            "http://b.example.com/key/s3cret-value",
            Some("redirect-with-secret"),
        ),
        (
            "http://b.example.com/s3cret%2Dvalue",
            Some("redirect-with-secret"),
        ),
        (
            "http://a.example.com:8080/key/s3cret-value",
            Some("redirect-with-secret"),
        ),
        ("http://b.example.com/key/other", None),
        ("http://a.example.com/key/s3cret-value", None),
    ] {
        let (world, lab) = world("strict").await;
        let world = world.secret("s3cret-value");
        let url = format!("http://a.example.com/302?{to}");
        let ran = world.run(json!({"url": url}), b"").await;
        let fault = ran.outcome.err().map(|fault| fault.reason);
        assert_eq!(fault, expected, "{to}");
        assert_eq!(ran.events[1].refusal, expected, "{to}");
        assert_eq!(lab.seen().len(), if expected.is_some() { 1 } else { 2 });
    }
}

#[tokio::test]
async fn what_sends_nowhere_is_an_answer() {
    for head in [
        "304 Not Modified\r\nlocation: /x",
        "302 Found",
        "300 Multiple Choices",
    ] {
        let lab = Lab::start(move |_| reply(head, "")).await;
        let world = World::new("strict").lab(&lab).dns("a.example.com", PUBLIC);
        let answer = world.get("http://a.example.com/").await.unwrap();
        assert_eq!(answer.value["ok"], false);
        assert_eq!(lab.seen().len(), 1);
    }
}

/// A key is a credential however it is written: escaped as `encodeURI` does, in JSON,
/// in JSON in JSON, in base64 of either kind.
#[tokio::test]
async fn no_spelling_of_a_key_crosses_origins() {
    let key = "k&y/1 \"ä\"+wide";
    for spelt in [
        "k&y/1%20%22%C3%A4%22+wide",
        "k%26y%2F1%20%22%C3%A4%22%2Bwide",
        r#"{"key":"k\u0026y\/1 \"\u00e4\"+wide"}"#,
        r#""{\"key\":\"k&y/1 \\\"\u00e4\\\"+wide\"}""#,
        "ayZ5LzEgIsOkIit3aWRl",
        "Bearer ayZ5LzEgIuQiK3dpZGU=",
        "6b26792f312022c3a4222b77696465",
    ] {
        let (world, lab) = world("strict").await;
        let world = world.secret(key);
        let url = "http://a.example.com/307?http://b.example.com/";
        let headers = json!({"url": url, "headers": {"x-key": spelt, "x-plain": "stays"}});
        world.run(headers, b"").await.outcome.unwrap();
        let seen = lab.seen();
        assert!(seen[0].header("x-key").is_some(), "{spelt}");
        assert_eq!(seen[1].header("x-key"), None, "{spelt}");
        assert_eq!(seen[1].header("x-plain"), Some("stays"), "{spelt}");
        let body = json!({"url": url, "method": "POST"});
        let ran = world.run(body, spelt.as_bytes()).await;
        assert_eq!(
            ran.outcome.unwrap_err().reason,
            "redirect-with-secret",
            "{spelt}"
        );
    }
}
