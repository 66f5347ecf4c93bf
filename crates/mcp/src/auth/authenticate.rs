//! From a credential to a principal: the token of this machine, a key of ours, or a
//! token of an issuer. `layer` does the HTTP.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use engine::issuer::FetchKeys;
use model::caller::Caller;
use model::config::{OauthConfig, ServeConfig};
use model::govern::key::{KeyDigest, KeyForm, Role};
use model::reason::Reason;
use model::sync::lock;

use crate::auth::address::Addresses;
use crate::auth::bearer::Credential;
use crate::auth::bucket::{Buckets, Rate};
use crate::auth::clock::{AuthClock, AuthMoment};
use crate::auth::key_lookup::{KeyFault, KeyLookup, find_holder, is_same};
use crate::auth::limit;
use crate::auth::listen::{AuthMode, may_listen};
use crate::auth::oauth::{Oauth, Rejection};
use crate::auth::peer::Peers;
use crate::auth::principal::{Principal, PrincipalId};
use crate::auth::refusal::AuthRefusal;

/// Where the document about tokens is, for the server as a whole.
pub(super) const DOCUMENT: &str = "/.well-known/oauth-protected-resource";
/// The same for the MCP endpoint.
pub(super) const DOCUMENT_OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

/// The operator's settings, read when the server starts.
#[derive(Clone, Debug)]
pub struct AuthSettings {
    /// Where the server really listens.
    pub listen: SocketAddr,
    /// Names, origins and limits.
    pub serve: ServeConfig,
    /// The issuer whose tokens are valid too, beside our own keys.
    pub oauth: Option<OauthConfig>,
    /// Whether a key is needed.
    pub mode: AuthMode,
}

/// The services authentication depends on.
#[derive(Clone, Debug)]
pub struct AuthParts {
    /// The digest of this machine's token, if there is one.
    pub local: Option<KeyDigest>,
    /// The keys of callers.
    pub keys: Arc<dyn KeyLookup>,
    /// Documents of issuers.
    pub fetch: Arc<dyn FetchKeys>,
    /// The time.
    pub clock: AuthClock,
}

/// The authentication of one server.
#[derive(Debug)]
pub struct Auth {
    pub(super) addresses: Addresses,
    mode: AuthMode,
    local: Option<KeyDigest>,
    keys: Arc<dyn KeyLookup>,
    oauth: Option<Oauth>,
    pub(super) clock: AuthClock,
    pub(super) peers: Peers,
    callers: Mutex<Buckets<String>>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Auth {
    /// Builds it from settings. Otherwise returns every problem, one sentence each.
    pub fn new(settings: &AuthSettings, parts: AuthParts) -> Result<Auth, Vec<String>> {
        let serve = &settings.serve;
        may_listen(settings.listen, settings.mode).map_err(|problem| vec![problem])?;
        let addresses = Addresses::new(
            settings.listen,
            serve.public_url.as_deref(),
            &serve.hosts,
            &serve.origins,
        )?;
        let resource = resource(&addresses);
        let oauth = settings
            .oauth
            .as_ref()
            .map(|config| Oauth::new(config, &resource, parts.fetch))
            .transpose()?;
        let calls = Rate::new(serve.calls_per_minute, limit::WINDOW);
        Ok(Auth {
            addresses,
            mode: settings.mode,
            local: parts.local,
            keys: parts.keys,
            oauth,
            clock: parts.clock,
            peers: Peers::new(serve.calls_per_minute),
            callers: Mutex::new(Buckets::new(calls, limit::BUCKETS_MAX)),
            refused: Mutex::default(),
        })
    }

    /// The address clients know the server by.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.addresses.base()
    }

