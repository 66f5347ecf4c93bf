//! The worker of these tests: a program that is nothing else. The test program
//! itself cannot be one, because its `main` is the test harness's.

use std::process::ExitCode;

fn main() -> ExitCode {
    engine::worker_main().unwrap_or(ExitCode::FAILURE)
}
