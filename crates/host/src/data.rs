//! The powers that are only computation, by the name of the operation.
//!
//! They reach nothing outside, so every call has them and no grant is asked.
//! Randomness is handed in: what it is worth is for the caller to know.

use crate::ask::{Answer, Ask, Fault};
use crate::{crypto, intl, parser, url};

/// Performs one operation; nothing if it is none of these.
pub fn call(
    operation: &str,
    ask: &Ask,
    random: &mut dyn FnMut(&mut [u8]),
) -> Option<Result<Answer, Fault>> {
    Some(match operation {
        "parser.html" => parser::html::html(ask),
        "parser.xml" => parser::xml::xml(ask),
        "parser.csv" => parser::csv::csv(ask),
        "parser.yaml" => parser::yaml::yaml(ask),
        "crypto.randomUUID" => crypto::random_uuid(random),
        "crypto.randomBytes" => crypto::random_bytes(ask, random),
        "crypto.digest" => crypto::digest(ask),
        "crypto.hmac" => crypto::hmac(ask),
        "crypto.hmacVerify" => crypto::hmac_verify(ask),
        "crypto.encrypt" => crypto::encrypt(ask),
        "crypto.decrypt" => crypto::decrypt(ask),
        "crypto.pbkdf2" => crypto::pbkdf2(ask),
        "crypto.hkdf" => crypto::hkdf(ask),
        "url.parse" => url::parse(ask),
        "url.set" => url::set(ask),
        "intl.dateResolve" => intl::date::resolve(ask),
        "intl.dateFormat" => intl::date::format(ask),
        "intl.numberResolve" => intl::number::resolve(ask),
        "intl.numberFormat" => intl::number::format(ask),
        "intl.locale" => intl::locale(ask),
        "intl.zones" => intl::zones(),
        _ => return None,
    })
}

/// The names of all operations, for whoever wires them.
pub const OPERATIONS: &[&str] = &[
    "parser.html",
    "parser.xml",
    "parser.csv",
    "parser.yaml",
    "crypto.randomUUID",
    "crypto.randomBytes",
    "crypto.digest",
    "crypto.hmac",
    "crypto.hmacVerify",
    "crypto.encrypt",
    "crypto.decrypt",
    "crypto.pbkdf2",
    "crypto.hkdf",
    "url.parse",
    "url.set",
    "intl.dateResolve",
    "intl.dateFormat",
    "intl.numberResolve",
    "intl.numberFormat",
    "intl.locale",
    "intl.zones",
];
