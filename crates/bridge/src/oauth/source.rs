//! The token for the next request: as kept, or renewed.
//!
//! Several processes share a refresh token that is good for one use. So the one that
//! renews holds the lock, reads again first, and what it clears on `invalid_grant` is
//! what it tried, never what another has saved since.

use std::fmt;
use std::time::{Duration, SystemTime};

use host::client::HttpClient;
use hyper::header::HeaderValue;

use crate::oauth::discover::discover;
use crate::oauth::kept::{
    ClientAuthentication, KeptClient, KeptTokens, TokenFile, TokenKey, TokenLock, TokenStamp,
};
use crate::oauth::login::{named_client, server_url};
use crate::oauth::request::{IssuedTokens, TokenAnswer, ask_for_tokens};
use crate::oauth::text::TokenText;
use crate::oauth::{OAuthFault, TOKEN_SKEW_SECONDS};

/// How long one that needs the lock waits for it: a request to an issuer, and some.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(60);

/// A token for one request.
#[derive(Clone, Debug)]
pub struct AccessToken {
    text: TokenText,
    generation: u64,
}

impl AccessToken {
    /// As a header. It was checked when it was issued; a file that was changed by hand
    /// may give an empty one, which every server refuses.
    pub(crate) fn header(&self) -> HeaderValue {
        let value = HeaderValue::from_str(&format!("Bearer {}", self.text.expose()));
        let mut value = value.unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        value.set_sensitive(true);
        value
    }
}

/// A client that signs in by itself.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: TokenText,
    /// What to ask for; empty: what the server says.
    pub scopes: Vec<String>,
}

/// Where the tokens of one server come from.
#[derive(Clone)]
pub struct TokenSource {
    client: HttpClient,
    file: TokenFile,
    key: TokenKey,
    credentials: Option<ClientCredentials>,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl TokenSource {
    /// The tokens of the server at this address, as the settings say it, and of this
    /// caller where callers do not share.
    #[must_use]
    pub fn new(client: HttpClient, file: TokenFile, url: &str, caller: Option<String>) -> Self {
        TokenSource {
            client,
            file,
            key: TokenKey {
                server: url.to_owned(),
                caller,
            },
            credentials: None,
        }
    }

    /// With credentials of our own, no person is needed.
    #[must_use]
    pub fn with_credentials(mut self, credentials: ClientCredentials) -> TokenSource {
        self.credentials = Some(credentials);
        self
    }

    /// The token for the next request; nothing before the first sign-in. One that the
    /// server has just refused is renewed, unless that has happened since.
    ///
    /// # Errors
    /// A sign-in is needed, the file cannot be used, or the issuer cannot be reached.
    pub async fn token(
        &self,
        refused: Option<&AccessToken>,
    ) -> Result<Option<AccessToken>, OAuthFault> {
        let kept = self.file.find(&self.key)?;
        let refused = refused.map(|token| token.generation);
        if let Some(token) = kept.as_ref().and_then(|kept| usable(kept, refused)) {
            return Ok(Some(token));
        }
        // No sign-in yet. The request goes without a token, and the server's answer says
        // whether one is needed.
        if kept.is_none() && self.credentials.is_none() {
            return Ok(None);
        }
        // Attack: a renewal that is dropped half way has used up the refresh token and
        // kept nothing. In a task of its own it goes on without the one that asked.
        let source = self.clone();
        let renewing = tokio::spawn(async move { source.renew(refused).await });
        let renewed = renewing.await.map_err(|error| OAuthFault::Machine {
            doing: "renew a token",
            what: error.to_string(),
        })?;
        renewed.map(Some)
    }

    /// Which file of tokens there is now.
    pub(crate) fn stamp(&self) -> Result<TokenStamp, OAuthFault> {
        Ok(self.file.stamp()?)
    }

    /// Every secret that is kept now, for masking.
    pub(crate) fn secrets(&self) -> Result<Vec<String>, OAuthFault> {
        let own = self.credentials.iter();
        let own = own.map(|credentials| credentials.secret.clone());
        let kept = self.file.find(&self.key)?.into_iter();
        let kept = kept.flat_map(|kept| [kept.access, kept.refresh, kept.client.secret]);
        let texts = own.chain(kept.flatten());
        Ok(texts.map(|text| text.expose().to_owned()).collect())
    }

    async fn renew(&self, refused: Option<u64>) -> Result<AccessToken, OAuthFault> {
        let lock = self.file.lock(LOCK_WAIT).await?;
        let lock = lock.ok_or(OAuthFault::Locked(LOCK_WAIT.as_secs()))?;
        // Another may have renewed it while this one waited.
        let kept = self.file.find(&self.key)?;
        if let Some(token) = kept.as_ref().and_then(|kept| usable(kept, refused)) {
            return Ok(token);
        }
        match (kept, &self.credentials) {
            (Some(kept), _) if kept.refresh.is_some() => self.refresh(kept, &lock).await,
            (kept, Some(credentials)) => self.sign_in(kept, credentials, &lock).await,
            (Some(_) | None, None) => Err(OAuthFault::SignInRequired),
        }
    }

    async fn refresh(
        &self,
        mut kept: KeptTokens,
        lock: &TokenLock,
    ) -> Result<AccessToken, OAuthFault> {
        let refresh = kept.refresh.clone().ok_or(OAuthFault::SignInRequired)?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("resource", &kept.resource),
        ];
        // The endpoint that issued it: a refresh token goes to no other, whatever is
        // discovered now.
        let endpoint = &kept.token_endpoint;
        let asking = ask_for_tokens(&self.client, endpoint, &kept.client, &form);
        match asking.await? {
            // Saved before it is used: the issuer may have made the old one void.
            TokenAnswer::Issued(issued) => self.keep(kept, issued, lock),
            TokenAnswer::GrantInvalid => {
                // The lock is held and the file was read under it, so this is the
                // generation that was tried.
                kept.generation += 1;
                kept.access = None;
                kept.refresh = None;
                self.file.save(&kept, lock)?;
                match &self.credentials {
                    Some(credentials) => self.sign_in(Some(kept), credentials, lock).await,
                    None => Err(OAuthFault::SignInRequired),
                }
            }
            TokenAnswer::Refused(words) => Err(OAuthFault::Refused(words)),
        }
    }

