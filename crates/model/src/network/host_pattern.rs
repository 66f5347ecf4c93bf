//! Host patterns of mode `allowlist`: `api.example.com`, `*.example.com`, `*`.
//!
//! A pattern has one spelling, the one that is looked up and connected to: lower
//! case, no dot at the end, international letters as punycode (`xn--…`), addresses
//! in the usual form. What people read is therefore what is reached.
//!
//! Attack: a host that is read as another. `аpi.github.com` with a Cyrillic letter
//! becomes `xn--pi-6kc.github.com`; other spellings of an address, and letters that
//! turn into ASCII, are refused.

use core::fmt;
use core::net::Ipv6Addr;

use url::Host;

use crate::network::address::{Reach, Reserved, of_host, of_name};
use crate::text::elided;

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    text: String,
    shape: Shape,
    port: Option<u16>,
}

/// The hosts a pattern covers, without ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// Every host.
    Any,
    /// A name and everything below it.
    Below(String),
    /// One host.
    Exact(Host<String>),
}

/// Why a text is not a host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostPatternFault {
    message: String,
    /// The pattern that was probably meant.
    pub suggestion: Option<String>,
}

/// Longer than any name with a star and a port.
const PATTERN_BYTES_MAX: usize = 261;

impl HostPattern {
    /// Checks a pattern as an author wrote it.
    pub fn parse(raw: &str) -> Result<HostPattern, HostPatternFault> {
        let text = raw.trim().trim_end_matches('.').to_lowercase();
        if is_pattern(&text) {
            return canonical(raw, &text);
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
        let shown = elided(raw, 60);
        let bare_address = text.parse::<Ipv6Addr>().ok();
        let message = if text.is_empty() {
            "a host pattern is empty".to_owned()
        } else if bare_address.is_some() {
            format!("`{shown}`: write an IPv6 address in brackets")
        } else if text.contains("://") || text.contains('/') {
            format!("`{shown}` is an address; a host pattern has no scheme and no path")
        } else if text.contains('*') {
            format!("`{shown}`: a `*` may stand alone or as `*.` before a name")
        } else {
            format!("`{shown}` is not a host name")
        };
        // `*` is never suggested: it would reach every host.
        let meant = Some(host).filter(|host| is_pattern(host) && *host != "*");
        let meant = meant.and_then(|host| HostPattern::parse(host).ok());
        let suggestion = match bare_address {
            Some(address) => Some(Host::<String>::Ipv6(address).to_string()),
            None => meant.map(|meant| meant.text),
        };
        Err(HostPatternFault {
            message,
            suggestion,
        })
    }

    /// Whether it is the wildcard that stands for every public host.
    #[must_use]
    pub fn is_any(&self) -> bool {
        matches!(self.shape, Shape::Any)
    }

    /// Whether it covers a whole top-level domain.
    #[must_use]
    pub fn is_whole_tld(&self) -> bool {
        matches!(&self.shape, Shape::Below(suffix) if !suffix.contains('.'))
    }

    /// The only port it is for, if it names one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The hosts it covers, without ports.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the name has letters beyond ASCII, which are easily taken for others.
    #[must_use]
    pub fn is_international(&self) -> bool {
        let mut labels = self.text.split('.');
        labels.any(|label| label.starts_with("xn--"))
    }

    /// The class of its hosts, by spelling alone.
    #[must_use]
    pub fn reach(&self) -> Reach {
        match &self.shape {
            Shape::Any => Reach::Public,
            Shape::Exact(host) => of_host(host),
            // The names below it count, and they have a dot.
            Shape::Below(suffix) => of_name(&format!("x.{suffix}")),
        }
    }

    /// For people: the pattern and, where it is not an ordinary public one, what it
    /// leads to.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.reach() {
            // `.example` and `.test` lead nowhere, and readers know it.
            Reach::Public | Reach::Reserved(Reserved::SpecialName) => self.text.clone(),
            Reach::Reserved(class) => format!("{} ({class})", self.text),
        }
    }

    /// Whether a host, and the port it is reached on, fit the pattern.
    #[must_use]
    pub fn matches(&self, host: &Host<String>, port: u16) -> bool {
        let host_fits = match &self.shape {
            Shape::Any => true,
            Shape::Below(suffix) => is_below(host, suffix),
            Shape::Exact(exact) => exact == host,
        };
        host_fits && self.port.is_none_or(|wanted| wanted == port)
    }

    /// Whether it covers every host another covers.
    #[must_use]
    pub fn covers(&self, other: &HostPattern) -> bool {
        let port_fits = self.port.is_none() || self.port == other.port;
        port_fits && self.shape.covers(&other.shape)
    }

    /// Whether there is a host both cover. Patterns are names in a tree, so two
    /// that overlap are one inside the other.
    #[must_use]
    pub fn overlaps(&self, other: &HostPattern) -> bool {
        let port_fits = match (self.port, other.port) {
            (Some(one), Some(two)) => one == two,
            (None, _) | (_, None) => true,
        };
        port_fits && (self.shape.covers(&other.shape) || other.shape.covers(&self.shape))
    }
}

