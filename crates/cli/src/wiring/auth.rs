//! The authentication of a server, wired: keys from the store, the token of this home,
//! and documents of issuers through the same network checks that tools pass.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use host::fetch::connect::Connector;
use host::fetch::{Fetch, FetchLimits, FetchSettings, TlsTrust};
use host::message::PowerRequest;
use mcp::auth::issuer::Fetching;
use mcp::auth::local::{self, LocalToken};
use mcp::auth::{
    Auth, AuthClock, AuthMode, AuthParts, AuthSettings, FetchKeys, KeyLookup, PipeClient, limit,
};
use model::config::Config;
use model::govern::key::{FormerKey, KeyDigest, KeyRecord};
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use serde_json::json;
use store::Keys;

use crate::settings;

/// The authentication of a server of a home that listens at `listen`.
pub(crate) fn open(
    home: &Path,
    config: &Config,
    listen: SocketAddr,
    mode: AuthMode,
) -> anyhow::Result<(Auth, LocalToken)> {
    // Checked before anything is made or opened.
    mcp::auth::may_listen(listen, mode).map_err(|problem| anyhow!(problem))?;
    let token = token(home)?;
    let ca_file = config.network.ca_file.as_ref();
    let trust = TlsTrust::system(ca_file.map(|path| home.join(path)));
    let named = config.oauth.as_ref().map(|oauth| {
        let urls = [Some(&oauth.issuer), oauth.jwks_url.as_ref()];
        urls.into_iter().flatten().cloned().collect()
    });
    let settings = AuthSettings {
        listen,
        serve: config.serve.clone(),
        oauth: config.oauth.clone(),
        mode,
    };
    let parts = AuthParts {
        local: Some(token.secret.digest()),
        keys: Arc::new(StoredKeys(Keys::open(home)?)),
        fetch: Arc::new(IssuerFetch::new(trust, named.unwrap_or_default())),
        clock: AuthClock::system(),
    };
    let auth = Auth::new(&settings, parts).map_err(|problems| anyhow!(problems.join("\n")))?;
    Ok((auth, token))
}

/// The owner's token: the one the service manager handed over, or the home's own.
fn token(home: &Path) -> anyhow::Result<LocalToken> {
    if let Some(credentials) = settings::credentials()
        && let Some(text) = credentials.token()?
    {
        return Ok(local::handed_over(&text, credentials.token_path())?);
    }
    Ok(local::open(home)?)
}

/// The client that starts `ringfence stdio`, by the key it shows.
pub(crate) fn pipe_client(home: &Path, text: &str) -> anyhow::Result<PipeClient> {
    let hint = "`ringfence connect CLIENT` makes one and writes it there";
    let keys = Arc::new(StoredKeys(Keys::open(home)?));
    let Some(client) = PipeClient::keyed(text, keys, AuthClock::system()) else {
        bail!("`{}` does not hold a key; {hint}", settings::KEY);
    };
    match client.caller() {
        // Asked once at the start, so that a client with a revoked key learns it
        // before its first call.
        Ok(_) => Ok(client),
        Err(why) => bail!("{why}; {hint}"),
    }
}

/// The keys in the store.
#[derive(Debug)]
struct StoredKeys(Keys);

impl KeyLookup for StoredKeys {
    fn find(&self, id: &str) -> Result<Option<KeyRecord>, String> {
        self.0.find(id).map_err(|error| error.to_string())
    }

    fn former(&self, digest: &KeyDigest) -> Option<FormerKey> {
        self.0.former(digest).ok().flatten()
    }
}

/// Fetches documents of issuers: from any public host, and from a private address only
/// if the operator wrote that very address into the settings.
#[derive(Debug)]
struct IssuerFetch {
    trust: TlsTrust,
    /// Addresses of the settings.
    named: Vec<String>,
    connector: Option<Arc<dyn Connector>>,
}

impl IssuerFetch {
    fn new(trust: TlsTrust, named: Vec<String>) -> IssuerFetch {
        IssuerFetch {
            trust,
            named,
            connector: None,
        }
    }

    async fn get(&self, url: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
        let tls = self.trust.tls().map_err(|error| error.to_string())?;
        let mut settings = FetchSettings::new(tls, Arc::new(Masker::none()));
        settings.limits = FetchLimits {
            whole: limit::ISSUER_WAIT_MAX,
            body_bytes_max: bytes_max,
            // Keys are where their address says, or nowhere.
            redirect_count_max: 0,
            ..FetchLimits::default()
        };
        if let Some(connector) = &self.connector {
            settings.connector = Arc::clone(connector);
        }
        let fetch = Fetch::from_grant(&self.grant(url), &HostBounds::default(), settings)
            .ok_or("no network")?;
        let arguments = json!({
            "url": url,
            "headers": { "accept": "application/json" },
        });
        let ask = PowerRequest {
            arguments,
            bytes: Vec::new(),
        };
        // Through the guard of `fetch`, because the address may come from a token's issuer.
        let answer = fetch
            .run(ask)
            .await
            .outcome
            .map_err(|fault| fault.told(&Masker::none()))?;
        match answer.value.get("ok").and_then(serde_json::Value::as_bool) {
            Some(true) => Ok(answer.bytes),
            Some(false) | None => {
                let status = answer
                    .value
                    .get("status")
                    .and_then(serde_json::Value::as_u64);
                Err(format!("the issuer answered {}", status.unwrap_or(0)))
            }
        }
    }

    /// An address that the operator wrote in digits may be private. A host from an
    /// issuer's metadata may not, unless it is the same.
    fn grant(&self, url: &str) -> NetworkGrant {
        let is_named = |host: &str| self.named.iter().any(|named| host_of(named) == Some(host));
        let host = host_of(url).filter(|host| is_address(host) && is_named(host));
        match host.map(HostPattern::parse) {
            // Only digits: a name could be pointed at a private address later.
            Some(Ok(pattern)) => NetworkGrant::Allowlist(vec![pattern]),
            Some(Err(_)) | None => NetworkGrant::Strict,
        }
    }
}

impl FetchKeys for IssuerFetch {
    fn fetch<'a>(&'a self, url: &'a str, bytes_max: usize) -> Fetching<'a> {
        Box::pin(self.get(url, bytes_max))
    }
}

/// Host and port as they stand in an address.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next()
}

fn is_address(host: &str) -> bool {
    let without_port = host.parse::<SocketAddr>().map(|address| address.ip());
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    without_port.is_ok() || bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests;
