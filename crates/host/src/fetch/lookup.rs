//! From a host to addresses that were all checked.

use std::net::IpAddr;
use std::time::Duration;

use url::Host;

use crate::fetch::deadline::Deadline;
use crate::fetch::fault::HttpFault;
use crate::fetch::resolve::Resolve;
use crate::fetch::rule::Admission;
use crate::fetch::target::FetchTarget;

/// Where questions about names go, and how much of an answer counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameLookup<'a> {
    pub(crate) resolver: &'a dyn Resolve,
    pub(crate) wait: Duration,
    pub(crate) address_count_max: usize,
}

/// The addresses of a host, every one of them checked. The connection is made
/// to these and nothing is looked up again.
///
/// Attack: dns-rebinding. A second lookup may answer differently, and one bad
/// address among good ones may be the one that gets used; so one lookup, and
/// one bad address spoils the answer.
pub(crate) async fn look_up(
    names: NameLookup<'_>,
    target: &FetchTarget,
    admission: Admission,
    deadline: Deadline,
) -> Result<Vec<IpAddr>, HttpFault> {
    let name = match &target.host {
        // A literal was judged by the rule already; there is no name that could mean
        // something else.
        Host::Ipv4(address) => return Ok(vec![IpAddr::V4(*address)]),
        Host::Ipv6(address) => return Ok(vec![IpAddr::V6(*address)]),
        Host::Domain(name) => name,
    };
    let lookup = names.resolver.resolve(name);
    let lookup = deadline.wait(names.wait, "looking up", &target.host, lookup);
    let found = lookup.await?;
    // Where the guard stands, a name that cannot be checked is refused.
    let addresses = match (found, admission) {
        (Ok(addresses), _) if !addresses.is_empty() => addresses,
        (Ok(_), Admission::Public) => {
            let rule = format!("host has no addresses: {name}");
            return Err(HttpFault::denied("dns-no-addresses", rule));
        }
        (Err(_), Admission::Public) => {
            let rule = format!("host cannot be resolved: {name}");
            return Err(HttpFault::denied("dns-resolution-failed", rule));
        }
        (Ok(_) | Err(_), Admission::Chosen | Admission::Private(_) | Admission::Anywhere) => {
            return Err(HttpFault::failed(
                "dns-unknown-host",
                format!("unknown host: {name}"),
            ));
        }
    };
    // Refused and not cut: the address that is left out may be the one that counts.
    if addresses.len() > names.address_count_max {
        let rule = format!("host has more addresses than can be checked: {name}");
        return Err(HttpFault::denied("dns-resolution-failed", rule));
    }
    for address in &addresses {
        admission.admit(name, *address)?;
    }
    Ok(addresses)
}
