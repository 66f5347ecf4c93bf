//! The table of cases, and a second, slow opinion on every address.
//!
//! The second opinion shares nothing with the first: it writes an address out in
//! bits, compares strings, and looks through a list of prefixes as the registries
//! print them, longest first.
#![expect(clippy::string_slice, reason = "only of zeros and ones")]

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use url::Host;

use super::*;

const TABLE: &str = include_str!("../../../../../cases/host/address/table.txt");

fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLE.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .map(|(host, verdict)| (host, verdict.trim()))
}

fn verdict(raw_host: &str) -> &'static str {
    match Host::parse(raw_host) {
        Ok(host) => of_host(&host).word(),
        Err(_) => "invalid",
    }
}

#[test]
fn the_table_holds() {
    let wrong: Vec<_> = rows()
        .filter(|(host, expected)| verdict(host) != *expected)
        .map(|(host, expected)| format!("{host}: {expected}, not {}", verdict(host)))
        .collect();
    assert_eq!(wrong, [""; 0]);
    assert!(rows().count() >= 300, "only {} rows", rows().count());
}

/// A URL must come to the same verdict as its host alone.
#[test]
fn a_url_reads_its_host_the_same_way() {
    for (host, expected) in rows() {
        let url = url::Url::parse(&format!("http://{host}:80/path"));
        let found = url.as_ref().ok().and_then(url::Url::host);
        let word = found.map_or("invalid", |host| of_host(&host).word());
        assert_eq!(word, expected, "{host}");
    }
}

#[test]
fn the_second_opinion_agrees_on_the_table() {
    for (host, expected) in rows() {
        let address = match Host::parse(host) {
            Ok(Host::Ipv4(address)) => IpAddr::V4(address),
            Ok(Host::Ipv6(address)) => IpAddr::V6(address),
            Ok(Host::Domain(_)) | Err(_) => continue,
        };
        assert_eq!(slow(address), expected, "{host}");
    }
}

#[test]
fn every_class_of_the_table_is_seen() {
    let mut words: Vec<_> = rows().map(|(_, verdict)| verdict).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 23, "{words:?}");
}

/// The registries, as printed. `public` rows are exceptions inside larger ones.
const PREFIXES_V4: &[(&str, &str)] = &[
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared"),
    ("100.100.100.200/32", "metadata"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "metadata"),
    ("169.254.0.0/16", "link-local"),
    ("169.254.169.254/32", "metadata"),
    ("169.254.170.2/32", "metadata"),
    ("169.254.170.23/32", "metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol"),
    ("192.0.0.192/32", "metadata"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "transition"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "unassigned"),
    ("255.255.255.255/32", "broadcast"),
    ("0.0.0.0/0", "public"),
];

const PREFIXES_V6: &[(&str, &str)] = &[
    ("::/0", "unassigned"),
    ("::/96", "compatible"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "mapped"),
    ("::ffff:0:0:0/96", "compatible"),
    ("64:ff9b::/96", "mapped"),
    ("64:ff9b:1::/48", "local-translator"),
    ("100::/64", "discard"),
    ("100:0:0:1::/64", "discard"),
    ("2000::/3", "public"),
    ("2001::/23", "protocol"),
    ("2001::/32", "teredo"),
    ("2001:2::/48", "benchmarking"),
    ("2001:10::/28", "orchid"),
    ("2001:20::/28", "orchid"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "protocol"),
    ("fc00::/7", "unique-local"),
    ("fd00:42::42/128", "metadata"),
    ("fd00:ec2::23/128", "metadata"),
    ("fd00:ec2::254/128", "metadata"),
    ("fd20:ce::254/128", "metadata"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
];

fn slow(address: IpAddr) -> &'static str {
    let bits = bits(address);
    let table = match address {
        IpAddr::V4(_) => PREFIXES_V4,
        IpAddr::V6(_) => PREFIXES_V6,
    };
    let mut best = ("", 0);
    for (prefix, word) in table {
        let (start, length) = prefix.split_once('/').unwrap();
        let length: usize = length.parse().unwrap();
        let start = self::bits(start.parse().unwrap());
        if start[..length] == bits[..length] && (best.0.is_empty() || length >= best.1) {
            best = (word, length);
        }
    }
    let inner = |text: &str| {
        let number = u32::from_str_radix(text, 2).unwrap();
        slow(IpAddr::V4(Ipv4Addr::from(number)))
    };
    let turned = |text: &str| -> String {
        let turn = |bit| if bit == '0' { '1' } else { '0' };
        text.chars().map(turn).collect()
    };
    let first_bad = |words: &[&'static str]| {
        let bad = words.iter().find(|word| **word != "public").copied();
        bad.unwrap_or("transition")
    };
    let tunnel = bits.get(64..96).filter(|middle| {
        let number = u32::from_str_radix(middle, 2).unwrap();
        number == 0x0000_5efe || number == 0x0200_5efe
    });
    let tunnelled = tunnel.map_or("public", |_| inner(&bits[96..]));
    match best.0 {
        "mapped" => inner(&bits[96..]),
        "compatible" => first_bad(&[inner(&bits[96..])]),
        "6to4" => first_bad(&[inner(&bits[16..48]), tunnelled]),
        "teredo" => first_bad(&[inner(&bits[32..64]), inner(&turned(&bits[96..]))]),
        "public" => tunnelled,
        word => word,
    }
}

