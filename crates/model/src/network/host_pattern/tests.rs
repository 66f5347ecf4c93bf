//! The one spelling of a host, what matches it, and what is refused.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn pattern(raw: &str) -> HostPattern {
    HostPattern::parse(raw).expect(raw)
}

#[track_caller]
fn check(raw: &str, host: &str, expected: bool) {
    let pattern = pattern(raw);
    let host = Host::parse(host).expect("a host");
    assert_eq!(pattern.matches(&host, 443), expected, "{pattern} {host}");
}

#[track_caller]
fn refused(raw: &str, suggestion: Option<&str>) {
    let fault = HostPattern::parse(raw).expect_err(raw);
    assert_eq!(fault.suggestion.as_deref(), suggestion, "{fault}");
}

#[test]
fn exact_names_match_themselves() {
    check("api.example.com", "api.example.com", true);
    check(" API.Example.COM. ", "api.example.com", true);
    check("api.example.com", "API.example.com", true);
    check("api.example.com", "example.com", false);
    check("api.example.com", "xapi.example.com", false);
    check("api.example.com", "api.example.com.evil.net", false);
}

#[test]
fn a_star_covers_the_apex_and_any_depth() {
    check("*.example.com", "example.com", true);
    check("*.example.com", "a.example.com", true);
    check("*.example.com", "a.b.example.com", true);
    check("*.example.com", "badexample.com", false);
    check("*.example.com", "127.0.0.1", false);
    check("*", "anything.at.all", true);
}

#[test]
fn a_port_counts_only_when_given() {
    check("example.com:443", "example.com", true);
    check("example.com:8443", "example.com", false);
    check("[::1]:443", "[::1]", true);
    check("[::1]", "[::1]", true);
    check("*:8443", "example.com", false);
}

#[test]
fn invalid_host_patterns_get_a_suggestion() {
    refused("https://api.example.com/v1", Some("api.example.com"));
    refused("user@example.com", Some("example.com"));
    refused("::1", Some("[::1]"));
    refused("", None);
    refused("a b", None);
    refused("*x.com", None);
    refused("a.*.com", None);
    refused("-a.com", None);
    refused("example.com:0", None);
    refused("example.com:99999", None);
    refused("[::zz]", None);
    refused("%61pi.example.com", None);
}

#[test]
fn other_spellings_of_an_address_are_refused() {
    for raw in [
        "2130706433",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "127.0.0.01",
        "①②⑦.0.0.1",
        "１２７.0.0.1",
        "127。0。0。1",
    ] {
        refused(raw, Some("127.0.0.1"));
    }
    refused("2130706433:8080", Some("127.0.0.1:8080"));
    refused("[0:0:0:0:0:0:0:1]", Some("[::1]"));
    refused("[::ffff:127.0.0.1]", Some("[::ffff:7f00:1]"));
    refused("*.1", None);
    refused("*.127.0.0.1", None);
}

#[test]
fn letters_that_become_ascii_are_refused() {
    refused("ⓐpi.example.com", Some("api.example.com"));
    refused("ａｐｉ.example.com", Some("api.example.com"));
    refused("ﬁle.example.com", Some("file.example.com"));
    refused("api。example.com", Some("api.example.com"));
    refused("a\u{ad}pi.example.com", Some("api.example.com"));
}

#[test]
fn international_names_are_shown_as_they_are_looked_up() {
    let check = |raw: &str, expected: &str| {
        let pattern = pattern(raw);
        assert_eq!(pattern.to_string(), expected);
        assert!(pattern.is_international());
    };
    check("bücher.example", "xn--bcher-kva.example");
    check("*.BÜCHER.example:8443", "*.xn--bcher-kva.example:8443");
    check("xn--bcher-kva.example", "xn--bcher-kva.example");
    // The first letter is Cyrillic.
    check("\u{430}pi.github.com", "xn--pi-6kc.github.com");
    assert!(!pattern("api.github.com").is_international());
}

#[test]
fn reserved_hosts_name_their_class() {
    let check = |raw: &str, expected: &str| assert_eq!(pattern(raw).shown(), expected);
    check("api.example.com", "api.example.com");
    check("*.com", "*.com");
    check("*", "*");
    check("127.0.0.1:8080", "127.0.0.1:8080 (loopback)");
    check("[::1]", "[::1] (loopback)");
    check("[::ffff:7f00:1]", "[::ffff:7f00:1] (loopback)");
    check("169.254.169.254", "169.254.169.254 (metadata)");
    check("10.0.0.5", "10.0.0.5 (private)");
    check("localhost", "localhost (loopback)");
    check("*.internal", "*.internal (local-name)");
    check(
        "metadata.google.internal",
        "metadata.google.internal (metadata)",
    );
}

fn patterns() -> impl Strategy<Value = HostPattern> {
    let hosts = prop::sample::select(
        &[
            "*",
            "com",
            "*.com",
            "a.com",
            "*.a.com",
            "b.a.com",
            "*.b.a.com",
            "xa.com",
            "127.0.0.1",
            "[::1]",
        ][..],
    );
    let ports = prop::sample::select(&["", ":443", ":80"][..]);
    (hosts, ports).prop_map(|(host, port)| pattern(&format!("{host}{port}")))
}

proptest! {
    /// Covering and overlapping are what they are of the hosts covered.
    #[test]
    fn covers_and_overlaps_agree_with_matching(one in patterns(), two in patterns()) {
        let hosts = ["com", "x.com", "a.com", "x.a.com", "b.a.com", "x.b.a.com", "xa.com", "org", "127.0.0.1", "[::1]"];
        let all = hosts.iter().flat_map(|host| [443, 80, 8080].map(|port| (Host::parse(host).unwrap(), port)));
        let all: Vec<_> = all.collect();
        let covers = all.iter().all(|(host, port)| one.matches(host, *port) || !two.matches(host, *port));
        let overlaps = all.iter().any(|(host, port)| one.matches(host, *port) && two.matches(host, *port));
        prop_assert_eq!(one.covers(&two), covers, "{} {}", one, two);
        prop_assert_eq!(one.overlaps(&two), overlaps, "{} {}", one, two);
        prop_assert_eq!(one.overlaps(&two), two.overlaps(&one));
    }

    /// Whatever is taken is spelt as the parser of URLs spells it, and again the same.
    #[test]
    fn accepted_patterns_have_one_spelling(raw in "[a-cA-C0-9.аⓐü１x。-]{1,12}") {
        if let Ok(pattern) = HostPattern::parse(&raw) {
            prop_assert!(pattern.to_string().is_ascii());
            prop_assert_eq!(HostPattern::parse(&pattern.to_string()), Ok(pattern.clone()));
            if let Shape::Exact(host) = pattern.shape() {
                prop_assert_eq!(Host::parse(raw.trim_end_matches('.')).unwrap(), host.clone());
            }
        }
    }
}
