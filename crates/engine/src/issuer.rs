//! The keys of an issuer: fetched when they are needed, kept while they are good.
//!
//! Attack: tokens that name unknown keys, so that each makes us ask the issuer.
//! However many come, the issuer is asked at most once in
//! `ISSUER_INTERVAL_MIN`, by one request at a time. An issuer that does not
//! answer costs nothing that was known before.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::sync::lock;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::jwt::{Algorithm, PublicKey};
use crate::limit;

/// How long an issuer may take for one document.
pub const ISSUER_WAIT_MAX: Duration = Duration::from_secs(5);
/// How soon an issuer is asked again, whatever keys tokens name.
pub const ISSUER_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// How old keys of an issuer are when they are asked for again.
pub const ISSUER_FRESH: Duration = Duration::from_secs(600);
/// How old they may become while the issuer does not answer.
pub const ISSUER_STALE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The result of a fetch: the bytes, or one sentence for the operator.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// Fetches documents of an issuer. The implementation decides which addresses may be
/// reached, and stops at `bytes_max`.
pub trait FetchKeys: fmt::Debug + Send + Sync {
    /// The body of a successful `GET`.
    fn fetch<'a>(&'a self, url: &'a str, bytes_max: usize) -> Fetching<'a>;
}

/// An issuer's keys.
#[derive(Debug)]
pub struct Issuer {
    name: String,
    jwks_url: Option<String>,
    fetch: Arc<dyn FetchKeys>,
    state: Mutex<State>,
    /// Held while the issuer is asked.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    keys: Arc<Vec<PublicKey>>,
    /// When they came.
    fetched: Option<Duration>,
    /// When the issuer was asked last, with or without success.
    asked: Option<Duration>,
    /// Where its metadata say the keys are.
    found_url: Option<String>,
    /// Grows whenever the keys are other ones.
    version: u64,
    trouble: Option<String>,
}

/// The result of looking for the key that a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// The key.
    Key(PublicKey),
    /// The issuer has no such key.
    Unknown,
    /// The issuer has never answered, or not for too long.
    Unavailable,
}

impl Issuer {
    /// An issuer that was not asked yet.
    #[must_use]
    pub fn new(name: &str, jwks_url: Option<&str>, fetch: Arc<dyn FetchKeys>) -> Issuer {
        Issuer {
            name: name.to_owned(),
            jwks_url: jwks_url.map(str::to_owned),
            fetch,
            state: Mutex::default(),
            asking: Arc::default(),
        }
    }

    /// The key a token names, asking the issuer if need be.
    pub async fn key(
        self: &Arc<Self>,
        name: Option<&str>,
        algorithm: Algorithm,
        now: Duration,
    ) -> Known {
        let known = self.look(name, algorithm, now);
        if matches!(known, Known::Key(_)) {
            let is_fresh = self.age(now).is_some_and(|age| age < ISSUER_FRESH);
            // Good enough to go on with while the issuer is asked.
            if !is_fresh
                && self.may_ask(now)
                && let Ok(asking) = Arc::clone(&self.asking).try_lock_owned()
            {
                self.ask_apart(now, asking);
            }
            return known;
        }
        let asking = Arc::clone(&self.asking).lock_owned().await;
        // Another request may have asked while we waited.
        let known = self.look(name, algorithm, now);
        if matches!(known, Known::Key(_)) || !self.may_ask(now) {
            return known;
        }
        // A failure is kept as `trouble`; the second look then says `Unavailable`.
        let _ = self.ask_apart(now, asking).await;
        self.look(name, algorithm, now)
    }

    /// Attack: a client that names an unknown key and hangs up. The request to the
    /// issuer continues without it, or other clients would wait for nothing.
    fn ask_apart(
        self: &Arc<Self>,
        now: Duration,
        asking: OwnedMutexGuard<()>,
    ) -> tokio::task::JoinHandle<()> {
        let issuer = Arc::clone(self);
        tokio::spawn(async move {
            issuer.ask(now).await;
            drop(asking);
        })
    }

