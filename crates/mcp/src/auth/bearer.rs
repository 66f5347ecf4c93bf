//! The credential of a request, read from the one place where it may be.

use std::fmt;

use model::govern::key::{self, KeyForm};
use model::reason::Reason;

use crate::auth::limit;
use crate::auth::refusal::AuthRefusal;

/// The credential of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// Nothing.
    None,
    /// A key or token of ours, spelt right.
    Ours(KeyForm<'a>, &'a str),
    /// It begins like one of ours and is mistyped.
    Misspelt,
    /// A token of an issuer.
    Foreign(&'a str),
}

/// Never prints the credential itself.
impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(***)")
    }
}

/// Reads the credential of a request: all its `Authorization` headers, and the
/// query of its address.
///
/// Attack: a token in the address ends up in logs and in other servers' `Referer`;
/// two headers may be read differently by a proxy and by us. Both are refused.
pub fn read<'a>(
    raw_headers: &[&'a [u8]],
    raw_query: Option<&str>,
) -> Result<Credential<'a>, AuthRefusal> {
    if raw_query.is_some_and(holds_token) {
        return Err(AuthRefusal::new(
            Reason::GateRequest,
            "a token in the address is never accepted, and may be in logs by now: replace it, and use the header `Authorization: Bearer …`",
        ));
    }
    let raw = match raw_headers {
        [] => return Ok(Credential::None),
        [raw] => raw,
        [_, _, ..] => {
            let sentence = "there are two `Authorization` headers; send one";
            return Err(AuthRefusal::new(Reason::GateRequest, sentence));
        }
    };
    let token = bearer(raw).ok_or_else(|| {
        let sentence = "the header must read `Authorization: Bearer …` with one token";
        AuthRefusal::new(Reason::GateRequest, sentence)
    })?;
    Ok(match key::read(token) {
        Some(presented) => Credential::Ours(presented, token),
        // Told apart from a foreign token, so that the answer can say that it is
        // mistyped.
        None if token.starts_with(key::PREFIX) => Credential::Misspelt,
        None => Credential::Foreign(token),
    })
}

fn bearer(raw: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(raw).ok()?;
    let (scheme, token) = text.split_once(' ')?;
    // The alphabet that RFC 6750 gives tokens.
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let is_token =
        !token.is_empty() && token.len() <= limit::TOKEN_BYTES_MAX && token.bytes().all(legal);
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

/// Whether a query has a parameter that others take tokens from.
fn holds_token(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        // Percent signs could hide the name, so a name with one is refused.
        name.contains('%') || name.eq_ignore_ascii_case("access_token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_header_one_scheme_one_token() {
        let token = key::local_token([3; key::SECRET_BYTES]);
        let right = format!("Bearer {}", token.reveal());
        let read_one = |header: &str| {
            read(&[header.as_bytes()], None).map(|found| match found {
                Credential::None => "none",
                Credential::Ours(KeyForm::Local, _) => "local",
                Credential::Ours(KeyForm::Key(_), _) => "key",
                Credential::Misspelt => "misspelt",
                Credential::Foreign(_) => "foreign",
            })
        };
        assert_eq!(read_one(&right), Ok("local"));
        assert_eq!(read_one(&right.replace("Bearer", "bEARER")), Ok("local"));
        assert_eq!(read_one(&format!("{right}x")), Ok("misspelt"));
        assert_eq!(read_one("Bearer rf_"), Ok("misspelt"));
        assert_eq!(read_one("Bearer a.b.c"), Ok("foreign"));
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer  x",
            "Bearer x ",
            "Bearer x y",
            "Basic eDp5",
            "Bearer x,Bearer y",
            "Token x",
            "Bearer\tx",
            "x",
            "Bearer \u{e9}",
        ] {
            let refusal = read_one(bad).expect_err(bad);
            assert_eq!(refusal.reason, Reason::GateRequest, "{bad:?}");
        }
        let long = format!("Bearer {}", "x".repeat(limit::TOKEN_BYTES_MAX + 1));
        assert!(read_one(&long).is_err());
        assert!(read(&[b"Bearer x", b"Bearer x"], None).is_err());
        assert!(read(&[b"Bearer \xff"], None).is_err());
        assert!(read(&[], None) == Ok(Credential::None));
    }

    #[test]
    fn a_token_in_the_address_is_refused_whatever_else_is_shown() {
        for query in [
            "access_token=x",
            "a=1&access_token=x",
            "ACCESS_TOKEN=x",
            "access%5Ftoken=x",
            "%61ccess_token=x",
            "access_token",
        ] {
            assert!(read(&[b"Bearer x"], Some(query)).is_err(), "{query}");
        }
        for query in ["", "a=access_token", "my_access_token=x"] {
            assert!(read(&[b"Bearer x"], Some(query)).is_ok(), "{query}");
        }
    }
}
