//! For tests alone: a gate that checks everything but keys, as `serve --no-auth` does.

use std::net::SocketAddr;
use std::sync::Arc;

use model::config::ServeConfig;
use model::govern::key::KeyRecord;

use crate::gate::clock::Clock;
use crate::gate::issuer::Fetching;
use crate::gate::{Auth, FetchKeys, Gate, GateParts, GateSettings, KeyBook};

/// A gate that asks nobody for a key; every problem of the settings if there is one.
pub fn unlocked(listen: SocketAddr, serve: ServeConfig) -> Result<Arc<Gate>, Vec<String>> {
    let settings = GateSettings {
        listen,
        serve,
        oauth: None,
        auth: Auth::Off,
    };
    let parts = GateParts {
        local: None,
        keys: Arc::new(Nobody),
        fetch: Arc::new(Nobody),
        clock: Clock::system(),
    };
    Gate::new(&settings, parts).map(Arc::new)
}

/// Has no keys and fetches nothing.
#[derive(Debug)]
struct Nobody;

impl KeyBook for Nobody {
    fn find(&self, _id: &str) -> Result<Option<KeyRecord>, String> {
        Ok(None)
    }
}

impl FetchKeys for Nobody {
    fn fetch<'a>(&'a self, _url: &'a str, _bytes_max: usize) -> Fetching<'a> {
        Box::pin(async { Err("nothing is fetched here".to_owned()) })
    }
}
