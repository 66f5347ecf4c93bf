//! Any bytes at all, read as what a guest leaves in its memory when it is over. The
//! properties are written beside the reader, where ordinary tests run the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    sandbox::cell::fuzz_end(data);
});
