//! Text as words that can be compared: parted at case and punctuation, in lower
//! case, without the commonest endings of English.

use crate::limits;

/// Words that say nothing about what a tool does.
const EMPTY: &[&str] = &[
    "a", "all", "am", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do",
    "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "me", "my", "need", "of", "on", "or", "our", "please", "should", "so", "some", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "tool", "tools",
    "us", "use", "using", "want", "was", "we", "what", "when", "which", "will", "with", "would",
    "you", "your",
];

/// One word of a text, and the ways in which it may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// As it stood there.
    pub(super) shown: String,
    /// What to look for; one that is found is enough.
    pub(super) forms: Vec<String>,
}

/// All forms of all words of a text, for the index.
pub(super) fn forms(text: &str) -> impl Iterator<Item = String> + '_ {
    pieces(text).flat_map(|piece| {
        let mut forms: Vec<_> = parts(piece).iter().map(|part| folded(part)).collect();
        if forms.len() > 1 {
            forms.push(folded(piece));
        }
        forms.retain(|form| !is_empty_word(form));
        forms.into_iter().map(|form| stem(&form))
    })
}

/// The words of a query. A compound such as `readFile` counts as its parts, each of
/// which the whole may stand for.
pub(super) fn units(query: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for piece in pieces(query) {
        let parts = parts(piece);
        let whole = (parts.len() > 1).then(|| stem(&folded(piece)));
        for part in parts {
            let form = folded(&part);
            if is_empty_word(&form) {
                continue;
            }
            let mut forms = vec![stem(&form)];
            forms.extend(whole.clone());
            if units.iter().all(|unit| unit.forms != forms) {
                units.push(Unit { shown: form, forms });
            }
        }
    }
    units.truncate(limits::SEARCH_QUERY_WORDS_MAX);
    units
}

/// A name without what separates its parts: `read_file`, `readFile` and `read file`
/// are the same.
pub(super) fn joined(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Runs of letters and digits, with `-`, `_` and `.` inside them. Longer than any
/// word is cut off there.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let pieces = text.split(move |letter| !inside(letter));
    let has_word = |piece: &&str| piece.chars().any(char::is_alphanumeric);
    pieces.filter(has_word).map(|piece| {
        let end = piece.char_indices().nth(limits::SEARCH_WORD_CHARS_MAX);
        end.and_then(|(end, _)| piece.get(..end)).unwrap_or(piece)
    })
}

/// The parts of a piece: at punctuation, before an upper-case letter that begins a
/// word, and letter by letter in pairs where a script writes no spaces.
fn parts(piece: &str) -> Vec<String> {
    let letters: Vec<char> = piece.chars().collect();
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut last: Option<char> = None;
    for (index, &letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() {
            parts.push(std::mem::take(&mut part));
            last = None;
            continue;
        }
        let next = letters.get(index + 1).copied();
        if last.is_some_and(|last| begins(last, letter, next)) {
            parts.push(std::mem::take(&mut part));
        }
        // The second of a pair is the first of the next.
        part.extend(last.filter(|last| is_spaceless(*last) && is_spaceless(letter)));
        part.push(letter);
        last = Some(letter);
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a part begins with `letter`, which follows `last`.
fn begins(last: char, letter: char, next: Option<char>) -> bool {
    if is_spaceless(last) || is_spaceless(letter) {
        return true;
    }
    // The last letter of `JSON` in `JSONFile` begins nothing, the `F` does.
    let ends_capitals = last.is_uppercase() && next.is_some_and(char::is_lowercase);
    letter.is_uppercase() && (!last.is_uppercase() || ends_capitals)
}

/// Chinese, Japanese and Thai write no spaces.
fn is_spaceless(letter: char) -> bool {
    matches!(letter, '\u{0E00}'..='\u{0E7F}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

fn folded(word: &str) -> String {
    joined(word)
}

fn is_empty_word(word: &str) -> bool {
    EMPTY.binary_search(&word).is_ok()
}

/// Takes off the endings that make the same word look different. What is left need
/// not be a word; it only has to be the same for all of its forms.
fn stem(word: &str) -> String {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stem = singular(word);
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending) {
            let is_word = rest.len() > 2 && rest.bytes().any(is_vowel) && !rest.ends_with('e');
            if is_word {
                stem = undoubled(rest);
                break;
            }
        }
    }
    if stem.len() > 3 {
        stem = stem.strip_suffix('e').unwrap_or(&stem).to_owned();
    }
    stem
}

fn singular(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ies") {
        return format!("{rest}y");
    }
    for ending in ["sses", "xes", "zes", "ches", "shes"] {
        if word.ends_with(ending) {
            return word.strip_suffix("es").unwrap_or(word).to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(rest) if !rest.ends_with(['s', 'u', 'i']) => rest.to_owned(),
        _ => word.to_owned(),
    }
}

/// `splitt` of `splitting` is `split`.
fn undoubled(stem: &str) -> String {
    let mut letters = stem.chars().rev();
    let (last, before) = (letters.next(), letters.next());
    match last {
        Some(last) if last == before.unwrap_or(' ') && !matches!(last, 'l' | 's' | 'z') => {
            stem.strip_suffix(last).unwrap_or(stem).to_owned()
        }
        _ => stem.to_owned(),
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = forms(text).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn names_part_at_case_and_punctuation() {
        check("readTextFile", &["read", "text", "fil", "readtextfil"]);
        check(
            "read_text-file.v2",
            &["read", "text", "fil", "v2", "readtextfilev2"],
        );
        check("parseJSONFile", &["pars", "json", "fil", "parsejsonfil"]);
        check("sha256", &["sha256"]);
        check("HTTP", &["http"]);
        check("getURL", &["get", "url", "geturl"]);
    }

    #[test]
    fn endings_do_not_matter() {
        let alike = [
            &["encode", "encodes", "encoded", "encoding"][..],
            &["file", "files"],
            &["split", "splits", "splitting"],
            &["query", "queries", "querying"],
            &["hash", "hashes", "hashing", "hashed"],
            &["box", "boxes"],
        ];
        for words in alike {
            let stems: std::collections::BTreeSet<_> =
                words.iter().map(|word| stem(word)).collect();
            assert_eq!(stems.len(), 1, "{words:?}: {stems:?}");
        }
        for word in ["string", "thing", "status", "class", "speed", "css"] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn words_without_meaning_are_left_out() {
        check("how do I use this", &[]);
        assert!(EMPTY.is_sorted());
        assert!(units("what is the").is_empty());
    }

    #[test]
    fn scripts_without_spaces_part_in_pairs() {
        check("天气预报", &["天", "天气", "气预", "预报", "天气预报"]);
        check("größe", &["größe"]);
    }

    #[test]
    fn a_compound_may_be_meant_as_one_word() {
        let units = units("readFile");
        let forms: Vec<_> = units.iter().map(|unit| unit.forms.join(" ")).collect();
        assert_eq!(forms, ["read readfil", "fil readfil"]);
        assert_eq!(units[1].shown, "file");
    }

    #[test]
    fn long_words_and_queries_are_cut() {
        let long = "x".repeat(10_000);
        assert!(forms(&long).all(|form| form.len() <= limits::SEARCH_WORD_CHARS_MAX));
        let many: Vec<_> = (0..1_000).map(|index| format!("w{index}")).collect();
        assert_eq!(units(&many.join(" ")).len(), limits::SEARCH_QUERY_WORDS_MAX);
    }
}
