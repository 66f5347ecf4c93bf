//! Signing in at the Studio with an issuer's account: authorization code with PKCE. What a
//! person may do comes from their claims, at every sign-in again.
//!
//! The browser that begins keeps one secret in a cookie. State, nonce and verifier are made
//! from it and from a key of this process, so nothing is kept here for those who never come
//! back, and an answer counts only in the browser that asked for it. No token of the issuer
//! is kept or shown.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bridge::oauth::{CodeFlow, CodeRequest, FlowClient, OAuthFault, TokenText};
use host::client::{ClientMethod, ClientRequest, HttpClient};
use model::config::StudioOauth;
use model::document::placeholder;
use model::govern::key::{self, Secret};
use model::govern::person::Person;
use model::sync::lock;
use model::text;
use model::time::MINUTE_MS;
use ring::hmac;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;
use url::Url;

use crate::claim::{self, TimesFault};
use crate::engine::Engine;
use crate::issuer::{FetchKeys, Fetching, ISSUER_WAIT_MAX, Issuer, Known};
use crate::jwt::RawToken;
use crate::limit;
use crate::people::{OpenSession, SessionPlace, SignInFault, VOUCHED, random};
use crate::servers::address::Outbound;

/// Why an account begins no session. The words are for the operator; a browser is told
/// [`LoginFault::code`] alone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoginFault {
    /// The settings name no issuer for the Studio.
    #[error("no issuer signs people in here")]
    Off,
    /// The issuer could not be asked, or what it says of itself is wrong.
    #[error("the issuer cannot be used: {0}")]
    Issuer(String),
    /// Not begun in this browser, or too long ago.
    #[error("the sign-in was not begun in this browser, or too long ago")]
    State,
    /// The person or the issuer said no.
    #[error("the issuer refused the sign-in: {0}")]
    Refused(String),
    /// What the issuer says about the person does not count.
    #[error("what the issuer says about the person does not count: {0}")]
    Token(String),
    /// The person has no role here.
    #[error("the account `{0}` has no role here")]
    Role(String),
    /// This server could not.
    #[error(transparent)]
    Server(#[from] SignInFault),
}

impl LoginFault {
    /// A word for the page, and what it says to the person. Nothing in either comes from the
    /// browser or the issuer.
    pub const SENTENCES: [(&'static str, &'static str); 7] = [
        ("off", "Sign-in with an account is switched off."),
        (
            "issuer",
            "The sign-in service cannot be used right now. The operator sees why.",
        ),
        (
            "state",
            "This sign-in was not begun in this browser, or more than ten minutes ago. Begin again.",
        ),
        (
            "refused",
            "The sign-in was refused or cancelled. Begin again.",
        ),
        (
            "token",
            "What the sign-in service said about you does not count here. The operator sees why.",
        ),
        (
            "role",
            "Your account has no role here. Ask the operator for one: viewer, approver or owner.",
        ),
        (
            "server",
            "The server could not begin a session. The operator sees why.",
        ),
    ];

    /// A word for the page.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LoginFault::Off => "off",
            LoginFault::Issuer(_) => "issuer",
            LoginFault::State => "state",
            LoginFault::Refused(_) => "refused",
            LoginFault::Token(_) => "token",
            LoginFault::Role(_) => "role",
            LoginFault::Server(_) => "server",
        }
    }
}

/// A sign-in that began.
#[derive(Clone, Debug)]
pub struct LoginStart {
    /// The issuer's page.
    pub url: String,
    /// For the browser's cookie alone.
    pub secret: Secret,
}

/// A sign-in that this browser began.
#[derive(Debug)]
pub struct BegunLogin {
    secret: Secret,
    begun_ms: i64,
}

/// What the browser came back with. Nothing of it is believed.
#[derive(Clone, Copy, Default)]
pub struct LoginReturn<'a> {
    /// The code.
    pub raw_code: Option<&'a str>,
    /// Who answers.
    pub raw_issuer: Option<&'a str>,
    /// Why there is no code.
    pub raw_error: Option<&'a str>,
}

// A code is a secret until it is used.
impl fmt::Debug for LoginReturn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginReturn").finish_non_exhaustive()
    }
}

/// Signing in with an issuer's account.
pub struct PersonLogin {
    key: Option<hmac::Key>,
    began: Instant,
    issuer: Mutex<Option<Arc<KnownIssuer>>>,
    /// Held while the issuer is asked about itself.
    asking: tokio::sync::Mutex<()>,
}

