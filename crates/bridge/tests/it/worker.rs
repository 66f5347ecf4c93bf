//! What fences the servers of these tests in: a program that is nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    jail::jail_main().unwrap_or(ExitCode::FAILURE)
}
