//! `ringfence stdio`: MCP over standard input and output. Nothing else is printed there;
//! warnings go to standard error.

use std::sync::Arc;

use engine::Alarm;
use mcp::auth::PipeClient;
use mcp::{Door, stdio};

use crate::arguments::Stdio;
use crate::output::exit::Exit;
use crate::output::printer;
use crate::settings;
use crate::wiring;
use crate::wiring::auth;
use crate::wiring::waiting;

pub(crate) fn run(arguments: &Stdio) -> anyhow::Result<Exit> {
    let common = &arguments.common;
    engine::memory::settle();
    let engine =
        wiring::engine_that_serves(common.home.home.as_deref(), common.env_file.as_deref())?;
    // From the environment of this process, where only its client could put it.
    let client = match settings::variable(settings::KEY) {
        Some(text) => auth::pipe_client(engine.home(), &text)?,
        None => PipeClient::unnamed(),
    };
    let door = Door::open_for(Arc::new(engine), client)?;
    let runtime = wiring::server_runtime()?;
    runtime.block_on(async {
        let shutdown = wiring::ending()?;
        let waiting = waiting::report(door.engine(), Alarm::new(printer::note));
        stdio::serve(door, shutdown).await;
        waiting.abort();
        anyhow::Ok(())
    })?;
    // A reader of standard input may still wait in a thread of its own.
    runtime.shutdown_background();
    Ok(Exit::Done)
}
