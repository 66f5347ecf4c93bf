//! What a script asked for, and what is left of it after each redirect.

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use model::record::mask::Masker;
use serde_json::{Map, Value};

use crate::fetch::fault::HttpFault;
use crate::fetch::limits::FetchLimits;
use crate::fetch::target::FetchTarget;
use crate::fetch::window::Window;
use crate::message::PowerRequest;

/// One request, ready for one hop.
#[derive(Clone, Debug)]
pub(crate) struct FetchRequest {
    pub(crate) target: FetchTarget,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Headers that belong to the connection, not to the tool. They are dropped
/// without a word, because the reference does so too. Every `proxy-` header is
/// dropped with them.
const DROPPED: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Methods that ask a server for something other than a page.
const METHODS_REFUSED: &[&str] = &["CONNECT", "TRACE", "TRACK"];

const METHOD_BYTES_MAX: usize = 32;

/// The arguments, apart from the URL, which is parsed first so that its host
/// can be put on record whatever else is wrong.
#[derive(Debug)]
pub(crate) struct FetchArguments<'a> {
    pub(crate) raw_url: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> FetchArguments<'a> {
    pub(crate) fn from_ask(
        ask: &'a PowerRequest,
        limits: &FetchLimits,
    ) -> Result<FetchArguments<'a>, HttpFault> {
        let missing = || HttpFault::invalid("missing-url", "the first argument is a URL");
        let map = ask.arguments.as_object().ok_or_else(missing)?;
        let raw_url = match map.get("url") {
            Some(Value::String(raw_url)) if !raw_url.trim().is_empty() => raw_url,
            Some(_) | None => return Err(missing()),
        };
        if raw_url.len() > limits.url_bytes_max {
            let what = format!("a URL has at most {} bytes", limits.url_bytes_max);
            return Err(HttpFault::invalid("invalid-url", what));
        }
        Ok(FetchArguments { raw_url, map })
    }

    /// The method as it goes on record, checked or not.
    pub(crate) fn raw_method(&self) -> String {
        match self.map.get("method") {
            Some(Value::String(method)) if method.len() > METHOD_BYTES_MAX => {
                format!("(a method of {} bytes)", method.len())
            }
            Some(Value::String(method)) => method.to_uppercase(),
            // Anything else is refused later; the record has what would have
            // been sent by default.
            Some(_) | None => "GET".to_owned(),
        }
    }

    /// Whether a redirect is the answer, instead of being followed.
    pub(crate) fn is_manual(&self) -> bool {
        self.map.get("redirect").and_then(Value::as_str) == Some("manual")
    }

    pub(crate) fn window(&self) -> Window {
        Window::from_arguments(self.map.get("startIndex"), self.map.get("maxLength"))
    }

    pub(crate) fn request(
        &self,
        target: FetchTarget,
        body: &[u8],
        limits: &FetchLimits,
    ) -> Result<FetchRequest, HttpFault> {
        let method = method(self.map.get("method"))?;
        let headers = headers(self.map.get("headers"), limits)?;
        if body.len() > limits.request_body_bytes_max {
            let what = format!("a body has at most {} bytes", limits.request_body_bytes_max);
            return Err(HttpFault::invalid("request-too-large", what));
        }
        let body = match method {
            Method::GET | Method::HEAD => Bytes::new(),
            _ => Bytes::copy_from_slice(body),
        };
        Ok(FetchRequest {
            target,
            method,
            headers,
            body,
        })
    }
}

fn method(raw: Option<&Value>) -> Result<Method, HttpFault> {
    let wrong = |what: &str| HttpFault::invalid("invalid-method", what);
    let raw = match raw {
        None | Some(Value::Null) => return Ok(Method::GET),
        Some(Value::String(raw)) => raw.to_ascii_uppercase(),
        Some(_) => return Err(wrong("`method` is a string")),
    };
    if METHODS_REFUSED.contains(&raw.as_str()) {
        return Err(wrong("CONNECT, TRACE and TRACK are not for tools"));
    }
    let is_short = raw.len() <= METHOD_BYTES_MAX;
    let parsed = Method::from_bytes(raw.as_bytes()).ok().filter(|_| is_short);
    parsed.ok_or_else(|| wrong("`method` is one short word"))
}

