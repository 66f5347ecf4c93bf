//! Any bytes at all, read as frames from a worker and to one. The properties are
//! written beside the decoder, where ordinary tests run the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    sandbox::frame::fuzz(data);
});
