//! The part of a body a script asked for, and the reply as it reaches it.

use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use serde_json::{Map, Value};

use crate::fetch::request::shown;
use crate::message::PowerReply;

/// `startIndex` and `maxLength`, in bytes of the decoded body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    start: usize,
    /// Nothing: to the end.
    length: Option<usize>,
}

impl Window {
    /// Whatever is no positive number counts as not given.
    pub(crate) fn from_arguments(start: Option<&Value>, length: Option<&Value>) -> Window {
        Window {
            start: positive(start).unwrap_or(0),
            length: positive(length),
        }
    }

    /// Cuts the body; says where the next window starts if something follows.
    pub(crate) fn cut(self, mut body: Vec<u8>) -> (Vec<u8>, Option<usize>) {
        let start = self.start.min(body.len());
        body.drain(..start);
        match self.length {
            Some(length) if body.len() > length => {
                body.truncate(length);
                (body, Some(start + length))
            }
            Some(_) | None => (body, None),
        }
    }
}

fn positive(value: Option<&Value>) -> Option<usize> {
    let value = value?;
    let whole = value.as_u64().or_else(|| {
        // JSON from a script may write a whole number with a point. Beyond the
        // bound no body reaches; below it the digits are exact.
        let bounded = value.as_f64()?.clamp(0.0, 9_007_199_254_740_991.0);
        format!("{:.0}", bounded.floor()).parse().ok()
    })?;
    usize::try_from(whole).ok().filter(|whole| *whole > 0)
}

/// The reply as the script's face of `fetch` expects it.
pub(crate) fn answer(
    url: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: Vec<u8>,
    window: Window,
) -> PowerReply {
    let (bytes, next) = window.cut(body);
    let pairs: Vec<Value> = headers
        .iter()
        .map(|(name, value)| Value::Array(vec![name.as_str().into(), shown(value).into()]))
        .collect();
    let members = [
        ("status", status.as_u16().into()),
        ("ok", status.is_success().into()),
        ("statusText", status_text(status).into()),
        ("url", url.into()),
        ("truncated", next.is_some().into()),
        ("nextStartIndex", next.into()),
        (
            "contentType",
            headers.get(header::CONTENT_TYPE).map(shown).into(),
        ),
        ("headers", Value::Array(pairs)),
    ];
    // Made at its size at once, because it is made for every request.
    let mut value = Map::with_capacity(members.len());
    value.extend(members.map(|(name, member): (_, Value)| (name.to_owned(), member)));
    PowerReply {
        value: Value::Object(value),
        bytes,
    }
}

/// The words tool authors compare with; anything else is empty.
fn status_text(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "",
    }
}
