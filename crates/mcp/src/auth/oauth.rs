//! Tokens of an issuer the operator trusts: when one is valid, which caller it names,
//! and the metadata for a client that has none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::claim::{self, TimesFault};
use engine::issuer::{FetchKeys, Issuer, Known};
use engine::jwt::{Algorithm, RawToken};
use model::caller::Caller;
use model::config::OauthConfig;
use model::govern::key::{KeyDigest, Role};
use model::sync::lock;
use serde_json::{Map, Value, json};

use crate::auth::clock::AuthMoment;
use crate::auth::limit;
use crate::auth::principal::{Principal, PrincipalId};

/// Checks tokens against the settings and the issuer's keys.
#[derive(Debug)]
pub struct Oauth {
    rule: TokenRule,
    issuer: Arc<Issuer>,
    verified: Mutex<Verified>,
}

/// The claims a token must have.
#[derive(Clone, Debug)]
pub struct TokenRule {
    issuer: String,
    audience: String,
    algorithms: Vec<Algorithm>,
    caller_claim: String,
    scopes: Vec<String>,
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is invalid. The words are fixed and quote nothing of the token.
    Invalid(&'static str),
    /// It is expired or not valid yet by the clock of this machine; one clock may be
    /// wrong.
    Clock(String),
    /// It is valid and lacks these scopes.
    Scopes(Vec<String>),
    /// The issuer cannot be asked for its keys.
    Unavailable,
}

/// Tokens that were checked a moment ago, by digest, so that the same signature is not
/// checked at every call.
#[derive(Debug, Default)]
struct Verified {
    version: u64,
    tokens: HashMap<KeyDigest, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    claims: Map<String, Value>,
    until: Duration,
}

impl Oauth {
    /// From the operator's settings. `resource` is the server's own address, which is
    /// the audience that tokens must have unless the operator sets another.
    pub fn new(
        config: &OauthConfig,
        resource: &str,
        fetch: Arc<dyn FetchKeys>,
    ) -> Result<Oauth, Vec<String>> {
        let mut problems = Vec::new();
        let algorithms: Vec<_> = config
            .algorithms
            .iter()
            .filter_map(|word| Algorithm::from_word(word))
            .collect();
        if algorithms.is_empty() {
            problems.push("`oauth.algorithms` is empty, so no token would be valid".to_owned());
        }
        let urls = [
            ("issuer", Some(&config.issuer)),
            ("jwks_url", config.jwks_url.as_ref()),
        ];
        for (setting, url) in urls {
            // Some issuers tell their key sets apart by a query.
            let without_query = |url: &String| match setting {
                "jwks_url" => url.split('?').next().unwrap_or_default().to_owned(),
                _ => url.clone(),
            };
            let is_bad = url
                .map(without_query)
                .is_some_and(|url| !is_sound_url(&url));
            if is_bad {
                problems.push(format!(
                    "`oauth.{setting}` must be an `https` address without query; `http` is for addresses of this machine or network, in digits"
                ));
            }
        }
        if config.audience.as_deref() == Some("") {
            problems.push("`oauth.audience` is empty".to_owned());
        }
        if let Some(bad) = config.scopes.iter().find(|scope| !is_scope(scope)) {
            let shown = model::text::elided(bad, 40);
            problems.push(format!("`{shown}` in `oauth.scopes` is not a scope"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Oauth {
            rule: TokenRule {
                issuer: config.issuer.clone(),
                audience: config.audience.clone().unwrap_or(resource.to_owned()),
                algorithms,
                caller_claim: config.caller_claim.clone(),
                scopes: config.scopes.clone(),
            },
            issuer: Arc::new(Issuer::new(
                &config.issuer,
                config.jwks_url.as_deref(),
                fetch,
            )),
            verified: Mutex::default(),
        })
    }

    /// The caller that a token names.
    pub async fn principal(
        &self,
        raw_token: &str,
        now: AuthMoment,
    ) -> Result<Principal, Rejection> {
        // Tokens are remembered by digest, so that memory holds none of them.
        let digest = model::govern::key::digest(raw_token);
        if let Some(claims) = self.remembered(&digest, now.steady) {
            // Only the signature is remembered. Times and scopes are checked at every
            // request.
            return self.rule.principal(&claims, now.unix_ms);
        }
        let token = RawToken::read(raw_token).ok_or(Rejection::Invalid("it cannot be read"))?;
        if !self.rule.algorithms.contains(&token.algorithm) {
            return Err(Rejection::Invalid("its algorithm is not accepted here"));
        }
        // Read before the key. If the keys change meanwhile, the token is remembered
        // under the old version and checked again.
        let version = self.issuer.version();
        let key_name = token.key_name.as_deref();
        let known = self.issuer.key(key_name, token.algorithm, now.steady);
        let key = match known.await {
            Known::Key(key) => key,
            Known::Unknown => return Err(Rejection::Invalid("its key is not the issuer's")),
            Known::Unavailable => return Err(Rejection::Unavailable),
        };
        let claims = token
            .verified(&key)
            .ok_or(Rejection::Invalid("its signature is wrong"))?;
        // Judged before it is remembered, so that invalid tokens displace no valid ones.
        let principal = self.rule.principal(&claims, now.unix_ms)?;
        self.remember(digest, claims, version, now.steady);
        Ok(principal)
    }

    /// The scopes a token must have, as a challenge says them.
    #[must_use]
    pub fn scopes(&self) -> String {
        self.rule.scopes.join(" ")
    }

    /// The document that tells clients where to get a token (RFC 9728).
    #[must_use]
    pub fn document(&self, resource: &str) -> Value {
        json!({
            "resource": resource,
            "authorization_servers": [self.rule.issuer],
            "scopes_supported": self.rule.scopes,
            "bearer_methods_supported": ["header"],
            "resource_name": "Ringfence",
        })
    }

    /// Why the issuer could not be asked the last time, for the operator.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.issuer.trouble()
    }

    fn remembered(&self, digest: &KeyDigest, now: Duration) -> Option<Map<String, Value>> {
        let version = self.issuer.version();
        let verified = self.verified();
        let found = verified.tokens.get(digest)?;
        // A key that the issuer withdrew takes its tokens with it.
        (verified.version == version && now < found.until).then(|| found.claims.clone())
    }

    fn remember(&self, digest: KeyDigest, claims: Map<String, Value>, version: u64, now: Duration) {
        let mut verified = self.verified();
        if verified.version != version {
            // The keys changed, so tokens that were verified with the old ones are
            // checked again.
            verified.tokens.clear();
            verified.version = version;
        }
        if verified.tokens.len() >= limit::VERIFIED_MAX {
            verified.tokens.retain(|_, token| now < token.until);
        }
        if verified.tokens.len() >= limit::VERIFIED_MAX {
            // Each token is only checked once more.
            verified.tokens.clear();
        }
        let until = now.saturating_add(limit::VERIFIED_AGE_MAX);
        verified.tokens.insert(digest, Remembered { claims, until });
    }

    fn verified(&self) -> MutexGuard<'_, Verified> {
        lock(&self.verified)
    }
}

impl TokenRule {
    /// The caller that the claims of a correctly signed token name.
    fn principal(&self, claims: &Map<String, Value>, now_ms: i64) -> Result<Principal, Rejection> {
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        if text("iss") != Some(&self.issuer) {
            return Err(Rejection::Invalid("it is of another issuer"));
        }
        if !claim::is_for(claims.get("aud"), &self.audience) {
            return Err(Rejection::Invalid("it is for another audience"));
        }
        claim::check_times(claims, now_ms).map_err(|fault| match fault {
            TimesFault::Unreadable(why) => Rejection::Invalid(why),
            TimesFault::Clock(why) => Rejection::Clock(why),
        })?;
        let subject = text("sub").ok_or(Rejection::Invalid("it names no subject"))?;
        let name = text(&self.caller_claim).ok_or(Rejection::Invalid("it names no caller"))?;
        for word in [subject, name] {
            if !claim::is_plain_name(word) {
                return Err(Rejection::Invalid("it names no usable caller"));
            }
        }
        let scopes = scopes(claims);
        let missing: Vec<_> = self
            .scopes
            .iter()
            .filter(|needed| !scopes.contains(needed))
            .cloned()
            .collect();
        if !missing.is_empty() {
            return Err(Rejection::Scopes(missing));
        }
        Ok(Principal {
            // A prefix of its own: an issuer cannot name the caller of one of our keys.
            caller: Caller::named(format!("oauth:{name}")),
            id: PrincipalId::subject(&self.issuer, subject),
            // Invariant 7: no issuer's token answers questions.
            role: Role::Agent,
            scopes: scopes.into(),
        })
    }
}

/// `scope` as one string, or `scp` as some issuers have it.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(words)) => words.split(' ').map(str::to_owned).collect(),
        Some(Value::Array(words)) => words
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(_) | None => Vec::new(),
    }
}

fn is_scope(scope: &str) -> bool {
    let legal = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !scope.is_empty() && scope.bytes().all(legal)
}

/// `https`, or `http` to an address in digits: without TLS a name could resolve to
/// anyone.
fn is_sound_url(url: &str) -> bool {
    let odd = |character: char| {
        character.is_whitespace()
            || character.is_control()
            || matches!(character, '?' | '#' | '@' | '\\' | '"')
    };
    if url.contains(odd) {
        return false;
    }
    if let Some(rest) = url.strip_prefix("https://") {
        return !rest.is_empty() && !rest.starts_with(['/', ':']);
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    host.parse::<std::net::SocketAddr>().is_ok()
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_ipv4())
        || host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok())
}
