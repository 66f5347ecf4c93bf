//! The front gate of every door that listens on a socket: who may come in, how
//! often, and as whom.
//!
//! From the outside in: `Host` and `Origin`, requests of one network address,
//! authentication, requests of one caller, whose session it is. Each is a plain
//! decision in a file of its own; [`layer`] alone knows about HTTP. A request that
//! gets through carries a [`Principal`] and no longer carries its token: nothing
//! behind the gate can pass on what it never had.

pub mod address;
pub mod bearer;
pub mod bucket;
pub mod clock;
mod cors;
pub mod issuer;
pub mod jwt;
pub mod layer;
pub mod limit;
pub mod listen;
pub mod local;
pub mod oauth;
mod peer;
pub mod refusal;
pub mod session;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::caller::Caller;
use model::config::{OauthConfig, ServeConfig};
use model::govern::key::{KeyDigest, KeyRecord, Presented, Role};
use model::reason::Reason;
use subtle::ConstantTimeEq as _;

pub use clock::{Clock, Moment};
pub use issuer::FetchKeys;
pub use layer::{Reached, agents, documents, open, operators, probes};
pub use listen::{Auth, may_listen};
pub use refusal::Refusal;
pub use session::{Beginning, Sessions};

use address::Addresses;
use bearer::Credential;
use bucket::{Buckets, Rate};
use oauth::{Oauth, Rejection};
use peer::Peers;

/// Who made a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name rules and the audit know the caller by.
    pub caller: Caller,
    /// Who it is, whatever token they show today.
    pub id: PrincipalId,
    /// What they may do at all.
    pub role: Role,
    /// What their token says it is for.
    pub scopes: Arc<[String]>,
}

/// Somebody, the same across tokens and replaced keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalId(String);

impl PrincipalId {
    /// Whoever holds the token of this machine.
    #[must_use]
    pub fn local() -> PrincipalId {
        PrincipalId("local".to_owned())
    }

    /// Whoever holds the key with this id.
    #[must_use]
    pub fn key(id: &str) -> PrincipalId {
        PrincipalId(format!("key:{id}"))
    }

    /// A subject of an issuer.
    #[must_use]
    pub fn subject(issuer: &str, subject: &str) -> PrincipalId {
        // A line break is in neither, so two pairs never read the same.
        PrincipalId(format!("oauth:{issuer}\n{subject}"))
    }

    /// As text, for binding things to somebody.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The keys that count, asked at every request.
pub trait KeyBook: fmt::Debug + Send + Sync {
    /// The key with this id; an error is one sentence for the operator.
    fn find(&self, id: &str) -> Result<Option<KeyRecord>, String>;
}

/// What the operator set about the gate. It is read when the server starts.
#[derive(Clone, Debug)]
pub struct GateSettings {
    /// Where the server really listens.
    pub listen: SocketAddr,
    /// Names, origins and limits.
    pub serve: ServeConfig,
    /// Whose tokens count besides our own keys.
    pub oauth: Option<OauthConfig>,
    /// Whether a key is needed.
    pub auth: Auth,
}

/// What the gate asks others for.
#[derive(Clone, Debug)]
pub struct GateParts {
    /// The digest of this machine's token, if there is one.
    pub local: Option<KeyDigest>,
    /// The keys of callers.
    pub keys: Arc<dyn KeyBook>,
    /// Documents of issuers.
    pub fetch: Arc<dyn FetchKeys>,
    /// The time.
    pub clock: Clock,
}

/// The gate of one server.
#[derive(Debug)]
pub struct Gate {
    addresses: Addresses,
    auth: Auth,
    local: Option<KeyDigest>,
    keys: Arc<dyn KeyBook>,
    oauth: Option<Oauth>,
    clock: Clock,
    peers: Peers,
    callers: Mutex<Buckets<String>>,
    sessions: Sessions,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Gate {
    /// A gate, or every problem of the settings in one sentence each.
    pub fn new(settings: &GateSettings, parts: GateParts) -> Result<Gate, Vec<String>> {
        let serve = &settings.serve;
        may_listen(settings.listen, settings.auth).map_err(|problem| vec![problem])?;
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
        Ok(Gate {
            addresses,
            auth: settings.auth,
            local: parts.local,
            keys: parts.keys,
            oauth,
            clock: parts.clock,
            peers: Peers::new(serve.calls_per_minute),
            callers: Mutex::new(Buckets::new(calls, limit::BUCKETS_MAX)),
            sessions: Sessions::default(),
            refused: Mutex::default(),
        })
    }

    /// Whose session is whose. Tell it about sessions that ended by themselves.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The address clients know the server by.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.addresses.base()
    }

    /// How many requests were turned away, by reason.
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

