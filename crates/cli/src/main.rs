//! The binary: arguments, settings, printing, wiring. No decisions of its own.

use std::process::ExitCode;

mod approvals;
mod arguments;
mod audit;
mod auth;
mod badge;
mod callers;
mod check;
mod config;
mod connect;
mod consent;
mod console;
mod doctor;
mod excerpt;
mod exit;
mod explain;
mod expose;
mod keys;
mod list;
mod policy;
mod printer;
mod run;
mod script;
mod secrets;
mod serve;
mod settings;
mod sheet;
mod source;
mod stdio;
mod telemetry;
mod test;
mod tool;
mod trust;
mod wiring;

use arguments::{Arguments, Command};
use exit::Exit;
use printer::{Format, Printer};

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
    let done = command(&arguments.command, &mut printer);
    let exit = done.unwrap_or_else(|error| {
        printer.error(&error);
        Exit::CouldNot
    });
    printer.flush(exit).into()
}

fn command(command: &Command, printer: &mut Printer) -> anyhow::Result<Exit> {
    match command {
        Command::Check(check) => check::run(check, printer),
        Command::Test(test) => test::run(test, printer),
        Command::Run(run) => run::run(run, printer),
        Command::Script(script) => script::run(script, printer),
        Command::Serve(serve) => serve::run(serve, printer),
        Command::Stdio(stdio) => stdio::run(stdio),
        Command::New(new) => tool::new(new, printer),
        Command::List(list) => list::run(list, printer),
        Command::Show(named) => list::show(named, printer),
        Command::Import(import) => tool::import(import, printer),
        Command::Export(export) => tool::export(export, printer),
        Command::Publish(publish) => tool::publish(publish, printer),
        Command::Unpublish(many) => tool::unpublish(many, printer),
        Command::Delete(many) => tool::delete(many, printer),
        Command::Secrets(secrets) => secrets::run(secrets, printer),
        Command::Expose(expose) => expose::run(expose, printer),
        Command::Approvals(approvals) => approvals::run(approvals, printer),
        Command::Audit(audit) => audit::run(audit, printer),
        Command::Explain(explain) => explain::run(explain, printer),
        Command::Policy(policy) => policy::run(policy, printer),
        Command::Keys(keys) => keys::run(keys, printer),
        Command::Callers(callers) => callers::run(callers, printer),
        Command::Trust(trust) => trust::run(trust, printer),
        Command::Connect(connect) => connect::run(connect, printer),
        Command::Config(home) => config::run(home, printer),
        Command::Doctor(home) => doctor::run(home, printer),
        Command::Completions(completions) => {
            Ok(text(&arguments::completions(completions), printer))
        }
        Command::Man(_) => Ok(text(&arguments::manual()?, printer)),
    }
}

/// A text of our own, or a JSON value that holds it.
fn text(text: &str, printer: &mut Printer) -> Exit {
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({ "text": text })),
        Format::Human => printer.lines(text),
    }
    Exit::Done
}
