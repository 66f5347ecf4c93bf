//! Any bytes at all, read as a path, a glob and a pattern. The properties that must hold are
//! written beside the code, where an ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    host::files::fuzz(data);
});
