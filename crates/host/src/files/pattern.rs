//! Regular expressions and globs of tool code.
//!
//! Expressions run on the `regex` crate, whose time grows with the length of the
//! text and nothing else: no pattern hangs the host. Its flavour is close to that
//! of Java, which the reference uses, and of JavaScript, with these differences:
//!
//! - Look-ahead and look-behind (`(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`), back
//!   references (`\1`), possessive quantifiers (`a++`) and atomic groups
//!   (`(?>…)`) do not exist; such a pattern is refused as invalid.
//! - `\d`, `\w`, `\s` and `\b` know all of Unicode: `\w` matches `é`, which Java
//!   and JavaScript deny unless asked. `(?-u:\w)` is the narrow form.
//! - Ignoring case follows Unicode's simple folding, so `ß` matches `ẞ`.
//! - `[^]`, `\cX`, `\0` and octal escapes do not exist; `\x{…}` and `\u{…}` do.
//! - A pattern *finds*: it matches anywhere in a line unless anchored, and among
//!   alternatives the leftmost is taken, as everywhere.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

use crate::files::limit;

/// A pattern that cannot be used, and why.
#[derive(Debug)]
pub(crate) struct PatternError(pub(crate) String);

/// Whether letters differ from their capitals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Case {
    Sensitive,
    Insensitive,
}

impl Case {
    /// From an option named `caseInsensitive`.
    pub(crate) fn from_flag(is_insensitive: bool) -> Case {
        match is_insensitive {
            true => Case::Insensitive,
            false => Case::Sensitive,
        }
    }
}

/// A regular expression, and how long a line it may look at.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) regex: Regex,
    line_bytes_max: usize,
}

impl Expression {
    /// Compiles a pattern.
    pub(crate) fn new(raw_pattern: &str, case: Case) -> Result<Expression, PatternError> {
        if raw_pattern.len() > limit::PATTERN_BYTES_MAX {
            return Err(PatternError("the pattern is too long".to_owned()));
        }
        let regex = RegexBuilder::new(raw_pattern)
            .case_insensitive(matches!(case, Case::Insensitive))
            .size_limit(limit::PATTERN_PROGRAM_BYTES_MAX)
            .dfa_size_limit(limit::PATTERN_PROGRAM_BYTES_MAX)
            .nest_limit(limit::PATTERN_DEPTH_MAX)
            .build()
            .map_err(|error| PatternError(sentence(&error)))?;
        // Parsed once more, because the compiled expression does not tell how
        // many places it has.
        let mut parser = ParserBuilder::new()
            .nest_limit(limit::PATTERN_DEPTH_MAX)
            .build();
        let parsed = parser.parse(raw_pattern);
        let parsed = parsed.map_err(|_| PatternError("the pattern cannot be read".to_owned()))?;
        let line_bytes_max = limit::PATTERN_WORK_MAX / place_count(&parsed).max(1);
        Ok(Expression {
            regex,
            line_bytes_max: line_bytes_max.min(limit::LINE_BYTES_MAX),
        })
    }

    /// Whether it would look at a line of this length.
    // Attack: `[ab]*a[ab]{4000}c` is linear in the text, with a factor of
    // thousands; on a line of a megabyte that is a minute.
    pub(crate) fn takes(&self, line: &str) -> bool {
        line.len() <= self.line_bytes_max
    }
}

/// How many places of a pattern a search may have to keep in mind at once, with
/// each repetition written out.
fn place_count(pattern: &Hir) -> usize {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Repetition(repetition) => {
            // Without an upper bound it counts as one more than its minimum: repeating
            // keeps no more places in mind.
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            place_count(&repetition.sub).saturating_mul(times.max(1))
        }
        HirKind::Capture(capture) => place_count(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let counts = parts.iter().map(place_count);
            counts.fold(0, usize::saturating_add)
        }
    }
}

/// A glob on one name: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before a
/// literal. A leading dot is a character like any other.
pub(crate) fn glob(raw_glob: &str) -> Result<Regex, PatternError> {
    if raw_glob.len() > limit::PATTERN_BYTES_MAX {
        return Err(PatternError("the glob is too long".to_owned()));
    }
    // With `s`, because a name may hold a line feed; anchored, because a glob fits the whole name.
    let mut pattern = String::from(r"(?s)\A");
    let mut is_in_braces = false;
    let mut marks = raw_glob.chars();
    while let Some(mark) = marks.next() {
        match mark {
            '*' => pattern.push_str(".*"),
            '?' => pattern.push('.'),
            '[' => pattern.push_str(&class(&mut marks)?),
            '{' if is_in_braces => return Err(broken("`{` inside `{`")),
            '{' => {
                is_in_braces = true;
                pattern.push_str("(?:");
            }
            '}' if is_in_braces => {
                is_in_braces = false;
                pattern.push(')');
            }
            ',' if is_in_braces => pattern.push('|'),
            '\\' => match marks.next() {
                Some(literal) => push_literal(&mut pattern, literal),
                None => return Err(broken("nothing after `\\`")),
            },
            literal => push_literal(&mut pattern, literal),
        }
    }
    if is_in_braces {
        return Err(broken("`{` is not closed"));
    }
    pattern.push_str(r"\z");
    expression_of_glob(&pattern)
}

