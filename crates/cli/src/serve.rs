//! `ringfence serve`: the MCP door over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use mcp::{Door, gate, http};
use serde_json::json;
use tokio::net::{TcpListener, lookup_host};

use crate::arguments::Serve;
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::wiring;

/// Runs the command.
pub(crate) fn run(serve: &Serve, printer: &mut Printer) -> anyhow::Result<Exit> {
    let common = &serve.common;
    let engine =
        wiring::engine_that_serves(common.home.home.as_deref(), common.env_file.as_deref())?;
    let config = engine.registry().current().config.serve.clone();
    let listen = serve.listen.as_ref().unwrap_or(&config.listen);
    let door = Door::open(Arc::new(engine))?;
    wiring::server_runtime()?.block_on(async {
        let shutdown = wiring::ending()?;
        let address = address(listen).await?;
        if !address.ip().is_loopback() {
            bail!("`{listen}` can be reached from outside; only loopback is served");
        }
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("`{listen}` cannot be listened on"))?;
        door.engine().pool().await?;
        greet(listener.local_addr()?, serve.no_auth, printer);
        http::serve(door, listener, gate::guard, shutdown).await?;
        Ok(Exit::Done)
    })
}

async fn address(listen: &str) -> anyhow::Result<SocketAddr> {
    let mut found = lookup_host(listen)
        .await
        .with_context(|| format!("`{listen}` is no address with a port"))?;
    found
        .next()
        .with_context(|| format!("`{listen}` is no address"))
}

/// Says where to connect, on the first line.
fn greet(address: SocketAddr, no_auth: bool, printer: &mut Printer) {
    let url = http::url(address);
    match printer.format() {
        Format::Json => printer.line(&json!({"url": url, "auth": !no_auth}).to_string()),
        Format::Human => {
            let shown = printer.styled(Style::Bold, &url);
            printer.line(&shown);
            printer.line("press Ctrl-C to end");
        }
    }
    printer.emit();
}
