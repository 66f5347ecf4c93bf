//! Characters in text and code that a reader does not see, or not where they are.
//!
//! Attack: what a person reads and what a program or a model reads can differ by
//! characters without width, by controls of direction, by tags and variation selectors
//! that spell text of their own, and by line ends that editors do not show. [`text`]
//! has what becomes visible when shown; this is what authors are told about, so it
//! knows where such characters belong: in emoji, flags and ideographs.
//!
//! [`text`]: crate::text

/// What is wrong with a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// It turns the direction of text.
    Direction,
    /// It draws nothing.
    Invisible,
    /// It ends a line for JavaScript and for few editors.
    LineEnd,
}

/// Tags after a black flag: the longest region has six and an end.
const FLAG_TAGS_MAX: usize = 7;

/// What is wrong with the character that follows `before` and comes before `after`;
/// nothing if it belongs there.
#[must_use]
pub fn unseen(before: &str, character: char, after: &str) -> Option<Unseen> {
    if is_direction(character) {
        return Some(Unseen::Direction);
    }
    if is_line_end(character, after) {
        return Some(Unseen::LineEnd);
    }
    let is_fine = match character {
        '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' => true,
        '\u{fe00}'..='\u{fe0f}' => is_selectable(before),
        '\u{e0100}'..='\u{e01ef}' => before.chars().next_back().is_some_and(is_ideograph),
        tag if is_tag(tag) => is_after_flag(before),
        other => !is_invisible(other) && !is_blank_letter(other) && !other.is_control(),
    };
    (!is_fine).then_some(Unseen::Invisible)
}

/// Every such character of a text, with its place in bytes.
pub fn all(text: &str) -> impl Iterator<Item = (usize, char, Unseen)> {
    let plain = |character: char| (' '..='~').contains(&character);
    text.char_indices()
        .filter(move |(_, character)| !plain(*character))
        .filter_map(move |(at, character)| {
            let before = text.get(..at).unwrap_or("");
            let after = text.get(at + character.len_utf8()..).unwrap_or("");
            Some((at, character, unseen(before, character, after)?))
        })
}

/// Controls and marks that change the direction of text.
#[must_use]
pub fn is_direction(character: char) -> bool {
    matches!(character,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Line ends beside `\n` and `\r\n`.
#[must_use]
pub fn is_line_end(character: char, after: &str) -> bool {
    match character {
        '\u{2028}' | '\u{2029}' => true,
        '\r' => !after.starts_with('\n'),
        _ => false,
    }
}

/// Joiners: part of emoji and of several scripts, so they are fine in text.
#[must_use]
pub fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

/// Invisible characters that no code needs. Where text may have them [`unseen`] knows.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{0085}' | '\u{00ad}' | '\u{034f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
        | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters that draw nothing, yet are letters to a parser.
#[must_use]
pub fn is_blank_letter(character: char) -> bool {
    matches!(
        character,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}'
    )
}

/// Tags spell the flags of regions after a black flag; elsewhere they smuggle text.
fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0020}'..='\u{e007f}')
}

fn is_after_flag(before: &str) -> bool {
    let tags = before
        .chars()
        .rev()
        .take_while(|character| is_tag(*character));
    let count = tags.take(FLAG_TAGS_MAX).count();
    count < FLAG_TAGS_MAX && before.chars().rev().nth(count) == Some('\u{1f3f4}')
}

/// Whether a variation selector may choose how the last character looks: a symbol, an
/// emoji, a digit of a keycap; one selector for one character.
fn is_selectable(before: &str) -> bool {
    before.chars().next_back().is_some_and(|last| match last {
        '0'..='9' | '#' | '*' => true,
        ascii if ascii.is_ascii() => false,
        last => !is_invisible(last) && !is_blank_letter(last) && !last.is_whitespace(),
    })
}

/// What has variants in the ideographic variation database.
fn is_ideograph(character: char) -> bool {
    matches!(character,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[Unseen]) {
        let found: Vec<_> = all(text).map(|(_, _, unseen)| unseen).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn text_of_people_is_fine() {
        for text in [
            "plain\ttext\r\nof two lines\n",
            "größe, имя, 数据, 葛\u{e0100}城",
            "❤\u{fe0f} 1\u{fe0f}\u{20e3} 👩\u{200d}🚀",
            // Wales
            "🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
            "می\u{200c}خواهم",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn hidden_characters_are_found() {
        let one = |text: &str, unseen| check(text, &[unseen]);
        for text in [
            "a\u{e0100}b",
            "a\u{fe0f}",
            "❤\u{fe0f}\u{e0100}",
            "a\u{e0041}",
            "a\u{200b}b",
            "\u{1b}[1m",
            "\u{85}",
            "\u{3164}",
            "\u{180b}",
        ] {
            one(text, Unseen::Invisible);
        }
        one("a\u{202e}b", Unseen::Direction);
        for text in ["a\rb", "a\u{2028}b", "a\u{2029}", "a\r\r\n"] {
            one(text, Unseen::LineEnd);
        }
        // A flag is no cover for a message.
        check("🏴 \u{e0041}", &[Unseen::Invisible]);
        let long = format!("🏴{}", "\u{e0041}".repeat(20));
        assert_eq!(all(&long).count(), 20 - FLAG_TAGS_MAX);
    }
}
