//! Any bytes at all, at the edge where HTTP becomes JSON-RPC. The properties that must hold
//! are written beside the code, where an ordinary test runs the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    mcp::fuzz::jsonrpc(data);
});
