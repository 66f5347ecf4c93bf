//! How often a network address may connect before it is authenticated.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use model::reason::Reason;
use model::sync::lock;

use crate::auth::bucket::{Buckets, Rate};
use crate::auth::limit;
use crate::auth::refusal::AuthRefusal;

/// Requests and wrong keys, by network address.
#[derive(Debug)]
pub(super) struct Peers {
    requests: Mutex<Buckets<Peer>>,
    failures: Mutex<Buckets<Peer>>,
}

/// An address; of IPv6 the first half, because a client chooses the second itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Peer {
    V4([u8; 4]),
    V6([u16; 4]),
}

impl Peer {
    fn of(address: IpAddr) -> Peer {
        // On a socket for both families an IPv4 client arrives as `::ffff:a.b.c.d`. All
        // of those would share one count.
        match address.to_canonical() {
            IpAddr::V4(address) => Peer::V4(address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Peer::V6([a, b, c, d])
            }
        }
    }
}

impl Peers {
    pub(super) fn new(calls_per_minute: u64) -> Peers {
        let requests = calls_per_minute
            .saturating_mul(limit::ADDRESS_CALLERS)
            .max(limit::ADDRESS_REQUESTS_MIN);
        let table = |count| {
            Mutex::new(Buckets::new(
                Rate::new(count, limit::WINDOW),
                limit::BUCKETS_MAX,
            ))
        };
        Peers {
            requests: table(requests),
            failures: table(limit::ADDRESS_FAILURES_MAX),
        }
    }

    pub(super) fn count_request(&self, address: IpAddr, now: Duration) -> Result<(), AuthRefusal> {
        let taken = lock(&self.requests).take(Peer::of(address), now);
        taken.map_err(|wait| {
            let sentence = "too many requests from your network address; wait a little";
            AuthRefusal::new(Reason::GateAddressLimit, sentence).after(wait)
        })
    }

    /// Counts a wrong key. Beyond the bound the answer is to wait, and valid keys from
    /// the same address still work, so one client's mistakes do not lock out others.
    pub(super) fn count_failure(&self, address: IpAddr, now: Duration) -> Result<(), AuthRefusal> {
        let taken = lock(&self.failures).take(Peer::of(address), now);
        taken.map_err(too_many_failures)
    }

    /// Whether another wrong key would exceed the limit. Asked before a signature is
    /// checked, which is expensive.
    pub(super) fn check_failures(&self, address: IpAddr, now: Duration) -> Result<(), AuthRefusal> {
        let looked = lock(&self.failures).look(&Peer::of(address), now);
        looked.map_err(too_many_failures)
    }
}

fn too_many_failures(wait: Duration) -> AuthRefusal {
    let sentence = "too many wrong keys from your network address; wait a little";
    AuthRefusal::new(Reason::GateAddressLimit, sentence).after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_an_ipv6_address_is_one_peer() {
        let of = |text: &str| Peer::of(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn addresses_are_counted_apart() {
        let peers = Peers::new(1);
        let (one, two) = (
            "192.0.2.1".parse().expect(""),
            "192.0.2.2".parse().expect(""),
        );
        let now = Duration::from_secs(1);
        for _ in 0..limit::ADDRESS_REQUESTS_MIN {
            assert_eq!(peers.count_request(one, now), Ok(()));
        }
        let refusal = peers.count_request(one, now).expect_err("too many");
        assert_eq!(refusal.reason, Reason::GateAddressLimit);
        assert_eq!(peers.count_request(two, now), Ok(()));
        for _ in 0..limit::ADDRESS_FAILURES_MAX {
            assert_eq!(peers.check_failures(two, now), Ok(()));
            assert_eq!(peers.count_failure(two, now), Ok(()));
        }
        assert!(peers.count_failure(two, now).is_err());
        assert!(peers.check_failures(two, now).is_err());
        assert_eq!(peers.check_failures(one, now), Ok(()));
    }
}
