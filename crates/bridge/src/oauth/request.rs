//! Requests to an issuer: documents as JSON, and forms for tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use host::client::{ClientMethod, ClientReply, ClientRequest, HttpClient};
use hyper::StatusCode;
use hyper::header::{self, HeaderValue};
use model::text;
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use crate::oauth::kept::{ClientAuthentication, KeptClient};
use crate::oauth::text::TokenText;
use crate::oauth::{DOCUMENT_BYTES_MAX, OAuthFault, TOKEN_BYTES_MAX};

/// One request to an issuer, and its body.
const WAIT: Duration = Duration::from_secs(20);

/// What an issuer gives.
#[derive(Clone, Debug)]
pub(crate) struct IssuedTokens {
    pub(crate) access: TokenText,
    pub(crate) refresh: Option<TokenText>,
    pub(crate) lifetime_seconds: Option<u64>,
    pub(crate) scope: Option<String>,
    /// What the issuer says about the person, signed.
    pub(crate) identity: Option<TokenText>,
}

/// How an issuer answers a request for tokens.
#[derive(Debug)]
pub(crate) enum TokenAnswer {
    Issued(IssuedTokens),
    /// The code or the refresh token is not good, or no longer.
    GrantInvalid,
    /// Another error of the standard, cut.
    Refused(String),
}

pub(crate) async fn send(
    client: &HttpClient,
    mut request: ClientRequest,
    doing: &'static str,
) -> Result<ClientReply, OAuthFault> {
    request.first_byte = Some(WAIT);
    let sent = client.send(request).await;
    sent.map_err(|source| OAuthFault::Request { doing, source })
}

pub(crate) async fn read(reply: ClientReply, doing: &'static str) -> Result<Vec<u8>, OAuthFault> {
    let reading = reply.body.read(DOCUMENT_BYTES_MAX, WAIT).await;
    reading.map_err(|source| OAuthFault::Request { doing, source })
}

/// A document; nothing if there is none at this address.
pub(crate) async fn get_document<T: for<'a> Deserialize<'a>>(
    client: &HttpClient,
    url: &Url,
    doing: &'static str,
) -> Result<Option<T>, OAuthFault> {
    let mut request = ClientRequest::new(ClientMethod::Get, url.as_str());
    let json = HeaderValue::from_static("application/json");
    request.headers.insert(header::ACCEPT, json);
    let reply = send(client, request, doing).await?;
    if reply.status.is_client_error() {
        return Ok(None);
    }
    let wrong = |what: String| OAuthFault::Answer { doing, what };
    if reply.status != StatusCode::OK {
        return Err(wrong(format!("HTTP {}", reply.status.as_u16())));
    }
    let body = read(reply, doing).await?;
    let document = serde_json::from_slice(&body);
    let document = document.map_err(|_| wrong("the document is not as it should be".to_owned()));
    document.map(Some)
}

/// Sends a document and reads one.
pub(crate) async fn post_document<T: for<'a> Deserialize<'a>>(
    client: &HttpClient,
    url: &Url,
    document: &Value,
    doing: &'static str,
) -> Result<T, OAuthFault> {
    let mut request = ClientRequest::new(ClientMethod::Post, url.as_str());
    let json = HeaderValue::from_static("application/json");
    request.headers.insert(header::ACCEPT, json.clone());
    request.headers.insert(header::CONTENT_TYPE, json);
    request.body = document.to_string().into();
    let reply = send(client, request, doing).await?;
    let status = reply.status;
    let body = read(reply, doing).await?;
    let wrong = |what: String| OAuthFault::Answer { doing, what };
    if !status.is_success() {
        return Err(wrong(said(&body, status)));
    }
    serde_json::from_slice(&body).map_err(|_| wrong("the answer is not as it should be".to_owned()))
}

#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
    id_token: Option<String>,
}

