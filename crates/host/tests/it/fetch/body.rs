//! Bodies: too long, too short, endless, swelling, broken.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use host::{PowerFault, PowerReply};
use model::record::mask::Masker;
use serde_json::json;

use crate::lab::{Ending, Lab, raw, reply};
use crate::world::World;

const URL: &str = "http://127.0.0.1/";

async fn got(bytes: Vec<u8>, ending: Ending, world: World) -> Result<PowerReply, PowerFault> {
    let lab = Lab::start(move |_| raw(bytes.clone(), ending.clone())).await;
    world.lab(&lab).get(URL).await
}

/// Bounds that a test can reach.
fn small() -> World {
    World::new("127.0.0.1").limits(|limits| {
        limits.body_bytes_max = 100_000;
        limits.ratio_free_bytes = 1_000;
        limits.ratio_max = 20;
    })
}

#[track_caller]
fn too_large(result: Result<PowerReply, PowerFault>) -> PowerFault {
    let fault = result.expect_err("too large");
    assert_eq!(
        fault.reason,
        "response-body-too-large",
        "{}",
        fault.told(&Masker::none())
    );
    assert!(fault.told(&Masker::none()).starts_with("[fetch] denied: "));
    assert!(fault.told(&Masker::none()).contains("127.0.0.1"));
    fault
}

#[tokio::test]
async fn a_body_stops_at_its_bound() {
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let exact = [head.as_bytes(), &[b'a'; 100_000]].concat();
    assert_eq!(
        got(exact.clone(), Ending::Close, small())
            .await
            .unwrap()
            .bytes
            .len(),
        100_000
    );
    let over = [&exact, &b"a"[..]].concat();
    too_large(got(over, Ending::Close, small()).await);
    too_large(got(head.into(), Ending::Endless(vec![b'a'; 1000]), small()).await);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = Ending::Endless(b"4\r\nabcd\r\n".to_vec());
    too_large(got(chunked.into(), chunk, small()).await);
}

/// Refused on its own word: the server never sends it, and would never end.
#[tokio::test]
async fn a_long_promise_is_refused_at_once() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    too_large(got(head.into(), Ending::Hold, small()).await);
}

#[tokio::test]
async fn a_lying_length_is_an_io_fault() {
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    ] {
        let fault = got(head.into(), Ending::Close, small())
            .await
            .expect_err(head);
        assert_eq!(fault.reason, "io", "{head}");
    }
    // Longer than promised: the rest is not ours.
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabcdef";
    assert_eq!(
        got(head.into(), Ending::Close, small())
            .await
            .unwrap()
            .bytes,
        b"ab"
    );
}

