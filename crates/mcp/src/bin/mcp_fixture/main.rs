//! A server with the tools, prompts and resources that the official conformance suite asks
//! for, on our own HTTP transport with its layers and limits. It exists for tests: the feature
//! that builds it is in no release.
//!
//! It listens on a free port of loopback, prints its address as one line of JSON, and ends
//! when its standard input does, so that no test leaves it behind.
#![expect(
    deprecated,
    reason = "the suite still checks logging, sampling and roots, which newer revisions drop"
)]
#![expect(
    clippy::print_stdout,
    reason = "the address is how a test finds the server"
)]

mod ask;
mod content;
mod news;
mod prompt;
mod resource;
mod round;
mod server;
mod task;
mod tool;
mod transport;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.map(|runtime| runtime.block_on(transport::serve(&arguments))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) | Err(error) => {
            println!("{}", serde_json::json!({"error": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}
