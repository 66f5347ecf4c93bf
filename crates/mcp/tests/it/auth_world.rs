//! A server behind authentication on loopback, with a clock that stands still, keys in a
//! table, and a client that writes its requests byte by byte.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::{any, get};
use axum::{Extension, Router};
use mcp::auth::issuer::Fetching;
use mcp::auth::{
    self, Auth, AuthClock, AuthMode, AuthMoment, AuthParts, AuthSettings, FetchKeys, KeyLookup,
    Principal, Sessions,
};
use mcp::http::HttpBounds;
use model::config::{Config, OauthConfig, ServeConfig};
use model::govern::key::{self, KeyRecord, Role, Secret};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// When the tests take place: a morning in 2026.
pub(crate) const START_MS: i64 = 1_780_000_000_000;

/// The address connections of these tests are said to have reached.
pub(crate) const REACHED: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)), 7464);

/// A clock that moves when it is told to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands {
    ms: Arc<AtomicI64>,
}

impl Hands {
    pub(crate) fn forward(&self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).unwrap();
        self.ms.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> AuthClock {
        let ms = Arc::clone(&self.ms);
        AuthClock::new(move || {
            let ms = ms.load(Ordering::SeqCst);
            AuthMoment {
                unix_ms: START_MS + ms,
                steady: Duration::from_millis(u64::try_from(ms).unwrap()),
            }
        })
    }

    /// Seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        (START_MS + self.ms.load(Ordering::SeqCst)) / 1_000
    }
}

/// Keys in a table, as the store would have them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) keys: Mutex<HashMap<String, KeyRecord>>,
    pub(crate) broken: Mutex<bool>,
}

impl Book {
    /// Adds a key and gives it.
    pub(crate) fn add(&self, name: &str, role: Role, expires_ms: Option<i64>) -> Secret {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let [.., a, b, c, d, e] = count.to_be_bytes();
        let id = key::id([a, b, c, d, e]);
        let secret = key::key(&id, [e; key::SECRET_BYTES]);
        let record = KeyRecord {
            id: id.clone(),
            name: name.to_owned(),
            role,
            digest: secret.digest(),
            created_ms: START_MS,
            expires_ms,
        };
        self.keys.lock().unwrap().insert(id, record);
        secret
    }
}

impl KeyLookup for Book {
    fn find(&self, id: &str) -> Result<Option<KeyRecord>, String> {
        if *self.broken.lock().unwrap() {
            return Err("the disk is gone".to_owned());
        }
        Ok(self.keys.lock().unwrap().get(id).cloned())
    }
}

/// No issuer at all.
#[derive(Debug)]
struct NoIssuer;

impl FetchKeys for NoIssuer {
    fn fetch<'a>(&'a self, _url: &'a str, _bytes_max: usize) -> Fetching<'a> {
        Box::pin(async { Err("the issuer does not answer".to_owned()) })
    }
}

/// How a server is set up.
pub(crate) struct Setup {
    pub(crate) serve: ServeConfig,
    pub(crate) oauth: Option<OauthConfig>,
    pub(crate) fetch: Arc<dyn FetchKeys>,
    pub(crate) mode: AuthMode,
    /// Where the server believes it listens, if not where it does.
    pub(crate) listen: Option<SocketAddr>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            serve: Config::closed().serve,
            oauth: None,
            fetch: Arc::new(NoIssuer),
            mode: AuthMode::On,
            listen: None,
        }
    }
}

/// A running server.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) auth: Arc<Auth>,
    pub(crate) hands: Hands,
    pub(crate) book: Arc<Book>,
    pub(crate) local: Secret,
    pub(crate) inside: Inside,
}

/// What is behind authentication: something like an MCP endpoint.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) sessions: Sessions,
    count: Arc<AtomicU64>,
    /// Sessions the endpoint has dropped by itself.
    pub(crate) dropped: Arc<Mutex<Vec<String>>>,
    /// Everything that was in a request which got through.
    pub(crate) seen: Arc<Mutex<String>>,
}

