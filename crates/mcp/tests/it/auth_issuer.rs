//! An issuer of tokens on loopback, which can be told to fail in every way.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp::auth::FetchKeys;
use mcp::auth::issuer::Fetching;
use model::config::OauthConfig;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::auth_world::exchange;

/// A key pair of the issuer.
pub(crate) struct Pair {
    name: Option<String>,
    pair: EcdsaKeyPair,
}

impl Pair {
    pub(crate) fn new(name: Option<&str>) -> Pair {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Pair {
            name: name.map(str::to_owned),
            pair: EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap(),
        }
    }

    /// As it stands in the key set.
    pub(crate) fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let mut key = json!({
            "kty": "EC",
            "crv": "P-256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
            "y": URL_SAFE_NO_PAD.encode(&point[33..]),
        });
        if let Some(name) = &self.name {
            key["kid"] = json!(name);
        }
        key
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = json!({"alg": "ES256", "typ": "at+jwt"});
        if let Some(name) = &self.name {
            header["kid"] = json!(name);
        }
        self.sign_with(&header, claims)
    }

    pub(crate) fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap());
        format!("{message}.{signature}")
    }
}

/// The issuer.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) address: SocketAddr,
    state: Arc<LabState>,
}

#[derive(Default)]
struct LabState {
    documents: Mutex<Vec<(String, String)>>,
    requests: Mutex<Vec<String>>,
}

impl Lab {
    pub(crate) async fn start() -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(LabState::default());
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Lab { address, state }
    }

    pub(crate) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts a document at a path, in the place of what was there.
    pub(crate) fn put(&self, path: &str, document: &str) {
        let mut documents = self.state.documents.lock().unwrap();
        documents.retain(|(known, _)| known != path);
        documents.push((path.to_owned(), document.to_owned()));
    }

    pub(crate) fn put_keys(&self, keys: &[Value]) {
        self.put("/keys", &json!({"keys": keys}).to_string());
    }

    /// From now on there is nothing.
    pub(crate) fn fail(&self) {
        self.state.documents.lock().unwrap().clear();
    }

    /// Which documents were asked for, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(crate) fn config(&self) -> OauthConfig {
        OauthConfig {
            issuer: self.name(),
            jwks_url: Some(format!("{}/keys", self.name())),
            audience: Some("https://tools.example.com/mcp".to_owned()),
            algorithms: vec!["RS256".to_owned(), "ES256".to_owned()],
            caller_claim: "sub".to_owned(),
            scopes: Vec::new(),
        }
    }
}

async fn answer(State(state): State<Arc<LabState>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    state.requests.lock().unwrap().push(path.clone());
    let documents = state.documents.lock().unwrap();
    let found = documents.iter().find(|(known, _)| *known == path);
    match found {
        Some((_, document)) => document.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Gets documents from loopback, and counts.
#[derive(Debug, Default)]
pub(crate) struct Courier {
    pub(crate) count: AtomicUsize,
}

impl FetchKeys for Courier {
    fn fetch<'a>(&'a self, url: &'a str, bytes_max: usize) -> Fetching<'a> {
        self.count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let rest = url.strip_prefix("http://").unwrap();
            let (host, path) = rest.split_once('/').unwrap();
            let address: SocketAddr = host.parse().unwrap();
            assert!(address.ip().is_loopback());
            let path = format!("/{path}");
            let reply = exchange(address, "GET", &path, &[("Host", host)], "").await;
            match reply.status {
                200 => Ok(reply
                    .body
                    .into_bytes()
                    .into_iter()
                    .take(bytes_max + 1)
                    .collect()),
                status => Err(format!("status {status}")),
            }
        })
    }
}
