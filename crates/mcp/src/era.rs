//! Which era of the protocol a revision belongs to: one rule for headers, for the
//! `_meta` of a request and for the revision that a handshake agreed on.
//!
//! A revision is a date. From 2026-07-28 on every request is independent; before that
//! there is a handshake and a session. Anything but a date is no revision: it counts as
//! legacy, which needs a session and so allows less, and rmcp refuses it.

use axum::http::HeaderMap;
use rmcp::model::ProtocolVersion;

/// The header of HTTP that names the revision.
pub(crate) const VERSION_HEADER: &str = "mcp-protocol-version";

/// The two families of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25: a handshake, then a session.
    Legacy,
    /// From 2026-07-28: every request is independent.
    Modern,
}

impl Era {
    /// The era of a revision as it is written; legacy if none is.
    #[must_use]
    pub fn of(revision: Option<&str>) -> Era {
        match revision {
            Some(revision) if is_at_least(revision, &ProtocolVersion::V_2026_07_28) => Era::Modern,
            Some(_) | None => Era::Legacy,
        }
    }

    /// The era of an HTTP request. Its body may say otherwise: `initialize` is legacy
    /// whatever it names, and rmcp refuses a `_meta` that differs from the header.
    ///
    /// Attack: two headers, of which a proxy, rmcp and we might each read another one.
    /// They count as legacy, so that a session is checked, and `http` refuses them.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Era {
        let mut named = headers.get_all(VERSION_HEADER).iter();
        match (named.next(), named.next()) {
            (Some(revision), None) => Era::of(revision.to_str().ok()),
            (None, _) | (Some(_), Some(_)) => Era::Legacy,
        }
    }
}

/// Whether a revision is a date, and not before that of another one. Dates compare as
/// text.
pub(crate) fn is_at_least(revision: &str, first: &ProtocolVersion) -> bool {
    is_date(revision) && revision >= first.as_str()
}

fn is_date(revision: &str) -> bool {
    let mut places = revision.bytes().zip(*b"dddd-dd-dd");
    let fits = places.all(|(byte, place)| match place {
        b'd' => byte.is_ascii_digit(),
        mark => byte == mark,
    });
    fits && revision.len() == "dddd-dd-dd".len()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(revisions: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for revision in revisions {
            let revision = HeaderValue::from_bytes(revision).expect("a header");
            headers.append(VERSION_HEADER, revision);
        }
        headers
    }

    #[test]
    fn a_revision_is_a_date() {
        for (revision, era) in [
            (None, Era::Legacy),
            (Some(""), Era::Legacy),
            (Some("zzz"), Era::Legacy),
            (Some("zzzz-zz-zz"), Era::Legacy),
            (Some("9"), Era::Legacy),
            (Some("2026-07-28x"), Era::Legacy),
            (Some("2026-07-2"), Era::Legacy),
            (Some("2026:07:28"), Era::Legacy),
            (Some("2026-07-28 "), Era::Legacy),
            (Some("----------"), Era::Legacy),
            (Some("2024-11-05"), Era::Legacy),
            (Some("2025-03-26"), Era::Legacy),
            (Some("2025-06-18"), Era::Legacy),
            (Some("2025-11-25"), Era::Legacy),
            (Some("2026-07-28"), Era::Modern),
            // Unknown revisions: before the change, and after it.
            (Some("2024-01-01"), Era::Legacy),
            (Some("2026-07-27"), Era::Legacy),
            (Some("2027-01-01"), Era::Modern),
        ] {
            assert_eq!(Era::of(revision), era, "{revision:?}");
            let named: Vec<_> = revision.map(str::as_bytes).into_iter().collect();
            assert_eq!(Era::of_headers(&headers(&named)), era, "{revision:?}");
        }
    }

    #[test]
    fn two_headers_are_not_modern() {
        for twice in [
            [b"2026-07-28".as_slice(), b"2026-07-28"],
            [b"2026-07-28", b"2025-11-25"],
            [b"2025-11-25", b"2026-07-28"],
        ] {
            assert_eq!(Era::of_headers(&headers(&twice)), Era::Legacy);
        }
        assert_eq!(Era::of_headers(&headers(&[b"\xff"])), Era::Legacy);
    }
}
