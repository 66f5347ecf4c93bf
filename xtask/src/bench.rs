//! `cargo xtask bench`: the benchmarks of every crate that has some.

use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::root::Root;
use crate::run::{self, TaskAnswer};

/// What is measured, and the crate whose `benches/` folder does it: a server is
/// measured as the program people start.
const CRATES: &[(&str, &str)] = &[
    ("model", "ringfence-model"),
    ("guard", "ringfence-guard"),
    ("host", "ringfence-host"),
    ("sandbox", "ringfence-sandbox"),
    ("store", "ringfence-store"),
    ("engine", "ringfence-engine"),
    ("mcp", "ringfence-cli"),
];

/// Runs the benchmarks of one crate, or of each in turn, so that they do not
/// share the machine. `arguments` go to the benchmark programs as they are.
pub(crate) fn bench(root: &Root, name: Option<&str>, arguments: &[OsString]) -> Result<TaskAnswer> {
    let is_chosen = |known: &str| name.is_none_or(|name| name == known);
    let chosen: Vec<_> = CRATES
        .iter()
        .filter(|(known, _)| is_chosen(known))
        .collect();
    if chosen.is_empty() {
        let known: Vec<_> = CRATES.iter().map(|(known, _)| *known).collect();
        bail!(
            "`{}` has no benches; {} have",
            name.unwrap_or_default(),
            known.join(", ")
        );
    }
    for (_, package) in chosen {
        let mut command = run::cargo(root, &["bench", "--package", package, "--benches", "--"]);
        match run::run(command.args(arguments))? {
            TaskAnswer::Yes => {}
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
    }
    Ok(TaskAnswer::Yes)
}
