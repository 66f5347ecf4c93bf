//! Every wait has a bound. The servers here never end by themselves, so a test
//! that ends has shown the bound; how soon is not asserted.

use std::time::Duration;

use host::fetch::FetchLimits;
use model::record::mask::Masker;
use serde_json::json;

use crate::lab::{Ending, Lab, raw, redirect};
use crate::world::{PUBLIC, World};

const SHORT: Duration = Duration::from_millis(60);
const STEP: Duration = Duration::from_millis(5);
const URL: &str = "http://slow.example.com/";

fn world(change: impl FnOnce(&mut FetchLimits)) -> World {
    World::new("strict")
        .dns("slow.example.com", PUBLIC)
        .limits(change)
}

async fn timed_out(world: World, phase: &str) {
    let ran = world.run(json!({"url": URL}), b"").await;
    let fault = ran.outcome.unwrap_err();
    assert_eq!(fault.reason, "timeout", "{}", fault.told(&Masker::none()));
    assert!(
        fault.told(&Masker::none()).contains(phase),
        "{}",
        fault.told(&Masker::none())
    );
    assert_eq!(ran.events.last().unwrap().refusal, Some("timeout"));
}

#[tokio::test]
async fn a_silent_dns() {
    let world = World::new("strict").dns("slow.example.com", "silence");
    timed_out(world.limits(|limits| limits.resolve = SHORT), "looking up").await;
}

#[tokio::test]
async fn a_silent_address() {
    timed_out(
        world(|limits| limits.connect = SHORT).hanging(),
        "connecting",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_never_says_hello() {
    let lab = Lab::start(|_| raw("", Ending::Hold)).await;
    timed_out(
        world(|limits| limits.first_byte = SHORT).lab(&lab),
        "waiting for the reply",
    )
    .await;
}

#[tokio::test]
async fn a_head_that_drips() {
    let lab = Lab::start(|_| {
        raw(
            "HTTP/1.1 200 OK\r\n",
            Ending::Drip(b"x: y\r\n".into(), STEP),
        )
    })
    .await;
    timed_out(
        world(|limits| limits.first_byte = SHORT).lab(&lab),
        "waiting for the reply",
    )
    .await;
}

#[tokio::test]
async fn a_body_that_stops() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc";
    let lab = Lab::start(move |_| raw(head, Ending::Hold)).await;
    timed_out(
        world(|limits| limits.between_bytes = SHORT).lab(&lab),
        "reading the body",
    )
    .await;
}

/// Always in time, never done.
#[tokio::test]
async fn a_body_that_drips() {
    let lab = Lab::start(|_| raw("HTTP/1.1 200 OK\r\n\r\n", Ending::Drip(b"a".into(), STEP))).await;
    timed_out(
        world(|limits| limits.whole = SHORT * 4).lab(&lab),
        "reading the body",
    )
    .await;
}

#[tokio::test]
async fn the_whole_covers_every_hop() {
    let lab = Lab::start(|seen| match seen.path() {
        "/" => redirect(302, "/hold"),
        _ => raw("", Ending::Hold),
    })
    .await;
    let world = world(|limits| limits.whole = SHORT * 4).lab(&lab);
    let ran = world.run(json!({"url": URL}), b"").await;
    assert_eq!(ran.outcome.unwrap_err().reason, "timeout");
    assert_eq!(ran.events.len(), 2);
}

/// The TLS handshake counts as connecting.
#[tokio::test]
async fn a_server_that_never_shakes_hands() {
    let lab = Lab::start(|_| raw("", Ending::Hold)).await;
    let world = world(|limits| limits.connect = SHORT).lab(&lab);
    let ran = world
        .run(json!({"url": "https://slow.example.com/"}), b"")
        .await;
    assert_eq!(ran.outcome.unwrap_err().reason, "timeout");
}
