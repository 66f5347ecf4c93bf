//! Our own HTTP transport, with the layers and limits every client meets, around the
//! fixtures. The suite cannot send a token, so everybody on loopback is let in.

use std::sync::Arc;
use std::time::Duration;

use mcp::gate;
use mcp::http::{self, HttpBounds};
use model::config::Config;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::{Fixture, Shared};

/// Serves until standard input ends. The bounds are those of a server without settings,
/// but for what the arguments say: sessions at one time, and milliseconds one may be idle.
pub(crate) async fn serve(arguments: &[String]) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let mut bounds = HttpBounds::of(&Config::closed().serve);
    if let [sessions_max, idle_ms] = arguments {
        let number = |text: &String| text.parse().map_err(std::io::Error::other);
        bounds.sessions_max = sessions_max.parse().map_err(std::io::Error::other)?;
        bounds.sessions_per_caller_max = bounds.sessions_max;
        bounds.session_idle_max = Duration::from_millis(number(idle_ms)?);
    }
    let shared = Arc::new(Shared::fresh()?);
    let counted = Arc::clone(&shared);
    let transport = http::router(move || Fixture::new(Arc::clone(&shared)), &bounds);
    let sessions = Arc::clone(&transport.sessions);
    // How a test sees what is left of clients that have gone.
    let left = axum::routing::get(async move || {
        json!({"sessions": sessions.count(), "listeners": counted.news.listeners()}).to_string()
    });
    let app = gate::guard(transport.router.clone()).route("/left", left);
    println!("{}", json!({"url": format!("http://localhost:{port}/mcp")}));
    let end = CancellationToken::new();
    let serving = http::listen(listener, app, &transport, &bounds, &end, async {});
    let (served, ()) = tokio::join!(serving, async {
        input_ended().await;
        end.cancel();
    });
    served.map_err(std::io::Error::other)
}

async fn input_ended() {
    let mut input = tokio::io::stdin();
    let mut piece = [0_u8; 64];
    while matches!(input.read(&mut piece).await, Ok(count) if count > 0) {}
}
