//! A refusal as a page, for a person who opened the server's address in a browser. It
//! says what is missing and what to do next. Fixed text around the one sentence of the
//! refusal: no script, no style, nothing to load.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use model::reason::Reason;

use crate::auth::refusal::RefusedWith;

/// Parts of an `Accept` header that are looked at.
const ACCEPTED_MAX: usize = 32;

/// Whether the reader wants a page rather than JSON. Programs that name neither, or both
/// alike, get JSON.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let parts = header.unwrap_or_default().split(',').take(ACCEPTED_MAX);
    let (mut page, mut json) = (0, 0);
    for part in parts {
        let mut pieces = part.split(';').map(str::trim);
        let kind = pieces.next().unwrap_or_default();
        let quality = pieces.find_map(|piece| piece.strip_prefix("q="));
        let quality = quality.map_or(1_000, thousandths);
        if kind.eq_ignore_ascii_case("text/html") {
            page = quality;
        } else if kind.eq_ignore_ascii_case("application/json") {
            json = quality;
        }
    }
    page > json
}

/// A quality such as `0.8`; an unreadable one counts as 0.
fn thousandths(text: &str) -> u16 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{part:0<3}");
    match (whole, digits.parse::<u16>()) {
        ("1", Ok(_)) => 1_000,
        ("0", Ok(part)) if digits.len() == 3 => part,
        _ => 0,
    }
}

/// Puts the page into an answer that refuses for want of a key or a right. The status and
/// the other headers stay.
pub(super) fn put(mut response: Response) -> Response {
    let status = response.status();
    let title = match status {
        StatusCode::UNAUTHORIZED => "401: a key is needed",
        StatusCode::FORBIDDEN => "403: not allowed",
        _ => return response,
    };
    let Some(refused) = response.extensions().get::<RefusedWith>() else {
        return response;
    };
    let page = page(title, refused);
    let headers = response.headers_mut();
    let fixed = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // It was that of the JSON.
    headers.remove(CONTENT_LENGTH);
    *response.body_mut() = Body::from(page);
    response
}

fn page(title: &str, refused: &RefusedWith) -> String {
    let RefusedWith { reason, sentence } = refused;
    let code = reason.code();
    let sentence = escaped(sentence);
    let next = next(*reason);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Ringfence: {title}</title>\n<h1>{title}</h1>\n\
         <p>This is a Ringfence server. It serves tools to MCP clients.</p>\n\
         <p>Why this request was refused: {sentence} (<code>{code}</code>).</p>\n\
         <h2>What to do</h2>\n<p>{next}</p>\n</html>\n"
    )
}

/// The next step for the person who runs the server, in fixed words.
fn next(reason: Reason) -> &'static str {
    match reason {
        Reason::GateToken => {
            "On the machine of the server, <code>ringfence connect</code> prints an entry for each \
             client, and <code>ringfence connect CLIENT</code> writes it with a fresh key."
        }
        Reason::GateHost => {
            "Use the address that <code>ringfence serve</code> printed, or add this host name to \
             <code>hosts</code> below <code>[serve]</code> in <code>ringfence.toml</code>."
        }
        Reason::GateOrigin => {
            "If you trust the page that sent this request, add its origin to <code>origins</code> \
             below <code>[serve]</code> in <code>ringfence.toml</code>."
        }
        Reason::GateRole => {
            "<code>ringfence keys list</code> shows the role of each key; <code>ringfence keys add \
             NAME --role operator</code> creates one that answers questions."
        }
        Reason::GateScope => {
            "Ask the issuer of the token for the missing scopes, or change <code>scopes</code> \
             below <code>[oauth]</code> in <code>ringfence.toml</code>."
        }
        // The other refusals say all there is in their sentence.
        _ => "Ask the person who runs this server.",
    }
}

/// Text of ours may still name a caller or a scope.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_prefers_pages_gets_one() {
        let wanted = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).expect("a header"));
            is_wanted(&headers)
        };
        for accept in [
            "text/html",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json;q=0.5, TEXT/HTML;q=0.9",
        ] {
            assert!(wanted(accept), "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "application/json, text/event-stream",
            "application/json, text/html",
            "text/html;q=0",
            "text/html;q=x",
            "text/html;q=0.5, application/json;q=0.50",
            "text/plain",
        ] {
            assert!(!wanted(accept), "{accept}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }

    #[test]
    fn a_page_holds_no_markup_but_ours() {
        let refused = RefusedWith {
            reason: Reason::GateToken,
            sentence: "<script>\"&'".to_owned(),
        };
        let page = page("x", &refused);
        assert!(page.contains("&lt;script&gt;&quot;&amp;&#39;"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }
}
