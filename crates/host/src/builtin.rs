//! The powers that are only computation, by the name of the operation.
//!
//! They reach nothing outside, so every call has them and no grant is asked.
//! Randomness is handed in: what it is worth is for the caller to know.

use crate::compute::Turn;
use crate::message::{PowerFault, PowerReply, PowerRequest};
use crate::{crypto, intl, parser, url};

/// Whether an operation is over at once, so that it need not wait for a turn: it looks at
/// no more than a short text.
#[must_use]
pub fn is_brief(operation: &str, ask_bytes: usize) -> bool {
    const BRIEF_BYTES_MAX: usize = 4 << 10;
    let is_brief = operation.starts_with("url.")
        || operation.starts_with("intl.")
        || matches!(operation, "crypto.randomUUID" | "crypto.randomBytes");
    is_brief && ask_bytes <= BRIEF_BYTES_MAX
}

/// Performs one operation; nothing if it is none of these. What takes long asks its turn
/// whether to go on.
pub fn call(
    operation: &str,
    ask: &PowerRequest,
    random: &mut dyn FnMut(&mut [u8]),
    turn: &Turn,
) -> Option<Result<PowerReply, PowerFault>> {
    Some(match operation {
        "parser.html" => parser::html::html(ask, turn),
        "parser.xml" => parser::xml::xml(ask, turn),
        "parser.csv" => parser::csv::csv(ask, turn),
        "parser.yaml" => parser::yaml::yaml(ask, turn),
        "crypto.randomUUID" => crypto::random_uuid(random),
        "crypto.randomBytes" => crypto::random_bytes(ask, random),
        "crypto.digest" => crypto::digest(ask, turn),
        "crypto.hmac" => crypto::hmac(ask),
        "crypto.hmacVerify" => crypto::hmac_verify(ask),
        "crypto.encrypt" => crypto::encrypt(ask),
        "crypto.decrypt" => crypto::decrypt(ask),
        "crypto.pbkdf2" => crypto::pbkdf2(ask, turn),
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

/// The names of all operations, for the code that wires them.
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
