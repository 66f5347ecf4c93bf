//! The host names of this server, and the origins that may call it.
//!
//! Attack: a web page whose own name suddenly leads to 127.0.0.1 (DNS rebinding),
//! or one that simply sends requests there. The browser says both names, in `Host`
//! and in `Origin`, and a page can change neither. Both are read strictly: what a
//! browser would not write is refused rather than understood.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A host: a name in small letters, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostName {
    /// A name.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// A host and, if said, a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: HostName,
    /// The port.
    pub port: Option<u16>,
}

/// Where a web page comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin {
    scheme: String,
    host: HostName,
    port: Option<u16>,
}

/// The host names of this server, and the origins that may call it.
#[derive(Clone, Debug)]
pub struct Addresses {
    hosts: Vec<HostName>,
    origins: Vec<OriginPattern>,
    base: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OriginPattern {
    origin: WebOrigin,
    any_port: bool,
}

impl Addresses {
    /// Builds it from the listening address and the settings. Every problem is one
    /// sentence.
    pub fn new(
        listen: SocketAddr,
        public_url: Option<&str>,
        hosts: &[String],
        origins: &[String],
    ) -> Result<Addresses, Vec<String>> {
        let mut problems = Vec::new();
        let mut known = vec![
            HostName::Name("localhost".to_owned()),
            HostName::Address(Ipv4Addr::LOCALHOST.into()),
            HostName::Address(Ipv6Addr::LOCALHOST.into()),
        ];
        let mut pages = Vec::new();
        // Attack: `0.0.0.0` in a page leads to this very machine in some browsers. It
        // is an address to listen on, never to reach.
        if !listen.ip().is_unspecified() {
            known.push(HostName::Address(listen.ip().to_canonical()));
        }
        for host in &known {
            pages.push(OriginPattern {
                origin: WebOrigin::new("http", host.clone(), Some(listen.port())),
                any_port: false,
            });
        }
        let base = match public_url.map(public) {
            None => format!("http://{}", shown_listen(listen)),
            Some(Ok((origin, base))) => {
                known.push(origin.host.clone());
                pages.push(OriginPattern {
                    origin,
                    any_port: false,
                });
                base
            }
            Some(Err(problem)) => {
                problems.push(problem);
                String::new()
            }
        };
        for raw in hosts {
            match authority(&raw.to_ascii_lowercase()) {
                Some(Authority { host, port: None }) => known.push(host),
                Some(_) | None => problems.push(format!(
                    "`{}` in `serve.hosts` is not a host name; leave out scheme, port and path",
                    crate::text::elided(raw, 80)
                )),
            }
        }
        for raw in origins {
            match pattern(raw) {
                Some(pattern) => pages.push(pattern),
                None => problems.push(format!(
                    "`{}` in `serve.origins` is not an origin; write it as a browser does, such as `https://app.example.com` or `http://localhost:*`",
                    crate::text::elided(raw, 80)
                )),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Addresses {
            hosts: known,
            origins: pages,
            base,
        })
    }

    /// The address clients know the server by, without a slash at the end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether all these names are the server's, and there is at least one.
    #[must_use]
    pub fn host_is_ours(&self, raw_hosts: &[&[u8]]) -> bool {
        let is_ours = |raw: &&[u8]| {
            let text = std::str::from_utf8(raw).ok();
            let host = text.and_then(|text| authority(&text.to_ascii_lowercase()));
            host.is_some_and(|host| self.hosts.contains(&host.host))
        };
        // All of them: a proxy may have routed by another one than we read.
        !raw_hosts.is_empty() && raw_hosts.iter().all(is_ours)
    }

    /// The same for a probe, which may also name the address it reached. No web page
    /// can have that as its origin.
    #[must_use]
    pub fn host_is_ours_or(&self, raw_hosts: &[&[u8]], reached: Option<IpAddr>) -> bool {
        let is_reached = |raw: &[u8]| {
            let text = std::str::from_utf8(raw).ok();
            let host = text.and_then(authority).map(|authority| authority.host);
            match (host, reached) {
                (Some(HostName::Address(host)), Some(reached)) => {
                    // Canonical, because a dual-stack socket reports IPv4 peers as
                    // mapped IPv6.
                    host == reached.to_canonical() && !host.is_unspecified()
                }
                _ => false,
            }
        };
        self.host_is_ours(raw_hosts) || matches!(raw_hosts, [raw] if is_reached(raw))
    }

    /// Whether a page that this server itself sent made a request: the page's origin is
    /// exactly where the request goes. Other allowed origins, and other ports of the
    /// same host, do not count.
    #[must_use]
    pub fn is_own_page(&self, raw_hosts: &[&[u8]], raw_origins: &[&[u8]]) -> bool {
        let ([raw_host], [raw_origin]) = (raw_hosts, raw_origins) else {
            return false;
        };
        let text = |raw: &[u8]| std::str::from_utf8(raw).ok().map(str::to_ascii_lowercase);
        let host = text(raw_host).and_then(|text| authority(&text));
        let page = std::str::from_utf8(raw_origin).ok().and_then(origin);
        let (Some(host), Some(page)) = (host, page) else {
            return false;
        };
        // Extensions and files have origins of other schemes.
        let is_web = matches!(page.scheme.as_str(), "http" | "https");
        let reached = WebOrigin::new(&page.scheme, host.host.clone(), host.port);
        is_web && self.hosts.contains(&host.host) && page == reached
    }

    /// Whether traffic between a browser and this host cannot be read on the way: it
    /// never leaves the machine, or the public address uses TLS.
    #[must_use]
    pub fn is_private_way(&self, raw_hosts: &[&[u8]]) -> bool {
        let [raw] = raw_hosts else {
            return false;
        };
        let text = std::str::from_utf8(raw).ok().map(str::to_ascii_lowercase);
        let Some(host) = text.and_then(|text| authority(&text)) else {
            return false;
        };
        let is_here = match &host.host {
            HostName::Name(name) => name == "localhost",
            HostName::Address(address) => address.is_loopback(),
        };
        let is_public = self.base.starts_with("https://")
            && public(&self.base).is_ok_and(|(origin, _)| origin.host == host.host);
        is_here || is_public
    }

    /// Whether a page of this origin may call the server. Exactly one `Origin` must be
    /// sent; requests without one come from programs and are not checked here.
    #[must_use]
    pub fn origin_is_welcome(&self, raw_origins: &[&[u8]]) -> bool {
        let [raw] = raw_origins else {
            return false;
        };
        let origin = std::str::from_utf8(raw).ok().and_then(origin);
        origin.is_some_and(|origin| self.origins.iter().any(|pattern| pattern.fits(&origin)))
    }
}

impl WebOrigin {
    fn new(scheme: &str, host: HostName, port: Option<u16>) -> WebOrigin {
        let standard = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        WebOrigin {
            scheme: scheme.to_owned(),
            host,
            // Browsers leave the standard port out.
            port: port.or(standard),
        }
    }
}

impl OriginPattern {
    fn fits(&self, origin: &WebOrigin) -> bool {
        self.origin.scheme == origin.scheme
            && self.origin.host == origin.host
            && (self.any_port || self.origin.port == origin.port)
    }
}

/// Where one can connect to, as an address shows it.
fn shown_listen(listen: SocketAddr) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, listen.port()).to_string()
}

