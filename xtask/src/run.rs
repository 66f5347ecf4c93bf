//! Running other programs. Their output goes straight to the terminal; the result is
//! only whether they succeeded.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::printer;
use crate::root::Root;

/// The result of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum TaskAnswer {
    Yes,
    No,
}

impl TaskAnswer {
    /// Yes only if both are.
    pub(crate) fn and(self, other: TaskAnswer) -> TaskAnswer {
        match (self, other) {
            (TaskAnswer::Yes, TaskAnswer::Yes) => TaskAnswer::Yes,
            (TaskAnswer::No, _) | (_, TaskAnswer::No) => TaskAnswer::No,
        }
    }

    /// Runs the next task, unless this failed.
    pub(crate) fn and_then(self, next: impl FnOnce() -> Result<TaskAnswer>) -> Result<TaskAnswer> {
        match self {
            TaskAnswer::Yes => next(),
            TaskAnswer::No => Ok(TaskAnswer::No),
        }
    }
}

/// A part of a longer task.
pub(crate) type TaskStep = fn(&Root) -> Result<TaskAnswer>;

/// Runs parts in order, each under its name and with its time, and stops at the first
/// that answers no.
pub(crate) fn parts(root: &Root, parts: &[(&str, TaskStep)]) -> Result<TaskAnswer> {
    for (number, (name, part)) in parts.iter().enumerate() {
        printer::heading(&format!("{} of {}: {name}", number + 1, parts.len()));
        let began = Instant::now();
        let answer = part(root)?;
        printer::duration(name, began.elapsed());
        match answer {
            TaskAnswer::Yes => {}
            TaskAnswer::No => return Ok(TaskAnswer::No),
        }
    }
    Ok(TaskAnswer::Yes)
}

/// A cargo command at the root, by the same cargo that started us.
pub(crate) fn cargo(root: &Root, arguments: &[&str]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root.path()).args(arguments);
    command
}

/// Runs to the end. Fails only if the program could not be started.
pub(crate) fn run(command: &mut Command) -> Result<TaskAnswer> {
    let status = command.status().with_context(|| not_started(command))?;
    Ok(if status.success() {
        TaskAnswer::Yes
    } else {
        TaskAnswer::No
    })
}

/// The standard output of a program that ended well; `None` if it is missing or failed.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The message for a program that could not be started.
pub(crate) fn not_started(command: &Command) -> String {
    format!(
        "could not start `{}`",
        command.get_program().to_string_lossy()
    )
}
