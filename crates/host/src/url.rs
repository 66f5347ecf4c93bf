//! `URL` as browsers read it. The face keeps the parts; each parse and each
//! setter is one call.

use ::url::Url;
use ::url::quirks;
use serde_json::{Value, json};

use crate::message::{FaultKind, PowerFault, PowerReply, PowerRequest};

/// A URL, in bytes, before and after.
pub const URL_BYTES_MAX: usize = 1024 * 1024;

const HELPER: &str = "URL";

/// The parts of `arguments.input`, read against `arguments.base` if there is
/// one; null if it is no URL.
///
/// # Errors
/// `missing-input`, `too-large`.
pub fn parse(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let input = string(ask, "input")?;
    let url = match ask.arguments.get("base").and_then(Value::as_str) {
        None => Url::parse(input),
        Some(base) if base.len() > URL_BYTES_MAX => return Err(too_large()),
        Some(base) => Url::parse(base).and_then(|base| base.join(input)),
    };
    Ok(answer(url.ok().as_ref()))
}

/// The parts of `arguments.href` after `arguments.name` was set to
/// `arguments.value`. A value that does not fit changes nothing, as the
/// standard wants it, but for `href`: then the answer is null.
///
/// # Errors
/// `missing-input`, `too-large`, `unknown-part`.
pub fn set(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let href = string(ask, "href")?;
    let name = string(ask, "name")?;
    let value = string(ask, "value")?;
    let Ok(mut url) = Url::parse(href) else {
        return Ok(answer(None));
    };
    // A setter that refuses leaves the URL as it was.
    match name {
        "href" => return Ok(answer(Url::parse(value).ok().as_ref())),
        "protocol" => quirks::set_protocol(&mut url, value).unwrap_or_default(),
        "username" => quirks::set_username(&mut url, value).unwrap_or_default(),
        "password" => quirks::set_password(&mut url, value).unwrap_or_default(),
        "host" => quirks::set_host(&mut url, value).unwrap_or_default(),
        "hostname" => quirks::set_hostname(&mut url, value).unwrap_or_default(),
        "port" => quirks::set_port(&mut url, value).unwrap_or_default(),
        "pathname" => quirks::set_pathname(&mut url, value),
        "search" => quirks::set_search(&mut url, value),
        "hash" => quirks::set_hash(&mut url, value),
        _ => {
            let message = format!("a URL has no part `{name}`");
            return Err(PowerFault::new(
                FaultKind::InvalidInput,
                "unknown-part",
                HELPER,
                message,
            ));
        }
    }
    Ok(answer(Some(&url)))
}

fn answer(url: Option<&Url>) -> PowerReply {
    let value = url.map_or(Value::Null, |url| {
        json!({
            "href": quirks::href(url),
            "origin": quirks::origin(url),
            "protocol": quirks::protocol(url),
            "username": quirks::username(url),
            "password": quirks::password(url),
            "host": quirks::host(url),
            "hostname": quirks::hostname(url),
            "port": quirks::port(url),
            "pathname": quirks::pathname(url),
            "search": quirks::search(url),
            "hash": quirks::hash(url),
        })
    });
    PowerReply {
        value,
        bytes: Vec::new(),
    }
}

fn string<'ask>(ask: &'ask PowerRequest, name: &str) -> Result<&'ask str, PowerFault> {
    match ask.arguments.get(name).and_then(Value::as_str) {
        Some(text) if text.len() > URL_BYTES_MAX => Err(too_large()),
        Some(text) => Ok(text),
        None => {
            let message = format!("`{name}` is missing");
            Err(PowerFault::new(
                FaultKind::InvalidInput,
                "missing-input",
                HELPER,
                message,
            ))
        }
    }
}

fn too_large() -> PowerFault {
    let message = format!("more than {URL_BYTES_MAX} bytes in one URL");
    PowerFault::new(FaultKind::InvalidInput, "too-large", HELPER, message)
}
