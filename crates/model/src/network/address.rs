//! The class of an address, or of the host of a URL.
//!
//! Pure and total: an address is parsed once, every IPv4 address hidden in an
//! IPv6 one is taken out, and what is left is looked up in the special-purpose
//! registries of IANA. Spelling never decides. What may be done with a class is
//! the business of the code that connects.
//!
//! Attack: ssrf. The same bug is found again and again where one of the embedded
//! forms, or one way of writing a number, was forgotten.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Why an address or a name is not an ordinary public one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reserved {
    /// 127/8, ::1, `localhost`.
    Loopback,
    /// 0/8 and `::`: on many systems another way to say loopback.
    Unspecified,
    /// 169.254/16, fe80::/10.
    LinkLocal,
    /// Where clouds keep credentials, by address or by name.
    Metadata,
    /// 10/8, 172.16/12, 192.168/16.
    Private,
    /// 100.64/10, behind a carrier's translator.
    Shared,
    /// fc00::/7.
    UniqueLocal,
    /// fec0::/10, long deprecated, still routed inside some networks.
    SiteLocal,
    /// 198.18/15, 2001:2::/48.
    Benchmarking,
    /// 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20.
    Documentation,
    /// 192.0.0/24, 2001::/23, 5f00::/16: set aside for protocols.
    Protocol,
    /// 224/4, ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// 100::/64 and its neighbour: goes nowhere.
    Discard,
    /// 2001:10::/28 and 2001:20::/28: hashes, not places.
    Orchid,
    /// 64:ff9b:1::/48: a translator of this network, to wherever it likes.
    LocalTranslator,
    /// A deprecated way of carrying IPv4, or its relay: ::/96, ::ffff:0:0/96 as
    /// `::ffff:0:a.b.c.d`, 2002::/16, 2001::/32, 192.88.99/24.
    Transition,
    /// 240/4, and the parts of IPv6 that are not assigned.
    Unassigned,
    /// A name that only means something inside: `.local`, `.internal`, `.lan`.
    LocalName,
    /// A name without a dot: the search list decides what it means.
    DotlessName,
    /// A name that never leads to a host: `.invalid`, `.test`, `.onion`.
    SpecialName,
}

impl Reserved {
    /// The word for messages and for tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Reserved::Loopback => "loopback",
            Reserved::Unspecified => "unspecified",
            Reserved::LinkLocal => "link-local",
            Reserved::Metadata => "metadata",
            Reserved::Private => "private",
            Reserved::Shared => "shared",
            Reserved::UniqueLocal => "unique-local",
            Reserved::SiteLocal => "site-local",
            Reserved::Benchmarking => "benchmarking",
            Reserved::Documentation => "documentation",
            Reserved::Protocol => "protocol",
            Reserved::Multicast => "multicast",
            Reserved::Broadcast => "broadcast",
            Reserved::Discard => "discard",
            Reserved::Orchid => "orchid",
            Reserved::LocalTranslator => "local-translator",
            Reserved::Transition => "transition",
            Reserved::Unassigned => "unassigned",
            Reserved::LocalName => "local-name",
            Reserved::DotlessName => "dotless-name",
            Reserved::SpecialName => "special-name",
        }
    }
}

impl Reserved {
    /// Whether it leads, or may lead, to this machine or its network. The rest leads
    /// nowhere.
    #[must_use]
    pub fn leads_inside(self) -> bool {
        match self {
            Reserved::Loopback
            | Reserved::Unspecified
            | Reserved::LinkLocal
            | Reserved::Metadata
            | Reserved::Private
            | Reserved::Shared
            | Reserved::UniqueLocal
            | Reserved::SiteLocal
            | Reserved::Benchmarking
            | Reserved::Protocol
            | Reserved::Multicast
            | Reserved::Broadcast
            | Reserved::LocalTranslator
            | Reserved::Transition
            | Reserved::Unassigned
            | Reserved::LocalName
            | Reserved::DotlessName => true,
            Reserved::Documentation
            | Reserved::Discard
            | Reserved::Orchid
            | Reserved::SpecialName => false,
        }
    }
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The class of an address or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// An ordinary place on the public network, or a name that may lead to one.
    Public,
    /// Anything else.
    Reserved(Reserved),
}

impl Reach {
    /// The word for messages and for tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Reach::Public => "public",
            Reach::Reserved(reserved) => reserved.word(),
        }
    }
}

/// The class of an address.
#[must_use]
pub fn of_address(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

/// The class of the host of a URL. A name is classified by its spelling alone; the
/// addresses it resolves to must be classified too.
#[must_use]
pub fn of_host<S: AsRef<str>>(host: &Host<S>) -> Reach {
    match host {
        Host::Domain(name) => of_name(name.as_ref()),
        Host::Ipv4(address) => of_v4(*address),
        Host::Ipv6(address) => of_v6(*address),
    }
}

/// Where clouds keep credentials, in link-local space, in private space and, on
/// Azure, in the middle of the public one.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0023),
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x0042),
];

fn of_v4(address: Ipv4Addr) -> Reach {
    if METADATA_V4.contains(&address) {
        return Reach::Reserved(Reserved::Metadata);
    }
    let reserved = match address.octets() {
        [0, ..] => Reserved::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reserved::Private,
        [100, 64..=127, ..] => Reserved::Shared,
        [127, ..] => Reserved::Loopback,
        [169, 254, ..] => Reserved::LinkLocal,
        [192, 0, 0, _] => Reserved::Protocol,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Reserved::Documentation,
        [192, 88, 99, _] => Reserved::Transition,
        [198, 18..=19, ..] => Reserved::Benchmarking,
        [224..=239, ..] => Reserved::Multicast,
        [255, 255, 255, 255] => Reserved::Broadcast,
        [240..=255, ..] => Reserved::Unassigned,
        _ => return Reach::Public,
    };
    Reach::Reserved(reserved)
}

