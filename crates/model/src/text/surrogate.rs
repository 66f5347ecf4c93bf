//! Half a character in JSON: `\ud83d` without the half that belongs to it.
//!
//! JavaScript cuts texts between the two halves of an emoji and writes the rest as such an
//! escape. Readers of other languages take it; ours refuses the whole message, and with it
//! an answer that somebody waits for. So the escape is overwritten before the message is
//! read, by `\ufffd`, the character for what cannot be shown, which has as many bytes.
//!
//! Only bytes after an unescaped backslash are changed. In JSON that is inside a string, and
//! what has a backslash elsewhere is refused with and without the change.

/// What half a character becomes.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";
/// Bytes that are searched for a backslash at one time.
const PIECE_BYTES: usize = 64;

/// What stands at a backslash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// So many bytes that stay.
    Whole(usize),
    /// Half a character.
    Half,
    /// The bytes end too early to tell.
    Cut,
}

/// Overwrites every half character in JSON. An escape that the end cuts is left alone.
pub fn mend(json: &mut [u8]) {
    mend_piece(json);
}

/// The same for a piece of a stream. Gives the number of bytes that are done: the rest, at
/// most eleven, is the beginning of an escape and belongs before the next piece.
pub fn mend_piece(json: &mut [u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = json.get_mut(at..).unwrap_or_default();
        let Some(start) = backslash(rest) else {
            return json.len();
        };
        let escape = rest.get_mut(start..).unwrap_or_default();
        let length = match escape_at(escape) {
            Escape::Whole(length) => length,
            Escape::Half => {
                let half = escape.get_mut(..REPLACEMENT.len()).unwrap_or_default();
                half.copy_from_slice(REPLACEMENT);
                REPLACEMENT.len()
            }
            Escape::Cut => return at + start,
        };
        at += start + length;
    }
}

