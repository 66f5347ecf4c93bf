//! Who may be reached: the decision, without any IO.
//!
//! It is asked twice for every hop. First about the host as written, before any
//! lookup; then about every address the lookup gave, before any connection.

use std::net::IpAddr;

use model::grant::NetworkGrant;
use model::host_pattern::HostPattern;
use url::Host;

use crate::address::{Reach, Reserved, of_address, of_host};
use crate::ask::Fault;
use crate::fetch::fault::denied;
use crate::fetch::target::Target;

/// A grant, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// These hosts.
    Listed(Vec<Listed>),
    /// Every public host.
    Strict,
    /// Every host.
    Open,
}

/// One host pattern, in the spelling of a parsed URL.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    shape: Shape,
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum Shape {
    Any,
    Below(String),
    Exact(Host<String>),
}

/// What a host that was let through may resolve to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Public addresses only.
    Public,
    /// The host stands in the list by name. It may lead inside, but to this
    /// machine or its cloud only if the name itself says so.
    Named(Reach),
    /// Whatever it is: the mode is open, or the address itself stands in the list.
    Anywhere,
}

impl Rule {
    /// Nothing if there is nothing to ask.
    pub(crate) fn from_grant(grant: &NetworkGrant) -> Option<Rule> {
        match grant {
            NetworkGrant::Blocked => None,
            NetworkGrant::Allowlist(patterns) => {
                Some(Rule::Listed(patterns.iter().filter_map(listed).collect()))
            }
            NetworkGrant::Strict => Some(Rule::Strict),
            NetworkGrant::Open => Some(Rule::Open),
        }
    }

    /// The first question: may this host be asked for at all?
    pub(crate) fn admit(&self, target: &Target, ports_blocked: &[u16]) -> Result<Admission, Fault> {
        let admission = match self {
            Rule::Open => Admission::Anywhere,
            Rule::Strict => public_host(target)?,
            Rule::Listed(patterns) => admit_listed(patterns, target)?,
        };
        // Attack: cross-protocol. A request body can speak SMTP or Redis well
        // enough. A host in the list was chosen knowingly, port and all.
        let is_chosen = matches!(admission, Admission::Named(_))
            || (matches!(self, Rule::Listed(_)) && admission == Admission::Anywhere);
        if !is_chosen && ports_blocked.contains(&target.port) {
            let rule = format!("port {} is not for the web: {}", target.port, target.host);
            return Err(denied("port-blocked", rule));
        }
        Ok(admission)
    }
}

impl Admission {
    /// The second question, about one address of a name.
    pub(crate) fn admit(self, name: &str, address: IpAddr) -> Result<(), Fault> {
        let Reach::Reserved(reserved) = of_address(address) else {
            return Ok(());
        };
        let is_allowed = match self {
            Admission::Anywhere => true,
            Admission::Public => false,
            Admission::Named(reach) => named_may_reach(reach, reserved),
        };
        if is_allowed {
            return Ok(());
        }
        let rule = format!("host resolves to a {reserved} address: {name} is {address}");
        Err(denied("resolved-private-ip", rule))
    }
}

fn admit_listed(patterns: &[Listed], target: &Target) -> Result<Admission, Fault> {
    let mut is_covered = false;
    for pattern in patterns
        .iter()
        .filter(|pattern| pattern.port.is_none_or(|port| port == target.port))
    {
        match &pattern.shape {
            Shape::Exact(host) if *host == target.host => {
                return Ok(match host {
                    Host::Domain(_) => Admission::Named(of_host(host)),
                    Host::Ipv4(_) | Host::Ipv6(_) => Admission::Anywhere,
                });
            }
            Shape::Below(suffix) => is_covered |= is_below(&target.host, suffix),
            Shape::Any => is_covered = true,
            Shape::Exact(_) => {}
        }
    }
    if is_covered {
        return public_host(target);
    }
    let rule = format!("host not in allowlist: {}", target.host);
    Err(denied("host-not-in-allowlist", rule))
}

/// Refuses what is known not to be public before anything is looked up.
fn public_host(target: &Target) -> Result<Admission, Fault> {
    match (of_host(&target.host), &target.host) {
        (Reach::Public, _) => Ok(Admission::Public),
        (Reach::Reserved(reserved), Host::Ipv4(_) | Host::Ipv6(_)) => {
            let rule = format!("literal private/reserved IP: {} ({reserved})", target.host);
            Err(denied("literal-private-ip", rule))
        }
        (Reach::Reserved(reserved), Host::Domain(name)) => {
            let rule = format!("private/reserved name: {name} ({reserved})");
            Err(denied("resolved-private-ip", rule))
        }
    }
}

/// The floor under a name in the list. No wildcard arm: a new class is closed
/// until someone decides.
fn named_may_reach(name: Reach, address: Reserved) -> bool {
    match address {
        Reserved::Private
        | Reserved::Shared
        | Reserved::UniqueLocal
        | Reserved::SiteLocal
        | Reserved::Benchmarking => true,
        Reserved::Loopback => name == Reach::Reserved(Reserved::Loopback),
        Reserved::Metadata | Reserved::LinkLocal => name == Reach::Reserved(Reserved::Metadata),
        Reserved::Unspecified
        | Reserved::Documentation
        | Reserved::Protocol
        | Reserved::Multicast
        | Reserved::Broadcast
        | Reserved::Discard
        | Reserved::Orchid
        | Reserved::LocalTranslator
        | Reserved::Transition
        | Reserved::Unassigned
        | Reserved::LocalName
        | Reserved::DotlessName
        | Reserved::SpecialName => false,
    }
}

fn is_below(host: &Host<String>, suffix: &str) -> bool {
    let Host::Domain(name) = host else {
        return false;
    };
    name.strip_suffix(suffix)
        .is_some_and(|head| head.is_empty() || (head.len() > 1 && head.ends_with('.')))
}

/// Invariant 8: a pattern that is no host once international letters are
/// spelled out matches nothing.
fn listed(pattern: &HostPattern) -> Option<Listed> {
    let text = pattern.to_string();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, Some(port.parse().ok()?))
        }
        _ => (text.as_str(), None),
    };
    let shape = match host.strip_prefix("*.") {
        Some(suffix) => match Host::parse(suffix).ok()? {
            Host::Domain(suffix) => Shape::Below(suffix),
            Host::Ipv4(_) | Host::Ipv6(_) => return None,
        },
        None if host == "*" => Shape::Any,
        None => Shape::Exact(Host::parse(host).ok()?),
    };
    Some(Listed { shape, port })
}

#[cfg(test)]
mod tests;