impl fmt::Debug for PersonLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonLogin").finish_non_exhaustive()
    }
}

/// An issuer as it described itself a moment ago.
struct KnownIssuer {
    oauth: StudioOauth,
    secret: Option<TokenText>,
    at: Instant,
    found: Result<Found, String>,
}

#[derive(Clone)]
struct Found {
    flow: CodeFlow,
    keys: Arc<Issuer>,
}

impl Default for PersonLogin {
    fn default() -> PersonLogin {
        let key = random::<32>().ok();
        PersonLogin {
            key: key.map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
            began: Instant::now(),
            issuer: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }
}

impl PersonLogin {
    /// Begins a sign-in: the page of the issuer, and the secret that binds its answer to
    /// this browser.
    ///
    /// # Errors
    /// There is no issuer, or it cannot be used.
    pub async fn begin(&self, engine: &Engine, back: &str) -> Result<LoginStart, LoginFault> {
        let oauth = oauth(engine)?;
        let found = self.find(engine, &oauth).await?;
        let secret = key::session_secret(random()?);
        let begun_ms = engine.now_ms();
        let request = CodeRequest {
            redirect_uri: back,
            scope: &oauth.scopes.join(" "),
            state: &self.state(&secret, begun_ms)?,
            nonce: &self.made("nonce", &secret, begun_ms)?,
            verifier: &self.made("verifier", &secret, begun_ms)?,
        };
        let url = found.flow.page(&request).map_err(said)?;
        Ok(LoginStart { url, secret })
    }

    /// Whether this browser began the sign-in that it comes back from. Asks no one.
    ///
    /// # Errors
    /// It did not, or too long ago.
    pub fn recognise(
        &self,
        engine: &Engine,
        secret: Option<Secret>,
        raw_state: Option<&str>,
    ) -> Result<BegunLogin, LoginFault> {
        let secret = secret.ok_or(LoginFault::State)?;
        let begun_ms = self.check_state(&secret, raw_state, engine.now_ms())?;
        Ok(BegunLogin { secret, begun_ms })
    }

