//! Text that came from somebody else, made safe to show to a person.
//!
//! Attack: a description or an argument holding escape sequences, bidirectional
//! controls or invisible letters can rewrite the terminal or the question a
//! person is asked to approve. Here such characters become visible instead.

use std::fmt::Write as _;

/// Whether a character has no business on a terminal line.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text on one line, hidden characters written as `\u{..}`, a tab as a space.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push(' '),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            hidden if is_hidden(hidden) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(hidden));
            }
            plain => shown.push(plain),
        }
    }
    shown
}

/// [`one_line`], cut in the middle to at most `chars_max` characters, saying how
/// many are missing. The end is kept: that is where the dangerous part hides.
#[must_use]
pub fn elided(text: &str, chars_max: usize) -> String {
    let shown = one_line(text);
    let count = shown.chars().count();
    if count <= chars_max {
        return shown;
    }
    let head: String = shown.chars().take(chars_max / 2).collect();
    let tail: String = shown.chars().skip(count - chars_max / 2).collect();
    format!("{head} …{} more… {tail}", count - 2 * (chars_max / 2))
}

/// `1 host`, `2 hosts`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(one_line(raw), expected);
    }

    #[test]
    fn hidden_characters_are_shown() {
        check("plain text, naïve 日本語 🙂", "plain text, naïve 日本語 🙂");
        check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
        check(
            "a\u{202e}b\u{200b}c\u{feff}",
            "a\\u{202e}b\\u{200b}c\\u{feff}",
        );
        check("tag\u{e0041}s", "tag\\u{e0041}s");
        check("two\nlines\tand\rmore", "two\\nlines and\\rmore");
    }

    #[test]
    fn elision_keeps_both_ends_and_counts_the_rest() {
        assert_eq!(elided("short", 10), "short");
        assert_eq!(elided("0123456789abcdef", 8), "0123 …8 more… cdef");
    }
}