/// The origin of the public address, and the address without its last slash.
fn public(raw: &str) -> Result<(WebOrigin, String), String> {
    let problem = || {
        format!(
            "`{}` in `serve.public_url` is not an address; write it as `https://tools.example.com`",
            crate::text::elided(raw, 80)
        )
    };
    let base = raw.trim_end_matches('/');
    let (scheme, rest) = base.split_once("://").ok_or_else(problem)?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    if !matches!(scheme, "http" | "https") || !path.bytes().all(plain) {
        return Err(problem());
    }
    let origin = origin(&format!("{scheme}://{host}")).ok_or_else(problem)?;
    Ok((origin, base.to_owned()))
}

fn pattern(raw: &str) -> Option<OriginPattern> {
    let (text, any_port) = match raw.strip_suffix(":*") {
        Some(text) => (text, true),
        None => (raw, false),
    };
    let origin = origin(text)?;
    Some(OriginPattern { origin, any_port })
}

/// An origin as a browser writes it: small letters, no path, no user name.
fn origin(raw: &str) -> Option<WebOrigin> {
    let (scheme, rest) = raw.split_once("://")?;
    let mut letters = scheme.bytes();
    let begins_well = letters.next().is_some_and(|byte| byte.is_ascii_lowercase());
    let goes_on = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
    };
    if !begins_well || !letters.all(goes_on) {
        return None;
    }
    let Authority { host, port } = authority(rest)?;
    Some(WebOrigin::new(scheme, host, port))
}

/// A host and a port, in small letters. Nothing for anything odd: a user name
/// before an `@`, a dot at the end, an address spelt in another way.
fn authority(raw: &str) -> Option<Authority> {
    if let Some(rest) = raw.strip_prefix('[') {
        let (inner, after) = rest.split_once(']')?;
        let address: Ipv6Addr = inner.parse().ok()?;
        let port = match after {
            "" => None,
            after => Some(port(after.strip_prefix(':')?)?),
        };
        return Some(Authority {
            host: HostName::Address(address.into()),
            port,
        });
    }
    let (name, port) = match raw.split_once(':') {
        Some((name, digits)) => (name, Some(port(digits)?)),
        None => (raw, None),
    };
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(Authority {
            host: HostName::Address(address.into()),
            port,
        });
    }
    let host = HostName::Name(host_name(name)?);
    Some(Authority { host, port })
}

