//! What goes out and what comes back when all is well, and asks that make no
//! sense.

use std::sync::Arc;

use host::fetch::{Fetch, FetchSettings};
use host::{FaultKind, PowerRequest};
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use serde_json::{Value, json};

use crate::lab::{Ending, Lab, raw, reply};
use crate::world::World;

async fn world() -> (World, Lab) {
    let lab = Lab::start(|seen| {
        let headers = "content-type: text/plain; charset=utf-8\r\nx-a: 1\r\nx-a: 2";
        let status = seen
            .path()
            .trim_start_matches('/')
            .split('?')
            .next()
            .unwrap_or("");
        let status = if status.is_empty() { "200" } else { status };
        reply(&format!("{status} Whatever\r\n{headers}"), "0123456789")
    })
    .await;
    (World::new("127.0.0.1").lab(&lab), lab)
}

#[tokio::test]
async fn the_answer_has_the_shape_authors_rely_on() {
    let (world, lab) = world().await;
    let ran = world
        .run(json!({"url": "http://127.0.0.1/?q=a b#part"}), b"")
        .await;
    let answer = ran.outcome.unwrap();
    let expected = json!({
        "status": 200,
        "ok": true,
        "statusText": "OK",
        "url": "http://127.0.0.1/?q=a%20b",
        "truncated": false,
        "nextStartIndex": null,
        "contentType": "text/plain; charset=utf-8",
        "headers": [
            ["content-type", "text/plain; charset=utf-8"],
            ["x-a", "1"],
            ["x-a", "2"],
            ["content-length", "10"],
        ],
    });
    assert_eq!(answer.value, expected);
    assert_eq!(answer.bytes, b"0123456789");
    let seen = &lab.seen()[0];
    assert_eq!(seen.line, "GET /?q=a%20b HTTP/1.1");
    assert_eq!(seen.header("accept"), Some("*/*"));
    assert!(seen.header("user-agent").unwrap().starts_with("ringfence/"));
    let event = ran.events[0].to_json();
    assert_eq!(event["host"], "127.0.0.1");
    assert_eq!(event["address"], "127.0.0.1");
    assert_eq!(event["status"], 200);
    assert_eq!(event["bytes"], 10);
    assert_eq!(event["refusal"], Value::Null);
}

#[tokio::test]
async fn status_words_are_those_of_the_table() {
    let (world, _lab) = world().await;
    for (status, text, ok) in [
        (200, "OK", true),
        (201, "Created", true),
        (202, "", true),
        (400, "Bad Request", false),
        (401, "Unauthorized", false),
        (403, "Forbidden", false),
        (404, "Not Found", false),
        (418, "", false),
        (429, "", false),
        (500, "Internal Server Error", false),
        (502, "Bad Gateway", false),
        (503, "Service Unavailable", false),
    ] {
        let answer = world
            .get(&format!("http://127.0.0.1/{status}"))
            .await
            .unwrap();
        assert_eq!(answer.value["status"], status);
        assert_eq!(answer.value["statusText"], text, "{status}");
        assert_eq!(answer.value["ok"], ok, "{status}");
    }
}

#[tokio::test]
async fn a_window_is_cut_from_the_body() {
    let (world, _lab) = world().await;
    for (start, length, bytes, next) in [
        (json!(0), json!(0), "0123456789", json!(null)),
        (json!(0), json!(4), "0123", json!(4)),
        (json!(4), json!(4), "4567", json!(8)),
        (json!(8), json!(4), "89", json!(null)),
        (json!(6), json!(4), "6789", json!(null)),
        (json!(3), json!(null), "3456789", json!(null)),
        (json!(-5), json!(2), "01", json!(2)),
        (json!(99), json!(2), "", json!(null)),
        (json!(0), json!(-1), "0123456789", json!(null)),
        (json!(2.0), json!(3.9), "234", json!(5)),
        (json!(1e300), json!(1e300), "", json!(null)),
        (json!("2"), json!("3"), "0123456789", json!(null)),
    ] {
        let ask = json!({"url": "http://127.0.0.1/", "startIndex": start, "maxLength": length});
        let answer = world.run(ask, b"").await.outcome.unwrap();
        assert_eq!(answer.bytes, bytes.as_bytes(), "{start} {length}");
        assert_eq!(answer.value["truncated"], next != json!(null));
        assert_eq!(answer.value["nextStartIndex"], next, "{start} {length}");
    }
}

