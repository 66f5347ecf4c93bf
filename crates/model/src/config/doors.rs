//! Settings of the doors: where the server listens, its bounds, its issuer, and how
//! people are asked.

use serde::Deserialize;

use super::Faults;
use crate::govern::approval::ApprovalsConfig;
use crate::limits;

/// Where the server listens unless the operator says otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:7464";

/// Where the server listens, and its bounds.
///
/// Defaults: loopback only, and the bounds named in [`mod@limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// Address and port.
    pub listen: String,
    /// The address clients know the server by, when it is not the one it listens
    /// on: behind a proxy, or with a name.
    pub public_url: Option<String>,
    /// Host names it answers to, beside loopback and the public one.
    pub hosts: Vec<String>,
    /// Web origins that may call it, beside its own.
    pub origins: Vec<String>,
    /// Connections at one time.
    pub connections_max: u64,
    /// Sessions at one time.
    pub sessions_max: u64,
    /// Sessions of one caller at one time.
    pub sessions_per_caller_max: u64,
    /// Streams that wait for changes at one time.
    pub listeners_max: u64,
    /// Calls of one caller at one time.
    pub calls_per_caller_max: u64,
    /// Calls of one caller in a minute.
    pub calls_per_minute: u64,
    /// Bytes of one request.
    pub body_bytes_max: u64,
    /// Seconds one call may take, waiting for a person included.
    pub call_seconds_max: u64,
}

impl ServeConfig {
    pub(super) fn standard() -> ServeConfig {
        ServeConfig {
            listen: LISTEN_DEFAULT.to_owned(),
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            connections_max: limits::SERVE_CONNECTIONS_DEFAULT,
            sessions_max: limits::SERVE_SESSIONS_DEFAULT,
            sessions_per_caller_max: limits::SERVE_SESSIONS_PER_CALLER_DEFAULT,
            listeners_max: limits::SERVE_LISTENERS_DEFAULT,
            calls_per_caller_max: limits::SERVE_CALLS_PER_CALLER_DEFAULT,
            calls_per_minute: limits::SERVE_CALLS_PER_MINUTE_DEFAULT,
            body_bytes_max: limits::SERVE_BODY_BYTES_DEFAULT,
            call_seconds_max: limits::SERVE_CALL_SECONDS_DEFAULT,
        }
    }
}

/// The issuer whose tokens the server accepts. Absent: only its own keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthConfig {
    /// Who issues them, exactly as the token says.
    pub issuer: String,
    /// Where the issuer's keys are; found by its metadata when absent.
    pub jwks_url: Option<String>,
    /// The audience a token must have; the server's public address when absent.
    pub audience: Option<String>,
    /// Accepted signature algorithms.
    pub algorithms: Vec<String>,
    /// The claim that names the caller.
    pub caller_claim: String,
    /// Scopes a token must have.
    pub scopes: Vec<String>,
}

/// Where traces go. Absent: nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The address of a collector that speaks OTLP over HTTP.
    pub otlp_endpoint: Option<String>,
    /// How a server writes what happens to standard error.
    pub logs: LogFormat,
}

crate::words! {
    /// How a server writes what happens to standard error.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum LogFormat {
        /// Warnings, as sentences.
        #[default]
        Text = "text",
        /// Warnings and every call, as JSON, one object in a line.
        Json = "json",
    }
}

