//! Certificates right and wrong, and HTTP/2.

use host::fetch::{Tls, TlsTrust};
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;
use crate::lab::{Lab, Seen, redirect, reply};
use crate::world::{PUBLIC, World};

fn hello(seen: &Seen) -> crate::lab::Reply {
    reply(
        "200 OK\r\ncontent-type: text/plain",
        format!("hello {}", seen.line),
    )
}

async fn world(authority: &Authority, acceptor: TlsAcceptor) -> (World, Lab) {
    let lab = Lab::start_tls(acceptor, hello).await;
    let mut world = World::new("strict")
        .lab(&lab)
        .dns("api.example.com", PUBLIC);
    world.tls = Tls::only(&authority.pem).unwrap();
    (world, lab)
}

#[tokio::test]
async fn the_right_name_is_believed_though_the_address_is_pinned() {
    let authority = Authority::new();
    let (world, lab) = world(&authority, authority.acceptor("api.example.com", &[])).await;
    let answer = world.get("https://api.example.com/x").await.unwrap();
    assert_eq!(answer.bytes, b"hello GET /x HTTP/1.1");
    assert_eq!(world.called(), [format!("{PUBLIC}:443")]);
    assert_eq!(lab.seen()[0].header("host"), Some("api.example.com"));
}

#[tokio::test]
async fn a_trailing_dot_is_no_other_name() {
    let authority = Authority::new();
    let (world, lab) = world(&authority, authority.acceptor("api.example.com", &[])).await;
    let answer = world.get("https://API.example.com./x").await.unwrap();
    assert_eq!(answer.value["url"], "https://api.example.com/x");
    assert_eq!(lab.seen()[0].header("host"), Some("api.example.com"));
}

#[tokio::test]
async fn http2_is_spoken_where_offered() {
    let authority = Authority::new();
    let acceptor = authority.acceptor("api.example.com", &["h2", "http/1.1"]);
    let (world, lab) = world(&authority, acceptor).await;
    let answer = world.get("https://api.example.com/x?y").await.unwrap();
    assert_eq!(answer.value["status"], 200);
    assert_eq!(answer.value["contentType"], "text/plain");
    assert_eq!(lab.seen()[0].line, "GET https://api.example.com/x?y HTTP/2");
}

/// The bounds hold whatever carries the body.
#[tokio::test]
async fn http2_bodies_and_redirects_are_bounded_too() {
    let authority = Authority::new();
    let acceptor = authority.acceptor("api.example.com", &["h2"]);
    let lab = Lab::start_tls(acceptor, |seen| match seen.path() {
        path if path.ends_with("/large") => reply("200 OK", vec![b'a'; 100_001]),
        path if path.ends_with("/fits") => reply("200 OK", vec![b'a'; 100_000]),
        path if path.ends_with("/head") => {
            reply(&format!("200 OK\r\nx: {}", "a".repeat(70_000)), "")
        }
        _ => redirect(302, "http://169.254.169.254/latest/"),
    })
    .await;
    let mut world = World::new("strict")
        .lab(&lab)
        .dns("api.example.com", PUBLIC)
        .limits(|limits| limits.body_bytes_max = 100_000);
    world.tls = Tls::only(&authority.pem).unwrap();
    let answer = world.get("https://api.example.com/fits").await.unwrap();
    assert_eq!(answer.bytes.len(), 100_000);
    for (path, reason) in [
        ("large", "response-body-too-large"),
        ("head", "io"),
        ("away", "literal-private-ip"),
    ] {
        let url = format!("https://api.example.com/{path}");
        assert_eq!(world.reason(&url).await, reason);
    }
    assert!(lab.seen().iter().all(|seen| seen.line.ends_with("HTTP/2")));
}

#[tokio::test]
async fn a_wrong_name_is_refused() {
    let authority = Authority::new();
    let (world, lab) = world(&authority, authority.acceptor("other.example.com", &[])).await;
    assert_eq!(world.reason("https://api.example.com/").await, "tls");
    assert!(lab.seen().is_empty());
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let (known, unknown) = (Authority::new(), Authority::new());
    let (world, lab) = world(&known, unknown.acceptor("api.example.com", &[])).await;
    assert_eq!(world.reason("https://api.example.com/").await, "tls");
    assert!(lab.seen().is_empty());
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let lab = Lab::start(hello).await;
    let world = World::new("strict")
        .lab(&lab)
        .dns("api.example.com", PUBLIC);
    assert_eq!(world.reason("https://api.example.com/").await, "tls");
}

#[tokio::test]
async fn an_address_may_have_a_certificate_too() {
    let authority = Authority::new();
    let acceptor = authority.acceptor("127.0.0.1", &[]);
    let lab = Lab::start_tls(acceptor, hello).await;
    let mut world = World::new("127.0.0.1").lab(&lab);
    world.tls = Tls::only(&authority.pem).unwrap();
    let answer = world.get("https://127.0.0.1/").await.unwrap();
    assert_eq!(answer.value["ok"], true);
}

#[test]
fn an_operator_file_that_is_none_is_an_error() {
    assert!(Tls::only(b"").is_err());
    assert!(Tls::only(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").is_err());
    assert!(Tls::system(Some(b"not pem")).is_err());
    assert!(
        Tls::system(Some(&Authority::new().pem))
            .unwrap()
            .root_count()
            >= 1
    );
}

#[test]
fn what_was_read_is_kept_and_a_bad_file_can_be_mended() {
    let scratch = crate::scratch::Scratch::new("trust");
    let file = scratch.path.join("ca.pem");
    let trust = TlsTrust::system(Some(file.clone()));
    let missing = trust.tls().unwrap_err().to_string();
    assert!(missing.contains("ca.pem"), "{missing}");
    std::fs::write(&file, "not pem").unwrap();
    assert!(trust.tls().is_err());
    std::fs::write(&file, Authority::new().pem).unwrap();
    let count = trust.tls().unwrap().root_count();
    // Read once: neither this clone nor the next call looks at the file again.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(trust.clone().tls().unwrap().root_count(), count);
}

/// Within one call a session may be taken up again; the next call starts anew.
#[tokio::test]
async fn no_session_outlives_its_call() {
    let authority = Authority::new();
    let (world, lab) = world(&authority, authority.acceptor("api.example.com", &[])).await;
    let ask = || host::PowerRequest {
        arguments: serde_json::json!({"url": "https://api.example.com/x"}),
        bytes: Vec::new(),
    };
    for calls in 1..=3 {
        let one_call = world.fetch();
        for _ in 0..2 {
            one_call.run(ask()).await.outcome.unwrap();
        }
        assert_eq!((lab.seen().len(), lab.resumed()), (2 * calls, calls));
    }
}