    /// Ends a sign-in: exchanges the code, reads who it is and begins their session.
    ///
    /// # Errors
    /// Anything does not fit.
    pub async fn finish(
        &self,
        engine: &Engine,
        (begun, given): (&BegunLogin, LoginReturn<'_>),
        back: &str,
        place: SessionPlace<'_>,
    ) -> Result<(Secret, OpenSession), LoginFault> {
        let oauth = oauth(engine)?;
        let (secret, begun_ms) = (&begun.secret, begun.begun_ms);
        let found = self.find(engine, &oauth).await?;
        found.flow.check_issuer(given.raw_issuer).map_err(said)?;
        if let Some(raw_error) = given.raw_error {
            let words = text::elided(&text::one_line(raw_error), 100);
            return Err(LoginFault::Refused(words));
        }
        let raw_code = given.raw_code.filter(|code| !code.is_empty());
        let raw_code = raw_code.ok_or_else(|| LoginFault::Refused("no code".to_owned()))?;
        let verifier = self.made("verifier", secret, begun_ms)?;
        let token = found.flow.fetch_identity(raw_code, back, &verifier).await;
        let token = token.map_err(said)?;
        let claims = self.read_claims(&found, &token).await?;
        let nonce = self.made("nonce", secret, begun_ms)?;
        let subject = check_claims(&claims, &found, &oauth, &nonce, engine.now_ms())?;
        let person = person(&claims, &oauth, subject)?;
        let vouched = [("issuer", found.flow.issuer()), ("subject", subject)];
        Ok(engine.people().begin(&person, place, &vouched)?)
    }

    /// The issuer as it describes itself, asked at most once in a while.
    async fn find(&self, engine: &Engine, oauth: &StudioOauth) -> Result<Found, LoginFault> {
        let secret = client_secret(engine, oauth)?;
        let known = || {
            let known = lock(&self.issuer).clone();
            known.filter(|known| known.is_fresh(oauth, secret.as_ref()))
        };
        if let Some(known) = known() {
            return known.found.clone().map_err(LoginFault::Issuer);
        }
        let _asking = self.asking.lock().await;
        // Again, now alone: another browser may have asked in the meantime.
        if let Some(known) = known() {
            return known.found.clone().map_err(LoginFault::Issuer);
        }
        let found = discover(engine, oauth, secret.as_ref()).await;
        let answer = found.clone().map_err(LoginFault::Issuer);
        *lock(&self.issuer) = Some(Arc::new(KnownIssuer {
            oauth: oauth.clone(),
            secret,
            at: Instant::now(),
            found,
        }));
        answer
    }

    async fn read_claims(
        &self,
        found: &Found,
        raw: &str,
    ) -> Result<Map<String, Value>, LoginFault> {
        let refused = |why: &str| LoginFault::Token(why.to_owned());
        let token = RawToken::read(raw).ok_or_else(|| refused("it cannot be read"))?;
        // Attack: a token that was issued for an API, in place of one about a person.
        if token.is_access_token {
            return Err(refused("it is an access token"));
        }
        let name = token.key_name.as_deref();
        let known = found.keys.key(name, token.algorithm, self.began.elapsed());
        let key = match known.await {
            Known::Key(key) => key,
            Known::Unknown => return Err(refused("its key is not the issuer's")),
            Known::Unavailable => {
                let why = found.keys.trouble().unwrap_or_default();
                return Err(LoginFault::Issuer(why));
            }
        };
        let claims = token.verified(&key);
        claims.ok_or_else(|| refused("its signature is wrong"))
    }

    /// `TIME.PROOF`.
    fn state(&self, secret: &Secret, begun_ms: i64) -> Result<String, LoginFault> {
        let proof = self.made("state", secret, begun_ms)?;
        Ok(format!("{begun_ms}.{proof}"))
    }

    /// When the sign-in of this state was begun, if it was this browser's and not too long
    /// ago.
    fn check_state(
        &self,
        secret: &Secret,
        raw_state: Option<&str>,
        now_ms: i64,
    ) -> Result<i64, LoginFault> {
        let raw_state = raw_state.ok_or(LoginFault::State)?;
        let (raw_ms, _) = raw_state.split_once('.').ok_or(LoginFault::State)?;
        let begun_ms: i64 = raw_ms.parse().map_err(|_| LoginFault::State)?;
        let ours = self.state(secret, begun_ms)?;
        let age_ms = now_ms.saturating_sub(begun_ms);
        let is_ours = bool::from(ours.as_bytes().ct_eq(raw_state.as_bytes()));
        let is_new = (0..limit::LOGIN_MINUTES_MAX * MINUTE_MS).contains(&age_ms);
        match is_ours && is_new {
            true => Ok(begun_ms),
            false => Err(LoginFault::State),
        }
    }

    /// A value of one sign-in. Only this process can make it, and only with the secret of
    /// the browser's cookie.
    fn made(&self, what: &str, secret: &Secret, begun_ms: i64) -> Result<String, LoginFault> {
        let key = self.key.as_ref().ok_or(SignInFault::Random)?;
        let message = format!("{what}\n{begun_ms}\n{}", secret.reveal());
        Ok(URL_SAFE_NO_PAD.encode(hmac::sign(key, message.as_bytes())))
    }
}

impl KnownIssuer {
    fn is_fresh(&self, oauth: &StudioOauth, secret: Option<&TokenText>) -> bool {
        let seconds = match self.found {
            Ok(_) => limit::LOGIN_ISSUER_SECONDS_MAX,
            // An issuer that is down is asked again soon, but not by every browser.
            Err(_) => 5,
        };
        let is_young = self.at.elapsed() < Duration::from_secs(seconds);
        is_young && self.oauth == *oauth && self.secret.as_ref() == secret
    }
}

fn oauth(engine: &Engine) -> Result<StudioOauth, LoginFault> {
    engine.people().config().oauth.ok_or(LoginFault::Off)
}

fn client_secret(engine: &Engine, oauth: &StudioOauth) -> Result<Option<TokenText>, LoginFault> {
    let Some(template) = &oauth.client_secret else {
        return Ok(None);
    };
    let environment = engine.environment();
    let environment = environment.map_err(|fault| LoginFault::Issuer(fault.to_string()))?;
    match placeholder::resolve(template, &environment) {
        Ok(resolved) => Ok(Some(TokenText::new(resolved.text))),
        Err(names) => {
            let names = names.join("`, `");
            Err(LoginFault::Issuer(format!("`{names}` is not set")))
        }
    }
}

async fn discover(
    engine: &Engine,
    oauth: &StudioOauth,
    secret: Option<&TokenText>,
) -> Result<Found, String> {
    let now = engine.registry().current();
    let outbound = Outbound::new(engine.powers(), &now.config);
    // A host that the operator wrote in digits may be private; what an issuer's metadata
    // name may not, unless it is that same host.
    let parsed = Url::parse(&oauth.issuer).ok();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let private = Some(host).filter(|_| bare.parse::<IpAddr>().is_ok());
    let client = outbound.guarded(private)?;
    let who = FlowClient {
        issuer: &oauth.issuer,
        id: &oauth.client_id,
        secret,
    };
    let flow = CodeFlow::discover(client.clone(), who).await;
    let flow = flow.map_err(|fault| causes(&fault))?;
    let url = flow
        .keys_url()
        .ok_or("the issuer's metadata name no keys")?;
    let fetch = Arc::new(ClientFetch(client));
    let keys = Arc::new(Issuer::new(flow.issuer(), Some(url), fetch));
    Ok(Found { flow, keys })
}

/// Documents of the issuer, through the guarded client.
#[derive(Debug)]
struct ClientFetch(HttpClient);

impl FetchKeys for ClientFetch {
    fn fetch<'a>(&'a self, url: &'a str, bytes_max: usize) -> Fetching<'a> {
        Box::pin(async move {
            let mut request = ClientRequest::new(ClientMethod::Get, url);
            request.first_byte = Some(ISSUER_WAIT_MAX);
            let reply = self.0.send(request).await;
            let reply = reply.map_err(|fault| fault.to_string())?;
            if !reply.status.is_success() {
                return Err(format!("the issuer answered {}", reply.status.as_u16()));
            }
            let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
            let body = reply.body.read(bytes_max, ISSUER_WAIT_MAX).await;
            body.map_err(|fault| fault.to_string())
        })
    }
}

fn said(fault: OAuthFault) -> LoginFault {
    match fault {
        OAuthFault::Refused(words) => LoginFault::Refused(words),
        other => LoginFault::Issuer(causes(&other)),
    }
}

fn causes(fault: &dyn std::error::Error) -> String {
    text::one_line(&crate::error::causes(fault))
}

/// Whether claims are about a person, for us, now, and for this very sign-in. Gives the
/// subject.
fn check_claims<'a>(
    claims: &'a Map<String, Value>,
    found: &Found,
    oauth: &StudioOauth,
    nonce: &str,
    now_ms: i64,
) -> Result<&'a str, LoginFault> {
    let refused = |why: &str| LoginFault::Token(why.to_owned());
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(found.flow.issuer()) {
        return Err(refused("it is of another issuer"));
    }
    let audience = claims.get("aud");
    let is_shared = audience
        .and_then(Value::as_array)
        .is_some_and(|several| several.len() > 1);
    // Attack: a token that another client of the same issuer was given.
    let is_ours = match claims.get("azp") {
        Some(party) => party == oauth.client_id.as_str(),
        None => !is_shared,
    };
    if !claim::is_for(audience, &oauth.client_id) || !is_ours {
        return Err(refused("it is for another audience"));
    }
    // Attack: a code of another sign-in, or of another person, put into this one.
    let given = text("nonce").unwrap_or_default();
    if !bool::from(given.as_bytes().ct_eq(nonce.as_bytes())) {
        return Err(refused("it belongs to another sign-in"));
    }
    claim::check_times(claims, now_ms).map_err(|fault| match fault {
        TimesFault::Unreadable(why) => refused(why),
        TimesFault::Clock(why) => LoginFault::Token(why),
    })?;
    let subject = text("sub").filter(|subject| claim::is_plain_name(subject));
    subject.ok_or_else(|| refused("it names no usable subject"))
}

/// Who it is and what they may do.
fn person(
    claims: &Map<String, Value>,
    oauth: &StudioOauth,
    subject: &str,
) -> Result<Person, LoginFault> {
    let name = match oauth.name_claim.as_str() {
        "sub" => Some(subject),
        other => claims.get(other).and_then(Value::as_str),
    };
    let name = name.filter(|name| claim::is_plain_name(name));
    let name = name.ok_or_else(|| LoginFault::Token("it names no usable person".to_owned()))?;
    let values: Vec<&str> = match role_value(claims, &oauth.role_claim) {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    match oauth.role(values.into_iter()) {
        Some(role) => Ok(Person {
            name: format!("{VOUCHED}{name}"),
            role,
        }),
        None => Err(LoginFault::Role(name.to_owned())),
    }
}

/// The claim of this name, or the member that dots lead to.
fn role_value<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let mut names = name.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.as_object()?.get(name))
}
