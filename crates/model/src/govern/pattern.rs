//! Patterns for names of tools and callers: `*` matches any run of characters, letters
//! match in either case, nothing else is special. Only an issuer's subjects are
//! case-sensitive.

use std::fmt;

use crate::caller::SUBJECT_PREFIX;
use crate::limits;

/// A pattern for a name.
#[derive(Clone, PartialEq, Eq)]
pub struct NamePattern {
    written: String,
    lowered: String,
    /// For names of our own keys, in which only ASCII's letters are folded.
    of_keys: String,
    /// For an issuer's subjects.
    of_subjects: String,
}

/// The text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// Nothing in it.
    #[error("a name pattern is empty")]
    Empty,
    /// Longer than any name.
    #[error("a name pattern is longer than {} characters", limits::NAME_CHARS_MAX)]
    TooLong,
}

impl NamePattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<NamePattern, PatternFault> {
        if text.trim().is_empty() {
            return Err(PatternFault::Empty);
        }
        if text.chars().count() > limits::NAME_CHARS_MAX {
            return Err(PatternFault::TooLong);
        }
        Ok(NamePattern::of(text))
    }

    /// A pattern of any text. One that is empty or longer than any name matches none.
    pub(crate) fn of(text: &str) -> NamePattern {
        // `None` for a shorter text, and where a wider character lies across the end.
        let head = text.get(..SUBJECT_PREFIX.len());
        let names_subjects = head.is_some_and(|head| head.eq_ignore_ascii_case(SUBJECT_PREFIX));
        NamePattern {
            written: text.to_owned(),
            lowered: text.to_lowercase(),
            of_keys: text.to_ascii_lowercase(),
            of_subjects: match names_subjects {
                // Only the prefix is folded: two subjects that differ in case may be two
                // people.
                true => crate::caller::folded(text),
                false => text.to_owned(),
            },
        }
    }

    /// Whether a name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.lowered == "*" || self.matches_lowered(&name.to_lowercase())
    }

    /// [`NamePattern::matches`] for a name in lower case, for many patterns on one
    /// name.
    #[must_use]
    pub fn matches_lowered(&self, name: &str) -> bool {
        fits(&self.lowered, name)
    }

    /// Whether a caller's name matches, as [`crate::caller::folded`] has it.
    #[must_use]
    pub fn matches_caller(&self, folded: &str) -> bool {
        match folded.starts_with(SUBJECT_PREFIX) {
            true => fits(&self.of_subjects, folded),
            false => fits(&self.of_keys, folded),
        }
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    // Each piece is taken where it first fits; only the last must end the name. That is
    // enough for `*`, without backtracking.
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

/// The first of several patterns that matches.
#[must_use]
pub fn first<'a>(patterns: &'a [NamePattern], name: &str) -> Option<&'a NamePattern> {
    patterns.iter().find(|pattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, expected: bool) {
        let pattern = NamePattern::parse(pattern).expect("a pattern");
        assert_eq!(pattern.matches(name), expected, "{pattern} {name}");
    }

    #[test]
    fn by_example() {
        check("*", "", true);
        check("*", "anything", true);
        check("web.*", "web.fetch", true);
        check("web.*", "web", false);
        check("web.*", "WEB.Fetch", true);
        check("get*", "target", false);
        check("*File", "readTextFile", true);
        check("*file", "readFiles", false);
        check("read*file", "readfile", true);
        check("read*file", "readfil", false);
        check("a*a", "a", false);
        check("a*b*a", "abba", true);
        check("exact", "exact", true);
        check("exact", "exactly", false);
        check("**", "x", true);
    }

    #[test]
    fn invalid_patterns_are_refused() {
        assert_eq!(NamePattern::parse(" "), Err(PatternFault::Empty));
        let long = "a".repeat(limits::NAME_CHARS_MAX + 1);
        assert_eq!(NamePattern::parse(&long), Err(PatternFault::TooLong));
    }

    #[test]
    fn subjects_are_case_sensitive() {
        for (pattern, name, expected) in [
            ("oauth:kim", "oauth:kim", true),
            ("OAuth:kim", "oauth:kim", true),
            ("oauth:kim", "oauth:KIM", false),
            ("oauth:kim", "oauth:\u{212a}im", false),
            ("oauth:\u{212a}im", "oauth:kim", false),
            ("*kim", "oauth:KIM", false),
            ("*Kim", "oauth:Kim", true),
            ("oauth:*", "oauth:KIM", true),
            ("*", "oauth:KIM", true),
            ("KIM", "kim", true),
            ("\u{212a}im", "kim", false),
        ] {
            let parsed = NamePattern::parse(pattern).expect("a pattern");
            let folded = crate::caller::folded(name);
            assert_eq!(parsed.matches_caller(&folded), expected, "{pattern} {name}");
        }
    }

    /// Slow and simple.
    fn oracle(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', pattern)), None) => oracle(pattern, name),
            (Some(('*', rest)), Some((_, tail))) => oracle(rest, name) || oracle(pattern, tail),
            (Some((a, pattern)), Some((b, name))) if a == b => oracle(pattern, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_backtracking(pattern in "[ab*]{1,8}", name in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = oracle(&chars(&pattern), &chars(&name));
            prop_assert_eq!(NamePattern::parse(&pattern).expect("a pattern").matches(&name), expected);
        }
    }
}