fn headers(raw: Option<&Value>, limits: &FetchLimits) -> Result<HeaderMap, HttpFault> {
    let mut headers = HeaderMap::new();
    let map = match raw {
        None | Some(Value::Null) => return Ok(headers),
        Some(Value::Object(map)) => map,
        Some(_) => {
            return Err(HttpFault::invalid(
                "invalid-header",
                "`headers` is an object",
            ));
        }
    };
    let mut bytes_count = 0;
    for (raw_name, raw_value) in map {
        let raw_value = match raw_value {
            Value::Null => continue,
            Value::String(value) => value,
            _ => {
                let what = format!("the value of header `{raw_name}` is not a string");
                return Err(HttpFault::invalid("invalid-header", what));
            }
        };
        // Attack: header injection. Neither a name nor a value may hold a line
        // break; the types know no such thing.
        let name = HeaderName::from_bytes(raw_name.as_bytes()).map_err(|_| {
            HttpFault::invalid("invalid-header", format!("`{raw_name}` is no header name"))
        })?;
        let value = latin1(raw_value)
            .and_then(|bytes| HeaderValue::from_bytes(&bytes).ok())
            .ok_or_else(|| {
                let what = format!("the value of header `{raw_name}` holds a line break, a control character or one beyond Latin-1");
                HttpFault::invalid("invalid-header", what)
            })?;
        // After the checks, so that a wrong header is named even if it would be dropped.
        if DROPPED.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            continue;
        }
        bytes_count += name.as_str().len() + value.len();
        headers.append(name, value);
    }
    if headers.len() > limits.request_header_count_max
        || bytes_count > limits.request_header_bytes_max
    {
        let what = format!(
            "at most {} headers and {} bytes of them",
            limits.request_header_count_max, limits.request_header_bytes_max
        );
        return Err(HttpFault::invalid("request-too-large", what));
    }
    Ok(headers)
}

/// What browsers do with header values: one byte for each character.
fn latin1(text: &str) -> Option<Vec<u8>> {
    text.trim_matches([' ', '\t'])
        .chars()
        .map(|character| u8::try_from(u32::from(character)).ok())
        .collect()
}

/// Whether the reply sends us elsewhere.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    status.is_redirection() && status != StatusCode::NOT_MODIFIED
}

impl FetchRequest {
    /// The next request of a chain. Refused if its body or its URL would carry a secret
    /// to another origin: neither can be dropped like a header.
    pub(crate) fn redirected(
        mut self,
        status: StatusCode,
        to: FetchTarget,
        secrets: &Masker,
    ) -> Result<FetchRequest, HttpFault> {
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => {
                matches!(self.method, Method::POST | Method::PUT | Method::PATCH)
            }
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = Bytes::new();
            for name in [
                header::CONTENT_TYPE,
                header::CONTENT_ENCODING,
                header::CONTENT_LANGUAGE,
                header::CONTENT_LOCATION,
            ] {
                self.headers.remove(name);
            }
        }
        // Attack: credentials follow a redirect to any host it names. What was
        // dropped stays dropped, even if the chain comes home.
        if self.target.origin() != to.origin() {
            // A server that copies the query into its redirect means no harm, and the
            // same host with TLS is where the secret was meant to go. Another port is not:
            // another server may listen there.
            let is_upgrade = to.host == self.target.host
                && !self.target.is_https()
                && to.is_https()
                && to.url.port().is_none();
            let url_shows = !is_upgrade && secrets.shows(to.url.as_str().as_bytes());
            // Also the body: a 307 or 308 sends it again.
            if url_shows || secrets.shows(&self.body) {
                let rule = format!("redirect would carry a secret to {}", to.host);
                return Err(HttpFault::denied("redirect-with-secret", rule));
            }
            self.headers = self
                .headers
                .iter()
                .filter(|(name, value)| !is_credential(name, value, secrets))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
        }
        self.target = to;
        Ok(self)
    }
}

// By name for what servers call credentials, and by value for keys in headers of their own.
fn is_credential(name: &HeaderName, value: &HeaderValue, secrets: &Masker) -> bool {
    if matches!(
        *name,
        header::AUTHORIZATION | header::COOKIE | header::PROXY_AUTHORIZATION
    ) {
        return true;
    }
    secrets.shows(value.as_bytes()) || secrets.shows(name.as_str().as_bytes())
}

/// A header's value as text: UTF-8 if it is, else one character for each byte.
pub(crate) fn shown(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_url_follows_to_the_same_host_with_tls_alone() {
        let secrets = Masker::new(["s3cret-value"]).unwrap();
        for (from, to, goes) in [
            (
                "http://a.example/",
                "https://a.example/?k=s3cret-value",
                true,
            ),
            (
                "http://a.example:8080/",
                "https://a.example/?k=s3cret-value",
                true,
            ),
            (
                "https://a.example/",
                "https://a.example/?k=s3cret-value",
                true,
            ),
            (
                "https://a.example/",
                "https://a.example:8443/?k=other",
                true,
            ),
            // Attack: another server of the same host.
            (
                "https://a.example/",
                "https://a.example:8443/?k=s3cret-value",
                false,
            ),
            (
                "https://a.example:8443/",
                "https://a.example/?k=s3cret-value",
                false,
            ),
            (
                "http://a.example/",
                "https://a.example:8443/?k=s3cret-value",
                false,
            ),
            (
                "http://a.example/",
                "https://b.example/?k=s3cret-value",
                false,
            ),
            (
                "https://a.example/",
                "http://a.example/?k=s3cret-value",
                false,
            ),
        ] {
            let request = FetchRequest {
                target: FetchTarget::parse(from, None).unwrap(),
                method: Method::GET,
                headers: HeaderMap::new(),
                body: Bytes::new(),
            };
            let to_target = FetchTarget::parse(to, None).unwrap();
            let next = request.redirected(StatusCode::FOUND, to_target, &secrets);
            assert_eq!(next.is_ok(), goes, "{from} {to}");
        }
    }
}