#[tokio::test]
async fn method_body_and_headers_arrive() {
    let (world, lab) = world().await;
    let headers = json!({"X-One": "1", "X-Null": null, "x-latin": "é", "Accept": "text/html"});
    let ask = json!({"url": "http://127.0.0.1/", "method": "post", "headers": headers});
    world.run(ask, b"payload").await.outcome.unwrap();
    let seen = &lab.seen()[0];
    assert_eq!(seen.method(), "POST");
    assert_eq!(seen.body, b"payload");
    assert_eq!(seen.header("x-one"), Some("1"));
    assert_eq!(seen.header("x-null"), None);
    assert_eq!(seen.header("accept"), Some("text/html"));
    assert_eq!(seen.header("content-length"), Some("7"));
}

#[tokio::test]
async fn headers_of_the_connection_are_dropped_without_a_word() {
    let (world, lab) = world().await;
    let names = [
        "Connection",
        "Content-Length",
        "EXPECT",
        "Host",
        "Upgrade",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Keep-Alive",
    ];
    let mut headers = json!({"X-Kept": "yes"});
    for name in names {
        headers[name] = json!("evil.example.com");
    }
    let ask = json!({"url": "http://127.0.0.1/", "headers": headers});
    world.run(ask, b"ignored for GET").await.outcome.unwrap();
    let seen = &lab.seen()[0];
    assert_eq!(seen.header("host"), Some("127.0.0.1"));
    assert_eq!(seen.header("x-kept"), Some("yes"));
    let values: Vec<_> = seen
        .headers
        .iter()
        .filter(|(_, value)| value.contains("evil"))
        .collect();
    assert!(values.is_empty(), "{values:?}");
    assert!(seen.body.is_empty());
}

#[tokio::test]
async fn asks_that_make_no_sense_never_leave() {
    let (world, lab) = world().await;
    let url = "http://127.0.0.1/";
    let many: Value = (0..65)
        .map(|index| (format!("x-{index}"), json!("v")))
        .collect();
    for (ask, reason) in [
        (json!({}), "missing-url"),
        (json!(null), "missing-url"),
        (json!({"url": ""}), "missing-url"),
        (json!({"url": 7}), "missing-url"),
        (
            json!({"url": format!("{url}{}", "a".repeat(20_000))}),
            "invalid-url",
        ),
        (
            json!({"url": url, "headers": {"x": "a\r\nhost: evil"}}),
            "invalid-header",
        ),
        (
            json!({"url": url, "headers": {"x": "a\nb"}}),
            "invalid-header",
        ),
        (
            json!({"url": url, "headers": {"x": "a\u{0}b"}}),
            "invalid-header",
        ),
        (
            json!({"url": url, "headers": {"x": "snow ☃"}}),
            "invalid-header",
        ),
        (
            json!({"url": url, "headers": {"x\r\ny": "a"}}),
            "invalid-header",
        ),
        (
            json!({"url": url, "headers": {"x y": "a"}}),
            "invalid-header",
        ),
        (json!({"url": url, "headers": {"": "a"}}), "invalid-header"),
        (json!({"url": url, "headers": {"x": 1}}), "invalid-header"),
        (
            json!({"url": url, "headers": {"host": "a\r\nb"}}),
            "invalid-header",
        ),
        (json!({"url": url, "headers": "x: y"}), "invalid-header"),
        (json!({"url": url, "headers": many}), "request-too-large"),
        (
            json!({"url": url, "headers": {"x": "a".repeat(40_000)}}),
            "request-too-large",
        ),
        (json!({"url": url, "method": "GE T"}), "invalid-method"),
        (
            json!({"url": url, "method": "GET / HTTP/1.1\r\nx: y"}),
            "invalid-method",
        ),
        (json!({"url": url, "method": ""}), "invalid-method"),
        (json!({"url": url, "method": "CONNECT"}), "invalid-method"),
        (json!({"url": url, "method": "trace"}), "invalid-method"),
        (json!({"url": url, "method": 1}), "invalid-method"),
    ] {
        let fault = world.run(ask.clone(), b"").await.outcome.unwrap_err();
        assert_eq!(fault.reason, reason, "{ask}");
        assert_eq!(fault.kind, FaultKind::InvalidInput);
        assert!(fault.told(&Masker::none()).len() < 500, "{ask}");
    }
    assert!(lab.seen().is_empty());
}

