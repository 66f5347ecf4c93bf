//! One request as a part of the API sees it: who asks, what the address says, and the body.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::HeaderMap;
use engine::people::OpenSession;
use model::govern::key::Secret;
use model::govern::person::{Actor, Person};
use model::text;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, ApiResult};
use crate::limit;

/// Through what people act.
pub(crate) const STUDIO: &str = "studio";

/// A request that passed the front door.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Whose it is; nothing on the routes that need no session.
    pub(crate) session: Option<(Secret, OpenSession)>,
    pub(crate) path: BTreeMap<String, String>,
    pub(crate) query: BTreeMap<String, Vec<String>>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    /// The person who asks.
    pub(crate) fn person(&self) -> ApiResult<&Person> {
        let session = self.session.as_ref().ok_or_else(ApiError::session)?;
        Ok(&session.1.person)
    }

    /// The same as the audit names them.
    pub(crate) fn actor(&self) -> ApiResult<Actor<'_>> {
        Ok(Actor {
            by: &self.person()?.name,
            through: STUDIO,
        })
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// A query parameter that is said at most once and not empty.
    pub(crate) fn word(&self, name: &str) -> ApiResult<Option<&str>> {
        match self.query.get(name).map(Vec::as_slice) {
            None => Ok(None),
            Some([one]) => Ok(Some(one.as_str()).filter(|one| !one.is_empty())),
            // Attack: two readers may take two different ones of them.
            Some(_) => Err(ApiError::request(format!("`{name}` is said twice"))),
        }
    }

    /// A query parameter that is `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> ApiResult<Option<bool>> {
        match self.word(name)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(ApiError::request(format!("`{name}` is `true` or `false`"))),
        }
    }

    /// A query parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> ApiResult<Option<u64>> {
        let read = |word: &str| {
            let refused = |_| ApiError::request(format!("`{name}` is a number"));
            word.parse().map_err(refused)
        };
        self.word(name)?.map(read).transpose()
    }

    /// How many rows are asked for.
    pub(crate) fn limit(&self) -> ApiResult<usize> {
        let wanted = self.number("limit")?;
        let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
        Ok(wanted
            .unwrap_or(limit::PAGE_ROWS_DEFAULT)
            .clamp(1, limit::PAGE_ROWS_MAX))
    }

    /// The body.
    pub(crate) fn read<B: DeserializeOwned>(&self) -> ApiResult<B> {
        serde_json::from_slice(&self.body).map_err(|fault| {
            // The parser's own words quote the body, so they are put on one line and cut.
            let why = text::elided(&text::one_line(&fault.to_string()), 300);
            ApiError::request(format!("the body is not understood: {why}"))
        })
    }
}

/// A note or reason that a person typed, within its bound.
pub(crate) fn note(raw: Option<&str>) -> ApiResult<Option<String>> {
    let Some(raw) = raw.map(str::trim).filter(|raw| !raw.is_empty()) else {
        return Ok(None);
    };
    match raw.chars().count() <= limit::NOTE_CHARS_MAX {
        true => Ok(Some(text::one_line(raw))),
        false => Err(ApiError::invalid(format!(
            "at most {} characters",
            limit::NOTE_CHARS_MAX
        ))),
    }
}

/// The query of an address, as names and values.
pub(crate) fn query(
    raw: Option<&str>,
    known: &[&str],
    ignores_unknown: bool,
) -> ApiResult<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in raw.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (unescaped(name)?, unescaped(value)?);
        if !known.contains(&name.as_str()) {
            if ignores_unknown {
                continue;
            }
            let name = text::elided(&text::one_line(&name), 40);
            return Err(ApiError::request(format!("there is no parameter `{name}`")));
        }
        found.entry(name).or_default().push(value);
    }
    Ok(found)
}

/// Text of an address: `+` is a space, `%41` an `A`.
fn unescaped(raw: &str) -> ApiResult<String> {
    let refused = || ApiError::request("the address is not spelt as addresses are");
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || {
                    let digit = rest.next().map(char::from)?.to_digit(16)?;
                    u8::try_from(digit).ok()
                };
                let (high, low) = (digit(), digit());
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(refused());
                };
                bytes.push(high << 4 | low);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_or_refused() {
        let read =
            query(Some("tool=a%2Fb+c&tool=%C3%A9&x="), &["tool", "x"], false).expect("a query");
        assert_eq!(read["tool"], ["a/b c", "é"]);
        assert_eq!(read["x"], [""]);
        for odd in ["y=1", "tool=%", "tool=%4", "tool=%zz", "tool=%ff"] {
            assert!(query(Some(odd), &["tool"], false).is_err(), "{odd}");
        }
        let lenient = query(Some("y=1&tool=a"), &["tool"], true).expect("a query");
        assert_eq!(lenient.into_keys().collect::<Vec<_>>(), ["tool"]);
        assert!(query(None, &[], false).expect("none").is_empty());
    }
}
