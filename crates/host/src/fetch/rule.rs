//! Who may be reached: the decision, without any IO.
//!
//! It is asked twice for every hop. First about the host as written, before any
//! lookup; then about every address the lookup gave, before any connection.

use std::net::IpAddr;
use std::sync::Arc;

use model::network::host_pattern::{HostPattern, Shape};
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::{HostBounds, ListedBy, OutOfBounds};
use url::Host;

use crate::address::{Reach, Reserved, of_address, of_host};
use crate::fetch::fault::HttpFault;
use crate::fetch::target::FetchTarget;

/// A grant, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct FetchRule {
    reach: NetworkGrant,
    bounds: HostBounds,
    private_hosts: Arc<[HostPattern]>,
}

/// What a host that was let through may resolve to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Public addresses only.
    Public,
    /// Public addresses only; the document lists the host by name.
    Chosen,
    /// The operator says that the name may lead inside. To this machine or its
    /// cloud it does only if the name itself says so.
    Private(Reach),
    /// Whatever it is: the mode is open, or the address itself stands in the list.
    Anywhere,
}

impl FetchRule {
    /// Nothing if there is nothing to ask.
    pub(crate) fn from_grant(
        grant: &NetworkGrant,
        bounds: &HostBounds,
        private_hosts: &Arc<[HostPattern]>,
    ) -> Option<FetchRule> {
        let is_granted = match grant {
            NetworkGrant::Blocked => false,
            NetworkGrant::Allowlist(_) | NetworkGrant::Strict | NetworkGrant::Open => true,
        };
        is_granted.then(|| FetchRule {
            reach: grant.clone(),
            bounds: bounds.clone(),
            private_hosts: Arc::clone(private_hosts),
        })
    }

    /// Whether callers, groups and rules leave the host in reach.
    pub(crate) fn bounded(&self, target: &FetchTarget) -> Result<(), OutOfBounds<'_>> {
        self.bounds.check(&target.host, target.port)
    }

    /// The first question: may this host be asked for at all?
    pub(crate) fn admit(
        &self,
        target: &FetchTarget,
        ports_blocked: &[u16],
    ) -> Result<Admission, HttpFault> {
        let admission = match &self.reach {
            // There is no rule for it; invariant 8.
            NetworkGrant::Blocked => return Err(not_listed(&[], target)),
            NetworkGrant::Open => Admission::Anywhere,
            NetworkGrant::Strict => public_host(target)?,
            NetworkGrant::Allowlist(patterns) => {
                admit_listed(patterns, &self.private_hosts, target)?
            }
        };
        // Attack: cross-protocol. A request body can speak SMTP or Redis well
        // enough. A host in the list was chosen knowingly, port and all.
        let is_chosen = match (&self.reach, admission) {
            (_, Admission::Public) | (NetworkGrant::Open, _) => false,
            (_, Admission::Chosen | Admission::Private(_) | Admission::Anywhere) => true,
        };
        if !is_chosen && ports_blocked.contains(&target.port) {
            let rule = format!("port {} is not for the web: {}", target.port, target.host);
            return Err(HttpFault::denied("port-blocked", rule));
        }
        Ok(admission)
    }
}

impl Admission {
    /// The second question, about one address of a name.
    pub(crate) fn admit(self, name: &str, address: IpAddr) -> Result<(), HttpFault> {
        let Reach::Reserved(reserved) = of_address(address) else {
            return Ok(());
        };
        let is_allowed = match self {
            Admission::Anywhere => true,
            Admission::Public | Admission::Chosen => false,
            Admission::Private(reach) => named_may_reach(reach, reserved),
        };
        if is_allowed {
            return Ok(());
        }
        let mut rule = format!("host resolves to a {reserved} address: {name} is {address}");
        // Only told where listing it would help; a name for loopback or
        // metadata is not offered.
        if self == Admission::Chosen && named_may_reach(of_host(&Host::Domain(name)), reserved) {
            rule.push_str("; the operator lists such names in `network.private_hosts`");
        }
        Err(HttpFault::denied("resolved-private-ip", rule))
    }
}

/// The fault of a host that a list of the operator leaves out.
pub(crate) fn out_of_bounds(out: OutOfBounds<'_>, host: &Host<String>) -> HttpFault {
    let by = &out.list.by;
    match (by, out.is_forbidden) {
        (ListedBy::Rules(_), true) => HttpFault::denied(
            "host-denied-by-rule",
            format!("host denied by {by}: {host}"),
        ),
        (ListedBy::Rules(_), false) => {
            let rule = format!("host not among those {by} allows: {host}");
            HttpFault::denied("host-not-in-rule", rule)
        }
        (ListedBy::Caller(_), true | false) => {
            let rule = format!("host not among those of {by}: {host}");
            HttpFault::denied("host-not-for-caller", rule)
        }
    }
}

/// A document lists hosts; that a name leads inside is for the operator to say.
///
/// Attack: a name of the author's own, listed like any other, whose answer is an
/// address of the operator's network.
fn admit_listed(
    patterns: &[HostPattern],
    private_hosts: &[HostPattern],
    target: &FetchTarget,
) -> Result<Admission, HttpFault> {
    let fits = |pattern: &&HostPattern| pattern.matches(&target.host, target.port);
    // The operator's list alone. A document that lists a host cannot say
    // that it leads inside.
    let is_private = private_hosts.iter().any(|pattern| fits(&pattern));
    let mut is_covered = false;
    for pattern in patterns.iter().filter(fits) {
        match (pattern.shape(), &target.host) {
            // An address in the list was written out by its author and
            // agreed to by its owner.
            (Shape::Exact(_), Host::Ipv4(_) | Host::Ipv6(_)) => return Ok(Admission::Anywhere),
            (Shape::Exact(_) | Shape::Below(_), Host::Domain(_)) if is_private => {
                return Ok(Admission::Private(of_host(&target.host)));
            }
            (Shape::Exact(_), Host::Domain(_)) => return Ok(Admission::Chosen),
            // A pattern with a wildcard chooses no single host, so the strict rule applies
            // to what it covers.
            (Shape::Below(_) | Shape::Any, _) => is_covered = true,
        }
    }
    if is_covered {
        return public_host(target);
    }
    Err(not_listed(patterns, target))
}

fn not_listed(patterns: &[HostPattern], target: &FetchTarget) -> HttpFault {
    // Where the port alone is not listed, it is named: the host is there to see in the list.
    let fits_elsewhere = |pattern: &HostPattern| {
        let port = pattern.port();
        port.is_some_and(|port| pattern.matches(&target.host, port))
    };
    let rule = match patterns.iter().any(fits_elsewhere) {
        true => format!(
            "host not in allowlist: {}:{}; it is listed with another port",
            target.host, target.port
        ),
        false => format!("host not in allowlist: {}", target.host),
    };
    HttpFault::denied("host-not-in-allowlist", rule)
}

/// Refuses what is known not to be public before anything is looked up.
fn public_host(target: &FetchTarget) -> Result<Admission, HttpFault> {
    match (of_host(&target.host), &target.host) {
        (Reach::Public, _) => Ok(Admission::Public),
        (Reach::Reserved(reserved), Host::Ipv4(_) | Host::Ipv6(_)) => {
            let rule = format!("literal private/reserved IP: {} ({reserved})", target.host);
            Err(HttpFault::denied("literal-private-ip", rule))
        }
        (Reach::Reserved(reserved), Host::Domain(name)) => {
            let rule = format!("private/reserved name: {name} ({reserved})");
            Err(HttpFault::denied("resolved-private-ip", rule))
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

#[cfg(test)]
mod tests;
