//! Any bytes at all, read as a tool document. The properties that must hold
//! are written beside the parser, where an ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    model::document::fuzz(data);
});
