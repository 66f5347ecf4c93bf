//! A server of MCP and an issuer of tokens on loopback, both of which misbehave when
//! asked to; and a wire that goes nowhere else.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bridge::http::HttpSettings;
use bridge::oauth::{LoginSettings, TokenFile, TokenSource};
use futures_util::{StreamExt as _, stream};
use host::client::{ClientLimits, ClientSettings, HttpClient};
use host::fetch::TlsTrust;
use host::fetch::connect::{Connecting, Connector, Stream};
use host::fetch::resolve::{Lookup, Resolve};
use model::network::host_pattern::HostPattern;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, TcpStream};

/// What the lab does, and what it saw.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Whether a token is asked for.
    pub(crate) is_protected: bool,
    /// Where `/mcp` sends everybody.
    pub(crate) redirect: Option<String>,
    /// Whether the session is forgotten.
    pub(crate) is_forgetful: bool,
    /// Sessions of before that are forgotten once, as after a restart.
    pub(crate) forgets: usize,
    /// Whether it keeps no sessions.
    pub(crate) is_stateless: bool,
    /// Whether it speaks the newer era, without subscriptions.
    pub(crate) is_modern: bool,
    /// What it lists, if not the one tool.
    pub(crate) tools: Option<Value>,
    /// Whether it hangs up after each reply.
    pub(crate) hangs_up: bool,
    /// Whether it cannot list now.
    pub(crate) fails_lists: bool,
    /// How often it was asked for its list.
    pub(crate) lists: usize,
    /// What the stream of notices does: nothing, or ends at once.
    pub(crate) stream: Option<&'static str>,
    /// Changes to the documents: `name` to a value.
    pub(crate) metadata: HashMap<&'static str, Value>,
    /// The issuer of the answer that the browser carries.
    pub(crate) answer_issuer: Option<String>,
    /// Seconds a token lives.
    pub(crate) lifetime: Option<u64>,
    /// Held up by requests for tokens.
    pub(crate) gate: Option<Arc<tokio::sync::Semaphore>>,
    /// Methods and paths, in order.
    pub(crate) seen: Vec<String>,
    /// A file that is spoilt while `confess` is called.
    pub(crate) spoil: Option<std::path::PathBuf>,
    /// The headers of the last message.
    pub(crate) headers: HeaderMap,
    /// What the last call of a tool was asked with.
    pub(crate) params: Value,
    /// And its id.
    pub(crate) id: Value,
    /// How many replies of `silent` ended.
    pub(crate) ended: usize,
    /// The number of the last token.
    pub(crate) generation: u64,
    /// Refresh tokens that were used twice.
    pub(crate) reuse_count: u64,
    /// How often a refresh token was used rightly.
    pub(crate) refresh_count: u64,
    challenges: HashMap<String, Asked>,
}

#[derive(Clone, Debug)]
struct Asked {
    challenge: String,
    redirect_uri: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Lab {
    pub(crate) address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

impl Lab {
    pub(crate) async fn start() -> Lab {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lab = Lab {
            address: listener.local_addr().unwrap(),
            book: Arc::default(),
        };
        let router = Router::new().fallback(serve).with_state(lab.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        lab
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        let book = self.book();
        book.seen.iter().filter(|seen| *seen == line).count()
    }

    /// A client that may reach the lab.
    pub(crate) fn client(&self, wire: &Arc<Wire>) -> HttpClient {
        self.client_with(wire, |_| {})
    }

    pub(crate) fn client_with(
        &self,
        wire: &Arc<Wire>,
        change: impl FnOnce(&mut ClientLimits),
    ) -> HttpClient {
        let tls = TlsTrust::system(None).tls().unwrap();
        let mut settings = ClientSettings::new(tls);
        settings.connector = Arc::clone(wire) as _;
        settings.resolver = Arc::new(Names);
        settings.private_hosts = [HostPattern::parse("127.0.0.1").unwrap()].into();
        change(&mut settings.limits);
        HttpClient::new(settings)
    }

    pub(crate) fn settings(&self, wire: &Arc<Wire>) -> HttpSettings {
        HttpSettings {
            url: self.url("/mcp"),
            headers: Vec::new(),
            client: self.client(wire),
            tokens: None,
            reply: Duration::from_secs(20),
        }
    }

    pub(crate) fn source(&self, wire: &Arc<Wire>, home: &Path) -> TokenSource {
        let file = TokenFile::new(home, "lab");
        TokenSource::new(self.client(wire), file, &self.url("/mcp"), None)
    }

    pub(crate) fn login(&self, wire: &Arc<Wire>, home: &Path) -> LoginSettings {
        LoginSettings {
            client: self.client(wire),
            url: self.url("/mcp"),
            file: TokenFile::new(home, "lab"),
            caller: None,
            client_id: None,
            client_secret: None,
            scopes: Vec::new(),
            redirect_port: 0,
            wait: Duration::from_secs(20),
        }
    }
}

/// `mcp.acme.com` is public, `mixed.acme.com` half of it.
#[derive(Debug)]
struct Names;

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let addresses: &[&str] = match name {
            "mcp.acme.com" => &["93.184.216.34"],
            "mixed.acme.com" => &["93.184.216.34", "10.0.0.7"],
            _ => &[],
        };
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    }
}

/// Goes to loopback, and remembers who else was called.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    called: Mutex<Vec<SocketAddr>>,
    /// Whether nothing listens at the other end.
    pub(crate) is_cut: std::sync::atomic::AtomicBool,
}

