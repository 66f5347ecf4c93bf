//! A home folder of its own for every test, an engine on it, and a Studio that is asked as a
//! browser asks.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use engine::call::CallRequest;
use engine::{Alarm, Clock, Engine, EngineSettings, WorkerProgram};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use model::Environment;
use model::caller::{Caller, Origin};
use model::network::web::Addresses;
use model::record::outcome::Outcome;
use serde_json::{Value, json};
use studio::{Studio, StudioSettings};
use tokio_util::sync::CancellationToken;

pub(crate) const HOST: &str = "127.0.0.1:7464";
pub(crate) const ORIGIN: &str = "http://127.0.0.1:7464";
const BEGIN_MS: i64 = 1_790_000_000_000;

/// A home, its engine, its Studio, and a clock that the test moves.
pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    pub(crate) router: Router,
    pub(crate) home: PathBuf,
    now_ms: Arc<AtomicI64>,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

impl World {
    pub(crate) fn new(settings: &str) -> World {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfence-studio-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(home.join("tools")).unwrap();
        std::fs::write(home.join("ringfence.toml"), settings).unwrap();
        let alarms: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&alarms);
        let alarm = Alarm::new(move |sentence| heard.lock().unwrap().push(sentence.to_owned()));
        let mut settings = EngineSettings::new(home.clone(), Environment::empty(), alarm);
        let worker = PathBuf::from(env!("CARGO_BIN_EXE_studio-test-worker"));
        settings.program = WorkerProgram::Other(worker, Vec::new());
        settings.single = true;
        let now_ms = Arc::new(AtomicI64::new(BEGIN_MS));
        let told = Arc::clone(&now_ms);
        settings.clock = Some(Clock::new(move || told.load(Ordering::SeqCst)));
        let engine = Arc::new(Engine::open(settings).unwrap());
        let router = studio(&engine, HOST).router();
        World {
            engine,
            router,
            home,
            now_ms,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    pub(crate) fn pass_minutes(&self, minutes: i64) {
        self.now_ms.fetch_add(minutes * 60_000, Ordering::SeqCst);
    }

    /// A code, as `serve` prints it.
    pub(crate) fn code(&self) -> String {
        self.engine
            .people()
            .make_code()
            .unwrap()
            .reveal()
            .to_owned()
    }

    /// A browser that has signed in.
    pub(crate) async fn owner(&self) -> Browser<'_> {
        let mut browser = Browser::new(&self.router);
        let body = json!({ "code": self.code() });
        let answer = browser.send(Method::POST, "/api/v1/session", &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        browser.cookie = answer.cookie();
        browser.csrf = answer.body["csrf"].as_str().map(str::to_owned);
        browser
    }

    /// Writes a tool and publishes it.
    pub(crate) async fn publish(&self, document: &Value) {
        let name = document["name"].as_str().unwrap();
        let path = self.home.join(format!("tools/{name}.json"));
        std::fs::write(path, format!("{document:#}")).unwrap();
        let usable = self.engine.tool(name).unwrap().usable;
        let needs = self.engine.wants(&usable, None).needs;
        let how = engine::consent::Consent::Flag;
        self.engine.consent(&usable, None, &needs, how).unwrap();
        let passed = self.engine.publish(name, Origin::Cli).await.unwrap();
        assert!(passed.ok, "{passed:?}");
    }

    /// A call by an agent, which waits in a task of its own.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> tokio::task::JoinHandle<Outcome> {
        let engine = Arc::clone(&self.engine);
        let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, tool, arguments);
        tokio::spawn(async move { engine.call(request).await.into_inner() })
    }

    /// The id of the one question that waits, once there is one.
    pub(crate) async fn question(&self) -> String {
        loop {
            let ids = self.engine.approvals().pending_ids().unwrap();
            if let Some(id) = ids.first() {
                return id.clone();
            }
            tokio::task::yield_now().await;
        }
    }
}

/// The Studio of an engine at an address.
pub(crate) fn studio(engine: &Arc<Engine>, listen: &str) -> Studio {
    let addresses = Addresses::new(listen.parse().unwrap(), None, &[], &[]).unwrap();
    let settings = StudioSettings {
        mcp_url: format!("{}/mcp", addresses.base()),
        addresses,
        version: "0.0.0",
        end: CancellationToken::new(),
    };
    Studio::new(Arc::clone(engine), settings)
}

/// A tool that asks before it runs.
pub(crate) fn asking(name: &str) -> Value {
    json!({
        "name": name, "description": "For a test.", "codeType": "Javascript",
        "code": "return 'path ' + path;",
        "params": [{"name": "path", "type": "STRING", "required": true, "description": "A path.", "testValue": "x"}],
        "humanInTheLoop": {"mode": "REQUIRED", "prompt": "Run it?"},
    })
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// `name=value` of the cookie that was set.
    pub(crate) fn cookie(&self) -> Option<String> {
        let whole = self.headers.get("set-cookie")?.to_str().unwrap();
        whole.split(';').next().map(str::to_owned)
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or("")
    }
}

/// A browser with one page open, or what pretends to be one.
#[derive(Clone)]
pub(crate) struct Browser<'a> {
    pub(crate) router: &'a Router,
    pub(crate) cookie: Option<String>,
    pub(crate) csrf: Option<String>,
    pub(crate) host: String,
    pub(crate) origin: Option<String>,
    pub(crate) site: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) content_type: Option<String>,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(router: &'a Router) -> Browser<'a> {
        Browser {
            router,
            cookie: None,
            csrf: None,
            host: HOST.to_owned(),
            origin: Some(ORIGIN.to_owned()),
            site: Some("same-origin".to_owned()),
            mode: None,
            content_type: Some("application/json".to_owned()),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        self.ask(method, path, Some(body.to_string())).await
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Answer {
        let response = self.open(method, path, body).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
        }
    }

    /// The answer with its body still to be read.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> axum::response::Response {
        let changes = method != Method::GET;
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("host", &self.host);
        let origin = self.origin.as_ref().filter(|_| changes);
        for (name, value) in [
            ("origin", origin),
            ("sec-fetch-site", self.site.as_ref()),
            ("sec-fetch-mode", self.mode.as_ref()),
            ("cookie", self.cookie.as_ref()),
            ("x-ringfence-csrf", self.csrf.as_ref().filter(|_| changes)),
            (
                "content-type",
                self.content_type.as_ref().filter(|_| changes),
            ),
        ] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let body = body.map_or_else(Body::empty, Body::from);
        let request = request.body(body).unwrap();
        let service = TowerToHyperService::new(self.router.clone());
        service.call(request).await.unwrap()
    }
}
