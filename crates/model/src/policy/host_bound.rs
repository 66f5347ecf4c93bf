//! Bounds on the hosts a call may reach: lists that must all name a host, and lists
//! that must not. They come from callers, groups and rules.
//!
//! A bound is asked about every host a call wants to connect to, the first and those
//! of every redirect. It takes and never adds: what it lets through must still be
//! let through by the call's own policy.

use url::Host;

use crate::document::NetworkMode;
use crate::network::host_pattern::HostPattern;
use crate::policy::EffectivePolicy;

/// Bounds on the hosts of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostBounds {
    /// Each of these lists must name a host.
    pub within: Vec<HostList>,
    /// None of these may name it.
    pub never: Vec<HostList>,
}

/// Hosts, and who listed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList {
    /// Whose list it is.
    pub by: ListedBy,
    /// The hosts. An empty list names none.
    pub hosts: Vec<HostPattern>,
}

/// Whose list of hosts it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedBy {
    /// `[access]`, a group or a caller, by the words a person knows it by.
    Caller(String),
    /// Rules, by their ids.
    Rules(Vec<String>),
}

/// Why a host is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds<'a> {
    /// The list that decided.
    pub list: &'a HostList,
    /// Whether the list forbids the host; otherwise it does not name it.
    pub is_forbidden: bool,
}

/// How much of a call's reach is on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// Nothing.
    None,
    /// Something, and perhaps more beside it.
    Some,
    /// Everything.
    All,
}

impl HostBounds {
    /// Whether there is no bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.within.is_empty() && self.never.is_empty()
    }

    /// Both bounds together. All of them apply.
    #[must_use]
    pub fn and(mut self, more: &HostBounds) -> HostBounds {
        self.within.extend(more.within.iter().cloned());
        self.never.extend(more.never.iter().cloned());
        self
    }

    /// Whether a host may be connected to as far as the bounds go.
    pub fn check(&self, host: &Host<String>, port: u16) -> Result<(), OutOfBounds<'_>> {
        let names = |list: &&HostList| list.hosts.iter().any(|it| it.matches(host, port));
        // Forbidden lists first: a deny rule is the better explanation.
        if let Some(list) = self.never.iter().find(names) {
            let is_forbidden = true;
            return Err(OutOfBounds { list, is_forbidden });
        }
        match self.within.iter().find(|list| !names(list)) {
            None => Ok(()),
            Some(list) => Err(OutOfBounds {
                list,
                is_forbidden: false,
            }),
        }
    }

    /// The bounds in words, for people.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let list = |start: &str, list: &HostList| {
            let hosts: Vec<_> = list.hosts.iter().map(HostPattern::shown).collect();
            let hosts = match hosts.is_empty() {
                true => "none".to_owned(),
                false => hosts.join(", "),
            };
            format!("{start} {hosts} ({})", list.by)
        };
        let within = self.within.iter().map(|it| list("hosts held to", it));
        let never = self.never.iter().map(|it| list("never", it));
        let all: Vec<_> = within.chain(never).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

impl core::fmt::Display for ListedBy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ListedBy::Caller(whose) => f.write_str(whose),
            ListedBy::Rules(ids) => {
                let plural = if ids.len() == 1 { "" } else { "s" };
                write!(f, "rule{plural} `{}`", ids.join("`, `"))
            }
        }
    }
}

/// The reach of a call, without patterns that the bounds exclude.
enum Reachable<'a> {
    Listed(Vec<&'a HostPattern>),
    Everything,
}

impl EffectivePolicy {
    /// How much of the call's reach these hosts are. An inexact answer errs towards
    /// more.
    #[must_use]
    pub fn share_of(&self, hosts: &[HostPattern]) -> Share {
        // Only the bare `*` names everything. A pattern with a port leaves the other
        // ports.
        let names_all = hosts.iter().any(|host| host.to_string() == "*");
        let listed = match self.reachable() {
            Reachable::Everything if names_all => return Share::All,
            Reachable::Everything if hosts.is_empty() => return Share::None,
            // Some hosts of an open network: never all, and never provably none.
            Reachable::Everything => return Share::Some,
            Reachable::Listed(listed) => listed,
        };
        let covered = |it: &&&HostPattern| hosts.iter().any(|host| host.covers(it));
        let touched = |it: &&HostPattern| hosts.iter().any(|host| host.overlaps(it));
        if listed.is_empty() || !listed.iter().any(touched) {
            Share::None
        } else if listed.iter().filter(covered).count() == listed.len() {
            Share::All
        } else {
            Share::Some
        }
    }

    /// Whether the bounds leave nothing of a network that was granted.
    #[must_use]
    pub fn bounds_leave_nothing(&self) -> bool {
        let is_granted = match self.network {
            NetworkMode::Blocked => false,
            NetworkMode::Allowlist => !self.hosts.is_empty(),
            NetworkMode::Strict | NetworkMode::Open => true,
        };
        is_granted && matches!(self.reachable(), Reachable::Listed(listed) if listed.is_empty())
    }

    fn reachable(&self) -> Reachable<'_> {
        let within = &self.bounds.within;
        let own: &[HostPattern] = match (self.network, within.first()) {
            (NetworkMode::Blocked, _) => &[],
            (NetworkMode::Allowlist, None) => &self.hosts,
            // `*` reaches whatever the bounds leave, so the bounds are the list.
            (NetworkMode::Allowlist, Some(first)) if self.hosts.iter().any(HostPattern::is_any) => {
                &first.hosts
            }
            (NetworkMode::Allowlist, Some(_)) => &self.hosts,
            (NetworkMode::Strict | NetworkMode::Open, None) => return Reachable::Everything,
            (NetworkMode::Strict | NetworkMode::Open, Some(first)) => &first.hosts,
        };
        let is_left = |host: &&HostPattern| {
            let within = within.iter();
            let mut never = self.bounds.never.iter().flat_map(|list| &list.hosts);
            // Overlaps is enough to stay, and only covers takes away: in doubt a host
            // counts as reachable, so a rule about it applies.
            let named = |list: &HostList| list.hosts.iter().any(|it| it.overlaps(host));
            within.clone().all(named) && !never.any(|it| it.covers(host))
        };
        let left: Vec<_> = own.iter().filter(is_left).collect();
        match left.iter().any(|host| host.is_any()) {
            true => Reachable::Everything,
            false => Reachable::Listed(left),
        }
    }
}

#[cfg(test)]
mod tests;