impl World {
    pub(crate) async fn start(setup: Setup) -> World {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hands = Hands::default();
        let book = Arc::new(Book::default());
        let local = key::local_token([5; key::SECRET_BYTES]);
        let bounds = HttpBounds::of(&setup.serve);
        let settings = AuthSettings {
            listen: setup.listen.unwrap_or(address),
            serve: setup.serve,
            oauth: setup.oauth,
            mode: setup.mode,
        };
        let parts = AuthParts {
            local: Some(local.digest()),
            keys: Arc::clone(&book) as Arc<dyn KeyLookup>,
            fetch: setup.fetch,
            clock: hands.clock(),
        };
        let auth = Arc::new(Auth::new(&settings, parts).unwrap());
        let inside = Inside {
            sessions: Sessions::new(bounds.sessions()),
            count: Arc::default(),
            dropped: Arc::default(),
            seen: Arc::default(),
        };
        let mcp = Router::new()
            .route("/mcp", any(endpoint))
            .with_state(inside.clone());
        let mcp = auth::own_sessions(mcp, &inside.sessions);
        let api = Router::new().route("/api/v1/approvals", get(who));
        let health = Router::new().route("/healthz", get(async || "fine"));
        let probe = Router::new().route("/readyz", get(async || "ready"));
        let app = Router::new()
            .merge(auth::agents(mcp, &auth))
            .merge(auth::operators(api, &auth))
            .merge(auth::probes(probe, &auth).layer(Extension(auth::ReachedAddress(REACHED))))
            .merge(auth::open(health.merge(auth::documents(&auth)), &auth));
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        World {
            address,
            auth,
            hands,
            book,
            local,
            inside,
        }
    }

    /// A request with `Host` and whatever else is given.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.post(method, path, headers, "{}").await
    }

    pub(crate) async fn post(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let host = self.address.to_string();
        let mut all = vec![("Host", host.as_str())];
        all.extend_from_slice(headers);
        exchange(self.address, method, path, &all, body).await
    }

    /// `POST /mcp` with this token.
    pub(crate) async fn call(&self, token: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        self.send("POST", "/mcp", &[("Authorization", &bearer)])
            .await
    }
}

/// Begins sessions, ends them, forgets some; says who came.
async fn endpoint(State(inside): State<Inside>, request: Request) -> Response {
    let seen = format!(
        "{:?} {:?} {:?}",
        request.headers(),
        request.uri(),
        request.extensions().get::<Principal>()
    );
    inside.seen.lock().unwrap().push_str(&seen);
    let name = request.extensions().get::<Principal>();
    let name = name.map_or("nobody", |principal| principal.caller.name.as_str());
    let mut response = Response::new(Body::from(name.to_owned()));
    let session = request.headers().get("mcp-session-id");
    let session = session.map(|id| id.to_str().unwrap().to_owned());
    let begins = request.headers().contains_key("x-initialize");
    match (request.method(), session) {
        (&Method::POST, None) if begins => {
            let count = inside.count.fetch_add(1, Ordering::SeqCst);
            let id = format!("session-{count}");
            let principal = request.extensions().get::<Principal>().unwrap();
            let begun = inside.sessions.begin(&Arc::from(id.as_str()), principal);
            begun.unwrap();
            let id = HeaderValue::from_str(&id).unwrap();
            response.headers_mut().insert("mcp-session-id", id);
        }
        (_, Some(id)) if inside.dropped.lock().unwrap().contains(&id) => {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        (&Method::DELETE, Some(_)) => *response.status_mut() = StatusCode::ACCEPTED,
        _ => {}
    }
    response
}

async fn who(request: Request) -> String {
    let principal = request.extensions().get::<Principal>().unwrap();
    format!("{} {}", principal.caller.name, principal.role.word())
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The reason code of a refusal, which must be a JSON-RPC error.
    #[track_caller]
    pub(crate) fn reason(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).expect(&self.body);
        assert_eq!(body["jsonrpc"], "2.0");
        assert_eq!(body["id"], Value::Null);
        assert!(body["error"]["code"].is_i64());
        assert!(body["error"]["message"].as_str().unwrap().len() > 10);
        body["error"]["data"]["reason"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, reason: &str) {
        assert_eq!((self.status, self.reason().as_str()), (status, reason));
    }
}

/// One request, one answer, exactly these headers.
pub(crate) async fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    request.push_str(&format!(
        "Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    Reply {
        status: status.parse().unwrap(),
        headers: headers.collect(),
        body: body.to_owned(),
    }
}