    /// The names the server goes by.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// How many requests were refused, by reason.
    #[must_use]
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let refused = lock(&self.refused);
        refused
            .iter()
            .map(|(code, count)| (*code, *count))
            .collect()
    }

    /// Why the issuer of tokens could not be asked the last time.
    #[must_use]
    pub fn issuer_trouble(&self) -> Option<String> {
        self.oauth.as_ref().and_then(Oauth::trouble)
    }

    /// The principal of a credential.
    pub(super) async fn principal(
        &self,
        credential: Credential<'_>,
        peer: IpAddr,
        now: AuthMoment,
    ) -> Result<Principal, AuthRefusal> {
        let found = match credential {
            Credential::None => match self.mode {
                AuthMode::Off => Ok(local_principal()),
                AuthMode::On => return Err(self.token_wanted()),
            },
            Credential::Ours(KeyForm::Local, text) => self.local_holder(text),
            Credential::Ours(KeyForm::Key(id), text) => self.key_holder(id, text, now),
            Credential::Foreign(text) => {
                self.peers.check_failures(peer, now.steady)?;
                self.token_holder(text, now).await
            }
            Credential::Misspelt => Err(self.token_refused(
                "the key is mistyped; copy it again, or create another with `ringfence keys rotate NAME`",
            )),
        };
        match found {
            // Only a wrong credential is a guess. A missing scope, or an issuer that is
            // down, is none.
            Err(refusal) if refusal.reason == Reason::GateToken => {
                // Beyond the bound the client is told to wait, and nothing about its key.
                self.peers.count_failure(peer, now.steady)?;
                Err(refusal)
            }
            other => other,
        }
    }

    fn local_holder(&self, text: &str) -> Result<Principal, AuthRefusal> {
        let is_right = self
            .local
            .is_some_and(|digest| is_same(&digest, &model::govern::key::digest(text)));
        if !is_right {
            return Err(self.token_refused(
                "the token is not the one in this home: copy it from the file `token` of the home this server uses",
            ));
        }
        Ok(local_principal())
    }

    fn key_holder(&self, id: &str, text: &str, now: AuthMoment) -> Result<Principal, AuthRefusal> {
        let digest = model::govern::key::digest(text);
        let found = find_holder(self.keys.as_ref(), id, &digest, now.unix_ms);
        let record = found.map_err(|fault| match fault {
            KeyFault::Unavailable => AuthRefusal::new(
                Reason::GateUnavailable,
                "the keys cannot be looked up just now; try again later",
            ),
            KeyFault::Wrong => self.token_refused(
                "the key is wrong or was revoked; `ringfence connect CLIENT` writes a new one into the settings of a client",
            ),
            KeyFault::Former(former) => self.token_refused(&former.sentence()),
            KeyFault::Expired => self.token_refused(
                "the key has expired; create another with `ringfence keys rotate NAME`",
            ),
        })?;
        Ok(Principal {
            caller: Caller::named(record.name),
            id: PrincipalId::key(&record.id),
            role: record.role,
            scopes: Arc::default(),
        })
    }

    async fn token_holder(&self, text: &str, now: AuthMoment) -> Result<Principal, AuthRefusal> {
        let Some(oauth) = &self.oauth else {
            return Err(self.token_refused("it is not a key of this server"));
        };
        match oauth.principal(text, now).await {
            Ok(principal) => Ok(principal),
            Err(Rejection::Invalid(why)) => {
                Err(self.token_refused(&format!("the token is not valid: {why}")))
            }
            Err(Rejection::Clock(why)) => {
                Err(self.token_refused(&format!("the token is not valid now: {why}")))
            }
            Err(Rejection::Scopes(missing)) => Err(self.scopes_wanted(&missing)),
            Err(Rejection::Unavailable) => Err(AuthRefusal::new(
                Reason::GateUnavailable,
                "the issuer of the token cannot be asked for its keys just now; try again later",
            )),
        }
    }

    /// Counts a request of a caller.
    pub(super) fn take_turn(&self, caller: &Caller, now: AuthMoment) -> Result<(), AuthRefusal> {
        let taken = lock(&self.callers).take(caller.name.clone(), now.steady);
        taken.map_err(|wait| {
            AuthRefusal::new(
                Reason::GateCallerLimit,
                "too many requests of this caller; wait a little",
            )
            .after(wait)
        })
    }

    fn token_wanted(&self) -> AuthRefusal {
        let sentence = "show a key in the header `Authorization: Bearer …`: the token of this machine \
            is in the file `token` of the server's home, and `ringfence keys add NAME` makes another key";
        AuthRefusal::new(Reason::GateToken, sentence).challenged(self.challenge(&[]))
    }

    fn token_refused(&self, sentence: &str) -> AuthRefusal {
        let challenge = self.challenge(&[("error", "invalid_token")]);
        AuthRefusal::new(Reason::GateToken, sentence).challenged(challenge)
    }

    fn scopes_wanted(&self, missing: &[String]) -> AuthRefusal {
        let missing = missing.join(" ");
        let sentence = format!("the token lacks scopes: {missing}");
        let description = format!("missing: {missing}");
        // Every scope that is needed: a client that asks only for the missing ones
        // would lose the others.
        let challenge = self.challenge(&[
            ("error", "insufficient_scope"),
            ("error_description", &description),
        ]);
        AuthRefusal::new(Reason::GateScope, sentence).challenged(challenge)
    }

    /// The `WWW-Authenticate` challenge for a client that may retry with a token (RFC
    /// 6750, RFC 9728).
    fn challenge(&self, more: &[(&str, &str)]) -> String {
        let mut parts = Vec::new();
        match &self.oauth {
            None => parts.push(("realm", "ringfence".to_owned())),
            Some(oauth) => {
                let metadata = format!("{}{}", self.addresses.base(), DOCUMENT_OF_MCP);
                parts.push(("resource_metadata", metadata));
                if !oauth.scopes().is_empty() {
                    parts.push(("scope", oauth.scopes()));
                }
            }
        }
        let more = more.iter().map(|(key, word)| (*key, (*word).to_owned()));
        let all = parts.into_iter().chain(more);
        let all: Vec<_> = all.map(|(key, word)| format!("{key}=\"{word}\"")).collect();
        format!("Bearer {}", all.join(", "))
    }

    /// The document that tells clients where to get a token, if there is an issuer.
    pub(super) fn document(&self) -> Option<serde_json::Value> {
        let oauth = self.oauth.as_ref()?;
        Some(oauth.document(&resource(&self.addresses)))
    }

    pub(super) fn count(&self, reason: Reason) {
        *lock(&self.refused).entry(reason.code()).or_default() += 1;
    }
}

/// The server's own canonical name, which tokens must be for.
fn resource(addresses: &Addresses) -> String {
    format!("{}/mcp", addresses.base())
}

fn local_principal() -> Principal {
    Principal {
        caller: Caller::named("local"),
        id: PrincipalId::local(),
        role: Role::Agent,
        scopes: Arc::default(),
    }
}