/// A text without half characters.
#[must_use]
pub fn mended_text(json: String) -> String {
    let mut bytes = json.into_bytes();
    mend(&mut bytes);
    // Only ASCII was put in the place of ASCII.
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A copy without half characters, if there are any.
#[must_use]
pub fn mended_copy(json: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    loop {
        let rest = json.get(at..).unwrap_or_default();
        let start = backslash(rest)?;
        match escape_at(rest.get(start..).unwrap_or_default()) {
            Escape::Whole(length) => at += start + length,
            Escape::Half => break,
            Escape::Cut => return None,
        }
    }
    let mut copy = json.to_vec();
    mend(&mut copy);
    Some(copy)
}

/// Where the next backslash is. The search through a piece takes several bytes at a time,
/// so that a text without escapes costs next to nothing.
fn backslash(bytes: &[u8]) -> Option<usize> {
    let mut pieces = bytes.chunks(PIECE_BYTES);
    let piece = pieces.position(|piece| piece.contains(&b'\\'))?;
    let start = piece * PIECE_BYTES;
    let rest = bytes.get(start..).unwrap_or_default();
    let place = rest.iter().position(|byte| *byte == b'\\')?;
    Some(start + place)
}

/// What stands at the backslash that the bytes begin with.
fn escape_at(bytes: &[u8]) -> Escape {
    let unit = match unit(bytes) {
        Ok(unit) => unit,
        Err(other) => return other,
    };
    match unit {
        0xd800..=0xdbff => match other_half(bytes.get(6..).unwrap_or_default()) {
            Escape::Whole(length) => Escape::Whole(6 + length),
            other @ (Escape::Half | Escape::Cut) => other,
        },
        0xdc00..=0xdfff => Escape::Half,
        _ => Escape::Whole(6),
    }
}

/// What follows the first half of a character: the other one, or not.
fn other_half(bytes: &[u8]) -> Escape {
    if bytes.first().is_some_and(|byte| *byte != b'\\') {
        return Escape::Half;
    }
    match unit(bytes) {
        Ok(0xdc00..=0xdfff) => Escape::Whole(6),
        Ok(_) | Err(Escape::Whole(_) | Escape::Half) => Escape::Half,
        Err(Escape::Cut) => Escape::Cut,
    }
}

/// The unit of UTF-16 that an escape names. Otherwise the escape is another one, or cut.
fn unit(bytes: &[u8]) -> Result<u32, Escape> {
    match bytes.get(1) {
        None => return Err(Escape::Cut),
        Some(b'u') => {}
        Some(_) => return Err(Escape::Whole(2)),
    }
    let mut unit = 0;
    for place in 2..6 {
        let Some(byte) = bytes.get(place) else {
            return Err(Escape::Cut);
        };
        // No escape: what it is instead, the reader of JSON says.
        let Some(digit) = char::from(*byte).to_digit(16) else {
            return Err(Escape::Whole(2));
        };
        unit = unit * 16 + digit;
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        let mut bytes = raw.as_bytes().to_vec();
        mend(&mut bytes);
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        assert_eq!(mended_text(raw.to_owned()), expected);
        let copy = mended_copy(raw.as_bytes());
        assert_eq!(copy.is_some(), raw != expected, "{raw}");
        assert_eq!(copy.unwrap_or(bytes.clone()), bytes);
        for size in 1..=raw.len().max(1) {
            assert_eq!(in_pieces(raw.as_bytes(), size), bytes, "{raw} by {size}");
        }
    }

    /// As a stream does it: what is not done comes before the next piece.
    fn in_pieces(bytes: &[u8], size: usize) -> Vec<u8> {
        let (mut done, mut held) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            held.extend_from_slice(piece);
            let count = mend_piece(&mut held);
            let rest = held.split_off(count);
            assert!(rest.len() <= 11, "{rest:?}");
            done.append(&mut held);
            held = rest;
        }
        done.append(&mut held);
        done
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_is_not() {
        check(r#""a\ud83d""#, r#""a\ufffd""#);
        check(r#""\uD83D!""#, r#""\ufffd!""#);
        check(r#""\ude00""#, r#""\ufffd""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\uD83D\uDE00\ud83d""#, r#""\uD83D\uDE00\ufffd""#);
        check(r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ud83d\n\ude00""#, r#""\ufffd\n\ufffd""#);
        check(r#""\ud83d\u0041""#, r#""\ufffd\u0041""#);
        check(r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#);
        check(r#"{"\udfff":["\ud800"]}"#, r#"{"\ufffd":["\ufffd"]}"#);
    }

    #[test]
    fn what_only_looks_like_half_a_character_stays() {
        for same in [
            r#""ud83d""#,
            r#""\\ud83d""#,
            r#""\\\\ud83d""#,
            r#""\"\\ud83d""#,
            r#""\u00e9\ud7ff\ue000""#,
            r#""\ud83""#,
            r#""\u{d83d}""#,
            "",
            "\\",
            "\\ud83d",
            "no escapes at all, \u{1f600}",
        ] {
            check(same, same);
        }
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
    }

    /// What is left of a line that is no message does not reach into the next one.
    #[test]
    fn a_line_ends_what_was_begun_in_it() {
        let lines = "noise \\\n{\"a\":\"\\ud800\"}\nnoise \\ud83d\n\\ude00\n";
        let expected = "noise \\\n{\"a\":\"\\ufffd\"}\nnoise \\ufffd\n\\ufffd\n";
        check(lines, expected);
    }

    /// Another way to the same: decode the units one by one, as JavaScript does.
    fn oracle(units: &[u16]) -> String {
        char::decode_utf16(units.iter().copied())
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }

    proptest! {
        #[test]
        fn every_text_of_utf16_is_read(units in proptest::collection::vec(prop_oneof![
            Just(u16::from(b'a')), Just(u16::from(b'\\')), Just(u16::from(b'u')), Just(u16::from(b'"')),
            0xd7f0_u16..0xe010, any::<u16>(),
        ], 0..40), is_escaped in proptest::collection::vec(any::<bool>(), 40)) {
            // As a writer may put it: every unit as an escape, or plain where that can be.
            let mut json = String::from("\"");
            for (unit, is_escaped) in units.iter().zip(is_escaped) {
                match (char::from_u32(u32::from(*unit)), is_escaped) {
                    (Some('\\'), false) => json.push_str("\\\\"),
                    (Some('"'), false) => json.push_str("\\\""),
                    (Some(plain), false) if !plain.is_control() => json.push(plain),
                    _ => json.push_str(&format!("\\u{unit:04x}")),
                }
            }
            json.push('"');
            let mended = mended_text(json.clone());
            prop_assert_eq!(mended.len(), json.len());
            let read: String = serde_json::from_str(&mended).expect("JSON");
            prop_assert_eq!(read, oracle(&units));
        }

        #[test]
        fn pieces_are_mended_as_the_whole(text in r#"[\\u"d8cDe0-3a\n]{0,60}"#, size in 1_usize..20) {
            let mut whole = text.clone().into_bytes();
            mend(&mut whole);
            prop_assert_eq!(in_pieces(text.as_bytes(), size), whole.clone());
            // Twice is as once.
            let mut again = whole.clone();
            mend(&mut again);
            prop_assert_eq!(again, whole);
        }

        /// What can be read as it is, is not touched.
        #[test]
        fn json_that_can_be_read_stays(text in any::<String>()) {
            let json = serde_json::to_string(&text).expect("JSON");
            prop_assert!(mended_copy(json.as_bytes()).is_none());
            prop_assert_eq!(mended_text(json.clone()), json);
        }
    }
}
