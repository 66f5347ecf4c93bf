//! The seeds of the fuzz targets, run as an ordinary test.

use std::fs;
use std::path::Path;

#[track_caller]
fn run(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        check(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 40, "only {count} seeds");
}

#[test]
fn the_seeds_of_urls() {
    run("url", host::fetch::fuzz);
}

#[test]
fn the_seeds_of_paths() {
    run("path", host::files::fuzz);
}

#[test]
fn the_seeds_of_addresses() {
    run("address", host::address::fuzz);
}

#[test]
fn the_seeds_of_pages() {
    run("page", host::page::fuzz);
}

proptest::proptest! {
    /// What the fuzzer would try first, without one.
    #[test]
    fn any_bytes(data in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
        host::fetch::fuzz(&data);
        host::files::fuzz(&data);
        host::address::fuzz(&data);
        host::page::fuzz(&data);
    }

    /// Texts that are nearly addresses and paths.
    #[test]
    fn any_text_like_ours(text in "(https?:)?[/\\\\]{0,3}([a-z0-9.@:%\\[\\]_-]|\\.\\.|[\u{ff10}-\u{ff19}\u{3002}]){0,24}[/?#]?[a-z./]{0,12}") {
        host::fetch::fuzz(text.as_bytes());
        host::files::fuzz(text.as_bytes());
        host::address::fuzz(text.as_bytes());
    }
}