/// Algorithms with a public key; a secret shared with the issuer is never accepted.
pub const OAUTH_ALGORITHMS: [&str; 7] = [
    "RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA",
];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServeFile {
    listen: Option<String>,
    public_url: Option<String>,
    hosts: Vec<String>,
    origins: Vec<String>,
    connections_max: Option<toml::Spanned<u64>>,
    sessions_max: Option<toml::Spanned<u64>>,
    sessions_per_caller_max: Option<toml::Spanned<u64>>,
    listeners_max: Option<toml::Spanned<u64>>,
    calls_per_caller_max: Option<toml::Spanned<u64>>,
    calls_per_minute: Option<toml::Spanned<u64>>,
    body_bytes_max: Option<toml::Spanned<u64>>,
    call_seconds_max: Option<toml::Spanned<u64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApprovalsFile {
    pub(super) ask_from: Option<toml::Spanned<String>>,
    wait_seconds: Option<toml::Spanned<u64>>,
    expire_seconds: Option<toml::Spanned<u64>>,
    separate: Option<bool>,
    automation: Option<toml::Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CallsFile {
    pub(super) concurrent: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OauthFile {
    issuer: String,
    jwks_url: Option<String>,
    audience: Option<String>,
    algorithms: Option<Vec<toml::Spanned<String>>>,
    caller_claim: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TelemetryFile {
    otlp_endpoint: Option<String>,
    logs: Option<toml::Spanned<String>>,
}

impl Faults<'_> {
    pub(super) fn telemetry(&mut self, file: TelemetryFile) -> TelemetryConfig {
        let mut telemetry = TelemetryConfig {
            otlp_endpoint: file.otlp_endpoint,
            ..TelemetryConfig::default()
        };
        self.set_word("logs", file.logs, &mut telemetry.logs);
        telemetry
    }

    pub(super) fn serve(&mut self, file: ServeFile) -> ServeConfig {
        let mut serve = ServeConfig::standard();
        let any = 1..=limits::SERVE_COUNT_MAX;
        let counts = [
            (
                "connections_max",
                file.connections_max,
                &mut serve.connections_max,
            ),
            ("sessions_max", file.sessions_max, &mut serve.sessions_max),
            (
                "sessions_per_caller_max",
                file.sessions_per_caller_max,
                &mut serve.sessions_per_caller_max,
            ),
            (
                "listeners_max",
                file.listeners_max,
                &mut serve.listeners_max,
            ),
            (
                "calls_per_caller_max",
                file.calls_per_caller_max,
                &mut serve.calls_per_caller_max,
            ),
            (
                "calls_per_minute",
                file.calls_per_minute,
                &mut serve.calls_per_minute,
            ),
        ];
        for (name, given, into) in counts {
            *into = self.read_number(name, given, any.clone()).unwrap_or(*into);
        }
        let bytes = limits::SERVE_BODY_BYTES_MIN..=limits::SERVE_BODY_BYTES_MAX;
        let given = self.read_number("body_bytes_max", file.body_bytes_max, bytes);
        serve.body_bytes_max = given.unwrap_or(serve.body_bytes_max);
        let seconds = 1..=limits::SERVE_CALL_SECONDS_MAX;
        let given = self.read_number("call_seconds_max", file.call_seconds_max, seconds);
        serve.call_seconds_max = given.unwrap_or(serve.call_seconds_max);
        serve.listen = file.listen.unwrap_or(serve.listen);
        serve.public_url = file.public_url;
        serve.hosts = file.hosts;
        serve.origins = file.origins;
        serve
    }

    pub(super) fn approvals(&mut self, file: ApprovalsFile) -> ApprovalsConfig {
        let mut approvals = ApprovalsConfig::standard();
        let seconds = 1..=limits::APPROVAL_SECONDS_MAX;
        let given = self.read_number("wait_seconds", file.wait_seconds, seconds.clone());
        approvals.wait_seconds = given.unwrap_or(approvals.wait_seconds);
        let given = self.read_number("expire_seconds", file.expire_seconds, seconds);
        approvals.expire_seconds = given.unwrap_or(approvals.expire_seconds);
        approvals.separate = file.separate.unwrap_or(approvals.separate);
        approvals.automation = self.read_word("automation", file.automation.as_ref());
        approvals
    }

    pub(super) fn oauth(&mut self, file: OauthFile) -> OauthConfig {
        let mut algorithms = Vec::new();
        let given = file.algorithms.as_deref();
        for word in given.unwrap_or_default() {
            let found = OAUTH_ALGORITHMS
                .iter()
                .find(|known| *known == word.get_ref());
            match found {
                Some(known) => algorithms.push((*known).to_owned()),
                None => {
                    let message = format!(
                        "`{}` is not an accepted algorithm; use one of {}",
                        crate::text::elided(word.get_ref(), 40),
                        OAUTH_ALGORITHMS.join(", ")
                    );
                    self.say(word, message, None);
                }
            }
        }
        // Only where nothing was said. An empty list stays empty, and the server refuses
        // to start with it.
        if given.is_none() {
            algorithms = vec!["RS256".to_owned(), "ES256".to_owned(), "EdDSA".to_owned()];
        }
        OauthConfig {
            issuer: file.issuer,
            jwks_url: file.jwks_url,
            audience: file.audience,
            algorithms,
            caller_claim: file.caller_claim.unwrap_or_else(|| "sub".to_owned()),
            scopes: file.scopes,
        }
    }
}
