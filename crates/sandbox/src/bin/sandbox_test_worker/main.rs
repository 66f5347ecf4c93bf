//! Workers for tests. Started like any worker, with one more argument:
//!
//! - none: the real one;
//! - `stand-in`: the real walls and loop around a guest that runs a small
//!   language of its own, so that tests can say exactly what a sandbox does;
//! - `bare`: the same guest without walls, to show that what the walls refuse
//!   would go through otherwise;
//! - `hostile PLAN`: no guest at all, only lies: see [`hostile`].
//!
//! Started with `parent` alone it is no worker but starts one, writes the
//! worker's process id and waits to be killed.

mod hostile;
mod stand_in;

use std::io::Write;
use std::process::ExitCode;

use sandbox::pool::{Pool, PoolSettings, Sharing, WorkerProgram};
use sandbox::walls::Layer;
use sandbox::worker::{self, WorkerArguments, WorkerEnd};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["parent"] {
        return parent();
    }
    let Some(Some(parsed)) = WorkerArguments::parse(arguments.iter().cloned()) else {
        return WorkerEnd::Arguments.into();
    };
    let added: Vec<&str> = arguments.iter().skip(4).map(String::as_str).collect();
    match added.as_slice() {
        [] => worker::worker_main().unwrap_or(WorkerEnd::Arguments.into()),
        ["stand-in"] => worker::serve(parsed, |_| Ok(stand_in::Guests)).into(),
        ["bare"] => worker::serve_bare(|| Ok(stand_in::Guests)).into(),
        ["hostile", plan] => hostile::act(plan),
        _ => WorkerEnd::Arguments.into(),
    }
}

fn parent() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        let program = WorkerProgram::Other("/proc/self/exe".into(), vec!["stand-in".to_owned()]);
        let mut settings = PoolSettings::new(program, Sharing::Shared);
        settings.workers = 1;
        settings.require.remove(&Layer::Wasm);
        settings.guest_key = None;
        let Ok(pool) = Pool::start(settings).await else {
            return ExitCode::FAILURE;
        };
        for pid in pool.status().pids {
            if writeln!(std::io::stdout(), "{pid}").is_err() {
                return ExitCode::FAILURE;
            }
        }
        std::future::pending().await
    })
}
