//! One place to go: a URL that was parsed, checked for form and taken apart.

use url::{Host, Origin, ParseError, Url};

use crate::fetch::fault::HttpFault;

/// A URL with a scheme we speak, a host, a port, and nothing else in front.
#[derive(Clone, Debug)]
pub(crate) struct FetchTarget {
    pub(crate) url: Url,
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
}

impl FetchTarget {
    /// Parses what a script, or the `Location` of a reply, says.
    pub(crate) fn parse(raw_url: &str, base: Option<&Url>) -> Result<FetchTarget, HttpFault> {
        let parsed = Url::options().base_url(base).parse(raw_url);
        // Attack: a key in the query of a URL that cannot be read. Messages name the
        // scheme and the host, never the URL: the author of another part of it could
        // place the key where a message ends.
        let missing = || HttpFault::invalid("missing-host", "the URL has no host");
        let mut url = parsed.map_err(|error| match error {
            ParseError::EmptyHost => missing(),
            error => HttpFault::invalid("invalid-url", format!("this is not a URL: {error}")),
        })?;
        // Attack: `file:`, `data:` and others would read what no host rule has seen.
        if !matches!(url.scheme(), "http" | "https") {
            let rule = format!("only http and https, not `{}`", url.scheme());
            return Err(HttpFault::denied("unsupported-scheme", rule));
        }
        // Never sent to servers, and a place where a script could hide a
        // difference between two URLs.
        url.set_fragment(None);
        // Attack: userinfo. `http://good.example@evil.example/` fools readers and
        // logs, and puts a password where nothing masks it.
        if !url.username().is_empty() || url.password().is_some() {
            let what = "a URL must not carry a user name or password; use a header";
            return Err(HttpFault::invalid("invalid-url", what));
        }
        absolute(&mut url)?;
        let host = url.host().ok_or_else(missing)?.to_owned();
        let port = url.port_or_known_default().ok_or_else(missing)?;
        Ok(FetchTarget { url, host, port })
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(crate) fn origin(&self) -> Origin {
        self.url.origin()
    }

    /// For the `Host` header: the port only where it is not the usual one.
    pub(crate) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }

    /// Path and query.
    pub(crate) fn path(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

/// Takes the dot off the end of a name, so that one host has one spelling in
/// rules, in TLS and in the record.
fn absolute(url: &mut Url) -> Result<(), HttpFault> {
    let Some(name) = url.host_str().and_then(|host| host.strip_suffix('.')) else {
        return Ok(());
    };
    let name = name.to_owned();
    let is_sound = !name.is_empty() && !name.ends_with('.') && url.set_host(Some(&name)).is_ok();
    if is_sound {
        Ok(())
    } else {
        Err(HttpFault::invalid(
            "invalid-url",
            "a host name ends in two dots",
        ))
    }
}