fn expression_of_glob(pattern: &str) -> Result<Regex, PatternError> {
    RegexBuilder::new(pattern)
        .size_limit(limit::PATTERN_PROGRAM_BYTES_MAX)
        .dfa_size_limit(limit::PATTERN_PROGRAM_BYTES_MAX)
        .nest_limit(limit::PATTERN_DEPTH_MAX)
        .build()
        .map_err(|_| broken("a range is empty, or the whole is too large"))
}

/// What stands between `[` and `]`, as a class of a regular expression.
fn class(marks: &mut std::str::Chars<'_>) -> Result<String, PatternError> {
    let mut class = String::from("[");
    let mut is_empty = true;
    let mut is_first = true;
    for mark in marks.by_ref() {
        match mark {
            '!' if is_first => class.push('^'),
            ']' if is_empty => return Err(broken("`[]` is empty")),
            ']' => {
                class.push(']');
                return Ok(class);
            }
            '-' if !is_empty => {
                class.push('-');
            }
            literal => {
                push_literal(&mut class, literal);
                is_empty = false;
            }
        }
        is_first = false;
    }
    Err(broken("`[` is not closed"))
}

fn push_literal(pattern: &mut String, literal: char) {
    let mut buffer = [0; 4];
    pattern.push_str(&regex::escape(literal.encode_utf8(&mut buffer)));
}

fn broken(what: &str) -> PatternError {
    PatternError(what.to_owned())
}

/// The last line of what the parser says: the others draw a picture.
fn sentence(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().next_back().unwrap_or_default();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    last.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_places_the_shorter_the_line() {
        let line_bytes_max = |raw_pattern: &str| {
            let expression = Expression::new(raw_pattern, Case::Sensitive).unwrap();
            expression.line_bytes_max
        };
        assert_eq!(
            line_bytes_max(r"\b\w+@\w+\.\w{2,}\b"),
            limit::LINE_BYTES_MAX
        );
        assert_eq!(line_bytes_max("[ab]{4000}"), limit::PATTERN_WORK_MAX / 4000);
        assert_eq!(
            line_bytes_max("(?:a{20}|b{5,}){40}"),
            limit::PATTERN_WORK_MAX / 1040
        );
    }

    #[track_caller]
    fn check(raw_glob: &str, matching: &[&str], others: &[&str]) {
        let glob = glob(raw_glob).unwrap();
        for name in matching {
            assert!(glob.is_match(name), "{raw_glob} should match {name}");
        }
        for name in others {
            assert!(!glob.is_match(name), "{raw_glob} should not match {name}");
        }
    }

    #[test]
    fn globs_match_whole_names() {
        check("*", &["", "a", ".hidden", "a\nb"], &[]);
        check("*.md", &["a.md", ".md"], &["a.mdx", "amd"]);
        check("?.txt", &["é.txt"], &["ab.txt", ".txt"]);
        check("*.{js,ts}", &["a.js", "a.ts"], &["a.jsts", "a."]);
        check("[a-c]x", &["ax", "cx"], &["dx", "-x"]);
        check("[!a-c]x", &["dx", "-x"], &["ax"]);
        check("[-a]", &["-", "a"], &["b"]);
        check("[a-]", &["-", "a"], &["b"]);
        check("[*?^]", &["*", "?", "^"], &["a"]);
        check(r"\*", &["*"], &["a"]);
        check("a(b|c)+.$", &["a(b|c)+.$"], &["ab."]);
        check("**", &["anything"], &[]);
    }

    #[test]
    fn broken_globs_are_refused() {
        for raw_glob in ["[", "[a", "[]", "[!]", "{a", "{a{b}}", "\\", "[z-a]"] {
            assert!(glob(raw_glob).is_err(), "{raw_glob}");
        }
        assert!(glob(&"a".repeat(limit::PATTERN_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn patterns_outside_the_flavour_are_refused_with_a_sentence() {
        for raw_pattern in [
            "(?=a)",
            r"(a)\1",
            "a++b(?>c)",
            "(",
            "[^]",
            "(?:a{1000}){1000}",
        ] {
            let error = Expression::new(raw_pattern, Case::Sensitive).unwrap_err();
            assert!(
                !error.0.is_empty() && !error.0.contains('\n'),
                "{}",
                error.0
            );
        }
    }
}