fn of_v6(address: Ipv6Addr) -> Reach {
    if METADATA_V6.contains(&address) {
        return Reach::Reserved(Reserved::Metadata);
    }
    let segments = address.segments();
    let last = v4(segments[6], segments[7]);
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Reach::Reserved(Reserved::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Reserved(Reserved::Loopback),
        // Mapped, and the well-known NAT64 prefix: these do lead to the IPv4
        // address, so a public one is public.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => of_v4(last),
        [0x64, 0xff9b, 1, ..] => Reach::Reserved(Reserved::LocalTranslator),
        // Compatible and translated.
        [0, 0, 0, 0, 0, 0, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => carried(&[last]),
        [0x2002, high, low, ..] => carried(&[v4(high, low), isatap(segments)]),
        // Teredo: the server in the clear, the client with its bits turned over.
        [0x2001, 0, high, low, ..] => carried(&[v4(high, low), v4(!segments[6], !segments[7])]),
        _ => match prefix_v6(segments) {
            // ISATAP may sit in any ordinary prefix.
            None => of_v4(isatap(segments)),
            Some(reserved) => Reach::Reserved(reserved),
        },
    }
}

/// By prefix, embedded forms aside. Outside 2000::/3 nothing is public.
fn prefix_v6(segments: [u16; 8]) -> Option<Reserved> {
    let reserved = match segments {
        [0x100, 0, 0, 0 | 1, ..] => Reserved::Discard,
        [0x2001, 0x2, 0, ..] => Reserved::Benchmarking,
        [0x2001, 0x10..=0x2f, ..] => Reserved::Orchid,
        [0x2001, 0..=0x1ff, ..] => Reserved::Protocol,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reserved::Documentation,
        [0x2000..=0x3fff, ..] => return None,
        [0x5f00, ..] => Reserved::Protocol,
        [0xfc00..=0xfdff, ..] => Reserved::UniqueLocal,
        [0xfe80..=0xfebf, ..] => Reserved::LinkLocal,
        [0xfec0..=0xfeff, ..] => Reserved::SiteLocal,
        [0xff00..=0xffff, ..] => Reserved::Multicast,
        _ => Reserved::Unassigned,
    };
    Some(reserved)
}

/// The class of IPv4 addresses that travel in a deprecated form: the first that
/// is reserved names it; if all are public the form itself does.
fn carried(addresses: &[Ipv4Addr]) -> Reach {
    let mut reaches = addresses.iter().map(|address| of_v4(*address));
    reaches
        .find(|reach| *reach != Reach::Public)
        .unwrap_or(Reach::Reserved(Reserved::Transition))
}

/// The address in an ISATAP interface identifier. Where there is none, one that
/// is public and so changes nothing.
fn isatap(segments: [u16; 8]) -> Ipv4Addr {
    match segments {
        [.., 0 | 0x200, 0x5efe, high, low] => v4(high, low),
        _ => Ipv4Addr::new(1, 1, 1, 1),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

/// Names under which clouds answer with credentials.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

/// Endings that only mean something inside one network.
const LOCAL_ENDINGS: &[&str] = &[
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "private",
    "svc",
    "workgroup",
];

/// Endings that never lead to a host, or only through another network.
const SPECIAL_ENDINGS: &[&str] = &["alt", "arpa", "example", "invalid", "onion", "test"];

/// The class of a name, by its spelling alone.
pub(crate) fn of_name(raw: &str) -> Reach {
    let lower = raw.to_ascii_lowercase();
    let name = lower.strip_suffix('.').unwrap_or(&lower);
    let under = |ending: &&str| {
        name.strip_suffix(*ending)
            .is_some_and(|head| head.is_empty() || head.ends_with('.'))
    };
    let reserved = if under(&"localhost") || name == "localhost.localdomain" {
        Reserved::Loopback
    } else if METADATA_NAMES.iter().any(under) {
        Reserved::Metadata
    } else if LOCAL_ENDINGS.iter().any(under) {
        Reserved::LocalName
    } else if SPECIAL_ENDINGS.iter().any(under) {
        Reserved::SpecialName
    } else if !name.contains('.') {
        Reserved::DotlessName
    } else {
        return Reach::Public;
    };
    Reach::Reserved(reserved)
}

/// The fuzz target and its seeds call this. Whatever the text, a host is judged the
/// same before and after it is written out again, and an IPv4 address the same
/// in each form of IPv6 that leads to it.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    if let Some(octets) = data.first_chunk::<4>() {
        let [a, b, c, d] = octets.map(u16::from);
        let (high, low) = ((a << 8) | b, (c << 8) | d);
        let plain = of_v4(Ipv4Addr::from(*octets));
        for form in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        ] {
            assert_eq!(of_v6(form), plain, "{form}");
        }
        for form in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 0),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
        ] {
            assert_ne!(of_v6(form), Reach::Public, "{form}");
        }
    }
    if let Some(octets) = data.first_chunk::<16>() {
        let address = IpAddr::from(*octets);
        let again = address.to_string().parse().map(of_address);
        assert_eq!(again, Ok(of_address(address)), "{address}");
    }
    let Ok(host) = Host::parse(&String::from_utf8_lossy(data)) else {
        return;
    };
    let again = Host::parse(&host.to_string());
    assert_eq!(again.as_ref(), Ok(&host));
    assert_eq!(again.map(|again| of_host(&again)), Ok(of_host(&host)));
}

#[cfg(test)]
mod tests;