fn bits(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{:032b}", u32::from(address)),
        IpAddr::V6(address) => format!("{:0128b}", u128::from(address)),
    }
}

/// Addresses near the edges of every prefix, where mistakes live, and IPv4 ones
/// wrapped in every form.
fn interesting() -> impl Strategy<Value = IpAddr> {
    let prefixes = (0..PREFIXES_V6.len(), any::<u128>(), 0_u128..3);
    let edges = prefixes.prop_map(|(index, tail, step)| {
        let (start, length) = PREFIXES_V6[index].0.split_once('/').unwrap();
        let length: u32 = length.parse().unwrap();
        let start = u128::from(start.parse::<Ipv6Addr>().unwrap());
        let tail = if length == 0 {
            tail
        } else {
            tail % (1_u128 << (128 - length).min(127))
        };
        IpAddr::V6(Ipv6Addr::from(
            (start | tail).wrapping_add(step).wrapping_sub(1),
        ))
    });
    let v4 = (0..PREFIXES_V4.len(), any::<u32>(), 0_u32..3);
    let v4 = v4.prop_map(|(index, tail, step)| {
        let (start, length) = PREFIXES_V4[index].0.split_once('/').unwrap();
        let length: u32 = length.parse().unwrap();
        let start = u32::from(start.parse::<Ipv4Addr>().unwrap());
        let tail = if length == 0 {
            tail
        } else {
            tail & (u32::MAX.checked_shr(length).unwrap_or(0))
        };
        (start | tail).wrapping_add(step).wrapping_sub(1)
    });
    let wrapped = (v4, 0..10_u32, any::<u64>()).prop_map(|(v4, form, noise)| {
        let (inner, noise) = (u128::from(v4), u128::from(noise));
        let wide = match form {
            0 => return IpAddr::V4(Ipv4Addr::from(v4)),
            1 => inner,
            2 => (0xffff << 32) | inner,
            3 => (0xffff << 48) | inner,
            4 => (0x0064_ff9b << 96) | inner,
            5 => (0x2002 << 112) | (inner << 80) | noise,
            6 => (0x2001_0000 << 96) | (inner << 64) | noise,
            7 => (0x2001_0000 << 96) | (0x0808_0808 << 64) | (inner ^ 0xffff_ffff),
            8 => (0x2606_4700 << 96) | (0x0000_5efe << 32) | inner,
            _ => (0x2606_4700 << 96) | (0x0200_5efe << 32) | inner,
        };
        IpAddr::V6(Ipv6Addr::from(wide))
    });
    prop_oneof![edges, wrapped]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_second_opinion_agrees_near_every_edge(address in interesting()) {
        prop_assert_eq!(of_address(address).word(), slow(address), "{}", address);
    }

    #[test]
    fn the_second_opinion_agrees_on_any_address(v4 in any::<u32>(), v6 in any::<u128>()) {
        let v4 = IpAddr::V4(Ipv4Addr::from(v4));
        prop_assert_eq!(of_address(v4).word(), slow(v4), "{}", v4);
        let v6 = IpAddr::V6(Ipv6Addr::from(v6));
        prop_assert_eq!(of_address(v6).word(), slow(v6), "{}", v6);
    }

    /// Whatever the text, there is an answer.
    #[test]
    fn any_text_has_a_verdict(raw_host in ".{0,40}") {
        let _ = verdict(&raw_host);
    }
}
