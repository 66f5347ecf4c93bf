//! The binary: arguments, settings, printing, wiring. No decisions of its own.

use std::process::ExitCode;

/// The command line.
mod arguments;
/// One module for each command.
mod commands;
/// Output, questions, exit codes.
mod output;
/// Environment variables, the home folder, the configuration file.
mod settings;
/// Reading files that were named on the command line.
mod source;
/// From arguments and settings to an engine.
mod wiring;

use arguments::{Command, CommandLine};
use commands::{
    approvals, audit, callers, check, complete, config, connect, demo, doctor, explain, expose,
    init, keys, list, man, overview, policy, run, scan, script, secrets, serve, servers, stdio,
    studio, test, tool, top, trust, wrap,
};
use output::exit::Exit;
use output::printer::Printer;
use wiring::present;

fn main() -> ExitCode {
    // Sandbox workers, supervisors and launchers of child processes are this program,
    // started again. It must become one before anything else happens.
    if let Some(code) = engine::worker_main() {
        return code;
    }
    // Before any store is opened: the settings of a shared store name its password.
    store::set_secret_reader(settings::store_secret);
    let arguments = match CommandLine::read() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::explain(&error),
    };
    let mut printer = Printer::for_terminal(arguments.format());
    let done = match &arguments.command {
        // Before anything is opened, which would make a home.
        Some(chosen) => present::check(chosen).and_then(|()| command(chosen, &mut printer)),
        None => overview::run(&mut printer),
    };
    let exit = done.unwrap_or_else(|error| {
        printer.error(&error);
        Exit::CouldNot
    });
    // Last, because a full disk or a closed pipe can still change how the command ended.
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
        Command::Studio(studio) => studio::run(studio, printer),
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
        Command::Top(top) => top::run(top, printer),
        Command::Explain(explain) => explain::run(explain, printer),
        Command::Policy(policy) => policy::run(policy, printer),
        Command::Keys(keys) => keys::run(keys, printer),
        Command::Store(arguments) => commands::store::run(arguments, printer),
        Command::Callers(callers) => callers::run(callers, printer),
        Command::Trust(trust) => trust::run(trust, printer),
        Command::Connect(connect) => connect::run(connect, printer),
        Command::Servers(servers) => servers::run(servers, printer),
        Command::Wrap(wrap) => wrap::run(wrap, printer),
        Command::Unwrap(unwrap) => wrap::undo::run(unwrap, printer),
        Command::Scan(scan) => scan::run(scan, printer),
        Command::Config(home) => config::run(home, printer),
        Command::Init(init) => init::run(init, printer),
        Command::Demo(_) => demo::run(printer),
        Command::Doctor(home) => doctor::run(home, printer),
        Command::Completions(completions) => {
            printer.text(&arguments::completions(completions.shell));
            Ok(Exit::Done)
        }
        Command::Man(man) => man::run(man, printer),
        Command::Complete(complete) => Ok(complete::run(complete, printer)),
    }
}