/// Asks the endpoint of an issuer for tokens.
pub(crate) async fn ask_for_tokens(
    client: &HttpClient,
    endpoint: &str,
    who: &KeptClient,
    form: &[(&str, &str)],
) -> Result<TokenAnswer, OAuthFault> {
    const DOING: &str = "get a token from the issuer";
    let mut pairs: Vec<(&str, &str)> = form.to_vec();
    let mut request = ClientRequest::new(ClientMethod::Post, endpoint);
    // One way only: a client must not show itself in two ways in one
    // request (RFC 6749, 2.3).
    match (who.authentication, &who.secret) {
        (ClientAuthentication::ClientSecretBasic, Some(secret)) => {
            let value = basic(&who.id, secret);
            request.headers.insert(header::AUTHORIZATION, value);
        }
        (ClientAuthentication::ClientSecretPost, Some(secret)) => {
            pairs.push(("client_id", &who.id));
            pairs.push(("client_secret", secret.expose()));
        }
        (ClientAuthentication::None, _) | (_, None) => pairs.push(("client_id", &who.id)),
    }
    let body = Serializer::new(String::new()).extend_pairs(pairs).finish();
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.insert(header::CONTENT_TYPE, form);
    let json = HeaderValue::from_static("application/json");
    request.headers.insert(header::ACCEPT, json);
    request.body = body.into();
    let reply = send(client, request, DOING).await?;
    let status = reply.status;
    let body = read(reply, DOING).await?;
    // Only these are answers of the standard; a broken issuer must not cost
    // the refresh token.
    if status.is_client_error() {
        let error = error_word(&body);
        return Ok(match error.as_deref() {
            Some("invalid_grant") => TokenAnswer::GrantInvalid,
            Some(_) | None => TokenAnswer::Refused(said(&body, status)),
        });
    }
    let wrong = |what: &str| OAuthFault::Answer {
        doing: DOING,
        what: what.to_owned(),
    };
    if !status.is_success() {
        return Err(wrong(&format!("HTTP {}", status.as_u16())));
    }
    let reply: TokenReply =
        serde_json::from_slice(&body).map_err(|_| wrong("the answer holds no token"))?;
    issued(reply).map(TokenAnswer::Issued).map_err(wrong)
}

fn issued(reply: TokenReply) -> Result<IssuedTokens, &'static str> {
    // Another kind would need a proof with each request, which we do not make.
    if !reply.token_type.eq_ignore_ascii_case("bearer") {
        return Err("the token is not a bearer token");
    }
    let is_token = |text: &str| {
        let is_sized = (1..=TOKEN_BYTES_MAX).contains(&text.len());
        // Attack: a token with a line break would be a header of the issuer's choice.
        is_sized && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !is_token(&reply.access_token) {
        return Err("the token cannot be sent in a header");
    }
    let refresh = reply.refresh_token.filter(|text| !text.is_empty());
    if refresh
        .as_deref()
        .is_some_and(|text| text.len() > TOKEN_BYTES_MAX)
    {
        return Err("the refresh token is too long");
    }
    // Some write the number as a text.
    let lifetime_seconds = reply.expires_in.and_then(|value| match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64(),
    });
    Ok(IssuedTokens {
        access: TokenText::new(reply.access_token),
        refresh: refresh.map(TokenText::new),
        lifetime_seconds,
        scope: reply.scope,
        identity: reply.id_token.map(TokenText::new),
    })
}

fn basic(id: &str, secret: &TokenText) -> HeaderValue {
    // Each part is a form value first (RFC 6749, 2.3.1).
    let coded =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let pair = format!("{}:{}", coded(id), coded(secret.expose()));
    let text = format!("Basic {}", STANDARD.encode(pair));
    // Base64 is always a header.
    let value = HeaderValue::from_str(&text);
    let mut value = value.unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

fn error_word(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    Some(value.get("error")?.as_str()?.to_owned())
}

/// The issuer's own words, cut. Only the word and its description: the rest may
/// repeat what was sent.
fn said(body: &[u8], status: StatusCode) -> String {
    let word = error_word(body).unwrap_or_default();
    match word.is_empty() {
        true => format!("HTTP {}", status.as_u16()),
        false => text::elided(&text::one_line(&word), 100),
    }
}
