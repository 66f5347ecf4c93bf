//! The binary: arguments, settings, printing, wiring. No decisions of its own.

use std::process::ExitCode;

mod arguments;
mod check;
mod excerpt;
mod exit;
mod printer;
mod settings;
mod source;

use arguments::{Arguments, Command};
use printer::Printer;

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::explain(&error),
    };
    let mut printer = Printer::for_terminal(arguments.format());
    let done = match &arguments.command {
        Command::Check(check) => check::run(check, &mut printer),
    };
    let exit = done.unwrap_or_else(|error| {
        printer.error(&error);
        exit::Exit::CouldNot
    });
    printer.flush(exit).into()
}
