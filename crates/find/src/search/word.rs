//! Splits text into words: at case changes and punctuation, in lower case, without the
//! commonest endings of English.

use std::ops::{ControlFlow, Range};
use std::str::Chars;

use crate::limit;

/// One word of a text, and the ways in which it may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// As written.
    pub(super) shown: String,
    /// The forms to look for; one match is enough.
    pub(super) forms: Vec<String>,
}

/// Reads texts for the index. It keeps its memory from one text to the next.
#[derive(Default)]
pub(super) struct Reader {
    letters: Letters,
    form: String,
}

impl Reader {
    /// Passes every form of every word of a text to `take`, until it returns false.
    /// Forms are borrowed: a large index has most words already.
    pub(super) fn forms(&mut self, text: &str, mut take: impl FnMut(&str) -> ControlFlow<()>) {
        let Reader { letters, form } = self;
        for piece in pieces(text) {
            letters.read(piece);
            let whole = (letters.parts.len() > 1).then_some(letters.whole.as_str());
            for word in letters.parts().chain(whole) {
                if is_empty_word(word) {
                    continue;
                }
                form.clear();
                form.push_str(word);
                stem(form);
                if take(form).is_break() {
                    return;
                }
            }
        }
    }
}

/// The words of a query. A compound such as `readFile` counts as its parts, and each
/// part also matches the whole.
pub(super) fn units(query: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut letters = Letters::default();
    for piece in pieces(query) {
        letters.read(piece);
        let whole = (letters.parts.len() > 1).then(|| stemmed(&letters.whole));
        for word in letters.parts().filter(|word| !is_empty_word(word)) {
            let mut forms = vec![stemmed(word)];
            forms.extend(whole.clone());
            if units.iter().all(|unit| unit.forms != forms) {
                let shown = word.to_owned();
                units.push(Unit { shown, forms });
            }
        }
    }
    units.truncate(limit::SEARCH_QUERY_WORDS_MAX);
    units
}

/// A name without separators: `read_file`, `readFile` and `read file` are the same.
pub(super) fn joined(name: &str) -> String {
    let mut joined = String::with_capacity(name.len());
    for letter in name.chars().filter(|letter| letter.is_alphanumeric()) {
        push_lower(&mut joined, letter);
    }
    joined
}

fn push_lower(text: &mut String, letter: char) {
    if letter.is_ascii() {
        text.push(letter.to_ascii_lowercase());
    } else {
        text.extend(letter.to_lowercase());
    }
}

/// Runs of letters and digits, with `-`, `_` and `.` inside them. Longer than any
/// word is cut off there.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let pieces = text.split(move |letter| !inside(letter));
    pieces.filter(|piece| !piece.is_empty()).map(|piece| {
        if piece.len() <= limit::SEARCH_WORD_CHARS_MAX {
            return piece;
        }
        let end = piece.char_indices().nth(limit::SEARCH_WORD_CHARS_MAX);
        end.and_then(|(end, _)| piece.get(..end)).unwrap_or(piece)
    })
}

/// The letters of a piece in lower case, and where its parts are: they split at
/// punctuation, before an upper-case letter that begins a word, and letter by letter in
/// pairs where a script writes no spaces.
#[derive(Default)]
struct Letters {
    whole: String,
    /// As bytes of the whole.
    parts: Vec<Range<usize>>,
}

impl Letters {
    fn read(&mut self, piece: &str) {
        self.whole.clear();
        self.parts.clear();
        let mut start = 0;
        // The letter before in the same part, and where it is.
        let mut last: Option<(char, usize)> = None;
        let mut rest = piece.chars();
        while let Some(letter) = rest.next() {
            let here = self.whole.len();
            if !letter.is_alphanumeric() {
                self.part(start..here);
                start = here;
                last = None;
                continue;
            }
            if let Some((before, its_place)) = last
                && begins(before, letter, &rest)
            {
                self.part(start..here);
                // The second of a pair is the first of the next.
                let is_pair = is_spaceless(before) && is_spaceless(letter);
                start = if is_pair { its_place } else { here };
            }
            push_lower(&mut self.whole, letter);
            last = Some((letter, here));
        }
        self.part(start..self.whole.len());
    }

