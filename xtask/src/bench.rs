//! `cargo xtask bench`: the benchmarks of every crate that has some.

use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::root::Root;
use crate::run::{self, Answer};

/// Crates with a `benches/` folder.
const CRATES: &[&str] = &["model", "guard", "host", "sandbox", "store", "engine"];

/// Runs the benchmarks of one crate, or of each in turn, so that they do not
/// share the machine. `arguments` go to the benchmark programs as they are.
pub(crate) fn bench(root: &Root, name: Option<&str>, arguments: &[OsString]) -> Result<Answer> {
    if let Some(name) = name.filter(|name| !CRATES.contains(name)) {
        bail!("`{name}` has no benches; {} have", CRATES.join(", "));
    }
    let chosen = CRATES
        .iter()
        .filter(|known| name.is_none_or(|name| name == **known));
    for chosen in chosen {
        let package = format!("ringfence-{chosen}");
        let mut command = run::cargo(root, &["bench", "--package", &package, "--benches", "--"]);
        match run::run(command.args(arguments))? {
            Answer::Yes => {}
            Answer::No => return Ok(Answer::No),
        }
    }
    Ok(Answer::Yes)
}
