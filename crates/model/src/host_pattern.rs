//! Host patterns of mode `allowlist`: `api.example.com`, `*.example.com`, `*`.
//!
//! Spelling only: lower case, no trailing dot, a port only where one is given.
//! International names and addresses are the business of whoever connects.

use std::fmt;

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    text: String,
}

/// Why a text is no host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostPatternFault {
    message: String,
    /// The pattern that was probably meant.
    pub suggestion: Option<String>,
}

impl HostPattern {
    /// Checks a pattern as an author wrote it.
    pub fn parse(raw: &str) -> Result<HostPattern, HostPatternFault> {
        let text = raw.trim().trim_end_matches('.').to_lowercase();
        if is_pattern(&text) {
            return Ok(HostPattern { text });
        }
        let host = text
            .split_once("://")
            .map_or(text.as_str(), |(_, rest)| rest);
        let host = host
            .split(['/', '?', '#'])
            .next()
            .unwrap_or("")
            .rsplit('@')
            .next()
            .unwrap_or("");
        let shown = crate::text::elided(raw, 60);
        let message = if text.is_empty() {
            "a host pattern is empty".to_owned()
        } else if text.contains("://") || text.contains('/') {
            format!("`{shown}` is an address; a host pattern has no scheme and no path")
        } else if text.contains('*') {
            format!("`{shown}`: a `*` may stand alone or as `*.` before a name")
        } else {
            format!("`{shown}` is not a host name")
        };
        let suggestion = Some(host.to_owned()).filter(|host| is_pattern(host) && host != "*");
        Err(HostPatternFault {
            message,
            suggestion,
        })
    }

    /// Whether it is the wildcard that stands for every public host.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.text == "*"
    }

    /// Whether it covers a whole top-level domain.
    #[must_use]
    pub fn is_whole_tld(&self) -> bool {
        self.text
            .strip_prefix("*.")
            .is_some_and(|rest| !rest.contains('.'))
    }

    /// Whether a host, and the port it is reached on, fit the pattern.
    #[must_use]
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_lowercase();
        let (pattern, pattern_port) = split_port(&self.text);
        let port_fits = pattern_port.is_none_or(|wanted| wanted == port);
        let host_fits = match pattern.strip_prefix("*.") {
            Some(suffix) => {
                host == suffix
                    || host
                        .strip_suffix(suffix)
                        .is_some_and(|head| head.len() > 1 && head.ends_with('.'))
            }
            None => pattern == "*" || pattern == host,
        };
        port_fits && host_fits
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_pattern(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    if text.len() > 261 {
        return false;
    }
    // An address in brackets keeps its colons; who connects parses it.
    if let Some(rest) = text.strip_prefix('[') {
        let Some((inside, after)) = rest.split_once(']') else {
            return false;
        };
        let port_fits = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return inside.parse::<core::net::Ipv6Addr>().is_ok() && port_fits;
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    port.is_none_or(is_port) && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    !label.is_empty()
        && label.chars().count() <= 63
        && label.chars().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn split_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().ok())
        }
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, host: &str, expected: bool) {
        let pattern = HostPattern::parse(pattern).expect("a pattern");
        assert_eq!(pattern.matches(host, 443), expected, "{pattern} {host}");
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
        check("api.example.com", "API.example.com.", true);
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
        check("*.example.com", ".example.com", false);
        check("*", "anything.at.all", true);
    }

    #[test]
    fn a_port_counts_only_when_given() {
        check("example.com:443", "example.com", true);
        check("example.com:8443", "example.com", false);
        check("[::1]:443", "[::1]", true);
        check("[::1]", "[::1]", true);
    }

    #[test]
    fn what_is_no_pattern_gets_a_suggestion() {
        refused("https://api.example.com/v1", Some("api.example.com"));
        refused("user@example.com", Some("example.com"));
        refused("", None);
        refused("a b", None);
        refused("*x.com", None);
        refused("a.*.com", None);
        refused("-a.com", None);
        refused("example.com:0", None);
        refused("example.com:99999", None);
        refused("[::zz]", None);
    }
}
