//! The binary: arguments, settings, printing, wiring. No decisions of its own.

use std::process::ExitCode;

mod arguments;
mod check;
mod doctor;
mod excerpt;
mod exit;
mod printer;
mod run;
mod settings;
mod source;

use arguments::{Arguments, Command};
use printer::Printer;

fn main() -> ExitCode {
    // A sandbox worker is this program, started again. It must become one before
    // anything else happens.
    if let Some(code) = sandbox::worker_main() {
        return code;
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::explain(&error),
    };
    let mut printer = Printer::for_terminal(arguments.format());
    let done = match &arguments.command {
        Command::Check(check) => check::run(check, &mut printer),
        Command::Run(run) => run::run(run, &mut printer),
        Command::Doctor(doctor) => doctor::run(doctor, &mut printer),
    };
    let exit = done.unwrap_or_else(|error| {
        printer.error(&error);
        exit::Exit::CouldNot
    });
    printer.flush(exit).into()
}
