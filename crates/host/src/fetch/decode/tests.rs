//! Pieces of any size give the same body, and nothing a server sends can do more
//! than be refused.

use std::io::Write as _;

use hyper::header::HeaderValue;
use proptest::prelude::*;

use super::*;

fn limits() -> FetchLimits {
    FetchLimits {
        body_bytes_max: 1_000_000,
        ratio_free_bytes: 100_000,
        ..FetchLimits::default()
    }
}

fn encoded(coding: &str, body: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    match coding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut encoded = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4096, 4, 18);
            encoder.write_all(body).unwrap();
            drop(encoder);
            encoded
        }
        "zstd" => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(body, level)
        }
        _ => body.to_vec(),
    }
}

fn decoded(coding: &str, pieces: &[&[u8]]) -> Result<Vec<u8>, BodyRefusal> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
    let mut decoder = BodyDecoder::new(&headers, &limits())?;
    for piece in pieces {
        decoder.push(piece)?;
    }
    decoder.finish()
}

const CODINGS: [&str; 5] = ["gzip", "deflate", "br", "zstd", "identity"];

#[test]
fn zstd_frames_follow_each_other() {
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let plain = encoded("zstd", b"hello");
    let both = [&skippable[..], &plain, &plain].concat();
    for size in [1, 2, 3, 5, both.len()] {
        let pieces: Vec<&[u8]> = both.chunks(size).collect();
        assert_eq!(decoded("zstd", &pieces).unwrap(), b"hellohello", "{size}");
    }
}

#[test]
fn gzip_members_follow_each_other() {
    let member = encoded("gzip", b"hello");
    let both = [&member[..], &member].concat();
    assert_eq!(decoded("gzip", &[&both]).unwrap(), b"hellohello");
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same_body(
        body in proptest::collection::vec(0_u8..4, 0..5_000),
        repeats in 1_usize..40,
        size in 1_usize..3_000,
        coding in proptest::sample::select(&CODINGS[..]),
    ) {
        let body = body.repeat(repeats);
        let wire = encoded(coding, &body);
        let pieces: Vec<&[u8]> = wire.chunks(size).collect();
        prop_assert!(decoded(coding, &pieces) == Ok(body));
    }

    #[test]
    fn a_body_cut_short_is_never_whole(
        body in proptest::collection::vec(any::<u8>(), 1..3_000),
        cut in any::<prop::sample::Index>(),
        coding in proptest::sample::select(&CODINGS[..4]),
    ) {
        let wire = encoded(coding, &body);
        let cut = &wire[..cut.index(wire.len()).max(1)];
        prop_assert_eq!(decoded(coding, &[cut]), Err(BodyRefusal::Corrupt));
    }

    #[test]
    fn rubbish_is_refused_or_bounded(
        head in proptest::collection::vec(any::<u8>(), 0..20),
        body in proptest::collection::vec(0_u8..50, 1..2_000),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        coding in proptest::sample::select(&CODINGS[..]),
    ) {
        let _ = decoded(coding, &[&head]);
        let mut wire = encoded(coding, &body.repeat(3));
        for (index, byte) in flips {
            let index = index.index(wire.len());
            wire[index] = byte;
        }
        if let Ok(body) = decoded(coding, &[&wire]) {
            prop_assert!(body.len() <= limits().body_bytes_max);
        }
    }
}
