//! The seeds of the fuzz target, run as an ordinary test.

use std::fs;
use std::path::Path;

use crate::jsonrpc;

#[test]
fn the_seeds_of_jsonrpc() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/jsonrpc");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The output then names the seed that fails.
        println!("{}", path.display());
        jsonrpc::check(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count >= 80, "only {count} seeds");
}
