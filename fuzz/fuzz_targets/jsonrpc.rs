//! Any bytes at all, at the edge where HTTP becomes JSON-RPC. The properties that must hold
//! are written beside the crate's tests, where an ordinary test runs the seeds.
#![no_main]

#[path = "../../crates/mcp/tests/support/jsonrpc.rs"]
mod jsonrpc;
#[path = "../../crates/mcp/tests/support/unlocked.rs"]
mod unlocked;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    jsonrpc::check(data);
});
