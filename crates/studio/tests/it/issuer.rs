//! An issuer of a person's accounts on loopback: metadata, keys, codes with PKCE, and signed
//! words about the person, which a test can twist.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const CLIENT: &str = "studio-of-ours";
pub(crate) const SECRET: &str = "client-secret-of-ours";

type Twist = Box<dyn Fn(&mut Value, &mut Value) + Send>;

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Own,
    /// With a key that the issuer does not publish.
    Stranger,
    /// Not at all.
    Not,
    /// With the public key as a shared secret.
    PublicAsSecret,
}

/// The issuer. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<Mutex<LabState>>,
}

pub(crate) struct LabState {
    pair: EcdsaKeyPair,
    stranger: EcdsaKeyPair,
    codes: HashMap<String, Begun>,
    next: u32,
    /// What the metadata say, changed.
    pub(crate) metadata: Value,
    pub(crate) twist: Option<Twist>,
    pub(crate) sign: Sign,
    /// An issuer that does not check the verifier.
    pub(crate) is_lax: bool,
    /// How often a code was brought.
    pub(crate) exchanges: usize,
}

#[derive(Clone)]
struct Begun {
    challenge: String,
    redirect_uri: String,
    claims: Value,
}

fn pair() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

impl Lab {
    pub(crate) async fn start() -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let name = format!("http://{address}");
        let metadata = json!({
            "issuer": name,
            "authorization_endpoint": format!("{name}/authorize"),
            "token_endpoint": format!("{name}/token"),
            "jwks_uri": format!("{name}/keys"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        let state = Arc::new(Mutex::new(LabState {
            pair: pair(),
            stranger: pair(),
            codes: HashMap::new(),
            next: 0,
            metadata,
            twist: None,
            sign: Sign::Own,
            is_lax: false,
            exchanges: 0,
        }));
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Lab { address, state }
    }

    pub(crate) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The settings of a Studio whose people sign in here.
    pub(crate) fn settings(&self) -> String {
        let name = self.name();
        format!(
            "[studio.oauth]\nissuer = \"{name}\"\nclient_id = \"{CLIENT}\"\nclient_secret = \"${{STUDIO_SECRET}}\"\n\
             viewer = [\"staff\"]\napprover = [\"leads\"]\nowner = [\"admins\"]\n"
        )
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut LabState)) {
        change(&mut self.state.lock().unwrap());
    }

    /// A person agrees at the page of the issuer: the query that their browser comes back with.
    pub(crate) fn agree(&self, page: &str, more: &Value, now_ms: i64) -> String {
        let asked = parameters(page.split_once('?').unwrap().1);
        assert_eq!(asked["response_type"], "code");
        assert_eq!(asked["client_id"], CLIENT);
        assert_eq!(asked["code_challenge_method"], "S256");
        let now = now_ms / 1_000;
        let mut claims = json!({
            "iss": self.name(), "aud": CLIENT, "sub": "u-17", "nonce": asked["nonce"],
            "iat": now, "exp": now + 300,
        });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        let code = format!("code-{}", state.next);
        let begun = Begun {
            challenge: asked["code_challenge"].clone(),
            redirect_uri: asked["redirect_uri"].clone(),
            claims,
        };
        state.codes.insert(code.clone(), begun);
        let issuer = self.name().replace(':', "%3A").replace('/', "%2F");
        format!("code={code}&state={}&iss={issuer}", asked["state"])
    }
}

/// Names and values of a query or a form.
pub(crate) fn parameters(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| {
        let mut bytes = Vec::new();
        let mut rest = value.bytes();
        while let Some(byte) = rest.next() {
            match byte {
                b'+' => bytes.push(b' '),
                b'%' => {
                    let hex = [rest.next().unwrap(), rest.next().unwrap()];
                    let hex = std::str::from_utf8(&hex).unwrap();
                    bytes.push(u8::from_str_radix(hex, 16).unwrap());
                }
                other => bytes.push(other),
            }
        }
        (name.to_owned(), String::from_utf8(bytes).unwrap())
    });
    pairs.collect()
}

async fn answer(State(state): State<Arc<Mutex<LabState>>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let basic = request.headers().get("authorization").cloned();
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let mut state = state.lock().unwrap();
    let (status, value) = match path.as_str() {
        "/.well-known/oauth-authorization-server" => (StatusCode::OK, state.metadata.clone()),
        "/keys" => (StatusCode::OK, json!({"keys": [public(&state.pair)]})),
        "/token" => {
            let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{SECRET}")));
            let is_ours = basic.is_some_and(|value| value.to_str().unwrap() == expected);
            state.token(is_ours, &parameters(std::str::from_utf8(&body).unwrap()))
        }
        _ => (StatusCode::NOT_FOUND, Value::Null),
    };
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response
}

fn public(pair: &EcdsaKeyPair) -> Value {
    let point = pair.public_key().as_ref();
    json!({
        "kty": "EC", "crv": "P-256", "kid": "one",
        "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
        "y": URL_SAFE_NO_PAD.encode(&point[33..]),
    })
}

impl LabState {
    fn token(&mut self, is_ours: bool, form: &HashMap<String, String>) -> (StatusCode, Value) {
        self.exchanges += 1;
        let refused = |word: &str| (StatusCode::BAD_REQUEST, json!({ "error": word }));
        if !is_ours {
            return refused("invalid_client");
        }
        // A code counts once.
        let Some(begun) = self.codes.remove(&form["code"]) else {
            return refused("invalid_grant");
        };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
        let fits = challenge == begun.challenge && form["redirect_uri"] == begun.redirect_uri;
        if !fits && !self.is_lax {
            return refused("invalid_grant");
        }
        let answer = json!({
            "access_token": "access-token-of-the-issuer",
            "refresh_token": "refresh-token-of-the-issuer",
            "token_type": "Bearer",
            "id_token": self.signed(begun.claims),
        });
        (StatusCode::OK, answer)
    }

    fn signed(&self, mut claims: Value) -> String {
        let mut header = json!({"alg": "ES256", "typ": "JWT", "kid": "one"});
        match self.sign {
            Sign::Own | Sign::Stranger => {}
            Sign::Not => header["alg"] = json!("none"),
            Sign::PublicAsSecret => header["alg"] = json!("HS256"),
        }
        if let Some(twist) = &self.twist {
            twist(&mut header, &mut claims);
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let random = SystemRandom::new();
        let signature = match self.sign {
            Sign::Own => self
                .pair
                .sign(&random, message.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Sign::Stranger => self
                .stranger
                .sign(&random, message.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Sign::Not => Vec::new(),
            Sign::PublicAsSecret => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.pair.public_key().as_ref());
                hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
