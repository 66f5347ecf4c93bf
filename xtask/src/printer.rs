//! All printing of the task runner. A closed pipe is no reason to fail, so write errors
//! are dropped here and nowhere else.

use std::io::{self, Write};
use std::time::Duration;

/// One line of data, to standard output.
pub(crate) fn line(text: &str) {
    let _closed = writeln!(io::stdout().lock(), "{text}");
}

/// One line about the work, to standard error.
pub(crate) fn note(text: &str) {
    let _closed = writeln!(io::stderr().lock(), "{text}");
}

/// One line about the work, in the place of the last one.
pub(crate) fn replace(text: &str) {
    let mut error = io::stderr().lock();
    let _closed = write!(error, "\r\x1b[K{text}");
    let _closed = error.flush();
}

/// The heading of a step, before it runs.
pub(crate) fn heading(name: &str) {
    note(&format!("== {name}"));
}

/// The time a step took, after it ran.
pub(crate) fn duration(name: &str, elapsed: Duration) {
    note(&format!("   {name}: {:.1} s", elapsed.as_secs_f64()));
}

/// An error and its causes, one per line.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("error: {error}"));
    for cause in error.chain().skip(1) {
        note(&format!("cause: {cause}"));
    }
}
