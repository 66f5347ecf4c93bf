//! Our own HTTP transport, with the layers and limits every client meets, around the
//! fixtures. The suite cannot send a token, so everybody on loopback is let in.

use std::sync::Arc;
use std::time::Duration;

use mcp::http::{self, HttpBounds};
use mcp::{gate, testing};
use model::config::Config;
use model::limits;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::{Fixture, Shared};

/// Serves until standard input ends. The bounds are those of a server without settings,
/// but for what the arguments say: sessions at one time, and milliseconds one may be idle.
pub(crate) async fn serve(arguments: &[String]) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let mut config = Config::closed().serve;
    let mut bounds = HttpBounds::of(&config);
    if let [sessions_max, idle_ms] = arguments {
        config.sessions_max = sessions_max.parse().map_err(std::io::Error::other)?;
        config.sessions_per_caller_max = config.sessions_max;
        // How often is for another test.
        config.calls_per_minute = limits::SERVE_COUNT_MAX;
        let idle_ms = idle_ms.parse().map_err(std::io::Error::other)?;
        bounds = HttpBounds::of(&config);
        bounds.session_idle_max = Duration::from_millis(idle_ms);
    }
    let unlocked = testing::unlocked(address, config);
    let gate = unlocked.map_err(|problems| std::io::Error::other(problems.join(", ")))?;
    let shared = Arc::new(Shared::fresh()?);
    let counted = Arc::clone(&shared);
    let transport = http::router(move || Fixture::new(Arc::clone(&shared)), &bounds);
    let (sessions, at_gate) = (Arc::clone(&transport.sessions), gate.sessions().clone());
    // How a test sees what is left of clients that have gone.
    let left = axum::routing::get(async move || {
        let left = json!({
            "sessions": sessions.count(),
            "sessions of the gate": at_gate.len(),
            "listeners": counted.news.listeners(),
        });
        left.to_string()
    });
    let app = gate::agents(transport.router.clone(), &gate).route("/left", left);
    println!(
        "{}",
        json!({"url": format!("http://localhost:{}/mcp", address.port())})
    );
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