    /// Who shows this credential.
    async fn principal(
        &self,
        credential: Credential<'_>,
        peer: IpAddr,
        now: Moment,
    ) -> Result<Principal, Refusal> {
        let found = match credential {
            Credential::None => match self.auth {
                Auth::Off => Ok(local_principal()),
                Auth::On => return Err(self.token_wanted()),
            },
            Credential::Ours(Presented::Local, text) => self.local_holder(text),
            Credential::Ours(Presented::Key(id), text) => self.key_holder(id, text, now),
            Credential::Foreign(text) => {
                self.peers.look_failures(peer, now.steady)?;
                self.token_holder(text, now).await
            }
            Credential::Misspelt => Err(self.token_refused(
                "the key has a slip in it; copy it again, or make another with `ringfence keys rotate NAME`",
            )),
        };
        match found {
            Err(refusal) if refusal.reason == Reason::GateToken => {
                self.peers.fail(peer, now.steady)?;
                Err(refusal)
            }
            other => other,
        }
    }

    fn local_holder(&self, text: &str) -> Result<Principal, Refusal> {
        let is_right = self
            .local
            .is_some_and(|digest| is_same(&digest, &model::govern::key::digest(text)));
        if !is_right {
            return Err(self.token_refused("the token is not the one in this home"));
        }
        Ok(local_principal())
    }

    fn key_holder(&self, id: &str, text: &str, now: Moment) -> Result<Principal, Refusal> {
        // Invariant 13: keys that cannot be looked up open nothing, and say so.
        let found = self.keys.find(id).map_err(|_| {
            Refusal::new(
                Reason::GateUnavailable,
                "the keys cannot be looked up just now; try again later",
            )
        })?;
        // The same work whether there is such a key or not.
        let digest = model::govern::key::digest(text);
        let expected = found.as_ref().map_or([0; 32], |record| record.digest);
        let is_right = is_same(&expected, &digest);
        let Some(record) = found.filter(|_| is_right) else {
            return Err(self.token_refused("the key is wrong or was revoked"));
        };
        if record.is_expired(now.unix_ms) {
            return Err(self.token_refused(
                "the key has expired; make another with `ringfence keys rotate NAME`",
            ));
        }
        Ok(Principal {
            caller: Caller::named(record.name),
            id: PrincipalId::key(&record.id),
            role: record.role,
            scopes: Arc::default(),
        })
    }

    async fn token_holder(&self, text: &str, now: Moment) -> Result<Principal, Refusal> {
        let Some(oauth) = &self.oauth else {
            return Err(self.token_refused("it is no key of this server"));
        };
        match oauth.principal(text, now).await {
            Ok(principal) => Ok(principal),
            Err(Rejection::Invalid(why)) => {
                Err(self.token_refused(&format!("the token does not count: {why}")))
            }
            Err(Rejection::Scopes(missing)) => Err(self.scopes_wanted(&missing)),
            Err(Rejection::Unavailable) => Err(Refusal::new(
                Reason::GateUnavailable,
                "the issuer of the token cannot be asked for its keys just now; try again later",
            )),
        }
    }

    fn take_turn(&self, caller: &Caller, now: Moment) -> Result<(), Refusal> {
        let taken = lock(&self.callers).take(caller.name.clone(), now.steady);
        taken.map_err(|wait| {
            Refusal::new(
                Reason::GateCallerLimit,
                "you asked more often than you may; wait a little",
            )
            .after(wait)
        })
    }

    fn token_wanted(&self) -> Refusal {
        let sentence = "show a key in the header `Authorization: Bearer …`: the token of this machine \
            is in the file `token` of the server's home, and `ringfence keys add NAME` makes another key";
        Refusal::new(Reason::GateToken, sentence).challenged(self.challenge(&[]))
    }

    fn token_refused(&self, sentence: &str) -> Refusal {
        let challenge = self.challenge(&[("error", "invalid_token")]);
        Refusal::new(Reason::GateToken, sentence).challenged(challenge)
    }

    fn scopes_wanted(&self, missing: &[String]) -> Refusal {
        let missing = missing.join(" ");
        let sentence = format!("the token lacks scopes: {missing}");
        let description = format!("missing: {missing}");
        // All that are needed, so that a client that asks anew keeps what it has.
        let challenge = self.challenge(&[
            ("error", "insufficient_scope"),
            ("error_description", &description),
        ]);
        Refusal::new(Reason::GateScope, sentence).challenged(challenge)
    }

    /// What a client that may try again with a token is told (RFC 6750, RFC 9728).
    fn challenge(&self, more: &[(&str, &str)]) -> String {
        let mut parts = Vec::new();
        match &self.oauth {
            None => parts.push(("realm", "ringfence".to_owned())),
            Some(oauth) => {
                let metadata = format!("{}{}", self.addresses.base(), layer::DOCUMENT_OF_MCP);
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
    fn document(&self) -> Option<serde_json::Value> {
        let oauth = self.oauth.as_ref()?;
        Some(oauth.document(&resource(&self.addresses)))
    }

    fn counted(&self, refusal: Refusal) -> Refusal {
        self.count(refusal.reason);
        refusal
    }

    fn count(&self, reason: Reason) {
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

fn is_same(one: &KeyDigest, other: &KeyDigest) -> bool {
    one.ct_eq(other).into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
