//! The worker of these tests: a program that is nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    engine::worker_main().unwrap_or(ExitCode::FAILURE)
}
