//! The Studio of one server: what its routes share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::http::header::HeaderValue;
use engine::Engine;
use engine::health::Health;
use engine::person_login::PersonLogin;
use model::network::web::Addresses;
use model::record::audit::notice::SERVER;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::hub::EventHub;
use crate::limit;
use crate::tries::SignInTries;

/// What a Studio is opened with.
#[derive(Clone, Debug)]
pub struct StudioSettings {
    /// The names of the server, and its own address.
    pub addresses: Addresses,
    /// The version of the program.
    pub version: &'static str,
    /// Where agents connect.
    pub mcp_url: String,
    /// Ends the streams.
    pub end: CancellationToken,
}

/// The Studio of one server. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Studio {
    pub(crate) inner: Arc<StudioState>,
}

#[derive(Debug)]
pub(crate) struct StudioState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: StudioSettings,
    /// The name of the cookie. Browsers send cookies to every port of a host, so each
    /// server has a name of its own.
    pub(crate) cookie: String,
    pub(crate) tries: SignInTries,
    /// Signing in with an issuer's account.
    pub(crate) login: PersonLogin,
    pub(crate) events: EventHub,
    /// One permit for each request that is worked on.
    pub(crate) work: Arc<Semaphore>,
    /// One permit for each server that is tried out.
    pub(crate) trials: Semaphore,
    /// Calls of the inspector that are under way, by the page's own name for them.
    pub(crate) calls: Mutex<HashMap<String, CancellationToken>>,
    /// The last examination of this machine.
    pub(crate) health: tokio::sync::Mutex<Option<(Instant, Arc<Health>)>>,
}

impl Studio {
    /// The Studio of an engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>, settings: StudioSettings) -> Studio {
        // By the address, so that two servers of one host have two cookies.
        let digest = Sha256::digest(settings.addresses.base().as_bytes());
        let piece: String = digest
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Studio {
            inner: Arc::new(StudioState {
                engine,
                settings,
                cookie: format!("ringfence_studio_{piece}"),
                tries: SignInTries::default(),
                login: PersonLogin::default(),
                events: EventHub::default(),
                work: Arc::new(Semaphore::new(limit::REQUESTS_MAX)),
                trials: Semaphore::new(limit::TRIALS_MAX),
                calls: Mutex::default(),
                health: tokio::sync::Mutex::default(),
            }),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The address sessions are begun at.
    pub(crate) fn address(&self) -> &str {
        self.inner.settings.addresses.base()
    }

    /// Tells the operator why the server failed, and the page that it did.
    pub(crate) fn alarm(
        &self,
        what: &str,
        fault: &dyn std::error::Error,
    ) -> crate::error::ApiError {
        let mut why = fault.to_string();
        let mut source = fault.source();
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        self.engine()
            .alarm(&format!("the Studio, {SERVER}: {what}: {why}"));
        crate::error::ApiError::unavailable(format!("{what}; the operator sees why"))
    }

    /// The value of `Set-Cookie` for a session, or for none.
    pub(crate) fn set_cookie(&self, secret: Option<&str>, seconds: i64) -> Option<HeaderValue> {
        let is_sealed = self.address().starts_with("https://");
        // Over plain HTTP on this machine a browser would drop a cookie that is marked so.
        let secure = if is_sealed { "; Secure" } else { "" };
        let name = &self.inner.cookie;
        let value = secret.unwrap_or("");
        let text =
            // `Strict`: no other site ever makes the browser send it, not even by a link.
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}
