//! Bounds only take, whatever they are and wherever they come from.

use proptest::prelude::*;

use super::*;
use crate::document::Overrides;
use crate::policy::{Baseline, resolve};
use crate::word::Word as _;

const HOSTS: [&str; 8] = [
    "a.com",
    "x.a.com",
    "b.org",
    "y.b.org",
    "127.0.0.1",
    "10.0.0.5",
    "com",
    "c.net",
];

fn pattern(raw: &str) -> HostPattern {
    HostPattern::parse(raw).expect(raw)
}

fn list(by: &str, hosts: &[&str]) -> HostList {
    HostList {
        by: ListedBy::Caller(by.to_owned()),
        hosts: hosts.iter().map(|host| pattern(host)).collect(),
    }
}

fn policy(network: NetworkMode, hosts: &[&str], bounds: HostBounds) -> EffectivePolicy {
    let overrides = Overrides {
        network_mode: Some(network),
        hosts_allow: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..Overrides::default()
    };
    EffectivePolicy {
        bounds,
        ..resolve(&Baseline::closed(), &overrides).expect("a policy")
    }
}

/// Whether policy and bounds let a connection through, addresses apart.
fn reaches(policy: &EffectivePolicy, raw_host: &str) -> bool {
    let host = Host::parse(raw_host).expect("a host");
    let granted = match policy.network {
        NetworkMode::Blocked => false,
        NetworkMode::Allowlist => policy.hosts.iter().any(|it| it.matches(&host, 443)),
        NetworkMode::Strict | NetworkMode::Open => true,
    };
    granted && policy.bounds.check(&host, 443).is_ok()
}

#[test]
fn each_list_must_name_the_host_and_none_may_forbid_it() {
    let bounds = HostBounds {
        within: vec![
            list("everyone", &["*.a.com", "b.org"]),
            list("kim", &["*.a.com"]),
        ],
        never: vec![list("rule", &["x.a.com"])],
    };
    let check = |raw: &str| {
        let host = Host::parse(raw).expect("a host");
        bounds
            .check(&host, 443)
            .map_err(|out| (out.list.by.to_string(), out.is_forbidden))
    };
    assert_eq!(check("a.com"), Ok(()));
    assert_eq!(check("b.org"), Err(("kim".to_owned(), false)));
    assert_eq!(check("x.a.com"), Err(("rule".to_owned(), true)));
    assert_eq!(check("c.net"), Err(("everyone".to_owned(), false)));
}

#[test]
fn a_share_tells_how_much_of_a_policy_a_list_is() {
    let check = |network, hosts: &[&str], of: &[&str], expected| {
        let of: Vec<_> = of.iter().map(|host| pattern(host)).collect();
        let policy = policy(network, hosts, HostBounds::default());
        assert_eq!(policy.share_of(&of), expected, "{hosts:?} {of:?}");
    };
    use NetworkMode::{Allowlist, Blocked, Strict};
    check(Blocked, &[], &["*"], Share::None);
    check(Allowlist, &[], &["*"], Share::None);
    check(Allowlist, &["a.com"], &["a.com"], Share::All);
    check(Allowlist, &["a.com", "b.org"], &["a.com"], Share::Some);
    check(Allowlist, &["*.a.com"], &["x.a.com"], Share::Some);
    check(Allowlist, &["x.a.com"], &["*.a.com"], Share::All);
    check(Allowlist, &["a.com"], &["c.net"], Share::None);
    check(Allowlist, &["*"], &["a.com"], Share::Some);
    check(Strict, &[], &["a.com"], Share::Some);
    check(Strict, &[], &["*"], Share::All);
}

#[test]
fn emptied_bounds_are_detected() {
    let held = |hosts: &[&str]| HostBounds {
        within: vec![list("kim", hosts)],
        never: Vec::new(),
    };
    let empty =
        |network, hosts: &[&str], bounds| policy(network, hosts, bounds).bounds_leave_nothing();
    assert!(empty(NetworkMode::Allowlist, &["a.com"], held(&["b.org"])));
    assert!(empty(NetworkMode::Strict, &[], held(&[])));
    assert!(!empty(NetworkMode::Strict, &[], held(&["b.org"])));
    assert!(!empty(NetworkMode::Blocked, &[], held(&[])));
    assert!(!empty(NetworkMode::Allowlist, &[], held(&[])));
}

fn lists() -> impl Strategy<Value = Vec<HostList>> {
    let hosts = prop::sample::subsequence(
        vec![
            "*",
            "a.com",
            "*.a.com",
            "b.org",
            "*.org",
            "127.0.0.1",
            "x.a.com:443",
            "x.a.com:80",
        ],
        0..4,
    );
    prop::collection::vec(hosts.prop_map(|hosts| list("a rule", &hosts)), 0..3)
}

proptest! {
    /// The hosts in reach under bounds are always among those without; more bounds
    /// never give one back.
    #[test]
    fn the_effective_hosts_are_always_a_subset(
        mode in prop::sample::select(NetworkMode::ALL.to_vec()),
        hosts in prop::sample::subsequence(vec!["*", "a.com", "*.a.com", "b.org", "10.0.0.5"], 0..4),
        within in lists(),
        never in lists(),
        more_within in lists(),
        more_never in lists(),
    ) {
        let bounds = HostBounds { within, never };
        let more = HostBounds { within: more_within, never: more_never };
        let free = policy(mode, &hosts, HostBounds::default());
        let bound = policy(mode, &hosts, bounds.clone());
        let bounder = policy(mode, &hosts, bounds.and(&more));
        let mut left = 0;
        for host in HOSTS {
            prop_assert!(!reaches(&bound, host) || reaches(&free, host), "{}", host);
            prop_assert!(!reaches(&bounder, host) || reaches(&bound, host), "{}", host);
            left += usize::from(reaches(&bound, host));
        }
        // What is said to be emptied is.
        prop_assert!(!bound.bounds_leave_nothing() || left == 0);
    }

    /// A share that is all covers whatever can be reached, one that is none nothing.
    #[test]
    fn a_share_is_never_told_too_small(
        mode in prop::sample::select(NetworkMode::ALL.to_vec()),
        hosts in prop::sample::subsequence(vec!["*", "a.com", "*.a.com", "b.org", "10.0.0.5"], 0..4),
        within in lists(),
        of in lists(),
    ) {
        let policy = policy(mode, &hosts, HostBounds { within, never: Vec::new() });
        let of: Vec<_> = of.into_iter().flat_map(|list| list.hosts).collect();
        let share = policy.share_of(&of);
        for raw in HOSTS {
            let host = Host::parse(raw).expect("a host");
            let named = of.iter().any(|it| it.matches(&host, 443));
            let reached = reaches(&policy, raw);
            prop_assert!(!(reached && named && share == Share::None), "{}", raw);
            prop_assert!(!(reached && !named && share == Share::All), "{}", raw);
        }
    }
}
