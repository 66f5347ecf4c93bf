//! Signing in with a person's account at an issuer that the operator names: the address of
//! its page, and the exchange of the code that comes back for what it says about the person.
//!
//! Who asked, and whether the code came back to the same browser, is for the caller to know:
//! state, nonce and verifier are handed in.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use host::client::HttpClient;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::oauth::OAuthFault;
use crate::oauth::discover::{IssuerMetadata, find_issuer};
use crate::oauth::kept::KeptClient;
use crate::oauth::login::{check_flow, check_issuer, named_client};
use crate::oauth::request::{TokenAnswer, ask_for_tokens};
use crate::oauth::text::TokenText;

/// Who signs people in.
#[derive(Clone, Copy, Debug)]
pub struct FlowClient<'a> {
    /// The issuer's name.
    pub issuer: &'a str,
    /// The id of the client that was registered there.
    pub id: &'a str,
    /// Its secret, if it has one.
    pub secret: Option<&'a TokenText>,
}

/// One sign-in.
pub struct CodeRequest<'a> {
    /// Where the browser comes back to.
    pub redirect_uri: &'a str,
    /// What is asked for.
    pub scope: &'a str,
    /// Comes back with the code.
    pub state: &'a str,
    /// Stands in what the issuer says about the person.
    pub nonce: &'a str,
    /// Without it the code is of no use.
    pub verifier: &'a str,
}

// A verifier is a secret.
impl fmt::Debug for CodeRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeRequest").finish_non_exhaustive()
    }
}

/// An issuer that people sign in at.
#[derive(Clone)]
pub struct CodeFlow {
    client: HttpClient,
    metadata: IssuerMetadata,
    who: KeptClient,
}

impl fmt::Debug for CodeFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeFlow").finish_non_exhaustive()
    }
}

impl CodeFlow {
    /// Asks the issuer about itself.
    ///
    /// # Errors
    /// It does not answer, answers in another's name, or does not support PKCE.
    pub async fn discover(client: HttpClient, who: FlowClient<'_>) -> Result<CodeFlow, OAuthFault> {
        let metadata = find_issuer(&client, who.issuer).await?;
        // Before a person is sent anywhere: without PKCE a stolen code is enough.
        check_flow(&metadata)?;
        let who = named_client(who.id, who.secret.cloned(), &metadata);
        Ok(CodeFlow {
            client,
            metadata,
            who,
        })
    }

    /// The issuer's name, as it says it itself.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.metadata.issuer
    }

    /// Where its keys are.
    #[must_use]
    pub fn keys_url(&self) -> Option<&str> {
        self.metadata.jwks_uri.as_deref()
    }

    /// The page that the person opens.
    ///
    /// # Errors
    /// The issuer has none.
    pub fn page(&self, request: &CodeRequest<'_>) -> Result<String, OAuthFault> {
        let missing = || OAuthFault::Answer {
            doing: "sign in",
            what: "the issuer has no page for it".to_owned(),
        };
        let raw_url = self.metadata.authorization_endpoint.as_deref();
        let mut url = Url::parse(raw_url.ok_or_else(missing)?).map_err(|_| missing())?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(request.verifier));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.who.id)
            .append_pair("redirect_uri", request.redirect_uri)
            .append_pair("scope", request.scope)
            .append_pair("state", request.state)
            .append_pair("nonce", request.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Whether an answer is one of this issuer's (RFC 9207).
    ///
    /// # Errors
    /// It names another, or none where this issuer always names itself.
    pub fn check_issuer(&self, raw_issuer: Option<&str>) -> Result<(), OAuthFault> {
        check_issuer(&self.metadata, raw_issuer)
    }

    /// Exchanges a code for what the issuer says about the person. The other tokens of the
    /// answer are dropped unread.
    ///
    /// # Errors
    /// The issuer does not answer, refuses, or says nothing about the person.
    pub async fn fetch_identity(
        &self,
        raw_code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<String, OAuthFault> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", raw_code),
            ("redirect_uri", redirect_uri),
            // The issuer hashes it and compares with the challenge, so a stolen code alone
            // is of no use.
            ("code_verifier", verifier),
        ];
        let endpoint = &self.metadata.token_endpoint;
        match ask_for_tokens(&self.client, endpoint, &self.who, &form).await? {
            TokenAnswer::Issued(issued) => {
                let identity = issued.identity.ok_or_else(|| OAuthFault::Answer {
                    doing: "sign in",
                    what: "the issuer says nothing about the person".to_owned(),
                })?;
                Ok(identity.expose().to_owned())
            }
            TokenAnswer::GrantInvalid => Err(OAuthFault::Refused("invalid_grant".to_owned())),
            TokenAnswer::Refused(words) => Err(OAuthFault::Refused(words)),
        }
    }
}