impl Shape {
    fn covers(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Any, _) => true,
            (Shape::Below(suffix), Shape::Exact(host)) => is_below(host, suffix),
            (Shape::Below(suffix), Shape::Below(inner)) => name_is_below(inner, suffix),
            (Shape::Exact(one), Shape::Exact(two)) => one == two,
            (Shape::Below(_) | Shape::Exact(_), Shape::Any)
            | (Shape::Exact(_), Shape::Below(_)) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The pattern in its one spelling; refused if that is not what was written.
fn canonical(raw: &str, text: &str) -> Result<HostPattern, HostPatternFault> {
    let (host, port) = split_port(text);
    let port = port.and_then(|port| port.parse().ok());
    if host == "*" {
        let shape = Shape::Any;
        return Ok(HostPattern {
            text: text.to_owned(),
            shape,
            port,
        });
    }
    let (star, name) = match host.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", host),
    };
    let refused = |suggestion: Option<String>| {
        let shown = elided(raw, 60);
        let message = match &suggestion {
            Some(meant) => format!("`{shown}` is another spelling of `{meant}`"),
            None => format!("`{shown}` is not a host name"),
        };
        HostPatternFault {
            message,
            suggestion,
        }
    };
    let parsed = Host::parse(name).map_err(|_| refused(None))?;
    let colon = port.map(|port: u16| format!(":{port}")).unwrap_or_default();
    let text = format!("{star}{parsed}{colon}");
    let is_same = match &parsed {
        Host::Domain(spelt) => is_same_name(name, spelt),
        Host::Ipv4(address) => name == address.to_string() && star.is_empty(),
        Host::Ipv6(_) => name == parsed.to_string(),
    };
    if !is_same {
        return Err(refused(Some(text).filter(|_| star.is_empty())));
    }
    let shape = match (star, parsed) {
        ("", host) => Shape::Exact(host),
        (_, Host::Domain(suffix)) => Shape::Below(suffix),
        (_, Host::Ipv4(_) | Host::Ipv6(_)) => return Err(refused(None)),
    };
    Ok(HostPattern { text, shape, port })
}

/// Whether a name is spelt as it is looked up, label by label. A label with letters
/// beyond ASCII must keep some: one that becomes plain ASCII was a disguise.
fn is_same_name(written: &str, spelt: &str) -> bool {
    let (mut written, mut spelt) = (written.split('.'), spelt.split('.'));
    loop {
        match (written.next(), spelt.next()) {
            (None, None) => return true,
            (Some(one), Some(two)) if one == two => {}
            (Some(one), Some(two)) if !one.is_ascii() && two.starts_with("xn--") => {}
            (_, _) => return false,
        }
    }
}

fn is_pattern(text: &str) -> bool {
    if text.len() > PATTERN_BYTES_MAX {
        return false;
    }
    // An address in brackets keeps its colons.
    if let Some(rest) = text.strip_prefix('[') {
        let Some((inside, after)) = rest.split_once(']') else {
            return false;
        };
        let port_fits = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return inside.parse::<Ipv6Addr>().is_ok() && port_fits;
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    port.is_none_or(is_port) && (host == "*" || name.split('.').all(is_label))
}

/// Letters beyond ASCII are looked at when the name is spelt out: circled ones are
/// symbols, and must be refused for what they become.
fn is_label(label: &str) -> bool {
    let inner = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !label.is_empty()
        && label.chars().count() <= 63
        && label.chars().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

fn is_below(host: &Host<String>, suffix: &str) -> bool {
    matches!(host, Host::Domain(name) if name_is_below(name, suffix))
}

fn name_is_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix)
        // Not `.example.com`, which has an empty label.
        .is_some_and(|head| head.is_empty() || (head.len() > 1 && head.ends_with('.')))
}

#[cfg(test)]
mod tests;