impl Wire {
    /// Whom it was asked to call that is not on loopback.
    pub(crate) fn strangers(&self) -> Vec<SocketAddr> {
        let called = self.called.lock().unwrap();
        let far = called.iter().filter(|address| !address.ip().is_loopback());
        far.copied().collect()
    }
}

impl Connector for Wire {
    fn connect(&self, address: SocketAddr) -> Connecting<'_> {
        self.called.lock().unwrap().push(address);
        let is_cut = self.is_cut.load(std::sync::atomic::Ordering::Relaxed);
        Box::pin(async move {
            if is_cut || !address.ip().is_loopback() {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            }
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(address).await?);
            Ok(stream)
        })
    }
}

fn reply(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    let reply = Response::builder().status(status);
    let reply = reply.header(header::CONTENT_TYPE, kind);
    reply.body(body.into()).unwrap()
}

fn json_reply(status: u16, value: &Value) -> Response {
    reply(status, "application/json", value.to_string())
}

async fn serve(State(lab): State<Lab>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    lab.book().seen.push(format!("{} {path}", head.method));
    let body = to_bytes(body, 1 << 20).await.unwrap();
    match path.as_str() {
        "/mcp" if lab.book().redirect.is_some() => {
            let location = lab.book().redirect.clone().unwrap();
            let reply = Response::builder().status(307);
            let reply = reply.header(header::LOCATION, location);
            reply.body(Body::empty()).unwrap()
        }
        "/mcp" | "/moved" => mcp(&lab, &head.method, head.headers, &body),
        "/.well-known/oauth-protected-resource/mcp" => json_reply(200, &resource(&lab)),
        "/.well-known/oauth-authorization-server" => json_reply(200, &issuer(&lab)),
        "/register" => json_reply(201, &json!({"client_id": "registered-1"})),
        "/authorize" => authorize(&lab, head.uri.query().unwrap_or_default()),
        "/token" => {
            let gate = lab.book().gate.clone();
            if let Some(gate) = gate {
                gate.acquire().await.unwrap().forget();
            }
            tokens(&lab, &head.headers, &body)
        }
        _ => reply(404, "text/plain", "nothing"),
    }
}

fn resource(lab: &Lab) -> Value {
    let mut document = json!({
        "resource": lab.url("/mcp"),
        "authorization_servers": [lab.url("")],
        "scopes_supported": ["tools"],
    });
    change(lab, &mut document, &["resource", "authorization_servers"]);
    document
}

