//! Any bytes at all, read as an address and the name of a host. The properties that must hold are
//! written beside the code, where an ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    model::network::address::fuzz(data);
});
