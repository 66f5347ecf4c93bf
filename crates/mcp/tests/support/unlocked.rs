//! For tests alone: authentication that checks everything but keys, as `serve --no-auth` does.

use std::net::SocketAddr;
use std::sync::Arc;

use model::config::ServeConfig;
use model::govern::key::KeyRecord;

use mcp::auth::clock::AuthClock;
use mcp::auth::issuer::Fetching;
use mcp::auth::{Auth, AuthMode, AuthParts, AuthSettings, FetchKeys, KeyLookup};

/// Authentication that asks for no key, or every problem of the settings.
pub(crate) fn unlocked(listen: SocketAddr, serve: ServeConfig) -> Result<Arc<Auth>, Vec<String>> {
    let settings = AuthSettings {
        listen,
        serve,
        oauth: None,
        mode: AuthMode::Off,
    };
    let parts = AuthParts {
        local: None,
        keys: Arc::new(NoKeys),
        fetch: Arc::new(NoKeys),
        clock: AuthClock::system(),
    };
    Auth::new(&settings, parts).map(Arc::new)
}

/// Has no keys and fetches nothing.
#[derive(Debug)]
struct NoKeys;

impl KeyLookup for NoKeys {
    fn find(&self, _id: &str) -> Result<Option<KeyRecord>, String> {
        Ok(None)
    }
}

impl FetchKeys for NoKeys {
    fn fetch<'a>(&'a self, _url: &'a str, _bytes_max: usize) -> Fetching<'a> {
        Box::pin(async { Err("nothing is fetched here".to_owned()) })
    }
}
