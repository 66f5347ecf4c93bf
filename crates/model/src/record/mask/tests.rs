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
fn a_secret_is_masked_everywhere() {
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
fn escapes_of_every_writer_are_decoded() {
    let key = "k&y=\"1\"/ä<b>";
    for text in [
        // encodeURI, encodeURIComponent, URL.href, and a mixture without a name.
        "k&y=%221%22/%C3%A4%3Cb%3E",
        "k%26y%3D%221%22%2F%C3%A4%3Cb%3E",
        "k&y=%221%22/%C3%A4<b>",
        "%6b%26y=\"1%22/ä<b%3e",
        // JSON for HTML, JSON in JSON, JSON in JSON in JSON.
        r#"k\u0026y=\"1\"\/\u00e4\u003cb\u003e"#,
        r#"k&y=\\\"1\\\"/ä<b>"#,
        r#"k&y=\\\\\\\"1\\\\\\\"/ä<b>"#,
        // JavaScript, HTML, old `escape`.
        r#"k\x26y=\"1\"/\u{e4}<b>"#,
        "k&amp;y=&quot;1&#34;/&#xe4;&lt;b&gt;",
        "k%26y%3D%221%22/%E4%3Cb%3E",
        "k%26y%3D%221%22/%u00E4%3Cb%3E",
        // A URL in JSON in a URL.
        "%22k%5Cu0026y=%5C%221%5C%22%2F%C3%A4%3Cb%3E%22",
    ] {
        let text = format!("before {text} after");
        let masker = Masker::new([key]).expect("maskable");
        let masked = masker.text(&text).into_inner();
        assert!(masked.contains(MASK), "{text} {masked}");
        assert!(!masked.contains("y="), "{text} {masked}");
        assert!(masked.starts_with("before ") && masked.ends_with(" after"));
    }
}

#[test]
fn a_backslash_before_a_secret_eats_nothing_of_it() {
    check(&["new key 1"], r"C:\new%20key%201", r"C:\***");
    check(&[r"C:\new dir"], r"?q=C:\new%20dir", "?q=***");
    check(
        &["100%25 sure"],
        "a 100%25%20sure b 100%2525%20sure",
        "a *** b ***",
    );
}

#[test]
fn base64_is_found_in_latin1_folded_and_over_other_encodings() {
    // btoa("pässwörd12"), which takes one byte for each character.
    check(&["pässwörd12"], "cORzc3f2cmQxMg==", "***==");
    check(&["pässwörd12"], "x:cORzc3f2cmQxMg", "x:***");
    // The same as UTF-8, and folded after every 8 letters of a longer line.
    check(&["pässwörd12"], "cMOkc3N3w7ZyZDEy", "***");
    let folded = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhOnNlc2FtZS\r\n1vcGVuLXdpZGU6YmJiYg==";
    check(&["sesame-open-wide"], folded, "***==");
    // {"k":"a\"b&c1234"} in base64, and that in base64 again.
    let once = base64(br#"{"k":"a\"b&c1234"}"#, "+/", true);
    let twice = base64(once.as_bytes(), "-_", false);
    for text in [once, twice] {
        let masker = Masker::new(["a\"b&c1234"]).expect("maskable");
        assert!(masker.text(&text).get().contains(MASK), "{text}");
    }
}

#[test]
fn hex_and_other_cases_are_found() {
    check(&["Sesame-Open"], "536573616d652d4f70656e", "***");
    check(&["Sesame-Open"], "x 536573616D652D4F70656E y", "x *** y");
    check(
        &["Sesame-Open"],
        "unknown host: sesame-open.example.com",
        "unknown host: ***.example.com",
    );
    check(&["Sesame-Open"], "SESAME-OPEN", "***");
    check(&["Abcd"], "abcd", "abcd");
}

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQDMYfnvWtC8Id5b\nPps1Z9bQ==\n-----END PRIVATE KEY-----\n";

#[test]
fn the_lines_of_a_secret_are_secrets() {
    check(
        &[PEM],
        "line 2 is BKcwggSjAgEAAoIBAQDMYfnvWtC8Id5b!",
        "line 2 is ***!",
    );
    check(
        &[PEM],
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
    );
    // One line, other line breaks, folded elsewhere, and escaped.
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDMYfnvWtC8Id5bPps1Z9bQ==";
    check(&[PEM], body, "*********");
    let masker = Masker::new([PEM]).expect("maskable");
    let crlf = masker.text(&PEM.replace('\n', "\r\n")).into_inner();
    assert!(!crlf.contains("MIIE") && !crlf.contains("Pps1"), "{crlf}");
    let refolded = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA\nAoIBAQDMYfnvWtC8Id5bPps1Z9bQ==";
    let masked = masker.text(refolded).into_inner();
    assert!(
        !masked.contains("BKcw") && !masked.contains("AoIB"),
        "{masked}"
    );
    // As a file of variables has it.
    let escaped = PEM.replace('\n', "\\n");
    check(&[&escaped], "BKcwggSjAgEAAoIBAQDMYfnvWtC8Id5b", "***");
}

#[test]
fn partial_secrets_at_a_cut_are_masked() {
    let masker = Masker::new(["sesame-open-wide", "a b/c d/e f"]).expect("maskable");
    let check = |text: &str, expected: &str| {
        assert_eq!(masker.cut_text(text).get(), expected);
    };
    check("the word is sesame-op", "the word is ***");
    check("the word is ses", "the word is ses");
    check("sesame-open-wide and sesame", "*** and ***");
    check("?q=a%20b%2Fc%2", "?q=***");
    check("?q=a%20b%2Fc", "?q=***");
    check(r#"{"q":"a b\/c d\"#, r#"{"q":"***"#);
    check("c2VzYW1lLW9wZ", "***");
    assert_eq!(
        masker.text("the word is sesame-op").get(),
        "the word is sesame-op"
    );
}

#[test]
fn a_text_with_nothing_in_it_stays_as_it_is() {
    let text = "100% sure: C:\\new & old; eyJhbGciOiJIUzI1NiJ9.e30 \\u0041 &amp; naïve 日本語 🙂\n";
    check(&["sesame-open"], text, text);
}

#[test]
fn utf16_base32_and_lists_of_bytes_are_found() {
    // What PowerShell takes for a command, and the same bytes the other way round.
    check(
        &["sesame-open"],
        "cwBlAHMAYQBtAGUALQBvAHAAZQBuAA==",
        "***==",
    );
    check(
        &["sesame-open"],
        "AHMAZQBzAGEAbQBlAC0AbwBwAGUAbg==",
        "***==",
    );
    // "user:sesame-open!" in base32, in both cases.
    let base32 = "OVZWK4R2ONSXGYLNMUWW64DFNYQQ====";
    check(&["sesame-open"], base32, "OVZWK4R2***QQ====");
    check(
        &["sesame-open"],
        &base32.to_lowercase(),
        "ovzwk4r2***qq====",
    );
    check(
        &["sesame"],
        "Uint8Array(8) [ 1, 115, 101, 115, 97, 109, 101, 10 ]",
        "Uint8Array(8) [ 1, ***, 10 ]",
    );
    check(
        &["sesame"],
        r#"{"0":115,"1":101,"2":115,"3":97,"4":109,"5":101}"#,
        r#"{"0":***}"#,
    );
    let text = "1,234,567 and [1.5, 2.5, 3], 10,20,30,40,50";
    check(&["sesame"], text, text);
}

#[test]
fn arrays_of_bytes_are_masked_whole() {
    let masker = Masker::new(["sesame"]).expect("maskable");
    let bytes = json!({"key": b"x-sesame", "more": {"0": 115, "1": 101, "2": 115, "3": 97,
        "4": 109, "5": 101}, "other": [1, 2, 3]});
    let expected = json!({"key": "***", "more": "***", "other": [1, 2, 3]});
    assert_eq!(masker.value(bytes).into_inner(), expected);
}

#[test]
fn variants_of_a_key_are_found() {
    // Without its line break, its padding, its scheme; in the other alphabet; read from
    // a form; as the bytes it stands for.
    check(&["hunter2\n"], "it is hunter2.", "it is ***.");
    check(&["Zm9vYmFyLWZvb2Jhcg=="], "Zm9vYmFyLWZvb2Jhcg", "***");
    check(&["Bearer abc-12345"], "token abc-12345", "token ***");
    check(&["ab+cd/efgh+ijklm"], "ab-cd_efgh-ijklm", "***");
    check(&["ab+cd/efgh+ijklm"], "ab cd/efgh ijklm", "***");
    check(&["Zm9vYmFyLWZvb2Jhcg=="], "foobar-foobar", "***");
    check(
        &["Zm9vYmFyLWZvb2Jhcg=="],
        "666f6f6261722d666f6f626172",
        "***",
    );
    check(
        &["666f6f6261722d666f6f626172"],
        "Zm9vYmFyLWZvb2Jhcg==",
        "***==",
    );
    let database = "postgres://app:p%40ss-word@db.example/app";
    check(
        &[database],
        "user app, password p@ss-word",
        "user app, password ***",
    );
    check(&[database], "FATAL p%40ss-word", "FATAL ***");
}

#[test]
fn rarer_escapes_are_decoded() {
    for text in [
        r"s\145same-\157pen",
        r"sesame\U0000002dopen",
        "sesame&#45open",
        "sesame&#000000045;open",
        "sesame&#x2D;open",
        "sesame%252Dopen",
    ] {
        check(&["sesame-open"], text, "***");
    }
    check(&["a=b&c+d"], "a&equals;b&amp;c&plus;d", "***");
}

#[test]
fn unmasked_text_cannot_be_read() {
    let text = Unmasked::new(format!("{}sesame-open", "x".repeat(95)));
    assert!(!format!("{text:?}").contains("sesame"));
    let masker = Masker::new(["sesame-open"]).expect("maskable");
    let shown = text.masked(&masker).elided(100).into_inner();
    assert_eq!(shown, format!("{}***", "x".repeat(95)));
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

/// Base64 as the standard says, written again so that the oracle shares nothing.
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

/// One of the ways a text is written by programs.
#[derive(Clone, Copy, Debug)]
enum Coding {
    Uri,
    UriComponent,
    Form,
    Json,
    JsonAscii,
    JsonHtml,
    Html,
    Base64,
    Base64Url,
    Utf16Base64,
    Base32,
    Bytes,
}

const CODINGS: [Coding; 12] = [
    Coding::Uri,
    Coding::UriComponent,
    Coding::Form,
    Coding::Json,
    Coding::JsonAscii,
    Coding::JsonHtml,
    Coding::Html,
    Coding::Base64,
    Coding::Base64Url,
    Coding::Utf16Base64,
    Coding::Base32,
    Coding::Bytes,
];

/// As the standards say, sharing nothing with what is tested.
fn encoded(text: &str, coding: Coding) -> String {
    let kept = |keep: &str| {
        let escape = |byte: u8| match char::from(byte) {
            plain if plain.is_ascii_alphanumeric() || keep.contains(plain) => plain.to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(escape).collect::<String>()
    };
    let json = || {
        let quoted = serde_json::to_string(text).expect("json");
        let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        inner.expect("quotes").to_owned()
    };
    let units = |wanted: fn(char) -> bool| {
        let unit = |unit: &mut u16| format!("\\u{unit:04x}");
        let escape = |it: char| match wanted(it) {
            true => it.encode_utf16(&mut [0; 2]).iter_mut().map(unit).collect(),
            false => it.to_string(),
        };
        json().chars().map(escape).collect::<String>()
    };
    match coding {
        Coding::Uri => kept("-_.!~*'();/?:@&=+$,#"),
        Coding::UriComponent => kept("-_.!~*'()"),
        Coding::Form => kept("-_.*").replace("%20", "+"),
        Coding::Json => json(),
        Coding::JsonAscii => units(|it| !it.is_ascii()),
        Coding::JsonHtml => units(|it| "<>&'".contains(it)),
        Coding::Html => text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;"),
        Coding::Base64 => base64(text.as_bytes(), "+/", true),
        Coding::Base64Url => base64(text.as_bytes(), "-_", false),
        Coding::Utf16Base64 => {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            base64(&bytes, "+/", true)
        }
        Coding::Base32 => base32(format!("key={text}").as_bytes()),
        Coding::Bytes => serde_json::to_string(text.as_bytes()).expect("json"),
    }
}

/// Base32 as the standard says, without its padding.
fn base32(bytes: &[u8]) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('2'..='7').collect();
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let letter = |bits: &[u8]| {
        let value = bits.iter().fold(0, |value, bit| value << 1 | bit);
        letters[usize::from(value << (5 - bits.len()))]
    };
    bits.chunks(5).map(letter).collect()
}

/// Whether a piece of a secret can be read in a text, whatever it is written in.
fn readable(text: &str, secret: &str) -> bool {
    let mut all = vec![text.as_bytes().to_vec()];
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let wanted = view::Wanted::of([every.as_slice(), b"x"].into_iter(), None);
    all.extend(
        view::of(text.as_bytes(), &wanted, Places::Dropped)
            .iter()
            .map(|view| view.bytes().to_vec()),
    );
    all.iter().any(|bytes| {
        bytes
            .windows(secret.len())
            .any(|piece| piece == secret.as_bytes())
    })
}

/// Escapes, halves of escapes and what writers escape.
const LOOK_ENCODED: [&str; 24] = [
    "%41",
    "%a0",
    "%25",
    "%",
    "%4",
    "\\n",
    "\\",
    "\\u00e4",
    "\\x41",
    "\\\"",
    "&amp;",
    "&#65;",
    "&",
    "&lt",
    "+",
    " ",
    "a",
    "Zz9",
    "/",
    "=",
    "\n",
    "ä",
    "🙂",
    "{\"k\":1}",
];

/// Masks secrets that were written in some way: there is a mask, and none can be read.
fn check_spelt(
    secrets: &[String],
    before: &str,
    after: &str,
    codings: &[Coding],
) -> Result<(), TestCaseError> {
    let masker = Masker::new(secrets.iter().map(String::as_str)).expect("maskable");
    for secret in secrets {
        let inside = format!("{before}{secret}{after}");
        let written = codings
            .iter()
            .enumerate()
            .fold(inside, |text, (index, coding)| {
                // UTF-16 is claimed of the secret itself, not of its escapes.
                let coding = match coding {
                    Coding::Utf16Base64 if index > 0 => Coding::Base64,
                    coding => *coding,
                };
                encoded(&text, coding)
            });
        let masked = masker.text(&written).into_inner();
        prop_assert!(
            masked.contains(MASK),
            "{:?} {} {}",
            codings,
            written,
            masked
        );
        prop_assert!(
            !readable(&masked, secret),
            "{:?} {} {}",
            codings,
            written,
            masked
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever a program writes a secret in, and whatever writes that again.
    #[test]
    fn nothing_is_left_in_any_spelling_we_claim(
        secrets in prop::collection::vec("[ -~äß€🙂\n\"\\\\]{8,20}", 1..4),
        before in "[a-z: ]{0,5}",
        after in "[a-z: ]{0,5}",
        codings in prop::collection::vec(prop::sample::select(&CODINGS[..]), 0..3),
    ) {
        check_spelt(&secrets, &before, &after, &codings)?;
    }

    /// The same for secrets that themselves read like something encoded.
    #[test]
    fn secrets_that_look_encoded_are_found(
        parts in prop::collection::vec(prop::sample::select(&LOOK_ENCODED[..]), 4..12),
        before in "[a-z: ]{0,5}",
        after in "[a-z: ]{0,5}",
        codings in prop::collection::vec(prop::sample::select(&CODINGS[..]), 0..3),
    ) {
        let secret = parts.concat();
        prop_assume!(secret.chars().count() >= 8);
        check_spelt(&[secret], &before, &after, &codings)?;
    }

    /// Cut anywhere after masking, no more of a secret is left than its mask; cut
    /// anywhere before it, no more than three characters at the end.
    #[test]
    fn no_cut_leaves_a_piece_of_a_secret(
        secret in "[A-Za-z0-9/+&= ]{12,40}",
        before in "[a-z ]{0,30}",
        coding in prop::sample::select(&CODINGS[..7]),
        chars_max in 0..80usize,
        cut in 0..80usize,
    ) {
        prop_assume!(secret.trim() == secret);
        let masker = Masker::new([secret.as_str()]).expect("maskable");
        let text = format!("{before}{}", encoded(&secret, coding));
        let pieces = |shown: &str| {
            let length = 5;
            let letters: Vec<char> = secret.chars().collect();
            letters.windows(length).any(|piece| readable(shown, &piece.iter().collect::<String>()))
        };
        prop_assume!(!pieces(&before));
        let shown = Unmasked::new(text.clone()).masked(&masker).elided(chars_max).into_inner();
        prop_assert!(!pieces(&shown), "{}", shown);
        let head: String = text.chars().take(cut).collect();
        let shown = masker.cut_text(&head).into_inner();
        prop_assert!(!pieces(&shown), "{} {}", head, shown);
    }

    /// Any bytes at all: places are in order, apart, and within the text.
    #[test]
    fn any_text_is_masked_in_place(text in "(.|%[0-9a-f]{2}|\\\\u[0-9a-f]{4}|&#[0-9]{1,3};|[A-Za-z0-9+/]{20}|sesame){0,30}") {
        let masker = Masker::new(["sesame", "¤¤¤¤", "%41%42%43%44"]).expect("maskable");
        let mut last = 0;
        for (start, end) in masker.found(text.as_bytes(), true) {
            prop_assert!(last <= start && start < end && end <= text.len());
            last = end;
        }
        let masked = masker.text(&text).into_inner();
        prop_assert!(!masked.contains("sesame"));
        let plain = Masker::new(["no such word"]).expect("maskable");
        prop_assert_eq!(plain.text(&text).into_inner(), text);
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

/// What reads like an escape may be part of the secret.
#[test]
fn a_secret_with_a_percent_is_found_below_two_encodings() {
    let masker = Masker::new(["%a0 \u{e4}A\na"]).expect("a masker");
    let text = "before %25a0%20%C3%A4A%5Cna after";
    assert_eq!(masker.text(text).into_inner(), "before *** after");
}

/// Each was missed once: base64 that reaches further than the secret is long, bytes that
/// are no text, short base64, marks that swallow each other, one kind of escape twice.
#[test]
fn spellings_that_were_missed_once() {
    let cases: [(&str, &str, &[Coding]); 6] = [
        (
            "abcdefghijklmnop?qr>t~",
            "",
            &[Coding::Utf16Base64, Coding::UriComponent],
        ),
        ("abc\"defg", "", &[Coding::Json, Coding::Base64]),
        ("%a0 b\nc d", "", &[Coding::Json, Coding::Form]),
        ("\n\\\"A0ä#\\", " ", &[Coding::Html]),
        ("%41\\&amp;%41", "", &[Coding::Json, Coding::Uri]),
        ("%41\\%41%41%41", "", &[Coding::Json, Coding::Json]),
    ];
    for (secret, after, codings) in cases {
        let checked = check_spelt(&[secret.to_owned()], "", after, codings);
        assert!(checked.is_ok(), "{secret:?} {codings:?}: {checked:?}");
    }
}
