//! Any bytes at all, heard as a worker's words about one call and held to its limits. The
//! properties are written beside the reader, where ordinary tests run the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    sandbox::pool::fuzz_words(data);
});
