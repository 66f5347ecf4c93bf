//! From bytes to text: UTF-8, or the one older set of characters that the web still has in
//! numbers, which goes by several names. The reply says which, or the head of the page does.

/// Names of the older set, in lower case.
const WESTERN: &[&str] = &[
    "windows-1252",
    "cp1252",
    "x-cp1252",
    "iso-8859-1",
    "iso8859-1",
    "iso_8859-1",
    "latin1",
    "l1",
    "us-ascii",
    "ascii",
];

/// What it has where Latin-1 has control characters; five are free, and stay what they are.
const UPPER: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

/// Bytes of a page in which its own word about its characters is looked for.
const HEAD_BYTES: usize = 1024;

/// The text of a body. `kind` is its type, in lower case. What is valid UTF-8 is UTF-8, whatever
/// is said of it: no other text looks like it by chance.
pub(super) fn decode(bytes: &[u8], kind: &str) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(char::REPLACEMENT_CHARACTER) {
        return text.into_owned();
    }
    let head = bytes.get(..bytes.len().min(HEAD_BYTES)).unwrap_or_default();
    let head = String::from_utf8_lossy(head).to_lowercase();
    match named(kind).or_else(|| named(&head)) {
        Some(name) if WESTERN.contains(&name) => bytes.iter().copied().map(western).collect(),
        Some(_) | None => text.into_owned(),
    }
}

/// The name after `charset=`.
fn named(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'', ' ']);
    rest.split(['"', '\'', ' ', ';', '>', '/']).next()
}

fn western(byte: u8) -> char {
    let upper = byte
        .checked_sub(0x80)
        .and_then(|index| UPPER.get(usize::from(index)));
    upper.copied().unwrap_or_else(|| char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn older_characters_are_read_where_they_are_named() {
        let page = b"<meta charset=\"Windows-1252\"><p>caf\xe9 \x96 5 \x80</p>";
        let body = b"caf\xe9 \x96 5 \x80";
        let right = "caf\u{e9} \u{2013} 5 \u{20ac}";
        assert_eq!(decode(body, "text/plain; charset=iso-8859-1"), right);
        assert!(decode(page, "text/html").contains(right));
        // The control: without a name they cannot be known.
        assert_eq!(
            decode(body, "text/plain"),
            "caf\u{fffd} \u{fffd} 5 \u{fffd}"
        );
    }

    #[test]
    fn what_is_utf_8_stays_so_whatever_is_said_of_it() {
        let text = "na\u{ef}ve \u{2014} \u{6f22}";
        for kind in ["text/html; charset=latin1", "text/html; charset=utf-8", ""] {
            assert_eq!(decode(text.as_bytes(), kind), text);
        }
        let broken = b"a\xffb";
        assert_eq!(decode(broken, "text/html; charset=utf-8"), "a\u{fffd}b");
        assert_eq!(decode(b"", "text/html; charset="), "");
    }
}
