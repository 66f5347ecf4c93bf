//! Signing in: a person, a browser, and a code that is of no use without our verifier.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use host::client::HttpClient;
use model::text;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::oauth::OAuthFault;
use crate::oauth::discover::{Discovered, IssuerMetadata, check_secure, discover};
use crate::oauth::kept::{ClientAuthentication, KeptClient, KeptTokens, TokenFile, TokenKey};
use crate::oauth::listen::{Listener, Returned};
use crate::oauth::request::{IssuedTokens, TokenAnswer, ask_for_tokens, post_document};
use crate::oauth::source::{LOCK_WAIT, expiry};
use crate::oauth::text::TokenText;

/// What a sign-in needs.
#[derive(Clone)]
pub struct LoginSettings {
    /// The guarded client.
    pub client: HttpClient,
    /// The server's address, as the settings say it.
    pub url: String,
    /// Where the tokens go.
    pub file: TokenFile,
    /// Whose tokens, where callers do not share.
    pub caller: Option<String>,
    /// The id of a client that was registered by hand; nothing: one is registered.
    pub client_id: Option<String>,
    /// Its secret, if it has one.
    pub client_secret: Option<TokenText>,
    /// What to ask for; empty: what the server says.
    pub scopes: Vec<String>,
    /// The port of the redirect; 0: any.
    pub redirect_port: u16,
    /// How long the person may take.
    pub wait: Duration,
}

impl fmt::Debug for LoginSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSettings").finish_non_exhaustive()
    }
}

/// A sign-in that worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// Who issued the tokens.
    pub issuer: String,
    /// What they are for.
    pub resource: String,
    /// What was granted, if the issuer says it.
    pub scope: Option<String>,
    /// Whether they can be renewed without a person.
    pub is_renewable: bool,
}

/// Signs in. `show` gets the address of the page that the person opens.
///
/// # Errors
/// The server offers no sign-in, a document is wrong, the person refuses or takes too
/// long, or the tokens cannot be kept.
pub async fn login(
    settings: LoginSettings,
    show: impl FnOnce(&str) + Send,
) -> Result<SignedIn, OAuthFault> {
    let server = server_url(&settings.client, &settings.url)?;
    let found = discover(&settings.client, &server).await?;
    check_flow(&found.issuer)?;
    // Before the client is registered: its redirect has to name the port.
    let listener = Listener::open(settings.redirect_port).await?;
    let redirect_uri = listener.redirect_uri.clone();
    let client = choose_client(&settings, &found.issuer, &redirect_uri).await?;
    let (verifier, state) = (random_text()?, random_text()?);
    let page = Page {
        found: &found,
        client: &client,
        redirect_uri: &redirect_uri,
        scope: chosen_scope(&settings.scopes, &found),
        state: &state,
        verifier: &verifier,
    };
    show(page.url()?.as_str());
    let code = match listener.wait(&state, settings.wait).await? {
        Returned::Code { code, issuer } => {
            // Before the code goes anywhere: it would be sent to the wrong issuer.
            check_issuer(&found.issuer, issuer.as_deref())?;
            code
        }
        Returned::Refused { error, issuer } => {
            // Also of a refusal, or another issuer could end a sign-in that is not its own.
            check_issuer(&found.issuer, issuer.as_deref())?;
            let words = text::elided(&text::one_line(&error), 100);
            return Err(OAuthFault::Refused(words));
        }
    };
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.expose()),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", verifier.expose()),
        // Binds the token to this server (RFC 8707): no other can use it.
        ("resource", &found.resource),
    ];
    let endpoint = &found.issuer.token_endpoint;
    match ask_for_tokens(&settings.client, endpoint, &client, &form).await? {
        TokenAnswer::Issued(issued) => keep(&settings, found, client, issued).await,
        TokenAnswer::GrantInvalid => Err(OAuthFault::Refused("invalid_grant".to_owned())),
        TokenAnswer::Refused(words) => Err(OAuthFault::Refused(words)),
    }
}

/// The address of a server, checked.
pub(crate) fn server_url(client: &HttpClient, raw_url: &str) -> Result<Url, OAuthFault> {
    let mut url = Url::parse(raw_url).map_err(|_| OAuthFault::Answer {
        doing: "read the address of the server",
        what: "it is no URL".to_owned(),
    })?;
    // No part of a resource's name (RFC 8707).
    url.set_fragment(None);
    check_secure(client, &url, "server")?;
    Ok(url)
}

/// Attack: downgrade. Without S256 a stolen code is as good as a token.
pub(crate) fn check_flow(issuer: &IssuerMetadata) -> Result<(), OAuthFault> {
    let methods = &issuer.code_challenge_methods_supported;
    if methods.iter().any(|method| method == "S256") {
        return Ok(());
    }
    Err(OAuthFault::Answer {
        doing: "sign in safely",
        what: "the issuer does not support PKCE with S256".to_owned(),
    })
}

/// Attack: mix-up (RFC 9207). An answer of another issuer is not for this one.
pub(crate) fn check_issuer(
    metadata: &IssuerMetadata,
    raw_issuer: Option<&str>,
) -> Result<(), OAuthFault> {
    match raw_issuer {
        Some(raw_issuer) if raw_issuer == metadata.issuer => Ok(()),
        Some(_) => Err(OAuthFault::Mismatch(
            "the answer comes from another issuer".to_owned(),
        )),
        None if metadata.authorization_response_iss_parameter_supported => Err(
            OAuthFault::Mismatch("the answer does not say which issuer it comes from".to_owned()),
        ),
        // Issuers that do not promise it leave it out, which is no sign of an attack.
        None => Ok(()),
    }
}

