//! Masking by example, and the property that nothing is left.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(secrets: &[&str], text: &str, expected: &str) {
    let masker = Masker::new(secrets.iter().copied()).expect("maskable");
    assert_eq!(masker.text(text).get(), expected);
}

#[test]
fn a_secret_is_replaced_wherever_it_stands() {
    check(
        &["hunter22"],
        "the word is hunter22, hunter22!",
        "the word is ***, ***!",
    );
    check(&["hunter22"], "hunter22hunter22", "******");
    check(&["hunter22"], "hunter2", "hunter2");
    check(&[], "hunter22", "hunter22");
}

#[test]
fn short_values_are_left_alone() {
    check(&["abc", "on", ""], "abc is on", "abc is on");
    check(&["abcd"], "abcd", "***");
    check(&["äöü"], "äöü", "äöü");
    check(&["äöüß"], "äöüß", "***");
}

#[test]
fn the_longer_secret_wins_and_overlaps_go_whole() {
    check(&["abcd", "abcdefgh"], "abcdefgh abcd", "*** ***");
    check(&["abcd", "cdefgh"], "abcdefgh", "***");
    check(&["bcde", "abcdefgh", "ghij"], "xabcdefghijx", "x***x");
}

#[test]
fn other_spellings_are_found() {
    check(&["p\"a\\s\ns"], r#"{"a":"p\"a\\s\ns"}"#, r#"{"a":"***"}"#);
    check(&["pässword"], r#""p\u00e4ssword""#, r#""***""#);
    check(&["a/b/c/d"], r#""a\/b\/c\/d""#, r#""***""#);
    check(&["a b+c=d&é"], "q=a%20b%2Bc%3Dd%26%C3%A9", "q=***");
    check(&["a b+c=d&é"], "q=a+b%2bc%3dd%26%c3%a9", "q=***");
    check(
        &["it's(*)!~"],
        "q=it's(*)!~ and it%27s%28%2A%29%21~",
        "q=*** and ***",
    );
}

#[test]
fn base64_is_found_alone_and_inside() {
    check(&["sesame-open"], "c2VzYW1lLW9wZW4=", "***=");
    check(
        &["sesame-open"],
        "Authorization: Basic dXNlcjpzZXNhbWUtb3Blbg==",
        "Authorization: Basic dXNlcj***==",
    );
    check(&["sesame-open"], "eHg6c2VzYW1lLW9wZW46eXk=", "eHg6***6eXk=");
    check(&["??>>??>>"], "Pz8-Pj8_Pj4", "***");
}

#[test]
fn values_are_masked_in_every_corner() {
    let masker = Masker::new(["12345678", "topsecret"]).expect("maskable");
    let value = json!({"topsecret": ["x topsecret", {"n": 12345678, "m": 1234567}], "b": true});
    let expected = json!({"***": ["x ***", {"n": "***", "m": 1234567}], "b": true});
    assert_eq!(masker.value(value).into_inner(), expected);
}

#[test]
fn debug_shows_no_secret() {
    let masker = Masker::new(["topsecret"]).expect("maskable");
    assert!(!format!("{masker:?}").contains("topsecret"));
}

/// Base64 as the standard says, written anew so that the oracle shares nothing.
fn base64(bytes: &[u8], last_two: &str, pad: bool) -> String {
    let mut letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').collect();
    letters.extend(last_two.chars());
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            text.push(letters[(group >> (18 - 6 * index) & 63) as usize]);
        }
        if pad {
            text.push_str(&"=".repeat(3 - chunk.len()));
        }
    }
    text
}

/// Everything but letters and digits escaped, in either case of hexadecimal.
fn percent(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_left_in_any_spelling_we_claim(
        secrets in prop::collection::vec("[ -~äß€🙂\n\"\\\\]{4,20}", 1..5),
        before in "[a-z:]{0,5}",
        after in "[a-z:]{0,5}",
    ) {
        let masker = Masker::new(secrets.iter().map(String::as_str)).expect("maskable");
        for secret in &secrets {
            let inside = format!("{before}{secret}{after}");
            for text in [
                inside.clone(),
                serde_json::to_string(&inside).expect("json"),
                format!("{before}{}{after}", percent(secret)),
            ] {
                let masked = masker.text(&text).into_inner();
                prop_assert!(!masked.contains(secret.as_str()) || MASK.contains(secret.as_str()), "{text:?} {masked:?}");
                prop_assert!(masked.contains(MASK));
            }
            for (last_two, pad) in [("+/", true), ("+/", false), ("-_", true), ("-_", false)] {
                let masked = masker.text(&base64(inside.as_bytes(), last_two, pad)).into_inner();
                prop_assert!(masked.contains(MASK), "{inside:?} {masked}");
            }
        }
    }

    /// The same answer as looking for every secret at every place.
    #[test]
    fn places_agree_with_a_naive_search(
        secrets in prop::collection::vec("[ab]{4,7}", 1..6),
        text in "[abc]{0,60}",
    ) {
        let masker = Masker::new(secrets.iter().map(String::as_str)).expect("maskable");
        let mut covered = vec![false; text.len()];
        for secret in &secrets {
            for start in 0..text.len() {
                if text.get(start..).is_some_and(|rest| rest.starts_with(secret.as_str())) {
                    covered[start..start + secret.len()].fill(true);
                }
            }
        }
        let plain: String = text.chars().zip(&covered).filter(|(_, covered)| !**covered).map(|(c, _)| c).collect();
        let masked = masker.text(&text).into_inner().replace(MASK, "");
        prop_assert_eq!(masked, plain);
    }
}
