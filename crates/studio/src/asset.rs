//! The files of the page: a table that is built into the program. A path is looked up in the
//! table and nowhere else, so there is no file system for a path to lead into.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

use crate::error::ApiError;

/// One file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its address, such as `/assets/app-1a2b.js`.
    pub(crate) path: &'static str,
    /// Its type.
    pub(crate) mime: &'static str,
    /// Whether its name changes with its content.
    pub(crate) immutable: bool,
    /// The SHA-256 of it, in hexadecimal.
    pub(crate) etag: &'static str,
    /// The file.
    pub(crate) plain: &'static [u8],
    /// The same, packed; empty if that is not worth it.
    pub(crate) gzip: &'static [u8],
    /// The same, packed better.
    pub(crate) brotli: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/asset_table.rs"));

/// The page itself.
const PAGE: &str = "/index.html";
/// What is said where the page was not built.
const UNBUILT: &str =
    "the page was not built into this program: run `cargo xtask studio`, then build it again";

/// What stops the page from being shown, in one sentence, if anything does. A server that
/// has no page does not start: there is none in its place.
#[must_use]
pub fn missing() -> Option<&'static str> {
    missing_in(ASSETS)
}

fn missing_in(assets: &[Asset]) -> Option<&'static str> {
    let has_page = assets.iter().any(|asset| asset.path == PAGE);
    (!has_page).then_some(UNBUILT)
}

/// The file at a path.
pub(crate) fn respond(path: &str, headers: &HeaderMap) -> Response {
    serve(ASSETS, path, headers)
}

fn serve(assets: &'static [Asset], path: &str, headers: &HeaderMap) -> Response {
    let wanted = if path == "/" { PAGE } else { path };
    if assets.is_empty() && wanted == PAGE {
        return ApiError::unavailable(UNBUILT).into();
    }
    // The table is sorted when it is built. There is nothing to join or to normalise.
    let found = assets.binary_search_by(|asset| asset.path.cmp(wanted));
    match found.ok().and_then(|at| assets.get(at)) {
        Some(asset) => answer(asset, headers),
        None => ApiError::unknown("nothing is at this address").into(),
    }
}

fn answer(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let etag = format!("\"{}\"", asset.etag);
    let kept = headers.get_all(IF_NONE_MATCH).iter();
    let mut kept = kept.filter_map(|value| value.to_str().ok());
    // Compared with our own tag only: `*` and weak tags are simply not equal.
    let is_kept = kept.any(|value| value.split(',').any(|one| one.trim() == etag));
    let (encoding, bytes) = packed(asset, headers);
    let mut response = match is_kept {
        true => Response::new(Body::empty()),
        false => Response::new(Body::from(bytes)),
    };
    if is_kept {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let into = response.headers_mut();
    into.insert(CONTENT_TYPE, HeaderValue::from_static(asset.mime));
    // The page names its files, so an old page must not be kept; a file never changes.
    let cache = match asset.immutable {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    into.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    into.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        into.insert(ETAG, etag);
    }
    if let Some(encoding) = encoding.filter(|_| !is_kept) {
        into.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

/// The form of a file that the browser takes.
fn packed(asset: &'static Asset, headers: &HeaderMap) -> (Option<&'static str>, &'static [u8]) {
    let takes = |name: &str| {
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let mut values = values.filter_map(|value| value.to_str().ok());
        values.any(|value| value.split(',').any(|one| is_taken(one, name)))
    };
    if !asset.brotli.is_empty() && takes("br") {
        return (Some("br"), asset.brotli);
    }
    if !asset.gzip.is_empty() && takes("gzip") {
        return (Some("gzip"), asset.gzip);
    }
    (None, asset.plain)
}

/// Whether one entry of `Accept-Encoding` names this encoding and does not refuse it.
fn is_taken(entry: &str, name: &str) -> bool {
    let mut parts = entry.split(';').map(str::trim);
    let is_named = parts
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(name));
    let is_refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
    is_named && !is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: &[Asset] = &[
        Asset {
            path: "/assets/app-1.js",
            mime: "text/javascript; charset=utf-8",
            immutable: true,
            etag: "aa",
            plain: b"plain",
            gzip: b"gz",
            brotli: b"br",
        },
        Asset {
            path: "/index.html",
            mime: "text/html; charset=utf-8",
            immutable: false,
            etag: "bb",
            plain: b"<!doctype html>",
            gzip: b"",
            brotli: b"",
        },
    ];

    fn got(path: &str, headers: &[(&str, &str)]) -> Response {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        serve(TABLE, path, &map)
    }

    #[test]
    fn a_program_without_its_page_says_how_to_make_it() {
        assert_eq!(missing_in(TABLE), None);
        let says = missing_in(&[]).expect("a sentence");
        assert!(says.contains("run `cargo xtask studio`"), "{says}");
        let only_files = TABLE.get(..1).expect("a file");
        assert!(missing_in(only_files).is_some());
    }

    fn header<'a>(response: &'a Response, name: &str) -> &'a str {
        let value = response.headers().get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    #[test]
    fn a_file_is_kept_for_good_and_the_page_is_not() {
        let file = got("/assets/app-1.js", &[]);
        assert_eq!(file.status(), StatusCode::OK);
        assert!(header(&file, "cache-control").contains("immutable"));
        let page = got("/", &[]);
        assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
        assert_eq!(header(&page, "cache-control"), "no-cache");
        let again = got("/", &[("if-none-match", "\"aa\", \"bb\"")]);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn the_best_form_that_is_taken_is_sent() {
        for (accepts, expected) in [
            ("gzip, br", "br"),
            ("gzip", "gzip"),
            ("br;q=0, gzip;q=0.5", "gzip"),
            ("identity", ""),
            ("brx", ""),
        ] {
            let file = got("/assets/app-1.js", &[("accept-encoding", accepts)]);
            assert_eq!(header(&file, "content-encoding"), expected, "{accepts}");
        }
    }

    /// Attack: a path that leads out of the folder of files. There is none.
    #[test]
    fn no_path_leads_anywhere_else() {
        for path in [
            "/assets/../index.html",
            "/assets/%2e%2e/index.html",
            "//index.html",
            "/index.html/",
            "/assets",
            "/../../etc/passwd",
            "/index.html\0",
            "",
        ] {
            let status = got(path, &[]).status();
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        }
    }
}