/// What the settings say, or the server; and the right to renew, if there is one.
fn chosen_scope(own: &[String], found: &Discovered) -> Option<String> {
    let mut scope = match own {
        [] => found.scope.clone().unwrap_or_default(),
        own => own.join(" "),
    };
    let offline = "offline_access";
    let is_offered = found
        .issuer
        .scopes_supported
        .iter()
        .any(|word| word == offline);
    // Without it some issuers give no refresh token, and a person would sign in every hour.
    if is_offered && !scope.split(' ').any(|word| word == offline) {
        scope = format!("{scope} {offline}").trim_start().to_owned();
    }
    Some(scope).filter(|scope| !scope.is_empty())
}

struct Page<'a> {
    found: &'a Discovered,
    client: &'a KeptClient,
    redirect_uri: &'a str,
    scope: Option<String>,
    state: &'a TokenText,
    verifier: &'a TokenText,
}

impl Page<'_> {
    fn url(&self) -> Result<Url, OAuthFault> {
        let missing = || OAuthFault::Answer {
            doing: "sign in",
            what: "the issuer has no page for it".to_owned(),
        };
        let raw_url = self.found.issuer.authorization_endpoint.as_deref();
        let mut url = Url::parse(raw_url.ok_or_else(missing)?).map_err(|_| missing())?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("state", self.state.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.found.resource);
        if let Some(scope) = &self.scope {
            query.append_pair("scope", scope);
        }
        drop(query);
        Ok(url)
    }
}

/// A client that was registered by hand, or one that is registered now.
async fn choose_client(
    settings: &LoginSettings,
    issuer: &IssuerMetadata,
    redirect_uri: &str,
) -> Result<KeptClient, OAuthFault> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        client_secret: Option<String>,
        token_endpoint_auth_method: Option<String>,
    }
    if let Some(id) = &settings.client_id {
        return Ok(named_client(id, settings.client_secret.clone(), issuer));
    }
    let Some(raw_url) = &issuer.registration_endpoint else {
        return Err(OAuthFault::ClientMissing);
    };
    const DOING: &str = "register with the issuer";
    let url = Url::parse(raw_url).map_err(|_| OAuthFault::ClientMissing)?;
    let document = json!({
        "client_name": "Ringfence",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        // A program on a person's machine cannot keep a secret; PKCE takes its place.
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    let registering = post_document(&settings.client, &url, &document, DOING);
    let registered: Registered = registering.await?;
    let secret = registered.client_secret.map(TokenText::new);
    let method = registered.token_endpoint_auth_method.as_deref();
    Ok(KeptClient {
        authentication: match (method, &secret) {
            (_, None) | (Some("none"), _) => ClientAuthentication::None,
            (Some("client_secret_post"), Some(_)) => ClientAuthentication::ClientSecretPost,
            (_, Some(_)) => ClientAuthentication::ClientSecretBasic,
        },
        id: registered.client_id,
        secret,
    })
}

pub(crate) fn named_client(
    id: &str,
    secret: Option<TokenText>,
    issuer: &IssuerMetadata,
) -> KeptClient {
    let methods = &issuer.token_endpoint_auth_methods_supported;
    let has = |name: &str| methods.iter().any(|method| method == name);
    let authentication = match &secret {
        None => ClientAuthentication::None,
        // Without a list it is basic (RFC 8414).
        Some(_) if methods.is_empty() || has("client_secret_basic") => {
            ClientAuthentication::ClientSecretBasic
        }
        Some(_) => ClientAuthentication::ClientSecretPost,
    };
    KeptClient {
        id: id.to_owned(),
        secret,
        authentication,
    }
}

async fn keep(
    settings: &LoginSettings,
    found: Discovered,
    client: KeptClient,
    issued: IssuedTokens,
) -> Result<SignedIn, OAuthFault> {
    let key = TokenKey {
        server: settings.url.clone(),
        caller: settings.caller.clone(),
    };
    let lock = settings.file.lock(LOCK_WAIT).await?;
    let lock = lock.ok_or(OAuthFault::Locked(LOCK_WAIT.as_secs()))?;
    let before = settings.file.find(&key)?;
    let tokens = KeptTokens {
        key,
        issuer: found.issuer.issuer,
        resource: found.resource,
        // Higher than before, so that a process with the old token sees that
        // it is another one.
        generation: before.map_or(0, |before| before.generation) + 1,
        token_endpoint: found.issuer.token_endpoint,
        client,
        scope: issued.scope,
        access: Some(issued.access),
        refresh: issued.refresh,
        expires_at: expiry(issued.lifetime_seconds),
    };
    settings.file.save(&tokens, &lock)?;
    Ok(SignedIn {
        issuer: tokens.issuer,
        resource: tokens.resource,
        scope: tokens.scope,
        is_renewable: tokens.refresh.is_some(),
    })
}

/// 256 random bits as a text.
fn random_text() -> Result<TokenText, OAuthFault> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| OAuthFault::Machine {
        doing: "draw random numbers",
        what: "this machine gives none".to_owned(),
    })?;
    Ok(TokenText::new(URL_SAFE_NO_PAD.encode(bytes)))
}
