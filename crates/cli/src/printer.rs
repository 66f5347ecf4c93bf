//! The one place that prints. Data goes to standard output, the rest to standard
//! error; colour only for a person, and never as the only sign of a meaning.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::exit::Exit;
use crate::settings;

/// How a command wants its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Human,
    /// One JSON value on standard output.
    Json,
}

/// A style, named for its meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    /// A name.
    Bold,
    /// Less important.
    Dim,
    /// All is well.
    Good,
    /// Look twice.
    Caution,
    /// Something is wrong.
    Bad,
}

/// Collects standard output and writes it in one go.
#[derive(Debug)]
pub(crate) struct Printer {
    format: Format,
    colour: bool,
    output: String,
}

impl Printer {
    /// A printer for this process's own terminal or pipe.
    pub(crate) fn for_terminal(format: Format) -> Printer {
        let plain = settings::variable(settings::NO_COLOR).is_some()
            || settings::variable(settings::TERM).as_deref() == Some("dumb");
        let colour = io::stdout().is_terminal() && !plain && format == Format::Human;
        Printer {
            format,
            colour,
            output: String::new(),
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Text in a style, where there is colour.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Caution => "33",
            Style::Bad => "1;31",
        };
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A line of data.
    pub(crate) fn line(&mut self, line: &str) {
        let _ = writeln!(self.output, "{}", line.trim_end());
    }

    /// Shows what was collected so far, where a person waits for the rest.
    pub(crate) fn emit(&mut self) {
        let _ = self.write_out();
    }

    /// One JSON value.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => {
                let _ = writeln!(self.output, "{text}");
            }
            Err(error) => self.note(&format!("error: {error}")),
        }
    }

    /// A line beside the data, to standard error.
    pub(crate) fn note(&mut self, line: &str) {
        let _ = self.write_out();
        let _ = writeln!(io::stderr(), "{}", line.trim_end());
    }

    /// An error and its causes, to standard error.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let mut causes = error.chain();
        let mut text = String::new();
        if let Some(first) = causes.next() {
            for line in first.to_string().lines() {
                let _ = writeln!(text, "error: {line}");
            }
        }
        for cause in causes {
            let _ = writeln!(text, "cause: {cause}");
        }
        // What went before belongs before.
        let _ = self.write_out();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Writes what was collected. A reader that went away is nobody's news; any
    /// other failure to write is.
    pub(crate) fn flush(mut self, exit: Exit) -> Exit {
        match self.write_out() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = writeln!(
                    io::stderr(),
                    "error: could not write the output\ncause: {error}"
                );
                Exit::CouldNot
            }
            Ok(()) | Err(_) => exit,
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let output = std::mem::take(&mut self.output);
        let mut stdout = io::stdout().lock();
        stdout.write_all(output.as_bytes())?;
        stdout.flush()
    }
}
