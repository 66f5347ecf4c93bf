//! `cargo xtask bench`: the benchmarks of every crate that has some.

use std::ffi::OsString;

use anyhow::Result;

use crate::root::Root;
use crate::run::{self, Answer};

/// Packages with a `benches/` folder.
const PACKAGES: &[&str] = &["ringfence-model"];

/// Runs the benchmarks one package after the other, so that they do not share
/// the machine. `arguments` go to the benchmark programs as they are.
pub(crate) fn bench(root: &Root, arguments: &[OsString]) -> Result<Answer> {
    for package in PACKAGES {
        let mut command = run::cargo(root, &["bench", "--package", package, "--benches", "--"]);
        match run::run(command.args(arguments))? {
            Answer::Yes => {}
            Answer::No => return Ok(Answer::No),
        }
    }
    Ok(Answer::Yes)
}