#[tokio::test]
async fn a_body_beyond_the_bound_never_leaves() {
    let (world, lab) = world().await;
    let world = world.limits(|limits| limits.request_body_bytes_max = 10);
    let ask = json!({"url": "http://127.0.0.1/", "method": "POST"});
    let fault = world.run(ask, b"01234567890").await.outcome.unwrap_err();
    assert_eq!(fault.reason, "request-too-large");
    assert!(lab.seen().is_empty());
}

#[tokio::test]
async fn odd_methods_are_tokens_too() {
    let (world, lab) = world().await;
    let ask = json!({"url": "http://127.0.0.1/", "method": "propfind"});
    world.run(ask, b"<x/>").await.outcome.unwrap();
    assert_eq!(lab.seen()[0].method(), "PROPFIND");
}

#[tokio::test]
async fn a_reply_that_is_none_is_an_io_fault() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(70_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(200));
    for bytes in [
        "",
        "hello",
        "HTTP/1.1 999999 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        &long,
        &many,
    ] {
        let bytes = bytes.to_owned();
        let lab = Lab::start(move |_| raw(bytes.clone(), Ending::Close)).await;
        let world = World::new("127.0.0.1").lab(&lab);
        assert_eq!(world.reason("http://127.0.0.1/").await, "io");
    }
}

/// Everything else here goes through a wire of the tests; this goes through TCP.
#[tokio::test]
async fn the_connector_of_the_product_connects() {
    let lab = Lab::start(|_| reply("200 OK", "real")).await;
    let secrets = Arc::new(Masker::new([]).unwrap());
    let settings = FetchSettings::new(crate::world::nobody(), secrets);
    let grant = NetworkGrant::Allowlist(vec![HostPattern::parse("127.0.0.1").unwrap()]);
    let fetch = Fetch::from_grant(&grant, &HostBounds::default(), settings).unwrap();
    let ask = PowerRequest {
        arguments: json!({"url": format!("http://{}/", lab.address)}),
        bytes: Vec::new(),
    };
    let ran = fetch.run(ask).await;
    assert_eq!(ran.outcome.unwrap().bytes, b"real");
    assert_eq!(ran.events[0].address, Some(lab.address.ip()));
    assert_eq!(ran.events[0].port, Some(lab.address.port()));
}

/// More than may run at once take turns; none is lost.
#[tokio::test]
async fn many_at_once_take_turns() {
    let (world, lab) = world().await;
    let world = world.limits(|limits| limits.concurrent_max = 2);
    let fetch = world.fetch();
    let ask = || PowerRequest {
        arguments: json!({"url": "http://127.0.0.1/"}),
        bytes: Vec::new(),
    };
    let (a, b, c, d) = tokio::join!(
        fetch.run(ask()),
        fetch.run(ask()),
        fetch.run(ask()),
        fetch.run(ask())
    );
    for ran in [a, b, c, d] {
        assert_eq!(ran.outcome.unwrap().bytes, b"0123456789");
    }
    assert_eq!(lab.seen().len(), 4);
}
