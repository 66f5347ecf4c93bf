//! From the operator's host to a stream: the checks of `fetch`, once for each session, and
//! connections to the addresses that passed and no others.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use url::Host;

use crate::address::{Reach, of_host};
use crate::client::admit_private;
use crate::fetch::Tls;
use crate::fetch::connect::{Connector, Stream};
use crate::fetch::deadline::Deadline;
use crate::fetch::fault::HttpFault;
use crate::fetch::lookup::{NameLookup, look_up};
use crate::fetch::rule::Admission;
use crate::fetch::target::FetchTarget;
use crate::sql::postgres::stream::DatabaseTls;
use crate::sql::postgres::{PostgresNetwork, PostgresTarget};
use crate::sql::{SqlFault, SqlFaultKind, limit};

/// The checked addresses of a database.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    addresses: Vec<IpAddr>,
    port: u16,
    connector: Arc<dyn Connector>,
    tls: Option<DatabaseTls>,
}

impl Dial {
    /// Checks the host, looks it up once and checks every address.
    pub(super) async fn look_up(
        target: &PostgresTarget,
        network: &PostgresNetwork,
    ) -> Result<Dial, SqlFault> {
        let place = place(target).map_err(|fault| unreached(&fault))?;
        let admission = admit(target, network, &place).map_err(|fault| unreached(&fault))?;
        let wait = Duration::from_millis(limit::POSTGRES_CONNECT_MS);
        let names = NameLookup {
            resolver: &*network.resolver,
            wait,
            address_count_max: limit::POSTGRES_ADDRESSES_MAX,
        };
        let found = look_up(names, &place, admission, Deadline::after(wait)).await;
        Ok(Dial {
            addresses: found.map_err(|fault| unreached(&fault))?,
            port: target.port,
            connector: Arc::clone(&network.connector),
            tls: target
                .tls
                .then(|| DatabaseTls::new(&network.tls, &target.host)),
        })
    }

    /// A stream to the first address that takes one.
    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, SqlFault> {
        let mut last = None;
        for address in &self.addresses {
            match self
                .connector
                .connect(SocketAddr::new(*address, self.port))
                .await
            {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error.kind()),
            }
        }
        let why = last.map_or_else(|| "no address".to_owned(), |kind| kind.to_string());
        let message = format!("the database cannot be reached: {why}");
        Err(SqlFault::new(SqlFaultKind::Connection, message))
    }

    pub(super) fn tls(&self) -> Option<DatabaseTls> {
        self.tls.clone()
    }
}

/// The host as the guard of `fetch` knows hosts.
fn place(target: &PostgresTarget) -> Result<FetchTarget, HttpFault> {
    let mut place = FetchTarget::parse(&format!("https://{}/", target.host), None)?;
    place.port = target.port;
    Ok(place)
}

/// May this host be reached, and what may its name lead to? Attack: ssrf. A name of the
/// operator's own whose owner changes its address to one inside.
fn admit(
    target: &PostgresTarget,
    network: &PostgresNetwork,
    place: &FetchTarget,
) -> Result<Admission, HttpFault> {
    let reach = of_host(&target.host);
    let mut private_hosts = network.private_hosts.iter();
    let is_named = private_hosts.any(|pattern| pattern.matches(&target.host, target.port));
    if target.private || is_named {
        return admit_private(reach, place);
    }
    match reach {
        Reach::Public => Ok(Admission::Chosen),
        Reach::Reserved(_) => {
            let rule = "the host of the connection is private; set `private = true`".to_owned();
            Err(HttpFault::denied("literal-private-ip", rule))
        }
    }
}

/// Without the host, which the operator knows and a caller need not.
fn unreached(fault: &HttpFault) -> SqlFault {
    let message = format!("the database cannot be reached ({})", fault.reason);
    SqlFault::new(SqlFaultKind::Connection, message)
}

/// The name a certificate must be for.
pub(super) fn server_name(
    host: &Host<String>,
) -> Option<tokio_rustls::rustls::pki_types::ServerName<'static>> {
    use tokio_rustls::rustls::pki_types::ServerName;
    match host {
        Host::Domain(name) => ServerName::try_from(name.clone()).ok(),
        Host::Ipv4(address) => Some(ServerName::IpAddress(IpAddr::V4(*address).into())),
        Host::Ipv6(address) => Some(ServerName::IpAddress(IpAddr::V6(*address).into())),
    }
}

impl DatabaseTls {
    fn new(tls: &Tls, host: &Host<String>) -> DatabaseTls {
        DatabaseTls::make(tls.for_database(), server_name(host))
    }
}
