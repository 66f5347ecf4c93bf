//! Any text at all, read as a web page. What must hold is written beside the reader, where an
//! ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    host::page::fuzz(data);
});