    /// Grows whenever the keys are other ones.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// Why the issuer could not be asked the last time, for the operator.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    fn age(&self, now: Duration) -> Option<Duration> {
        let fetched = self.state().fetched;
        fetched.map(|fetched| now.saturating_sub(fetched))
    }

    fn may_ask(&self, now: Duration) -> bool {
        let asked = self.state().asked;
        asked.is_none_or(|asked| now.saturating_sub(asked) >= ISSUER_INTERVAL_MIN)
    }

    fn look(&self, name: Option<&str>, algorithm: Algorithm, now: Duration) -> Known {
        if self.age(now).is_none_or(|age| age > ISSUER_STALE_MAX) {
            return Known::Unavailable;
        }
        let keys = Arc::clone(&self.state().keys);
        match choose(&keys, name, algorithm) {
            Some(key) => Known::Key(key.clone()),
            None => Known::Unknown,
        }
    }

    async fn ask(&self, now: Duration) {
        self.state().asked = Some(now);
        let waited = tokio::time::timeout(ISSUER_WAIT_MAX, self.fetch_keys()).await;
        let outcome =
            waited.unwrap_or_else(|_| Err("the issuer did not answer in time".to_owned()));
        let mut state = self.state();
        match outcome {
            Ok((url, keys)) => {
                if *state.keys != keys {
                    state.version += 1;
                    state.keys = Arc::new(keys);
                }
                state.found_url = Some(url);
                state.fetched = Some(now);
                state.trouble = None;
            }
            Err(trouble) => {
                // Its metadata may have changed; look again the next time.
                state.found_url = None;
                state.trouble = Some(trouble);
            }
        }
    }

    async fn fetch_keys(&self) -> Result<(String, Vec<PublicKey>), String> {
        let found = self.state().found_url.clone();
        let url = match self.jwks_url.clone().or(found) {
            Some(url) => url,
            None => self.discover().await?,
        };
        let bytes = self.document(&url).await?;
        let keys = read_keys(&bytes)?;
        Ok((url, keys))
    }

    /// Where the keys are, from the issuer's metadata. The first document that
    /// there is decides; one that speaks for another issuer is refused.
    async fn discover(&self) -> Result<String, String> {
        let mut trouble = "its address is not valid".to_owned();
        for url in metadata_urls(&self.name) {
            let bytes = match self.document(&url).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    trouble = error;
                    continue;
                }
            };
            return keys_url(&self.name, &bytes);
        }
        Err(format!(
            "the issuer's metadata cannot be fetched: {trouble}"
        ))
    }

    async fn document(&self, url: &str) -> Result<Vec<u8>, String> {
        let bytes = self.fetch.fetch(url, limit::ISSUER_BYTES_MAX).await?;
        // The fetcher should have stopped before.
        if bytes.len() > limit::ISSUER_BYTES_MAX {
            return Err("the document is too long".to_owned());
        }
        Ok(bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The one key that a name and an algorithm mean. Two that fit mean none: a token must
/// not get to try several keys.
fn choose<'a>(
    keys: &'a [PublicKey],
    name: Option<&str>,
    algorithm: Algorithm,
) -> Option<&'a PublicKey> {
    let fits = |key: &&PublicKey| {
        let is_named = name.is_none_or(|name| key.name.as_deref() == Some(name));
        is_named && key.fits(algorithm)
    };
    let mut fitting = keys.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(key), None) => Some(key),
        (None, _) | (Some(_), Some(_)) => None,
    }
}

fn read_keys(bytes: &[u8]) -> Result<Vec<PublicKey>, String> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|_| "the issuer's keys are not JSON".to_owned())?;
    let Some(raw_keys) = value.get("keys").and_then(Value::as_array) else {
        return Err("the issuer's keys are not a key set".to_owned());
    };
    if raw_keys.len() > limit::ISSUER_KEYS_MAX {
        return Err(format!(
            "the issuer has {} keys; at most {} are taken",
            raw_keys.len(),
            limit::ISSUER_KEYS_MAX
        ));
    }
    let keys: Vec<_> = raw_keys.iter().filter_map(PublicKey::read).collect();
    if keys.is_empty() {
        return Err("the issuer has no key that can check a signature".to_owned());
    }
    Ok(keys)
}

/// Where an issuer's metadata may be: RFC 8414, then OpenID Connect in both ways.
fn metadata_urls(issuer: &str) -> Vec<String> {
    let trimmed = issuer.trim_end_matches('/');
    let Some((scheme, rest)) = trimmed.split_once("://") else {
        return Vec::new();
    };
    let Some((host, path)) = rest.split_once('/') else {
        return vec![
            format!("{trimmed}/.well-known/oauth-authorization-server"),
            format!("{trimmed}/.well-known/openid-configuration"),
        ];
    };
    vec![
        format!("{scheme}://{host}/.well-known/oauth-authorization-server/{path}"),
        format!("{scheme}://{host}/.well-known/openid-configuration/{path}"),
        format!("{trimmed}/.well-known/openid-configuration"),
    ]
}

fn keys_url(issuer: &str, metadata: &[u8]) -> Result<String, String> {
    let value: Value = serde_json::from_slice(metadata)
        .map_err(|_| "the issuer's metadata are not JSON".to_owned())?;
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    if text("issuer") != Some(issuer) {
        return Err("the metadata name another issuer".to_owned());
    }
    let url = text("jwks_uri").ok_or("the issuer's metadata name no keys")?;
    // Keys that came unencrypted could be forged.
    let is_sealed = url.starts_with("https://");
    let issuer_is_plain = issuer.starts_with("http://") && url.starts_with("http://");
    if !is_sealed && !issuer_is_plain {
        return Err("the issuer's keys are not at an `https` address".to_owned());
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_looked_for_where_the_standards_say() {
        assert_eq!(
            metadata_urls("https://a.example"),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            metadata_urls("https://a.example/realms/one/"),
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/one",
                "https://a.example/.well-known/openid-configuration/realms/one",
                "https://a.example/realms/one/.well-known/openid-configuration",
            ]
        );
        assert!(metadata_urls("a.example").is_empty());
    }

    #[test]
    fn metadata_of_another_issuer_and_open_keys_are_refused() {
        let issuer = "https://a.example";
        let document = |issuer: &str, keys: &str| {
            format!(r#"{{"issuer":"{issuer}","jwks_uri":"{keys}"}}"#).into_bytes()
        };
        assert_eq!(
            keys_url(issuer, &document(issuer, "https://keys.example/k")),
            Ok("https://keys.example/k".to_owned())
        );
        for bad in [
            document("https://b.example", "https://keys.example/k"),
            document("https://a.example/", "https://keys.example/k"),
            document(issuer, "http://keys.example/k"),
            document(issuer, "file:///etc/keys"),
            br#"{"issuer":"https://a.example"}"#.to_vec(),
            b"[]".to_vec(),
            b"no".to_vec(),
        ] {
            assert!(keys_url(issuer, &bad).is_err(), "{bad:?}");
        }
        let local = "http://127.0.0.1:9";
        assert!(keys_url(local, &document(local, "http://127.0.0.1:9/k")).is_ok());
    }
}
