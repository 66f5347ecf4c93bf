//! MCP over standard input and output, or any other pair of pipes: one client, the
//! program that started the process.

/// One message a line.
mod line;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::service::serve_server;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limit;
use crate::protocol::door::{Door, Shutdown};
use crate::protocol::list_changed;
use crate::protocol::server::McpServer;
use crate::stdio::line::{LineTransport, ReadUntil};
use crate::write_timeout::WriteTimeout;

/// Serves the process's own standard input and output until it ends.
pub fn serve(door: Door, shutdown: Shutdown) -> BoxFuture<'static, ()> {
    let (read, write) = rmcp::transport::io::stdio_pipes();
    Box::pin(serve_pipes(door, read, write, shutdown))
}

/// Serves a pair of pipes until the reading one ends.
pub async fn serve_pipes(
    door: Door,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: Shutdown,
) {
    let config = door.engine().registry().current();
    let line_bytes_max = config.config.serve.body_bytes_max;
    let line_bytes_max = usize::try_from(line_bytes_max).unwrap_or(usize::MAX);
    // The snapshot would otherwise live as long as the server.
    drop(config);
    let write = WriteTimeout::new(write, Duration::from_secs(limit::WRITE_SECONDS_MAX));
    let timed_out = write.timed_out();
    let until = ReadUntil {
        soft: shutdown.soft.clone(),
        over: CancellationToken::new(),
    };
    let ending = tokio::spawn(end(door.clone(), shutdown.clone(), until.over.clone()));
    let transport = LineTransport::new(
        (read, write),
        line_bytes_max,
        until,
        Arc::clone(door.engine()),
        door.inner.unsent.clone(),
    );
    let server = McpServer::for_pipe(door.clone());
    let ended = CancellationToken::new();
    let watching = tokio::spawn(list_changed::watch(
        Arc::clone(&door.inner.engine),
        Arc::clone(&door.inner.listeners),
        ended.clone(),
    ));
    let served = serve_server(server, transport).await;
    if let Ok(running) = served {
        // At the end of input, what runs may answer for a while and is then
        // cancelled.
        tokio::select! {
            _ = running.waiting() => {}
            () = shutdown.hard.cancelled() => door.inner.stop.cancel(),
            // Answers would pile up as long as the client keeps asking.
            () = timed_out.cancelled() => door.inner.stop.cancel(),
        }
    }
    ended.cancel();
    // The client is gone, so there is nothing left to drain.
    ending.abort();
    let bound = Duration::from_secs(limit::SHUTDOWN_CLOSE_SECONDS);
    // Cancelled calls still close their audit rows.
    let _ = timeout(bound, door.inner.calls.quiet()).await;
    let _ = watching.await;
    let over = move || {
        door.engine()
            .approvals()
            .end_session(&door.inner.pipe_session)
    };
    // If this fails, the session's approvals still expire, and no later process has its
    // name.
    let _ = tokio::task::spawn_blocking(over).await;
}

/// Asked to end: nothing more is read, and what runs may answer for a while.
async fn end(door: Door, shutdown: Shutdown, over: CancellationToken) {
    shutdown.soft.cancelled().await;
    door.drain(&shutdown.hard).await;
    over.cancel();
}
