//! Servers at an address: who may be reached, and with which tokens.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bridge::http::HttpSettings;
use bridge::oauth::{ClientCredentials, LoginSettings, TokenFile, TokenSource, TokenText};
use bridge::{ServerFault, ServerHosts};
use host::client::{ClientSettings, HttpClient};
use host::egress::EgressSettings;
use host::fetch::TlsTrust;
use host::fetch::connect::Connector;
use host::fetch::resolve::Resolve;
use jail::JailRung;
use model::config::{Config, ServerConfig, ServerGrant, ServerUrl};
use model::network::host_pattern::HostPattern;
use url::Url;

use crate::powers::PowerSettings;
use crate::servers::connections::FilledSecrets;
use crate::toolbox::required_rung;

/// How long a person may take to sign in.
const SIGN_IN_WAIT: Duration = Duration::from_secs(300);

/// How connections to servers leave this machine.
#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    trust: TlsTrust,
    resolver: Arc<dyn Resolve>,
    connector: Arc<dyn Connector>,
    /// Hosts the operator says may be private.
    pub(crate) private_hosts: Arc<[HostPattern]>,
    /// The weakest jail in which the process of a server starts.
    pub(crate) require: JailRung,
}

impl Outbound {
    /// As the settings have it now.
    pub(crate) fn new(powers: &PowerSettings, config: &Config) -> Outbound {
        Outbound {
            trust: powers.trust.clone(),
            resolver: Arc::clone(&powers.resolver),
            connector: Arc::clone(&powers.connector),
            private_hosts: config.network.private_hosts.as_slice().into(),
            require: required_rung(config.sandbox.jail),
        }
    }

    /// What a connection to a server needs. A header of the owner's own stands in place
    /// of a sign-in.
    pub(crate) fn settings(
        &self,
        home: &Path,
        (config, url): (&ServerConfig, &ServerUrl),
        caller: &str,
        filled: &FilledSecrets,
    ) -> Result<HttpSettings, ServerFault> {
        let client = self.client(url)?;
        let has_own = filled
            .values
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        let tokens = (!has_own).then(|| {
            let file = TokenFile::new(home, &config.name);
            let source = TokenSource::new(client.clone(), file, &url.url, holder(caller));
            match credentials(url, filled) {
                Some(credentials) => source.with_credentials(credentials),
                None => source,
            }
        });
        Ok(HttpSettings {
            url: url.url.clone(),
            headers: filled.values.clone().into_iter().collect(),
            client,
            tokens,
            reply: Duration::from_millis(config.call_timeout_ms),
        })
    }

    /// The hosts that a server's process may reach through our proxy.
    pub(crate) fn hosts(&self, hosts: &[HostPattern]) -> Result<ServerHosts, ServerFault> {
        let tls = self.trust.tls();
        let tls = tls.map_err(|error| ServerFault::Start(error.to_string()))?;
        let mut egress = EgressSettings::new(tls);
        egress.resolver = Arc::clone(&self.resolver);
        egress.connector = Arc::clone(&self.connector);
        egress.private_hosts = Arc::clone(&self.private_hosts);
        Ok(ServerHosts {
            hosts: hosts.to_vec(),
            egress,
        })
    }

    /// What a sign-in to a server needs.
    pub(crate) fn login(
        &self,
        home: &Path,
        (config, url): (&ServerConfig, &ServerUrl),
        caller: &str,
        filled: &FilledSecrets,
    ) -> Result<LoginSettings, ServerFault> {
        let oauth = url.oauth.as_ref();
        if oauth.is_some_and(|oauth| oauth.grant == ServerGrant::ClientCredentials) {
            let why = "it signs in by itself, with its client credentials";
            return Err(ServerFault::Start(why.to_owned()));
        }
        Ok(LoginSettings {
            client: self.client(url)?,
            url: url.url.clone(),
            file: TokenFile::new(home, &config.name),
            caller: holder(caller),
            client_id: oauth.and_then(|oauth| oauth.client_id.clone()),
            client_secret: filled.client_secret.clone().map(TokenText::new),
            scopes: oauth.map(|oauth| oauth.scopes.clone()).unwrap_or_default(),
            redirect_port: oauth.map(|oauth| oauth.redirect_port).unwrap_or_default(),
            wait: SIGN_IN_WAIT,
        })
    }

    fn client(&self, url: &ServerUrl) -> Result<HttpClient, ServerFault> {
        let host = url.private.then(|| {
            let parsed = Url::parse(&url.url).ok();
            let host = parsed.as_ref().and_then(Url::host_str);
            // Without a host this is no pattern, and `guarded` refuses it.
            host.unwrap_or_default().to_owned()
        });
        self.guarded(host.as_deref()).map_err(ServerFault::Start)
    }

    /// A client that reaches public hosts, those the operator says may be private, and this
    /// one besides.
    pub(crate) fn guarded(&self, private_host: Option<&str>) -> Result<HttpClient, String> {
        let tls = self.trust.tls().map_err(|error| error.to_string())?;
        let mut settings = ClientSettings::new(tls);
        settings.resolver = Arc::clone(&self.resolver);
        settings.connector = Arc::clone(&self.connector);
        let mut private_hosts = self.private_hosts.to_vec();
        if let Some(host) = private_host {
            let pattern = HostPattern::parse(host);
            private_hosts.push(pattern.map_err(|fault| fault.to_string())?);
        }
        settings.private_hosts = private_hosts.into();
        Ok(HttpClient::new(settings))
    }
}

/// The client that signs in by itself, if the settings say so.
fn credentials(url: &ServerUrl, filled: &FilledSecrets) -> Option<ClientCredentials> {
    let oauth = url.oauth.as_ref()?;
    match oauth.grant {
        ServerGrant::Code => None,
        ServerGrant::ClientCredentials => Some(ClientCredentials {
            id: oauth.client_id.clone()?,
            secret: TokenText::new(filled.client_secret.clone()?),
            scopes: oauth.scopes.clone(),
        }),
    }
}

/// Whose tokens: all callers', or one's.
fn holder(caller: &str) -> Option<String> {
    Some(caller.to_owned()).filter(|caller| !caller.is_empty())
}
