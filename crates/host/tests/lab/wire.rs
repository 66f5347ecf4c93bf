//! A DNS that says what a test wants, and a wire that goes to the lab or nowhere
//! and remembers who was called.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use host::fetch::connect::{Connecting, Connector, Stream};
use host::fetch::resolve::{Lookup, Resolve};
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

impl Dns {
    /// The next answer for a name: addresses, `fails`, `silence` or nothing.
    pub(crate) fn say(&self, name: &str, answer: &str) {
        let said = match answer {
            "fails" => Said::Fails,
            "silence" => Said::Silence,
            addresses => {
                let addresses = addresses.split([',', ' ']).filter(|text| !text.is_empty());
                Said::These(addresses.map(|text| text.parse().unwrap()).collect())
            }
        };
        let mut answers = self.answers.lock().unwrap();
        answers.entry(name.to_owned()).or_default().push_back(said);
    }
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

/// Goes to a lab, or refuses. It is the only thing here that opens connections,
/// and it opens none beyond loopback.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    pub(crate) ends: Ends,
    called: Mutex<Vec<SocketAddr>>,
}

/// Where the wire goes.
#[derive(Debug, Default)]
pub(crate) enum Ends {
    /// Nowhere: refused.
    #[default]
    Nowhere,
    /// Nowhere, and nobody says so.
    Hangs,
    /// To one lab, whatever the address.
    Lab(SocketAddr),
    /// From these addresses and ports to the lab of each, or for ever nowhere if it
    /// has none; any other is refused.
    Labs(HashMap<SocketAddr, Option<SocketAddr>>),
}

impl Wire {
    pub(crate) fn new(ends: Ends) -> Wire {
        Wire {
            ends,
            called: Mutex::default(),
        }
    }

    /// Whom it was asked to call.
    pub(crate) fn called(&self) -> Vec<SocketAddr> {
        self.called.lock().unwrap().clone()
    }
}

impl Connector for Wire {
    fn connect(&self, address: SocketAddr) -> Connecting<'_> {
        self.called.lock().unwrap().push(address);
        Box::pin(async move {
            let lab = match &self.ends {
                Ends::Nowhere => None,
                Ends::Hangs => std::future::pending().await,
                Ends::Lab(lab) => Some(lab),
                Ends::Labs(labs) => match labs.get(&address) {
                    Some(None) => std::future::pending().await,
                    Some(Some(lab)) => Some(lab),
                    None => None,
                },
            };
            let Some(lab) = lab else {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            };
            assert!(lab.ip().is_loopback());
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(lab).await?);
            Ok(stream)
        })
    }
}