    /// Client credentials: no person, no refresh token.
    async fn sign_in(
        &self,
        kept: Option<KeptTokens>,
        credentials: &ClientCredentials,
        lock: &TokenLock,
    ) -> Result<AccessToken, OAuthFault> {
        let server = server_url(&self.client, &self.key.server)?;
        // Asked again each time. Credentials have no earlier sign-in that
        // they are bound to.
        let found = discover(&self.client, &server).await?;
        let secret = Some(credentials.secret.clone());
        let client = named_client(&credentials.id, secret, &found.issuer);
        let scope = match credentials.scopes.as_slice() {
            [] => found.scope.unwrap_or_default(),
            scopes => scopes.join(" "),
        };
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("resource", found.resource.as_str()),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let endpoint = &found.issuer.token_endpoint;
        let issued = match ask_for_tokens(&self.client, endpoint, &client, &form).await? {
            TokenAnswer::Issued(issued) => issued,
            TokenAnswer::GrantInvalid => return Err(OAuthFault::SignInRequired),
            TokenAnswer::Refused(words) => return Err(OAuthFault::Refused(words)),
        };
        let kept = KeptTokens {
            key: self.key.clone(),
            issuer: found.issuer.issuer,
            resource: found.resource,
            generation: kept.map_or(0, |kept| kept.generation),
            token_endpoint: found.issuer.token_endpoint,
            // The secret stays where the owner keeps it.
            client: KeptClient {
                id: credentials.id.clone(),
                secret: None,
                authentication: ClientAuthentication::None,
            },
            scope: None,
            access: None,
            refresh: None,
            expires_at: None,
        };
        self.keep(kept, issued, lock)
    }

    fn keep(
        &self,
        mut kept: KeptTokens,
        issued: IssuedTokens,
        lock: &TokenLock,
    ) -> Result<AccessToken, OAuthFault> {
        kept.generation += 1;
        kept.access = Some(issued.access.clone());
        // Without rotation the old one stays good.
        kept.refresh = issued.refresh.or(kept.refresh);
        kept.expires_at = expiry(issued.lifetime_seconds);
        kept.scope = issued.scope.or(kept.scope);
        self.file.save(&kept, lock)?;
        Ok(AccessToken {
            text: issued.access,
            generation: kept.generation,
        })
    }
}

/// The kept token, if it is neither over nor refused.
fn usable(kept: &KeptTokens, refused: Option<u64>) -> Option<AccessToken> {
    let text = kept.access.clone()?;
    let end = kept.expires_at.unwrap_or(u64::MAX);
    let is_over = end <= now().saturating_add(TOKEN_SKEW_SECONDS);
    // `>=`: a newer token than the refused one is worth a try.
    let is_refused = refused.is_some_and(|generation| generation >= kept.generation);
    (!is_over && !is_refused).then_some(AccessToken {
        text,
        generation: kept.generation,
    })
}

/// When a token ends. One that lives less than the skew is used until it is refused.
pub(crate) fn expiry(lifetime_seconds: Option<u64>) -> Option<u64> {
    let lifetime = lifetime_seconds.filter(|seconds| *seconds > TOKEN_SKEW_SECONDS)?;
    Some(now().saturating_add(lifetime))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
