//! A small world around one `fetch`: what is granted, whom the DNS names and where
//! the wire goes.

use std::sync::Arc;
use std::time::Duration;

use host::fetch::connect::Connector;
use host::fetch::resolve::Resolve;
use host::fetch::{Fetch, FetchLimits, FetchSettings, Fetched, Tls};
use host::{PowerFault, PowerReply, PowerRequest};
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::{HostBounds, HostList, ListedBy};
use model::record::mask::Masker;
use serde_json::{Value, json};

use crate::authority::Authority;
use crate::wire::{Dns, Ends, Wire};

/// Everything a test sets up.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) grant: NetworkGrant,
    pub(crate) dns: Arc<Dns>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) limits: FetchLimits,
    pub(crate) tls: Tls,
    pub(crate) secrets: Vec<String>,
    pub(crate) bounds: HostBounds,
    pub(crate) private_hosts: Vec<HostPattern>,
}

/// A public address that names lead to; the wire takes it to the lab.
pub(crate) const PUBLIC: &str = "93.184.216.34";

fn patterns(hosts: &str) -> Vec<HostPattern> {
    let hosts = hosts.split_whitespace();
    hosts
        .map(|host| HostPattern::parse(host).unwrap())
        .collect()
}

impl World {
    /// `strict`, `open`, or a list of hosts.
    pub(crate) fn new(grant: &str) -> World {
        let grant = match grant {
            "strict" => NetworkGrant::Strict,
            "open" => NetworkGrant::Open,
            hosts => NetworkGrant::Allowlist(patterns(hosts)),
        };
        World {
            grant,
            dns: Arc::default(),
            wire: Arc::default(),
            limits: FetchLimits::default(),
            tls: nobody(),
            secrets: Vec::new(),
            bounds: HostBounds::default(),
            private_hosts: Vec::new(),
        }
    }

    /// Every connection goes to this lab.
    pub(crate) fn lab(mut self, lab: &crate::lab::Lab) -> World {
        self.wire = Arc::new(Wire::new(Ends::Lab(lab.address)));
        self
    }

    /// No connection ever comes about.
    pub(crate) fn hanging(mut self) -> World {
        self.wire = Arc::new(Wire::new(Ends::Hangs));
        self
    }

    /// The next answer for a name: addresses, `fails`, `silence` or nothing.
    pub(crate) fn dns(self, name: &str, answer: &str) -> World {
        self.dns.say(name, answer);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut FetchLimits)) -> World {
        change(&mut self.limits);
        self
    }

    pub(crate) fn secret(mut self, secret: &str) -> World {
        self.secrets.push(secret.to_owned());
        self
    }

    /// The operator says that these names may lead inside.
    pub(crate) fn private(mut self, hosts: &str) -> World {
        self.private_hosts = patterns(hosts);
        self
    }

    /// A caller's list of hosts.
    pub(crate) fn within(mut self, caller: &str, hosts: &str) -> World {
        self.bounds.within.push(HostList {
            by: ListedBy::Caller(caller.to_owned()),
            hosts: patterns(hosts),
        });
        self
    }

    /// Hosts a rule denies.
    pub(crate) fn never(mut self, rule: &str, hosts: &str) -> World {
        self.bounds.never.push(HostList {
            by: ListedBy::Rules(vec![rule.to_owned()]),
            hosts: patterns(hosts),
        });
        self
    }

    pub(crate) fn fetch(&self) -> Fetch {
        let masker = Masker::new(self.secrets.iter().map(String::as_str)).unwrap();
        let mut settings = FetchSettings::new(self.tls.clone(), Arc::new(masker));
        settings.limits = self.limits.clone();
        settings.resolver = Arc::clone(&self.dns) as Arc<dyn Resolve>;
        settings.connector = Arc::clone(&self.wire) as Arc<dyn Connector>;
        settings.private_hosts = self.private_hosts.as_slice().into();
        Fetch::from_grant(&self.grant, &self.bounds, settings).unwrap()
    }

    pub(crate) async fn run(&self, arguments: Value, body: &[u8]) -> Fetched {
        let ask = PowerRequest {
            arguments,
            bytes: body.to_vec(),
        };
        // A test that hangs is a bug in the limits; say so instead of waiting.
        let running = tokio::time::timeout(Duration::from_secs(60), self.fetch().run(ask))
            .await
            .expect("fetch outlived every limit");
        assert!(!running.events.is_empty() || running.outcome.is_err());
        running
    }

    pub(crate) async fn get(&self, url: &str) -> Result<PowerReply, PowerFault> {
        self.run(json!({ "url": url }), b"").await.outcome
    }

    pub(crate) async fn reason(&self, url: &str) -> &'static str {
        match self.get(url).await {
            Ok(answer) => panic!("{url} gave {answer:?}"),
            Err(fault) => fault.reason,
        }
    }

    /// Whom the wire was asked to call.
    pub(crate) fn called(&self) -> Vec<String> {
        self.wire.called().iter().map(ToString::to_string).collect()
    }
}

/// An authority that signed nothing.
pub(crate) fn nobody() -> Tls {
    use std::sync::OnceLock;
    static NOBODY: OnceLock<Tls> = OnceLock::new();
    NOBODY
        .get_or_init(|| Tls::only(&Authority::new().pem).unwrap())
        .clone()
}
