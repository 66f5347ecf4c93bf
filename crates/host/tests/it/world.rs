//! A small world around one `fetch`: a DNS that says what a test wants, a wire
//! that goes to the lab or nowhere and remembers who was called.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::fetch::connect::{Connect, Connecting, Stream};
use host::fetch::resolve::{Lookup, Resolve};
use host::fetch::{Fetch, FetchLimits, FetchSettings, Fetched, Tls};
use host::{Answer, Ask, Fault};
use model::grant::NetworkGrant;
use model::host_pattern::HostPattern;
use model::mask::Masker;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// What the DNS says to one question.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    These(Vec<IpAddr>),
    Fails,
    Silence,
}

/// Answers in order, the last again and again; unknown names fail.
#[derive(Debug, Default)]
pub(crate) struct Dns {
    answers: Mutex<HashMap<String, VecDeque<Said>>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Resolve for Dns {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        self.asked.lock().unwrap().push(name.to_owned());
        let said = match self.answers.lock().unwrap().get_mut(name) {
            None => Said::Fails,
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers.front().cloned().unwrap_or(Said::Fails),
        };
        Box::pin(async move {
            match said {
                Said::These(addresses) => Ok(addresses),
                Said::Fails => Err(io::Error::other("no such name")),
                Said::Silence => std::future::pending().await,
            }
        })
    }
}

/// Goes to the lab, whatever the address; without a lab it refuses. It is the
/// only thing here that opens connections, and it opens none beyond loopback.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    lab: Option<SocketAddr>,
    hangs: bool,
    called: Mutex<Vec<SocketAddr>>,
}

impl Connect for Wire {
    fn connect(&self, address: SocketAddr) -> Connecting<'_> {
        self.called.lock().unwrap().push(address);
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            let Some(lab) = self.lab else {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            };
            assert!(lab.ip().is_loopback());
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(lab).await?);
            Ok(stream)
        })
    }
}

/// Everything a test sets up.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) grant: NetworkGrant,
    pub(crate) dns: Arc<Dns>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) limits: FetchLimits,
    pub(crate) tls: Tls,
    pub(crate) secrets: Vec<String>,
}

/// A public address that names lead to; the wire takes it to the lab.
pub(crate) const PUBLIC: &str = "93.184.216.34";

impl World {
    /// `strict`, `open`, or a list of hosts.
    pub(crate) fn new(grant: &str) -> World {
        let grant = match grant {
            "strict" => NetworkGrant::Strict,
            "open" => NetworkGrant::Open,
            hosts => {
                let hosts = hosts.split_whitespace();
                let patterns = hosts.map(|host| HostPattern::parse(host).unwrap());
                NetworkGrant::Allowlist(patterns.collect())
            }
        };
        World {
            grant,
            dns: Arc::default(),
            wire: Arc::default(),
            limits: FetchLimits::default(),
            tls: crate::fetch::tls::nobody(),
            secrets: Vec::new(),
        }
    }

    /// Every connection goes to this lab.
    pub(crate) fn lab(mut self, lab: &crate::lab::Lab) -> World {
        self.wire = Arc::new(Wire {
            lab: Some(lab.address),
            ..Wire::default()
        });
        self
    }

    /// No connection ever comes about.
    pub(crate) fn hanging(mut self) -> World {
        self.wire = Arc::new(Wire {
            hangs: true,
            ..Wire::default()
        });
        self
    }

    /// The next answer for a name: addresses, `fails`, `silence` or nothing.
    pub(crate) fn dns(self, name: &str, answer: &str) -> World {
        let said = match answer {
            "fails" => Said::Fails,
            "silence" => Said::Silence,
            addresses => {
                let addresses = addresses.split([',', ' ']).filter(|text| !text.is_empty());
                Said::These(addresses.map(|text| text.parse().unwrap()).collect())
            }
        };
        let mut answers = self.dns.answers.lock().unwrap();
        answers.entry(name.to_owned()).or_default().push_back(said);
        drop(answers);
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

    pub(crate) fn fetch(&self) -> Fetch {
        let masker = Masker::new(self.secrets.iter().map(String::as_str)).unwrap();
        let mut settings = FetchSettings::new(self.tls.clone(), Arc::new(masker));
        settings.limits = self.limits.clone();
        settings.resolver = Arc::clone(&self.dns) as Arc<dyn Resolve>;
        settings.connector = Arc::clone(&self.wire) as Arc<dyn Connect>;
        Fetch::from_grant(&self.grant, settings).unwrap()
    }

    pub(crate) async fn run(&self, arguments: Value, body: &[u8]) -> Fetched {
        let ask = Ask {
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

    pub(crate) async fn get(&self, url: &str) -> Result<Answer, Fault> {
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
        let called = self.wire.called.lock().unwrap();
        called.iter().map(ToString::to_string).collect()
    }
}