#[tokio::test]
async fn a_reset_is_an_io_fault() {
    for head in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
    ] {
        let fault = got(head.into(), Ending::Reset, small())
            .await
            .expect_err(head);
        assert_eq!(fault.reason, "io", "{head}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 5, 22);
    encoder.write_all(bytes).unwrap();
    drop(encoder);
    encoded
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

type Encoder = (&'static str, fn(&[u8]) -> Vec<u8>);

const ENCODERS: [Encoder; 6] = [
    ("gzip", gzip),
    ("x-gzip", gzip),
    ("deflate", zlib),
    ("deflate", deflate),
    ("br", brotli),
    ("zstd", zstd),
];

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    reply(&format!("200 OK\r\ncontent-encoding: {coding}"), body).bytes
}

/// Text that compresses a little.
fn prose() -> Vec<u8> {
    let mut number = 1_u32;
    let mut words = Vec::new();
    for _ in 0..4_000 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words.extend_from_slice(format!("{:x} ", number >> 20).as_bytes());
    }
    words
}

#[tokio::test]
async fn every_coding_is_decoded() {
    let prose = prose();
    for (coding, encode) in ENCODERS {
        let answer = got(coded(coding, &encode(&prose)), Ending::Close, small())
            .await
            .unwrap();
        assert!(answer.bytes == prose, "{coding}");
    }
    for coding in ["identity", "", "unknown-to-us", " Identity , "] {
        let answer = got(coded(coding, &prose), Ending::Close, small())
            .await
            .unwrap();
        assert!(answer.bytes == prose, "{coding}");
    }
    let answer = got(coded("GZIP", &gzip(&prose)), Ending::Close, small())
        .await
        .unwrap();
    assert!(answer.bytes == prose);
}

#[tokio::test]
async fn an_empty_body_needs_no_decoding() {
    for (coding, encode) in ENCODERS {
        let answer = got(coded(coding, b""), Ending::Close, small())
            .await
            .unwrap();
        assert!(answer.bytes.is_empty(), "{coding}");
        let answer = got(coded(coding, &encode(b"")), Ending::Close, small())
            .await
            .unwrap();
        assert!(answer.bytes.is_empty(), "{coding}");
    }
}

/// Attack: decompression bombs, against both bounds.
#[tokio::test]
async fn a_bomb_of_every_coding_is_refused() {
    for (coding, encode) in ENCODERS {
        let bomb = encode(&[0; 90_000]);
        let fault = too_large(got(coded(coding, &bomb), Ending::Close, small()).await);
        assert!(
            fault.told(&Masker::none()).contains("swells"),
            "{coding}: {}",
            fault.told(&Masker::none())
        );
        let bomb = encode(&vec![0; 20_000_000]);
        let world = small().limits(|limits| limits.ratio_max = 1_000_000);
        let fault = too_large(got(coded(coding, &bomb), Ending::Close, world).await);
        assert!(
            fault.told(&Masker::none()).contains("over 100000 bytes"),
            "{coding}: {}",
            fault.told(&Masker::none())
        );
    }
}

/// Blocks of four bytes that stand for 128 KiB each, without end.
#[tokio::test]
async fn an_endless_zstd_frame_of_repeats_is_refused() {
    let mut head = b"HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\n\r\n".to_vec();
    // A frame with a window of 8 MiB, no content size, no checksum.
    head.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68]);
    let block: u32 = ((128 * 1024) << 3) | (1 << 1);
    let block = [&block.to_le_bytes()[..3], b"a"].concat();
    let blocks = Ending::Endless(block.repeat(1_000));
    let world = small().limits(|limits| limits.ratio_max = 1_000_000);
    too_large(got(head, blocks, world).await);
}

#[tokio::test]
async fn a_zstd_window_beyond_the_standard_is_refused() {
    let body = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 0x01, 0x00, 0x00];
    let fault = got(coded("zstd", &body), Ending::Close, small())
        .await
        .unwrap_err();
    assert_eq!(fault.reason, "io");
}

#[tokio::test]
async fn a_broken_coding_is_an_io_fault() {
    let prose = prose();
    for (coding, encode) in ENCODERS {
        let sound = encode(&prose);
        let cut = &sound[..sound.len() / 2];
        let fault = got(coded(coding, cut), Ending::Close, small())
            .await
            .expect_err(coding);
        assert_eq!(fault.reason, "io", "{coding}");
        let fault = got(
            coded(coding, b"\x01\x02not coded at all"),
            Ending::Close,
            small(),
        )
        .await;
        assert_eq!(fault.expect_err(coding).reason, "io", "{coding}");
    }
    let twice = gzip(&gzip(&prose));
    let fault = got(coded("gzip, gzip", &twice), Ending::Close, small())
        .await
        .unwrap_err();
    assert_eq!(fault.reason, "io");
}

#[tokio::test]
async fn head_and_empty_statuses_have_no_body() {
    let lab = Lab::start(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\ncontent-encoding: gzip\r\n\r\n";
        raw(head, Ending::Hold)
    })
    .await;
    let world = small().lab(&lab);
    let ask = json!({"url": URL, "method": "HEAD"});
    let answer = world.run(ask, b"").await.outcome.unwrap();
    assert!(answer.bytes.is_empty());
    let head = "HTTP/1.1 204 No Content\r\n\r\n";
    assert_eq!(
        got(head.into(), Ending::Hold, small()).await.unwrap().value["statusText"],
        "No Content"
    );
}

#[tokio::test]
async fn bytes_on_record_are_those_of_the_wire() {
    let body = gzip(&prose());
    let count = body.len();
    let lab = Lab::start(move |_| reply("200 OK\r\ncontent-encoding: gzip", &body)).await;
    let ran = small().lab(&lab).run(json!({"url": URL}), b"").await;
    assert_eq!(ran.events[0].bytes, count as u64);
    assert_eq!(ran.outcome.unwrap().bytes, prose());
}
