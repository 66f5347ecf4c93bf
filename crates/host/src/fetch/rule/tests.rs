//! The decision against a second one, written as the words of the design say it
//! and as slowly.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;

/// Names the operator says may lead inside.
const PRIVATE: [&str; 2] = ["localhost", "*.internal"];

fn rule(grant: &str) -> FetchRule {
    let grant = match grant {
        "strict" => NetworkGrant::Strict,
        "open" => NetworkGrant::Open,
        hosts => {
            let patterns = hosts.split(' ').filter(|host| !host.is_empty());
            NetworkGrant::Allowlist(
                patterns
                    .map(|host| HostPattern::parse(host).unwrap())
                    .collect(),
            )
        }
    };
    let private: Vec<_> = PRIVATE
        .iter()
        .map(|host| HostPattern::parse(host).unwrap())
        .collect();
    FetchRule::from_grant(&grant, &HostBounds::default(), &private.into()).unwrap()
}

/// What the code says: may `name`, resolving to `address`, be reached?
fn fast(grant: &str, name: &str, address: IpAddr) -> bool {
    let target = FetchTarget::parse(&format!("http://{name}/"), None).unwrap();
    match rule(grant).admit(&target, &[]) {
        Err(_) => false,
        Ok(admission) => match &target.host {
            Host::Domain(name) => admission.admit(name, address).is_ok(),
            Host::Ipv4(_) | Host::Ipv6(_) => true,
        },
    }
}

/// What the design says. Names here are lower case and known by their endings.
fn slow(grant: &str, name: &str, address: IpAddr) -> bool {
    let class = |address: IpAddr| of_address(address).word();
    let literal = name.parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    let is_public = match literal {
        Some(literal) => class(literal) == "public",
        None => name.ends_with(".com") && class(address) == "public",
    };
    if grant == "open" {
        return true;
    }
    if grant == "strict" {
        return is_public;
    }
    let hosts: Vec<&str> = grant.split(' ').collect();
    let is_private = name == "localhost" || name.ends_with(".internal");
    let is_below = literal.is_none()
        && hosts.iter().any(|host| {
            let below = host.strip_prefix("*.");
            below.is_some_and(|below| name == below || name.ends_with(&format!(".{below}")))
        });
    if hosts.contains(&name) && !is_private {
        return literal.is_some() || class(address) == "public";
    }
    if is_private && (hosts.contains(&name) || is_below) {
        let inside = [
            "private",
            "shared",
            "unique-local",
            "site-local",
            "benchmarking",
            "public",
        ];
        return inside.contains(&class(address))
            || (name == "localhost" && class(address) == "loopback");
    }
    (is_below || hosts.contains(&"*")) && is_public
}

const GRANTS: [&str; 9] = [
    "strict",
    "open",
    "*",
    "a.example.com",
    "*.example.com",
    "*.example.com a.example.com",
    "127.0.0.1 10.0.0.1 localhost",
    "* db.internal 169.254.169.254",
    "*.com *.internal",
];

const NAMES: [&str; 11] = [
    "a.example.com",
    "example.com",
    "b.a.example.com",
    "aexample.com",
    "other.com",
    "localhost",
    "db.internal",
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "8.8.8.8",
];

const ADDRESSES: [&str; 14] = [
    "8.8.8.8",
    "2606:4700::1",
    "127.0.0.1",
    "::1",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "fd00::1",
    "198.18.0.1",
    "169.254.169.254",
    "169.254.1.1",
    "::ffff:127.0.0.1",
    "224.0.0.1",
    "64:ff9b:1::1",
];

#[test]
fn the_second_opinion_agrees() {
    for grant in GRANTS {
        for name in NAMES {
            for address in ADDRESSES {
                let address: IpAddr = address.parse().unwrap();
                let (fast, slow) = (fast(grant, name, address), slow(grant, name, address));
                assert_eq!(fast, slow, "{grant} | {name} | {address}");
            }
        }
    }
}

#[test]
fn an_empty_list_reaches_nothing() {
    for name in NAMES {
        assert!(
            !fast("", name, IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8))),
            "{name}"
        );
    }
}

proptest! {
    /// Whatever is listed beside it, nothing reserved is reached by a name that is
    /// not itself listed.
    #[test]
    fn only_a_listed_name_leads_inside(address in any::<u128>()) {
        let address = IpAddr::V6(address.into());
        if of_address(address) != Reach::Public {
            prop_assert!(!fast("* *.example.com b.example.com", "a.example.com", address));
        }
    }
}