    fn part(&mut self, part: Range<usize>) {
        if !part.is_empty() {
            self.parts.push(part);
        }
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts.iter();
        parts.filter_map(|part| self.whole.get(part.clone()))
    }
}

/// Whether a part begins with `letter`, between `last` and `rest`.
fn begins(last: char, letter: char, rest: &Chars<'_>) -> bool {
    if is_spaceless(last) || is_spaceless(letter) {
        return true;
    }
    // The last letter of `JSON` in `JSONFile` begins nothing, the `F` does.
    let is_before_small = || rest.clone().next().is_some_and(char::is_lowercase);
    letter.is_uppercase() && (!last.is_uppercase() || is_before_small())
}

/// Chinese, Japanese and Thai write no spaces.
pub(super) fn is_spaceless(letter: char) -> bool {
    matches!(letter, '\u{0E00}'..='\u{0E7F}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

/// Stop words. A match and no list: every word of every document is asked about.
#[rustfmt::skip]
pub(super) fn is_empty_word(word: &str) -> bool {
    matches!(
        word,
        "a" | "all" | "am" | "an" | "and" | "any" | "are" | "as" | "at" | "be" | "by" | "can" | "could" | "do"
        | "does" | "for" | "from" | "had" | "has" | "have" | "how" | "i" | "if" | "in" | "into" | "is" | "it" | "its"
        | "me" | "my" | "need" | "of" | "on" | "or" | "our" | "please" | "should" | "so" | "some" | "that" | "the"
        | "their" | "them" | "then" | "there" | "these" | "they" | "this" | "those" | "to" | "tool" | "tools"
        | "us" | "use" | "using" | "want" | "was" | "we" | "what" | "when" | "which" | "will" | "with" | "would"
        | "you" | "your"
    )
}

pub(super) fn stemmed(word: &str) -> String {
    let mut stemmed = word.to_owned();
    stem(&mut stemmed);
    stemmed
}

/// Takes off the endings that make the same word look different. The rest need not be a
/// word; it must only be the same for all forms.
fn stem(word: &mut String) {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    make_singular(word);
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending) {
            let is_word = rest.len() > 2 && rest.bytes().any(is_vowel) && !rest.ends_with('e');
            if is_word {
                let length = undoubled(rest).len();
                word.truncate(length);
                break;
            }
        }
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

fn make_singular(word: &mut String) {
    if !word.ends_with('s') {
        return;
    }
    if word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
        return;
    }
    let of_two = ["sses", "xes", "zes", "ches", "shes"];
    if of_two.iter().any(|ending| word.ends_with(ending)) {
        word.truncate(word.len() - 2);
        return;
    }
    if !["ss", "us", "is"]
        .iter()
        .any(|ending| word.ends_with(ending))
    {
        word.pop();
    }
}

/// `splitt` of `splitting` is `split`.
fn undoubled(stem: &str) -> &str {
    let mut letters = stem.chars().rev();
    let (last, before) = (letters.next(), letters.next());
    match last {
        Some(last) if last == before.unwrap_or(' ') && !matches!(last, 'l' | 's' | 'z') => {
            stem.strip_suffix(last).unwrap_or(stem)
        }
        _ => stem,
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
        assert_eq!(all(text), expected, "{text:?}");
    }

    fn all(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Reader::default().forms(text, |form| {
            found.push(form.to_owned());
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn names_split_at_case_and_punctuation() {
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
                words.iter().map(|word| stemmed(word)).collect();
            assert_eq!(stems.len(), 1, "{words:?}: {stems:?}");
        }
        for word in ["string", "thing", "status", "class", "speed", "css"] {
            assert_eq!(stemmed(word), word);
        }
    }

    #[test]
    fn words_without_meaning_are_left_out() {
        check("how do I use this", &[]);
        assert!(units("what is the").is_empty());
    }

    #[test]
    fn scripts_without_spaces_split_in_pairs() {
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
        assert!(
            all(&long)
                .iter()
                .all(|form| form.len() <= limit::SEARCH_WORD_CHARS_MAX)
        );
        let many: Vec<_> = (0..1_000).map(|index| format!("w{index}")).collect();
        assert_eq!(units(&many.join(" ")).len(), limit::SEARCH_QUERY_WORDS_MAX);
    }
}
