//! `cargo xtask serve`: from a checkout to a server, step by step, with the time each
//! step takes.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::build::{self, clock};
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer, TaskStep};
use crate::{guest, setup, studio};

/// The usual time of a cold build of the program, on two cores.
const USUAL: Duration = Duration::from_secs(6 * 60);

const BUILD: &[&str] = &[
    "build",
    "--locked",
    "--profile",
    "serve",
    "--bin",
    "ringfence",
];

/// Builds and starts the server. It only returns on failure.
pub(crate) fn serve(root: &Root) -> Result<TaskAnswer> {
    let started = Instant::now();
    let parts: &[(&str, TaskStep)] = &[
        ("what is needed on this machine", setup::for_serving),
        ("the sources of the dependencies", fetch),
        ("the sandbox guest", guest::ensure),
        ("the web page of the Studio", studio::ensure),
        ("the program", |root| build::build(root, BUILD, USUAL)),
    ];
    match run::parts(root, parts)? {
        TaskAnswer::Yes => {}
        TaskAnswer::No => return Ok(TaskAnswer::No),
    }
    printer::heading(&format!(
        "ready after {}; starting",
        clock(started.elapsed())
    ));
    let program = root.join("target/serve/ringfence");
    // Only an error comes back from this.
    let error = Command::new(&program).arg("serve").exec();
    bail!("could not start {}: {error}", program.display())
}

/// Cargo reports what it downloads.
fn fetch(root: &Root) -> Result<TaskAnswer> {
    run::run(&mut run::cargo(root, &["fetch", "--locked"]))
}
