//! Any text at all, read as the condition of a rule and evaluated. The second
//! line, if there is one, is the arguments. What must hold is written beside the
//! reader, where an ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    model::govern::rules::condition::fuzz(data);
});
