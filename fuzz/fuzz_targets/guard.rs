//! Any bytes at all, read as a script by every preset. The properties that must hold
//! are written beside the code, where an ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    guard::fuzz(data);
});