fn issuer(lab: &Lab) -> Value {
    let mut document = json!({
        "issuer": lab.url(""),
        "authorization_endpoint": lab.url("/authorize?kept=1"),
        "token_endpoint": lab.url("/token"),
        "registration_endpoint": lab.url("/register"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    change(
        lab,
        &mut document,
        &[
            "issuer",
            "token_endpoint",
            "code_challenge_methods_supported",
            "registration_endpoint",
        ],
    );
    document
}

fn change(lab: &Lab, document: &mut Value, names: &[&str]) {
    for (name, value) in &lab.book().metadata {
        if names.contains(name) {
            document[*name] = value.clone();
        }
    }
}

fn pairs(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

/// A page on which the person agrees at once: the answer says where the browser goes.
fn authorize(lab: &Lab, query: &str) -> Response {
    let query = pairs(query);
    assert_eq!(query["kept"], "1");
    assert_eq!(query["response_type"], "code");
    assert_eq!(query["code_challenge_method"], "S256");
    assert_eq!(query["resource"], lab.url("/mcp"));
    assert_eq!(query["scope"], "tools");
    let mut book = lab.book();
    let code = format!("code-{}", book.challenges.len());
    let asked = Asked {
        challenge: query["code_challenge"].clone(),
        redirect_uri: query["redirect_uri"].clone(),
    };
    book.challenges.insert(code.clone(), asked);
    let issuer = book.answer_issuer.clone().unwrap_or_else(|| lab.url(""));
    drop(book);
    let mut back = url::Url::parse(&query["redirect_uri"]).unwrap();
    let mut answer = back.query_pairs_mut();
    answer.append_pair("code", &code);
    answer.append_pair("state", &query["state"]);
    if issuer != "none" {
        answer.append_pair("iss", &issuer);
    }
    drop(answer);
    reply(200, "text/plain", back.to_string())
}

fn tokens(lab: &Lab, headers: &HeaderMap, body: &Bytes) -> Response {
    let form = pairs(std::str::from_utf8(body).unwrap());
    let mut book = lab.book();
    assert_eq!(form["resource"], format!("http://{}/mcp", lab.address));
    let refused = |word: &str| json_reply(400, &json!({"error": word}));
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some(asked) = book.challenges.remove(&form["code"]) else {
                return refused("invalid_grant");
            };
            let digest = Sha256::digest(form["code_verifier"].as_bytes());
            assert_eq!(URL_SAFE_NO_PAD.encode(digest), asked.challenge);
            assert_eq!(form["redirect_uri"], asked.redirect_uri);
            assert_eq!(form["client_id"], "registered-1");
        }
        "refresh_token" => {
            let current = format!("rt-{}", book.generation);
            if form["refresh_token"] != current {
                book.reuse_count += 1;
                return refused("invalid_grant");
            }
            book.refresh_count += 1;
        }
        "client_credentials" => {
            // id and secret, coded: `robot:s3cret`.
            let shown = headers.get(header::AUTHORIZATION);
            if shown.is_none_or(|shown| shown != "Basic cm9ib3Q6czNjcmV0") {
                return refused("invalid_client");
            }
        }
        other => panic!("{other}"),
    }
    book.generation += 1;
    let number = book.generation;
    let mut answer = json!({
        "access_token": format!("at-{number}"),
        "token_type": "Bearer",
        "expires_in": book.lifetime.unwrap_or(3600),
    });
    if form["grant_type"] != "client_credentials" {
        answer["refresh_token"] = format!("rt-{number}").into();
    }
    json_reply(200, &answer)
}

fn mcp(lab: &Lab, method: &Method, headers: HeaderMap, body: &Bytes) -> Response {
    let mut book = lab.book();
    let token = headers.get(header::AUTHORIZATION);
    let token = token.map(|value| value.to_str().unwrap().to_owned());
    book.headers = headers;
    if book.is_protected && token != Some(format!("Bearer at-{}", book.generation)) {
        let place = lab.url("/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer resource_metadata=\"{place}\", scope=\"tools\"");
        let reply = Response::builder().status(401);
        let reply = reply.header(header::WWW_AUTHENTICATE, challenge);
        return reply.body(Body::empty()).unwrap();
    }
    let has_session = book.headers.contains_key("mcp-session-id");
    if has_session && book.forgets > 0 && *method == Method::POST {
        book.forgets -= 1;
        return reply(404, "text/plain", "no such session");
    }
    if book.is_forgetful && has_session {
        return reply(404, "text/plain", "no such session");
    }
    match *method {
        Method::GET => match book.stream {
            None => reply(405, "text/plain", "no"),
            Some(text) => reply(200, "text/event-stream", text),
        },
        Method::POST => {
            if let Some(file) = &book.spoil
                && body.windows(9).any(|word| word == b"\"confess\"")
            {
                std::fs::write(file, "not tokens").unwrap();
            }
            let heard: Value = serde_json::from_slice(body).unwrap();
            if heard["method"] == "tools/call" {
                book.params = heard["params"].clone();
                book.id = heard["id"].clone();
                if heard["params"]["name"] == "waits" {
                    return answer_later(&book, &heard["id"]);
                }
                if heard["params"]["name"] == "silent" {
                    let silent = stream::pending::<io::Result<Bytes>>();
                    let ended = Ended(lab.clone());
                    let silent = silent.inspect(move |_| _ = &ended);
                    return reply(200, "text/event-stream", Body::from_stream(silent));
                }
            }
            let shown = book.headers.get(header::AUTHORIZATION);
            let shown = shown
                .and_then(|value| value.to_str().ok())
                .unwrap_or("none");
            let shown = shown.to_owned();
            if heard["method"] == "tools/list" {
                book.lists += 1;
            }
            let mut answer = message(&book, &heard, &shown);
            if book.hangs_up {
                let close = "close".parse().unwrap();
                answer.headers_mut().insert(header::CONNECTION, close);
            }
            answer
        }
        _ => reply(200, "text/plain", ""),
    }
}

/// The answer comes once the gate lets it through.
fn answer_later(book: &Book, id: &Value) -> Response {
    let result = json!({"content": [{"type": "text", "text": "hello"}]});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let gate = Arc::clone(book.gate.as_ref().expect("a gate"));
    let event = stream::once(async move {
        gate.acquire().await.unwrap().forget();
        Ok::<_, io::Error>(Bytes::from(format!("data: {answer}\n\n")))
    });
    reply(200, "text/event-stream", Body::from_stream(event))
}

/// Counts when a reply that says nothing is dropped.
struct Ended(Lab);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.book().ended += 1;
    }
}

