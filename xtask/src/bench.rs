//! `cargo xtask bench`: the benchmarks of every crate that has some. `--gate` compares
//! their output with the promises of SPECIFICATION.md.

mod gate;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::dist;
use crate::peers;
use crate::printer;
use crate::root::Root;
use crate::run::{self, TaskAnswer};

pub(crate) use gate::PromiseSet;

/// The subjects of benchmarks and their bench targets. A server is measured as the real
/// program.
const BENCHES: &[(&str, &[&str])] = &[
    ("model", &["model"]),
    ("find", &["find"]),
    ("guard", &["guard"]),
    ("host", &["fetch", "files"]),
    ("sql", &["sql"]),
    ("clone", &["clone"]),
    ("sandbox", &["cell", "pages", "pool"]),
    ("store", &["audit"]),
    ("evidence", &["evidence"]),
    ("shared", &["shared", "shared_call"]),
    ("engine", &["call", "govern"]),
    ("mcp", &["mcp"]),
    ("bridge", &["bridge"]),
    ("jail", &["jail", "egress"]),
];

/// Those that start the program.
const SERVED: &[&str] = &["mcp", "bridge"];

/// Every bench is built as a part of the whole workspace: package by package, cargo
/// resolves other features and builds the dependencies again for each.
const BUILD: &[&str] = &["bench", "--locked", "--workspace"];

/// Runs the benchmarks of one crate, or of each in turn, so that they do not
/// share the machine. `arguments` go to the benchmark programs as they are.
pub(crate) fn bench(
    root: &Root,
    name: Option<&str>,
    promises: Option<PromiseSet>,
    arguments: &[OsString],
) -> Result<TaskAnswer> {
    let is_chosen = |known: &str| name.is_none_or(|name| name == known);
    let chosen: Vec<_> = BENCHES
        .iter()
        .filter(|(known, _)| is_chosen(known))
        .collect();
    if chosen.is_empty() {
        let known: Vec<_> = BENCHES.iter().map(|(known, _)| *known).collect();
        bail!(
            "`{}` has no benches; {} have",
            name.unwrap_or_default(),
            known.join(", ")
        );
    }
    let mut answer = TaskAnswer::Yes;
    for (known, targets) in chosen {
        if *known == "jail" {
            peers::bubblewrap(root);
        }
        let mut command = run::cargo(root, BUILD);
        // A server is measured as people run it: with link-time optimisation, which would
        // take minutes more for each bench.
        if SERVED.contains(known) {
            match dist::build_program(root)? {
                TaskAnswer::Yes => {}
                TaskAnswer::No => return Ok(TaskAnswer::No),
            }
            command.env("BENCH_PROGRAM", root.join(dist::PROGRAM));
        }
        for target in *targets {
            command.args(["--bench", target]);
        }
        command.arg("--").args(arguments);
        let Some(promises) = promises else {
            match run::run(&mut command)? {
                TaskAnswer::Yes => continue,
                TaskAnswer::No => return Ok(TaskAnswer::No),
            }
        };
        if !gate::has_promises(known, promises) {
            continue;
        }
        command.args(gate::arguments(known));
        let (ended, printed) = shown(&mut command)?;
        let judged = gate::judge(known, promises, &printed);
        for line in &judged.lines {
            printer::line(line);
        }
        if ended == TaskAnswer::No || !judged.is_kept {
            answer = TaskAnswer::No;
        }
    }
    Ok(answer)
}

/// Runs a program whose output is shown as it comes, and kept.
fn shown(command: &mut Command) -> Result<(TaskAnswer, String)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| run::not_started(command))?;
    let mut printed = String::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.context("could not read the output of a bench")?;
            printer::line(&line);
            printed.push_str(&line);
            printed.push('\n');
        }
    }
    let status = child.wait().context("could not wait for a bench")?;
    let answer = match status.success() {
        true => TaskAnswer::Yes,
        false => TaskAnswer::No,
    };
    Ok((answer, printed))
}