fn port(digits: &str) -> Option<u16> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn host_name(name: &str) -> Option<String> {
    let legal = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    let label = |label: &str| !label.is_empty() && label.len() <= 63 && label.bytes().all(legal);
    if name.len() > 253 || !name.split('.').all(label) {
        return None;
    }
    // `127.1`, `0x7f.1` and `2130706433` are addresses to some.
    let last = name.rsplit('.').next()?;
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    (!is_number).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ours() -> Addresses {
        let listen = "127.0.0.1:7464".parse().expect("an address");
        Addresses::new(listen, None, &[], &[]).expect("addresses")
    }

    #[test]
    fn only_a_page_of_this_very_server_is_its_own() {
        let listen = "127.0.0.1:7464".parse().expect("an address");
        let origins = [
            "https://app.example.com".to_owned(),
            "http://localhost:*".to_owned(),
        ];
        let ours = Addresses::new(listen, Some("https://rf.example.com"), &[], &origins);
        let ours = ours.expect("addresses");
        for (host, origin, expected) in [
            ("127.0.0.1:7464", "http://127.0.0.1:7464", true),
            ("localhost:7464", "http://localhost:7464", true),
            ("LOCALHOST:7464", "http://localhost:7464", true),
            ("rf.example.com", "https://rf.example.com", true),
            ("rf.example.com", "https://rf.example.com:443", true),
            // Another port of the same host is the same site, and another origin.
            ("127.0.0.1:7464", "http://127.0.0.1:7465", false),
            ("127.0.0.1:7464", "http://localhost:7464", false),
            ("127.0.0.1:7464", "https://127.0.0.1:7464", true),
            // Welcome to call tools, not to act for the person at the page.
            ("127.0.0.1:7464", "https://app.example.com", false),
            ("localhost:7464", "http://localhost:9999", false),
            ("evil.example.com", "http://evil.example.com", false),
            ("127.0.0.1:7464", "null", false),
            ("127.0.0.1:7464", "", false),
            ("127.0.0.1:7464", "file://127.0.0.1:7464", false),
        ] {
            let is_own = ours.is_own_page(&[host.as_bytes()], &[origin.as_bytes()]);
            assert_eq!(is_own, expected, "{host} {origin}");
        }
        let origin = b"http://127.0.0.1:7464".as_slice();
        let host = b"127.0.0.1:7464".as_slice();
        assert!(!ours.is_own_page(&[host, host], &[origin]));
        assert!(!ours.is_own_page(&[host], &[origin, origin]));
        assert!(!ours.is_own_page(&[host], &[]));
    }

    #[test]
    fn traffic_is_private_on_loopback_or_with_tls() {
        let listen = "0.0.0.0:7464".parse().expect("an address");
        let hosts = ["box.lan".to_owned()];
        let open = Addresses::new(listen, Some("http://rf.example.com"), &hosts, &[]);
        let open = open.expect("addresses");
        let sealed = Addresses::new(listen, Some("https://rf.example.com"), &hosts, &[]);
        let sealed = sealed.expect("addresses");
        for (host, of_open, of_sealed) in [
            ("127.0.0.1:7464", true, true),
            ("localhost", true, true),
            ("[::1]:7464", true, true),
            ("box.lan:7464", false, false),
            ("rf.example.com", false, true),
            ("192.168.1.4:7464", false, false),
            ("", false, false),
        ] {
            assert_eq!(open.is_private_way(&[host.as_bytes()]), of_open, "{host}");
            assert_eq!(
                sealed.is_private_way(&[host.as_bytes()]),
                of_sealed,
                "{host}"
            );
        }
    }

    proptest! {
        /// Text around a name makes it foreign, unless it is a port.
        #[test]
        fn only_a_port_may_follow_a_name(
            before in "[ -~]{0,4}",
            name in prop::sample::select(vec!["localhost", "127.0.0.1", "[::1]"]),
            after in "[ -~]{0,6}",
        ) {
            let text = format!("{before}{name}{after}");
            let digits = after.strip_prefix(':').unwrap_or_default();
            let is_port = digits.parse::<u16>().is_ok_and(|port| port.to_string() == digits && port > 0);
            let expected = before.is_empty() && (after.is_empty() || is_port);
            prop_assert_eq!(ours().host_is_ours(&[text.as_bytes()]), expected, "{}", text);
            let origin = format!("http://{text}");
            let expected = before.is_empty() && after == ":7464";
            prop_assert_eq!(ours().origin_is_welcome(&[origin.as_bytes()]), expected, "{}", origin);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let text = String::from_utf8_lossy(&bytes);
            let is_ours = ours().host_is_ours(&[&bytes]);
            prop_assert!(!is_ours || text.to_lowercase().contains("localhost") || text.contains('1'));
            prop_assert!(!ours().origin_is_welcome(&[&bytes]));
            prop_assert!(!ours().is_own_page(&[&bytes], &[&bytes]));
        }
    }
}