fn message(book: &Book, message: &Value, authorization: &str) -> Response {
    let Some(id) = message.get("id") else {
        return reply(202, "text/plain", "");
    };
    let answer = |mut result: Value| {
        if book.is_modern {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    };
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" if book.is_modern => json_reply(
            200,
            &answer(json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lab", "version": "1"},
            })),
        ),
        "initialize" if !book.is_modern => {
            let mut greeting = json_reply(
                200,
                &answer(json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "lab", "version": "1"},
                })),
            );
            if !book.is_stateless {
                let headers = greeting.headers_mut();
                headers.insert("mcp-session-id", "session-1".parse().unwrap());
            }
            greeting
        }
        "tools/list" if book.fails_lists => reply(500, "text/plain", "busy"),
        "tools/list" => {
            let one = || json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
            let tools = book.tools.clone().unwrap_or_else(one);
            json_reply(200, &answer(json!({ "tools": tools })))
        }
        "tools/call" if message["params"]["name"] == "confess" => {
            let words = json!({"content": [{"type": "text", "text": authorization}]});
            json_reply(200, &answer(words))
        }
        "tools/call" => call(message["params"]["name"].as_str().unwrap(), &answer),
        _ => json_reply(
            200,
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}),
        ),
    }
}

fn call(name: &str, answer: &dyn Fn(Value) -> Value) -> Response {
    let result = answer(json!({"content": [{"type": "text", "text": "hello"}]}));
    let event = format!("data: {result}\n\n");
    let events = |body: Body| reply(200, "text/event-stream", body);
    let piece = |text: &str| Ok::<_, io::Error>(Bytes::copy_from_slice(text.as_bytes()));
    match name {
        "echo" => json_reply(200, &result),
        "events" => events(event.into()),
        "pings-and-notices" => {
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "working"}});
            events(format!(": ping\n\ndata:\n\ndata: {notice}\n\n{event}").into())
        }
        "another-id" => {
            let mut other = result;
            other["id"] = "another".into();
            json_reply(200, &other)
        }
        "no-json" => reply(200, "application/json", "{"),
        "no-message" => json_reply(200, &json!({"answer": 42})),
        "html" => reply(200, "text/html", "<p>hello"),
        "empty" => reply(200, "application/json", ""),
        // As a server in JavaScript writes a text that it cut inside an emoji.
        "half" => reply(200, "application/json", halved(&result)),
        "half-events" => events(format!("data: {}\n\n", halved(&result)).into()),
        "half-error" => {
            let error = json!({"code": -32_602, "message": "hello"});
            let id = &result["id"];
            let error = json!({"jsonrpc": "2.0", "id": id, "error": error});
            reply(400, "application/json", halved(&error))
        }
        "accepted" => reply(202, "text/plain", ""),
        // Ends without an answer, well or not.
        "ends" => events(": bye\n\n".into()),
        "breaks" => events(Body::from_stream(stream::iter([
            piece("data: {\"json"),
            Err(io::Error::other("broken")),
        ]))),
        // One event that never ends.
        "endless" => {
            let pieces = stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from(vec![b'x'; 65536])));
            events(Body::from_stream(pieces))
        }
        "large" => {
            let text = "x".repeat(9 << 20);
            json_reply(200, &json!({"jsonrpc": "2.0", "id": 1, "result": text}))
        }
        "broken-status" => reply(
            StatusCode::BAD_GATEWAY.as_u16(),
            "text/html",
            "secret words",
        ),
        other => failure(other, &result),
    }
}

fn halved(message: &Value) -> String {
    message.to_string().replace("hello", "a\\ud83d")
}

/// `status-500` has no words of the protocol, `error-500` has.
fn failure(name: &str, result: &Value) -> Response {
    let (kind, status) = name.split_once('-').unwrap_or_else(|| panic!("{name}"));
    let status = status.parse().unwrap_or_else(|_| panic!("{name}"));
    match kind {
        "status" => reply(status, "text/plain", "words"),
        "error" => {
            let error = json!({"code": -32_602, "message": "not these arguments"});
            let id = &result["id"];
            json_reply(status, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
        }
        _ => panic!("{name}"),
    }
}
